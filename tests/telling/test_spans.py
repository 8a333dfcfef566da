"""A run as spans: what each is called, where it lies, when it was, and what it must not tell."""

import base64
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import orjson
import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from plan_kit import World, off, step
from span_runs import GOLDEN, MAKES, golden, way_of
from surefoot import Agent, MemoryJournal, tool
from surefoot.telemetry_names import SCHEMA_URL
from surefoot.telling.export import otlp
from surefoot.telling.span_records import MOST_BYTES, SpanRecord, nanoseconds, place_of
from surefoot.telling.spans import Spans, spans_of
from surefoot.testing.models import Scripted, ScriptedModel, calls
from surefoot.testing.world import overall, plan, reflects
from surefoot.tools.call import ToolFailed
from surefoot.types import events as e
from surefoot.types.errors import ModelUnreachable
from surefoot.types.messages import ModelMessage, NativeCall, Usage
from surefoot.types.plan import PlanStep
from surefoot.types.plan_events import ProposalMade
from surefoot.types.ports import Recorded, Tool
from surefoot.types.task import Task
from surefoot.types.tools import Catalogue

pytestmark = pytest.mark.anyio
AT = 1_790_000_000


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def store() -> MemoryJournal:
    made = MemoryJournal()
    for name, make in MAKES.items():
        await make(name, made)
    return made


async def records_of(store: MemoryJournal, name: str) -> Sequence[Recorded]:
    return (await store.read_recorded(name))[0]


async def records_made(*said: Scripted, tools: Sequence[Tool] = (), task: str | Task = "go") -> Sequence[Recorded]:
    """The records of a run in which the model says this."""
    store = MemoryJournal()
    await Agent(ScriptedModel(said), tools, journal=store).run(task, run_id="r")
    return await records_of(store, "r")


def own(records: Sequence[Recorded]) -> Sequence[e.Event]:
    """The events of a run that no other run tells, without the steps that they happened in."""
    at = max(record.seq for record in records if isinstance(record.event, e.RunStarted | e.RunForked))
    return [one.event.event if isinstance(one.event, e.InStep) else one.event for one in records[at:]]


def named(spans: Sequence[SpanRecord], start: str) -> list[SpanRecord]:
    return [span for span in spans if span.name.startswith(start)]


def parsed(spans: Sequence[SpanRecord]) -> ExportTraceServiceRequest:
    body = orjson.dumps(otlp(spans, {"service.name": "test"}))
    return json_format.Parse(body, ExportTraceServiceRequest())


def test_there_are_thirty_runs() -> None:
    assert len(MAKES) + len(GOLDEN) >= 30


@pytest.mark.parametrize("name", MAKES)
async def test_each_request_and_each_attempt_at_a_call_is_a_span_in_its_place(store: MemoryJournal, name: str) -> None:
    records = await records_of(store, name)
    spans = spans_of(records)
    events = own(records)
    run, by_id = spans[0], {span.span_id: span for span in spans}
    assert len(by_id) == len(spans)
    assert (run.trace_id, run.span_id) == place_of(name)
    assert {span.trace_id for span in spans} == {run.trace_id}
    assert not run.parent_id
    for span in spans[1:]:
        around = by_id[span.parent_id]
        assert span.end_s is not None
        assert around.end_s is not None
        assert around.start_s <= span.start_s <= span.end_s <= around.end_s, span.name
        assert around.name.split(" ")[0] in ("invoke_agent", "plan", "surefoot.step"), span.name
    asked = [one for one in events if isinstance(one, e.ModelReplied | e.ModelFailed)]
    asked += [one for one in events if isinstance(one, ProposalMade) and one.by == "model"]  # type: ignore[arg-type]
    assert len(named(spans, "chat ")) == len(asked)
    assert len(named(spans, "execute_tool ")) == sum(isinstance(one, e.CallStarted) for one in events)
    assert spans_of(records) == spans
    told = Spans()
    parts = {one.span_id: one for record in records for one in told.take(record)}
    parts |= {one.span_id: one for one in told.close()}
    assert {span.span_id: span for span in spans}.items() <= parts.items()


