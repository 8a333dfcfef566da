"""The process dies before and after all it does to its journal: each run comes to the same end, nothing runs twice.

Four scripted runs, one of them with parallel reads, one with a write that is not idempotent and one with results that
are too long for a record, on memory and on SQLite. A call whose end is on record never runs again; a call that cannot
be undone runs at most once, and when nobody knows whether it ran, the run pauses in doubt.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import pytest

from processes import ran
from surefoot import Agent, LoopConfig, MemoryJournal, Run, SqliteJournal, tool
from surefoot.core.loop.fold import fold
from surefoot.core.loop.replay import replay
from surefoot.testing.journals import CheckedJournal, Crash, CrashingStore, Operation
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.types.errors import JournalError
from surefoot.types.events import CallEnded, CallStarted
from surefoot.types.messages import ModelRequest
from surefoot.types.ports import JournalStore, Tool
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio

When = Literal["before", "after"]
Turns = list[list[tuple[str, Mapping[str, object]]]]


CONFIG = LoopConfig(tool_result_chars=500)
UNSPEAKABLE = CallEnded("1", ToolResult(object()))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - the mistake is the case
OPERATIONS: tuple[Operation, ...] = get_args(Operation)


@dataclass(frozen=True)
class Death:
    """When the process dies."""

    operation: Operation
    at: int
    when: When


@dataclass
class World:
    """What really happened, as the tools' own books tell it."""

    ran: Counter[str] = field(default_factory=Counter[str])

    def tools(self) -> list[Tool]:
        @tool(effect="read")
        async def look(q: str) -> str:
            """Look something up."""
            self.ran[f"look {q}"] += 1
            return f"about {q}"

        @tool
        async def send(to: str) -> str:
            """Send a letter, which cannot be called back."""
            self.ran[f"send {to}"] += 1
            return f"sent to {to}"

        @tool(idempotent=True)
        async def save(name: str) -> str:
            """Save a file."""
            self.ran[f"save {name}"] += 1
            return f"saved {name}"

        @tool(effect="read")
        async def dump(what: str) -> str:
            """Give a text that is too long for a record."""
            self.ran[f"dump {what}"] += 1
            return what * 3 * CONFIG.tool_result_chars

        return [look, send, save, dump]


SCENARIOS: dict[str, Turns] = {
    "one read after another": [[("look", {"q": "a"})], [("look", {"q": "b"})]],
    "parallel reads": [[("look", {"q": "a"}), ("look", {"q": "b"}), ("look", {"q": "c"})], [("look", {"q": "a"})]],
    "a write that cannot be undone": [[("look", {"q": "a"})], [("send", {"to": "Ada"}), ("save", {"name": "x"})]],
    "long results": [[("dump", {"what": "a"})], [("dump", {"what": "b"}), ("send", {"to": "Ada"})]],
}


def model_of(turns: Turns) -> FunctionModel:
    """A model whose reply depends on the request alone, as a real one's does; so it goes on after a crash."""

    def reply(request: ModelRequest) -> Scripted:
        step = sum(1 for message in request.messages if message.role == "assistant")
        return calls(*turns[step]) if step < len(turns) else "done"

    return FunctionModel(reply)


def agent_on(store: JournalStore, turns: Turns, world: World) -> Agent:
    return Agent(model_of(turns), tools=world.tools(), journal=store, config=CONFIG)


def stores(folder: Path) -> dict[str, Callable[[], JournalStore]]:
    """Ways to open the store that outlives the process; no event may go into it that would not come back."""
    memory = MemoryJournal()
    return {
        "memory": lambda: CheckedJournal(memory),
        "sqlite": lambda: CheckedJournal(SqliteJournal(folder / "journal.db")),
    }


async def operations_of(turns: Turns) -> Counter[Operation]:
    """How often a run that nothing befalls does each thing to its journal."""
    counted: Counter[Operation] = Counter()
    for operation in OPERATIONS:
        store = CrashingStore(MemoryJournal(), 0, "before", of=[operation])
        await agent_on(store, turns, World()).run("go")
        counted[operation] = store.operations
    return counted


async def die_and_resume(folder: Path, kind: str, turns: Turns, death: Death) -> tuple[World, Run]:
    """A run that dies, and what came of it when another process went on with it."""
    world, make = World(), stores(folder)[kind]
    dying, store = make(), make()  # two at once, as two processes have it
    broken = CrashingStore(dying, death.at, death.when, of=[death.operation])
    with suppress(Crash):
        run = await agent_on(broken, turns, world).run("go", run_id="r")
        assert broken.operations < death.at, (
            "it was counted on a slower moment of the machine, which appends more often"
        )
        return world, run
    agent = agent_on(store, turns, world)
    if await store.runs():
        run = await agent.resume("r")
    else:  # nothing was on record yet, so nothing had an effect
        assert not world.ran
        run = await agent.run("go", run_id="r")
    if run.status == "paused":
        (doubtful,) = run.waiting
        assert (run.reason, doubtful.name) == ("in_doubt", "send")
        happened = world.ran["send Ada"] == 1
        await agent.settle("r", doubtful.id, "done" if happened else "not_done", by="Ada", result="sent to Ada")
        run = await agent.resume("r")
    await check_journal(store)
    await agent.aclose()
    await dying.aclose()
    return world, run


