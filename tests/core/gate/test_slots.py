"""A value of the words is good where they put it: every value of one kind is tried in the place of every other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from gate_world import NUMBER, PAY, SEND, TEXT, Row, Run, rows, tool

from cases import each
from surefoot.core.gate.roles import leaves
from surefoot.core.text.values import numbers_of
from surefoot.types.tools import ToolSpec

Call = tuple[str, Mapping[str, Any]]  # Any: arguments as JSON

TOOLS: Mapping[str, ToolSpec] = {
    spec.name: spec
    for spec in (
        SEND,
        PAY,
        tool("transfer", "transact", from_account=TEXT, to_account=TEXT, amount=NUMBER),
        tool("remove_file", "delete", path=TEXT),
        tool("move_file", "write", source=TEXT, target=TEXT),
        tool("send_file", "communicate", to=TEXT, file=TEXT),
        tool("set_limit", "write", name=TEXT, limit=NUMBER),
    )
}


def _values(words: str) -> dict[str, set[object]]:
    """The values of the words by what may stand for what; a name may be where an address is."""
    found: dict[str, set[object]] = {"number": {float(one) for one in numbers_of(words)}}
    entities = Run(words).known.words.anchor.entities
    glued = {
        one.text for one in entities for other in entities if one.text != other.text and one.text.endswith(other.text)
    }
    for entity in (one for one in entities if one.text not in glued):  # "删除a.txt" is no file beside "a.txt"
        kind = {"name": "party", "email": "party", "account": "party"}.get(entity.kind, entity.kind)
        found.setdefault(kind, set()).add(entity.text)
    return found


def _with(arguments: Row, path: tuple[str | int, ...], new: object) -> Row:
    name, *place = path
    value = [new if [at] == place else one for at, one in enumerate(arguments[str(name)])] if place else new
    return {**arguments, str(name): value}


def _swaps(words: str, right: tuple[Call, ...]) -> Iterator[Call]:
    """Each right call with one value of it, or two, replaced by others of the words."""
    alike = {value: group for group in _values(words).values() for value in group}
    known = [(name, dict(arguments)) for name, arguments in right]
    for name, arguments in known:
        told = [
            (path, alike.get(float(value) if isinstance(value, int) else value, {value}))
            for path, value in leaves(arguments, TOOLS[name])
            if path[0] not in ("subject", "body")
        ]
        for chosen in product(*(group for _, group in told)):
            made = arguments
            for (path, _), value in zip(told, chosen, strict=True):
                made = _with(made, path, value)
            given = [value for path, value in leaves(arguments, TOOLS[name]) if path[0] not in ("subject", "body")]
            is_reordered = any(isinstance(one, list) for one in arguments.values()) and set(chosen) <= set(given)
            if (name, made) not in known and not is_reordered:
                yield name, made


@each("row", rows("slots.jsonl"))
def test_a_value_is_good_only_where_the_words_put_it(row: Mapping[str, Any]) -> None:
    words, right, wrong = row["words"], row["right"], row.get("wrong", ())
    asked = [call for call in right if Run(words).verdict(TOOLS[call[0]], **call[1]) != "allow"]
    assert not asked
    let_through = [
        call for call in (*_swaps(words, right), *wrong) if Run(words).verdict(TOOLS[call[0]], **call[1]) == "allow"
    ]
    assert not let_through
