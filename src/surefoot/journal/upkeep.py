"""What a person does for a journal file: copy it while it is in use, prove it, decide about records that are lost."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from surefoot.core.loop.fold import fold
from surefoot.core.loop.replay import replay
from surefoot.journal.codec import RunRow, genesis
from surefoot.journal.heads import Head, Heads, head_of, heads_of
from surefoot.journal.sqlite import SqliteJournal
from surefoot.journal.sqlite_file import (
    connect,
    connect_for,
    file_error,
    form_of,
    is_alive,
    owners_of,
    translate_errors,
)
from surefoot.journal.sqlite_read import ACCEPT, Reader
from surefoot.journal.sqlite_write import sync_file, sync_folder
from surefoot.types.errors import JournalError, RunBusy, RunUnknown, UsageError
from surefoot.types.events import Event, RunEnded, RunResumed
from surefoot.types.ports import JournalStore

_ALL_RUNS = "SELECT number, run_id FROM run ORDER BY number"
_CUT_FORKS = """
WITH RECURSIVE fork(number) AS (
    SELECT number FROM run WHERE parent=:number UNION SELECT run.number FROM run JOIN fork ON run.parent=fork.number
) UPDATE run SET at=:end WHERE at>:end AND number IN (SELECT number FROM fork)"""


@dataclass(frozen=True, slots=True)
class RunFault:
    """What is wrong with one run; `run_id` is "" for the file itself. `is_lost`: only its end, or the proof of it."""

    run_id: str
    message: str
    is_lost: bool = False


def verify(path: Path) -> list[RunFault]:
    """What is wrong with the journal of that path: its pages, each run's chain, its head, and whether it can be folded.

    Raises `JournalError` for a file that cannot be read at all.
    """
    with _reading(path) as (db, reader, heads):
        with translate_errors(path):
            pages = [str(told) for (told,) in db.execute("PRAGMA quick_check")]
            ids = [str(run_id) for _, run_id in db.execute(_ALL_RUNS)]
        found = [RunFault("", told) for told in pages if told != "ok"]
        if heads.unreadable is not None:
            told = f"{heads.path}: {heads.unreadable.strerror}; the length of the runs could not be checked"
            found.append(RunFault("", told))
        found += [fault for run_id in ids if (fault := _fault(reader, run_id)) is not None]
        for _, head in reader.lost_runs().values():
            told = f"run {head.name}: all of its records are missing"  # where its id is cut, that is all there is
            try:
                reader.check_not_lost(head.name)
            except JournalError as error:
                told = str(error)
            found.append(RunFault(head.name, told, is_lost=True))
        return found


def backup(path: Path, target: Path) -> list[RunFault]:
    """Copy the journal to a new file, as it is at one moment, also in use; gives what `verify` says of the copy.

    The copy has heads of its own that fit; where the journal lacks records, or what proves how many there were, so does
    the copy, and it says so. A journal of form 1 has none, and neither has its copy. Raises `UsageError` where there is
    something already, `JournalError` when it cannot be copied.
    """
    beside = (target, heads_of(target), *(target.with_name(f"{target.name}{end}") for end in ("-wal", "-shm")))
    if there := next((one for one in beside if os.path.lexists(one)), None):
        raise UsageError(f"{there} is there already; name a file that is not")
    with _reading(path) as (db, reader, heads):
        if heads.unreadable is not None:
            raise file_error(path, heads.unreadable)
        before = reader.heads()  # before the copy is made, which then has at least what they tell of
        with translate_errors(target):
            os.close(os.open(target, os.O_CREAT | os.O_EXCL, 0o600))
        try:
            with translate_errors(target), closing(sqlite3.connect(target, isolation_level=None)) as copy:
                db.backup(copy)
                if form_of(copy) > 1:
                    _keep_heads(copy, target, before, reader.heads())
            with translate_errors(target):
                sync_file(target)
                sync_folder(target.parent)
        except BaseException:  # whatever it was, half a copy must not pass for one
            for one in beside:
                one.unlink(missing_ok=True)
            raise
    return verify(target)


@dataclass(frozen=True, slots=True)
class Accepted:
    """What came of a run whose loss was accepted: how many records it has, and whether it has ended with them."""

    records: int
    has_ended: bool


async def accept(path: Path, run_id: str, by: str) -> Accepted:
    """Let a run go on without records that are lost, or with nothing that proves its end. One that has ended stays so.

    `by` is whose decision it is; it goes on record where the run goes on. Raises `JournalError` when what is left is
    damaged too, `RunBusy` while somebody drives the run, `UsageError` for an unknown one, and one that lost nothing.
    """
    if not by.strip():
        raise UsageError("say whose decision this is: give `by`")
    with translate_errors(path):
        left = _shortened(path, run_id)
    if left.records and not left.has_ended:
        store = SqliteJournal(path)
        try:
            run = await store.open(run_id)
            await run.append([RunResumed(by)], "synced")
            await run.release()
        finally:
            await store.aclose()
    return left


async def faults_of(store: JournalStore, run_id: str, *, replays: bool) -> list[RunFault]:
    """What is wrong with a run of any store: its chain, whether it can be folded, and whether it replays alike."""
    try:
        records, wrong = await store.read_recorded(run_id)
    except RunUnknown:  # it was deleted meanwhile
        return []
    except JournalError as error:
        return [RunFault(run_id, str(error))]
    if wrong:
        return [RunFault(run_id, wrong)]
    told = _wrong_in(run_id, [record.event for record in records], replays=replays)
    return [RunFault(run_id, told)] if told else []


def _fault(reader: Reader, run_id: str) -> RunFault | None:
    try:
        records, wrong = reader.load(run_id, 0)
        if wrong is None:
            reader.head(run_id)
    except RunUnknown:  # it was deleted meanwhile
        return None
    except JournalError as error:
        records, wrong = [], error
    if wrong is not None:
        return RunFault(run_id, str(wrong), is_lost=ACCEPT in str(wrong))
    told = _wrong_in(run_id, [record.event for record in records])
    return RunFault(run_id, told) if told else None


def _wrong_in(run_id: str, events: Sequence[Event], *, replays: bool = False) -> str:
    """What is wrong with the records of a run that are whole, "" for nothing."""
    try:
        fold(events)
        differs_at = replay(events).differs_at if replays else None
    except Exception as error:  # noqa: BLE001 - whatever it is, the records cannot be folded
        return f"run {run_id}: its records cannot be folded: {type(error).__name__}: {error}"
    return "" if differs_at is None else f"run {run_id}: record {differs_at} replays differently"


def _keep_heads(copy: sqlite3.Connection, target: Path, before: dict[int, Head], after: Mapping[int, Head]) -> None:
    """Heads that fit the copy. A run that had none, before it was made or after, gets none: nobody vouches for it."""
    with closing(Heads(target, may_write=True)) as heads:
        reader = Reader(copy, target)  # believes what is there
        for number, run_id in copy.execute(_ALL_RUNS).fetchall():
            told = before.pop(number, None)
            if told is None and number not in after:
                continue
            with suppress(JournalError):  # where its end cannot be told it is damaged, and keeps what was known of it
                seq, hash_ = reader.end(str(run_id))
                if told is None or told.least <= seq:
                    told = head_of(str(run_id), seq, hash_, seq)
            if told is not None:
                heads.put(number, told)
        for number, told in before.items():
            if number in after and after[number].seq:  # else it was deleted meanwhile
                heads.put(number, told._replace(seq=told.least))
        heads.sync()


def _shortened(path: Path, run_id: str) -> Accepted:
    """Have the file and its heads tell of what is there, as if there had never been more."""
    path = Path(os.path.realpath(path))
    with ExitStack() as opened:
        db = opened.enter_context(closing(connect(path, make=heads_of(path).exists())))  # its log may have held it all
        has_heads = form_of(db) > 1  # a file of form 1 gets its heads when it becomes form 2
        heads = opened.enter_context(closing(Heads(path, may_write=has_heads)))
        db.execute("BEGIN IMMEDIATE")  # nobody takes the run up in between; closing gives it back
        known = Reader(db, path, heads if has_heads else None)
        row = known.look_up(run_id)
        if row is None:
            number, _ = known.lost_run(run_id)
            heads.put(number, head_of(run_id, 0, genesis(run_id), 0))
            heads.sync()
            return Accepted(0, has_ended=False)
        if row.owner and is_alive(owners_of(path), row.owner):
            raise RunBusy(f"run {run_id} is being driven by another process; wait for it or end it")
        if _fault(known, run_id) is None:
            raise UsageError(f"run {run_id} has lost nothing, so there is nothing to accept")
        _cut(db, path, row)
        left = Reader(db, path)
        seq, hash_ = left.end(run_id)
        records, wrong = left.load(run_id, 0)
        if wrong is not None:
            raise wrong
        if still := _fault(left, run_id):
            raise JournalError(still.message)
        if has_heads:
            heads.put(row.number, head_of(run_id, seq, hash_, seq))
            heads.sync()
        db.execute("COMMIT")
        return Accepted(seq, has_ended=bool(records) and isinstance(records[-1].event, RunEnded))


def _cut(db: sqlite3.Connection, path: Path, row: RunRow) -> None:
    """Have the run, and all that were forked from it, share no more records than there are.

    Else a fork would take what the run does from here on for records of its own past. Raises `JournalError` for a fork
    whose own records stand behind the gap.
    """
    first, end = db.execute("SELECT min(seq), max(seq)+1 FROM event WHERE run=?", (row.number,)).fetchone()
    if row.parent is not None:
        shared = min(len(Reader(db, path).load(row.run_id, 0)[0]), row.at)
        if first is not None and first > shared:
            (parent,) = db.execute("SELECT run_id FROM run WHERE number=?", (row.parent,)).fetchone() or ("its parent",)
            raise JournalError(
                f"run {row.run_id}: of the records that it shares with {parent} only {shared} are left, and its own "
                f"cannot go on without the rest; restore all files of the journal, or fork {parent} again"
            )
        db.execute("UPDATE run SET at=? WHERE number=?", (shared, row.number))
        row = row._replace(at=shared)
    end = row.at if end is None else end
    db.execute("UPDATE run SET events=min(events, ?) WHERE number=?", (end, row.number))
    db.execute(_CUT_FORKS, {"number": row.number, "end": end})


@contextmanager
def _reading(path: Path) -> Generator[tuple[sqlite3.Connection, Reader, Heads]]:
    """The file, its records, and its heads. A file of form 1 has none, so nothing of it is held against them."""
    path = Path(os.path.realpath(path))
    db, _ = connect_for(path, read_only=True)
    with closing(db), closing(Heads(path, may_write=False)) as heads:
        has_heads = form_of(db) > 1 and heads.unreadable is None
        yield db, Reader(db, path, heads if has_heads else None), heads
