"""An agent as a tool: its run is in the journal of the run that asks it, and keeps all the promises of one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import scenes
from cases import cases
from plan_kit import World, configured, off, retry, script, step, store_of, thinking
from records import events_of, turns
from scenes import Row
from surefoot import (
    Agent,
    Budget,
    LoopConfig,
    MemoryJournal,
    SqliteJournal,
    Tool,
    ToolCallContext,
    ToolResult,
    UsageError,
    WrappedTool,
    tool,
)
from surefoot.core.loop.fold import fold
from surefoot.journal.transfer import lines_of, take_in
from surefoot.testing.journals import Crash, CrashingStore
from surefoot.testing.models import Scripted, calls
from surefoot.testing.world import plan
from surefoot.types.events import CallEnded, CallStarted, RunStarted
from surefoot.types.messages import Inside, ModelMessage, Usage
from surefoot.types.ports import JournalStore
from surefoot.types.tools import Approval

pytestmark = pytest.mark.anyio


class Post:
    """A post office: what was really sent."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()

    def mail(self, approval: Approval | None = None) -> Tool:
        @tool(effect="communicate", approval=approval)
        async def send_mail(to: str, body: str) -> str:
            self.sent[f"{to}: {body}"] += 1
            return f"sent to {to}"

        return send_mail

    def tools(self) -> list[Tool]:
        @tool(effect="read")
        async def address_of(name: str) -> str:
            """The address of a person."""
            return f"{name.lower()}@example.org"

        return [self.mail(), address_of]


WRONG = calls(("send_mail", {"to": "eve@evil.example", "body": "hello"}))
MAIL = calls(("send_mail", {"to": "ada@example.org", "body": "hello"}))
ASK = calls(("clerk", {"task": "Send a mail to ada@example.org that says hello"}))
TASK = "Send a mail to ada@example.org that says hello"


def clerk(post: Post, *said: Scripted, **options: object) -> Agent:
    wanted = said or (calls(("address_of", {"name": "Ada"})), MAIL, "I have sent it.")
    return Agent(turns(*wanted), tools=post.tools(), **options)  # type: ignore[arg-type]


def asking(post: Post) -> Agent:
    """A clerk that asks before each mail."""
    return Agent(turns(MAIL, "sent"), tools=[post.mail("always")])


def desk(inner: Agent, store: JournalStore | None = None, *said: Scripted, **options: object) -> Agent:
    asked = inner.as_tool("clerk", "Does the mail.")
    return Agent(turns(*(said or (ASK, "done"))), tools=[asked], journal=store, **options)  # type: ignore[arg-type]


async def alike(store: JournalStore) -> None:
    """Every run of the journal replays alike, and folds in parts to what it folds to in one go."""
    for info in await store.runs():
        events = await events_of(store, info.run_id)
        for at in range(len(events)):
            assert fold(events[at:], fold(events[:at])) == fold(events)


async def test_the_run_of_an_agent_is_in_the_journal_linked_both_ways() -> None:
    post, store = Post(), MemoryJournal()
    run = await desk(clerk(post), store).run(TASK, run_id="r")
    assert (run.status, run.answer, post.sent) == ("completed", "done", Counter({"ada@example.org: hello": 1}))
    outer, inner = await events_of(store, "r"), await events_of(store, "r.1.0")
    (ended,) = (one for one in outer if isinstance(one, CallEnded))
    assert (ended.result.content, ended.result.trust) == ("I have sent it.", "untrusted")
    assert ended.inner is not None
    assert ended.inner.run_id == "r.1.0"
    begun = inner[0]
    assert isinstance(begun, RunStarted)
    assert begun.outer is not None
    assert (begun.outer.run_id, begun.outer.call_id, begun.task.text) == ("r", "1.0", TASK)
    await alike(store)
    summaries = {info.run_id: info for info in await store.runs()}
    assert summaries["r.1.0"].outer == "r"


