"""Stretches of a text that are references, those that are URLs or paths of files, and what may be shown of these.

Linear in the text. A path ends where the longest run of its characters ends, and it is one only if
that run ends in an extension. The characters before which a path may begin are not characters of a path, so no path
begins inside the run of another. Source: spec/primitives.md, 3.2.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple
from urllib.parse import unquote

from surefoot.types.prehydration import PathStyle

MOST_SPANS = 5_000
"""Stretches of one type that are read in one text; nobody means more, and each costs time."""

LONGEST_REFERENCE = 2_048
"""Characters of a value that is resolved."""

CJK = (
    "\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe10-\ufe1f\ufe30-\ufe4f\uff00-\uffef"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Ideographs, kana, hangul, and the punctuation and full-width forms used with them; for a character class."""
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


@dataclass(frozen=True, slots=True)
class Code:
    """A stretch of code with its marks; `inner` to `inner_end` is what stands between them. A block has no inner."""

    start: int
    end: int
    inner: int = 0
    inner_end: int = 0


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
    for at, part in enumerate(parts):
        name, equals, _ = part.partition("=")
        if equals and _SECRET_NAMES.search(unquote(name).casefold()):
            parts[at] = f"{name}={_HIDDEN}"
    return first + "".join(parts)


FILE = "file"

MOST_QUESTIONS = 50
"""Paths that are asked about in one text, whether they exist."""
MOST_QUOTED = 20_000
"""Texts in quotes that are looked at."""

_BEFORE = rf"\s\"'`(\[{{<,;:=\u2018\u201c\u00ab\u201e\u2039{CJK}"
_MARKS = "\u0300-\u036f"  # accents that stand as characters of their own
_PIECE = rf"(?:[A-Za-z0-9_/+@%\-]++|[^\W\x00-\x7f{CJK}]++|[{_MARKS}]++)"
_ANY = rf"[A-Za-z0-9_/+@%\-{_MARKS}]|[^\W\x00-\x7f{CJK}]"
_LAST = rf"[A-Za-z0-9]{{1,16}}+\.*+(?!{_ANY})"
_BODY = rf"{_PIECE}*+(?:\.++(?!{_LAST}){_PIECE}++)*+\.++(?={_LAST})[A-Za-z0-9]{{1,16}}+"
_LINES = (
    r"(?:(?::(?P<line>[0-9]{1,7}+)(?::(?P<column>[0-9]{1,7}+))?"
    r"|\#L(?P<first>[0-9]{1,7}+)(?:-L?(?P<last>[0-9]{1,7}+))?)(?![A-Za-z0-9_]))"
)
_HOME = r"(?:[A-Za-z_][A-Za-z0-9_.\-]{0,63}+)?/"
_LETTER = rf"[0-9_./+@%\-]*+[^\W\d_{CJK}]"
_PATH = re.compile(
    rf"[./~](?<![^{_BEFORE}][./~])"
    rf"(?:(?<=\.)\.?/|(?<=\.)(?=[^\W\d_{CJK}])|(?<=~){_HOME}|(?<=/)(?!/)(?={_LETTER}))"
    rf"{_BODY}(?P<lines>{_LINES})?"
)
_WINDOWS_BODY = _BODY.replace("_/+", r"_/\\+")
_WINDOWS = re.compile(
    rf"[A-Za-z.\\](?<![^{_BEFORE}][A-Za-z.\\])(?:(?<=[A-Za-z]):[\\/]|(?<=\.)\.?\\|(?<=\\)\\)"
    rf"{_WINDOWS_BODY}(?P<lines>{_LINES})?"
)
_BARE = re.compile(rf"(?<![^{_BEFORE}])(?:{_PIECE.replace('_/+', '_+')})*+[./](?:{_PIECE}|\.)*+")
_QUOTED_SIGN = rf"[\w /+@%.\-\\{_MARKS}\u3001-\u3007\u3010-\u301f\uff00-\uffef]"
_QUOTES = tuple(
    re.compile(
        rf"{opening}(?=[./~A-Za-z\\])"
        rf"(?P<inner>[^{opening}{closing}\n {CJK}]*+[ {CJK}][^{opening}{closing}\n]*+)(?<=[A-Za-z0-9]){closing}"
    )
    for opening, closing in ('""', "''", "\u201c\u201d", "\u2018\u2019", "\u00ab\u00bb", "\u300c\u300d", "\u300e\u300f")
)
"""Quotes around a space or CJK, and at their end an extension or a line; what holds neither is found without them."""
_WHOLE = re.compile(
    r"(?:\.\.?/|\.(?=[^\W\d_])|~(?:[A-Za-z_][A-Za-z0-9_.\-]{0,63}+)?/|/(?!/)(?=[^\n]*[^\W\d_]))"
    rf"(?:{_QUOTED_SIGN})*?\.[A-Za-z0-9]{{1,16}}(?P<lines>{_LINES})?"
)
_WHOLE_WINDOWS = re.compile(
    rf"(?:[A-Za-z]:[\\/]|\.\.?\\|\\\\)(?:{_QUOTED_SIGN})*?\.[A-Za-z0-9]{{1,16}}(?P<lines>{_LINES})?"
)
_SEVERAL = re.compile(r"\s(?:\.{0,2}/|~|\.{0,2}\\|[A-Za-z]:)")
"""A path begins inside: then the quotes hold more than one path, or a sentence."""
_STRETCH = re.compile(r"(?<![\w./+@%\-])[\w./+@%\-]*+\Z")
_LONGEST_NAME = 255


