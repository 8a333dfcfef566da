"""Runs that get nowhere, and limits of progress: who is asked, what begins anew, and what a crash leaves.

Source: spec/primitives.md, 2.4 and 2.5.
"""

from collections.abc import Callable, Mapping
from itertools import count, pairwise
from unicodedata import normalize

import pytest

from records import events_of
from scenes import Row, play, scenes, text_of
from surefoot import Agent, Budget, CallMode, LoopConfig, MemoryJournal, ModelRequest, Tool, ToolProfile, tool
from surefoot.testing.models import FunctionModel, Scripted, ScriptedModel, calls
from surefoot.types.events import CallJudged, Event, ModelReplied, StepLimitReached
from surefoot.types.progress import LimitAction, StepIterationConfig

pytestmark = pytest.mark.anyio

NOTE = "[PROGRESS_NOTE]"
ran: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@tool(effect="read")
async def look(q: str) -> str:
    """Look something up."""
    ran.append(q)
    return f"about {q}"


@tool(effect="read")
async def load(path: str) -> str:
    """Load a file."""
    ran.append(path)
    at = f"09:14:0{len(ran)} " if path == "lock" else ""  # the same error in other words
    raise OSError(f"{at}cannot lock file {path}")


@tool
async def fetch(url: str) -> str:
    """Have a page fetched, which is not tried again by itself."""
    ran.append(url)
    raise ConnectionError("connection reset")


@tool
async def shell(command: str) -> str:
    """Run a command."""
    ran.append(command)
    return "ran"


def config(action: LimitAction = LimitAction.SkipStep, most: int = 2, profile: ToolProfile | None = None) -> LoopConfig:
    limits = StepIterationConfig(max_reattempts_per_step=most, on_limit_reached=action)
    return LoopConfig(
        Budget(max_steps=60), parse_faults=9, empty_replies=9, nudges=9, step_iteration=limits, tool_profile=profile
    )


def model(reply: Callable[[int], Scripted], mode: CallMode = "native") -> FunctionModel:
    steps = count()
    return FunctionModel(lambda _: reply(next(steps)), modes=(mode,))


def agent(
    store: MemoryJournal, reply: Callable[[int], Scripted] | FunctionModel | ScriptedModel, limits: LoopConfig
) -> Agent:
    made = model(reply) if callable(reply) else reply
    return Agent(made, [look, load, fetch, shell], journal=store, config=limits)


def limits_of(events: list[Event]) -> list[StepLimitReached]:
    return [event for event in events if isinstance(event, StepLimitReached)]


def loading(*paths: str, times: int = 2, then: Scripted = "done") -> Callable[[int], Scripted]:
    return lambda step: calls(*(("load", {"path": path}) for path in paths)) if step < times else then


@tool(effect="read", polling=True)
async def status() -> str:
    """Status of a job."""
    return "running"


class World:
    """The tools above, and the book that they keep."""

    @property
    def ran(self) -> list[str]:
        return [line for line in ran if line not in ("a", "b")]

    def tools(self) -> list[Tool]:
        return [look, load, fetch, shell, status]


LONG = {"budget": {"max_steps": 60}, "parse_faults": 9, "empty_replies": 9, "nudges": 9}


@scenes("circles", "stuck")
async def test_a_run_that_gets_nowhere_is_corrected_once_and_stopped_within_eight_steps(row: Row) -> None:
    played = await play(row, World, config=LONG)
    if "noted" in row:
        told = [text_of(request).count(NOTE) for request in played.models["solo"].requests]
        assert sum(now > before for before, now in pairwise((0, *told))) >= row["noted"]


@scenes("circles", "limits")
async def test_what_a_limit_makes_of_a_run(row: Row) -> None:
    await play(row, World, config=LONG)


async def test_no_answer_about_a_limit_runs_a_tool_that_the_profile_hides() -> None:
    store = MemoryJournal()
    limits = config(LimitAction.Escalate, profile=ToolProfile(include=["look"]))
    one = agent(store, lambda step: calls(("shell", {"command": "rm"})) if step < 9 else "done", limits)
    run = await one.run("go")
    while run.status == "paused":
        await one.approve(run.id, run.waiting[0].id, by="Ada")
        run = await one.resume(run.id)
    assert (run.status, ran) == ("completed", [])
    judged = [event for event in await events_of(store, run.id) if isinstance(event, CallJudged) and not event.by]
    assert {event.rule for event in judged} == {"profile"}


async def journal_until(store: MemoryJournal, run_id: str, at: int) -> MemoryJournal:
    """A journal as a crash left it: the first records alone, and nobody has taken the run up."""
    events = await events_of(store, run_id)
    crashed = MemoryJournal()
    journal = await crashed.open(run_id, create=True)
    await journal.append(events[:at])
    await journal.release()
    return crashed


def place_of(events: list[Event], kind: type[Event], number: int = 0) -> int:
    return [at for at, event in enumerate(events) if isinstance(event, kind)][number]


async def test_a_stop_holds_after_a_crash() -> None:
    store = MemoryJournal()
    run = await agent(store, loading("x"), config()).run("go")
    crashed = await journal_until(store, run.id, place_of(await events_of(store, run.id), StepLimitReached))
    ran.clear()
    run = await agent(crashed, loading("x", times=1), config()).resume(run.id)
    assert (run.status, ran) == ("completed", [])
    assert len(limits_of(await events_of(crashed, run.id))) == 1


