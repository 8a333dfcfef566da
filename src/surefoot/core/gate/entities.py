"""What a user's words name: addresses, quoted spans, files, labelled ids and capitalised words.

Source: spec/guard.md, section 4.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from surefoot.core.gate import lexicon
from surefoot.core.gate.forms import normal_text
from surefoot.core.gate.late import Late
from surefoot.core.gate.stems import stems
from surefoot.core.gate.values import hard_tokens
from surefoot.types.dataclass import dataclass
from surefoot.types.guard import Entity, EntityKind

LEAST_NAME = 3
MOST_NAME_WORDS = 8
LONGEST_QUOTE = 80
MASK = "\ufffc"
"""Stands for each character of what was masked: no letter, no space, no mark of a sentence."""

_QUOTES = tuple(
    Late(pattern)
    for pattern in (
        rf"(?<![A-Za-z0-9])\"(?=\S)([^\"]{{2,{LONGEST_QUOTE}}})(?<=\S)\"(?![A-Za-z0-9])",
        rf"(?<![A-Za-z0-9])'(?=\S)((?:[^'\n]|(?<=[A-Za-z])'(?=[A-Za-z])){{2,{LONGEST_QUOTE}}})(?<=\S)'(?![A-Za-z0-9])",
        rf"`([^`\n]{{2,{LONGEST_QUOTE}}})`",
        *(rf"{a}([^{a}{b}]{{2,{LONGEST_QUOTE}}}){b}" for a, b in ("“”", "‘’", "「」", "『』", "《》", "«»", "【】")),
    )
)
_PATH = Late(r"[\w~./\\-]+")
_FILE = Late(rf"(.*[^./\\]\.(?:{'|'.join(lexicon.FILE_TYPES.split())}))(?![A-Za-z0-9])", re.IGNORECASE)
_ID_VALUE = r"[\"'“「#]{0,2}([A-Za-z]{0,6}[-_]?\d[A-Za-z0-9_-]{0,40})"
_ID = Late(
    rf"(?:(?<![A-Za-z0-9])(?:ids?|no\.|nr\.?|num\.?|numbers?)|编号|号码|序号)\s{{0,3}}(?:(?:is|of|=|:|为|是)\s{{0,3}})?{_ID_VALUE}",
    re.IGNORECASE | re.ASCII,
)
_NUMBER_SIGN = Late(r"(?<![\w&#])#(\d[A-Za-z0-9_-]{0,40})", re.ASCII)
_MORE_IDS = Late(rf"[\"'”」]?\s{{0,3}}(?:,|、|\band\b|\bor\b|和)\s{{0,3}}{_ID_VALUE}", re.ASCII)
_LETTERS = "A-Za-z\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff"
_WORD = Late(rf"[{_LETTERS}][{_LETTERS}\d_'’&-]*")
_TAILS = "'’&-_"
_LINKS = frozenset(lexicon.NAME_LINKS.split())
_HEADS = frozenset(".!?:;\n。！？；：\"'“‘「『《«【`(（*•-–—>")
_CHINESE_VERBS = Late(
    f"(?:{'|'.join('|'.join(w.split()) for w in lexicon.CHINESE_ACTIONS.values())}|把|将|在|从|给|请|文件)+"
)
_COMMON = stems(" ".join((lexicon.OPENERS, lexicon.LIGHT_VERBS, lexicon.MONEY_NOUNS, *lexicon.ACTION_WORDS.values())))


@dataclass(frozen=True, slots=True)
class Named:
    """A thing that the words name, and where in them it stands."""

    entity: Entity
    start: int
    end: int


def named(text: str) -> tuple[Named, ...]:
    """What a text names, in the order in which it stands there; a quoted span may hold others."""
    hard = [_named(t.text, "key" if t.kind == "encoded" else t.kind, t.start, t.end, t.norm) for t in hard_tokens(text)]
    found = [*hard, *_files(masked(text, hard))]
    rest = masked(text, found)
    labelled = list(_labelled(rest))
    found += [*labelled, *_names(masked(rest, labelled)), *quoted(text)]
    return tuple(sorted(found, key=lambda one: (one.start, -one.end)))


def masked(text: str, spans: Iterable[Named | tuple[int, int]], sign: str = MASK) -> str:
    """The text with the spans overwritten; every other character keeps its place."""
    pieces: list[str] = []
    at = 0
    for start, end in sorted((s.start, s.end) if isinstance(s, Named) else s for s in spans):
        if end > at:
            begin = max(start, at)
            pieces += (text[at:begin], sign * (end - begin))
            at = end
    return "".join((*pieces, text[at:]))


def quoted(text: str) -> Iterator[Named]:
    """The spans in quotes, of 2 to 80 characters."""
    for pattern in _QUOTES:
        for m in pattern.finditer(text):
            yield _named(m[1], "quoted", m.start(1), m.end(1))


def _named(text: str, kind: str, start: int, end: int, norm: str = "") -> Named:
    known: EntityKind = kind if kind in _KINDS else "key"  # a hard token is of no other kind
    return Named(Entity(text, known, norm or normal_text(text)), start, end)


_KINDS: tuple[EntityKind, ...] = ("email", "url", "account", "phone", "key", "id", "quoted", "file", "name")


def _files(text: str) -> Iterator[Named]:
    for run in _PATH.finditer(text):
        m = _FILE.match(run[0])
        if m is None:
            continue
        start = run.start()
        yield _named(m[1], "file", start, start + len(m[1]))
        glued = _CHINESE_VERBS.match(m[1])  # no space says where a Chinese verb ends and the name begins
        if glued is not None and glued.end() < len(m[1]):
            yield _named(m[1][glued.end() :], "file", start + glued.end(), start + len(m[1]))


def _labelled(text: str) -> Iterator[Named]:
    for pattern in (_ID, _NUMBER_SIGN):
        for m in pattern.finditer(text):
            more: re.Match[str] | None = m
            while more is not None:
                yield _named(more[1], "id", more.start(1), more.end(1))
                more = _MORE_IDS.match(text, more.end())


def _names(text: str) -> Iterator[Named]:
    """Runs of capitalised words, without those at their head that are capitalised only for where they stand."""
    run: list[re.Match[str]] = []
    for m in _WORD.finditer(text):
        follows = bool(run) and text[run[-1].end() : m.start()].strip(" \t") == "" and len(run) < MOST_NAME_WORDS
        if not follows or _is_possessive(run[-1][0]):
            yield from _name(text, run)
            run = []
        if m[0][0].isupper() or (run and m[0] in _LINKS):
            run.append(m)
        else:
            yield from _name(text, run)
            run = []
    yield from _name(text, run)


def _is_possessive(word: str) -> bool:
    return word.rstrip(_TAILS).endswith(("'s", "’s"))


def _name(text: str, run: list[re.Match[str]]) -> Iterator[Named]:
    while run and run[-1][0] in _LINKS:
        run = run[:-1]
    if run and (_is_head(text, run[0].start()) or all(_is_common(m) for m in run)):
        while run and _is_common(run[0]):
            run = run[1:]
    if run:
        start = run[0].start()
        name = text[start : run[-1].end()].rstrip(_TAILS).removesuffix("'s").removesuffix("’s").rstrip(_TAILS)
        is_short = len(name) == LEAST_NAME - 1 and name[1].islower() and not _is_head(text, start)  # "Bo", not "AI"
        if len(name) >= LEAST_NAME or is_short:
            yield _named(name, "name", start, start + len(name))


def _is_common(word: re.Match[str]) -> bool:
    return not stems([word[0], *word[0].lower().replace("’", "'").split("'")[:1]]).isdisjoint(_COMMON)


def _is_head(text: str, start: int) -> bool:
    """Whether a word stands where any word has a capital."""
    while start > 0 and text[start - 1] in " \t":
        start -= 1
    return start == 0 or text[start - 1] in _HEADS
