"""What replies are held to: the examples of the spec fit, other replies do not, and a decoder can hold to each."""

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from plan_world import (
    CHINESE,
    SMALL,
    STEPS,
    TEXT,
    TOOLS,
    decomposing,
    done,
    escalated,
    failed,
    planning_of,
    replanning,
    selecting,
    state_of,
    step_failed,
    tool,
)

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

Json = dict[str, object]

CASES: dict[str, tuple[Planning, ProposalKind, str]] = {
    "select_initial": (selecting(), "select_initial", ""),
    "decompose": (decomposing(), "decompose", ""),
    "step_reflection": (step_failed(), "step_reflection", "m"),
    "overall_reflection": (escalated(), "overall_reflection", ""),
    "select_corrective": (replanning(FullReplan(), phase="reselecting"), "select_corrective", ""),
    "redecompose": (replanning(), "decompose", ""),
    "remediation": (replanning(AddRemediationSteps(("convert",))), "decompose", ""),
}


def schema(name: str, *, is_small: bool = False, tools: Catalogue = TOOLS) -> Schema:
    planning, kind, about = CASES[name]
    return schema_for(state_of(tools=tools, is_small=is_small), planning, kind, about)


def fits(reply: Mapping[str, object], held: Schema) -> bool:
    return not validate(reply, held).errors


def step(**more: object) -> Json:
    """A step as the spec's example has it, which is what a small model is held to."""
    made: Json = {
        "step_id": "b",
        "step_name": "Mean",
        "kind": "tool",
        "tool_id": "mean",
        "parameters": {"values": "{{r.t}}"},
        "dependencies": ["r"],
        "must_succeed": False,
    }
    return {**made, **more}


FULL: Json = {"required": True, "expected_output": None, "postcondition": None, "timeout": None}


def plan(*steps: Json) -> Json:
    return {"context_understanding": "…", "description": "…", "task_type": "…", "steps": list(steps)}


def full(*steps: Json) -> Json:
    return plan(*(one | FULL for one in steps))


THOUGHT: Json = {
    "history_review": "…",
    "error_analysis": "…",
    "proposal": "…",
    "root_cause_category": "parameter_error",
    "root_cause": "…",
    "is_recoverable": True,
    "confidence": 80,
    "analysis": "…",
    "suggested_action": {"type": "retry_with_params", "data": {"values": [12.5]}},
    "alternative_solutions": ["…"],
}
OVERALL: Json = {
    **dict.fromkeys(("overview", "diagnosis", "improvements", "decision", "lessons"), "…"),
    "root_causes": ["…"],
    "incorrect_assumptions": [],
    "alternative_approaches": ["…"],
    "optimization_suggestions": [],
    "lessons_learned": ["…"],
    "completion_percent": 40,
    "problem_class": "tool",
    "repeated_failure": False,
    "should_replan": True,
    "replanning_strategy": {"type": "skip_steps", "step_ids": ["m"], "reason": "…"},
}


def test_plans_of_the_spec_fit() -> None:
    assert fits(plan(step()), schema("decompose", is_small=True))
    assert fits(full(step()), schema("decompose"))
    words = {"kind": "reasoning", "instruction": "Think."}
    thinking = {key: one for key, one in step(**words).items() if key not in ("tool_id", "parameters")}
    assert fits(plan(thinking), schema("decompose", is_small=True))


@pytest.mark.parametrize("wrong", [
    {"tool_id": "no_tool"}, {"parameters": {"values": "r.t"}}, {"parameters": {"other": "{{r.t}}"}},
    {"kind": "dream"}, {"step_id": "not an id"}, {"mood": "good"},
])  # fmt: skip
def test_other_plans_do_not(wrong: Json) -> None:
    assert not fits(plan(step(**wrong)), schema("decompose", is_small=True))
    assert not fits(plan(), schema("decompose", is_small=True))


def test_reflections_of_the_spec_fit() -> None:
    assert fits(THOUGHT, schema("step_reflection"))
    assert fits(OVERALL, schema("overall_reflection"))
    remediation = {**step(**FULL), "insert_before": "m", "insert_after": None, "target_parameters": {"values": "{{b}}"}}
    strategies: list[object] = [
        None,
        {"type": "full_replan"},
        {"type": "replan_from_step", "step_id": "m", "reason": "…"},
        {"type": "add_remediation_steps", "suggestions": [remediation, "convert the texts"]},
        {
            "type": "adjust_dependencies",
            "adjustments": [{"step_id": "p", "depends_on": ["r"], "parameters": {"channel": "#lab", "text": "x"}}],
        },
    ]
    for strategy in strategies:
        assert fits({**OVERALL, "replanning_strategy": strategy}, schema("overall_reflection")), strategy


@pytest.mark.parametrize("strategy", [
    {"type": "skip_steps", "step_ids": ["p"], "reason": "it must succeed"},
    {"type": "skip_steps", "step_ids": ["r"], "reason": "it is done"},
    {"type": "skip_steps", "step_ids": [], "reason": "none"},
    {"type": "replan_from_step", "step_id": "r", "reason": "it is done"},
    {"type": "adjust_dependencies", "adjustments": []}, {"type": "start_over"},
])  # fmt: skip
def test_strategies_that_the_engine_would_refuse_do_not(strategy: Json) -> None:
    assert not fits({**OVERALL, "replanning_strategy": strategy}, schema("overall_reflection"))


