"""Events to rows and back, for every backend, and the hash that chains the records of a run.

A record's body is the event as JSON. The tools of a run can be hundreds of kilobytes and are shared by thousands of
runs, so `RunStarted` holds the SHA-256 of its catalogue in their place, and the journal keeps those bytes once. Of a
configuration only what differs from the defaults is written.

The chain: the hash of a record is SHA-256 over the hash before it, the record's form, its time and its body; the first
one starts from the run's id. So a record cannot be altered, moved, left out or dated back without notice. What a chain
cannot show is that records are missing at its very end; for that, a journal notes a run's length when it is released.

A record is kept as it was written, for ever; only its reading changes. When the form of an event changes, `VERSION`
in `types/events.py` goes up by one and `UPGRADES` gains the row that takes a record of the form before to the new one.

A fork owns its records from `at` on and shares those before with its parent, so the records of a run are those of its
lineage, oldest ancestor first, each up to where the next one begins.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cache, lru_cache
from hashlib import sha256
from itertools import repeat
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, cast

import orjson

from surefoot.core.state.summary import summarise
from surefoot.core.text.json import plain
from surefoot.journal.raw import proven, stamped
from surefoot.types.errors import JournalCorrupt, JournalError, JournalTooNew, UsageError, overtaken
from surefoot.types.events import VERSION, Event, RunForked, RunResumed, RunStarted
from surefoot.types.messages import Usage
from surefoot.types.ports import NO_RECORDS, Place, Recorded, RunSummary
from surefoot.types.settings import non_defaults
from surefoot.types.tools import Catalogue
from surefoot.types.words import Posted, Resume, Word

if TYPE_CHECKING:
    from pydantic import TypeAdapter


Record = dict[str, object]
"""One record as JSON gives it. `type` names the event, or is "Catalogue" for the tools that runs share."""


def _without_guesses(record: Record) -> Record:
    """Form 2 knows no repair of JSON that guesses: "safe" and "full" are what is left of them, the default."""
    config = record.get("config")
    if not isinstance(config, dict) or cast("Record", config).get("repair") not in ("safe", "full"):
        return record
    return {**record, "config": {name: value for name, value in cast("Record", config).items() if name != "repair"}}


UPGRADES: Mapping[int, Callable[[Record], Record]] = {
    1: _without_guesses,
    2: lambda record: record,  # form 3 knows further events, and fields that may be missing
}
"""From a form to the function that gives the form of the next one; it returns unconcerned types as they are."""


def upgrade(
    record: Record, version: int, rows: Mapping[int, Callable[[Record], Record]] = UPGRADES, target: int = VERSION
) -> Record:
    """The record in the form `target`, one row after the other.

    Raises `JournalTooNew` for a later form than `target`, `ValueError` for a form that no row knows.
    """
    if version > target:
        raise JournalTooNew(
            f"a later surefoot wrote this record (form {version}; this one knows {target}): upgrade surefoot"
        )
    for step in range(version, target):
        if step not in rows:
            raise ValueError(f"no form {version} of this record is known")
        record = rows[step](record)
    return record


T = TypeVar("T")

Blob = tuple[str, bytes]
"""Bytes that are kept under their SHA-256 (hex), and that digest."""

_BLOB = "$blob"
_WITH_CONFIG = (RunStarted, RunResumed, RunForked)


def digest_of(data: bytes) -> str:
    """The name under which bytes are kept: their SHA-256 in hex."""
    return sha256(data).hexdigest()


@lru_cache(maxsize=1)  # whoever opens a run asks five times
def genesis(run_id: str) -> bytes:
    """What the chain of a run starts from."""
    return sha256(run_id.encode()).digest()


def encode(event: Event) -> tuple[bytes, Blob | None]:
    """The body of a record, and the bytes that must be kept beside it, if there are any.

    Text that is not valid Unicode and whole numbers of any size come back as they were; what JSON has no number for
    (NaN, the infinities) comes back as null. Raises `JournalError` for a value that JSON cannot hold.
    """
    try:
        if not isinstance(event, _WITH_CONFIG):
            return _dump(event), None
        told, blob = _with_config(event), None
        if isinstance(event, RunStarted):
            blob = event.tools.derived("journal", lambda tools: (digest_of(data := _dump(tools)), data))
            told["tools"] = {_BLOB: blob[0]}
        return _dump(told), blob
    except (TypeError, ValueError, RecursionError) as error:
        raise JournalError(
            f"a {event.type} cannot be recorded: {error}; put only JSON values into arguments and settings"
        ) from error


def decode(body: bytes, version: int, catalogue: Callable[[str, int], Catalogue]) -> Event:
    """The event of a body that was written in the form `version`.

    `catalogue` gives the tools of a digest, which were written in that form too. Raises `ValueError` when the body is
    no event, `JournalTooNew` when a later surefoot wrote it.
    """
    record = upgrade(record_of(body), version)
    inner = record.get("event")
    if isinstance(inner, dict):  # what happened inside a step of a plan
        record["event"] = _validated(_events(), upgrade(cast("Record", inner), version))
    match record.get("tools"):
        case {"$blob": str(digest)}:
            record["tools"] = catalogue(digest, version)
        case _:
            pass  # only the start of a run names tools
    return _validated(_events(), record)


def decode_catalogue(data: bytes, version: int) -> Catalogue:
    """The tools that a run shares with others. Raises as `decode` does."""
    return _validated(_catalogues(), upgrade({**record_of(data), "type": "Catalogue"}, version))


def type_of(body: bytes) -> object:
    """The name of an event by its body; None when it cannot be read."""
    try:
        return record_of(body).get("type")
    except ValueError:
        return None


def warm() -> None:
    """Make now what the first reading of a record would make; it takes a moment, in any thread."""
    _events()
    _catalogues()


def encode_summary(summary: RunSummary) -> bytes:
    """A summary as a file keeps it."""
    return _dump(summary)


def summary_of(body: object) -> RunSummary | None:
    """The summary of such bytes; None when it cannot be read as one of today."""
    try:
        told = record_of(cast("bytes", body))
        summary = RunSummary(**{**told, "usage": Usage(**cast("dict[str, Any]", told["usage"]))})  # type: ignore[arg-type]  # looked at below
    except (TypeError, ValueError, KeyError):
        return None
    of_today = all(type(getattr(summary, one.name)) is type(getattr(NO_RECORDS, one.name)) for one in fields(summary))
    return summary if of_today else None


def storable(text: str) -> str:
    """A text as a database takes it: half a character, which JSON can hold, becomes a "?"."""
    return text.encode(errors="replace").decode()


def same_word(posted: Posted, word: Word) -> Posted:
    """The word that was posted with a key. Raises `UsageError` where it was another one."""
    if posted.word != word:
        raise UsageError(f"the key {posted.key!r} was used for another word to this run; each word needs its own")
    return posted


def place_of(after: str) -> int | None:
    """The place behind which a page of a list begins, None for the first. Raises `UsageError` for what is none."""
    if not after:
        return None
    if not after.isdecimal():
        raise UsageError(f"{after!r} is not where a page begins; give `RunPage.next`")
    return int(after)


def word_of(body: bytes) -> Word:
    """The word of such bytes. Raises `ValueError`."""
    return _validated(_words(), record_of(body))


def encode_word(word: Word) -> bytes:
    """A word as a file keeps it. Raises `JournalError` for one that cannot be kept."""
    try:
        return _dump(_with_config(word) if isinstance(word, Resume) else word)
    except (TypeError, ValueError, RecursionError) as error:
        raise JournalError(f"a {word.type} cannot be kept: {error}") from error


def record_of(body: bytes) -> Record:
    """A body as JSON gives it. Raises `ValueError` when it is no JSON object."""
    try:
        record: object = json.loads(body)  # not orjson: it refuses lone surrogates and rounds large whole numbers
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(record, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - the file is wrong, not the caller
    return cast("Record", record)  # the keys of a JSON object are text


def _validated(adapter: TypeAdapter[T], record: Record) -> T:
    try:
        return adapter.validate_python(record)
    except (UsageError, RecursionError) as error:  # what `__post_init__` of a configuration raises
        raise ValueError(str(error)) from error


@cache
def _events() -> TypeAdapter[Event]:
    from pydantic import Field, TypeAdapter  # noqa: PLC0415 - a run that only writes does not pay for the import

    return TypeAdapter(Annotated[Event, Field(discriminator="type")])


@cache
def _words() -> TypeAdapter[Word]:
    from pydantic import Field, TypeAdapter  # noqa: PLC0415 - as above

    return TypeAdapter(Annotated[Word, Field(discriminator="type")])


@cache
def _catalogues() -> TypeAdapter[Catalogue]:
    from pydantic import TypeAdapter  # noqa: PLC0415 - as above

    return TypeAdapter(Catalogue)


def _dump(value: object) -> bytes:
    try:
        return orjson.dumps(value, default=_plain)
    except TypeError:  # lone surrogates, whole numbers beyond 64 bits, very deep nesting: rare, and JSON can hold them
        return json.dumps(value, default=_plain, separators=(",", ":")).encode()


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return str(value)
    return _plain_fields(value) if hasattr(type(value), "__dataclass_fields__") else plain(value)


def _plain_fields(value: Any) -> dict[str, object]:  # Any: any dataclass
    names = value.__match_args__  # without what is only kept beside
    return dict(zip(names, map(getattr, repeat(value), names), strict=True))


def _with_config(value: RunStarted | RunResumed | RunForked | Resume) -> dict[str, object]:
    return _plain_fields(value) | {"config": value.config and non_defaults(value.config)}


_BEYOND = 2**62
"""More records than a run can have."""

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


def check_id(run_id: str) -> None:
    """Raise `UsageError` for what cannot be the id of a run."""
    if not isinstance(run_id, str) or not run_id or not run_id.isprintable():  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"{run_id!r} cannot be the id of a run; give printable text")


def check_fork(parent: str, at: int, records: int) -> None:
    """Raise `UsageError` unless a run of so many records can be forked at record `at`: it must share at least one."""
    if records == 0:
        raise UsageError(f"run {parent} has 0 records, so there is nothing to fork; start a new run")
    if not 1 <= at <= records:
        raise UsageError(f"run {parent} has {records} records; fork it at 1 to {records}, not at {at}")


def rows_of(
    number: int, events: Sequence[Event], at: float, tail: Place, summary: RunSummary
) -> tuple[list[EventRow], list[BlobRow], Place, RunSummary]:
    """The rows of events that are appended to a run at that time, and how the run stands with them.

    Raises `JournalError` for what cannot be recorded.
    """
    seq, previous = tail
    stamp = stamped(VERSION, at)
    rows: list[EventRow] = []
    blobs: list[BlobRow] = []
    for event in events:
        body, blob = encode(event)
        if blob is not None:
            blobs.append((*blob, number, seq))
        previous = sha256(previous + stamp + body).digest()  # as `chain` does
        rows.append((number, seq, at, VERSION, body, previous))
        seq += 1
    return rows, blobs, Place(seq, previous), summarise(summary, events, at)


def check_there(run_id: str, there: Sequence[Recorded], wanted: Place) -> None:
    """Raise `LeaseLost` unless the record before a place is the one that is there: of an append that is made again."""
    if [record.hash for record in there] != [wanted.hash.hex()]:
        raise overtaken(run_id)


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
    seq, at, version, body, hash_ = proven(run_id, Place(expected, previous), row)
    try:
        return Recorded(seq, at, hash_.hex(), decode(body, version, catalogue)), hash_
    except JournalTooNew as error:
        raise JournalTooNew(f"run {run_id}, record {seq}: {error}") from error
    except (ValueError, JournalError) as error:
        raise JournalCorrupt(run_id, seq, f"it cannot be read as an event: {error}") from error