@pytest.mark.parametrize("name", MAKES)
async def test_spans_are_what_the_protocol_takes(store: MemoryJournal, name: str) -> None:
    spans = spans_of(await records_of(store, name), content=True)
    (resource,) = parsed(spans).resource_spans
    (scope,) = resource.scope_spans
    assert (scope.scope.name, scope.schema_url) == ("surefoot", SCHEMA_URL)
    for span, told in zip(spans, scope.spans, strict=True):
        # JSON of OTLP has hex where protobuf has base64
        assert base64.b64encode(told.trace_id).decode() == span.trace_id
        assert base64.b64encode(told.span_id).decode() == span.span_id
        assert base64.b64encode(told.parent_span_id).decode() == span.parent_id
        assert (told.name, told.kind) == (span.name, {"internal": 1, "client": 3}[span.kind])
        assert told.start_time_unix_nano == nanoseconds(span.start_s)
        assert told.end_time_unix_nano == nanoseconds(span.end_s or 0)
        assert {one.key for one in told.attributes} == set(span.attributes)
        assert (told.status.code == 2) == span.failed


def test_a_golden_journal_gives_the_same_spans_for_ever() -> None:
    (path,) = GOLDEN
    spans = spans_of(golden(path))
    assert {span.trace_id for span in spans} == {"a498b3e9c962862eaf1cb6bd75214864"}
    assert [(span.name, span.span_id, span.start_s - AT, (span.end_s or 0) - AT) for span in spans] == [
        ("invoke_agent", "e2da2db57a900c33", 10, 21), ("chat n", "ce795fa822d18b26", 10, 11),
        ("execute_tool send", "f46bee8a57855cce", 15, 15), ("chat n", "651eadf030e11512", 17, 18),
        ("chat n", "99927c8bed3d5296", 19, 20),
    ]  # fmt: skip
    assert spans[0].links == (place_of("golden"),)
    assert spans[2].attributes["surefoot.in_doubt"] is True
    assert not spans[2].failed
    judged, *_ = [event for event in spans[0].events if event.name == "surefoot.judged"]
    assert judged.attributes == {"surefoot.call": "2.1", "surefoot.rule": "policy", "surefoot.verdict": "ask"}
    assert parsed(spans).resource_spans[0].scope_spans[0].spans[0].links[0].trace_id


async def test_a_request_begins_when_it_was_made_and_ends_with_its_reply(store: MemoryJournal) -> None:
    records = await records_of(store, "reads side by side")
    replied = next(one for one in records if isinstance(one.event, e.ModelReplied))
    assert isinstance(replied.event, e.ModelReplied)
    chat = named(spans_of(records), "chat ")[0]
    assert replied.event.took_s > 0
    assert chat.end_s == replied.at
    assert chat.start_s == pytest.approx(max(records[0].at, replied.at - replied.event.took_s), abs=1e-6)
    first = (await records_of(store, "streamed"))[1].event
    assert isinstance(first, e.ModelReplied)
    assert 0 < first.first_s <= first.took_s


async def test_a_plan_holds_its_steps_and_they_hold_their_calls(store: MemoryJournal) -> None:
    spans = spans_of(await records_of(store, "a step is tried again with other parameters and with another tool"))
    by_id = {span.span_id: span for span in spans}
    (made,) = named(spans, "plan")
    assert made.attributes["surefoot.plan.version"] == 1
    steps = named(spans, "surefoot.step a")
    found = [(step.parent_id, step.attributes["surefoot.attempt"]) for step in steps]
    assert found == [(made.span_id, at) for at in (1, 2, 3)]
    assert [step.attributes.get("error.type") for step in steps] == ["parameter", "tool", None]
    assert [by_id[call.parent_id].name for call in named(spans, "execute_tool")] == ["surefoot.step a"] * 3
    proposals = [span.attributes["surefoot.proposal"] for span in named(spans, "chat ")]
    assert proposals == ["decompose", *["step_reflection"] * 3]


