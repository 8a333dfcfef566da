"""The process dies before and after every append: each run comes to the same end, and nothing runs twice.

Three scripted runs, one of them with parallel reads and one with a write that is not idempotent, on memory and on
SQLite. A call that has ended never runs again; a call that cannot be undone runs at most once, and when nobody knows
whether it ran, the run pauses in doubt.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import pytest

from surefoot import Agent, MemoryJournal, Run, SqliteJournal, tool
from surefoot.core.fold import fold
from surefoot.core.replay import replay
from surefoot.testing.journals import Crash, CrashingStore
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.types.events import CallEnded, CallStarted
from surefoot.types.messages import ModelRequest
from surefoot.types.ports import JournalStore, Tool

pytestmark = pytest.mark.anyio

When = Literal["before", "after"]
Turns = list[list[tuple[str, Mapping[str, object]]]]


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

        return [look, send, save]


SCENARIOS: dict[str, Turns] = {
    "one read after another": [[("look", {"q": "a"})], [("look", {"q": "b"})]],
    "parallel reads": [[("look", {"q": "a"}), ("look", {"q": "b"}), ("look", {"q": "c"})], [("look", {"q": "a"})]],
    "a write that cannot be undone": [[("look", {"q": "a"})], [("send", {"to": "Ada"}), ("save", {"name": "x"})]],
}


def model_of(turns: Turns) -> FunctionModel:
    """A model whose reply depends on the request alone, as a real one's does; so it goes on after a crash."""

    def reply(request: ModelRequest) -> Scripted:
        step = sum(1 for message in request.messages if message.role == "assistant")
        return calls(*turns[step]) if step < len(turns) else "done"

    return FunctionModel(reply)


def stores(folder: Path) -> dict[str, Callable[[], JournalStore]]:
    memory = MemoryJournal()
    return {"memory": lambda: memory, "sqlite": lambda: SqliteJournal(folder / "journal.db")}


async def appends_of(turns: Turns) -> int:
    store = CrashingStore(MemoryJournal(), 0, "before")
    await Agent(model_of(turns), tools=World().tools(), journal=store).run("go")
    return store.appends


async def die_and_resume(folder: Path, kind: str, turns: Turns, at: int, when: When) -> tuple[World, Run | None]:
    """A run that dies, and what came of it when somebody went on with it (None: there was nothing yet)."""
    world, make = World(), stores(folder)[kind]
    crashing = make()
    broken = CrashingStore(crashing, at, when)
    with pytest.raises(Crash):
        await Agent(model_of(turns), tools=world.tools(), journal=broken).run("go", run_id="r")
    await crashing.aclose()
    store = make()
    agent = Agent(model_of(turns), tools=world.tools(), journal=store)
    if not (await store.read_recorded("r"))[0]:
        return world, None
    run = await agent.resume("r")
    if run.status == "paused":
        (doubtful,) = run.waiting
        assert (run.reason, doubtful.name) == ("in_doubt", "send")
        happened = world.ran["send Ada"] == 1
        await agent.settle("r", doubtful.id, "done" if happened else "not_done", by="Ada", result="sent to Ada")
        run = await agent.resume("r")
    await check_journal(store)
    await agent.aclose()
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


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("name", SCENARIOS)
async def test_death_at_any_append_changes_nothing(tmp_path: Path, name: str, kind: str) -> None:
    turns = SCENARIOS[name]
    total = await appends_of(turns)
    assert total > 5
    for at in range(1, total + 1):
        for when in get_args(When):
            folder = tmp_path / f"{at}{when}"
            folder.mkdir()
            world, run = await die_and_resume(folder, kind, turns, at, when)
            if run is None:
                assert (at, when) == (1, "before")
                continue
            assert (run.status, run.answer) == ("completed", "done"), (at, when)
            assert world.ran["send Ada"] <= 1, "what cannot be undone ran twice"
            wanted = {f"{n} {next(iter(a.values()))}" for turn in turns for n, a in turn}
            assert {key for key, count in world.ran.items() if count} == wanted
            assert all(count <= 2 for count in world.ran.values())  # only the call that was open may have run again
