"""What holds of every planned run, whatever models propose and tools do. Source: spec/planning.md, section 19.

In short: some dozens of runs, each of which may die at one place. Scale: the death before every append of each.
"""

from collections import Counter
from dataclasses import dataclass, field, fields, replace
from typing import get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from random_plans import DiedError, Driver, Setting, World
from surefoot.core.loop.fold import fold
from surefoot.core.loop.replay import replay
from surefoot.core.state.repeats import fingerprint
from surefoot.core.state.roles import goes_on
from surefoot.core.state.state import Planning, State
from surefoot.testing.journals import check_comes_back
from surefoot.types.events import CallEnded, CallStarted, DoubtSettled, Event, InStep
from surefoot.types.plan import ANSWER, Add, Operation, PlanConfig, Reopen
from surefoot.types.plan_events import PlanEdited, PlanEvent, PlanMade, ProposalRefused, StepStarted

COUNTERS = {"refusals", "refusal", "proposal", "tries"}
FAILING = (0, 20, 50, 90)


def config_of(setting: Setting) -> PlanConfig:
    random = setting.random("config")
    return PlanConfig(
        max_parallel=setting.parallel,
        transient_retries=setting.retries,
        max_replans=random.choice((None, None, None, 0, 2)),
        max_llm_calls=random.choice((200, 200, 12, 1)),
        max_tool_calls=random.choice((500, 500, 6)),
        deadline_s=random.choice((3600.0,) * 8 + (0.1, 0.3)),
        select_all_below=random.choice((0, 8)),
        approve_plan=random.choice(("never",) * 4 + ("first", "every")),  # pyright: ignore[reportArgumentType]  # all are
        answer=random.choice(("auto", "off")),  # pyright: ignore[reportArgumentType]  # the same
        evaluators=random.choice(((), ("nothing_done",), ("nothing_done", "judge"))),
        max_steps=15,
    )


@st.composite
def runs(draw: st.DrawFn, most_parallel: int = 4) -> Setting:
    return Setting(
        draw(st.integers(0, 2**40)),
        draw(st.integers(1, 12)),
        draw(st.integers(1, most_parallel)),
        draw(st.sampled_from(FAILING)),
        draw(st.sampled_from((0, 15, 60))),
        draw(st.integers(0, 2)),
        draw(st.integers(2, 9)),
    )


@dataclass
class Laws:
    """What is looked at with every event, out of the events alone as far as that can be."""

    failed: set[str] = field(default_factory=set[str])
    seen_by: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    done: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    added: dict[str, int] = field(default_factory=dict[str, int])
    reopened: set[str] = field(default_factory=set[str])
    kinds: Counter[str] = field(default_factory=Counter[str])

    def __call__(self, before: State, event: Event, after: State) -> None:
        if before.planning is None or after.planning is None:
            return
        self.kinds[event.type] += 1
        match event:
            case PlanMade():
                check_no_circle(after.planning)
            case PlanEdited(operations=operations):
                check_no_circle(after.planning)
                check_done_stays(before.planning, after.planning)
                self.kinds.update(f"{event.strategy.type} {one.op}" for one in operations)
                self.added |= {one.step.step_id: after.seen for one in operations if isinstance(one, Add)}
                self.reopened |= {one.step_id for one in operations if isinstance(one, Reopen)}
            case ProposalRefused():
                check_only_counted(before, after)
            case StepStarted(step_id) if step_id != ANSWER:
                self._started(before.planning, after.planning, step_id)
            case InStep():
                self._inside(before, event, after.planning)
            case _:
                pass

    def _started(self, before: Planning, after: Planning, name: str) -> None:
        record, calls = before.steps[name], after.children[name].calls
        step = after.steps[name].step
        mark = fingerprint(calls[0].name, calls[0].arguments) if calls else fingerprint(step.kind, step.instruction)
        is_exempt = name in self.reopened or record.due == "wait"
        assert is_exempt or mark not in self.failed, f"{name} makes a call that has failed"
        self.reopened.discard(name)
        self.seen_by[name] = set(self.failed)

    def _inside(self, before: State, event: InStep, planning: Planning) -> None:
        name, inner = event.step_id, event.event
        child = before.planning.children.get(name) if before.planning is not None else None
        if child is None or child.scope != f"{name}.{event.attempt}":
            return
        is_agent = child.plan is not None and child.plan.running is not None and child.plan.running.kind == "agent"
        if isinstance(inner, CallStarted | CallEnded | DoubtSettled):
            call = child.call(inner.call_id)
            assert call is not None
            assert call.spec is not None
            mark = fingerprint(call.name, call.arguments)
            if isinstance(inner, CallStarted):
                if inner.attempt == 1 and not call.spec.may_repeat and mark in self.done:
                    by, at = self.done[mark]
                    is_its_own = by == name and not is_same_attempt(child, mark)
                    assert not is_its_own, f"{name} repeats what it has done"
                    assert by == name or self.added.get(name, 0) < at, f"{name} repeats what {by} has done"
                if is_agent and inner.attempt == 1:
                    assert mark not in self.seen_by[name], f"{name} makes a call that has failed"
            else:
                result = inner.result
                is_over = isinstance(inner, CallEnded) or inner.outcome == "done"
                if is_over and not call.spec.may_repeat and (result is None or not result.is_error):
                    self.done.setdefault(mark, (name, before.seen + 1))
                if is_agent and result is not None and result.kind in ("error", "timeout"):
                    self.failed.add(mark)
        if name in planning.steps and name not in planning.children and planning.steps[name].status == "failed":
            step = planning.steps[name].step
            call = child.calls[0] if child.calls and not is_agent else None
            mark = fingerprint(call.name, call.arguments) if call else fingerprint(step.kind, step.instruction)
            self.failed.add(mark)


