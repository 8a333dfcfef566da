"""Tables of cases: a test goes through all rows of its table, and tells each row for which it does not hold.

As data they stand in `tests/data/TABLE.jsonl`, a row a line, under the name of the test that it is for. The other keys
of a row are the arguments of the test; `why` is for readers. A list stands for a tuple, `{"set": …}`, `{"list": …}`
and `{"map": …}` for those.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from inspect import iscoroutinefunction, signature
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

_DATA = Path(__file__).parent / "data"
_Test = TypeVar("_Test", bound=Callable[..., object])


@cache
def rows(table: str) -> list[dict[str, Any]]:  # Any: JSON, whose shape the test knows
    """The rows of a table as they stand in it."""
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
    """A test of its rows of a table; of each by itself where it awaits, or asks for fixtures."""

    def with_rows(test: _Test) -> _Test:
        mine = [row for row in rows(table) if row["test"] == test.__name__]
        names = [name for name in mine[0] if name not in ("test", "why")]
        several = [tuple(_value(row[name]) for name in names) for row in mine]
        values = several if len(names) > 1 else [one for (one,) in several]
        is_all = set(signature(test).parameters) <= {*names, "self"} and not iscoroutinefunction(test)
        return (each(names, values) if is_all else pytest.mark.parametrize(",".join(names), values))(test)

    return with_rows


def each(
    names: str | Sequence[str], rows: Iterable[Sequence[object] | object] | Callable[[], Iterable[object]]
) -> Callable[[_Test], _Test]:
    """A test of all these rows, written as `pytest.mark.parametrize` has them; what it asks for besides, all share.

    Rows that take time to make are a function, which the test calls.
    """
    named = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    table = rows if callable(rows) else tuple(rows)

    def of_all(test: _Test) -> _Test:
        @wraps(test)
        def looped(*given: object, **more: object) -> None:
            wrong: list[str] = []
            for values in table() if callable(table) else table:
                row = dict(zip(named, cast("Any", values) if len(named) > 1 else (values,), strict=True))
                try:
                    test(*given, **row, **more)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  # the next row is looked at all the same
                    wrong.append(f"{row}: {type(error).__name__}: {error}")
            assert not wrong, "\n".join(wrong)

        whole = signature(test)
        left = [one for one in whole.parameters.values() if one.name not in named]
        looped.__dict__["__signature__"] = whole.replace(parameters=left)  # which pytest reads
        return cast("_Test", looped)

    return of_all