async def test_a_run_that_stood_still_says_for_how_long(store: MemoryJournal) -> None:
    records = await records_of(store, "a doubt, settled twice")
    run, *others = spans_of(records)
    assert Counter(event.name for event in run.events)["surefoot.paused"] == 2
    calls = named(others, "execute_tool")
    assert [call.attributes["surefoot.attempt"] for call in calls] == [1, 2]
    assert all(call.attributes.get("surefoot.in_doubt") and not call.failed for call in calls)
    settled = [event.attributes for event in run.events if event.name == "surefoot.settled"]
    assert [one["surefoot.verdict"] for one in settled] == ["not_done", "done"]
    assert {one["surefoot.by"] for one in settled} == {"Ada"}


async def test_a_call_that_was_under_way_when_others_took_over_is_broken_off() -> None:
    @tool(effect="read")
    def add(a: int) -> int:
        """Add one."""
        return a + 1

    events = [one.event for one in await records_made(calls(("add", {"a": 1})), "done", tools=[add])]
    at = next(n for n, one in enumerate(events) if isinstance(one, e.CallStarted))
    again = replace(events[at], attempt=2)  # type: ignore[type-var]  # it is a dataclass
    told = [*events[: at + 1], e.DriverChanged("another", 2), again, *events[at + 1 :]]
    records = [Recorded(seq, AT + 10.0 * seq, "", event) for seq, event in enumerate(told)]
    first, second = (one for one in spans_of(records) if one.name == "execute_tool add")
    assert first.attributes["surefoot.interrupted"]
    assert (first.end_s, second.attributes["surefoot.attempt"]) == (AT + 10.0 * at, 2)
    assert [one.name for span in spans_of(records) for one in span.events].count("surefoot.paused") == 1


async def test_a_run_that_waits_is_paused_and_the_run_of_an_agent_can_lie_under_its_call(store: MemoryJournal) -> None:
    spans = spans_of(await records_of(store, "an agent that waits"))
    assert spans[0].attributes["surefoot.run.status"] == "paused"
    (call,) = named(spans, "execute_tool")
    assert call.attributes["surefoot.inner.run.id"] == "an agent that waits.1.0"
    inner = spans_of(await records_of(store, "an agent that waits.1.0"), under=(call.trace_id, call.span_id))
    assert {span.trace_id for span in inner} == {call.trace_id}
    assert inner[0].parent_id == call.span_id


async def test_steps_that_were_given_hold_what_is_done_in_them() -> None:
    @tool(effect="read")
    async def look(q: str) -> str:
        """Look."""
        raise ToolFailed(f"no {q}")

    steps = (PlanStep("a", kind="agent", instruction="look"), PlanStep("b", tool_id="look", parameters={"q": "x"}))
    task = Task("go", steps=steps)
    spans = spans_of(await records_made(calls(("look", {"q": "y"})), "one", tools=[look], task=task))
    by_id = {span.span_id: span for span in spans}
    ways = ["/".join(way_of(span, by_id)) for span in spans]
    assert ways == [
        "invoke_agent", "invoke_agent/surefoot.step a", "invoke_agent/surefoot.step a/chat scripted",
        "invoke_agent/surefoot.step a/execute_tool look", "invoke_agent/surefoot.step a/chat scripted",
        "invoke_agent/surefoot.step b", "invoke_agent/surefoot.step b/execute_tool look",
    ]  # fmt: skip
    assert [span.failed for span in spans] == [True, False, False, True, False, True, True]


async def test_text_that_is_not_valid_unicode_can_be_sent() -> None:
    assert "half ?" in str(parsed(spans_of(await records_made("done", task="half \ud83d"), content=True)))


async def test_a_failure_is_told_by_its_kind() -> None:
    records = await records_made()
    run, chat = spans_of(records)
    assert (run.failed, run.message, run.attributes["error.type"]) == (True, "", "bad_request")
    assert (chat.failed, chat.message, chat.attributes["error.type"]) == (True, "", "bad_request")
    _, chat = spans_of(records, content=True)
    assert "at its end" in chat.message


