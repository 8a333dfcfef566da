"""What a journal holds of a run, in tests: whole, and as a replay gives it."""

import asyncio
from collections.abc import Callable

from surefoot.core.loop.replay import replay
from surefoot.types.events import Event
from surefoot.types.ports import JournalStore


async def events_of(store: JournalStore, run_id: str) -> list[Event]:
    records, wrong = await store.read_recorded(run_id)
    assert wrong == ""
    events = [record.event for record in records]
    assert replay(events).differs_at is None
    return events


async def until(is_so: Callable[[], object]) -> None:
    """Return once it is so: another task, or a process, brings it about."""
    async with asyncio.timeout(30):
        while not is_so():  # noqa: ASYNC110  # there is nothing to wait for but that
            await asyncio.sleep(0.01)
