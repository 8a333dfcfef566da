"""The arguments of a step's call: references resolved, and held to the schema of its tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from surefoot.core.parse.validate import Checked, Validator
from surefoot.core.plan.dag import Planning
from surefoot.core.plan.references import resolved
from surefoot.types.tools import Catalogue


def resolve_step(planning: Planning, parameters: Mapping[str, object]) -> dict[str, object]:
    """Parameters with every reference replaced by what the steps have given. Raises `UnresolvedError`."""

    def result_of(name: str) -> object:
        record = planning.steps.get(name)
        return record.value if record is not None and record.status == "succeeded" else None

    made = resolved(parameters, result_of)
    return dict(cast("Mapping[str, object]", made))  # a mapping stays one


def checked(tools: Catalogue, tool_id: str, arguments: Mapping[str, object]) -> Checked:
    """The arguments as the tool takes them, with lossless coercions made; or what is wrong with them."""
    spec = tools.get(tool_id)
    if spec is None:
        return Checked(arguments)
    return tools.derived(f"validator:{tool_id}", lambda _: Validator(spec.parameters)).check(arguments)


def arguments_of(tools: Catalogue, planning: Planning, tool_id: str, parameters: Mapping[str, object]) -> Checked:
    """The arguments that a call has now. Raises `UnresolvedError`."""
    return checked(tools, tool_id, resolve_step(planning, parameters))
