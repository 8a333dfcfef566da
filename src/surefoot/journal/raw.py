"""Records as they were written: chained, proven, and with what they refer to. Nothing is made of their bodies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from struct import Struct
from typing import Any, cast

from surefoot.types.archive import Origin, Row
from surefoot.types.errors import JournalCorrupt, JournalError, RunBusy, UsageError
from surefoot.types.ports import Place

_FORMS = 2**31
"""Forms of records that there can be."""

stamped = Struct(">Id").pack
"""The form of a record and its time, as they are chained."""


def chain(previous: bytes, version: int, at: float, body: bytes) -> bytes:
    """The hash of a record that follows the one of hash `previous`. Both are 32 raw bytes."""
    return sha256(previous + stamped(version, at) + body).digest()


def proven(run_id: str, place: Place, row: object) -> Row:
    """The record that follows at a place. Raises `JournalCorrupt`."""
    expected, previous = place
    match row:
        case (int(seq), float(at), int(version), bytes(body), bytes(hash_)) if 0 < version < _FORMS:
            pass
        case _:
            raise JournalCorrupt(run_id, expected, "its row is damaged")
    if seq != expected:
        raise JournalCorrupt(run_id, expected, f"the record is missing; the next one is {seq}")
    if chain(previous, version, at, body) != hash_:
        raise JournalCorrupt(run_id, expected, "its hash does not match: it was altered or moved")
    return Row(seq, at, version, body, hash_)


def all_proven(run_id: str, place: Place, rows: Iterable[object]) -> Iterator[Row]:
    """The records that follow on a place. Raises `JournalCorrupt`."""
    for row in rows:
        one = proven(run_id, place, row)
        yield one
        place = Place(one.seq + 1, one.hash)


def new_rows(run_id: str, place: Place, rows: Sequence[Row], hash_at: Callable[[int], bytes | None]) -> list[Row]:
    """Those that are not here yet, proven; `place` is where the run ends here, and `hash_at` gives what is here.

    Raises `JournalCorrupt` where they do not follow, `JournalError` where a record that is here is another one.
    """
    here = [row for row in rows if row.seq < place.seq]
    if here and here[-1].hash != hash_at(here[-1].seq):
        raise JournalError(
            f"run {run_id} is here already and is not the same: record {here[-1].seq} is another one; rename one of "
            "them, or fork it before that record"
        )
    return list(all_proven(run_id, place, rows[len(here) :]))


def check_blobs(run_id: str, blobs: Iterable[tuple[str, bytes]]) -> None:
    """Raise `JournalError` for bytes that are not those of their digest."""
    if altered := next((digest for digest, data in blobs if sha256(data).hexdigest() != digest), None):
        raise JournalError(f"run {run_id}: the bytes of digest {altered} were altered; nothing with them was kept")


def check_origin(wanted: Origin, here: Origin) -> None:
    """Raise `UsageError` where a run that is here shares other records than one of its id that is to be kept."""
    if (wanted.parent, wanted.fork) != (here.parent, here.fork):
        raise UsageError(f"there is a run {wanted.run_id} already, and it is another one; nothing of it was changed")


def check_end(run_id: str, hash_: bytes, end: str) -> None:
    """Raise `RunBusy` where the last record of a run does not have the hash `end` that it had; "" allows any."""
    if end not in ("", hash_.hex()):
        raise RunBusy(f"run {run_id} has gone on since; look at it again before you delete it")


def references(body: bytes) -> set[str]:
    """The digests of the bytes that a record refers to. Its texts do not count: they may hold any digest."""
    if b'"blob":"' not in body and b'"$blob"' not in body and b'"digest":"' not in body:
        return set()
    record: dict[str, Any] = json.loads(body)  # Any: a record that was proven, of any form
    told = _part(record, "event") or record
    result, tools, task = (_part(told, name) for name in ("result", "tools", "task"))
    files = (*(result.get("files") or ()), *(task.get("attachments") or ()))
    named = (tools.get("$blob"), result.get("blob"), *(one.get("digest") for one in files))
    return {one for one in named if isinstance(one, str) and one}


def _part(record: dict[str, Any], name: str) -> dict[str, Any]:
    part: object = record.get(name)
    return cast("dict[str, Any]", part) if isinstance(part, dict) else {}  # the keys of a JSON object are text
