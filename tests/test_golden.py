"""A golden journal of every released version still folds to what it told then."""

from pathlib import Path

import pytest

from surefoot.core.loop.fold import fold
from surefoot.journal.codec import decode, decode_catalogue
from surefoot.types.events import Event
from surefoot.types.outcomes import CompletedPartial
from surefoot.types.prehydration import PreHydrationConfig, Resolver

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.journal"))


def events_of(path: Path) -> list[Event]:
    first, *records = path.read_bytes().splitlines()
    tools = first.partition(b"\t")[2]
    events: list[Event] = []
    for record in records:
        version, _, body = record.partition(b"\t")
        events.append(decode(body, int(version), lambda _, form: decode_catalogue(tools, form)))
    return events


def test_there_is_a_golden_journal() -> None:
    assert [path.name for path in GOLDEN] == ["0.1.0.journal"]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_a_golden_journal_still_tells_the_same(path: Path) -> None:
    events = events_of(path)
    assert {event.type for event in events} >= {"RunStarted", "CallEnded", "DoubtSettled", "RunForked", "RunEnded"}
    state = fold(events)
    assert (state.run_id, state.speakers["solo"].model, state.seen) == ("golden-2", "test:n", len(events))
    assert state.task is not None
    assert state.task.text == "小明考了多少分？"
    assert state.tools.names == ("look", "send")
    assert (state.config.nudges, state.config.parse_faults) == (1, 3)
    assert state.config.pre_hydration == PreHydrationConfig(resolution_tools={"issue": Resolver("look", "q")})
    assert state.ending == CompletedPartial("95", "steps")
    assert (state.requests, state.usage.input_tokens, state.usage.cost_usd) == (4, 10, 0.001)
    told = {call.id: call.result.content if call.result else "" for turn in state.done for call in turn.calls}
    assert told == {"1.0": "found", "1.1": "", "2.0": "found", "2.1": "sent", "3.0": "no"}
