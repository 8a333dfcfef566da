"""Whole runs of a journal file as they were written: given, taken in; and the bytes that no run refers to, removed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from surefoot.journal.codec import check_fork, genesis
from surefoot.journal.heads import head_of
from surefoot.journal.raw import all_proven, check_blobs, check_origin, new_rows
from surefoot.journal.sqlite_file import transaction, translate_errors
from surefoot.journal.sqlite_open import OpenFile
from surefoot.journal.sqlite_write import INSERT_BLOB, INSERT_EVENT, put_summary
from surefoot.types.archive import Origin, Row
from surefoot.types.errors import RunBusy
from surefoot.types.ports import Place

_ROWS = "SELECT seq, at, version, body, hash FROM event WHERE run=? AND seq>=? ORDER BY seq LIMIT ?"
_HASH = "SELECT hash FROM event WHERE run=? AND seq=?"
_BODIES = "SELECT rowid, hash, body FROM event WHERE rowid>? ORDER BY rowid LIMIT 1000"
_OPEN = "SELECT number FROM run LEFT JOIN summary ON summary.run=number WHERE owner<>'' OR status='running'"
_CANDIDATES = f"SELECT digest FROM blob WHERE run NOT IN ({_OPEN})"  # noqa: S608  # words of ours
_START = (0, b"")
_MENTIONS = re.compile(rb"[0-9a-f]{64}").findall


def origin(file: OpenFile, run_id: str) -> Origin:
    """Where a run comes from."""
    row, parent = file.reader.find(run_id), ""
    if row.parent is not None:
        with translate_errors(file.path):
            (parent,) = file.db.execute("SELECT run_id FROM run WHERE number=?", (row.parent,)).fetchone() or ("",)
    return Origin(row.run_id, row.started_at, parent, row.at)


def rows(file: OpenFile, run_id: str, since: int, limit: int | None) -> list[Row]:
    """The own records of a run, proven."""
    row, end = file.reader.find(run_id), file.reader.tail(run_id).seq
    since = max(since, row.at)
    if since >= end:
        return []
    previous = genesis(run_id)
    if since:
        before, wrong = file.reader.load(run_id, since - 1, 1)
        if wrong is not None:
            raise wrong
        previous = bytes.fromhex(before[0].hash)
    with translate_errors(file.path):
        found = file.db.execute(_ROWS, (row.number, since, -1 if limit is None else limit))
        return list(all_proven(run_id, Place(since, previous), found))


def adopt(file: OpenFile, wanted: Origin, given: Sequence[Row], blobs: Sequence[tuple[str, bytes]]) -> None:
    """Keep records of another journal, all or none, behind those of their run that are here."""
    run_id, db, reader = wanted.run_id, file.db, file.reader
    check_blobs(run_id, blobs)
    with translate_errors(file.path), transaction(db):
        row = reader.look_up(run_id)
        if row is None:
            parent = reader.find(wanted.parent).number if wanted.parent else None
            if wanted.parent:
                check_fork(wanted.parent, wanted.fork, reader.tail(wanted.parent).seq)
            number, _ = file.insert(run_id, parent, wanted.fork, "", wanted.began)
        else:
            number = row.number
            if row.owner and file.is_alive(row.owner):
                raise RunBusy(f"run {run_id} is being driven here; wait until it stands still")
            check_origin(wanted, origin(file, run_id))
        head, place, _ = reader.standing(run_id)
        new = new_rows(
            run_id, place, given, lambda seq: next((hash_ for (hash_,) in db.execute(_HASH, (number, seq))), None)
        )
        db.executemany(INSERT_BLOB, [(digest, data, number, place.seq) for digest, data in blobs])
        db.executemany(INSERT_EVENT, [(number, *one) for one in new])
        if new:
            place = Place(new[-1].seq + 1, new[-1].hash)
            put_summary(db, number, reader.summary(run_id))
            db.execute("UPDATE run SET events=? WHERE number=?", (place.seq, number))
    file.heads.put(number, head_of(run_id, *place, head.synced if head else 0))


async def sweep(file: OpenFile) -> int:
    """Remove the bytes that no record mentions, not even in a text; how many there were.

    The records are looked through while others write. Those that are written meanwhile have higher numbers than the
    last one that was seen, as long as that one is there; where it is not, all are looked through again. What a run that
    has not ended has put there stays, since its record may still come.
    """
    while True:
        with translate_errors(file.path):
            unused = {str(digest) for (digest,) in file.db.execute(_CANDIDATES)}
            seen = _look(file, unused, _START)
            while unused and (next_ := _look(file, unused, seen)) != seen:
                seen = next_
                await asyncio.sleep(0)
            with transaction(file.db):
                if seen in (_START, *file.db.execute("SELECT rowid, hash FROM event WHERE rowid=?", seen[:1])):
                    while unused and (next_ := _look(file, unused, seen)) != seen:
                        seen = next_
                    return sum(_removed(file, digest) for digest in unused)


def _look(file: OpenFile, unused: set[str], seen: tuple[int, bytes]) -> tuple[int, bytes]:
    """Take out what some records behind one that was seen mention; the number and the hash of the last of these."""
    for number, hash_, body in file.db.execute(_BODIES, seen[:1]):
        unused.difference_update(one.decode() for one in _MENTIONS(body))
        seen = number, hash_
    return seen


def _removed(file: OpenFile, digest: str) -> int:
    removed = file.db.execute("DELETE FROM blob WHERE digest=? RETURNING length(data)", (digest,)).fetchall()
    return sum(size for (size,) in removed)  # another sweep may have been first
