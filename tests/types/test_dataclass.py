"""A frozen dataclass of ours is to its users what the standard decorator makes of the same class."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import get_type_hints

import orjson
import pytest
from pydantic import TypeAdapter

from surefoot.types.dataclass import dataclass, field, fields, replace


@dataclass(frozen=True, slots=True)
class Slotted:
    one: int
    two: str = "b"
    many: list[int] = field(default_factory=list[int])
    seen: int = field(default=0, compare=False)
    memo: dict[str, int] = field(default_factory=dict[str, int], init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.memo["made"] = self.one


@dataclass(frozen=True)
class Open:
    one: float
    many: tuple[int, ...] = ()
    table: dict[str, int] = field(default_factory=dict[str, int], hash=False)


@dataclass(frozen=True, slots=True)
class Wide:
    one: float
    two: str = "b"
    three: str = ""
    four: tuple[int, ...] = ()
    many: list[int] = field(default_factory=list[int], hash=False)
    memo: dict[str, int] = field(default_factory=dict[str, int], init=False, compare=False)


@dataclass(frozen=True, slots=True)
class Empty:
    pass


@dataclass(frozen=True, slots=True)
class Later(Slotted):
    last: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Users(Slotted):
    last: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Standard:
    one: int
    two: str = "b"
    many: list[int] = dataclasses.field(default_factory=list[int])
    seen: int = dataclasses.field(default=0, compare=False)


def test_a_value_has_its_fields_in_their_order_with_their_defaults() -> None:
    made = Slotted(1, many=[2])
    assert (made.one, made.two, made.many, made.seen, made.memo) == (1, "b", [2], 0, {"made": 1})
    assert Slotted(1).many is not Slotted(1).many
    assert (type(Wide(1)), Wide(1, "x", four=(2,)), Wide(1).memo) == (Wide, Wide(1, "x", "", (2,), []), {})
    assert [one.name for one in fields(made)] == ["one", "two", "many", "seen", "memo"]
    with pytest.raises(TypeError, match=r"Slotted\.__init__\(\) missing 1 required positional argument: 'one'"):
        Slotted()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("made", [Slotted(1, "x", [2], 3), Open(0.5, (1,)), Wide(1, "x"), Empty(), Later(1, last=2)])
def test_what_is_copied_pickled_or_replaced_is_the_same_and_another_class_is_not(made: object) -> None:
    assert copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == made  # noqa: S301 - our own bytes
    assert made != Standard(1, "x", [2], 3)


@pytest.mark.parametrize("kind", [Later, Users])
def test_a_class_made_from_one_of_ours_adds_its_fields(kind: type[Later | Users]) -> None:
    made = kind(1, last=2)
    assert (made.one, made.last, made.memo, made) == (1, 2, {"made": 1}, kind(1, last=2))


def test_what_is_compared_is_what_counts_and_is_hashed() -> None:
    assert Slotted(1, seen=1) == Slotted(1, seen=2) != Slotted(2)
    assert replace(Open(1.0), many=(2,)) == Open(1.0, (2,))
    assert len({Open(1.0), Open(1.0), Open(2.0)}) == 2
    nan = float("nan")
    assert Open(nan) == Open(nan)  # as tuples have it
    assert hash(Empty()) == hash(Empty())


@pytest.mark.parametrize("made", [Slotted(1), Open(1.0), Wide(1.0), Empty(), Later(1), Users(1)])
def test_nothing_can_be_set_or_deleted(made: object) -> None:
    for change in (lambda: setattr(made, "one", 2), lambda: delattr(made, "one")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()


def test_its_signature_tells_types_and_defaults_as_the_standard_one() -> None:
    ours, theirs = inspect.signature(Slotted), inspect.signature(Standard)
    assert str(ours) == str(theirs)
    assert get_type_hints(Slotted.__init__) == get_type_hints(Standard.__init__)


class NotedOpen(Open):
    note: str


class NotedWide(Wide):
    note: str


@pytest.mark.parametrize("kind", [NotedOpen, NotedWide])
def test_a_plain_subclass_has_attributes_of_its_own(kind: type[NotedOpen | NotedWide]) -> None:
    noted = kind(1.0)
    noted.note = "x"
    del noted.note
    assert (type(noted), noted.one, noted.four if isinstance(noted, NotedWide) else ()) == (kind, 1.0, ())
    with pytest.raises(dataclasses.FrozenInstanceError):
        noted.one = 2.0  # pyright: ignore[reportAttributeAccessIssue]  # that is what is tested


def test_it_is_shown_matched_and_written_as_the_standard_one() -> None:
    ours, theirs = Slotted(1, "x", [2], 3), Standard(1, "x", [2], 3)
    assert repr(ours) == repr(theirs).replace("Standard", "Slotted")
    match ours:
        case Slotted(one, two, many):
            assert (one, two, many) == (1, "x", [2])
    assert orjson.loads(orjson.dumps(replace(ours))) == {**orjson.loads(orjson.dumps(theirs)), "memo": {"made": 1}}
    assert TypeAdapter(Open).validate_python({"one": 1, "many": [2]}) == Open(1.0, (2,))
