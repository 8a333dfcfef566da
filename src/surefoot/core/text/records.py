"""A result as records, so that a later argument can be traced to it.

A record has atoms (short fields, and its own key) and running text with hard tokens in it. Text that parses as JSON is
a text, unless the tool gave it as a value. Built from the raw result, before anything of it is masked. Source:
spec/guard.md, section 4.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

import orjson

from surefoot.core.text.look import holds, normal_text
from surefoot.core.text.values import hard_tokens, kind_of, norm_of
from surefoot.types.dataclass import dataclass, field

LONGEST_ATOM = 128
"""Characters up to which a field is a value of its own; what is longer is running text."""

MOST_ATOMS = 20_000
"""Fields of one result that are taken in; a value in what lies beyond is found nowhere, which never opens anything."""

LONGEST_SENTENCE = 200

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Atom:
    """A short field of a record, or a key. `field` is its path with every list index as `*`."""

    field: str
    text: str
    norm: str
    is_text: bool

    @classmethod
    def of(cls, path: str, leaf: Scalar) -> Atom:
        """The atom of a field with its value."""
        text = leaf if isinstance(leaf, str) else orjson.dumps(leaf).decode()
        return cls(path, text, norm_of(leaf), isinstance(leaf, str))


@dataclass(frozen=True, slots=True)
class Record:
    """Fields that belong together."""

    atoms: tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class ValueIndex:
    """The records of a result, its atoms by normal form, and the hard tokens of its running text with their sentence.

    `is_one` says that the result is one record: no list, no mapping of records, no list of them inside. `text` is the
    running text in normal form.
    """

    records: tuple[Record, ...] = ()
    is_one: bool = True
    atoms: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    tokens: Mapping[str, str] = field(default_factory=dict[str, str])
    text: str = ""

    def says(self, norm: str) -> bool:
        """Whether the running text holds a text in whole words, and not only as a field."""
        kind, _, value = norm.partition(":")
        return norm in self.tokens or (kind in ("text", "number") and holds(self.text, value))


@dataclass(frozen=True, slots=True)
class Fields:
    """In which results a value stands as a field, by normal form. It grows with each result, and never changes.

    It is kept in parts of 1, 2, 4 … results that are joined as soon as two are of one size, so that taking in n results
    copies each entry at most log2(n) times, and a look-up asks at most log2(n) parts.
    """

    parts: tuple[tuple[int, Mapping[str, tuple[int, ...]]], ...] = ()

    def with_result(self, number: int, norms: Iterable[str]) -> Fields:
        """The same with the result of that number, which is higher than all before."""
        parts = list(self.parts)
        new: Mapping[str, tuple[int, ...]] = dict.fromkeys(norms, (number,))
        size = 1
        while parts and parts[-1][0] == size:
            older = parts.pop()[1]
            new = {**older, **{norm: at + older.get(norm, ()) for norm, at in new.items()}}
            size *= 2
        return Fields((*parts, (size, new)))

    def having(self, norm: str) -> Iterator[int]:
        """The results that have the value, the newest first."""
        for _, part in reversed(self.parts):
            yield from part.get(norm, ())


def index_of(content: str, *, structured: bool) -> ValueIndex:
    """The index of a result. O(its size)."""
    value: object = content
    if structured:
        try:
            value = orjson.loads(content)
        except orjson.JSONDecodeError:  # a value too long for one result was cut
            value = content
    if isinstance(value, str):
        return _build([], is_one=True, prose=[value])
    prose: list[str] = []
    parts, is_one = _parts(value)
    records: list[Record] = []
    for key, path, part in parts:  # grows while it is walked: what is a record of its own inside of one comes behind it
        atoms = [Atom.of("key", key)] if key else []
        for at, leaf in _leaves(part, path):
            if not isinstance(leaf, str | int | float):
                parts += [(key, f"{at}.*" if at else "*", one) for key, one in leaf]
                is_one = False
                continue
            text = leaf if isinstance(leaf, str) else orjson.dumps(leaf).decode()
            if len(text) <= LONGEST_ATOM:
                atoms.append(Atom.of(at, leaf))
            if isinstance(leaf, str) and (len(text) > LONGEST_ATOM or " " in text.strip()):
                prose.append(text)
            if len(atoms) >= MOST_ATOMS:
                break
        records.append(Record(tuple(atoms)))
    return _build(records, is_one=is_one, prose=prose)


def _build(records: Sequence[Record], *, is_one: bool, prose: Sequence[str]) -> ValueIndex:
    where: dict[str, dict[int, None]] = {}
    for number, record in enumerate(records):
        for atom in record.atoms:
            where.setdefault(atom.norm, {})[number] = None
    tokens: dict[str, str] = {}
    for text in prose:
        for token in hard_tokens(text):
            if token.norm not in tokens:
                tokens[token.norm] = sentence_around(text, token.start, token.end)
    atoms = {norm: tuple(at) for norm, at in where.items()}
    return ValueIndex(tuple(records), is_one, atoms, tokens, normal_text("\n".join(prose)))


def sentence_around(text: str, start: int, end: int) -> str:
    """The words around a place in a text, at most 200 characters, on one line."""
    room = max(0, LONGEST_SENTENCE - (end - start)) // 2
    return " ".join(text[max(0, start - room) : end + room].split())[:LONGEST_SENTENCE]


def _parts(value: object) -> tuple[list[tuple[str, str, object]], bool]:
    """The records of a value, each with its key and its path where it has one, and whether the value is one record."""
    if isinstance(value, list):
        return [("", "", one) for one in cast("list[object]", value)], False
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        are_parts = [isinstance(one, dict | list) for one in entries.values()]
        if entries and all(are_parts):
            return [(key, _step(key) if _holds_records(one) else "", one) for key, one in entries.items()], False
        if not any(are_parts) and (
            any(" " in key for key in entries)
            or (len(entries) > 1 and all(kind_of(one) in _ADDRESSES for one in entries.values()))
        ):  # keys that are data
            return [(key, "", one) for key, one in entries.items()], False
    return [("", "", value)], True


_ADDRESSES = ("email", "url", "account", "phone")
"""Where each value of a mapping is one, the keys are whose they are."""


def _holds_records(value: object) -> bool:
    """Whether each element of a value is a record of its own: an API's list of hits, the rows of a table."""
    return isinstance(value, list) and any(isinstance(one, dict | list) for one in cast("list[object]", value))


def _step(key: str) -> str:
    """A key as a step of a path: with a dot or as a star it would look like several, or like a list."""
    return key.replace(".", "\u2024").replace("*", "\u2217")


def _leaves(value: object, path: str) -> Iterator[tuple[str, Scalar | list[tuple[str, object]]]]:
    """Every leaf that says something, in order, with its path. A list or a mapping of records is one, with its keys."""
    stack: list[tuple[object, str]] = [(value, path)]
    while stack:
        one, at = stack.pop()
        if isinstance(one, dict):
            entries = cast("dict[str, object]", one)
            if len(entries) > 1 and all(isinstance(inner, dict) for inner in entries.values()):
                yield at, list(entries.items())
                continue
            stack += [(inner, f"{at}.{_step(key)}" if at else _step(key)) for key, inner in reversed(entries.items())]
        elif isinstance(one, list):
            elements = cast("list[object]", one)
            if _holds_records(elements):
                yield at, [("", inner) for inner in elements]
            else:
                stack += [(inner, f"{at}.*" if at else "*") for inner in reversed(elements)]
        elif isinstance(one, str | int | float) and one != "":
            yield at, one
