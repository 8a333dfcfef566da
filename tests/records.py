"""What a journal holds of a run, in tests: whole, and as a replay gives it."""

from surefoot.core.loop.replay import replay
from surefoot.types.events import Event
from surefoot.types.ports import JournalStore


async def events_of(store: JournalStore, run_id: str) -> list[Event]:
    records, wrong = await store.read_recorded(run_id)
    assert wrong == ""
    events = [record.event for record in records]
    assert replay(events).differs_at is None
    return events
