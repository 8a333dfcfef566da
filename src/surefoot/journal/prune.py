"""Whole runs that ended long ago, taken out of a journal for good.

A run goes with the runs of the agents that it has asked, or none of them goes; and nothing goes whose records are
shared by a run that stays. What was taken out stays on record beside the runs. Source: spec/scale.md, section 5,
"Retention".
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import orjson

from surefoot.journal.side import amend
from surefoot.journal.transfer import every_run
from surefoot.types.errors import RunBusy, RunUnknown, UsageError
from surefoot.types.events import RunEnded
from surefoot.types.ports import JournalStore, RunSummary

T = TypeVar("T")

PRUNED = "pruned"  # the name, before `-YEAR`, under which it stands beside the runs which of them were taken out

_PIECE = 1_000  # runs that are noted at once
_AT_ONCE = 4  # runs that are read or deleted at once: a database has each wait for its disk


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs may go: ended before `before` (seconds since the epoch), with one of the `statuses` if any are named.

    `kept_labels` are "name" or "name=value": a run that has one of them stays.
    """

    before: float
    statuses: Collection[str] = ()
    kept_labels: Collection[str] = ()


async def due(store: JournalStore, wanted: Wanted) -> dict[str, int]:
    """The runs that may go, each behind those that share its records, and how many it has. Reads summaries alone."""
    runs = {one.run_id: one async for one in every_run(store)}  # newest first: each precedes those that it shares
    family = dict[str, str]()
    for run_id in runs:
        outermost = run_id
        while (outer := runs[outermost].outer) in runs:
            outermost = outer
        family[run_id] = outermost
    needs = defaultdict[str, set[str]](set)  # a family, and those whose records it shares
    for run_id, run in runs.items():
        if run.parent in family:
            needs[family[run_id]].add(family[run.parent])
    stays = [family[run_id] for run_id, run in runs.items() if not _may_go(run, wanted)]
    kept = set(stays)
    while stays:
        new = needs[stays.pop()] - kept
        kept |= new
        stays += new
    return {run_id: run.events for run_id, run in runs.items() if family[run_id] not in kept}


async def prune(store: JournalStore, runs: Mapping[str, int], by: str) -> AsyncIterator[int]:
    """Take the runs that are `due` out, each unless somebody has taken it up meanwhile; gives how many have gone.

    Before a run goes, its id, the hash of its last record, `by` whom it is taken out and when stand beside the runs,
    under `pruned-YEAR`. In the end the bytes that no run refers to are removed. Raises `JournalError`.
    """
    gone, run_ids = 0, list(runs)
    for at in range(0, len(run_ids), _PIECE):
        piece = run_ids[at : at + _PIECE]
        read = await _each(piece, lambda run_id: _end(store, run_id, runs[run_id]))
        ends = {run_id: end for run_id, end in zip(piece, read, strict=True) if end}
        now = time.time()
        told = {run_id: {"hash": end, "by": by, "at": now} for run_id, end in ends.items()}
        name = f"{PRUNED}-{time.gmtime(now).tm_year}"
        await amend(store.side, name, lambda was, told=told: _dump({**_read(was), **told}))
        deleted = await _each(list(ends), lambda run_id, ends=ends: _is_deleted(store, run_id, ends[run_id]))
        left = list[str]()
        for run_id in (run_id for run_id, is_gone in zip(ends, deleted, strict=True) if not is_gone):
            if not await _is_deleted(store, run_id, ends[run_id]):  # what shared its records may have gone meanwhile
                left.append(run_id)
        gone += len(ends) - len(left)
        if left:
            await amend(
                store.side,
                name,
                lambda was, left=left: _dump({key: one for key, one in _read(was).items() if key not in left}),
            )
        yield gone
    await store.sweep()


_NOT_ENDED = frozenset({"running", "paused", "ready", "queued", "interrupted", "set_aside", "damaged"})


def _may_go(run: RunSummary, wanted: Wanted) -> bool:
    has_ended = run.status not in _NOT_ENDED and run.changed_at < wanted.before
    if run.outer:  # which decides
        return has_ended
    labels = {*run.labels, *(f"{name}={value}" for name, value in run.labels.items())}
    is_wanted = not wanted.statuses or run.status in wanted.statuses
    return has_ended and is_wanted and labels.isdisjoint(wanted.kept_labels)


async def _each(run_ids: Sequence[str], ask: Callable[[str], Awaitable[T]]) -> list[T]:
    """What is said of each run, in their order; a few are asked about at once."""
    found = list[T]()
    for at in range(0, len(run_ids), _AT_ONCE):
        found += await asyncio.gather(*map(ask, run_ids[at : at + _AT_ONCE]))
        await asyncio.sleep(0)  # who drives runs here has a turn
    return found


async def _is_deleted(store: JournalStore, run_id: str, end: str) -> bool:
    try:
        await store.delete(run_id, end=end)
    except RunUnknown:  # somebody else was first
        return True
    except (RunBusy, UsageError):  # it was taken up, or forked, just now
        return False
    return True


async def _end(store: JournalStore, run_id: str, count: int) -> str:
    """The hash of the last record of a run that had so many and has ended; "" for one that goes on, or is damaged."""
    try:
        records, wrong = await store.read_recorded(run_id, count - 1)
    except RunUnknown:  # somebody else was first
        return ""
    return records[0].hash if not wrong and len(records) == 1 and isinstance(records[0].event, RunEnded) else ""


def _read(data: bytes) -> dict[str, object]:
    return orjson.loads(data or b"{}")


def _dump(pruned: dict[str, object]) -> bytes:
    return orjson.dumps(pruned, option=orjson.OPT_INDENT_2)
