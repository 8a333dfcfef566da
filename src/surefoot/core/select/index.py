"""The words of tools and of tasks, and an index of tools by them: which hold a word, and how much it says of each.

Words are stems without stop words; a run of Chinese, Japanese or Korean is its overlapping pairs. In a task a URL, a
path and a file name stand for the words of their kind. A word weighs `idf * c / (c + 1 - b + b * L / average)`, with
`c` its weighted count over all texts of the tool and `L` the tool's weighted length; normalising each text by itself is
worse. Counts are whole tenths, so that adding and removing a tool gives exactly what building anew gives. Source:
spec/planning.md, section 15.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import NamedTuple, cast

from surefoot.core.text import at
from surefoot.core.text.urls import CJK_PUNCTUATION
from surefoot.core.text.words import table
from surefoot.types.dataclass import dataclass, field
from surefoot.types.tools import Catalogue, ToolSpec

_LENGTH_COUNTS = 0.9  # `b`: how much of a tool's length counts against it
_SYNONYM = 0.3
_UNIT = 10
_TEXTS = {"name": 15, "description": 10, "parameters": 2, "category": 3, "server": 5, "server_description": 2}
"""What a word of each text counts, in tenths."""

Postings = Mapping[int, float]  # place of a tool in the index -> what a word says of it


@dataclass(frozen=True, slots=True)
class Described:
    """What retrieval knows of a tool. `id` is what it is found as; `parameters` are their names and descriptions."""

    id: str
    name: str
    description: str = ""
    category: str = ""
    server: str = ""
    server_description: str = ""
    parameters: str = ""

    @property
    def texts(self) -> tuple[tuple[int, str], ...]:
        """Each text with the weight of its words in tenths."""
        return tuple((weight, getattr(self, name)) for name, weight in _TEXTS.items())


@dataclass(frozen=True, slots=True)
class Row:
    """A tool in the index: its words with their counts in tenths, and its length in tenths."""

    tool: Described
    counts: Mapping[str, int]
    length: int


@dataclass(frozen=True, slots=True)
class Index:
    """An immutable index. Make it with `index_of` or `index_of_catalogue`.

    `rows` is in catalogue order. `with_tool` and `without` cost O(words of the index), not a reading of all texts.
    """

    rows: Mapping[int, Row]
    counts: Mapping[str, Mapping[int, int]]
    length: int
    named: Mapping[str, tuple[int, ...]]
    _weights: dict[str, Postings] = field(default_factory=dict[str, Postings], init=False, repr=False, compare=False)
    _asked: dict[str, Postings] = field(default_factory=dict[str, Postings], init=False, repr=False, compare=False)

    def with_tool(self, tool: Described) -> Index:
        """The index with one more tool, behind the others; one of the same id gives way."""
        before = self.without(tool.id)
        place = max(before.rows, default=-1) + 1
        row = _row(tool)
        counts = dict(before.counts)
        for word, count in row.counts.items():
            counts[word] = {**counts.get(word, {}), place: count}
        named = dict(before.named)
        for name in {tool.id, tool.name}:
            named[name] = (*named.get(name, ()), place)
        return Index({**before.rows, place: row}, counts, before.length + row.length, named)

    def without(self, tool_id: str) -> Index:
        """The index without that tool; the same index when it holds none of that id."""
        place = self.place(tool_id)
        if place is None:
            return self
        row = self.rows[place]
        counts = dict(self.counts)
        for word in row.counts:
            counts[word] = {at: count for at, count in counts[word].items() if at != place}
            if not counts[word]:
                del counts[word]
        named = dict(self.named)
        for name in {row.tool.id, row.tool.name}:
            named[name] = tuple(at for at in named[name] if at != place)
            if not named[name]:
                del named[name]
        rows = {at: kept for at, kept in self.rows.items() if at != place}
        return Index(rows, counts, self.length - row.length, named)

    def place(self, tool_id: str) -> int | None:
        """Where the tool of that id stands in the index; None without one."""
        return next((at for at in self.named.get(tool_id, ()) if self.rows[at].tool.id == tool_id), None)

    def weights(self, word: str) -> Postings:
        """What a word says of each tool that holds it."""
        found = self._weights.get(word)
        if found is None:
            if (counts := self.counts.get(word)) is None:
                return {}  # and it is not kept: of other words there is no end
            idf = math.log(1 + (len(self.rows) - len(counts) + 0.5) / (len(counts) + 0.5))
            fixed = _UNIT * (1 - _LENGTH_COUNTS)
            by_length = _UNIT * _LENGTH_COUNTS * len(self.rows) / max(self.length, 1)
            rows = self.rows
            found = {place: idf * c / (c + fixed + by_length * rows[place].length) for place, c in counts.items()}
            self._weights[word] = found
        return found

    def lookup(self, word: str) -> Postings:
        """What a word of a task says of each tool that holds it, or a synonym of it, which counts less."""
        found = self._asked.get(word)
        if found is None:
            found = self.weights(word)
            if others := [other for other in synonyms().get(word, ()) if other in self.counts]:
                found = dict(found)
                for other in others:
                    for place, weight in self.weights(other).items():
                        found[place] = found.get(place, 0.0) + _SYNONYM * weight
            if found:
                self._asked[word] = found
        return found


def index_of(tools: Iterable[Described]) -> Index:
    """The index of these tools, in this order. Of two of one id the later one stands."""
    kept = {tool.id: tool for tool in tools}
    rows: dict[int, Row] = {}
    counts: defaultdict[str, dict[int, int]] = defaultdict(dict)
    named: dict[str, tuple[int, ...]] = {}
    for place, tool in enumerate(kept.values()):
        row = rows[place] = _row(tool)
        for word, count in row.counts.items():
            counts[word][place] = count
        for name in {tool.id, tool.name}:
            named[name] = (*named.get(name, ()), place)
    return Index(rows, dict(counts), sum(row.length for row in rows.values()), named)


def index_of_catalogue(catalogue: Catalogue) -> Index:
    """The index of a catalogue, made once for it."""
    return catalogue.derived("retrieval", lambda known: index_of(map(described, known.tools)))


def described(tool: ToolSpec) -> Described:
    """What retrieval knows of a tool: its name is its id."""
    parameters = " ".join(_property_texts(tool.parameters))
    return Described(tool.name, tool.name, tool.description, tool.category, tool.server, parameters=parameters)


def _row(tool: Described) -> Row:
    counts: dict[str, int] = {}
    length = 0
    for weight, text in tool.texts:
        found, long = read(text)
        length += weight * long
        for word in found:
            counts[word] = counts.get(word, 0) + weight
    return Row(tool, counts, max(length, 1))


def _property_texts(schema: object, depth: int = 4) -> Iterator[str]:
    """Names and descriptions of the properties of a schema, also of those inside, down to a depth."""
    if not depth:
        return
    properties = at(schema, "properties")
    for name, inner in cast("Mapping[str, object]", properties).items() if isinstance(properties, Mapping) else ():
        yield name
        if isinstance(description := at(inner, "description"), str):
            yield description
        yield from _property_texts(inner, depth - 1)
    if (items := at(schema, "items")) is not None:
        yield from _property_texts(items, depth - 1)


MOST_CLAUSES = 12
_FEWEST_WORDS = 2  # content words that make a clause; one with fewer belongs to the clause before it

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
_CJK_RUN = re.compile(f"[{_CJK}]")
_WORD = re.compile(rf"[{_CJK}]+|[^\W\d_{_CJK}]+")
_WORD_OF_ASCII = re.compile("[A-Za-z]+")
_PARTS = re.compile(r"[A-Z]{2,}s(?![A-Za-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^A-Za-z]+")  # CNNs, JSONFile, getFile
_COMPOUND = re.compile(r"[A-Z][a-z]+[A-Z][a-z]+")
"""A name of two parts that is also written as one word: GitHub, PowerPoint."""

_URL = re.compile(rf"(?:https?://|www\.)[^\s'\"<>)\]{_CJK}{CJK_PUNCTUATION}]+", re.IGNORECASE)
_TO_BE_WRITTEN = re.compile(r"\b(?:sav(?:e|ed|ing)|stor(?:e|ed|ing)|export|output|draft)\b[^.!?;\n]*$", re.IGNORECASE)
_CHARS_BEFORE = 80  # how far before a path the word stands that says what is to be done with the file
_CLAUSE_ENDS = re.compile(
    r"(?<![.!?;:])[.!?;:]+(?=\s|$)|[。！？；，、]|\n|\b(?:and )?(?:then|also)\b|\bafter that\b|\bfinally\b"
    r"|\bas well as\b|\balong with\b|然后|接着|另外|并且|同时|最后",
    re.IGNORECASE,
)

_SHORTEST = 4  # letters below which a word has no endings
_KEPT = frozenset({"always", "lens", "news", "series", "species"})
"""Words that without an ending would meet another of quite another meaning."""
_ENDINGS = (("ement", 3), ("ment", 3), ("ion", 3), ("ing", 3), ("ed", 3), ("edly", 3), ("ly", 3), ("er", 4), ("or", 4))
"""Endings, and the letters that must be left. The first that fits is taken off."""
_LONG = 7  # letters from which a final `at` is an ending: calculat(e, ion, or) and calcul, but not creat(e)


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
    """The words of a tool's text, in order, and its length, to which a name of two parts does not add as one word."""
    found: list[str] = []
    length = 0
    for run in (_WORD_OF_ASCII if text.isascii() else _WORD).findall(text):
        parts, counted = _words_of(run, in_task=False)
        found += parts
        length += counted
    return found, length


