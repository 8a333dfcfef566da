"""Stretches of a text that are paths of files.

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

from surefoot.core.text.urls import MOST_SPANS, Found, Span
from surefoot.types.prehydration import PathStyle

LONGEST_REFERENCE = 2_048  # characters of a value that is resolved

CJK = (
    "\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe10-\ufe1f\ufe30-\ufe4f\uff00-\uffef"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Ideographs, kana, hangul, and the punctuation and full-width forms used with them; for a character class."""


@dataclass(frozen=True, slots=True)
class Code:
    """A stretch of code with its marks; `inner` to `inner_end` is what stands between them. A block has no inner."""

    start: int
    end: int
    inner: int = 0
    inner_end: int = 0


FILE = "file"

MOST_QUESTIONS = 50  # paths that are asked about in one text, whether they exist
MOST_QUOTED = 20_000  # texts in quotes that are looked at

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