async def check_journal(store: JournalStore) -> None:
    records, wrong = await store.read_recorded("r")
    assert wrong == ""
    events = [record.event for record in records]
    ended: Counter[str] = Counter()
    for event in events:
        if isinstance(event, CallStarted):
            assert not ended[event.call_id], f"{event.call_id} had ended and was started again"
        if isinstance(event, CallEnded):
            ended[event.call_id] += 1
            assert ended[event.call_id] == 1
    for at in range(len(events)):
        assert fold(events[at:], fold(events[:at])) == fold(events)
    assert replay(events).differs_at is None


@pytest.mark.parametrize("kind", ["memory", pytest.param("sqlite", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SCENARIOS)
async def test_death_at_any_moment_changes_nothing(tmp_path: Path, name: str, kind: str) -> None:
    turns = SCENARIOS[name]
    counted = await operations_of(turns)
    assert counted["append"] > 4
    assert (counted["open"], counted["release"]) == (1, 1)
    assert (counted["put_blob"] > 0) == (name == "long results")
    wanted = {f"{name} {next(iter(arguments.values()))}" for turn in turns for name, arguments in turn}
    for operation, total in counted.items():
        deaths = [Death(operation, at, when) for at in range(1, total + 1) for when in get_args(When)]
        for death in deaths[:: 1 if kind == "memory" else 3]:  # each third, and so before and after in turn
            folder = tmp_path / f"{death.operation}{death.at}{death.when}"
            folder.mkdir()
            world, run = await die_and_resume(folder, kind, turns, death)
            assert (run.status, run.answer) == ("completed", "done"), death
            assert world.ran["send Ada"] <= 1, f"{death}: what cannot be undone ran twice"
            assert {key for key, count in world.ran.items() if count} == wanted, death
            assert all(count <= 2 for count in world.ran.values()), death  # only an open call may have run again


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_what_was_queued_dies_with_the_process_and_what_had_its_turn_does_not(tmp_path: Path, kind: str) -> None:
    make = stores(tmp_path)[kind]
    dying, store = make(), make()
    broken = CrashingStore(dying, 4, "after")
    run, other = await broken.open("r", create=True), await broken.open("other", create=True)
    await run.append([CallStarted("1")])
    await asyncio.sleep(0)
    await run.append([CallStarted("2")])
    digest = await run.put_blob(b"lost")
    await other.append([CallStarted("other")])
    with pytest.raises(Crash):
        await run.append([CallStarted("3")])
    with pytest.raises(Crash):
        await other.append([CallStarted("other")], "synced")
    await run.release()
    await broken.aclose()
    assert [info.run_id for info in await store.runs()] == ["r"]
    again = await store.open("r")
    assert await again.read() == [CallStarted("1")]
    with pytest.raises(JournalError):
        await again.get_blob(digest)
    await (await store.open("other", create=True)).release()
    await again.release()
    await store.aclose()
    await dying.aclose()


async def test_a_store_that_does_not_crash_keeps_its_promises(tmp_path: Path) -> None:
    store = CrashingStore(SqliteJournal(tmp_path / "journal.db"), 0, "before")
    run = await store.open("r", create=True)
    await run.append([CallStarted("1")])
    assert await run.read() == [CallStarted("1")]
    await run.append([CallStarted("2")])
    assert len((await store.read_recorded("r"))[0]) == 2
    with pytest.raises(JournalError, match="cannot be recorded"):
        await run.append([UNSPEAKABLE])
    digest = await run.put_blob(b"kept")
    assert await run.get_blob(digest) == b"kept"
    await run.append([CallStarted("3")], "synced")
    late = await run.put_blob(b"late")
    await run.append([CallStarted("4")])
    await run.release()
    assert [await store.get_blob(one) for one in (digest, late)] == [b"kept", b"late"]
    assert [info.events for info in await store.runs()] == [4]
    assert store.appends == 5
    await store.aclose()


async def test_a_checked_journal_takes_only_what_comes_back() -> None:
    store = CheckedJournal(MemoryJournal())
    run = await store.open("r", create=True)
    with pytest.raises(JournalError, match="cannot be recorded"):
        await run.append([UNSPEAKABLE])
    with pytest.raises(AssertionError, match="can be written but not read"):
        await run.append([CallStarted("1", attempt="two")])  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - the mistake is the case
    with pytest.raises(AssertionError, match="comes back as"):
        await run.append([CallStarted("1", attempt="2")])  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as above
    assert await run.read() == []
    await run.append([CallStarted("1")])
    await run.release()
    assert len((await store.read_recorded("r"))[0]) == 1


DEADLY = """
import asyncio, os, sys
from surefoot import Agent, SqliteJournal, tool
from surefoot.testing.models import ScriptedModel, calls

@tool(effect="read")
def look() -> str:
    "Look something up."
    print("looked", flush=True)
    os._exit(9)

agent = Agent(ScriptedModel([calls(("look", {}))]), tools=[look], journal=SqliteJournal(sys.argv[1]))
run = asyncio.run(agent.run("go", run_id="r") if sys.argv[2] == "run" else agent.resume("r"))
print(run.status, run.reason)
"""


def test_a_read_that_ends_the_process_each_time_is_not_tried_for_ever(tmp_path: Path) -> None:
    told = [ran(DEADLY, str(tmp_path / "journal.db"), how).stdout.strip() for how in ("run", *["resume"] * 4)]
    assert told == [*["looked"] * 3, *["paused in_doubt"] * 2]
