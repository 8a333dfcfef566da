"""What replies are held to: the examples of the spec fit, other replies do not, and a decoder can hold to each."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import plan_world as world
import pytest

from cases import each
from surefoot.core.parse.validate import validate
from surefoot.core.plan.forms import object_in
from surefoot.core.plan.requests import prompt_for
from surefoot.core.plan.schemas import MOST_BRANCHES, MOST_IDS, Schema, schema_for
from surefoot.core.state.plans import StepRecord
from surefoot.core.state.state import Planning
from surefoot.core.state.turn import changed
from surefoot.models.grammar import grammar_schema, is_strict
from surefoot.models.json_edge import mapping
from surefoot.prompts.load import template
from surefoot.types.plan import ProposalKind
from surefoot.types.reflection import AddRemediationSteps, FullReplan
from surefoot.types.tools import Catalogue

Json = Mapping[str, Any]  # Any: JSON

THOUGHT = replace(world.STEPS[1], kind="reasoning", tool_id="", parameters={}, instruction="Think.")
CASES: dict[str, tuple[Planning, ProposalKind, str]] = {
    "select_initial": (world.selecting(), "select_initial", ""),
    "decompose": (world.decomposing(), "decompose", ""),
    "step_reflection": (world.step_failed(), "step_reflection", "m"),
    "of a thought": (world.planning_of(world.failed(THOUGHT, "empty")), "step_reflection", "m"),
    "overall_reflection": (world.escalated(), "overall_reflection", ""),
    "in short chapters": (world.escalated(config=world.SMALL), "overall_reflection", ""),
    "select_corrective": (world.replanning(FullReplan(), phase="reselecting"), "select_corrective", ""),
    "redecompose": (world.replanning(), "decompose", ""),
    "remediation": (world.replanning(AddRemediationSteps(("convert",))), "decompose", ""),
}
ROWS = (Path(__file__).parents[2] / "data" / "core" / "plan" / "schemas.jsonl").read_text(encoding="utf-8").splitlines()


def schema(name: str, *, is_small: bool = False) -> Schema:
    planning, kind, about = CASES[name]
    return schema_for(world.state_of(is_small=is_small), planning, kind, about)


@each("row", [json.loads(line) for line in ROWS])
def test_replies_of_the_spec_fit_and_others_do_not(row: Json) -> None:
    held = schema(row["schema"], is_small=row.get("is_small", False))
    assert (not validate(row["reply"], held).errors) is row["fits"]


def test_what_cannot_follow_is_not_in_the_schema() -> None:
    assert "retry_with_tool" not in str(schema("of a thought"))
    only = world.planning_of(
        StepRecord(replace(world.STEPS[2], dependencies=())), world.done(world.STEPS[0], "x"), phase="running"
    )
    assert "skip_steps" not in str(schema_for(world.state_of(), only, "overall_reflection"))
    assert prompt_for(world.state_of(), only, "overall_reflection", "").schema


@pytest.mark.parametrize("name", CASES)
def test_decoders_hold_to_each(name: str) -> None:
    for is_small in (False, True):
        held = schema(name, is_small=is_small)
        assert is_strict(held)
        simple = grammar_schema(held)
        assert simple["type"] == "object"
        assert list(mapping(simple["properties"])) == list(mapping(held["properties"]))
        assert "{}" not in json.dumps(simple), "a part that the decoder would let run free"


@pytest.mark.parametrize("name", CASES)
def test_the_librarys_compiler_takes_each(name: str) -> None:
    library = pytest.importorskip("xllamacpp")
    assert "%json" in library.json_schema_to_grammar(grammar_schema(schema(name, is_small=True)))


@pytest.mark.parametrize("name", ["decompose", "step_reflection", "overall_reflection", "redecompose"])
def test_examples_of_the_templates_are_read(name: str) -> None:
    text = template(f"plan/{name}")
    example = object_in(text[text.rindex("\n{") :])
    assert example is not None
    assert set(example) == set(mapping(schema(name)["properties"]))


def test_chapters_come_first() -> None:
    names = [*mapping(schema("in short chapters")["properties"])]
    assert names[:5] == ["overview", "diagnosis", "improvements", "decision", "lessons"]
    assert [*mapping(schema("step_reflection")["properties"])][:3] == ["history_review", "error_analysis", "proposal"]


def fits(tool_id: str, parameters: Json, held: Schema, **more: object) -> bool:
    step = {"step_id": "b", "step_name": "Mean", "kind": "tool", "tool_id": tool_id, "parameters": parameters}
    step |= {"dependencies": ["r"], "must_succeed": False, **more}
    plan = {"context_understanding": "…", "description": "…", "task_type": "…", "steps": [step]}
    return not validate(plan, held).errors


def test_many_tools_are_named_and_very_many_are_not() -> None:
    for count in (MOST_BRANCHES + 5, MOST_IDS + MOST_BRANCHES + 5):
        tools = Catalogue(tuple(world.tool(f"t{at}", "Does.", {"x": world.TEXT}) for at in range(count)))
        planning = changed(world.decomposing(), selected=tools.names)
        held = schema_for(world.state_of(tools=tools, is_small=True), planning, "decompose")
        assert fits(f"t{count - 1}", {"x": "1", "y": [1]}, held)
        assert not fits("t1", {"x": "1", "y": [1]}, held) or count > MOST_IDS
        assert fits("other", {}, held) is (count > MOST_IDS)


def test_a_tool_with_any_parameters_has_any() -> None:
    full = {"required": True, "expected_output": None, "postcondition": None, "timeout": None}
    for name, more, given in (("put", True, {"a": 1, "b": ["x"]}), ("now", False, {})):
        declared: Json = {"type": "object", **({"additionalProperties": True} if more else {"properties": {}})}
        tools = Catalogue((replace(world.tool(name, "Does.", {}), parameters=declared),))
        held = schema_for(world.state_of(tools=tools), changed(world.decomposing(), selected=(name,)), "decompose")
        assert fits(name, given, held, **full)
        assert fits(name, {"a": 1}, held, **full) is more
