"""How records get into a database: the appends of all runs that a store drives, in as few round trips as there can be.

While one round trip is under way, what comes meanwhile is collected for the next. The server takes the records of a run
only where the run is still this store's and stands where this writer left it. What was committed without a sync could
go with a crash of the server, and the answer to a commit with its connection: so rows are kept until a commit with a
sync has followed, which makes all before it safe, and which asks whether that is all there: a pooler may hide a crash.
Where it is not, and after a connection broke, hashes tell exactly what the server has, and the rest is sent again.
Source: spec/scale.md, section 3.2.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from surefoot.core.state.summary import is_outdated
from surefoot.journal.codec import Blob, EventRow, encode_summary, storable
from surefoot.journal.postgres_server import GONE, PATIENCE_S, Connection, Database, is_passing
from surefoot.types.errors import JournalError, LeaseLost
from surefoot.types.ports import Place, RunSummary
from surefoot.types.words import Posted

LAG_S = 0.002  # how long rows that nobody waits for are collected

_MOST_BYTES = 8_000_000  # what is sent at once, if it is of more than one run

_SYNC_S = 2.0  # after so long what is written is synced in any case, so that little has to be kept

_LABEL_CHARS = 200
_TYPES = (
    "boolean text bigint[] bigint[] bigint[] bytea[] bigint[] bytea[] "  # the runs, and where they stand
    "bigint[] bigint[] float8[] bigint[] bytea[] bytea[] text[] bytea[] "  # records, bytes
    "bigint[] bytea[] text[] text[] text[] text[] boolean[] text[] bigint[] text[] "  # summaries, labels
    "bigint[] bigint[] text[] text[] bigint[] bigint[] bigint[] float8[] boolean[]"  # words, runs that are let go
)
_APPEND = f"SELECT surefoot.append({', '.join(f'%b::{name}' for name in _TYPES.split())})".encode()
_STANDS = """
SELECT run.number, run.owner, run.fence, run.events, run.head, event.hash
FROM unnest(%s::bigint[], %s::bigint[]) AS t (number, seq) JOIN surefoot.run USING (number)
LEFT JOIN surefoot.event ON event.run = run.number AND event.seq = t.seq"""

_KEEP = """
INSERT INTO surefoot.blob (digest, data) SELECT * FROM unnest(%b::text[], %b::bytea[])
ON CONFLICT (digest) DO UPDATE SET first_at = now()"""


async def keep(database: Database, blobs: Sequence[Blob]) -> None:
    """Write bytes now, ahead of what refers to them. Raises `JournalError`."""
    if blobs:
        await database.ask(_KEEP, [list(column) for column in zip(*sorted(dict(blobs).items()), strict=True)])


def text_of(text: str) -> str:
    """A text as this database takes it."""
    return storable(text).replace("\0", "\ufffd")


def label_of(text: str) -> str:
    """A label as it is looked for."""
    return text_of(text[:_LABEL_CHARS])


def searched(summary: RunSummary) -> str:
    """What a run is found by."""
    return text_of("\n".join((summary.run_id, summary.task, summary.answer, *summary.labels.values())).casefold())


@dataclass(eq=False, slots=True)
class Line:
    """What a store knows of a run that it drives.

    `at` is where the run stands in the database as of the last answer; `rows`, which begin at `base`, and `heard` are
    what is not known to be safe there. `freed` says when a worker may claim it, and whether at once for a word.
    """

    number: int
    fence: int
    at: Place
    summary: RunSummary
    kept: RunSummary | None = None
    base: Place = field(init=False)
    rows: list[EventRow] = field(default_factory=list[EventRow])
    heard: list[Posted] = field(default_factory=list[Posted])
    heard_sent: int = 0
    freed: tuple[float | None, bool] | None = None
    is_freed: bool = False
    failure: JournalError | None = None

    def __post_init__(self) -> None:
        self.base = self.at

    @property
    def end(self) -> Place:
        """Where the run stands with all that is queued."""
        return Place(self.rows[-1][1] + 1, self.rows[-1][5]) if self.rows else self.base

    @property
    def unsent(self) -> list[EventRow]:
        return self.rows[self.at.seq - self.base.seq :]

    @property
    def is_summary_due(self) -> bool:
        """Whether what lists show of the run is to be kept now."""
        if self.failure is not None or not self.summary.events:
            return False
        return self.kept is None or self.freed is not None or is_outdated(self.kept, self.summary)

    def is_safe(self) -> None:
        """Forget what a crash of the server cannot take along any more."""
        del self.rows[: self.at.seq - self.base.seq], self.heard[: self.heard_sent]
        self.base, self.heard_sent = self.at, 0

    def fails(self, failure: JournalError) -> None:
        self.failure = failure
        self.rows.clear()
        self.heard.clear()
        self.at, self.heard_sent = self.base, 0

    def resume_at(self, place: Place) -> bool:
        """Whether the run stands there by these rows; then it goes on from there."""
        if is_known := place in (self.base, *(Place(row[1] + 1, row[5]) for row in self.rows)):
            self.at, self.heard_sent, self.kept, self.is_freed = place, 0, None, False
        return is_known


class _Move(NamedTuple):
    """What is sent of a run at one time, and where it stands then; `heard` counts its words."""

    line: Line
    rows: list[EventRow]
    end: Place
    heard: int
    freed: tuple[float | None, bool] | None


class Writer:
    """Writes for all runs that a store drives. `tell` gets the numbers of runs that have changed, 0 for any summary."""

    def __init__(self, database: Database, token: str, tell: Callable[[set[int]], None]) -> None:
        self._database = database
        self._token = token
        self._tell = tell
        self._queue: dict[Line, None] = {}
        self._unsafe: dict[Line, None] = {}
        self._blobs: dict[str, bytes] = {}
        self._known: dict[str, bytes] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._is_sync_due = False
        self._synced_at = 0.0
        self._breaks = 0
        self._is_awaited = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, line: Line, rows: Iterable[EventRow] = (), heard: Iterable[Posted] = ()) -> None:
        """Queue rows of a run, and words with what came of them. What is queued before an await is written at once."""
        line.rows += rows
        line.heard += heard
        self._queue[line] = None

    def put(self, digest: str, data: bytes) -> None:
        """Queue bytes, for the next round trip."""
        if digest not in self._known or time.monotonic() > self._synced_at + _SYNC_S:
            self._blobs[digest] = data

    def soon(self) -> None:
        """See to it that what is queued is written before long."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._write_all())

    async def flushed(self, *, synced: bool = False) -> None:
        """Return when what is queued now is written, or has failed; with `synced`, when it is also safe."""
        if not self._queue and not self._blobs and self._task is None and not (synced and self._unsafe):
            return
        self._is_sync_due |= synced
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._is_awaited.set()
        self.soon()
        await waiter

    @property
    def leaving(self) -> Iterator[int]:
        """The numbers of the runs that are to be let go, which the database has not been told yet."""
        return (line.number for line in (*self._queue, *self._unsafe) if line.freed is not None and not line.is_freed)

    def forget(self, number: int) -> None:
        """A run has been opened anew with a sync, so that whatever was written of it is safe."""
        for line in [line for line in self._unsafe if line.number == number]:
            del self._unsafe[line]

    def give_up(self) -> None:
        """Write no more: what is not known to be written has failed."""
        if self._task is not None:
            self._task.cancel()
        lines = [line for line in self._unsafe | self._queue if line.unsent]
        told = ", ".join(f"{len(line.unsent)} of run {line.summary.run_id}" for line in lines)
        told = f"it gave no answer; its last records may be missing: {told}; resume these runs once it is back"
        for line in lines:
            line.fails(JournalError(f"journal {self._database.name}: {told}"))

    def rebind(self) -> None:
        """Go on on another event loop; what was under way on the one before is found out about."""
        self._task, self._is_awaited = None, asyncio.Event()
        self._waiters.clear()
        self._breaks = -1
        for line in self._unsafe:
            self._queue[line] = None

    async def _write_all(self) -> None:
        waiters: list[asyncio.Future[None]] = []
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(LAG_S):
                    await self._is_awaited.wait()
            while self._queue or self._waiters:
                lines, self._queue = self._queue, {}
                waiters, self._waiters = self._waiters, []
                self._is_awaited.clear()
                synced, self._is_sync_due = self._is_sync_due, False
                synced = synced or time.monotonic() - self._synced_at > _SYNC_S
                self._unsafe |= lines
                due = tuple(self._blobs)
                pieces = tuple(_pieces(lines)) or ((),)
                if any([await self._is_refused(piece, synced=synced) for piece in pieces]):
                    for digest in due:  # else they would be refused for ever
                        self._blobs.pop(digest, None)
                for waiter in waiters:
                    if not waiter.done():
                        waiter.set_result(None)
        except BaseException as error:
            for waiter in (*waiters, *self._waiters):
                if not waiter.done():
                    waiter.set_exception(error)
            raise
        finally:
            self._task = None

    async def _is_refused(self, lines: Sequence[Line], *, synced: bool) -> bool:
        """Write; whether bytes were refused. Lines that are refused are tried in parts, so that each fails alone."""
        batch, breaks = dict.fromkeys(lines), -1

        async def send(connection: Connection) -> None:
            nonlocal batch, breaks
            batch, breaks = dict.fromkeys(lines), self._database.breaks
            is_doubtful, self._breaks = self._breaks != breaks, -1
            while True:
                if is_doubtful:
                    await self._compare(connection)
                    batch |= dict.fromkeys(line for line in self._unsafe if line.unsent or line.heard or line.freed)
                batch = await self._send(connection, batch, synced=synced)
                if not (is_doubtful := bool(batch)):
                    break
            self._breaks = breaks

        try:
            await self._database.work(send, patience_s=PATIENCE_S if lines else 0)
        except JournalError as error:
            is_away, each = error.__cause__ is not None and is_passing(error.__cause__), tuple(batch)
            self._breaks = -1 if is_away else breaks  # of what is refused nothing was written
            if not is_away and len(each) > 1:
                return any([await self._is_refused(part, synced=synced) for part in (each[::2], each[1::2])])
            for line in lines if is_away else each:
                line.fails(error)
                self._unsafe.pop(line, None)
            if is_away or not each:
                return not is_away
            return bool(self._blobs) and await self._is_refused((), synced=synced)
        return False

    async def _send(self, connection: Connection, lines: dict[Line, None], *, synced: bool) -> dict[Line, None]:
        blobs = dict(self._blobs)
        moves = [_Move(line, line.unsent, line.end, len(line.heard), line.freed) for line in lines]
        asked = [line for line in self._unsafe if synced and line.freed is None and line not in lines]
        moves += [_Move(line, [], line.at, line.heard_sent, None) for line in asked]
        shown = [(line, line.summary) for line in lines if line.is_summary_due]
        columns = _columns(self._token, moves, shown, blobs)
        ((taken,),) = await (await connection.execute(_APPEND, (synced, *columns))).fetchall()
        self._blobs = {digest: data for digest, data in self._blobs.items() if digest not in blobs}
        self._known |= blobs
        written, changed, doubted = set[int](taken), {0} if shown else set[int](), dict[Line, None]()
        for line, summary in shown:
            line.kept = summary
        for line, rows, end, heard, freed in moves:
            line.is_freed = freed is not None
            if line.number in written:
                line.at, line.heard_sent = end, heard
                if rows:
                    changed.add(line.number)
            elif line.failure is None and (line.rows or line.heard):  # who only lets it go has lost nothing
                doubted[line] = None
        if synced and not doubted:
            self._synced_at = time.monotonic()
            for line in tuple(self._unsafe):
                line.is_safe()
                if not line.rows and not line.heard and line.is_freed == (line.freed is not None):
                    del self._unsafe[line]
            self._known.clear()  # what is sent again is not lost where somebody has removed it
        self._tell(changed)
        return doubted

    async def _compare(self, connection: Connection) -> None:
        """Find out what the server has of all that could be lost."""
        lines = tuple(self._unsafe)
        asked = ([line.number for line in lines], [line.end.seq - 1 for line in lines])
        rows = await (await connection.execute(_STANDS, asked)).fetchall()
        stands = {number: rest for number, *rest in rows}
        for line in [one for one in lines if one in self._unsafe]:  # another was opened anew meanwhile, and is safe
            owner, fence, seq, head, last = stands.get(line.number, ("", 0, None, b"", b""))
            if (owner, fence) == (self._token, line.fence) and line.resume_at(Place(seq or 0, head)):
                continue
            del self._unsafe[line]
            if line.rows and last == line.end.hash:  # another goes on with it, after all that is here
                line.at, line.heard_sent = line.end, len(line.heard)
                line.is_safe()
            elif line.rows or line.heard:
                self._lose(line, seq)
        self._blobs = {digest: data for digest, data in self._known.items() if data} | self._blobs
        self._known.clear()

    def _lose(self, line: Line, seq: int | None) -> None:
        told = "has gone on without this process: somebody else drives this run; leave it to them, or open it again"
        if seq is None:
            told = "is no longer there: it was deleted"
        elif seq < line.base.seq:
            told = f"has {seq} of {line.base.seq} confirmed records: {GONE}; release it and open it again"
        line.fails(LeaseLost(f"journal {self._database.name}: run {line.summary.run_id} {told}"))


