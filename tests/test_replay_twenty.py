"""Runs of every kind are recorded, then replayed with no network: event by event and byte by byte the same."""

import asyncio
import socket
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from scenes import Row, config_of, drive, models_of, rows_in
from surefoot import Agent, ModelRequest, Run, SqliteJournal, tool
from surefoot.core.loop.fold import fold
from surefoot.core.loop.replay import replay
from surefoot.core.state.summary import HEAD_CHARS
from surefoot.journal.codec import encode, genesis
from surefoot.journal.raw import chain
from surefoot.testing.journals import Crash, CrashingStore
from surefoot.testing.models import FunctionModel, Scripted, ScriptedModel, calls
from surefoot.types import events
from surefoot.types.errors import ModelRefused, TraitRefused
from surefoot.types.outcomes import Deny
from surefoot.types.ports import JournalStore, RunSummary, Tool

Make = Callable[[str, JournalStore], Awaitable[object]]
"""Drives the run of that id on that store, to its end or wherever it is to be left."""

DONE = "<deliverable>\n<final_output>171</final_output>\n</deliverable>\nTASK_DONE"
BOTH = calls(("score", {"name": "Alice"}), ("score", {"name": "Bob"}))


@tool(effect="read")
async def score(name: str) -> int:
    """Exam score of one student."""
    return {"Alice": 90, "Bob": 81}[name]


@tool(effect="read")
async def slow(n: int) -> int:
    """Answer late, the first latest."""
    for _ in range(5 - n):
        await asyncio.sleep(0)
    return n


@tool(effect="read")
def book() -> str:
    """A long text."""
    return "".join(f"<{n:06d}>" for n in range(500))


@tool(effect="read", name="查成绩")
def look_up(姓名: str) -> int:  # noqa: N803, PLC2401  # Chinese names work everywhere
    """查一个学生的成绩。"""
    return {"小明": 95}[姓名]


@tool(finish=True)
def finish(answer: str) -> str:
    """Give the answer."""
    return answer


@tool(timeout_s=0.01)
async def pay(amount: int) -> str:
    """Pay, and never hear of it again."""
    await asyncio.Event().wait()
    return str(amount)


async def was_paid(amount: int) -> str | None:
    return f"paid {amount} before"


@tool(timeout_s=0.01, probe=was_paid)
async def pay_known(amount: int) -> str:
    """Pay, and find out later."""
    await asyncio.Event().wait()
    return str(amount)


TOOLS: Mapping[str, Tool] = {one.spec.name: one for one in (score, slow, book, look_up, finish, pay, pay_known)}


def of(row: Row) -> Make:
    """A run of a row on scripted models, to its end."""

    async def made(run_id: str, store: JournalStore) -> Run:
        models, tools = models_of(row, {"$BOTH": BOTH, "$DONE": DONE}), [TOOLS[n] for n in row.get("tools", ["score"])]
        config, how = config_of(row.get("config", {})), row.get("agent", {})
        agent = Agent(models if len(models) > 1 else models["solo"], tools, journal=store, config=config, **how)
        return await drive(agent, row, run_id=run_id)

    return made


async def crashed(run_id: str, store: JournalStore) -> None:
    """The process dies once its reads are begun, and another one goes on with the run."""
    agent = Agent(ScriptedModel([BOTH]), [score], journal=CrashingStore(store, 2, "after"))
    with suppress(Crash):
        await agent.run("The sum?", run_id=run_id)
    await Agent(ScriptedModel(["171"]), [score], journal=store).resume(run_id)


async def forked(run_id: str, store: JournalStore) -> None:
    parent = Agent(ScriptedModel([BOTH, "171"], name="test:a"), [score], journal=store)
    await parent.run("The sum?", run_id=f"{run_id}-parent")
    child = Agent(ScriptedModel(["Final Answer: 171"], name="test:b", modes=("text",)), [score], journal=store)
    await child.fork(f"{run_id}-parent", 7, new_id=run_id)


