"""Records of runs, and runs as far as they were told: a piece at a time, so that no request holds up the others.

Source: spec/serving.md, section 4.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from surefoot.core.plan.child import open_calls
from surefoot.telling.state import Question, questions_of
from surefoot.telling.tale import NO_TALE, Tale, tale_of
from surefoot.types.ports import JournalStore, Recorded, RunSummary

PIECE = 50
"""Records that are read, decoded and told in one turn of the loop; each takes 0.1 to 0.2 ms."""
EVERY = 256
"""A tale is kept of each so many records."""
MOST_KEPT = 1_024
"""Kept tales share what they have in common: one costs what its 256 records changed, about 64 KiB."""


@dataclass(slots=True)
class Reading:
    """The records of a run from a place on. `wrong` says what is wrong with the one after those that were given."""

    store: JournalStore
    run_id: str
    place: int = 0
    wrong: str = ""

    async def pieces(self, until: int | None = None) -> AsyncGenerator[Sequence[Recorded]]:
        """Records up to, but not including, `until`, as they are now."""
        while until is None or self.place < until:
            most = PIECE if until is None else min(PIECE, until - self.place)
            records, self.wrong = await self.store.read_recorded(self.run_id, self.place, most)
            self.place += len(records)
            if records:
                yield records
            if len(records) < most:
                return
            await asyncio.sleep(0)

    async def all(self, until: int | None = None) -> list[Recorded]:
        return [record async for piece in self.pieces(until) for record in piece]

    @property
    def damaged(self) -> dict[str, object] | None:
        return {"at": self.place, "why": self.wrong} if self.wrong else None


@dataclass(slots=True)
class Library:
    """Runs as far as they were told. The newest tales are kept by run and place, with the hash of their last record."""

    store: JournalStore
    _kept: OrderedDict[tuple[str, int], tuple[str, Tale]] = field(
        default_factory=OrderedDict[tuple[str, int], tuple[str, Tale]]
    )

    async def tale(self, reading: Reading, until: int | None = None) -> Tale:
        """A run up to `until` records, or as many as can be read; `reading` is left behind them."""
        until = (await self.store.summary(reading.run_id)).events if until is None else until
        tale, reading.place = await self._nearest(reading.run_id, until)
        is_whole = True
        while reading.place < until and is_whole:
            stop = min(until, reading.place - reading.place % EVERY + EVERY)
            async for piece in reading.pieces(stop):
                tale = tale_of(piece, tale)
                if reading.place % EVERY == 0:
                    self._kept[reading.run_id, reading.place] = piece[-1].hash, tale
                    self._kept.move_to_end((reading.run_id, reading.place))
                    if len(self._kept) > MOST_KEPT:
                        self._kept.popitem(last=False)
            is_whole = reading.place == stop
        return tale

    async def waiting(self, run: RunSummary, reading: Reading, until: int | None = None) -> tuple[Question, ...]:
        """All that the run asks a person, as of so many records."""
        tale = await self.tale(reading, until)
        return questions_of(tale, await self.inner(tale), is_driven=run.status == "running")

    async def inner(self, tale: Tale) -> dict[str, Tale]:
        """The runs of the agents that calls of this one, and of those, are waiting for."""
        found: dict[str, Tale] = {}
        due = [tale]
        while due:
            for _, call in open_calls(due.pop().state):
                if call.inner is not None and call.inner.run_id not in found:
                    found[call.inner.run_id] = await self.tale(Reading(self.store, call.inner.run_id))
                    due.append(found[call.inner.run_id])
        return found

    async def _nearest(self, run_id: str, until: int) -> tuple[Tale, int]:
        """The latest kept tale that is not after `until`, and its place; a run that was made anew has other records."""
        for place in range(until - until % EVERY, 0, -EVERY):
            if (kept := self._kept.get((run_id, place))) is not None:
                last, _ = await self.store.read_recorded(run_id, place - 1, 1)
                if last and last[0].hash == kept[0]:
                    self._kept.move_to_end((run_id, place))
                    return kept[1], place
        return NO_TALE, 0
