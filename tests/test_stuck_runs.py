"""Runs that get nowhere are corrected once and stopped within eight steps. Source: spec/primitives.md, 2.4 and 2.5."""

from collections.abc import Callable
from itertools import count

import pytest

from surefoot import Agent, Budget, LoopConfig, MemoryJournal, Run, tool
from surefoot.core.loop.replay import replay
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.types.events import Event, StepLimitReached
from surefoot.types.messages import CallMode, ModelRequest
from surefoot.types.progress import LimitAction, StepIterationConfig

pytestmark = pytest.mark.anyio

MOST_STEPS = 8
NOTE = "[PROGRESS_NOTE]"


@tool(effect="read")
async def look(q: str) -> str:
    """Look something up."""
    return f"about {q}"


@tool(effect="read", polling=True)
async def status() -> str:
    """Status of a job."""
    return "running"


def results_tool(results: Callable[[], str]) -> object:
    @tool(effect="read", name="run_tests", polling=True)
    async def run_tests() -> str:
        """Run the tests."""
        return results()

    return run_tests


async def play(
    reply: Callable[[int, ModelRequest], Scripted],
    *tools: object,
    mode: CallMode = "native",
    config: LoopConfig | None = None,
) -> tuple[Run, FunctionModel, list[Event]]:
    steps = count()
    model = FunctionModel(lambda request: reply(next(steps), request), modes=(mode,))
    store = MemoryJournal()
    limits = config or LoopConfig(budget=Budget(max_steps=60), parse_faults=9, empty_replies=9, nudges=9)
    run = await Agent(model, [look, status, *tools], journal=store, config=limits).run("go")  # type: ignore[list-item]
    records, wrong = await store.read_recorded(run.id)
    events = [record.event for record in records]
    assert wrong == ""
    assert replay(events).differs_at is None
    return run, model, events


def notes_in(model: FunctionModel) -> int:
    """The requests in which the model was told for the first time."""
    told = [sum(message.content.count(NOTE) for message in request.messages) for request in model.requests]
    return sum(now > before for before, now in zip([0, *told], told, strict=False))


def in_turn(step: int) -> Scripted:
    return calls(("look", {"q": "ab"[step % 2]}))


def one_call(_: int) -> Scripted:
    return calls(("look", {"q": "a"}))


def two_calls(_: int) -> Scripted:
    return calls(("look", {"q": "a"}), ("look", {"q": "b"}))


@pytest.mark.parametrize("reply", [in_turn, one_call, two_calls])
async def test_what_comes_round_is_corrected_and_then_stopped(reply: Callable[[int], Scripted]) -> None:
    run, model, events = await play(lambda step, _: reply(step))
    assert (run.status, run.reason) == ("stopped", "stuck")
    assert len(model.requests) <= MOST_STEPS
    assert notes_in(model) >= 1
    (limit,) = [event for event in events if isinstance(event, StepLimitReached)]
    assert (limit.step_id, limit.kind) == ("run", "stuck")
    assert all(0 < number < len(events) for number in limit.evidence)


async def test_one_that_only_talks_is_corrected_and_then_stopped() -> None:
    run, model, _ = await play(lambda step, _: f"Thought: I think {step}.", mode="text")
    assert (run.status, run.reason) == ("stopped", "stuck")
    assert len(model.requests) <= MOST_STEPS
    assert notes_in(model) >= 1


async def test_the_same_error_in_other_words_stops_the_call_and_not_the_run() -> None:
    ran: list[int] = []

    @tool(effect="read")
    async def load(path: str) -> str:
        """Load a file."""
        ran.append(1)
        raise OSError(f"09:14:0{len(ran)} cannot lock file {path}")

    def reply(step: int, _: ModelRequest) -> Scripted:
        return calls(("load", {"path": "x"})) if step < 3 else "it is locked"

    run, model, events = await play(reply, load)
    assert (run.status, run.answer, len(ran)) == ("completed", "it is locked", 2)
    (limit,) = [event for event in events if isinstance(event, StepLimitReached)]
    assert (limit.attempts, limit.pattern, limit.action) == (2, "similar", LimitAction.SkipStep)
    assert any("refused: Step 'load" in message.content for message in model.requests[3].messages)


async def test_a_write_begins_every_step_anew() -> None:
    ran: list[str] = []

    @tool(effect="read")
    async def check() -> str:
        """Check."""
        ran.append("check")
        raise OSError("still broken")

    @tool
    async def fix(part: int) -> str:
        """Fix a part."""
        ran.append("fix")
        return f"fixed {part}"

    def reply(step: int, _: ModelRequest) -> Scripted:
        return "fixed" if step == 9 else calls(("fix", {"part": step}) if step % 3 == 2 else ("check", {}))

    run, *_ = await play(reply, check, fix)
    assert (run.status, ran.count("check")) == ("completed", 6)


async def test_fixing_and_testing_again_is_progress() -> None:
    failed = count(9, -1)

    @tool
    async def fix(part: int) -> str:
        """Fix a part."""
        return f"fixed {part}"

    def reply(step: int, _: ModelRequest) -> Scripted:
        if step == 16:
            return "all pass"
        return calls(("fix", {"part": step})) if step % 2 else calls(("run_tests", {}))

    run, model, _ = await play(reply, results_tool(lambda: f"{next(failed)} failed"), fix)
    assert (run.status, notes_in(model)) == ("completed", 0)


async def test_polling_has_more_patience() -> None:
    run, model, _ = await play(lambda step, _: calls(("status", {})) if step < 15 else "gave up")
    assert run.status == "completed"
    assert notes_in(model) >= 1
    run, model, _ = await play(lambda _step, _: calls(("status", {})))
    assert (run.status, run.reason) == ("stopped", "stuck")
    assert 20 < len(model.requests) < 40


def limits(action: LimitAction) -> LoopConfig:
    return LoopConfig(step_iteration=StepIterationConfig(on_limit_reached=action))


async def test_the_answer_can_be_asked_for_in_place_of_the_end() -> None:
    def reply(_: int, request: ModelRequest) -> Scripted:
        return calls(("look", {"q": "a"})) if request.tools.tools else "about a, I think"

    run, *_ = await play(reply, config=limits(LimitAction.AnswerNow))
    assert (run.status, run.reason, run.answer) == ("stopped", "stuck", "about a, I think")


async def test_switched_off_it_is_on_record_and_decides_nothing() -> None:
    config = LoopConfig(step_iteration=StepIterationConfig(enabled=False), budget=Budget(max_steps=12))
    run, model, events = await play(lambda step, _: one_call(step), config=config)
    assert (run.reason, len(model.requests)) == ("steps", 12)
    assert not any(isinstance(event, StepLimitReached) for event in events)