def files(text: str, style: PathStyle, code: Sequence[Code]) -> Found:
    """The paths of a text: plain ones, and those with spaces or CJK that fill quotes or a code span."""
    spans: list[Span] = []
    for pattern in (_PATH, _WINDOWS) if style == "windows" else (_PATH,):
        for match in pattern.finditer(text):
            if len(spans) == MOST_SPANS:
                return Found(spans, cut=True)
            if not _goes_on_from_cjk(text, match.start(), spans[-1].end if spans else 0):
                spans.append(_span(match, match.start(), style))
    parts = [part for part in code if 0 < part.inner_end - part.inner <= LONGEST_REFERENCE]
    inners = ((part.inner, text[part.inner : part.inner_end]) for part in parts)
    in_code = ((start + len(inner) - len(inner.lstrip(" ")), inner.strip(" ")) for start, inner in inners)
    in_quotes = ((match.start("inner"), match["inner"]) for one in _QUOTES for match in one.finditer(text))
    for number, (start, inner) in enumerate(chain(in_quotes, in_code)):
        if len(spans) == MOST_SPANS or number == MOST_QUOTED:
            return Found(spans, cut=True)
        if _SEVERAL.search(inner) or (style == "posix" and "\\" in inner):
            continue
        whole = _WHOLE.fullmatch(inner) or (_WHOLE_WINDOWS.fullmatch(inner) if style == "windows" else None)
        if whole is not None:
            spans.append(_span(whole, start, style))
    return Found(spans)


def file_key(value: str, style: PathStyle) -> str:
    """One spelling for one path. A path too long to be read has only its own: to clean it may take seconds."""
    if len(value) > LONGEST_REFERENCE:
        return value
    return ntpath.normcase(ntpath.normpath(value)) if style == "windows" else posixpath.normpath(value)


def existing(text: str, style: PathStyle, is_free: Callable[[int, int], bool], exists: Callable[[str], bool]) -> Found:
    """Bare names (`src/x.py`, `README.md`, `./Makefile`) that `exists` knows; it is asked `MOST_QUESTIONS` times.

    `is_free(start, end)` says whether no other reference has claimed that stretch.
    """
    answers: dict[str, bool] = {}
    spans: list[Span] = []
    for number, match in enumerate(_BARE.finditer(text)):
        if number == MOST_SPANS:
            return Found(spans, cut=True)
        value = match.group().rstrip(".")
        end = match.start() + len(value)
        is_name = ("." in value or "/" in value) and not value.endswith("/") and any(map(str.isalpha, value))
        if not is_name or not is_free(match.start(), end):
            continue
        if value not in answers:
            if len(answers) == MOST_QUESTIONS:
                return Found(spans, cut=True)
            answers[value] = exists(value)
        if answers[value]:
            spans.append(Span(match.start(), end, FILE, value, file_key(value, style)))
    return Found(spans)


def _span(match: re.Match[str], start: int, style: PathStyle) -> Span:
    """`start` is where the match begins in the text."""
    suffix = match["lines"] or ""
    value = match.group()[: len(match.group()) - len(suffix)]
    first = match["line"] or match["first"]
    lines = (int(first), int(match["last"] or first)) if first else None
    column = int(match["column"]) if match["column"] else None
    end = start + len(value) + len(suffix)
    return Span(start, end, FILE, value, file_key(value, style), lines=lines, column=column)


def _goes_on_from_cjk(text: str, start: int, after: int) -> bool:
    """Whether a match is the rest of a path with CJK letters in it, which only counts in quotes.

    A dot directly behind a CJK letter goes on from it; a slash does if there is one before it since `after`.
    """
    if start == 0 or not text[start - 1].isalnum():
        return False
    stretch = _STRETCH.search(text[max(after, start - _LONGEST_NAME) : start])
    return (text[start] == "." and text[start + 1] not in "./\\") or (stretch is not None and "/" in stretch.group())