def is_same_attempt(child: State, mark: str) -> bool:
    """Whether the call was made in this very attempt: a loop may do that, as far as its own rules let it."""
    made = [call for turn in child.turns for call in turn.calls if call.result is not None]
    return any(fingerprint(call.name, call.arguments) == mark for call in made)


def check_no_circle(planning: Planning) -> None:
    left = {name: set(planning.steps[name].step.dependencies) for name in planning.live}
    while left:
        free = {name for name, needs in left.items() if not needs & left.keys()}
        assert free, f"a circle: {left}"
        left = {name: needs for name, needs in left.items() if name not in free}


def check_done_stays(before: Planning, after: Planning) -> None:
    for name, record in before.steps.items():
        if record.status == "succeeded":
            now = after.steps[name]  # it may be taken out of the plan, and what it did stays
            kept = replace(now, status="succeeded") if now.status == "superseded" else now
            assert kept == record
            assert repr(kept) == repr(record)
    assert before.completed_effects == after.completed_effects
    assert set(before.order) <= set(after.order), "an id is never free again"


def check_only_counted(before: State, after: State) -> None:
    assert before.planning is not None
    assert after.planning is not None
    for one in fields(Planning):
        if one.name not in COUNTERS:
            assert getattr(before.planning, one.name) is getattr(after.planning, one.name), one.name
    for one in fields(State):
        if one.name not in ("seen", "planning"):
            assert getattr(before, one.name) is getattr(after, one.name), one.name


def driver_of(setting: Setting, laws: Laws | None = None, dies_at: int = 0) -> Driver:
    random = setting.random("cancel")
    cancel_at = random.randrange(5, 80) if random.random() < 0.08 else 0
    return Driver(World(setting), config_of(setting), laws, dies_at, cancel_at)


def check_run(setting: Setting) -> Laws:
    laws = Laws()
    driver = driver_of(setting, laws)
    state = driver.run()
    assert state.ending is not None
    by_call = Counter(call_id for call_id, name, _ in driver.world.effects if not may_repeat(state, name))
    assert all(times == 1 for times in by_call.values()), by_call
    cut = setting.random("cut").randrange(len(driver.events))
    assert fold(driver.events[cut:], fold(driver.events[:cut])) == fold(driver.events) == state
    again = replay(driver.events)
    assert again.differs_at is None, (again.differs_at, again.expected, again.got)
    if setting.seed % 4 == 0:
        other = driver_of(setting)
        other.run()
        assert other.events == driver.events, "the same inputs give the same journal"
        for event in driver.events:
            check_comes_back(event)
    return laws


