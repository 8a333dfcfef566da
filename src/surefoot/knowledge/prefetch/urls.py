"""Which stretches of a text are urls. Source: spec/primitives.md, 3.2; linear in the text."""

from __future__ import annotations

import re
from urllib.parse import unquote

from surefoot.knowledge.prefetch.spans import CJK_PUNCTUATION, MOST_SPANS, Found, Span

URL = "url"

_END = rf"\s\x00-\x1f\x7f-\x9f<>\"{{}}|\\^`{CJK_PUNCTUATION}"
_HOST = r"(?:\w|\[[0-9A-Fa-f:.%]{2,64}+\])"
_USER = rf"[^{_END}/?#@\[\]]*+"
_BEGINNING = re.compile(
    r"[hH][tT][tT][pP](?:://(?<![A-Za-z0-9+.\-][hH][tT][tT][pP]://)"
    r"|[sS]://(?<![A-Za-z0-9+.\-][hH][tT][tT][pP][sS]://))"
    rf"(?:{_USER}(?:@{_USER})*+(?<=@))?+{_HOST}"
)
_NEXT = r"[,;](?![hH][tT][tT][pP][sS]?://)"
_REST = re.compile(rf"(?:[^{_END}\],;]++|{_NEXT})*+")
_REST_IN_QUOTES = re.compile(rf"(?:[^{_END}\],;']++|{_NEXT})*+")
_TRAILING = frozenset(".,;:!?'\"*_~")
_SECRET_NAMES = (
    "token",
    "key",
    "sig",
    "password",
    "passwd",
    "pwd",
    "secret",
    "oauth",
    "authoriz",
    "credential",
    "session",
)
"""Parts of names whose values are not shown; more than the spec names."""
_PART = re.compile(r"([?&;#])")
_HIDDEN = "***"


def urls(text: str) -> Found:
    """The urls of a text, in order; they do not overlap."""
    spans: list[Span] = []
    at = 0
    while (beginning := _BEGINNING.search(text, at)) is not None:
        if len(spans) == MOST_SPANS:
            return Found(spans, cut=True)
        start = beginning.start()
        rest = (_REST_IN_QUOTES if text[start - 1 : start] == "'" else _REST).match(text, beginning.end())
        at = beginning.end() if rest is None else rest.end()
        end = _trimmed(text, start, at)
        if end < beginning.end():  # nothing of the host is left
            continue
        value = text[start:end]
        spans.append(Span(start, end, URL, value, url_key(value)))
    return Found(spans)


def _trimmed(text: str, start: int, end: int) -> int:
    """The end of a url without the punctuation of the sentence around it."""
    opened, closed = text.count("(", start, end), text.count(")", start, end)
    while end > start:
        sign = text[end - 1]
        if sign == ")" and closed > opened:
            closed -= 1
        elif sign not in _TRAILING:
            break
        end -= 1
    return end


def url_key(value: str) -> str:
    """One spelling for one page: scheme and host in lower case, no usual port, a path, no fragment."""
    scheme, _, rest = value.partition("://")
    rest = rest.partition("#")[0]
    cut = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
    authority, tail = rest[:cut], rest[cut:]
    user, at, host = authority.rpartition("@")
    host = host.lower()
    usual = ":443" if scheme.lower() == "https" else ":80"
    return f"{scheme.lower()}://{user}{at}{host.removesuffix(usual)}{tail if tail.startswith('/') else '/' + tail}"


def has_user_info(value: str) -> bool:
    """Whether a url holds a user name or a password."""
    return "@" in re.split(r"[/?#\\]", value.partition("://")[2], maxsplit=1)[0]


def redacted(text: str) -> str:
    """A text in which each url is as it may be shown."""
    parts: list[str] = []
    at, found = 0, urls(text)
    for span in found.spans:
        parts += (text[at : span.start], without_secrets(span.value))
        at = span.end
    return "".join((*parts, redacted(text[at:]) if found.cut else text[at:]))


def without_secrets(value: str) -> str:
    """A value as it may be shown and kept: user information and the values of telling names are left out.

    Works on any text that holds a url at its beginning; other text comes back unchanged but for `name=value` parts.
    """
    scheme, mark, rest = value.partition("://")
    if mark:
        authority = re.split(r"[/?#\\]", rest, maxsplit=1)[0]
        user, at, _ = authority.rpartition("@")
        value = f"{scheme}{mark}{_HIDDEN if at else ''}{rest[len(user) :]}"
    first, *parts = _PART.split(value)
    return first + "".join(part if at % 2 == 0 else _hidden(part) for at, part in enumerate(parts))


def _hidden(part: str) -> str:
    name, equals, _ = part.partition("=")
    told = unquote(name).casefold()
    return f"{name}={_HIDDEN}" if equals and any(word in told for word in _SECRET_NAMES) else part
