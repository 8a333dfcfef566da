"""What went wrong, from an error that a model server sent, in the words of `types/errors.py`."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime

from surefoot.models.json_edge import Json, items, mapping, read, text
from surefoot.types.dataclass import dataclass
from surefoot.types.errors import ModelError, ModelRefused, ModelUnreachable, TraitRefused

_SHOWN_CHARS = 400
_KEY_LIKE = re.compile(r"\b(?:sk|pk|gsk|xai|hf)[-_][-\w*]{6,}|\bAIza[-\w*]{10,}|Bearer\s+\S+", re.IGNORECASE)
_OVERFLOW = re.compile(
    r"context[_ ](?:length|window|size)|maximum context|prompt is too long|input is too long|too many (?:input )?tokens"
    r"|reduce the length|range of input length|token count.{0,40}exceeds|exceeds the maximum number of (?:input )?tok"
    r"|exceeds? (?:the )?context limit",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content[_ ](?:filter|policy|management)|safety system|data_inspection_failed|moderation|content exists risk"
    r"|inappropriate content|responsible ai",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(
    r"insufficient[_ ](?:quota|balance|credits?|funds)|exceeded your current quota|credit balance is too low",
    re.IGNORECASE,
)
_RATE = re.compile(r"(?<![a-z])rate(?![a-z])|rate[_ -]?(?:limit|exceeded)", re.IGNORECASE)  # and not "moderated"
_TRANSIENT_TYPES = re.compile(r"overload|capacity|timeout|server|internal|unavailable|busy|\bapi_error", re.IGNORECASE)
_MAY_BE_ABOUT_A_PART = frozenset({400, 404, 405, 415, 422, 424, 500, 501})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Whom a message is about: the model, where it is asked, and the environment variable that holds its key.

    `hint` says what a base URL of this kind looks like.
    """

    model: str
    base_url: str
    key_variable: str = ""
    key: str = ""
    hint: str = "base URL of a model server"

    def __repr__(self) -> str:
        return f"Endpoint({self.model!r}, {self.base_url!r})"  # never the key

    @property
    def where(self) -> str:
        """The model and where it is asked, as errors name them."""
        return f"{self.model} at {self.base_url}"

    def without_keys(self, words: str) -> str:
        """The words with everything that is or looks like a key taken out."""
        if self.key:
            words = words.replace(self.key, "[key]")
        return _KEY_LIKE.sub("[key]", words)


@dataclass(frozen=True, slots=True)
class Complaint:
    """An error as the server put it; `status` is that of HTTP, or what an error inside a 200 amounts to."""

    status: int
    message: str
    code: str = ""
    param: str = ""
    retry_after_s: float | None = None


def complaint_of(status: int, raw: bytes, retry_after_s: float | None, endpoint: Endpoint) -> Complaint:
    """Read an error body: JSON in one of the many forms in use, else a page, cut down to its words."""
    decoded = read(raw)
    if isinstance(decoded, list):
        decoded = next(iter(items(decoded)), None)  # pyright: ignore[reportUnknownArgumentType] - decoded JSON
    whole = mapping(decoded)
    inner = whole.get("error")
    fields = mapping(inner) or whole
    message = text(inner) or text(fields.get("message")) or text(fields.get("detail")) or text(fields.get("msg"))
    details = mapping(fields.get("metadata")).get("raw")  # OpenRouter: what the provider behind it said
    if not message or (isinstance(details, str) and details):
        message = " ".join(part for part in (message, text(details) or "") if part) or _words_of(raw)
    code = fields.get("code")
    return Complaint(
        _status_of(status, fields),
        endpoint.without_keys(" ".join(message.split()))[:_SHOWN_CHARS],
        str(code) if code is not None and code != status else text(fields.get("type")),
        text(fields.get("param")),
        retry_after_s,
    )


def _status_of(status: int, fields: Json) -> int:
    """An error that comes with status 200 carries a code or a type that tells what it amounts to."""
    if status != 200:  # noqa: PLR2004 - the one status that means success here
        return status
    code = fields.get("code")
    if isinstance(code, int) and 400 <= code <= 599:  # noqa: PLR2004 - the range of HTTP errors
        return code
    words = f"{code} {fields.get('type')}"
    if _RATE.search(words):
        return 429
    return 503 if (code is None and fields.get("type") is None) or _TRANSIENT_TYPES.search(words) else 400


def _words_of(raw: bytes) -> str:
    page = raw.decode("utf-8", "replace")
    page = re.sub(r"(?is)<(script|style|head)\b.*?</\1>", " ", page)
    return " ".join(re.sub(r"<[^>]{0,2000}>", " ", page).split()) or "no explanation"


def retry_after_of(headers_ms: str | None, header: str | None, now: float) -> float | None:
    """Seconds to wait, from `retry-after-ms` or from `Retry-After` (seconds or an HTTP date); `now`: the epoch time."""
    for given, unit in ((headers_ms, 1000), (header, 1)):
        with suppress(ValueError):
            return max(0.0, float(given or "") / unit)
    with suppress(ValueError, OverflowError):
        date = parsedate_to_datetime(header or "")
        if date.tzinfo is None:  # the oldest of the three forms names no zone, and means UTC (RFC 9110, 5.6.7)
            date = date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - now)
    return None


def error_of(complaint: Complaint, endpoint: Endpoint, refused: Callable[[], TraitRefused | None]) -> ModelError:
    """The error to raise. `refused` tells which part of the request the complaint is about, if it may be about one."""
    status, said = complaint.status, f"{complaint.message} (HTTP {complaint.status})"
    words = f"{complaint.code} {complaint.message}"
    where = endpoint.where
    if status in (400, 403, 451) and _FILTERED.search(words):
        return ModelRefused(f"a content filter refused the request to {where}: {said}", kind="refused")
    if status == 413 or (status in (400, 422, 500) and _OVERFLOW.search(words)):  # noqa: PLR2004 - HTTP
        return ModelRefused(f"the conversation is too long for {where}: {said}", kind="context_overflow")
    if status in _MAY_BE_ABOUT_A_PART and (learnt := refused()):
        return learnt
    if status == 402 or (status in (400, 403, 429) and _NO_CREDIT.search(words)):  # noqa: PLR2004 - HTTP
        return ModelRefused(f"the account behind the key has no credit left for {where}: {said}", kind="auth")
    if status in (401, 403):
        variable = endpoint.key_variable or "api_key"
        if not endpoint.key:
            return ModelRefused(f"{where} asks for a key, and none was sent: {said}; set {variable}", kind="auth")
        return ModelRefused(f"{where} does not accept the key: {said}; check {variable}", kind="auth")
    if status == 404:  # noqa: PLR2004 - HTTP
        return ModelRefused(f"{endpoint.base_url} does not know {endpoint.model!r}, or is no {endpoint.hint}: {said}")
    if status == 429:  # noqa: PLR2004 - HTTP
        return ModelUnreachable(
            f"{where} asks for fewer requests: {said}", kind="rate_limited", retry_after_s=complaint.retry_after_s
        )
    if status in (408, 409) or status >= 500:  # noqa: PLR2004 - HTTP
        return ModelUnreachable(f"{where} failed or is overloaded: {said}", retry_after_s=complaint.retry_after_s)
    if status < 400:  # noqa: PLR2004 - HTTP
        return ModelRefused(f"{where} answers with a redirect, which is not followed: {said}; set the right base URL")
    return ModelRefused(f"{where} refuses the request: {said}")
