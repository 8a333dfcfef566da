"""Runs as they go on, seen by the SDK of OpenTelemetry: the same spans as an export makes, figures, and no cost."""

import ast
import asyncio
import logging
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from house import SOURCE
from plan_kit import store_of
from records import until
from span_runs import MAKES, way_of
from surefoot import Agent, MemoryJournal, tool
from surefoot.telemetry import Live, has_provider, traced
from surefoot.telemetry_names import CONTENT_VARIABLE, SCHEMA_URL
from surefoot.telling.span_records import SpanRecord, place_of
from surefoot.telling.spans import spans_of
from surefoot.testing.models import ScriptedModel, calls
from surefoot.tools.mcp.config import McpServer
from surefoot.tools.web import web_fetch_tool
from surefoot.types.events import CallEnded, RunForked, RunResumed
from surefoot.worker import Worker
from tools.served import serving

pytestmark = pytest.mark.anyio

AGAIN = ("invoke_agent", "plan", "surefoot.step")  # spans that begin anew with each drive


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """The spans that an application with a provider sees."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield exporter
    provider.shutdown()


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryMetricReader]:
    """The figures that it sees."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr("opentelemetry.metrics._internal._METER_PROVIDER", provider)
    yield reader
    provider.shutdown()


def points_of(figures: InMemoryMetricReader) -> Mapping[str, list[Any]]:  # Any: a point is one of several classes
    data = figures.get_metrics_data()
    scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
    return defaultdict(list, {one.name: list(one.data.data_points) for scope in scopes for one in scope.metrics})


def record_of(span: ReadableSpan) -> SpanRecord:
    """A span of the SDK as we write them."""
    place, parent = span.context, span.parent
    assert place is not None
    assert span.start_time is not None
    assert span.end_time is not None
    return SpanRecord(
        f"{place.trace_id:032x}",
        f"{place.span_id:016x}",
        f"{parent.span_id:016x}" if parent is not None else "",
        span.name,
        "client" if span.kind is trace.SpanKind.CLIENT else "internal",
        span.start_time / 1e9,
        span.end_time / 1e9,
        dict(span.attributes or {}),  # type: ignore[arg-type]  # of the types that we give
        message=span.status.description or "",
    )


def told(spans: Mapping[str, SpanRecord], *, again: bool) -> Counter[object]:
    """What spans tell beside ids and times; `again`: also those that begin anew with each drive."""
    return Counter(
        (way_of(span, spans), span.kind, span.message, tuple(sorted(span.attributes.items(), key=str)))
        for span in spans.values()
        if again or not span.name.startswith(AGAIN)
    )


def finished(seen: InMemorySpanExporter) -> dict[str, SpanRecord]:
    records = [record_of(span) for span in seen.get_finished_spans()]
    return {record.span_id: record for record in records}


async def exported(store: MemoryJournal, run_id: str) -> dict[str, SpanRecord]:
    """What an export makes of a run and those of the agents that it has asked."""
    spans = {span.span_id: span for span in spans_of((await store.read_recorded(run_id))[0])}
    for call in [*spans.values()]:
        if inner := str(call.attributes.get("surefoot.inner.run.id", "")):
            records, _ = await store.read_recorded(inner)
            spans |= {one.span_id: one for one in spans_of(records, under=(call.trace_id, call.span_id))}
    return spans


@pytest.mark.parametrize("name", [name for name in MAKES if name not in ("a crash", "cancelled by a person")])
async def test_a_run_that_is_watched_gives_the_spans_of_its_export(seen: InMemorySpanExporter, name: str) -> None:
    store = MemoryJournal()
    await MAKES[name](name, store)
    live, at_once = finished(seen), await exported(store, name)
    events = [record.event for record in (await store.read_recorded(name))[0]]
    drives = 1 + sum(isinstance(event, RunResumed) for event in events)
    parents = [event.parent for event in events if isinstance(event, RunForked)]
    others = [span for parent in parents for span in (await exported(store, parent)).values()]
    before = {span.span_id: span for span in others}
    assert told(live, again=drives == 1) == told(at_once, again=drives == 1) + told(before, again=drives == 1)
    runs = [span for span in live.values() if span.attributes.get("surefoot.run.id") == name]
    (run,) = [span for span in at_once.values() if span.attributes.get("surefoot.run.id") == name]
    assert len(runs) == drives
    assert max(runs, key=lambda span: span.start_s).attributes == run.attributes
    for span in live.values():
        twins = [one for one in at_once.values() if (one.name, one.attributes) == (span.name, span.attributes)]
        if drives == 1 and len(twins) == 1:
            assert span.start_s == pytest.approx(twins[0].start_s, abs=0.5)
            assert span.end_s == pytest.approx(twins[0].end_s, abs=0.5)


