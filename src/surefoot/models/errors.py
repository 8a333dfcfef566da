"""What an error of a server means: a kind of failure in our own words, or a part of the request that it refuses.

The words of servers are data (`data/refusals.toml`), read at the first error. Only a part that the request carried can
be refused; a trait that is known already explains nothing. Source: spec/react.md, section 2.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC
from functools import cache

from surefoot.core.text.words import table
from surefoot.models.json_edge import Json, first, items, mapping, read, text
from surefoot.types.dataclass import dataclass
from surefoot.types.errors import ModelError, ModelRefused, ModelUnreachable, TraitRefused
from surefoot.types.messages import Traits

LEAST_SECRET = 8
"""Characters of a secret; shorter ones are words like any other."""
_SHOWN_CHARS = 400
_EVIDENCE_CHARS = 200
_KEY_LIKE = re.compile(r"\b(?:sk|pk|gsk|xai|hf)[-_][-\w*]{6,}|\bAIza[-\w*]{10,}|Bearer\s+\S+", re.IGNORECASE)
_DELAY = re.compile(r"(\d{1,9}(?:\.\d+)?)s")
_MAY_BE_ABOUT_A_PART = frozenset({400, 404, 405, 415, 422, 424, 500, 501})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Whom a message is about: the model, where it is asked, and the environment variable that holds its key.

    `hint` says what a base URL of this kind looks like; `secrets` are what goes with requests besides the key and must
    not be shown either.
    """

    model: str
    base_url: str
    key_variable: str = ""
    key: str = ""
    hint: str = "base URL of a model server"
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Endpoint({self.model!r}, {self.base_url!r})"  # never the key

    @property
    def where(self) -> str:
        """The model and where it is asked, as errors name them."""
        return f"{self.model} at {self.base_url}"

    def without_keys(self, words: str) -> str:
        """The words with everything that is or looks like a key taken out."""
        for secret in filter(None, (self.key, *self.secrets)):
            if len(secret) >= LEAST_SECRET:
                words = words.replace(secret, "[key]")
            else:  # of a key such as "x" that a local server ignores, only the whole word
                words = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "[key]", words)
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
    whole = mapping(decoded) or first(decoded)
    inner = whole.get("error")
    fields = mapping(inner) or whole
    message = text(inner) or text(fields.get("message")) or text(fields.get("detail")) or text(fields.get("msg"))
    if details := text(mapping(fields.get("metadata")).get("raw")):  # OpenRouter: what the provider behind it said
        message = f"{message} {details}".strip()
    if not message:
        page = re.sub(r"(?is)<(script|style|head)\b.*?</\1>", " ", raw.decode("utf-8", "replace"))
        message = re.sub(r"<[^>]{0,2000}>", " ", page).strip() or "no explanation"
    told = (_DELAY.fullmatch(text(mapping(one).get("retryDelay"))) for one in items(fields.get("details")))  # Google
    if retry_after_s is None and (delay := next(filter(None, told), None)):
        retry_after_s = float(delay[1])
    code, true_status = fields.get("code"), status
    if status == 200:  # noqa: PLR2004 - then a code or a type tells what the error amounts to
        kind = f"{code} {fields.get('type')}"
        is_untold = code is None and fields.get("type") is None
        true_status = 503 if is_untold or finds("kinds.transient", kind) else 400
        if isinstance(code, int) and 400 <= code <= 599:  # noqa: PLR2004 - the range of HTTP errors
            true_status = code
        elif finds("kinds.rate", kind):
            true_status = 429
    return Complaint(
        true_status,
        endpoint.without_keys(" ".join(message.split()))[:_SHOWN_CHARS],
        str(code) if code is not None and code != status else text(fields.get("type")),
        text(fields.get("param")),
        retry_after_s,
    )


