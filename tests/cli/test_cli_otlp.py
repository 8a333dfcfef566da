"""`surefoot export --otlp`: runs of every kind arrive at a collector over HTTP, whole, and again changes nothing."""

import asyncio
import base64
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from cli_world import Command, Ended
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from span_runs import MAKES
from surefoot import Agent, SqliteJournal
from surefoot.telling.span_records import place_of
from surefoot.testing.models import ScriptedModel

NAMES = ("a doubt, settled twice", "an agent that asks", "steps of all kinds")


@dataclass
class Collector:
    """What came to it, as it came. `status` is what it answers."""

    port: int = 0
    status: int = 200
    said: bytes = b'{"partialSuccess":{}}'
    bodies: list[bytes] = field(default_factory=list[bytes])
    asked: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])

    @property
    def spans(self) -> list[Span]:
        """All that came, read as the protocol has it."""
        requests = (json_format.Parse(body, ExportTraceServiceRequest()) for body in self.bodies)
        resources = (resource for request in requests for resource in request.resource_spans)
        return [span for resource in resources for scope in resource.scope_spans for span in scope.spans]


@contextmanager
def collecting(collector: Collector) -> Generator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name is the library's
            collector.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            headers = self.headers.get("Content-Type", ""), self.headers.get("X-Key", "")
            collector.asked.append((self.path, *headers))
            self.send_response(collector.status)
            self.send_header("Content-Length", str(len(collector.said)))
            self.end_headers()
            self.wfile.write(collector.said)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.port = server.server_port
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()


def hexed(raw: bytes) -> str:
    """An id as it was sent: the JSON of OTLP has hex where that of protobuf has base64."""
    return base64.b64encode(raw).decode()


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "runs.db"

    async def made() -> None:
        store = SqliteJournal(path)
        for name in ("a crash", "an agent as a tool", *NAMES):
            await MAKES[name](name, store)
        await store.aclose()

    asyncio.run(made())
    return path


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting(Collector()) as made:
        yield made


@pytest.fixture
def export(surefoot: Command, journal: Path) -> Command:
    """Sends a run of that journal to a port of this machine."""

    def send(name: str, port: int, place: str = "127.0.0.1") -> Ended:
        return surefoot("export", "--otlp", name, "--journal", str(journal), "--endpoint", f"http://{place}:{port}")

    return send


@pytest.mark.parametrize("name", NAMES)
def test_a_run_arrives_with_the_right_parents_and_times(collector: Collector, export: Command, name: str) -> None:
    done = export(name, collector.port)
    assert (done.code, done.err) == (0, "")
    assert collector.asked == [("/v1/traces", "application/json", "")]
    spans = collector.spans
    assert done.out == f"{len(spans)} spans of run {name}, trace {place_of(name)[0]}\n"
    assert {hexed(span.trace_id) for span in spans} == {place_of(name)[0]}
    by_id = {span.span_id: span for span in spans}
    assert len(by_id) == len(spans)
    assert [span.name for span in spans if not span.parent_span_id] == ["invoke_agent"]
    for span in spans:
        assert span.start_time_unix_nano <= span.end_time_unix_nano
        if span.parent_span_id and span.name != "invoke_agent":  # the run of an agent may go on after its call
            around = by_id[span.parent_span_id]
            assert around.start_time_unix_nano <= span.start_time_unix_nano
            assert span.end_time_unix_nano <= around.end_time_unix_nano
    export(name, collector.port)
    assert collector.bodies[1] == collector.bodies[0]


def test_the_run_of_an_agent_lies_under_the_call_that_asked_it(collector: Collector, export: Command) -> None:
    for name in ("an agent as a tool", "an agent that asks"):
        collector.bodies.clear()
        export(name, collector.port)
        by_id = {span.span_id: span for span in collector.spans}
        outer, inner = (span for span in collector.spans if span.name == "invoke_agent")
        assert by_id[inner.parent_span_id].name == "execute_tool clerk"
        assert by_id[by_id[inner.parent_span_id].parent_span_id] is by_id[outer.span_id]
        assert sum(span.parent_span_id == inner.span_id for span in collector.spans) > 2


def test_content_is_sent_only_where_it_is_asked_for(tmp_path: Path, collector: Collector, surefoot: Command) -> None:
    path = tmp_path / "runs.db"
    Agent(ScriptedModel(["Kanarienvogel"]), journal=path).run_sync("Kanarienvogel?", run_id="r")
    at = ("export", "--otlp", "r", "--journal", str(path), "--endpoint", f"http://127.0.0.1:{collector.port}/v1/traces")
    surefoot(*at)
    surefoot(*at, "--content")
    assert [b"Kanarienvogel" in body for body in collector.bodies] == [False, True]
    assert {path for path, *_ in collector.asked} == {"/v1/traces"}


def test_a_file_is_written_in_place_of_being_sent(journal: Path, tmp_path: Path, surefoot: Command) -> None:
    out = tmp_path / "spans.json"
    assert surefoot("export", "--otlp", "a crash", "--journal", str(journal), "--output", str(out)).code == 0
    assert Collector(bodies=[out.read_bytes()]).spans[0].name == "invoke_agent"


def test_the_environment_names_the_collector_and_its_key(
    journal: Path, collector: Collector, surefoot: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"HTTP://127.0.0.1:{collector.port}/")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=se%20cret,other=1")
    assert surefoot("export", "--otlp", "a crash", "--journal", str(journal)).code == 0
    assert collector.asked == [("/v1/traces", "application/json", "se cret")]


@pytest.mark.parametrize(("status", "said", "told"), [
    (503, b"full", "/v1/traces answered 503: full"),
    (200, b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}', "did not accept all spans"),
])  # fmt: skip
def test_a_collector_that_does_not_take_it_is_an_error(export: Command, status: int, said: bytes, told: str) -> None:
    with collecting(Collector(status=status, said=said)) as collector:
        done = export("a crash", collector.port)
    assert done.code == 5
    assert told in done.err


def test_an_address_that_is_none_is_told(surefoot: Command, journal: Path) -> None:
    done = surefoot("export", "--otlp", "a crash", "--journal", str(journal), "--endpoint", "localhost:4318")
    assert done.code == 2
    assert "localhost:4318: the address of a collector begins with http:// or https://" in done.err


def test_no_collector_is_an_error(export: Command) -> None:
    with collecting(Collector()) as gone:
        port = gone.port
    done = export("a crash", port, "me:secret@127.0.0.1")
    assert done.code == 5
    assert "cannot be reached" in done.err
    assert "is a collector running?" in done.err
    assert "secret" not in done.err