def _pieces(lines: Iterable[Line]) -> Iterator[list[Line]]:
    piece, size = list[Line](), 0
    for line in lines:
        more = sum(len(row[4]) for row in line.unsent)
        if piece and size + more > _MOST_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(line)
        size += more
    if piece:
        yield piece


def _columns(
    token: str, moves: Sequence[_Move], shown: Sequence[tuple[Line, RunSummary]], blobs: dict[str, bytes]
) -> Iterator[object]:
    """What `surefoot.append` takes, but for whether it is to be synced: columns, of rows that belong together."""
    yield token
    whole = [
        (move.line.number, move.line.fence, *move.line.at, *move.end) for move in moves if move.line.failure is None
    ]
    yield from _turned(6, whole)
    yield from _turned(6, [row for move in moves for row in move.rows])
    yield from _turned(2, blobs.items())
    yield from _turned(8, [_summary_row(line.number, one) for line, one in shown])
    labels = [(line.number, f"{name}={value}") for line, one in shown for name, value in one.labels.items()]
    yield from _turned(2, [(number, label_of(label)) for number, label in labels])
    heard = [(one, move.line.number) for move in moves for one in move.line.heard[move.line.heard_sent : move.heard]]
    yield from _turned(5, [(one.number, run, one.outcome, text_of(one.detail), one.seq) for one, run in heard])
    yield from _turned(
        4, [(move.line.number, move.line.fence, *move.freed) for move in moves if move.freed is not None]
    )


def _summary_row(number: int, one: RunSummary) -> tuple[object, ...]:
    agent, waits = text_of(one.agent), one.questions > 0 or one.standing in ("approval", "in_doubt")
    claimed_by = "" if one.outer else agent
    return number, encode_summary(one), one.status, one.standing, agent, claimed_by, waits, searched(one)


def _turned(width: int, rows: Iterable[Sequence[object]]) -> list[list[object]]:
    """Rows as so many columns."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]
