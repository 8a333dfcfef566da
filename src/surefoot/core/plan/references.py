"""References from one step to the results of others: `{{step.field}}` inside the strings of its parameters.

R3: a string that is nothing but a reference becomes the value with its type; an embedded one is written as text. A
field that is missing or null fails the step. `{{?step.field}}` may be null. Source: spec/planning.md, section 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

import orjson

from surefoot.core.text import json_text
from surefoot.types.dataclass import dataclass
from surefoot.types.tools import ToolResult

_REFERENCE = re.compile(r"\{\{\s*(\??)([A-Za-z0-9_-]+)((?:\.[^.{}\s]+)*)\s*\}\}")

WHOLE = "output"
"""The field that means the whole result, where it has no field of that name."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference: the step, the path into its result, and whether null will do."""

    step_id: str
    path: tuple[str, ...]
    is_optional: bool
    text: str


class UnresolvedError(Exception):
    """A reference to something that is not there."""


def references_in(value: object) -> tuple[Reference, ...]:
    """All references, keys of objects sorted, each as often as it occurs."""
    return tuple(_found(value))


def _found(value: object) -> Iterator[Reference]:
    if isinstance(value, str):
        if "{{" in value:
            yield from (_of(match) for match in _REFERENCE.finditer(value))
    elif isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)  # JSON
        for key in sorted(members):
            yield from _found(members[key])
    elif isinstance(value, Sequence):
        for item in cast("Sequence[object]", value):  # the same
            yield from _found(item)


def _of(match: re.Match[str]) -> Reference:
    optional, step_id, path = match.groups()
    return Reference(step_id, tuple(path.split(".")[1:]), bool(optional), match.group())


def resolved(value: object, result_of: Callable[[str], object]) -> object:
    """The value with every reference replaced. `result_of` gives the result of a step, None where it has none.

    Raises `UnresolvedError`.
    """
    if isinstance(value, str):
        if "{{" not in value:
            return value
        whole = _REFERENCE.fullmatch(value)
        if whole is not None:
            return _looked_up(_of(whole), result_of)
        return _REFERENCE.sub(lambda match: _as_text(_looked_up(_of(match), result_of)), value)
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)  # JSON
        return {key: resolved(part, result_of) for key, part in members.items()}
    if isinstance(value, list | tuple):
        return [resolved(part, result_of) for part in cast("Sequence[object]", value)]  # the same
    return value


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json_text(value)


def _looked_up(reference: Reference, result_of: Callable[[str], object]) -> object:
    value = result_of(reference.step_id)
    for at, field in enumerate(reference.path):
        inner = _field(value, field)
        if inner is None and field == WHOLE and at == 0 and not _has(value, field):
            inner = value
        value = inner
        if value is None:
            break
    if value is None and not reference.is_optional:
        raise UnresolvedError(
            f"{reference.text} is not there: the result of step {reference.step_id} has no such field"
        )
    return value


def _has(value: object, field: str) -> bool:
    return isinstance(value, Mapping) and field in value


def _field(value: object, field: str) -> object:
    if isinstance(value, Mapping):
        return cast("Mapping[str, object]", value).get(field)  # JSON
    if isinstance(value, list | tuple) and field.isdecimal() and len(field) <= 9:  # noqa: PLR2004  # more are no index
        items = cast("Sequence[object]", value)  # the same
        return items[int(field)] if int(field) < len(items) else None
    return None


def value_of(result: ToolResult) -> object:
    """What references see of a result: a JSON object or list as such, everything else as its text.

    A result of which the journal keeps a part alone has no value: half a document would look like a whole one.
    """
    if result.blob is not None:
        return None
    text = result.content.strip()
    if not (result.structured or text[:1] in ("{", "[")):
        return result.content
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return result.content