CANARY = "Kanarienvogel 7Q"
"""It stands in whatever a user, a model or a tool writes."""


async def sung() -> MemoryJournal:
    """A journal in which every text has the canary in it: of a plain run, and of one with a plan."""

    @tool(effect="read", description=CANARY)
    async def look(q: str) -> str:
        """Look."""
        return f"{CANARY} {q}"

    @tool
    async def fail(q: str) -> str:
        """Fail."""
        raise ValueError(f"{CANARY} {q}")

    store = MemoryJournal()
    reply = ModelMessage(
        "assistant",
        CANARY,
        tuple(NativeCall(f"{CANARY}{name}", name, {"q": CANARY}) for name in ("look", "fail", CANARY)),
        reasoning=CANARY,
        usage=Usage(1, 1),
        id=CANARY,
    )
    agent = Agent(ScriptedModel([reply, CANARY]), [look, fail], CANARY, journal=store)
    await agent.run(Task(CANARY), run_id="plain")
    one, other = step("a", "look", q=CANARY), step("b", "find", ["a"], q=CANARY)
    given = {**plan(one, other), "description": CANARY}
    world = World({f"find {CANARY} False": ValueError(CANARY)})
    said = [given, reflects("trigger_overall_reflection", CANARY), overall("skip_steps", step_ids=["b"], reason=CANARY)]
    await world.agent(*said, config=off(), store=store).run(CANARY, run_id="planned")
    failing = ScriptedModel([ModelUnreachable(CANARY)])
    await Agent(failing, journal=store).run(CANARY, run_id="failed")
    return store


async def test_no_word_that_somebody_wrote_is_told_unless_it_is_asked_for() -> None:
    store = await sung()
    for run_id in ("plain", "planned", "failed"):
        records = await records_of(store, run_id)
        assert CANARY in str(records)
        assert CANARY.encode() not in orjson.dumps(otlp(spans_of(records), {}))
        assert CANARY.encode() in orjson.dumps(otlp(spans_of(records, content=True), {}))


async def test_a_text_is_told_up_to_a_limit() -> None:
    @tool(effect="read")
    async def look() -> str:
        """Look."""
        return "ä" * 10_000

    spans = spans_of(await records_made(calls(("look", {})), "done", tools=[look]), content=True)
    result = str(named(spans, "execute_tool")[0].attributes["gen_ai.tool.call.result"])
    assert len(result.encode()) <= MOST_BYTES + len("…".encode())
    assert result.startswith("ää")
    said = orjson.loads(str(spans[0].attributes["gen_ai.output.messages"]))
    assert said == [{"role": "assistant", "parts": [{"type": "text", "content": "done"}], "finish_reason": "stop"}]


def chat_of(model: str) -> SpanRecord:
    started = e.RunStarted("r", Task("t"), {"solo": e.Speaker(model)}, Catalogue(), {})
    failed = e.ModelFailed("timeout", "")
    return spans_of([Recorded(at, float(at), "", event) for at, event in enumerate((started, failed))])[1]


@pytest.mark.parametrize(
    ("model", "name", "provider", "kind"),
    [
        ("openai:gpt-5.1-mini", "chat gpt-5.1-mini", "openai", "client"),
        ("gemini:gemini-2.5-flash", "chat gemini-2.5-flash", "gcp.gemini", "client"),
        ("ollama:qwen3:8b", "chat qwen3:8b", "ollama", "client"),
        ("local:qwen3", "chat qwen3", "local", "internal"),
        ("local", "chat local", "local", "internal"),
        ("http://me:secret@host:8000/v1?key=secret#m", "chat m", "openai", "client"),
        ("http://me:secret@host:8000/v1", "chat default", "openai", "client"),
    ],
)
def test_a_model_is_told_by_provider_and_name_and_never_by_address(
    model: str, name: str, provider: str, kind: str
) -> None:
    span = chat_of(model)
    assert (span.name, span.kind, span.attributes["gen_ai.provider.name"]) == (name, kind, provider)
    assert "secret" not in str(span)
