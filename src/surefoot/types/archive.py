"""What a journal keeps beside its runs, and whole runs as they were written: out of one journal and into another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from surefoot.types.dataclass import dataclass


class SideStore(Protocol):
    """What is kept beside all runs of a journal, each under its name: pins, verified paths, what was pruned.

    Source: spec/scale.md, section 2.1.
    """

    async def get(self, name: str) -> bytes:
        """What is kept under that name, b"" where there is nothing. Raises `JournalError`."""
        ...

    async def put(self, name: str, data: bytes, was: bytes) -> bool:
        """Keep `data`, which is not empty, in place of `was`. False, with nothing done, where it is not `was` any more.

        MUST hold between processes: of two who put in place of the same, one gets False. Raises `JournalError`.
        """
        ...

    def place(self, name: str) -> str:
        """Where a person finds it, for messages: the path of a file, or the name of a table's row."""
        ...


class Row(NamedTuple):
    """A record as it was written: `at` in seconds since the epoch, `body` is JSON in the form `form`.

    `hash` (32 bytes) chains it to the record before, as `journal/codec.py` says.
    """

    seq: int
    at: float
    form: int
    body: bytes
    hash: bytes


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a run comes from: when it `began`, in seconds since the epoch, and whose records it shares.

    Those of the run `parent` before `fork`; "" and 0 where it shares none.
    """

    run_id: str
    began: float
    parent: str = ""
    fork: int = 0


class Archive(Protocol):
    """A journal as those see it who look after what it holds. Source: spec/scale.md, section 5."""

    @property
    def side(self) -> SideStore:
        """What is kept beside the runs."""
        ...

    async def origin(self, run_id: str) -> Origin:
        """Where a run comes from. Raises `UsageError` for an unknown run."""
        ...

    async def rows(self, run_id: str, since: int = 0, limit: int | None = None) -> Sequence[Row]:
        """Its own records from `since` on, oldest first, at most `limit`; those that it shares are its parent's.

        Raises `JournalCorrupt` where their chain is broken.
        """
        ...

    async def adopt(self, origin: Origin, rows: Sequence[Row] = (), blobs: Sequence[tuple[str, bytes]] = ()) -> None:
        """Keep records of another journal as they are, all or none, behind those of that run that are here already.

        The run is made where there is none of its id; no worker takes it up by itself. `blobs` are digests and bytes
        that the records refer to. Rows that are here already MUST be the same. Raises `JournalCorrupt` for rows that do
        not follow on what is here, `RunBusy` while the run is driven, `UsageError` where its parent is unknown.
        """
        ...

    async def sweep(self) -> int:
        """Remove the bytes that no record refers to; how many there were.

        MUST NOT remove what a run may still refer to that has not ended; so what is new may stay for a day.
        """
        ...
