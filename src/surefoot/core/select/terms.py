"""The words of tools and of tasks as the index has them: stems without stop words, and pairs of Chinese characters.

A text is split at case changes, digits and punctuation. Chinese, Japanese and Korean have no blanks, so a run of theirs
is its overlapping pairs. In a task a URL, a path and a file name stand for the words of their kind, and words of
politeness and connection do not count. Source: spec/planning.md, section 15.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from surefoot.core.text.data import table

MOST_CLAUSES = 12
_FEWEST_WORDS = 2
"""Content words that make a clause; one with fewer belongs to the clause before it."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
_CJK_RUN = re.compile(f"[{_CJK}]")
_WORD = re.compile(rf"[{_CJK}]+|[^\W\d_{_CJK}]+")
_WORD_OF_ASCII = re.compile("[A-Za-z]+")
_PARTS = re.compile(r"[A-Z]{2,}s(?![A-Za-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^A-Za-z]+")  # CNNs, JSONFile, getFile
_COMPOUND = re.compile(r"[A-Z][a-z]+[A-Z][a-z]+")
"""A name of two parts that is also written as one word: GitHub, PowerPoint."""

_URL = re.compile(r"(?:https?://|www\.)[^\s'\"<>)\]]+", re.IGNORECASE)
_TO_BE_WRITTEN = re.compile(r"\b(?:sav(?:e|ed|ing)|stor(?:e|ed|ing)|export|output|draft)\b[^.!?;\n]*$", re.IGNORECASE)
_CHARS_BEFORE = 80
"""How far before a path the word stands that says what is to be done with the file."""
_CLAUSE_ENDS = re.compile(
    r"(?<![.!?;:])[.!?;:]+(?=\s|$)|[。！？；，、]|\n|\b(?:and )?(?:then|also)\b|\bafter that\b|\bfinally\b"
    r"|\bas well as\b|\balong with\b|然后|接着|另外|并且|同时|最后",
    re.IGNORECASE,
)

_SHORTEST = 4
"""Letters below which a word has no endings."""
_KEPT = frozenset({"always", "lens", "news", "series", "species"})
"""Words that without an ending would meet another of quite another meaning."""
_ENDINGS = {
    "t": (("ement", 3), ("ment", 3)),
    "n": (("ion", 3),),
    "g": (("ing", 3),),
    "d": (("ed", 3),),
    "y": (("edly", 3), ("ly", 3)),
    "r": (("er", 4), ("or", 4)),
}
"""By their last letter: an ending, and the letters that must be left. The first that fits is taken off."""
_LONG = 7
"""Letters from which a final `at` is an ending: calculat(e, ion, or) and calcul, but not creat(e)."""


class _StopWords(NamedTuple):
    """Words that do not count, in the text of a tool and in a task, and what the names of files stand for."""

    everywhere: frozenset[str]
    in_tasks: frozenset[str]
    kinds: Mapping[str, str]
    path: re.Pattern[str]


def words(text: str) -> list[str]:
    """The words of a tool's text, in order, as often as they stand there."""
    return read(text)[0]


def read(text: str) -> tuple[list[str], int]:
    """The words of a tool's text, in order, as often as they stand there, and how long that makes the text.

    A name of two parts is there as its parts and as one word, which does not add to the length.
    """
    found: list[str] = []
    length = 0
    for run in (_WORD_OF_ASCII if text.isascii() else _WORD).findall(text):
        parts, counted = _words_of(run)
        found += parts
        length += counted
    return found, length


def content_words(text: str) -> tuple[str, ...]:
    """The words of a task that say what is wanted, each once, in order. The text is as `plain` gives it."""
    runs = (_WORD_OF_ASCII if text.isascii() else _WORD).findall(text)
    return tuple(dict.fromkeys(word for run in runs for word in _asked_of(run)))


def plain(text: str) -> str:
    """A task in which URLs, paths and file names are replaced by the words of their kind."""
    stop_words = _stop_words()

    def kind_of(found: re.Match[str]) -> str:
        path = found[0]
        kind = stop_words.kinds.get(path.rpartition(".")[2].lower()) if "." in path else None
        if kind is None:
            return " directory " if len(path) > 1 else path
        before = found.string[max(0, found.start() - _CHARS_BEFORE) : found.start()]
        return f" {'write ' if _TO_BE_WRITTEN.search(before) else ''}file {kind} "

    return stop_words.path.sub(kind_of, _URL.sub(" url web page ", text))