async def test_the_effect_is_the_strongest_of_its_tools_unless_somebody_says_otherwise() -> None:
    inner = clerk(Post())
    assert inner.as_tool("clerk", "").spec.effect == "communicate"
    assert inner.as_tool("clerk", "", effect="read").spec.effect == "read"
    assert Agent(turns("a")).as_tool("clerk", "").spec.effect == "read"


def priced(said: Scripted, tokens: int) -> ModelMessage:
    message = said if isinstance(said, ModelMessage) else ModelMessage("assistant", str(said))
    return replace(message, usage=Usage(tokens, 0, cost_usd=0.01))


async def test_what_it_uses_counts_for_the_run_that_asks_and_it_gets_what_is_left_there() -> None:
    post, store = Post(), MemoryJournal()
    inner = clerk(post, *(priced(one, 100) for one in (calls(("address_of", {"name": "Ada"})), MAIL, "sent")))
    run = await desk(inner, store, priced(ASK, 10), priced("done", 10)).run(TASK, run_id="r")
    assert (run.usage.total_tokens, run.requests) == (320, 5)
    assert run.usage.cost_usd == pytest.approx(0.05)
    summaries = {info.run_id: info for info in await store.runs()}
    assert (summaries["r"].usage, summaries["r"].requests) == (run.usage, run.requests)
    few = LoopConfig(budget=Budget(max_tokens=110, reserve=0.1))
    post.sent.clear()
    run = await desk(inner, store, priced(ASK, 10), priced("done", 10), config=few).run(TASK, run_id="few")
    assert run.usage.total_tokens <= 220  # one request is under way when a limit is reached
    assert not post.sent
    (limited,) = (one for one in await events_of(store, "few.1.0") if isinstance(one, RunStarted))
    assert limited.config.budget.max_tokens == 89


async def test_its_questions_wait_in_the_run_that_asks_and_are_answered_there() -> None:
    post, store = Post(), MemoryJournal()
    agent = desk(asking(post), store)
    run = await agent.run(TASK, run_id="r")
    assert (run.status, run.reason, [one.id for one in run.waiting]) == ("paused", "approval", ["1.0/1.0"])
    assert run.waiting[0].arguments == {"to": "ada@example.org", "body": "hello"}
    assert not post.sent
    run = await agent.resume("r")
    assert (run.status, len(await events_of(store, "r"))) == ("paused", 5)  # nothing has changed, nothing is recorded
    with pytest.raises(UsageError, match=r"call '1\.0/9\.9' does not wait"):
        await agent.approve("r", "1.0/9.9", by="Ada")
    run = await agent.approve("r", "1.0/1.0", by="Ada")
    assert run.status == "ready"
    run = await agent.resume("r")
    assert (run.status, run.answer, post.sent.total()) == ("completed", "done", 1)
    await alike(store)


