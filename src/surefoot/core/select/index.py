"""An index of tools by their words: whichever tools hold a word, and how much it says of each.

One weighted count a word and tool over all texts of the tool, and one weighted length; normalising each text by itself
was tried and is worse. A word weighs `idf * c / (c + 1 - b + b * L / average)`, with `c` its weighted count and `L` the
tool's weighted length. Counts are whole tenths, so that adding and removing a tool gives exactly what building anew
gives. Weights are made when a word is first asked for, and kept. Source: spec/planning.md, section 15.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from surefoot.core.select.terms import read, synonyms
from surefoot.core.text import at
from surefoot.types.dataclass import dataclass, field
from surefoot.types.tools import Catalogue, ToolSpec

_LENGTH_COUNTS = 0.9
"""`b`: how much of a tool's length counts against it."""
_SYNONYM = 0.3
_UNIT = 10
_TEXTS = {"name": 15, "description": 10, "parameters": 2, "category": 3, "server": 5, "server_description": 2}
"""What a word of each text counts, in tenths."""

Postings = Mapping[int, float]
"""Place of a tool in the index -> what a word says of it."""


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
            counts = self.counts.get(word, {})
            idf = math.log(1 + (len(self.rows) - len(counts) + 0.5) / (len(counts) + 0.5))
            fixed = _UNIT * (1 - _LENGTH_COUNTS)
            by_length = _UNIT * _LENGTH_COUNTS * len(self.rows) / max(self.length, 1)
            rows = self.rows
            found = {place: idf * c / (c + fixed + by_length * rows[place].length) for place, c in counts.items()}
            self._weights[word] = found
        return found

    def asked(self, word: str) -> Postings:
        """What a word of a task says of each tool that holds it, or a synonym of it, which counts less."""
        found = self._asked.get(word)
        if found is None:
            found = self.weights(word)
            if others := [other for other in synonyms().get(word, ()) if other in self.counts]:
                found = dict(found)
                for other in others:
                    for place, weight in self.weights(other).items():
                        found[place] = found.get(place, 0.0) + _SYNONYM * weight
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