async def test_what_a_process_died_over_is_in_the_export_alone(seen: InMemorySpanExporter) -> None:
    store = MemoryJournal()
    await MAKES["a crash"]("a crash", store)
    cut_off = told(await exported(store, "a crash"), again=False) - told(finished(seen), again=False)
    assert {way[-1] for way, *_ in cut_off} == {"chat scripted", "execute_tool score"}  # type: ignore[attr-defined, misc]
    assert sum(("surefoot.interrupted", True) in attributes for *_, attributes in cut_off) == len(cut_off) - 1  # type: ignore[misc]


async def test_what_a_person_says_of_a_run_that_nobody_drives_is_in_the_export_alone(
    seen: InMemorySpanExporter,
) -> None:
    store = MemoryJournal()
    await MAKES["cancelled by a person"]("r", store)
    status = "surefoot.run.status"
    assert [span.attributes.get(status) for span in finished(seen).values()][-1] == "paused"
    assert next(iter((await exported(store, "r")).values())).attributes[status] == "cancelled"


async def test_a_run_lies_in_the_trace_of_its_application_and_its_tools_in_the_call(seen: InMemorySpanExporter) -> None:
    tracer, at = trace.get_tracer("app"), list[str]()

    @tool(effect="read")
    async def here() -> str:
        """Where am I?"""
        at.append((traced({"Accept": "x"}) or {})["traceparent"])
        with tracer.start_as_current_span("inside"):
            return "here"

    @tool(effect="read")
    def there() -> str:
        """In a thread."""
        at.append((traced(None) or {})["traceparent"])
        return "there"

    agent = Agent(ScriptedModel([calls(("here", {}), ("there", {})), "done"]), [here, there])
    with tracer.start_as_current_span("request"):
        await agent.run("go")
    spans = finished(seen)
    by_name = {span.name: span for span in spans.values()}
    assert {span.trace_id for span in spans.values()} == {by_name["request"].trace_id}
    assert way_of(by_name["inside"], spans) == ("request", "invoke_agent", "execute_tool here", "inside")
    wanted = [by_name[f"execute_tool {name}"] for name in ("here", "there")]
    assert sorted(one[:52] for one in at) == sorted(f"00-{one.trace_id}-{one.span_id}" for one in wanted)
    (scope,) = {span.instrumentation_scope for span in seen.get_finished_spans() if span.name.startswith("chat")}
    assert scope is not None
    assert (scope.name, scope.schema_url) == ("surefoot", SCHEMA_URL)


async def test_a_page_and_an_mcp_server_are_told_by_which_call_they_are_asked(
    seen: InMemorySpanExporter, tmp_path: Path
) -> None:
    asked = list[str]()

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        asked.append(request.headers["traceparent"])
        return web.Response(text="a page")

    (tmp_path / "server.py").write_text(MCP, encoding="utf-8")
    server = McpServer("s", command=sys.executable, args=(str(tmp_path / "server.py"),), connect_timeout_s=30)
    async with serving(answer) as port:
        url = f"http://127.0.0.1:{port}/"
        script = [calls(("web_fetch", {"url": url})), calls(("s__where", {})), "done"]
        agent = Agent(
            ScriptedModel(script), [web_fetch_tool(allow_hosts=[url[7:-1]])], journal=MemoryJournal(), mcp=server
        )
        async with agent:
            run = await agent.run("go", run_id="r")
    assert run.status == "completed"
    spans = finished(seen)
    by_name = {span.name: span for span in spans.values()}
    fetched, called = by_name["execute_tool web_fetch"], by_name["execute_tool s__where"]
    assert [one[:52] for one in asked] == [f"00-{fetched.trace_id}-{fetched.span_id}"]
    assert called.attributes["gen_ai.tool.type"] == "extension"
    sent = next(one for one in spans.values() if one.parent_id == called.span_id)  # a span of the package `mcp`
    records, _ = await store_of(agent).read_recorded("r")
    results = [record.event.result.content for record in records if isinstance(record.event, CallEnded)]
    assert f"00-{sent.trace_id}-{sent.span_id}" in results[-1]


MCP = """
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("s")


@server.tool()
def where(context: Context) -> str:
    \"\"\"Where in a trace this is asked.\"\"\"
    return str(context.request_context.meta)


server.run("stdio")
"""


async def test_each_drive_of_a_run_has_a_link_to_the_one_span_of_its_export(seen: InMemorySpanExporter) -> None:
    await MAKES["a doubt, settled twice"]("r", MemoryJournal())
    runs = [span for span in seen.get_finished_spans() if span.name == "invoke_agent"]
    links = [[f"{link.context.trace_id:032x}" for link in span.links] for span in runs]
    assert links == [[], [place_of("r")[0]], [place_of("r")[0]]]
    assert len({span.context.trace_id for span in runs if span.context is not None}) == 3