def retry_after_of(headers_ms: str | None, header: str | None, now: float) -> float | None:
    """Seconds to wait, from `retry-after-ms` or from `Retry-After` (seconds or an HTTP date); `now`: the epoch time."""
    for given, unit in ((headers_ms, 1000), (header, 1)):
        with suppress(ValueError):
            return max(0.0, float(given or "") / unit)
    from email.utils import parsedate_to_datetime  # noqa: PLC0415  # few servers send a date

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
    if status in (400, 403, 451) and finds("kinds.filter", words):
        return ModelRefused(f"a content filter refused the request to {where}: {said}", kind="refused")
    if status == 413 or (status in (400, 422, 500) and finds("kinds.overflow", words)):  # noqa: PLR2004 - HTTP
        return ModelRefused(f"the conversation is too long for {where}: {said}", kind="context_overflow")
    if complaint.code == "tool_use_failed":  # Groq: the model's call was bad, and not the request
        return ModelUnreachable(f"{where} could not use what the model wrote: {said}")
    if status in _MAY_BE_ABOUT_A_PART and (learnt := refused()):
        return learnt
    if status == 402 or (status in (400, 403, 429) and finds("kinds.no_credit", words)):  # noqa: PLR2004 - HTTP
        return ModelRefused(f"the account behind the key has no credit left for {where}: {said}", kind="auth")
    if status in (401, 403):
        variable = endpoint.key_variable or "api_key"
        if not endpoint.key and not endpoint.secrets:
            return ModelRefused(f"{where} asks for a key, and none was sent: {said}; set {variable}", kind="auth")
        return ModelRefused(f"{where} does not accept the key: {said}; check {variable}", kind="auth")
    if status == 404:  # noqa: PLR2004 - HTTP
        unknown = f"{endpoint.base_url} does not know {endpoint.model!r}, or is not a {endpoint.hint}: {said}"
        return ModelRefused(unknown)
    if status == 429:  # noqa: PLR2004 - HTTP
        told = f"{where} asks for fewer requests: {said}"
        return ModelUnreachable(told, kind="rate_limited", retry_after_s=complaint.retry_after_s)
    if status in (408, 409) or status >= 500:  # noqa: PLR2004 - HTTP
        return ModelUnreachable(f"{where} failed or is overloaded: {said}", retry_after_s=complaint.retry_after_s)
    if status < 400:  # noqa: PLR2004 - HTTP
        return ModelRefused(f"{where} answers with a redirect, which is not followed: {said}; set the right base URL")
    return ModelRefused(f"{where} refuses the request: {said}")


def finds(key: str, words: str) -> re.Match[str] | None:
    """Where a pattern of the data occurs, without regard to case. `key` is its place there, such as `kinds.rate`."""
    return _pattern(key).search(words)


def denies(message: str) -> bool:
    """Whether the words say that something is not taken at all."""
    return finds("denial.words", message) is not None


def learn(trait: str | None, value: str, message: str, traits: Traits) -> TraitRefused | None:
    """What an error teaches; `None` when that was known, and so explains nothing."""
    if trait is None or traits.get(trait) == value:
        return None
    return TraitRefused(trait, value, message[:_EVIDENCE_CHARS])


_ONE_TOOL = re.compile(r"\btools(?:\[|\.)\d+\]?\.(?:function|custom|input_schema)")
"""The place of one declaration, which says nothing about tools at large."""


def named_trait(protocol: str, message: str, code: str, param: str, sent: Json) -> str | None:
    """The trait whose part of the body `sent` is refused, if one is. `param`: the field that the error points to."""
    denied = code in items(_data("denial.codes")) or denies(message)
    parts = {name: mapping(part) for name, part in mapping(_data(f"{protocol}.parts")).items()}
    fields = {name: [text(field) for field in items(part["fields"])] for name, part in parts.items()}
    carried = [name for name in parts if any(_has(sent, field) for field in fields[name])]
    root = re.split(r"[.\[]", param, maxsplit=1)[0]
    if root:
        named = [
            name
            for name in carried
            if any(root == field or param.startswith(field) or field.startswith(f"{param}.") for field in fields[name])
        ]
        # an error inside the tools is about one declaration, not about tools
        if named and (parts[named[0]].get("is_whole") or (denied and (param == root or root != "tools"))):
            return named[0]
        known = {field.partition(".")[0] for some in fields.values() for field in some}
        if root in sent or root in known or root == "messages":  # also one that was not sent, and should have been
            return None
    if not denied or _ONE_TOOL.search(message):
        return None
    keys = {name: f"{protocol}.parts.{name}.names" if "names" in parts[name] else f"names.{name}" for name in carried}
    hits = [(hit.start(), name) for name in carried if (hit := finds(keys[name], message))]
    return min(hits, key=lambda hit: hit[0])[1] if hits else None


def _has(sent: Json, field: str) -> bool:
    name, dot, rest = field.partition(".")
    return name in sent and (not dot or _has(mapping(sent[name]), rest))


@cache
def _data(key: str = "") -> object:
    if not key:
        return table("refusals")
    outer, _, name = key.rpartition(".")
    return mapping(_data(outer))[name]


@cache
def _pattern(key: str) -> re.Pattern[str]:
    return re.compile("|".join(map(text, items(_data(key)))), re.IGNORECASE | re.DOTALL)
