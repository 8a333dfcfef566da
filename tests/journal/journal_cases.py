"""Events of every kind, journals in files, and small ways to look into a journal, for the tests of this room."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from surefoot.journal.codec import decode
from surefoot.journal.heads import Heads
from surefoot.journal.sqlite import SqliteJournal
from surefoot.journal.sqlite_read import Reader
from surefoot.types.attachments import Attachment
from surefoot.types.config import Budget, LoopConfig
from surefoot.types.events import (
    VERSION,
    CallEnded,
    CallJudged,
    CallStarted,
    Event,
    ModelReplied,
    RunEnded,
    RunStarted,
    Speaker,
)
from surefoot.types.messages import ModelMessage, NativeCall, Usage
from surefoot.types.outcomes import Allow, Completed
from surefoot.types.plan import PlanStep
from surefoot.types.ports import EVERY_RUN, Claimed, JournalStore, RunFilter, Standing
from surefoot.types.reply import Fault, FaultyCall, Parsed, ParsedCall
from surefoot.types.task import Task
from surefoot.types.tools import Catalogue, ToolResult, ToolSpec
from surefoot.types.words import Cancel

Made = Callable[..., JournalStore]
KINDS = ("memory", "kept", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres))
"""Kinds of stores; what a test asks of one each of them promises."""

CLERK = "clerk"
NO = Cancel("mika")

TOOLS = Catalogue(
    (
        ToolSpec("exam_score", "Exam score of one student.", {"type": "object", "properties": {"name": {}}}, "read"),
        ToolSpec("send", "Send a message.", {"type": "object"}, "communicate", has_probe=True, timeout_s=2.5),
    )
)


def started(run_id: str = "r1", tools: Catalogue = TOOLS) -> RunStarted:
    step = PlanStep("s1", "Look", tool_id="send", parameters={"to": "Alice", "deep": [1, {"x": None}]})
    task = Task("Whose score is best? 谁?", (Attachment("a.txt", "Alice: 91"),), steps=(step,))
    config = LoopConfig(budget=Budget(max_steps=7, max_cost_usd=0.5), repair="strict")
    speakers = {"solo": Speaker("test:one", traits={"stop": "no"})}
    return RunStarted(run_id, task, speakers, tools, {"native": "You …"}, config=config)


REPLY = ModelReplied(
    step=1,
    message=ModelMessage(
        "assistant",
        "I look it up.",
        calls=(NativeCall("c1", "exam_score", '{"name": "Alice"}'), NativeCall("c2", "send", {"to": "Bob"})),
        usage=Usage(10, 4, cost_usd=0.001),
    ),
    parsed=Parsed(
        calls=(ParsedCall(0, "exam_score", {"name": "Alice", "deep": [1, {"x": None}]}, coerced=("name",)),),
        errors=(FaultyCall(1, Fault("unknown_tool", "no such tool")),),
        warnings=frozenset({"trailing_text", "repaired_json"}),
    ),
    elapsed_s=0.25,
)

LINES = (Path(__file__).parents[1] / "data" / "events.jsonl").read_bytes().splitlines()
"""Events of every kind with all of their fields, one a line as a journal of today has them."""

EVERY_KIND = tuple(decode(line, VERSION, lambda _digest, _version: TOOLS) for line in LINES)


def story(run_id: str = "r1") -> list[Event]:
    """A short run from its start to its end."""
    return [
        started(run_id),
        REPLY,
        CallJudged("c1", Allow()),
        CallStarted("c1"),
        CallEnded("c1", ToolResult("91")),
        RunEnded(Completed("91")),
    ]


async def write(store: JournalStore, run_id: str, events: Sequence[Event], standing: Standing = "") -> None:
    """Put a whole run on record."""
    await add(store, run_id, *events, standing=standing, create=True)


async def add(
    store: JournalStore,
    run_id: str,
    *events: Event,
    standing: Standing = "",
    at: float | None = None,
    create: bool = False,
) -> None:
    """Go on with a run, and let it go."""
    run = await store.open(run_id, create=create)
    await run.append(events, "written", at=at)
    await run.release(standing)


def begun(run_id: str, text: str = "sum up", **changes: object) -> RunStarted:
    return replace(started(run_id), task=Task(text), agent=CLERK, **changes)  # type: ignore[arg-type]  # its fields


async def queue(
    store: JournalStore, run_id: str, text: str = "sum up", standing: Standing = "", **changes: object
) -> None:
    """A run as a server puts it on record for a worker."""
    await write(store, run_id, [begun(run_id, text, **changes)], standing)


async def claimed(store: JournalStore, *agents: str, limit: int = 9) -> list[Claimed]:
    return list(await store.claim(agents or (CLERK,), limit, 30.0))


async def taken(store: JournalStore) -> list[str]:
    """The runs that the store claims."""
    return [one.run_id for one in await claimed(store)]


async def listed(store: JournalStore, wanted: RunFilter = EVERY_RUN, after: str = "", limit: int = 50) -> list[str]:
    return [one.run_id for one in (await store.list(wanted, after, limit)).runs]


async def read_all(store: JournalStore, run_id: str) -> tuple[list[Event], str]:
    records, wrong = await store.read_recorded(run_id)
    return [record.event for record in records], wrong


def connection_of(journal: SqliteJournal) -> sqlite3.Connection:
    """The store's own connection: what it does to the file can be counted and limited there."""
    file = journal._opened  # pyright: ignore[reportPrivateUsage] - the room's own tests look behind its door
    assert file is not None
    return file.db


async def stored(path: Path, *run_ids: str, events: Sequence[Event] | None = None) -> None:
    """A journal at that path with a story for each run, or these events."""
    store = SqliteJournal(path)
    for run_id in run_ids:
        await write(store, run_id, story(run_id) if events is None else events)
    await store.aclose()


def alter(path: Path, statement: str, *values: object) -> int:
    """Change a journal behind the back of whoever wrote it; how many rows were changed."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        return db.execute(statement, values).rowcount
    finally:
        db.close()


def fit_heads(path: Path) -> None:
    """Let what stands beside a journal tell of what is in it now, as if it had been written so."""
    db, heads = sqlite3.connect(path), Heads(path, may_write=True)
    try:
        Reader(db, path, heads).note_heads()
    finally:
        heads.close()
        db.close()


def downgrade(path: Path, form: int) -> None:
    """Make of a file what an earlier surefoot would have made."""
    db = sqlite3.connect(path)
    for name in ("word", "label"):
        db.execute(f"DROP TABLE {name}")
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='index' AND sql IS NOT NULL")]
    for name in names:
        db.execute(f"DROP INDEX {name}")
    for table, column in (
        *(("run", column) for column in ("fence", "lease_until", "ready_at")),
        *(("summary", column) for column in ("status", "standing", "agent", "waits", "change")),
    ):
        db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    if form == 1:
        db.execute("DROP TABLE summary")
    db.execute(f"PRAGMA user_version={form}")
    db.commit()
    db.close()