@pytest.mark.parametrize(
    ("action", "is_fit"),
    [
        (
            {
                "type": "retry_with_tool",
                "data": {"tool_id": "to_numbers", "parameters": {"values": [1], "decimal": None}},
            },
            True,
        ),
        ({"type": "trigger_overall_reflection", "data": "why"}, True),
        ({"type": "retry_with_tool", "data": {"tool_id": "mean", "parameters": {"values": [1]}}}, False),
        ({"type": "retry_with_params", "data": {}}, False),
        ({"type": "replan_entire_task", "data": "why"}, False),
    ],
)
def test_actions(action: Json, *, is_fit: bool) -> None:
    assert fits({**THOUGHT, "suggested_action": action}, schema("step_reflection")) is is_fit


def test_a_step_without_a_tool_is_retried_with_other_words() -> None:
    thinking = replace(STEPS[1], kind="reasoning", tool_id="", parameters={}, instruction="Think.")
    planning = planning_of(failed(thinking, "empty"))
    held = schema_for(state_of(), planning, "step_reflection", "m")
    data = {"instruction": "Think harder."}
    assert fits({**THOUGHT, "suggested_action": {"type": "retry_with_params", "data": data}}, held)
    assert "retry_with_tool" not in str(held)


def test_selections_of_the_seed_fit() -> None:
    chosen = {"selected_tool_ids": ["read_csv", "mean"], "task_type": "t", "selection_confidence": 85}
    assert fits({**chosen, "brief_reasoning": "…"}, schema("select_initial"))
    assert fits({**chosen, "selected_tool_ids": [], "brief_reasoning": "…"}, schema("select_initial"))
    assert not fits({**chosen, "selected_tool_ids": ["post"], "brief_reasoning": "…"}, schema("select_initial"))
    changes = {
        "kept_tools": ["mean"],
        "replaced_tools": [{"old": "read_csv", "new": "to_numbers", "reason": "…"}],
        "added_tools": [{"tool_id": "to_numbers", "reason": "…"}],
        "removed_tools": [],
    }
    again = {**chosen, "brief_reasoning": "…", "changes_from_previous": changes}
    assert fits(again, schema("select_corrective"))
    assert not fits({**again, "selected_tool_ids": []}, schema("select_corrective"))


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


def test_chapters_come_first_and_are_short() -> None:
    planning = escalated(config=SMALL)
    held = schema_for(state_of(CHINESE), planning, "overall_reflection")
    names = list(mapping(held["properties"]))
    assert names[:5] == ["overview", "diagnosis", "improvements", "decision", "lessons"]
    assert fits({**OVERALL, "overview": "好" * 240}, held)
    assert not fits({**OVERALL, "overview": "x" * 241}, held)
    of_step = mapping(schema("step_reflection")["properties"])
    assert list(of_step)[:3] == ["history_review", "error_analysis", "proposal"]


def test_many_tools_are_named_and_very_many_are_not() -> None:
    for count in (MOST_BRANCHES + 5, MOST_IDS + MOST_BRANCHES + 5):
        tools = Catalogue(tuple(tool(f"t{at}", "Does.", {"x": TEXT}) for at in range(count)))
        planning = changed(decomposing(), selected=tools.names)
        held = schema_for(state_of(tools=tools, is_small=True), planning, "decompose")
        last = step(tool_id=f"t{count - 1}", parameters={"x": "1", "y": [1]})
        assert fits(plan(last), held)
        assert not fits(plan(step(tool_id="t1", parameters={"x": "1", "y": [1]})), held) or count > MOST_IDS
        assert fits(plan(step(tool_id="other", parameters={})), held) is (count > MOST_IDS)


def test_a_tool_with_any_parameters_has_any() -> None:
    free = Catalogue((replace(tool("put", "Put.", {}), parameters={"type": "object", "additionalProperties": True}),))
    held = schema_for(state_of(tools=free), changed(decomposing(), selected=("put",)), "decompose")
    assert fits(full(step(tool_id="put", parameters={"a": 1, "b": ["x"]})), held)
    bare = Catalogue((tool("now", "The time.", {}),))
    held = schema_for(state_of(tools=bare), changed(decomposing(), selected=("now",)), "decompose")
    assert not fits(full(step(tool_id="now", parameters={"a": 1})), held)
    assert fits(full(step(tool_id="now", parameters={})), held)


def test_plan_of_a_single_step_that_must_succeed_has_no_skipping() -> None:
    only = planning_of(StepRecord(replace(STEPS[2], dependencies=())), done(STEPS[0], "x"))
    assert "skip_steps" not in str(schema_for(state_of(), changed(only, phase="running"), "overall_reflection"))
    assert prompt_for(state_of(), changed(only, phase="running"), "overall_reflection", "").schema