@pytest.mark.parametrize(("said", "shown"), [("true", True), ("SPAN_ONLY", True), ("false", False), ("", False)])
async def test_content_is_told_where_the_environment_says_so(
    seen: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, said: str, shown: bool
) -> None:
    monkeypatch.setenv(CONTENT_VARIABLE, said)
    await Agent(ScriptedModel(["Kanarienvogel"])).run("go")
    assert ("Kanarienvogel" in str(finished(seen))) == shown


async def test_figures_are_those_of_the_spans(figures: InMemoryMetricReader) -> None:
    await MAKES["an agent as a tool"]("r", MemoryJournal())
    found = points_of(figures)
    counts = {name: sum(point.count for point in points) for name, points in found.items() if name.endswith("duration")}
    appended = counts.pop("surefoot.journal.append.duration")
    assert appended > 9
    assert counts == {
        "gen_ai.client.inference.duration": 5,
        "gen_ai.execute_tool.duration": 3,
        "gen_ai.invoke_agent.duration": 2,
    }
    assert sum(point.value for point in found["gen_ai.client.inference.usage.input_tokens"]) == 50
    assert sum(point.value for point in found["gen_ai.client.inference.usage.output_tokens"]) == 25
    tools = {point.attributes["gen_ai.tool.name"] for point in found["gen_ai.execute_tool.duration"]}
    assert tools == {"clerk", "address_of", "send_mail"}
    for name in ("surefoot.runs.driven", "surefoot.runs.queued"):
        assert [point.value for point in found[name]] == [0]


class Taken(MemoryJournal):
    """A journal in which another worker has taken each run by the time a lease is extended."""

    async def renew(self, lease_s: float) -> Collection[str]:  # noqa: ARG002  # as a store has it
        return ("r1",)


async def test_a_worker_counts_what_waits_for_a_person_and_what_others_took(figures: InMemoryMetricReader) -> None:
    store = Taken()

    @tool(effect="read")
    async def wait() -> str:
        """Wait for ever."""
        await asyncio.Event().wait()
        return ""

    @tool(effect="read", approval="always")
    async def ask() -> str:
        """Ask first."""
        return ""

    agents = {
        name: Agent(ScriptedModel([calls((name, {}))]), tools=[wait, ask], journal=store, name=name)
        for name in ("ask", "wait")
    }
    for run_id, agent in zip(("r0", "r1"), agents.values(), strict=True):
        await agent.start("go", run_id=run_id)
    worker = Worker(store, agents, lease_s=0.3)
    running = asyncio.create_task(worker.run())
    await until(lambda: worker.lost > 0)
    worker.wake()
    await until(lambda: [point.value for point in points_of(figures)["surefoot.runs.waiting"]] == [1])
    assert [point.value for point in points_of(figures)["surefoot.lease.lost"]] == [worker.lost]
    await worker.drain(0)
    await running


class Broken(SpanExporter):
    """An exporter that fails at each span."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        raise OSError(f"no collector for {len(spans)}")


async def test_an_exporter_that_fails_does_not_harm_a_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Broken()))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    with caplog.at_level(logging.ERROR):
        run = await Agent(ScriptedModel(["done"])).run("go")
    assert run.answer == "done"
    assert "no collector" in caplog.text


class Fussy(SpanProcessor):
    """A processor that raises, as an exporter inside of the SDK cannot: when a span begins, or when it ends."""

    def __init__(self, when: str) -> None:
        self.when = when

    def on_start(self, span: object, parent_context: object = None) -> None:  # noqa: ARG002  # as it is called
        if self.when == "start":
            raise ValueError("at its start")

    def on_end(self, span: object) -> None:  # noqa: ARG002  # the same
        raise ValueError("at its end")


@pytest.mark.parametrize("when", ["start", "end"])
async def test_a_processor_that_raises_does_not_harm_a_run(
    when: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    provider = TracerProvider()
    provider.add_span_processor(Fussy(when))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    assert (await Agent(ScriptedModel(["done"])).run("go")).answer == "done"
    assert "the end of invoke_agent could not be told to OpenTelemetry" in caplog.text


@pytest.mark.usefixtures("seen")
async def test_spans_cannot_harm_a_run(caplog: pytest.LogCaptureFixture) -> None:
    live = Live(())
    live.take(RunResumed("Ada"))  # of a run that has not begun
    live.take("no event")  # type: ignore[arg-type]
    assert "could not be told" in caplog.text


def test_nobody_is_told_without_a_provider() -> None:
    assert not has_provider()
    assert traced(None) is None
    assert traced(headers := {"Accept": "x"}) is headers


def test_one_module_alone_spells_the_names_of_the_conventions() -> None:
    spelled = [
        path.relative_to(SOURCE).as_posix()
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and "gen_ai." in str(node.value)
    ]
    assert set(spelled) == {"telemetry_names.py"}
