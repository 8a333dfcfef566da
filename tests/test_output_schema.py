"""An answer in the shape that was asked for: one correction, then the run has failed."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from cases import cases
from surefoot import Agent, Budget, LoopConfig
from surefoot.testing.models import Scripted, ScriptedModel, calls
from surefoot.types.messages import CallMode

pytestmark = pytest.mark.anyio

SHAPE: Mapping[str, object] = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
    "additionalProperties": False,
}
GOOD, BAD = '{"sum": 171}', '{"sum": "many"}'


def delivered(output: str) -> str:
    return f"<deliverable>\n<final_output>{output}</final_output>\n</deliverable>\nTASK_DONE"


def agent_of(
    script: Sequence[Scripted], reasoner: str = "react", mode: CallMode = "native", **config: Any
) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(script, modes=(mode,))
    return Agent(model, reasoner=reasoner, config=LoopConfig(output_schema=SHAPE, **config)), model


@cases("output_schema")
async def test_another_shape_is_corrected_once(reasoner: str, mode: CallMode, good: str, bad: str) -> None:
    agent, model = agent_of([bad, good], reasoner, mode)
    run = await agent.run("add up")
    assert run.status == "completed"
    assert '"sum": 171' in run.deliverable.output
    assert "does not have the shape" in model.requests[1].messages[-1].content
    assert '"sum":{"type":"integer"}' in model.requests[0].system
    agent, _ = agent_of([bad, bad, good], reasoner, mode)
    run = await agent.run("add up")
    assert (run.status, run.reason, run.answer) == ("failed", "output_schema", "")
    assert run.detail


async def test_references_lead_into_the_schema_and_whole_numbers_are_exact() -> None:
    of = {"sum": {"type": "integer", "maximum": 2**80}, "parts": {"items": {"$ref": "#"}}}
    tree = {"type": "object", "properties": of, "required": ["sum"]}
    part = {"type": "object", "properties": {"sum": {"type": "integer"}}}
    listed = {"type": "object", "properties": {"parts": {"items": {"$ref": "#/definitions/Part"}}}}
    for schema, good, bad in (
        (tree, f'{{"sum": {2**70}, "parts": [{{"sum": 1}}]}}', '{"sum": 1, "parts": [{}]}'),
        ({**listed, "definitions": {"Part": part}}, '{"parts": [{"sum": 1}]}', '{"parts": [{"sum": "many"}]}'),
    ):
        run = await Agent(ScriptedModel([bad, good]), output=schema).run("add up")
        assert (run.requests, run.output) == (2, json.loads(good))


async def test_in_schema_mode_the_answer_is_held_to_the_shape() -> None:
    step = f'{{"thought": "t", "action": "Final Answer", "action_input": {GOOD}}}'
    agent, model = agent_of([step], mode="schema")
    assert (await agent.run("add up")).answer == GOOD
    assert "'sum': {'type': 'integer'}" in str(model.requests[0].schema)


async def test_a_deliverable_in_schema_mode_carries_it_as_json() -> None:
    parts = f'{{"task_objective": "a", "task_context": "b", "key_reasoning_points": "c", "final_output": {GOOD}}}'
    step = f'{{"thought": "t", "action": "Final Answer", "action_input": {parts}}}'
    agent, _ = agent_of([step], "mono", "schema", deliverable="required")
    run = await agent.run("add up")
    assert (run.status, run.deliverable.output) == ("completed", '{"sum":171}')


async def test_reports_of_an_actor_have_no_shape_and_what_it_delivers_has() -> None:
    thinker = ScriptedModel(["<instruction>add up</instruction>", "TASK_DONE"], modes=("text",))
    actor = ScriptedModel(["I have added up.", delivered(BAD), delivered(GOOD)])
    agent = Agent({"thinker": thinker, "actor": actor}, reasoner="dual", config=LoopConfig(output_schema=SHAPE))
    run = await agent.run("add up")
    assert (run.status, run.deliverable.output, run.requests) == ("completed", GOOD, 5)
    assert "JSON that fits" not in thinker.requests[0].system


@cases("output_schema")
async def test_the_shape_holds_at_a_limit_too(last: str, ending: tuple[str, str, str]) -> None:
    agent, _ = agent_of([calls(("nope", {})), last], budget=Budget(max_steps=2))
    run = await agent.run("add up")
    assert (run.status, run.reason, run.answer) == ending
    assert ("(steps)" in run.detail) == (run.status == "failed")


async def test_more_corrections_can_be_asked_for() -> None:
    wrong = [f'{{"sum": "{word}"}}' for word in ("none", "some", "many")]
    agent, model = agent_of([*wrong, GOOD], output_repairs=3)
    run = await agent.run("add up")
    assert (run.status, run.answer, len(model.requests)) == ("completed", GOOD, 4)
