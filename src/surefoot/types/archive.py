"""What a journal keeps beside its runs, and whole runs as they were written: out of one journal and into another."""

from __future__ import annotations

from typing import Protocol


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


class Archive(Protocol):
    """A journal as those see it who look after what it holds."""

    @property
    def side(self) -> SideStore:
        """What is kept beside the runs."""
        ...
