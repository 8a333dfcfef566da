"""The rows of a journal as pure functions, for every backend: those of new events, and stored ones that are proven.

A fork owns its records from `at` on and shares those before with its parent, so the records of a run are those of its
lineage, oldest ancestor first, each up to where the next one begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from surefoot.core.summary import summarise
from surefoot.journal.codec import chain, decode, encode
from surefoot.types.errors import JournalCorrupt, JournalError, JournalTooNew, UsageError
from surefoot.types.events import VERSION, Event
from surefoot.types.ports import Recorded
from surefoot.types.summary import RunSummary
from surefoot.types.tools import Catalogue

_BEYOND = 2**62
"""More records than a run can have."""

_FORMS = 2**31
"""Forms of records that there can be."""

EventRow = tuple[int, int, float, int, bytes, bytes]
"""Run number, seq, at, form, body, hash."""

BlobRow = tuple[str, bytes, int, int]
"""Digest, data, and the record that they are kept for: run number, seq."""


class RunRow(NamedTuple):
    """One run as the journal lists it.

    `parent` is its parent's number, `at` its first own record, `owner` who drives it, `events` its length when it was
    last released.
    """

    number: int
    run_id: str
    started_at: float
    parent: int | None
    at: int
    owner: str
    events: int


@dataclass(frozen=True, slots=True)
class Segment:
    """The records of one run in a lineage: from `start` up to, but not including, `stop`; at least up to `least`."""

    number: int
    run_id: str
    start: int
    stop: int
    least: int


class Tail(NamedTuple):
    """Where a run ends: the next record is `seq`, and its hash follows `hash`."""

    seq: int
    hash: bytes


def check_id(run_id: str) -> None:
    """Raise `UsageError` for what cannot be the id of a run."""
    if not run_id or not run_id.isprintable():
        raise UsageError(f"{run_id!r} cannot be the id of a run; give printable text")


def check_fork(parent: str, at: int, records: int) -> None:
    """Raise `UsageError` unless a run of so many records can be forked at record `at`: it must share at least one."""
    if records == 0:
        raise UsageError(f"run {parent} has 0 records, so there is nothing to fork; start a new run")
    if not 1 <= at <= records:
        raise UsageError(f"run {parent} has {records} records; fork it at 1 to {records}, not at {at}")


def rows_of(
    number: int, events: Sequence[Event], at: float, tail: Tail, summary: RunSummary
) -> tuple[list[EventRow], list[BlobRow], Tail, RunSummary]:
    """The rows of events that are appended to a run at that time, and how the run stands with them.

    Raises `JournalError` for what cannot be recorded.
    """
    seq, previous = tail
    rows: list[EventRow] = []
    blobs: list[BlobRow] = []
    for event in events:
        body, blob = encode(event)
        if blob is not None:
            blobs.append((*blob, number, seq))
        previous = chain(previous, VERSION, at, body)
        rows.append((number, seq, at, VERSION, body, previous))
        summary = summarise(summary, event, at)
        seq += 1
    return rows, blobs, Tail(seq, previous), summary


def lineage(row: RunRow, least: int, parent_of: Callable[[int], RunRow | None]) -> list[Segment]:
    """Whose records a run consists of, oldest ancestor first. Ends whatever the rows say: the numbers must fall."""
    run_id, stop = row.run_id, _BEYOND
    segments = [Segment(row.number, row.run_id, row.at, stop, max(row.events, least))]
    while row.parent is not None:
        parent = parent_of(row.parent) if row.parent < row.number else None
        if parent is None:
            raise JournalCorrupt(run_id, 0, "the run that it was forked from is gone")
        stop = min(stop, row.at)
        segments.append(Segment(parent.number, parent.run_id, parent.at, stop, stop))
        row = parent
    return segments[::-1]


def record_of_row(
    run_id: str, expected: int, previous: bytes, row: object, catalogue: Callable[[str, int], Catalogue]
) -> tuple[Recorded, bytes]:
    """The record that follows the hash `previous`, and its own hash. Raises `JournalCorrupt`, or `JournalTooNew`."""
    match row:
        case (int(seq), float(at), int(version), bytes(body), bytes(hash_)) if 0 < version < _FORMS:
            pass
        case _:
            raise JournalCorrupt(run_id, expected, "its row is damaged")
    if seq != expected:
        raise JournalCorrupt(run_id, expected, f"the record is missing; the next one is {seq}")
    if chain(previous, version, at, body) != hash_:
        raise JournalCorrupt(run_id, expected, "its hash does not match: it was altered or moved")
    try:
        return Recorded(seq, at, hash_.hex(), decode(body, version, catalogue)), hash_
    except JournalTooNew as error:
        raise JournalTooNew(f"run {run_id}, record {seq}: {error}") from error
    except (ValueError, JournalError) as error:
        raise JournalCorrupt(run_id, seq, f"it cannot be read as an event: {error}") from error
