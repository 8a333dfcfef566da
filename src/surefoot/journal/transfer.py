"""Runs out of one journal and into another, as they were written: from store to store, or by way of lines of JSON.

The lines are those that a `MemoryJournal` keeps, behind a first line that says what they are; a run's line also tells
how many records of its own follow. Whoever goes on after a cut, or with a run that has more records by now, gives the
last record that is there once more, so that each store proves that the two are one.
Source: spec/scale.md, section 5, "Moving".
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, get_args

from surefoot.journal.codec import Blob, digest_of, genesis
from surefoot.journal.raw import proven, references
from surefoot.types.archive import Origin, Row
from surefoot.types.errors import JournalError, JournalTooNew, RunUnknown, UsageError
from surefoot.types.ports import EVERY_RUN, JournalStore, Place, RunSummary, Standing

FORM = 1  # the form of the lines

PIECE = 500  # records that are taken in at once

MOST = 2**31  # more runs than there can be

_STANDS_STILL = ("approval", "in_doubt", "set_aside")
"""Standings that are not told by records; a run with any other is taken up by nobody until somebody says so."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What came of one of so many `runs`: how many records were read of it, or the `fault` for which it was left."""

    run_id: str
    records: int
    fault: str
    runs: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Records of a run in a row, with the bytes that they refer to; the last one in lines tells its standing, too."""

    origin: Origin
    rows: Sequence[Row]
    blobs: Sequence[Blob]
    is_last: bool = False
    standing: Standing = ""


async def pieces(store: JournalStore, run_id: str, since: int, until: int, known: set[str]) -> AsyncIterator[Piece]:
    """The own records of a run from `since` to before `until`, however it goes on meanwhile; at least one piece.

    Bytes that are `known` are left out, others added. Raises `JournalError`.
    """
    origin = await store.origin(run_id)
    at = max(since, origin.fork)
    while True:
        rows = (await store.rows(run_id, at, PIECE))[: max(until - at, 0)]
        new = {digest for row in rows for digest in references(row.body)} - known
        yield Piece(origin, rows, [(digest, await store.get_blob(digest)) for digest in sorted(new)])
        known |= new
        at += len(rows)
        if len(rows) < PIECE:
            return


async def every_run(store: JournalStore) -> AsyncIterator[RunSummary]:
    """All runs of a list, newest first, page by page; who drives runs here has a turn between them."""
    after, is_more = "", True
    while is_more:
        page = await store.list(EVERY_RUN, after, 200)
        for one in page.runs:
            yield one
        after, is_more = page.next, bool(page.next)
        await asyncio.sleep(0)


async def copy(source: JournalStore, target: JournalStore, since: float | None = None) -> AsyncIterator[Moved]:
    """Bring all runs of one journal into another, oldest first, or those that have changed `since` that time.

    Runs that are there already, whole or in part, go on where they end. A run that cannot be moved is told with its
    fault, and the others are moved all the same; so are the runs whose records a run shares.
    """
    ids, left = list[str](), set(await source.beginning("", MOST))
    async for one in every_run(source):
        left.discard(one.run_id)
        ids += [one.run_id] if since is None or one.changed_at >= since else []
    ids = [*reversed(ids), *sorted(left)]  # what no list has cannot be read
    done, known = set[str](), set[str]()
    for run_id in ids:
        try:
            records = sum([await _move(source, target, one, known) for one in await lineage(source, run_id, done)])
        except (JournalError, UsageError) as error:
            yield Moved(run_id, 0, str(error), len(ids))
        else:
            yield Moved(run_id, records, "", len(ids))


async def lineage(store: JournalStore, run_id: str, done: set[str]) -> list[str]:
    """The run behind those whose records it shares, without those that are `done`; these are done from now on."""
    found: list[str] = []
    while run_id and run_id not in done:
        found.append(run_id)
        run_id = (await store.origin(run_id)).parent
    done.update(found)
    return found[::-1]


async def _move(source: JournalStore, target: JournalStore, run_id: str, known: set[str]) -> int:
    here, records, length = await source.summary(run_id), 0, 0
    with suppress(RunUnknown):
        length = (await target.summary(run_id)).events
    since = max(min(length, here.events) - 1, 0)
    async for piece in pieces(source, run_id, since, here.events, known):
        await target.adopt(piece.origin, piece.rows, piece.blobs)
        records += len(piece.rows)
    await _stand(target, run_id, here.standing, here.events)
    return records


async def _stand(store: JournalStore, run_id: str, standing: Standing, events: int) -> None:
    """Have a run wait for what it waited for where it came from, unless it has gone on since then."""
    now = await store.summary(run_id)
    if standing in _STANDS_STILL and now.standing != standing and now.events == events:
        await (await store.open(run_id)).release(standing)


async def lines_of(store: JournalStore, run_ids: Sequence[str]) -> AsyncIterator[str]:
    """Runs as lines of JSON, without line ends, behind those whose records they share, with those of their agents."""
    done, known = set[str](), set[str]()
    left, ids = [*run_ids], list[str]()
    while left:
        ids += (found := await lineage(store, left.pop(0), done))
        left += [inner for one in found for inner in await store.beginning(f"{one}.", MOST)]
    yield json.dumps({"surefoot": "journal", "form": FORM, "runs": len(ids)})
    for run_id in ids:
        summary = await store.summary(run_id)
        is_first = True
        async for piece in pieces(store, run_id, 0, summary.events, known):
            origin = piece.origin
            if is_first:
                told = {"run": run_id, "parent": origin.parent or None, "fork": origin.fork, "began": origin.began}
                yield json.dumps({**told, "records": summary.events - origin.fork, "standing": summary.standing})
                is_first = False
            for digest, data in piece.blobs:
                yield json.dumps({"blob": digest, "data": b64encode(data).decode()})
            for row in piece.rows:
                told = {"seq": row.seq, "at": row.at, "form": row.form, "hash": row.hash.hex()}
                yield json.dumps({"run": run_id, **told, "body": row.body.decode()})


def pieces_in(lines: Iterable[str]) -> Iterator[Piece]:
    """What lines hold, each proven against those before it. Raises `JournalError`, which names the line."""
    number, is_empty = 0, True

    def lines_read() -> Iterator[dict[str, Any]]:  # Any: JSON, and what it lacks is said
        nonlocal number, is_empty
        for text in lines:
            number += 1  # the last one is named
            if said := text.strip("\ufeff \t\r\n"):  # some shells and editors put a mark before the first line
                is_empty = False
                yield json.loads(said)

    try:
        yield from _pieces(lines_read())
    except (AttributeError, KeyError, TypeError, ValueError, JournalError) as error:
        if is_empty:
            raise JournalError("there is nothing to import: the lines are empty; export the runs again") from error
        why = f"{type(error).__name__}: {error}" if isinstance(error, AttributeError | KeyError | TypeError) else error
        raise JournalError(f"line {number} cannot be imported: {why}; export the runs again") from error


def _pieces(told: Iterator[dict[str, Any]]) -> Iterator[Piece]:  # Any: as above
    match next(told, None):
        case {"surefoot": "journal", "form": int(form), "runs": int(left)}:
            if form > FORM:
                raise JournalTooNew(f"a later surefoot wrote it (form {form}; this one knows {FORM}): upgrade it")
        case _:
            raise ValueError("these are not runs that were exported with `surefoot export RUN --form journal`")
    run, standing, end = None, "", 0
    rows, blobs, digests, before = list[Row](), list[Blob](), set[str](), list[Piece]()
    hashes: dict[str, list[bytes]] = {}  # of all records of each run, shared ones too
    for line in told:
        match line:
            case {"blob": str(digest), "data": str(data)}:
                if digest_of(whole := b64decode(data)) != digest:
                    raise ValueError("its bytes were altered")
                blobs.append((digest, whole))
                digests.add(digest)
            case {"run": str(run_id), "fork": int(fork), "began": float(began), "records": int(due)}:
                if run is not None:
                    before, rows, blobs = [_last(run, rows, blobs, standing, end - len(hashes[run.run_id]))], [], []
                run, left = Origin(run_id, began, line["parent"] or "", fork), left - 1
                standing, end = line["standing"] if line["standing"] in get_args(Standing) else "", fork + due
                shared = hashes.get(run.parent, [])[:fork]
                if run_id in hashes or len(shared) != fork or bool(run.parent) != bool(fork):
                    why = "is there twice" if run_id in hashes else "shares records that do not precede it"
                    raise ValueError(f"run {run_id} {why}")
                hashes[run_id] = shared
                yield from before
            case {"run": str(run_id), "seq": int(seq)} if run is not None and run_id == run.run_id:
                known = hashes[run_id]
                row = (seq, line["at"], line["form"], line["body"].encode(), bytes.fromhex(line["hash"]))
                rows.append(proven(run_id, Place(len(known), known[-1] if known else genesis(run_id)), row))
                if missing := references(rows[-1].body) - digests:
                    raise ValueError(f"the bytes of digest {min(missing)}, to which it refers, do not precede it")
                known.append(rows[-1].hash)
                if len(rows) == PIECE:
                    yield Piece(run, rows, blobs, standing=standing)
                    rows, blobs = [], []
            case _:
                raise ValueError("it is neither a run, nor a record of the run before it, nor bytes")
    if run is not None:
        before = [_last(run, rows, blobs, standing, end - len(hashes[run.run_id]))]
    if left:
        raise ValueError(f"it is the last one, but {abs(left)} runs are {_wrong(left)}")
    yield from before


def _last(run: Origin, rows: Sequence[Row], blobs: Sequence[Blob], standing: Standing, lacks: int) -> Piece:
    """The last piece of a run. Raises `ValueError` where it has other records than were told."""
    if lacks:
        raise ValueError(f"run {run.run_id} ends there, but {abs(lacks)} of its records are {_wrong(lacks)}")
    return Piece(run, rows, blobs, is_last=True, standing=standing)


async def take_in(store: JournalStore, lines: Iterable[str]) -> AsyncIterator[Moved]:
    """Keep the runs of such lines. One that is here already must be the same as far as both go.

    Raises `JournalError` for a line, with what precedes it kept; check all of them with `pieces_in` before.
    """
    records = 0
    for piece in pieces_in(lines):
        await store.adopt(piece.origin, piece.rows, piece.blobs)
        records += len(piece.rows)
        if piece.is_last:
            await _stand(store, piece.origin.run_id, piece.standing, piece.origin.fork + records)
            yield Moved(piece.origin.run_id, records, "", 0)
            records = 0


def _wrong(lacks: int) -> str:
    return "missing" if lacks > 0 else "too many"