def may_repeat(state: State, name: str) -> bool:
    spec = state.tools.get(name)
    return spec is not None and spec.may_repeat


def told(driver: Driver) -> object:
    """What a run has come to, without what a crash may rightly change: figures and times."""
    planning, ending = driver.state.planning, driver.state.ending
    assert planning is not None
    assert ending is not None
    steps = {n: (r.step, r.status, r.result.output if r.result else "") for n, r in planning.steps.items()}
    writes = Counter(e[1:] for e in driver.world.effects if not may_repeat(driver.state, e[1]))
    return ending.kind, getattr(ending, "reason", ""), steps, planning.version, writes


def has_doubts(driver: Driver) -> bool:
    return any(isinstance(one, InStep) and isinstance(one.event, DoubtSettled) for one in driver.events)


def counts_in_a_row(state: State) -> bool:
    children = state.planning.children.values() if state.planning is not None else ()
    speakers = [speaker for one in (state, *children) for speaker in one.speakers.values()]
    return any(goes_on(speaker, None) != speaker for speaker in speakers)


def check_death(setting: Setting, dies_at: int) -> bool:
    """A run that dies before that append, and is taken up; whether it lived to see its death."""
    laws = Laws()
    dying = driver_of(setting, laws, dies_at)
    try:
        dying.run()
    except DiedError:
        pass
    else:
        return False
    heir = Driver(dying.world, dying.config, laws, 0, dying.cancel_at, list(dying.events), words=dying.words)
    heir.now_s = dying.now_s
    heir.resume() if dying.events else heir.run()
    by_call = Counter(call_id for call_id, name, _ in heir.world.effects if not may_repeat(heir.state, name))
    assert all(times == 1 for times in by_call.values()), by_call
    assert replay(heir.events).differs_at is None
    config = dying.config  # side by side, a death changes what is in flight at a failure; and it costs time and calls
    has_limits = dying.cancel_at or config.deadline_s != 3600 or config.max_tool_calls != 500
    if setting.parallel == 1 and not has_limits:
        whole = driver_of(setting)
        whole.run()
        # what counts in a row begins anew when a run is taken up; and other branches run on while a doubt is settled
        if not counts_in_a_row(dying.state) and not has_doubts(heir):
            assert told(heir) == told(whole)
    return True


@given(runs())
def test_what_holds_of_every_run(setting: Setting) -> None:
    check_run(setting)


@settings(max_examples=40)
@given(runs(), st.integers(1, 60))
@example(Setting(9976708, steps=8, failing=50, hostile=60, retries=0, tools=8), 25)  # no model, beside a doubt
def test_a_death_before_an_append_repeats_nothing_and_changes_no_end(setting: Setting, dies_at: int) -> None:
    check_death(setting, dies_at)


@pytest.mark.scale
@given(runs(most_parallel=2))
def test_a_death_before_every_append_repeats_nothing_and_changes_no_end(setting: Setting) -> None:
    dies_at = 1
    while check_death(setting, dies_at):
        dies_at += 1
    assert dies_at > 2


@pytest.mark.slow
def test_the_runs_come_to_all_that_there_is() -> None:
    """The properties hold of something: all kinds of events about plans and all operations of edits come up."""
    kinds: Counter[str] = Counter()
    for seed in range(110):
        laws = Laws()
        driver_of(Setting(seed, 6, 1 + seed % 3, 60, 10, 1, 6), laws).run()
        kinds.update(laws.kinds)
    wanted = {kind.__name__ for kind in get_args(PlanEvent)}
    assert wanted <= kinds.keys()
    operations = {kind.__dataclass_fields__["op"].default for kind in get_args(Operation)}
    assert operations - {"mark"} <= {kind.partition(" ")[2] for kind in kinds}
    strategies = {kind.partition(" ")[0] for kind in kinds if " " in kind}
    assert len(strategies) == 5, "each of the five was applied"