def clauses(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """The clauses of a text as `plain` gives it, each with its content words: at most `MOST_CLAUSES`.

    One with fewer than two content words belongs to the clause before it.
    """
    found: list[tuple[str, tuple[str, ...]]] = []
    for piece in (piece.strip() for piece in _CLAUSE_ENDS.split(text) if piece and not piece.isspace()):
        asked = content_words(piece)
        if len(asked) < _FEWEST_WORDS and found:
            before, known = found[-1]
            found[-1] = (f"{before} {piece}", tuple(dict.fromkeys((*known, *asked))))
        elif asked and len(found) < MOST_CLAUSES:
            found.append((piece, asked))
    return found


def stem(word: str) -> str:
    """What the plural, the verb forms and the nouns of an English word in lower case have in common.

    Lighter than Porter's: one ending of the noun or verb is taken off, and as good for finding tools. The word itself
    where it is short, or not in Latin letters.
    """
    if len(word) < _SHORTEST or word in _KEPT:
        return word
    if word.endswith("ies") and len(word) > _SHORTEST:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "xes", "ches", "shes", "zes")):
        word = word[:-2]
    elif word[-1] == "s" and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending, left in _ENDINGS.get(word[-1], ()):
        if word.endswith(ending) and len(word) - len(ending) >= left:
            word = word[: -len(ending)]
            if len(word) >= _SHORTEST and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    if len(word) >= _SHORTEST and word[-1] == "e":
        word = word[:-1]
    if len(word) >= _LONG and word.endswith("at"):
        return word[:-2]
    return word[:-1] + "i" if len(word) >= _SHORTEST and word[-1] == "y" else word


@cache
def synonyms() -> Mapping[str, tuple[str, ...]]:
    """Stem -> the stems, or pairs of Chinese characters, that may stand for it."""
    found: dict[str, dict[str, None]] = {}
    for group in map(words, table("synonyms")["english"]):
        for word in group:
            found.setdefault(word, {}).update(dict.fromkeys(other for other in group if other != word))
    for group in map(words, table("synonyms")["chinese"]):
        chinese = [word for word in group if not word.isascii()]
        english = [word for word in group if word.isascii()]
        for word, others in (*((word, english) for word in chinese), *((word, chinese) for word in english)):
            found.setdefault(word, {}).update(dict.fromkeys(others))
    return {word: tuple(others) for word, others in found.items()}


@cache
def _stop_words() -> _StopWords:
    held = table("stop_words")
    everywhere = frozenset(held["everywhere"].split())
    kinds = {ending: kind for kind, endings in held["kinds"].items() for ending in endings.split()}
    path = re.compile(
        r"(?<![\w/\\])(?:[A-Za-z]:|~|\.{1,2})?[/\\](?:[\w.-]+[/\\])*[\w-]*(?:\.\w+)*"
        rf"|(?<![\w-])[\w-]+\.(?:{'|'.join(kinds)})\b",
        re.IGNORECASE,
    )
    return _StopWords(everywhere, everywhere.union(held["in_tasks"].split()), kinds, path)


@lru_cache(50_000)
def _words_of(run: str) -> tuple[tuple[str, ...], int]:
    """The words of a run of letters, and how many of them add to the length of a text."""
    parts = _stems(run, _stop_words().everywhere)
    return parts + _as_one(run), len(parts)


@lru_cache(10_000)
def _asked_of(run: str) -> tuple[str, ...]:
    return _stems(run, _stop_words().in_tasks) + _as_one(run)


def _stems(run: str, left_out: frozenset[str]) -> tuple[str, ...]:
    if _CJK_RUN.match(run):
        return tuple(run[at : at + 2] for at in range(len(run) - 1)) or (run,)
    parts = (run,) if run[1:].islower() else _PARTS.findall(run)
    return tuple(stem(part) for part in map(str.lower, parts) if part not in left_out and len(part) > 1)


def _as_one(run: str) -> tuple[str, ...]:
    return (run.lower(),) if _COMPOUND.fullmatch(run) else ()
