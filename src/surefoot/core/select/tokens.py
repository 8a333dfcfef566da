"""The words of tools and of tasks as the index has them: stems without stop words, and pairs of Chinese characters.

A text is split at case changes, digits and punctuation. Chinese, Japanese and Korean have no blanks, so a run of theirs
is its overlapping pairs. In a task a URL, a path and a file name stand for the words of their kind, and words of
politeness and connection do not count. Source: spec/planning.md, section 15.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from surefoot.core.select.stemming import stem

MOST_CLAUSES = 12
_FEWEST_WORDS = 2
"""Content words that make a clause; one with fewer belongs to the clause before it."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
_FIRST_CJK = "\u3040"
_WORD = re.compile(rf"[{_CJK}]+|[^\W\d_{_CJK}]+")
_WORD_OF_ASCII = re.compile("[A-Za-z]+")
_PARTS = re.compile(r"[A-Z]{2,}s(?![A-Za-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^A-Za-z]+")  # CNNs, JSONFile, getFile
_COMPOUND = re.compile(r"[A-Z][a-z]+[A-Z][a-z]+")
"""A name of two parts that is also written as one word: GitHub, PowerPoint."""

STOP_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
    a about across after all along also although always am among an and another any anything are around as at away back
    based be became because become been before being between both but by cannot could did do does doing done down
    during each either else etc ever every everything few for from further given had has have having he her here hers
    him his how however i if in instead integer into is it its itself just let like ll many may maybe me might more most
    much must my myself neither no none nor not nothing now of off often on once one only optional or other our out over
    own per perhaps please provided quite rather re really required same shall she should since so some something
    somewhere specific specified still string such than that the their them then there these they thing things this
    those though through thus to together too tool toward towards under until up upon us user users ve very via was we
    were what when where whether which while who whom whose why will with within without would yes yet you your boolean
    default able""",
    )
)
"""Words that say nothing of what a tool does, as they are written."""
_POLITE = frozenset(
    re.findall(
        r"\S+",
        """
    afterward afterwards additionally appreciate assist assistance can could curious dear finally first firstly
    furthermore get give go going good got great hello help hey hi interested kindly know lastly later like look looking
    make moreover need needed needs new next provide recently currently right second secondly show sure tell thank
    thanks think third try trying want wanted wants wondering im name named names number numbers""",
    )
)
"""Words of politeness and connection, which do not count in a task, as they are written."""

_KINDS = {
    "pdf": "pdf document",
    "doc docx odt": "word document",
    "xls xlsx ods": "excel spreadsheet",
    "csv tsv": "csv data",
    "ppt pptx odp": "powerpoint presentation ppt",
    "png jpg jpeg gif bmp webp svg tiff": "image",
    "mp4 avi mov mkv webm": "video",
    "mp3 wav flac ogg m4a": "audio",
    "md markdown txt log rst": "text",
    "py js ts java c cpp go rs rb sh ipynb": "code text",
    "html htm": "html text",
    "zip tar gz rar 7z": "archive",
    "json yaml yml xml toml": "data text",
    "db sqlite sql": "database",
}
_KIND = {ending: kind for endings, kind in _KINDS.items() for ending in endings.split()}
_URL = re.compile(r"(?:https?://|www\.)[^\s'\"<>)\]]+", re.IGNORECASE)
_PATH = re.compile(
    r"(?<![\w/\\])(?:[A-Za-z]:|~|\.{1,2})?[/\\](?:[\w.-]+[/\\])*[\w-]*(?:\.\w+)*"
    rf"|(?<![\w-])[\w-]+\.(?:{'|'.join(_KIND)})\b",
    re.IGNORECASE,
)
_TO_BE_WRITTEN = re.compile(r"\b(?:sav(?:e|ed|ing)|stor(?:e|ed|ing)|export|output|draft)\b[^.!?;\n]*$", re.IGNORECASE)
_CHARS_BEFORE = 80
"""How far before a path the word stands that says what is to be done with the file."""
_CLAUSE_ENDS = re.compile(
    r"(?<![.!?;:])[.!?;:]+(?=\s|$)|[。！？；，、]|\n|\b(?:and )?(?:then|also)\b|\bafter that\b|\bfinally\b"
    r"|\bas well as\b|\balong with\b|然后|接着|另外|并且|同时|最后",
    re.IGNORECASE,
)


def words(text: str) -> list[str]:
    """The words of a tool's text, in order, as often as they stand there."""
    return read(text)[0]


def read(text: str) -> tuple[list[str], int]:
    """The words of a tool's text, in order, as often as they stand there, and how long that makes the text.

    A name of two parts is there as its parts and as one word, which does not add to the length.
    """
    found: list[str] = []
    length = 0
    for run in _runs(text):
        parts, counted = _words_of(run)
        found += parts
        length += counted
    return found, length


def content_words(text: str) -> tuple[str, ...]:
    """The words of a task that say what is wanted, each once, in order. The text is as `plain` gives it."""
    return tuple(dict.fromkeys(word for run in _runs(text) for word in _asked_of(run)))


def plain(text: str) -> str:
    """A task in which URLs, paths and file names are replaced by the words of their kind."""
    return _PATH.sub(_kind_of_path, _URL.sub(" url web page ", text))


def clauses(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """The clauses of a text as `plain` gives it, each with its content words: at most `MOST_CLAUSES`.

    One with fewer than two content words belongs to the clause before it.
    """
    found: list[tuple[str, tuple[str, ...]]] = []
    for piece in _pieces(text):
        asked = content_words(piece)
        if len(asked) < _FEWEST_WORDS and found:
            before, known = found[-1]
            found[-1] = (f"{before} {piece}", tuple(dict.fromkeys((*known, *asked))))
        elif asked and len(found) < MOST_CLAUSES:
            found.append((piece, asked))
    return found


def _runs(text: str) -> list[str]:
    return (_WORD_OF_ASCII if text.isascii() else _WORD).findall(text)


def _pieces(text: str) -> Iterator[str]:
    return (piece.strip() for piece in _CLAUSE_ENDS.split(text) if piece and not piece.isspace())


def _kind_of_path(found: re.Match[str]) -> str:
    path = found[0]
    ending = path.rpartition(".")[2].lower()
    if ending in _KIND and "." in path:
        before = found.string[max(0, found.start() - _CHARS_BEFORE) : found.start()]
        return f" {'write ' if _TO_BE_WRITTEN.search(before) else ''}file {_KIND[ending]} "
    return " directory " if len(path) > 1 else path


@lru_cache(50_000)
def _words_of(run: str) -> tuple[tuple[str, ...], int]:
    """The words of a run of letters, and how many of them add to the length of a text."""
    parts = _stems(run, STOP_WORDS)
    return (parts + _as_one(run), len(parts))


@lru_cache(10_000)
def _asked_of(run: str) -> tuple[str, ...]:
    return _stems(run, _LEFT_OUT) + _as_one(run)


def _stems(run: str, left_out: frozenset[str]) -> tuple[str, ...]:
    if run[0] >= _FIRST_CJK and _CJK_RUN.match(run):
        return tuple(run[at : at + 2] for at in range(len(run) - 1)) or (run,)
    parts = (run,) if run[1:].islower() else _PARTS.findall(run)
    return tuple(stem(part) for part in map(str.lower, parts) if part not in left_out and len(part) > 1)


def _as_one(run: str) -> tuple[str, ...]:
    return (run.lower(),) if _COMPOUND.fullmatch(run) else ()


_CJK_RUN = re.compile(f"[{_CJK}]")
_LEFT_OUT = STOP_WORDS | _POLITE