def content_words(text: str) -> tuple[str, ...]:
    """The words of a task that say what is wanted, each once, in order. The text is as `plain` gives it."""
    runs = (_WORD_OF_ASCII if text.isascii() else _WORD).findall(text)
    return tuple(dict.fromkeys(word for run in runs for word in _words_of(run, in_task=True)[0]))


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
    """The clauses of a text as `plain` gives it, each with its content words: at most `MOST_CLAUSES`."""
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
    """What the forms of an English word in lower case have in common. Lighter than Porter's, and as good for this."""
    if len(word) < _SHORTEST or word in _KEPT:
        return word
    if word.endswith("ies") and len(word) > _SHORTEST:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "xes", "ches", "shes", "zes")):
        word = word[:-2]
    elif word[-1] == "s" and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending, left in _ENDINGS:
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
    sign = rf"(?:(?![{_CJK}])\w)"  # of Chinese nothing shows where a name begins
    path = re.compile(
        rf"(?<![/\\])(?<!{sign})(?:[A-Za-z]:|~|\.{{1,2}})?[/\\](?:(?:{sign}|[.-])+[/\\])*(?:{sign}|-)*(?:\.{sign}+)*"
        rf"|(?:(?<!-)(?<!{sign})(?:{sign}|-)+|(?<=[{_CJK}]))\.(?:{'|'.join(kinds)})(?!{sign})",
        re.IGNORECASE,
    )
    return _StopWords(everywhere, everywhere.union(held["in_tasks"].split()), kinds, path)


@lru_cache(60_000)
def _words_of(run: str, *, in_task: bool) -> tuple[tuple[str, ...], int]:
    """The words of a run of letters, and how many of them add to the length of a text."""
    if _CJK_RUN.match(run):
        parts = tuple(run[at : at + 2] for at in range(len(run) - 1)) or (run,)
    else:
        left_out = _stop_words().in_tasks if in_task else _stop_words().everywhere
        spelt = (run,) if run[1:].islower() else _PARTS.findall(run)
        parts = tuple(stem(part) for part in map(str.lower, spelt) if part not in left_out and len(part) > 1)
    return parts + ((run.lower(),) if _COMPOUND.fullmatch(run) else ()), len(parts)
