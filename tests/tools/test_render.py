"""Text from any value."""

import enum
from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from surefoot.tools.results import text_of


class Level(enum.Enum):
    HIGH = "high"


class Word(str, enum.Enum):  # noqa: UP042  # the case
    HIGH = "high"


class Named(NamedTuple):
    a: int
    b: int


class Model(BaseModel):
    name: str
    day: date


@dataclass
class Data:
    name: str
    level: Level


class Silent:
    def __str__(self) -> str:
        raise RuntimeError


class Unfair(BaseModel):
    def model_dump(self, **_: Any) -> Any:  # Any: as in the class above it
        raise RuntimeError


@pytest.mark.parametrize(("value", "text"), [
    ("as it is\n", "as it is\n"), ("", ""), (None, ""), (7, "7"), (True, "true"), (0.5, "0.5"), (float("nan"), "NaN"),
    (float("-inf"), "-Infinity"), (2**80, str(2**80)), ([1, "é", None], '[1,"é",null]'),
    ([float("nan"), 2**70], f'["NaN",{2**70}]'), ([float("nan"), None], '["NaN",null]'), ({"分": 81}, '{"分":81}'),
    ({(1, 2): 3, 4: 5, None: 6, True: 7}, '{"(1, 2)":3,"4":5,"null":6,"true":7}'), ({3, 1, 2}, "[1,2,3]"),
    (deque([1]), "[1]"), (OrderedDict[str, int](a=1), '{"a":1}'), (MappingProxyType({"a": 1}), '{"a":1}'),
    ({"a": 1}.values(), "[1]"), (Named(1, 2), '{"a":1,"b":2}'),
    (Data("x", Level.HIGH), '{"name":"x","level":"high"}'),
    (Model(name="x", day=date(2024, 1, 2)), '{"name":"x","day":"2024-01-02"}'),
    ([Model(name="x", day=date(2024, 1, 2))], '[{"name":"x","day":"2024-01-02"}]'), (Level.HIGH, "high"),
    (date(2024, 1, 2), "2024-01-02"), (Decimal("0.10"), "0.10"), (PurePosixPath("a/b"), "a/b"),
    (b"\0\1", "(2 bytes of binary data)"), ({"data": b"123"}, '{"data":"(3 bytes of binary data)"}'),
    (Silent(), "<Silent>"), ([Silent()], '["<Silent>"]'), (int, "int"), ("\ud800x", "\ufffdx"),
    (["\ud800"], '["\ufffd"]'),
])  # fmt: skip
def test_each_kind(value: object, text: str) -> None:
    assert text_of(value) == text


def test_a_text_enum_is_its_value_and_no_longer_an_enum() -> None:
    text = text_of(Word.HIGH)
    assert (type(text), f"{text}") == (str, "high")


def test_what_holds_itself_is_told() -> None:
    loop: dict[str, object] = {}
    loop["loop"] = [loop]
    assert "holds itself" in text_of(loop)
    assert "holds itself" not in text_of([[1], [1]])


def test_great_depth_is_told() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    assert "nested too deeply" in text_of(deep)


def test_foreign_code_that_fails_is_survived() -> None:
    assert isinstance(text_of(Unfair()), str)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.floats(), inner) | st.tuples(inner),
    max_leaves=10,
)


@given(json_values)
def test_it_never_raises_and_can_be_stored(value: object) -> None:
    text = text_of(value)
    orjson.dumps(text)