async def interrupted(run_id: str, store: JournalStore) -> None:
    """Cancelled in the middle of a read, and taken up again."""
    reached = asyncio.Event()

    @tool(effect="read")
    async def wait() -> str:
        """Wait the first time."""
        if not reached.is_set():
            reached.set()
            await asyncio.Event().wait()
        return "here"

    agent = Agent(ScriptedModel([calls(("wait", {})), "here"]), [wait], journal=store)
    running = asyncio.ensure_future(agent.run("Wait.", run_id=run_id))
    await reached.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await agent.resume(run_id)


async def streamed(run_id: str, store: JournalStore) -> None:
    agent = Agent(ScriptedModel([BOTH, "171"]), [score], journal=store)
    async for _ in agent.stream("The sum?", run_id=run_id):
        pass


async def overflowing(run_id: str, store: JournalStore) -> None:
    def reply(request: ModelRequest) -> Scripted:
        last, shown = request.messages[-1], len(request.messages)
        if shown > 9:
            return ModelRefused("too long", kind="context_overflow")
        return "enough" if "4" in last.content else calls(("slow", {"n": shown // 2}))

    await Agent(FunctionModel(reply), [slow], journal=store).run("Count.", run_id=run_id)


async def learning(run_id: str, store: JournalStore) -> None:
    def reply(request: ModelRequest) -> Scripted:
        if request.mode == "native":
            return TraitRefused("native_tools", "no", "tools are not supported")
        if request.stop and request.traits.get("stop") != "no":
            return TraitRefused("stop", "no", "stop is not supported")
        return "Final Answer: 171"

    await Agent(FunctionModel(reply, modes=("native", "text")), [score], journal=store).run("?", run_id=run_id)


RUNS: Mapping[str, Make] = {
    **{row["why"]: of(row) for row in rows_in("twenty")},
    "a crash": crashed,
    "a fork": forked,
    "interrupted": interrupted,
    "context overflow": overflowing,
    "learnt traits": learning,
    "streamed": streamed,
}


@dataclass(frozen=True)
class Stored:
    """One record as its file has it."""

    version: int
    at: float
    body: bytes
    hash: bytes


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with all the runs."""
    path = tmp_path_factory.mktemp("twenty") / "runs.journal"

    async def record() -> None:
        store = SqliteJournal(path)
        for name, make in RUNS.items():
            await make(name, store)
        await store.aclose()

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUREFOOT_TRAITS_FILE", "")
        asyncio.run(record())
    return path


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """No socket reaches anybody. They can be made, since an event loop keeps a pair of them for itself."""

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("a replay must not touch the network")

    for name in ("connect", "connect_ex", "sendto", "bind"):
        monkeypatch.setattr(socket.socket, name, forbidden)
    for name in ("create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, forbidden)


def events_of(journal: Path, run_id: str) -> list[events.Event]:
    async def read() -> list[events.Event]:
        store = SqliteJournal(journal)
        records, wrong = await store.read_recorded(run_id)
        await store.aclose()
        assert wrong == ""
        return [record.event for record in records]

    return asyncio.run(read())


def rows_of(journal: Path, run_id: str) -> tuple[list[Stored], str]:
    """The records as they are stored, those shared with a parent first, and the run that they begin with."""
    with closing(sqlite3.connect(journal)) as db:
        number, parent, at = db.execute("SELECT number, parent, at FROM run WHERE run_id=?", (run_id,)).fetchone()
        own = db.execute("SELECT version, at, body, hash FROM event WHERE run=? ORDER BY seq", (number,)).fetchall()
        lineage: list[tuple[str]] = db.execute("SELECT run_id FROM run WHERE number=?", (parent,)).fetchall()
    shared, root = rows_of(journal, lineage[0][0]) if lineage else ([], run_id)
    return [*shared[:at], *(Stored(*row) for row in own)], root


def test_there_are_at_least_twenty_and_every_kind_of_event(journal: Path) -> None:
    assert len(RUNS) >= 20
    kinds = {type(event) for name in RUNS for event in events_of(journal, name)}
    assert kinds == {
        events.CallEnded, events.CallJudged, events.CallReused, events.CallStarted, events.DoubtSettled,
        events.ModelFailed, events.ModelReplied, events.ModelTraitLearnt, events.RunEnded, events.RunForked,
        events.RunResumed, events.RunStarted,
    }  # fmt: skip


def test_the_summary_of_a_run_says_what_its_fold_does(journal: Path) -> None:
    async def listed() -> dict[str, RunSummary]:
        store = SqliteJournal(journal)
        found = {one.run_id: one for one in await store.runs(100)}
        await store.aclose()
        return found

    summaries = asyncio.run(listed())
    for name in RUNS:
        happened = events_of(journal, name)
        state, kept = fold(happened), summaries[name]
        run = Run.of(state)
        assert (kept.status, kept.reason, kept.answer) == (run.status, run.reason, run.answer[:HEAD_CHARS]), name
        assert (kept.requests, kept.usage, kept.elapsed_s) == (run.requests, run.usage, run.elapsed_s), name
        assert (kept.models, kept.events) == (run.models, len(happened)), name
        assert kept.task == (state.task.text if state.task else ""), name


def test_the_runs_are_what_they_are_called(journal: Path) -> None:
    all_ = {name: events_of(journal, name) for name in RUNS}
    ends = {name: happened[-1].ending for name, happened in all_.items() if isinstance(happened[-1], events.RunEnded)}
    assert set(ends) == set(RUNS)
    other = {name: (end.kind, getattr(end, "reason", "")) for name, end in ends.items() if end.kind != "completed"}
    assert other == {
        "given up after faults": ("failed", "parse_failure"),
        "cancelled by a person": ("cancelled", ""),
        "the last step": ("completed_partial", "steps"),
        "a refusal": ("stopped", "refused"),
    }
    assert any(isinstance(e, events.CallJudged) and isinstance(e.decision, Deny) for e in all_["a denied call"])
    assert any(isinstance(e, events.ModelFailed) and e.kind == "context_overflow" for e in all_["context overflow"])
    assert any(isinstance(e, events.CallEnded) and e.result.blob for e in all_["long results, paged"])
    assert sum(isinstance(e, events.RunResumed) for e in all_["a doubt, settled twice"]) == 2
    ended = [e.call_id for e in all_["reads side by side"] if isinstance(e, events.CallEnded)]
    assert ended == ["1.3", "1.2", "1.1", "1.0"]
    used = {e.reasoner for happened in all_.values() for e in happened if isinstance(e, events.RunStarted)}
    assert used == {"react", "mono", "dual"}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.usefixtures("no_network")
def test_a_replay_gives_the_same_events_bytes_and_hashes(
    journal: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = events_of(journal, name)
    rows, root = rows_of(journal, name)
    monkeypatch.setattr(socket, "socket", None)  # from here on nobody can even make one
    replayed = replay(recorded)
    assert (replayed.differs_at, replayed.expected, replayed.got) == (None, None, None)
    assert list(replayed.events) == recorded
    assert [encode(event)[0] for event in replayed.events] == [row.body for row in rows]
    previous = genesis(root)
    for event, row in zip(replayed.events, rows, strict=True):
        previous = chain(previous, row.version, row.at, encode(event)[0])
        assert previous == row.hash


def tampered(event: events.Event) -> events.Event | None:
    """The record as somebody would like it to be, where it says what surefoot itself decided."""
    match event:
        case events.CallJudged(by=""):
            return replace(event, decision=Deny("because"))
        case events.CallStarted(attempt=attempt):
            return replace(event, attempt=attempt + 1)
        case events.CallReused():
            return replace(event, known="9.9")
        case events.CallEnded(call_id=call_id):
            return replace(event, call_id=f"{call_id}9")
        case events.ModelReplied(parsed=parsed):
            return replace(event, parsed=replace(parsed, content="something else", final="something else"))
        case events.RunEnded(ending) if ending.kind != "cancelled":
            return replace(event, ending=replace(ending, kind="completed"[:-1]))
        case _:
            return None


@pytest.mark.parametrize("name", RUNS)
def test_whatever_is_tampered_with_is_where_a_replay_differs(journal: Path, name: str) -> None:
    recorded = events_of(journal, name)
    changed = [(at, other) for at, event in enumerate(recorded) if (other := tampered(event)) is not None]
    assert changed
    for at, other in changed:
        replayed = replay([*recorded[:at], other, *recorded[at + 1 :]])
        assert replayed.differs_at == at, other
        assert list(replayed.events) == recorded[:at]