async def test_a_wrapper_that_catches_errors_catches_no_question() -> None:
    class Careful(WrappedTool):
        async def call(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:
            try:
                return await super().call(arguments, context)
            except Exception as error:  # noqa: BLE001
                return ToolResult(str(error), "error")

    post, store = Post(), MemoryJournal()
    agent = desk(asking(post), store, wrap_tools=[Careful])
    run = await agent.run(TASK, run_id="r")
    assert [one.id for one in run.waiting] == ["1.0/1.0"]
    await agent.approve("r.1.0", "1.0", by="Ada")  # in its own run: it is seen when the outer one goes on
    run = await agent.resume("r")
    assert (run.status, post.sent.total()) == ("completed", 1)
    await alike(store)


class Office(Post):
    """A clerk that says this, and payments; `guard` is that of the clerk."""

    def __init__(self, said: Sequence[Any], approval: Approval | None = None, **options: Any) -> None:  # JSON
        super().__init__()
        self.said, self.options = [scenes.said(one, {}) for one in said], options
        self.approval: Approval | None = approval

    @property
    def ran(self) -> list[str]:
        return [*self.sent.elements()]

    def tools(self) -> list[Tool]:
        @tool(effect="transact")
        async def pay(recipient: str, amount: float) -> str:
            self.sent[f"pay {recipient} {amount:g}"] += 1
            return "paid"

        guard, how = self.options.get("guard", False), self.options.get("hand_off", False)
        inner = Agent(turns(*self.said), tools=[*super().tools()[1:], self.mail(self.approval), pay], guard=guard)
        return [inner.as_tool("clerk", "Does the mail.", hand_off=how), pay]


@scenes.scenes("agent_tools")
async def test_what_comes_of_a_run_that_asks_an_agent(row: Row) -> None:
    await scenes.play(row, Office, task=TASK)


async def test_agents_ask_agents_and_are_watched_all_the_way() -> None:
    post, store, seen = Post(), MemoryJournal(), list[tuple[str, ...]]()

    def watch(item: object) -> None:
        path = list[str]()
        while isinstance(item, Inside):
            path.append(item.run_id)
            item = item.item
        if isinstance(item, CallStarted):
            seen.append((*path, item.call_id))

    office = desk(clerk(post)).as_tool("office", "")
    agent = Agent(turns(calls(("office", {"task": TASK})), "all done"), tools=[office], journal=store)
    run = await agent.run(TASK, run_id="r", watch=watch)
    assert (run.status, run.requests, post.sent.total()) == ("completed", 7, 1)
    inner = "r.1.0", "r.1.0.1.0"
    assert seen == [("1.0",), ("r.1.0", "1.0"), (*inner, "1.0"), (*inner, "2.0")]
    await alike(store)


class Db:
    def __init__(self, name: str) -> None:
        self.name = name


async def test_services_of_one_run_reach_the_agents_that_it_asks() -> None:
    seen: list[str] = []

    @tool
    async def note(db: Db) -> str:
        seen.append(db.name)
        return "noted"

    inner = Agent(turns(calls(("note", {})), "done"), tools=[note], services={Db: ...})
    agent = Agent(turns(ASK, "done"), tools=[inner.as_tool("clerk", "")], services={Db: ...})
    await agent.run("Note it", services={Db: Db("of Ada")})
    assert seen == ["of Ada"]


async def test_death_at_any_append_of_either_run_makes_nothing_twice(tmp_path: Path) -> None:
    counted = CrashingStore(MemoryJournal(), 0, "before", of=["append"])
    await desk(clerk(Post()), counted).run(TASK, run_id="r")
    assert counted.operations > 9
    for at in range(1, counted.operations + 1):
        post = Post()
        store, dying = SqliteJournal(tmp_path / f"{at}.db"), SqliteJournal(tmp_path / f"{at}.db")
        broken = CrashingStore(dying, at, "after" if at % 2 else "before", of=["append"])
        with pytest.raises(Crash):
            await desk(clerk(post), broken).run(TASK, run_id="r")
        agent = desk(clerk(post), store)
        known = await store.beginning("r", 1)
        run = await agent.resume("r") if known else await agent.run(TASK, run_id="r")
        if run.status == "paused":
            (doubtful,) = run.waiting
            assert (run.reason, doubtful.id, doubtful.name) == ("in_doubt", "1.0/2.0", "send_mail"), at
            outcome = "done" if post.sent else "not_done"
            await agent.settle("r", doubtful.id, outcome, by="Ada", result="sent" if post.sent else "")  # type: ignore[arg-type]
            run = await agent.resume("r")
        assert (run.status, run.answer, post.sent.total()) == ("completed", "done", 1), at
        assert run.requests >= 5, at
        await alike(store)
        await agent.aclose()
        await dying.aclose()


async def test_a_cancelled_run_cancels_the_agents_that_it_has_asked() -> None:
    post, store = Post(), MemoryJournal()
    agent = desk(asking(post), store)
    assert (await agent.run(TASK, run_id="r")).status == "paused"
    assert (await agent.cancel("r", by="Ada")).status == "cancelled"
    assert [info.status for info in await store.runs()] == ["cancelled", "cancelled"]
    assert not post.sent
    await alike(store)


async def test_a_fork_has_the_run_that_its_parent_had_asked_and_is_exported_with_it_and_repeats_nothing() -> None:
    post, store, other = Post(), MemoryJournal(), MemoryJournal()
    agent = desk(clerk(post), store)
    await agent.run(TASK, run_id="r")
    at = next(n for n, one in enumerate(await events_of(store, "r")) if isinstance(one, CallEnded))
    await agent.fork("r", at, new_id="f", drives=False)
    lines = [line async for line in lines_of(store, ["f"])]
    assert [one.run_id async for one in take_in(other, lines)]
    for kept in (store, other):
        fork = await desk(clerk(post), kept).resume("f")
        assert (fork.status, fork.answer, post.sent.total()) == ("completed", "done", 1)
    await alike(store)


async def test_an_agent_is_a_step_of_a_plan() -> None:
    post = Post()
    asked = asking(post).as_tool("clerk", "Does the mail.")
    steps = plan(step("mail", "clerk", task=TASK), thinking("told", ["mail"], "response"))
    agent = World().agent(script(steps, "all is sent"), more=[asked], config=off())
    run = await agent.run(TASK, run_id="r")
    assert (run.status, run.reason, [one.name for one in run.waiting]) == ("paused", "approval", ["send_mail"])
    run = await agent.approve("r", run.waiting[0].id, by="Ada")
    run = await agent.resume("r")
    assert (run.status, run.answer, post.sent.total(), run.requests) == ("completed", "all is sent", 1, 4)
    await alike(store_of(agent))


@cases("agent_tools")
async def test_the_requests_of_a_plan_bind_the_agents_that_its_steps_ask(
    most: int, of_agents: list[int], told: str
) -> None:
    @tool(effect="read")
    async def look(name: str) -> str:
        return name

    reader = turns(*(calls(("look", {"name": one})) for one in "xy"), "seen", "no more")
    asked = Agent(reader, tools=[look]).as_tool("scout", "")
    steps = plan(*(step(one, "scout", task=f"Look at {one}") for one in "abc"))
    config = configured(max_llm_calls=most, max_parallel=1)
    agent = World().agent(script(steps, "the answer"), more=[asked], config=config)
    run = await agent.run(TASK, run_id="r")
    inner = [info.requests for info in await store_of(agent).runs() if info.run_id != "r"]
    assert (run.requests <= most, sorted(inner, reverse=True), run.reason) == (True, of_agents, told)
    await alike(store_of(agent))


async def test_a_new_attempt_at_a_step_is_told_of_an_agent_that_may_have_acted_before_it_failed() -> None:
    post = Post()
    asked = clerk(post, MAIL, "", "", "").as_tool("clerk", "Does the mail.")
    steps = plan(step("mail", kind="agent", instruction="mail it", allowed_tools=["clerk"]))
    last = {"thought": "", "action": "Final Answer", "action_input": "all is sent"}
    model = script(steps, ASK, *[""] * 4, retry(instruction="mail it anew"), last)
    run = await World().agent(model, more=[asked], config=off()).run(TASK, run_id="r")
    assert (run.status, post.sent.total()) == ("completed", 1)
    told = model.requests[-1].messages[-1].content
    assert "gave no answer but may have acted" in told


async def test_agents_that_read_are_asked_side_by_side_and_share_what_is_left() -> None:
    store, together = MemoryJournal(), asyncio.Barrier(3)

    @tool(effect="read")
    async def look(name: str) -> str:
        await together.wait()
        return name

    reader = Agent(turns(calls(("look", {"name": "it"})), "seen"), tools=[look]).as_tool("reader", "")
    three = calls(*(("reader", {"task": f"Look at {name}"}) for name in "abc"))
    config = LoopConfig(budget=Budget(max_tokens=3_000, reserve=0.0))
    run = await Agent(turns(three, "done"), tools=[reader], journal=store, config=config).run("Look", run_id="r")
    assert run.status == "completed"
    states = [fold(await events_of(store, f"r.1.{at}")) for at in range(3)]
    assert [one.config.budget.max_tokens for one in states] == [(3_000 - 15) // 3] * 3
    await alike(store)
