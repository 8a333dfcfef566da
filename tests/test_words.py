"""Words that are said to runs: while they are driven, here and elsewhere, and when nobody drives them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from plan_kit import configured, off, step, thinking
from records import events_of
from surefoot import Agent, LoopConfig, tool
from surefoot.core.loop.fold import fold
from surefoot.core.loop.inbox import digest_of_call
from surefoot.core.plan.accept import waiting
from surefoot.journal.memory import MemoryJournal
from surefoot.journal.sqlite import SqliteJournal
from surefoot.run import Run
from surefoot.speak import speak
from surefoot.testing.models import FunctionModel, Scripted, ScriptedModel, calls
from surefoot.testing.world import plan
from surefoot.tools.call import ToolFailed
from surefoot.types.errors import RunBusy, UsageError
from surefoot.types.events import CallEnded, Outcome, RunNoted
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.ports import JournalStore
from surefoot.types.tools import Effect
from surefoot.types.words import Approve, Cancel, Note, Refuse, Settle, Sign

pytestmark = pytest.mark.anyio


@tool(approval="always", effect="read")  # calls with an effect would wait for each other
async def send(to: str) -> str:
    """Send it."""
    return f"sent to {to}"


class Gate:
    """A tool that is at work until it is let go."""

    def __init__(self, effect: Effect = "read") -> None:
        self.begun, self.go_on, self.calls = asyncio.Event(), asyncio.Event(), 0

        async def hold() -> str:
            """Hold on."""
            self.calls += 1
            self.begun.set()
            await self.go_on.wait()
            return "held"

        self.tool = tool(hold, effect=effect)


async def digest(store: JournalStore, run_id: str, call_id: str) -> str:
    state = fold(await events_of(store, run_id))
    return next(digest_of_call(one) for one in waiting(state) if one.id == call_id)


def driven(store: JournalStore, gate: Gate) -> tuple[Agent, asyncio.Task[Run]]:
    """A run of two calls at once: one is asked about, the other at work."""
    script = [calls(("send", {"to": "bob"}), ("hold", {})), "Done."]
    agent = Agent(ScriptedModel(script), tools=[send, gate.tool], journal=store)
    return agent, asyncio.create_task(agent.run("send it", run_id="r1"))


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[JournalStore]:
    one = MemoryJournal() if request.param == "memory" else SqliteJournal(tmp_path / "runs.db")
    yield one
    await one.aclose()


async def test_a_question_is_answered_while_other_calls_are_at_work(store: JournalStore) -> None:
    gate = Gate()
    _, running = driven(store, gate)
    await asyncio.wait_for(gate.begun.wait(), 20)
    shown = await digest(store, "r1", "1.0")
    posted = await speak(store, "r1", Approve((("1.0", shown),), "mika"), wait_s=20)
    assert (posted.outcome, gate.go_on.is_set()) == ("applied", False)
    told = await events_of(store, "r1")
    assert told[posted.seq].type == "CallJudged"
    gate.go_on.set()
    run = await asyncio.wait_for(running, 20)
    assert (run.status, run.answer, gate.calls) == ("completed", "Done.", 1)
    results = {one.call_id: one.result.content for one in await events_of(store, "r1") if isinstance(one, CallEnded)}
    assert results == {"1.0": "sent to bob", "1.1": "held"}


async def test_a_run_that_is_driven_is_cancelled_at_once_and_each_call_settled(store: JournalStore) -> None:
    gate = Gate()
    agent, running = driven(store, gate)
    await asyncio.wait_for(gate.begun.wait(), 20)
    run = await agent.cancel("r1", by="mika")
    assert (run.status, run.reason) == ("cancelled", "mika")
    assert (await asyncio.wait_for(running, 20)).status == "cancelled"
    kinds = {one.call_id: one.result.kind for one in await events_of(store, "r1") if isinstance(one, CallEnded)}
    assert kinds == {"1.0": "cancelled", "1.1": "cancelled"}
    assert (await agent.cancel("r1", by="ann")).reason == "mika"  # it has ended


async def test_one_word_after_another_is_heard_while_the_same_request_is_made(store: JournalStore) -> None:
    """The first is for the next request, the second ends the run."""
    asked = asyncio.Event()

    async def answer(_: ModelRequest) -> ModelMessage:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    agent = Agent(FunctionModel(answer), journal=store)
    running = asyncio.create_task(agent.run("think", run_id="r1"))
    await asyncio.wait_for(asked.wait(), 20)
    await speak(store, "r1", Note("and be quick", "mika"), wait_s=0)
    assert (await speak(store, "r1", Cancel("mika"), wait_s=20)).outcome == "applied"
    assert (await asyncio.wait_for(running, 20)).status == "cancelled"


async def test_a_word_that_ends_a_run_cancels_nobody_else(store: JournalStore) -> None:
    """Not even where what is under way keeps the cancellation to itself."""
    asked = asyncio.Event()

    async def stubborn(_: ModelRequest) -> ModelMessage:
        asked.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return ModelMessage("assistant", "Done all the same.")

    agent = Agent(FunctionModel(stubborn), journal=store)

    async def run() -> tuple[str, int]:
        task = asyncio.current_task()
        assert task is not None
        return (await agent.run("go", run_id="r1")).status, task.cancelling()

    running = asyncio.create_task(run())
    await asyncio.wait_for(asked.wait(), 20)
    assert (await speak(store, "r1", Cancel("mika"), wait_s=20)).outcome == "applied"
    assert await asyncio.wait_for(running, 20) == ("cancelled", 0)
    assert [one.type for one in await events_of(store, "r1")][-1] == "RunEnded"


async def test_nothing_is_recorded_behind_the_end_that_somebody_has_put_to_a_run(store: JournalStore) -> None:
    """Its driver is cancelled while the word that ends it is written, and what it waited for is there by then."""
    said = asyncio.Event()

    async def reply(_: ModelRequest) -> Scripted:
        await store.say("r1", Cancel("mika"))
        said.set()
        return "Done."

    agent = Agent(FunctionModel(reply), journal=store)
    running = asyncio.create_task(agent.run("hold on", run_id="r1"))
    async with asyncio.timeout(20):
        await said.wait()
    running.cancel()
    await asyncio.wait((running,))
    assert [one.type for one in await events_of(store, "r1")][-1] == "RunEnded"


async def test_a_word_reaches_a_run_that_another_store_of_the_file_drives(tmp_path: Path) -> None:
    here, there, gate = SqliteJournal(tmp_path / "runs.db"), SqliteJournal(tmp_path / "runs.db"), Gate()
    _, running = driven(here, gate)
    await asyncio.wait_for(gate.begun.wait(), 20)
    with pytest.raises(RunBusy):
        await there.open("r1")
    posted = await speak(there, "r1", Cancel("mika"), wait_s=20)
    assert posted.outcome == "applied"
    assert (await asyncio.wait_for(running, 20)).status == "cancelled"
    await here.aclose()
    await there.aclose()


async def test_what_the_user_adds_is_read_before_the_next_reply_and_counts_as_their_words(store: JournalStore) -> None:
    gate, model = Gate(), ScriptedModel([calls(("hold", {})), "Done, Bob too."])
    agent = Agent(model, tools=[gate.tool], journal=store, guard=True)
    running = asyncio.create_task(agent.run("hold on", run_id="r1"))
    await asyncio.wait_for(gate.begun.wait(), 20)
    assert (await speak(store, "r1", Note("Mail bob@x.example too.", "mika"), wait_s=20)).outcome == "applied"
    gate.go_on.set()
    assert (await asyncio.wait_for(running, 20)).status == "completed"
    assert [one.content for one in model.requests[-1].messages if one.role == "user"][-1] == "Mail bob@x.example too."
    told = await events_of(store, "r1")
    noted = next(at for at, one in enumerate(told) if isinstance(one, RunNoted))
    assert told[noted + 1].type == "IntentAnchored"
    anchor = fold(told).gate
    assert anchor is not None
    assert "communicate" in {str(effect) for effect in anchor.known.words.anchor.effects_asked}
    with pytest.raises(UsageError, match="has ended"):
        await agent.note("r1", "more", by="mika")


async def test_what_the_user_adds_to_a_planned_run_is_read_by_its_steps_and_before_its_answer() -> None:
    """The step that holds is over before a step of words begins; the last note comes while the answer is written."""
    gate, seen, store = Gate(), list[tuple[str, ...]](), MemoryJournal()
    steps = plan(step("wait", "hold"), thinking("weigh", ["wait"]), thinking("tell", ["weigh"], "response"))
    said = iter((steps, "weighed", "told", "told anew"))

    async def reply(request: ModelRequest) -> Scripted:
        seen.append(tuple(one.content for one in request.messages if one.role == "user"))
        if len(seen) == 3:
            await speak(store, "r1", Note("In French.", "mika"), wait_s=0)
        return next(said)

    agent = Agent(FunctionModel(reply), tools=[gate.tool], journal=store, config=off(), reasoner="plan")
    running = asyncio.create_task(agent.run("hold on", run_id="r1"))
    await asyncio.wait_for(gate.begun.wait(), 20)
    assert (await speak(store, "r1", Note("Bob too.", "mika"), wait_s=20)).outcome == "applied"
    gate.go_on.set()
    run = await asyncio.wait_for(running, 20)
    assert (run.status, run.answer) == ("completed", "told anew")
    assert ["Bob too." in asked for asked in seen] == [False, True, True, True]
    assert ["In French." in asked for asked in seen] == [False, False, False, True]
    await events_of(store, "r1")


async def said_while(number: int, replies: list[Scripted], config: LoopConfig) -> tuple[Run, list[bool]]:
    """A planned run to which a note is said while its request of that number is made; and which requests hold it."""
    store, seen, said = MemoryJournal(), list[bool](), iter(replies)

    async def reply(request: ModelRequest) -> Scripted:
        seen.append(any("In French." in one.content for one in request.messages))
        if len(seen) == number:
            await speak(store, "r1", Note("In French.", "mika"), wait_s=0)
        return next(said)

    agent = Agent(FunctionModel(reply), tools=[send], journal=store, config=config, reasoner="plan")
    run = await agent.run("hold on", run_id="r1")
    await events_of(store, "r1")
    return run, seen


@pytest.mark.parametrize(("most", "answer"), [(3, "told"), (4, "told anew")])
async def test_an_answer_stays_where_no_request_is_left_for_what_the_user_adds(most: int, answer: str) -> None:
    steps = plan(thinking("weigh"))
    run, _ = await said_while(3, [steps, "weighed", "told", "told anew"], configured(max_llm_calls=most))
    assert (run.status, run.answer) == ("completed", answer)


async def test_the_last_try_at_words_holds_what_the_user_adds() -> None:
    bad = calls(("send", {"to": "bob"}))
    _, seen = await said_while(4, [plan(thinking("tell", (), "response")), bad, bad, bad, "told", "told"], off())
    assert seen[4]


async def paused(store: JournalStore) -> Agent:
    agent = Agent(ScriptedModel([calls(("send", {"to": "bob"})), "Done."]), tools=[send], journal=store)
    assert (await agent.run("send it", run_id="r1")).status == "paused"
    return agent


async def test_a_word_that_does_not_fit_says_why_and_changes_nothing(store: JournalStore) -> None:
    await paused(store)
    before = await events_of(store, "r1")
    for word, problem in (
        (Approve((("1.0", "other"),), "mika"), "changed"),
        (Approve((("1.0", ""), ("9.9", "")), "mika"), "no_such_call"),
        (Settle("1.0", "done", "mika"), "other_question"),
        (Sign(1, "approved", "mika"), "not_waiting"),
    ):
        assert (await speak(store, "r1", word)).outcome == problem, word
    assert await events_of(store, "r1") == before


@pytest.mark.parametrize("outcome", ["done", "not_done", "abandoned"])
@pytest.mark.parametrize("reasoner", ["react", "plan"])
async def test_a_call_that_is_under_way_is_not_in_doubt(store: JournalStore, outcome: Outcome, reasoner: str) -> None:
    gate = Gate("write")
    plan = '{"steps": [{"step_id": "one", "tool_id": "hold", "kind": "tool", "dependencies": [], "parameters": {}}]}'
    script = [plan if reasoner == "plan" else calls(("hold", {})), "Done."]
    agent = Agent(ScriptedModel(script), tools=[gate.tool], journal=store, reasoner=reasoner)
    running = asyncio.create_task(agent.run("hold on", run_id="r1"))
    await asyncio.wait_for(gate.begun.wait(), 20)
    call_id = "one.1" if reasoner == "plan" else "1.0"
    assert (await speak(store, "r1", Settle(call_id, outcome, "mika"))).outcome == "not_waiting"
    gate.go_on.set()
    assert (await asyncio.wait_for(running, 20)).status == "completed"
    assert gate.calls == 1
    await events_of(store, "r1")


async def test_of_two_who_answer_the_first_counts_and_the_other_hears_who_it_was(store: JournalStore) -> None:
    agent = await paused(store)
    shown = await digest(store, "r1", "1.0")
    words = (Refuse((("1.0", shown),), "ann", "not now"), Approve((("1.0", shown),), "mika"))
    first, second = await asyncio.gather(*(speak(store, "r1", word, wait_s=20) for word in words))
    assert {first.outcome, second.outcome} == {"applied", "not_waiting"}
    winner, loser = (first, second) if first.outcome == "applied" else (second, first)
    assert winner.word.by in loser.detail
    assert (await agent.resume("r1")).status == "completed"
    with pytest.raises(UsageError, match="give `by`"):
        await speak(store, "r1", Cancel(" "))


async def test_the_same_word_with_a_key_counts_once(store: JournalStore) -> None:
    await paused(store)
    word = Approve((("1.0", ""),), "mika")
    first = await speak(store, "r1", word, key="k1")
    assert await speak(store, "r1", word, key="k1") == first
    assert len([one for one in await events_of(store, "r1") if one.type == "CallJudged"]) == 2  # asked, allowed
    with pytest.raises(UsageError, match="another word"):
        await speak(store, "r1", replace(word, by="ann"), key="k1")


async def test_a_word_that_nobody_could_hear_is_heard_by_whoever_takes_the_run_up(store: JournalStore) -> None:
    agent = await paused(store)
    await store.say("r1", Approve((("1.0", ""),), "mika"))  # whoever said it died right behind
    run = await agent.resume("r1")
    assert (run.status, run.answer) == ("completed", "Done.")


async def told(store: JournalStore, *signs: str) -> None:
    """Return once a record has these signs."""
    async with asyncio.timeout(20):
        while not [one for one in await events_of(store, "r1") if all(sign in str(one) for sign in signs)]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_run_replays_in_which_somebody_spoke_while_its_plan_was_reflected_on(store: JournalStore) -> None:
    """What the word set going stands in the way of a reflection that had begun before."""
    reflecting, reflect, end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @tool(approval="always")
    async def pay() -> str:
        """Pay."""
        await end.wait()
        return "paid"

    @tool(effect="read")
    async def fail() -> str:
        """Fail."""
        raise ToolFailed("no")

    step = '{{"step_id": "{0}", "tool_id": "{0}", "kind": "tool", "dependencies": [], "parameters": {{}}}}'

    async def model(request: ModelRequest) -> Scripted:
        if request.system.startswith("You plan a task"):
            return f'{{"steps": [{step.format("pay")}, {step.format("fail")}]}}'
        if request.system.startswith("A step of a plan cannot be mended"):
            reflecting.set()
            await reflect.wait()
        return "Nonsense."

    agent = Agent(FunctionModel(model), tools=[pay, fail], journal=store, reasoner="plan")
    running = asyncio.create_task(agent.run("pay it", run_id="r1"))
    await asyncio.wait_for(reflecting.wait(), 20)
    assert (await speak(store, "r1", Approve((("pay.1", ""),), "mika"))).outcome == "applied"
    await told(store, "CallStarted", "pay.1")
    reflect.set()
    await told(store, "ProposalMade", "overall_reflection")
    end.set()
    await asyncio.wait_for(running, 20)
    await events_of(store, "r1")
