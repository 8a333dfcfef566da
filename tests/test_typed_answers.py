"""An answer of a type: `Agent(output=…)` gives values in every call mode, the same however a run is taken up."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, assert_type

import pytest
from pydantic import BaseModel, field_validator
from typing_extensions import TypedDict

from cases import cases
from plan_kit import step
from records import events_of
from surefoot import Agent, Budget, LoopConfig, MemoryJournal, NoAnswer, PlanStep, Run, Task, UsageError, tool
from surefoot.core.parse.validate import Validator
from surefoot.core.view.shape import FINISH
from surefoot.runtime.output import shape_of
from surefoot.testing.models import FunctionModel, Scripted, ScriptedModel, calls
from surefoot.testing.world import plan
from surefoot.types.messages import CallMode, ModelMessage, ModelRequest
from surefoot.types.ports import Tool

pytestmark = pytest.mark.anyio


class Stop(BaseModel):
    city: str
    nights: int = 1


class Trip(BaseModel):
    """A way through several cities."""

    stops: list[Stop]
    start: date

    @field_validator("stops")
    @classmethod
    def some(cls, stops: list[Stop]) -> list[Stop]:
        if len(stops) == 1:
            raise ValueError("one stop makes no trip")
        return stops


@dataclass
class Point:
    x: int
    y: float


class Note(TypedDict):
    text: str


ROME, OSLO = {"city": "Rome", "nights": 2}, {"city": "Oslo"}
TRIP: Mapping[str, object] = {"stops": [ROME, OSLO], "start": "2026-05-01"}
VALUE = Trip(stops=[Stop(city="Rome", nights=2), Stop(city="Oslo")], start=date(2026, 5, 1))
SHORT: Mapping[str, object] = {"stops": [ROME], "start": "2026-05-01"}
LATE: Mapping[str, object] = {"stops": [ROME, OSLO], "start": "tomorrow"}
SCHEMA: Mapping[str, object] = {"type": "array", "items": {"type": "integer"}, "minItems": 2}


@tool(effect="read")
def distance(city: str) -> str:
    return f"{city}: 900 km"


def finish(value: Mapping[str, object]) -> ModelMessage:
    return calls((FINISH, value))


def delivered(output: str) -> str:
    return f"<deliverable>\n<final_output>{output}</final_output>\n</deliverable>\nTASK_DONE"


def step_of(answer: object) -> Scripted:
    return {"thought": "t", "action": "Final Answer", "action_input": answer}


async def run_of(
    *said: Scripted | FunctionModel,
    tools: Sequence[Tool] = (),
    mode: CallMode = "native",
    task: str | Task = "go",
    **options: Any,
) -> tuple[Run, Sequence[ModelRequest]]:
    """A run that replays, of an agent that answers with a `Trip` if it is not told otherwise, and its requests."""
    given = said[0] if isinstance(said[0], FunctionModel) else None
    model = given or ScriptedModel([one for one in said if not isinstance(one, FunctionModel)], modes=(mode,))
    store = MemoryJournal()
    options.setdefault("output", Trip)
    run = await Agent(model, tools, journal=store, **options).run(task)
    await events_of(store, run.id)
    return run, model.requests


@pytest.mark.parametrize(
    ("output", "answer", "value"),
    [
        (Trip, TRIP, VALUE),
        (Point, {"x": 1, "y": 2}, Point(1, 2.0)),
        (Note, {"text": "hello"}, {"text": "hello"}),
        (list[Stop], {"result": [ROME]}, [Stop(city="Rome", nights=2)]),
        (int, {"result": 171}, 171),
        (Stop | None, {"result": None}, None),
        (SCHEMA, {"result": [1, 2]}, [1, 2]),
        ({"type": "object"}, {"any": None}, {"any": None}),
    ],
)
@pytest.mark.parametrize("mode", ["native", "schema", "text"])
async def test_each_type_is_given_in_each_mode(
    output: Any,  # any type is the case
    answer: Mapping[str, object],
    value: object,
    mode: CallMode,
) -> None:
    written = json.dumps(answer)
    replies = {"native": finish(answer), "schema": step_of(answer), "text": f"Final Answer: {written}"}
    run, _ = await run_of(replies[mode], mode=mode, output=output)
    assert (run.status, run.output) == ("completed", value)


@pytest.mark.parametrize("output", [None, str])
async def test_without_a_type_the_output_is_the_text(output: type[str] | None) -> None:
    assert (await run_of("171", output=output))[0].output == "171"


@pytest.mark.parametrize(
    ("traits", "tools", "is_held"),
    [
        ({"json_schema": "yes", "answer_schema": "beside_tools"}, [distance], True),
        ({"json_schema": "yes"}, [distance], False),
        ({"json_schema": "yes"}, [], True),
        ({}, [distance], False),
        ({}, [], False),
    ],
)
async def test_a_wire_that_holds_replies_is_given_the_schema_and_others_a_tool(
    traits: Mapping[str, str], tools: Sequence[Tool], is_held: bool
) -> None:
    model = FunctionModel(lambda _: json.dumps(TRIP), modes=("native",), traits=traits)
    run, (asked,) = await run_of(model, tools=tools)
    assert run.output == VALUE
    assert (asked.schema is not None, FINISH in asked.tools.names) == (is_held, not is_held)


async def test_an_answer_beside_another_call_does_not_count() -> None:
    both = calls((FINISH, SHORT), ("distance", {"city": "Rome"}))
    run, asked = await run_of(both, finish(TRIP), tools=[distance])
    assert (run.output, run.calls) == (VALUE, 1)
    assert "answer after the results" in asked[1].messages[-1].content


@cases("typed_answers")
@pytest.mark.parametrize("is_called", [True, False])
async def test_what_the_type_refuses_is_told_and_asked_for_again(
    bad: Mapping[str, object], told: str, *, is_called: bool
) -> None:
    said = finish(bad) if is_called else json.dumps(bad)
    run, asked = await run_of(said, finish(TRIP))
    assert run.output == VALUE
    *_, before, last = asked[1].messages
    assert told in last.content
    assert "Rome" in before.content or "3" in before.content
    run, _ = await run_of(said, said)
    assert (run.status, run.reason, run.answer) == ("failed", "output_schema", "")
    assert told in run.detail
    with pytest.raises(NoAnswer, match=told):
        _ = run.output


async def test_a_call_for_the_answer_that_can_be_read_is_not_cut() -> None:
    run, _ = await run_of(replace(finish(TRIP), finish_reason="length"))
    assert (run.status, run.output) == ("completed", VALUE)


async def test_a_run_keeps_its_output_however_it_is_taken_up() -> None:
    store, said = MemoryJournal(), [finish(one) for one in (SHORT, SHORT, TRIP, TRIP)]
    agent = Agent(ScriptedModel(said, modes=("native",)), output=Trip, journal=store)
    run = await agent.run("plan it")
    assert run.status == "failed"
    for _ in range(2):
        assert (await agent.resume(run.id)).output == VALUE
    await events_of(store, run.id)
    assert (await agent.fork(run.id, 1)).output == VALUE
    untyped = Agent(ScriptedModel([finish(SHORT)], modes=("native",)), journal=store)
    assert (await untyped.fork(run.id, 1)).answer  # its shape is on record, its type is not


async def test_a_run_that_was_begun_without_the_type_takes_it_when_it_is_taken_up() -> None:
    store = MemoryJournal()
    run = await Agent(ScriptedModel(["Rome, then Oslo."], modes=("native",)), journal=store).run("plan it")
    agent = Agent(ScriptedModel([finish(TRIP)], modes=("native",)), output=Trip, journal=store)
    with pytest.raises(NoAnswer, match="does not fit this agent's output"):
        _ = (await agent.resume(run.id)).output
    assert (await agent.fork(run.id, 1)).output == VALUE


@pytest.mark.parametrize("mode", ["native", "schema"])
async def test_the_answer_of_a_given_plan_has_its_type(mode: CallMode) -> None:
    think = PlanStep("think", kind="reasoning", instruction="Think.")
    task = Task("Go.", steps=(think, PlanStep("say", kind="response", instruction="Say.")))
    written: Scripted = step_of(TRIP) if mode == "schema" else dict(TRIP)
    assert (await run_of("Rome.", written, mode=mode, task=task))[0].output == VALUE
    run, _ = await run_of(FunctionModel(lambda _: "Rome.", modes=(mode,)), task=task)
    assert (run.status, run.reason, run.detail[:13]) == ("failed", "output_schema", "it is no JSON")


@pytest.mark.parametrize(("last", "ending"), [(SHORT, ("failed", "output_schema")), (TRIP, ("completed", ""))])
async def test_a_plan_that_repairs_itself_is_held_to_the_type(
    last: Mapping[str, object], ending: tuple[str, str]
) -> None:
    made = plan(step("far", "distance", city="Rome"))
    run, asked = await run_of(made, json.dumps(SHORT), json.dumps(last), tools=[distance], reasoner="plan")
    assert (run.status, run.reason) == ending
    assert ("one stop makes no trip" in run.detail) == (run.status == "failed")
    assert "stops: one stop makes no trip" in asked[-1].messages[-1].content


@pytest.mark.parametrize("reasoner", ["mono", "dual"])
async def test_a_deliverable_has_the_type_of_its_final_output(reasoner: str) -> None:
    said = [delivered(json.dumps(one)) for one in (SHORT, TRIP)]
    thinker = ScriptedModel(["<instruction>plan it</instruction>", "TASK_DONE"], modes=("text",))
    actor = ScriptedModel(["I have planned it."] * (reasoner == "dual") + said)
    model = {"thinker": thinker, "actor": actor} if reasoner == "dual" else actor
    store = MemoryJournal()
    run = await Agent(model, output=Trip, reasoner=reasoner, journal=store).run("plan it")
    assert (run.status, run.output) == ("completed", VALUE)
    assert "one stop makes no trip" in "".join(one.content for one in actor.requests[-1].messages[-2:])
    assert FINISH not in actor.requests[-1].tools.names
    await events_of(store, run.id)


async def test_a_finish_tool_of_ones_own_gives_what_was_asked_for() -> None:
    @tool(finish=True, name=FINISH)
    def done(sum: int) -> int:  # noqa: A002  # the field's name
        return sum

    schema = {"type": "object", "properties": {"sum": {"type": "integer", "minimum": 9}}, "required": ["sum"]}
    said, config = [finish({"sum": number}) for number in (1, 171)], LoopConfig(output_schema=schema)
    run, asked = await run_of(*said, tools=[done], output=None, config=config)
    assert (run.status, run.answer, run.calls) == ("completed", '{"sum":171}', 2)
    assert "must be at least 9" in asked[1].messages[-1].content


async def test_a_nested_type_leads_its_references_to_the_root_of_a_step() -> None:
    run, asked = await run_of(step_of(TRIP), tools=[distance], mode="schema")
    assert run.output == VALUE
    schema = asked[0].schema or {}
    assert "Stop" in str(schema["$defs"])
    assert "'$defs':" not in str(schema["anyOf"])


_NODE: dict[str, object] = {
    "type": "object",
    "properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}},
    "required": ["n"],
}
_TREE: dict[str, object] = {"type": "array", "items": {"anyOf": [{"$ref": "#"}, {"type": "integer"}]}, "minItems": 1}
_ROOTS: list[tuple[dict[str, object], object, object]] = [
    (_NODE, {"n": 1, "next": {"n": "x"}}, {"n": 1, "next": {"n": 2, "next": {"n": 3}}}),
    (_TREE, {"result": [1, [2, []]]}, {"result": [1, [2, [3]]]}),
    ({"anyOf": [_TREE, {"type": "null"}]}, {"result": [[1], ["x"]]}, {"result": [[1], None]}),
]


@pytest.mark.parametrize("mode", ["native", "schema"])
@pytest.mark.parametrize(("shape", "bad", "good"), _ROOTS)
async def test_a_shape_that_leads_to_its_own_root_does_so_wherever_it_is_put(
    mode: CallMode, shape: dict[str, object], bad: object, good: object
) -> None:
    said = [json.dumps(one) if mode == "native" else step_of(one) for one in (bad, good)]
    run, _ = await run_of(*said, tools=[distance], mode=mode, output=shape)
    assert (run.status, run.requests, json.loads(run.answer)) == ("completed", 2, good)


def test_what_cannot_work_is_told_before_a_run() -> None:
    @tool(finish=True)
    def done(answer: str) -> str:
        return answer

    model = ScriptedModel(["x"])
    with pytest.raises(UsageError, match="no JSON Schema"):
        Agent(model, output=object())  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]  # the mistake is the case
    with pytest.raises(UsageError, match='output: not a valid JSON Schema, at properties/x/type: "strnig" is not'):
        Agent(model, output={"type": "object", "properties": {"x": {"type": "strnig"}}})
    with pytest.raises(UsageError, match="given twice"):
        Agent(model, output=Trip, config=LoopConfig(output_schema=SCHEMA))
    with pytest.raises(UsageError, match="'done' gives the answer"):
        Agent(model, [done], output=Trip)


class Node(BaseModel):
    name: str
    below: list["Node"] = []


@pytest.mark.parametrize("mode", ["native", "schema"])
async def test_a_type_that_holds_itself_is_an_object_like_any_other(mode: CallMode) -> None:
    value: dict[str, object] = {"name": "a", "below": [{"name": "b", "below": []}]}
    said: Scripted = json.dumps(value) if mode == "native" else step_of(value)
    run, _ = await run_of(said, tools=[distance], mode=mode, output=Node)
    assert run.output == Node(name="a", below=[Node(name="b")])
    shape = shape_of(Node)
    assert shape is not None
    assert shape(json.dumps({"result": value})) == run.output  # as journals have it from before


def test_what_is_asked_for_beside_a_reference_is_asked_for_as_well() -> None:
    base = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    more = {"properties": {"b": {"type": "string"}}, "required": ["b"]}
    shape = shape_of({"$ref": "#/$defs/Base", "$defs": {"Base": base}, **more})
    assert shape is not None
    checked = Validator(shape.schema)
    given = ({"a": 1, "b": "x"}, {"b": "x"}, {"a": 1})
    assert [bool(checked.faults({"result": one})) for one in given] == [False, True, True]


async def test_a_check_of_the_type_that_breaks_is_named() -> None:
    class Odd(BaseModel):
        x: int

        @field_validator("x")
        @classmethod
        def known(cls, x: int) -> int:
            return {1: 2}[x]

    run, _ = await run_of('{"x": 7}', '{"x": 7}', output=Odd)
    assert (run.reason, run.detail) == ("output_schema", "KeyError: 7")


async def test_each_turn_of_a_conversation_has_the_type() -> None:
    store = MemoryJournal()
    model = ScriptedModel([finish(SHORT), finish(TRIP), finish(SHORT), finish(TRIP)], modes=("native",))
    chat = Agent(model, [distance], output=Trip, journal=store).chat("trip")
    for _ in range(2):  # each with corrections of its own
        run = await chat.send("plan it")
        assert_type(run.output, Trip)
        assert run.output == (await chat.last()).output == VALUE
        await events_of(store, run.id)
    assert model.requests[3].messages[: len(model.requests[2].messages)] == model.requests[2].messages
    untyped = await Agent(ScriptedModel(["Bon voyage."]), journal=store).run("say goodbye", history=chat)
    assert untyped.output == "Bon voyage."


async def test_each_of_many_tasks_has_the_type() -> None:
    agent = Agent(FunctionModel(lambda _: finish(TRIP), modes=("native",)), output=Trip)
    found: list[Trip] = [run.output async for run in agent.map(["one", "two"])]
    assert found == [VALUE, VALUE]


async def test_a_type_checker_knows_the_output() -> None:
    def script() -> ScriptedModel:
        return ScriptedModel([finish(TRIP)], modes=("native",))

    agent = Agent(script(), [distance], output=Trip)
    assert_type(agent, Agent[Trip])
    run = await agent.run("plan it")
    assert_type(run, Run[Trip])
    assert_type(run.output, Trip)
    assert_type(Agent(script(), output=list[Stop]), Agent[list[Stop]])
    assert_type(Agent(script(), output=Point), Agent[Point])
    assert_type(Agent[Trip | None](script(), output=Trip | None), Agent[Trip | None])
    assert_type(Agent(script(), output=Note), Agent[Note])
    assert_type(Agent(script(), output=SCHEMA), Agent[Any])
    assert_type(Agent(script()), Agent[Any])
    assert_type(distance("Rome"), str)


def test_the_type_of_the_output_is_known_without_a_run() -> None:
    run = Run[Trip]("r", "failed", reason="stuck")
    with pytest.raises(NoAnswer, match="stuck"):
        _ = run.output
    assert isinstance(Agent[Trip](ScriptedModel([]), output=Trip), Agent)


# a shape that is on record alone: one correction, then the run has failed


SHAPE: Mapping[str, object] = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
    "additionalProperties": False,
}
GOOD, BAD = '{"sum": 171}', '{"sum": "many"}'


def shaped(**config: Any) -> dict[str, Any]:
    return {"output": None, "config": LoopConfig(output_schema=SHAPE, **config)}


@cases("output_schema")
async def test_another_shape_is_corrected_once(reasoner: str, mode: CallMode, good: str, bad: str) -> None:
    run, asked = await run_of(bad, good, reasoner=reasoner, mode=mode, **shaped())
    assert run.status == "completed"
    assert '"sum": 171' in run.deliverable.output
    assert "does not have the shape" in asked[1].messages[-1].content
    assert '"sum":{"type":"integer"}' in asked[0].system
    run, _ = await run_of(bad, bad, good, reasoner=reasoner, mode=mode, **shaped())
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
        run, _ = await run_of(bad, good, output=schema)
        assert (run.requests, run.output) == (2, json.loads(good))


async def test_in_schema_mode_the_answer_is_held_to_the_shape() -> None:
    run, asked = await run_of(step_of(json.loads(GOOD)), mode="schema", **shaped())
    assert run.answer == GOOD
    assert "'sum': {'type': 'integer'}" in str(asked[0].schema)
    parts = dict.fromkeys(("task_objective", "task_context", "key_reasoning_points"), "a")
    said = step_of({**parts, "final_output": json.loads(GOOD)})
    run, _ = await run_of(said, reasoner="mono", mode="schema", **shaped(deliverable="required"))
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
    run, _ = await run_of(calls(("nope", {})), last, **shaped(budget=Budget(max_steps=2)))
    assert (run.status, run.reason, run.answer) == ending
    assert ("(steps)" in run.detail) == (run.status == "failed")


async def test_more_corrections_can_be_asked_for() -> None:
    wrong = [f'{{"sum": "{word}"}}' for word in ("none", "some", "many")]
    run, asked = await run_of(*wrong, GOOD, **shaped(output_repairs=3))
    assert (run.status, run.answer, len(asked)) == ("completed", GOOD, 4)
