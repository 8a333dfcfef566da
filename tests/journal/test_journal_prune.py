"""Runs that ended long ago are taken out whole, with what only they need; and what stays needs nothing that went."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from journal_cases import KINDS, REPLY, Made, add, alter, started

from surefoot.core.loop.fold import fold
from surefoot.journal.codec import digest_of
from surefoot.journal.memory import MemoryJournal
from surefoot.journal.prune import Wanted, due, prune
from surefoot.journal.sqlite import SqliteJournal
from surefoot.types.errors import JournalError, RunBusy, RunUnknown
from surefoot.types.events import CallEnded, Event, RunEnded
from surefoot.types.inner import Outer
from surefoot.types.outcomes import Completed, Ending, Failed
from surefoot.types.ports import JournalStore
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio

OLD, NOW = 1_000.0, 1_000_000.0
DONE = Completed("x")


async def kept(
    store: JournalStore,
    run_id: str,
    ending: Ending | None = DONE,
    at: float = OLD,
    *,
    parent: str = "",
    outer: str = "",
    labels: Mapping[str, str] | None = None,
    data: bytes = b"",
) -> None:
    """A run that ended so and then; with `data` it refers to these bytes."""
    if parent:
        await store.fork(parent, 1, run_id)
    run = await store.open(run_id, create=not parent)
    asked = Outer(outer, "1.0", "x") if outer else None
    events: list[Event] = [] if parent else [replace(started(run_id), labels=labels or {}, outer=asked)]
    events += [REPLY]
    if data:
        events += [CallEnded("c1", ToolResult("cut", blob=await run.put_blob(data)))]
    await run.append([*events, *([RunEnded(ending)] if ending else [])], "written", at=at)
    await run.release()


async def gone(store: JournalStore, wanted: Wanted | None = None) -> set[str]:
    return set(await due(store, wanted or Wanted(OLD + 1)))


@pytest.mark.parametrize("kind", KINDS)
async def test_what_ended_long_ago_goes_and_leaves_a_line(kind: str, made: Made) -> None:
    store = made(kind)
    await kept(store, "old", data=b"old bytes")
    await kept(store, "older", data=b"new bytes")
    await kept(store, "new", at=NOW, data=b"new bytes")
    await kept(store, "open", None)
    end = (await store.read_recorded("old"))[0][-1].hash
    runs = await due(store, Wanted(OLD + 1))
    assert runs == {"old": 4, "older": 4}
    assert [number async for number in prune(store, runs, "Ada")] == [2]
    assert await store.beginning("") == ["new", "open"]
    with pytest.raises(RunUnknown):
        await store.summary("old")
    told = json.loads(await store.side.get(f"pruned-{time.gmtime().tm_year}"))
    assert (told["old"]["hash"], told["old"]["by"], set(told)) == (end, "Ada", {"old", "older"})
    assert await store.get_blob(digest_of(b"new bytes")) == b"new bytes"
    # others wait: PostgreSQL for a day, memory until no run is open
    with pytest.raises(JournalError) if kind == "sqlite" else nullcontext():
        await store.get_blob(digest_of(b"old bytes"))
    assert await due(store, Wanted(OLD + 1)) == {}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_run_stays_as_long_as_another_needs_it(kind: str, made: Made) -> None:
    store = made(kind)
    await kept(store, "shared")
    await kept(store, "fork", parent="shared", at=NOW)
    await kept(store, "asks", at=NOW)
    await kept(store, "asks.1", outer="asks")
    await kept(store, "asked", None)
    await kept(store, "asked.1", outer="asked")
    await kept(store, "whole")
    await kept(store, "whole.1", outer="whole", labels={"keep": "1"})
    assert await gone(store) == {"whole", "whole.1"}
    assert await gone(store, Wanted(NOW + 1)) == {"fork", "shared", "asks", "asks.1", "whole", "whole.1"}
    ids = list(await due(store, Wanted(NOW + 1)))
    assert ids.index("fork") < ids.index("shared")


async def test_statuses_and_labels_narrow_it(made: Made) -> None:
    store = made("sqlite")
    await kept(store, "done", labels={"team": "red"})
    await kept(store, "failed", Failed("error", "x"), labels={"team": "blue", "audit": ""})
    assert await gone(store) == {"done", "failed"}
    assert await gone(store, Wanted(OLD + 1, ["failed"])) == {"failed"}
    goes = {"team": set[str](), "team=red": {"failed"}, "audit": {"done"}, "team=r": {"done", "failed"}}
    for label, left in goes.items():
        assert await gone(store, Wanted(OLD + 1, (), [label])) == left


async def test_a_run_that_was_taken_up_meanwhile_stays_and_leaves_no_line(made: Made) -> None:
    store = made("sqlite")
    for run_id in ("driven", "resumed", "forked", "old"):
        await kept(store, run_id)
    runs = await due(store, Wanted(OLD + 1))
    await add(store, "resumed", REPLY)
    driven = await store.open("driven")
    await store.fork("forked", 2, "fork")
    assert [number async for number in prune(store, {**runs, "unknown": 4}, "Ada")] == [1]
    assert set(await store.beginning("")) == {"driven", "resumed", "forked", "fork"}
    assert set(json.loads(await store.side.get(f"pruned-{time.gmtime().tm_year}"))) == {"old"}
    await driven.release()


class Late(MemoryJournal):
    """A journal in which a run goes on and ends anew just before it is deleted."""

    async def delete(self, run_id: str, *, end: str = "") -> None:
        await add(self, run_id, REPLY, RunEnded(DONE))
        await super().delete(run_id, end=end)


async def test_a_run_that_has_ended_anew_meanwhile_stays() -> None:
    store = Late()
    await kept(store, "old")
    assert [number async for number in prune(store, {"old": 4}, "Ada")] == [0]
    assert await store.beginning("") == ["old"]


async def test_a_damaged_run_stays_and_stops_no_other(path: Path) -> None:
    store = SqliteJournal(path)
    for run_id in ("one", "two"):
        await kept(store, run_id)
    await store.aclose()
    assert alter(path, "UPDATE event SET body=? WHERE run=1 AND seq=2", b"{}") == 1
    runs = await due(store, Wanted(OLD + 1))
    assert [number async for number in prune(store, runs, "Ada")] == [1]
    assert await store.beginning("") == ["one"]
    await store.aclose()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_run_is_deleted_only_for_the_end_that_it_has(kind: str, made: Made) -> None:
    store = made(kind)
    await kept(store, "old")
    before = (await store.read_recorded("old"))[0][-1].hash
    await add(store, "old", REPLY, RunEnded(DONE))
    with pytest.raises(RunBusy, match="has gone on since"):
        await store.delete("old", end=before)
    await store.delete("old", end=(await store.read_recorded("old"))[0][-1].hash)
    assert await store.beginning("") == []


@pytest.mark.parametrize("seed", range(40))
async def test_whatever_the_runs_what_stays_is_whole(seed: int) -> None:
    dice, store = random.Random(seed), MemoryJournal()  # noqa: S311  # no secret
    ids: list[str] = []
    for number in range(dice.randrange(1, 25)):
        parent = dice.choice(ids) if ids and dice.random() < 0.4 else ""
        outer = dice.choice(ids) if ids and not parent and dice.random() < 0.3 else ""
        ending, at = (DONE if dice.random() < 0.8 else None), dice.choice((OLD, NOW))
        await kept(store, f"r{number}", ending, at, parent=parent, outer=outer, data=b"%d" % dice.randrange(9))
        ids.append(f"r{number}")
    before = {run_id: (await store.summary(run_id), await store.rows(run_id)) for run_id in ids}
    going = await due(store, Wanted(OLD + 1))
    counts = [number async for number in prune(store, going, "Ada")]
    assert counts == ([len(going)] if going else [])
    left = set(await store.beginning(""))
    assert left == set(ids) - set(going)
    assert {(before[run_id][0].status, before[run_id][0].changed_at) for run_id in going} <= {("completed", OLD)}
    for run_id in left:
        records, wrong = await store.read_recorded(run_id)
        assert (wrong, await store.rows(run_id)) == ("", before[run_id][1])
        fold(record.event for record in records)
        for record in records:
            if isinstance(record.event, CallEnded) and record.event.result.blob is not None:
                await store.get_blob(record.event.result.blob)
        summary = before[run_id][0]
        assert not summary.outer or summary.outer in left or summary.outer not in ids
