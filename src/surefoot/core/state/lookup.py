"""Sequences and mappings that grow by one and never change, so that a late step of a run costs what an early one does.

Each is kept in parts that are joined as soon as the newer is as large as the older. So taking in n entries copies each
at most log2(n) times, a look-up asks at most log2(n) parts, and what an earlier value holds is shared with the later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeVar, overload

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class History(Sequence[T]):
    """A sequence, the oldest first. A slice of it is a tuple."""

    __slots__ = ("length", "parts")

    def __init__(self, items: Iterable[T] = ()) -> None:
        whole = tuple(items)
        self.parts: tuple[tuple[T, ...], ...] = (whole,) if whole else ()
        self.length = len(whole)

    def plus(self, *items: T) -> History[T]:
        """This with more at its end."""
        parts, new = self.parts, items
        while parts and len(parts[-1]) <= len(new):
            parts, new = parts[:-1], parts[-1] + new
        grown: History[T] = object.__new__(type(self))
        grown.parts, grown.length = ((*parts, new) if new else parts), self.length + len(items)
        return grown

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self.parts)

    def __reversed__(self) -> Iterator[T]:
        return chain.from_iterable(map(reversed, reversed(self.parts)))

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...
    def __getitem__(self, at: int | slice) -> T | tuple[T, ...]:
        if isinstance(at, slice):
            return tuple(self)[at]
        place = at if at < 0 else at - self.length
        for part in reversed(self.parts):  # what is asked for is mostly new
            place += len(part)
            if place >= 0:
                return part[place]
        raise IndexError(at)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and tuple(self) == tuple(other)  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]  # of anything

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"History({tuple(self)!r})"


class Lookup(Mapping[K, V]):
    """A mapping in which a key can be given a later value."""

    __slots__ = ("_parts",)

    def __init__(self, entries: Mapping[K, V] | None = None) -> None:
        self._parts: tuple[Mapping[K, V], ...] = (entries,) if entries else ()

    def plus(self, entries: Mapping[K, V]) -> Lookup[K, V]:
        """This with these entries, which count where a key was there before."""
        parts, new = self._parts, entries
        while parts and len(parts[-1]) <= len(new):
            parts, new = parts[:-1], {**parts[-1], **new}
        grown: Lookup[K, V] = object.__new__(type(self))
        grown._parts = (*parts, new) if new else parts
        return grown

    def __getitem__(self, key: K) -> V:
        for part in reversed(self._parts):
            if key in part:
                return part[key]
        raise KeyError(key)

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | T) -> V | T: ...
    def get(self, key: K, /, default: V | T | None = None) -> V | T | None:
        """The value of the key; what `Mapping.get` gives, without an error on the way."""
        for part in reversed(self._parts):
            if key in part:
                return part[key]
        return default

    def __contains__(self, key: object) -> bool:
        for part in self._parts:  # noqa: SIM110  # asked for each id of a call; a generator costs more than the rest
            if key in part:
                return True
        return False

    def __iter__(self) -> Iterator[K]:
        return iter(dict.fromkeys(chain.from_iterable(self._parts)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return bool(self._parts)

    def __repr__(self) -> str:
        return f"Lookup({dict(self)!r})"
