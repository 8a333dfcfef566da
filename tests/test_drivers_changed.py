"""A crash is no event of meaning: a run that changed drivers folds to what it would have been (spec/scale.md, 2.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from random import Random
from typing import Any, cast

import pytest

from cases import each
from random_plans import Driver, Setting, World
from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import next_moves, standing
from surefoot.core.loop.replay import replay
from surefoot.core.state.summary import summarise
from surefoot.journal.memory import MemoryJournal
from surefoot.types.dataclass import replace
from surefoot.types.events import DriverChanged, Event
from surefoot.types.ports import NO_RECORDS, RunSummary
from test_plan_properties import config_of
from test_replay_twenty import RUNS

CHANGED = DriverChanged("another", 2)
PLANS = 40


PLACES = {"seen", "number", "rounds", "silent", "since", "completed_effects"}
"""What holds numbers of records, which one more record moves."""


def differences(a: object, b: object, name: str = "") -> list[tuple[str, object, object]]:
    """Where two states differ, but for the numbers of their records."""
    one, other = cast("Any", a), cast("Any", b)  # whatever a state holds
    parts: list[tuple[str, object, object]]
    if is_dataclass(a) and type(a) is type(b):
        names = [each.name for each in fields(a) if each.compare]
        parts = [(each, getattr(one, each), getattr(other, each)) for each in names]
    elif isinstance(a, Mapping) and isinstance(b, Mapping) and one.keys() == other.keys():
        parts = [(name, one[key], other[key]) for key in one]
    elif isinstance(a, tuple) and isinstance(b, tuple) and len(one) == len(other):
        parts = [(name, *both) for both in zip(one, other, strict=True)]
    else:
        is_moved = name in PLACES and isinstance(a, int) and isinstance(b, int) and abs(a - b) <= 1
        return [] if is_moved or a == b else [(name, a, b)]
    return [found for part, mine, its in parts for found in differences(mine, its, part)]


def lines(events: Sequence[Event], summary: RunSummary = NO_RECORDS) -> RunSummary:
    for at, event in enumerate(events):
        summary = summarise(summary, (event,), float(at))
    return replace(summary, events=0, changed_at=0.0)


def check(events: Sequence[Event], cuts: Sequence[int], *, replays: bool) -> None:
    whole = fold(events)
    state = fold(events[:1])
    at = 1
    for cut in cuts:
        state, at = fold(events[at:cut], state), cut
        changed = fold((CHANGED,), state)
        assert next_moves(changed) == next_moves(state)
        assert standing(changed) == standing(state)
        later, other = state, changed
        for event in events[cut:]:
            later, other = fold((event,), later), fold((event,), other)
            assert next_moves(other) == next_moves(later)
        assert differences(other, whole) == [], cut
        given = [*events[:cut], CHANGED, *events[cut:]]
        if replays and not any(call.is_open and call.attempts for call in state.calls):
            assert replay(given).differs_at is None, cut


Runs = dict[str, list[Event]]


@pytest.fixture(scope="module")
def recorded() -> Runs:
    async def record() -> Runs:
        store = MemoryJournal()
        for name, make in RUNS.items():
            await make(name, store)
        return {name: [one.event for one in (await store.read_recorded(name))[0]] for name in RUNS}

    return asyncio.run(record())


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_changed_drivers_anywhere_is_what_it_would_have_been(recorded: Runs, name: str) -> None:
    events = recorded[name]
    # of runs that are alike, all places between them
    check(events, range(1 + len(name) % 3, len(events), 3), replays=True)


@pytest.mark.parametrize("name", RUNS)
def test_the_summary_of_a_run_is_that_of_its_parts_whoever_drove_them(recorded: Runs, name: str) -> None:
    events = recorded[name]
    for cut in range(1, len(events)):
        before = lines(events[:cut])
        after = lines([CHANGED, *events[cut:]], replace(before, events=cut))
        assert replace(after, started_at=0.0) == replace(lines(events), started_at=0.0), cut


@each("seed", range(PLANS))
def test_so_are_runs_with_random_plans(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    setting = Setting(seed, random.randint(1, 6), random.randint(1, 3), failing=random.choice((0, 20, 50)))
    driver = Driver(World(setting), config_of(setting))
    driver.run()
    events = driver.events
    check(events, sorted(random.sample(range(1, len(events)), min(5, len(events) - 1))), replays=False)