async def test_a_circle_is_not_forgotten_by_crashes_but_by_one_who_takes_up_a_stuck_run() -> None:
    store = MemoryJournal()
    run = await agent(store, lambda _: calls(("look", {"q": "a"})), config()).run("go")
    events = await events_of(store, run.id)
    crashed = await journal_until(store, run.id, place_of(events, ModelReplied, 3))
    again = await agent(crashed, lambda _: calls(("look", {"q": "a"})), config()).resume(run.id)
    assert (again.status, again.reason, again.requests) == ("stopped", "stuck", 5)
    assert (await agent(store, lambda _: "done", config()).resume(run.id)).status == "completed"


@pytest.mark.parametrize("has_begun", [False, True])
async def test_a_call_allowed_before_a_crash_does_not_run_when_the_profile_hides_it_now(*, has_begun: bool) -> None:
    store = MemoryJournal()
    run = await agent(store, lambda step: "done" if step else calls(("look", {"q": "a"})), config()).run("go")
    at = place_of(await events_of(store, run.id), CallJudged) + 1
    crashed = await journal_until(store, run.id, at + has_begun)
    ran.clear()
    hidden = config(profile=ToolProfile(exclude=["look"]))
    run = await agent(crashed, lambda _: "done", hidden).resume(run.id, config=hidden)
    assert (run.status, ran) == ("completed", [])
    assert [event.rule for event in await events_of(crashed, run.id) if isinstance(event, CallJudged)] == [
        "",
        "profile",
    ]


async def test_a_denied_sibling_hides_no_progress() -> None:
    store = MemoryJournal()
    told = count()

    @tool(effect="read", polling=True)
    async def status() -> str:
        """How far it is."""
        return f"{next(told)} of 40 done"

    def reply(step: int) -> Scripted:
        return calls(("load", {"path": "x"}), ("status", {})) if step < 20 else "done"

    run = await Agent(model(reply), [load, status], journal=store, config=config()).run("go")
    assert (run.status, ran.count("x")) == ("completed", 2)


async def test_a_thinker_that_stumbles_and_recovers_each_round_is_no_monologue() -> None:
    store = MemoryJournal()
    rounds = count()

    def think(_: ModelRequest) -> Scripted:
        step = next(rounds)
        if step == 20:
            return "TASK_DONE"
        return f"<instruction>Say {step}.</instruction>" if step % 2 else ""

    acting = FunctionModel(lambda _: "said", modes=("native",))
    parts = {"thinker": FunctionModel(think, modes=("text",)), "actor": acting}
    limits = LoopConfig(Budget(max_steps=60), max_rounds=40, step_iteration=StepIterationConfig())
    run = await Agent(parts, [look], reasoner="dual", journal=store, config=limits).run("go")
    assert not limits_of(await events_of(store, run.id))


async def test_a_circle_of_errors_of_one_step_is_told_denied_and_stopped() -> None:
    store = MemoryJournal()
    built = count()

    @tool(effect="read")
    async def build(part: str) -> str:
        """Build a part."""
        raise ValueError(f"{part}: missing header" if next(built) % 2 else "unknown symbol: link the library first")

    def reply(step: int) -> Scripted:
        return calls(("build", {"part": "a"}), ("look", {"q": f"{step}"})) if step < 8 else "done"

    made = model(reply)
    run = await Agent(made, [build, look], journal=store, config=config(most=20)).run("go")
    events = await events_of(store, run.id)
    rules = [event.rule for event in events if isinstance(event, CallJudged) and event.call_id.endswith(".0")]
    assert (run.status, rules) == ("stopped", [""] * 6 + ["stuck"] * 2)
    (limit,) = limits_of(events)
    assert (limit.step_id[:6], limit.pattern) == ("build-", "cycle")
    assert sum(message.content.count(NOTE) for message in made.requests[-1].messages) == 1


async def test_a_step_is_its_call_however_that_is_written_and_its_id_is_short() -> None:
    store = MemoryJournal()
    name = "café" * 50_000
    forms: list[Mapping[str, object]] = [{"path": normalize("NFC", name)}, {"path": normalize("NFD", name)}]
    run = await agent(store, lambda step: calls(("load", forms[step])) if step < 2 else "done", config()).run("go")
    (limit,) = limits_of(await events_of(store, run.id))
    assert len(limit.step_id) < 90


async def test_one_circle_is_told_once() -> None:
    @tool(effect="read", polling=True)
    async def status() -> str:
        """How far it is."""
        return "running"

    made = model(lambda _: calls(("status", {})))
    await Agent(made, [status], config=config()).run("go")
    notes = [sum(message.content.count(NOTE) for message in request.messages) for request in made.requests]
    assert notes == [0] * 10 + [1] * 20
    assert "status with the same arguments came 10 times" in made.requests[10].messages[-1].content


async def test_a_long_result_whose_clock_alone_changes_is_the_same() -> None:
    store = MemoryJournal()
    times = count(10)

    @tool(effect="read", polling=True)
    async def log() -> str:
        """The log."""
        return "nothing new\n" * 2_000 + f"\n09:14:{next(times)} ready"

    run = await Agent(model(lambda _: calls(("log", {}))), [log], journal=store, config=config()).run("go")
    assert (run.status, run.reason) == ("stopped", "stuck")
