"""The URLs in a text, and what may be shown of these. Linear in the text. Source: spec/primitives.md, 3.2."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

MOST_SPANS = 5_000
"""Stretches of one type that are read in one text; nobody means more, and each costs time."""

CJK_PUNCTUATION = (
    "\u2014\u2018-\u201f\u2026\u3000-\u3004\u3008-\u3020\u3030\u303d\u30fb\ufe10-\ufe1f\ufe30-\ufe4f"
    "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
"""What ends a url: full-width and CJK punctuation, with the quotes, dashes and dots of Chinese text."""

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
_SECRET_NAMES = re.compile("token|key|sig|passw(or)?d|pwd|secret|oauth|authoriz|credential|session")
"""Parts of names whose values are not shown; more than the spec names."""
_PART = re.compile(r"([?&;#])")
_HIDDEN = "***"


class Span(NamedTuple):
    """The text from `start` up to `end` is a reference; `value` is what it refers to. Two of one `key` are the same.

    `rank` settles who comes first at one place and equal length: a custom pattern by its place in the list, then the
    built-in ones. A named tuple, since hostile text makes tens of thousands of them.
    """

    start: int
    end: int
    type: str
    value: str
    key: object
    rank: int = 1 << 16
    lines: tuple[int, int] | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Spans of one type in order; `cut`: there were more than are read."""

    spans: Sequence[Span] = ()
    cut: bool = False


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
        end = at  # less the punctuation of the sentence around it
        opened, closed = text.count("(", start, end), text.count(")", start, end)
        while end > start and (text[end - 1] in _TRAILING or (text[end - 1] == ")" and closed > opened)):
            end -= 1
            closed -= text[end] == ")"
        if end < beginning.end():  # nothing of the host is left
            continue
        value = text[start:end]
        spans.append(Span(start, end, URL, value, url_key(value)))
    return Found(spans)


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
    for at, part in enumerate(parts):
        name, equals, _ = part.partition("=")
        if equals and _SECRET_NAMES.search(unquote(name).casefold()):
            parts[at] = f"{name}={_HIDDEN}"
    return first + "".join(parts)
