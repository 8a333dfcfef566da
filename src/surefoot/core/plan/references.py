"""What the call of a step is given: references to the results of other steps replaced, held to the schema of its tool.

R3: `{{step.field}}` in the strings of a step's parameters. A string that is nothing but a reference becomes
the value with its type; an embedded one is written as text. A field that is missing or null fails the step;
`{{?step.field}}` may be null. Source: spec/planning.md, section 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import orjson

from surefoot.core.parse.json_strict import as_object
from surefoot.core.parse.validate import Checked, Validator
from surefoot.core.plan.forms import list_of
from surefoot.core.state.repeats import call_fingerprint, fingerprint
from surefoot.core.state.state import Planning
from surefoot.core.text import json_text
from surefoot.types.dataclass import dataclass
from surefoot.types.plan import PlanStep
from surefoot.types.tools import Catalogue, ToolResult, ToolSpec

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

    def found(part: object) -> Iterator[Reference]:
        if isinstance(part, str):
            yield from (_of(match) for match in (_REFERENCE.finditer(part) if "{{" in part else ()))
        for _, member in sorted((as_object(part) or {}).items()):
            yield from found(member)
        for item in list_of(part):
            yield from found(item)

    return tuple(found(value))


def _of(match: re.Match[str]) -> Reference:
    optional, step_id, path = match.groups()
    return Reference(step_id, tuple(path.split(".")[1:]), bool(optional), match.group())


def resolved(value: object, planning: Planning) -> object:
    """The value with every reference replaced by what its step has given. Raises `UnresolvedError`."""
    if isinstance(value, str):
        if "{{" not in value:
            return value
        if (whole := _REFERENCE.fullmatch(value)) is not None:
            return _looked_up(_of(whole), planning)

        def as_text(match: re.Match[str]) -> str:
            part = _looked_up(_of(match), planning)
            return part if isinstance(part, str) else "" if part is None else json_text(part)

        return _REFERENCE.sub(as_text, value)
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)  # JSON
        return {key: resolved(part, planning) for key, part in members.items()}
    if isinstance(value, list | tuple):
        return [resolved(part, planning) for part in cast("Sequence[object]", value)]  # the same
    return value


def _looked_up(reference: Reference, planning: Planning) -> object:
    record = planning.steps.get(reference.step_id)
    value = record.value if record is not None and record.status == "succeeded" else None
    for at, field in enumerate(reference.path):
        members, items = as_object(value), list_of(value)
        inner = members.get(field) if members is not None else None
        if field.isdecimal() and len(field) <= 9 and int(field) < len(items):  # noqa: PLR2004  # more are no index
            inner = items[int(field)]
        if inner is None and field == WHOLE and at == 0 and not (members and field in members):
            continue
        value = inner
        if value is None:
            break
    if value is None and not reference.is_optional:
        raise UnresolvedError(
            f"{reference.text} is not there: the result of step {reference.step_id} has no such field"
        )
    return value


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


def checked(tools: Catalogue, tool_id: str, arguments: Mapping[str, object]) -> Checked:
    """The arguments as the tool takes them, with lossless coercions made; or what is wrong with them."""
    spec = tools.get(tool_id)
    if spec is None:
        return Checked(arguments)
    return tools.derived(f"validator:{tool_id}", lambda _: Validator(spec.parameters)).check(arguments)


def arguments_of(tools: Catalogue, planning: Planning, tool_id: str, parameters: Mapping[str, object]) -> Checked:
    """The arguments that a call has now. Raises `UnresolvedError`."""
    return checked(tools, tool_id, as_object(resolved(parameters, planning)) or {})


def fingerprint_of(step: PlanStep, parameters: Mapping[str, object], spec: ToolSpec | None) -> str:
    """The fingerprint of a step, once its parameters are resolved; `spec` is its tool."""
    if step.kind == "tool":
        return call_fingerprint(step.tool_id, parameters, spec)
    return fingerprint(step.kind, step.instruction)
