"""Tables of cases as data: `tests/data/TABLE.jsonl`, a row a line, under the name of the test that it is for.

The other keys of a row are the arguments of the test; `why` is for readers. A list stands for a tuple, `{"set": …}`,
`{"list": …}` and `{"map": …}` for those.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

_DATA = Path(__file__).parent / "data"
_Test = TypeVar("_Test", bound=Callable[..., object])


@cache
def _rows(table: str) -> list[dict[str, object]]:
    lines = (_DATA / f"{table}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _value(told: object) -> object:
    if isinstance(told, list):
        return tuple(_value(one) for one in cast("list[object]", told))  # JSON
    if not isinstance(told, dict):
        return told
    (kind, inner), *_ = cast("Mapping[str, Any]", told).items()  # as written above
    if kind == "map":
        return {key: _value(one) for key, one in inner.items()}
    return {"set": set, "list": list}[kind](map(_value, inner))


def cases(table: str) -> Callable[[_Test], _Test]:
    """A test for each of its rows of a table."""

    def parametrized(test: _Test) -> _Test:
        mine = [row for row in _rows(table) if row["test"] == test.__name__]
        names = [name for name in mine[0] if name not in ("test", "why")]
        values = [tuple(_value(row[name]) for name in names) for row in mine]
        return pytest.mark.parametrize(",".join(names), [one[0] for one in values] if len(names) == 1 else values)(test)

    return parametrized
