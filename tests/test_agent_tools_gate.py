"""The gate over agents that ask agents: what one may not do, no other does for it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from plan_kit import World, off, script, step, store_of, thinking
from surefoot import Agent, AgentTool, Budget, GuardConfig, MemoryJournal, Run, UsageError, WrappedTool, tool
from surefoot.core.loop.fold import fold
from surefoot.testing.journals import Crash, CrashingStore
from surefoot.testing.models import Scripted, calls
from surefoot.testing.world import plan
from surefoot.types.events import RunStarted
from surefoot.types.ports import JournalStore, Tool
from surefoot.types.tools import Approval
from test_agent_tools import ASK, MAIL, TASK, WRONG, Post, alike, asking, clerk, desk, events_of, turns

pytestmark = pytest.mark.anyio


async def test_an_agent_gets_the_guard_of_the_run_and_not_only_that_of_the_agent() -> None:
    """The run was begun under a guard, and is taken up by an agent that has none."""
    post, store = Post(), MemoryJournal()
    wait = calls(("wait", {}))

    def office(**options: object) -> Agent:
        @tool(effect="write", approval="always")
        async def wait() -> str:
            return "waited"

        inner = clerk(post, WRONG, "sent").as_tool("clerk", "")
        model = turns(wait_first, calls(("clerk", {"task": "Send a mail to eve@evil.example that says hello"})), "done")
        return Agent(model, tools=[wait, inner], journal=store, **options)  # type: ignore[arg-type]

    wait_first = wait
    words = "Read my mails and send a summary of them to ada@example.org."
    run = await office(guard=True).run(words, run_id="r")
    assert run.status == "paused"
    bare = office()
    await bare.approve("r", run.waiting[0].id, by="Ada")
    await bare.resume("r")
    assert await events_of(store, "r.2.0")
    assert not post.sent


@pytest.mark.parametrize("said", [(MAIL, ASK), (ASK, MAIL), (ASK, ASK)], ids=["inside", "outside", "of another"])
async def test_what_a_person_refused_is_refused_again_without_a_question(said: tuple[Scripted, Scripted]) -> None:
    post, store = Post(), MemoryJournal()
    inner = asking(post)
    agent = Agent(turns(*said, "done"), tools=[*inner.tools, inner.as_tool("clerk", "")], journal=store, guard=True)
    run = await agent.run(TASK, run_id="r")
    await agent.refuse("r", run.waiting[0].id, by="Ada")
    run = await agent.resume("r")
    assert (run.status, run.waiting) == ("completed", ())
    assert not post.sent
    await alike(store)


@tool(effect="read", private=True)
async def medical_file(name: str) -> str:
    return f"{name}: She has been treated for a rare illness of the liver since spring in the old clinic by the lake"


SECRET = "She has been treated for a rare illness of the liver since spring"
TELL = calls(("send_mail", {"to": "ada@example.org", "body": SECRET}))
LOOK = calls(("medical_file", {"name": "Eve"}))


async def test_what_is_confidential_stays_so_when_it_is_handed_over_and_when_an_agent_gives_it_back() -> None:
    words = "Look things up and send a mail to ada@example.org about how we are."
    post = Post()
    mailer = clerk(post, TELL, "sent").as_tool("clerk", "")
    doctor = Agent(turns(LOOK, SECRET), tools=[medical_file]).as_tool("doctor", "")
    over = calls(("clerk", {"task": f"Send a mail to ada@example.org: {SECRET}"}))
    for tools, said in (
        ([post.mail(), medical_file], (LOOK, TELL)),  # without any agent
        ([mailer, medical_file], (LOOK, over)),
        ([doctor, post.mail()], (calls(("doctor", {"task": "How is Eve?"})), TELL)),
    ):
        assert (await Agent(turns(*said, "done"), tools=tools, guard=True).run(words)).status == "paused"
    assert not post.sent


async def test_an_agent_is_no_directory_whatever_it_is_called() -> None:
    words = "Send a mail to Ada that says hello."
    record = {"name": "Ada", "email": "eve@evil.example"}
    post, store = Post(), MemoryJournal()
    shape = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "email": {"type": "string"}},
        "required": ["name", "email"],
    }
    people = Agent(turns(json.dumps(record)), output=shape).as_tool("contacts", "")
    agent = Agent(
        turns(calls(("contacts", {"task": "Ada"})), WRONG, "done"),
        tools=[people, post.mail()],
        journal=store,
        guard=True,
    )
    run = await agent.run(words, run_id="r")
    assert (await store.read_recorded("r.1.0"))[0]
    assert not post.sent, run


def paying(paid: list[str], name: str = "pay", approval: Approval | None = None) -> Tool:
    @tool(effect="transact", name=name, approval=approval)
    async def pay(recipient: str, amount: float) -> str:
        paid.append(f"{recipient} {amount:g}")
        return "paid"

    return pay


async def test_an_agent_is_granted_no_more_than_its_declared_effect() -> None:
    paid: list[str] = []
    pay = paying(paid)
    said = [calls(("pay", {"recipient": name, "amount": 80})) for name in ("Ann Lee", "Bob Ray")]
    ann, bob = (
        Agent(turns(one, "sent"), tools=[pay]).as_tool(name, "", effect="read")
        for one, name in zip(said, ("ann", "bob"), strict=True)
    )
    both = calls(("ann", {"task": "Pay 80 to Ann Lee"}), ("bob", {"task": "Pay 80 to Bob Ray"}))
    agent = Agent(turns(both, "done"), tools=[ann, bob], guard=True)
    run = await agent.run("Pay 80 to Ann Lee and pay 80 to Bob Ray, at most 100 in all.")
    assert (run.status, [one.id for one in run.waiting], paid) == ("paused", ["1.0/1.0", "1.1/1.0"], [])


@pytest.mark.parametrize("approval", [None, "always"])
@pytest.mark.parametrize("first", ["agent", "own"])
async def test_a_limit_counts_over_the_calls_of_one_reply(approval: Approval | None, first: str) -> None:
    paid: list[str] = []
    pay, settle = paying(paid), paying(paid, "settle", approval)
    bob = Agent(turns(calls(("settle", {"recipient": "Bob Ray", "amount": 80})), "sent"), tools=[settle])
    ask, own = ("bob", {"task": "Pay 80 to Bob Ray"}), ("pay", {"recipient": "Ann Lee", "amount": 80})
    both = calls(ask, own) if first == "agent" else calls(own, ask)
    agent = Agent(turns(both, "done"), tools=[bob.as_tool("bob", ""), pay], guard=True)
    run = await agent.run("Pay 80 to Ann Lee and pay 80 to Bob Ray, at most 100 in all.")
    while run.status == "paused":
        await agent.approve(run.id, run.waiting[0].id, by="Ada")
        run = await agent.resume(run.id)
    assert len(paid) == 1


async def test_a_run_that_only_has_the_name_is_not_taken_for_that_of_an_agent() -> None:
    post, store = Post(), MemoryJournal()
    await Agent(turns("I am somebody else's"), journal=store).run("Something else", run_id="r.1.0")
    await desk(clerk(post), store).run(TASK, run_id="r")
    (ended,) = [one for one in await events_of(store, "r") if one.type == "CallEnded"]
    assert "somebody else" not in ended.result.content


def test_an_agent_in_a_wrapper_is_refused() -> None:
    with pytest.raises(UsageError, match="clerk is an agent in a wrapper"):
        Agent(turns("done"), tools=[WrappedTool(clerk(Post()).as_tool("clerk", ""))])


async def test_a_turn_after_a_hand_off_is_a_turn() -> None:
    post, store = Post(), MemoryJournal()
    off = clerk(post).as_tool("clerk", "Does the mail.", hand_off=True)
    agent = Agent(turns(ASK, "what you said"), tools=[off], journal=store)
    chat = agent.chat("c")
    first = await chat.send(TASK)
    second = await chat.send("And now?")
    assert (first.answer, second.answer) == ("I have sent it.", "what you said")


async def test_the_run_of_an_agent_goes_on_with_the_run_that_has_asked_it() -> None:
    post, store = Post(), MemoryJournal()
    agent = desk(asking(post), store)
    await agent.run(TASK, run_id="r")
    await agent.approve("r.1.0", "1.0", by="Ada")
    with pytest.raises(UsageError, match="resume"):
        await agent.resume("r.1.0")


def payer(paid: list[str], name: str, approval: Approval | None = None) -> AgentTool:
    said, pay = calls(("pay", {"recipient": name, "amount": 80})), paying(paid, approval=approval)
    return Agent(turns(said, "sent"), tools=[pay]).as_tool(name.partition(" ")[0].lower(), "")


BOTH = "Pay 80 to Ann Lee and pay 80 to Bob Ray, at most 100 in all."


async def test_steps_beside_an_agent_count_for_the_same_limit() -> None:
    paid: list[str] = []
    steps = plan(
        step("one", "ann", task="Pay 80 to Ann Lee"),
        step("two", "bob", task="Pay 80 to Bob Ray"),
        thinking("told", ["one", "two"], "response"),
    )
    tools = [payer(paid, "Ann Lee"), payer(paid, "Bob Ray")]
    agent = World().agent(script(steps, "paid"), more=tools, config=replace(off(max_parallel=3), guard=GuardConfig()))
    await agent.run(BOTH, run_id="r")
    assert len(paid) == 1
    await alike(store_of(agent))


async def test_what_a_plan_has_begun_while_an_agent_waited_counts_when_that_goes_on() -> None:
    paid: list[str] = []
    pay_ann = paying(paid, "pay_ann")
    steps = plan(
        step("one", "bob", task="Pay 80 to Bob Ray"),
        step("two", "pay_ann", recipient="Ann Lee", amount=80),
        thinking("told", ["one", "two"], "response"),
    )
    config = replace(off(max_parallel=3), guard=GuardConfig(approvals="queue"))
    agent = World().agent(
        script(steps, "paid"),
        more=[payer(paid, "Bob Ray", "always"), pay_ann],
        config=config,
    )
    run = await agent.run(BOTH, run_id="r")
    while run.status == "paused":
        await agent.approve(run.id, run.waiting[0].id, by="Ada")
        run = await agent.resume(run.id)
    assert len(paid) == 1
    await alike(store_of(agent))


async def test_agents_that_are_steps_side_by_side_share_what_is_left() -> None:
    reader = Agent(turns("seen")).as_tool("reader", "")
    steps = plan(
        *(step(name, "reader", task=f"Look at {name}") for name in "abc"), thinking("told", ["a", "b", "c"], "response")
    )
    budget = Budget(max_tokens=3_000, reserve=0.0)
    agent = World().agent(script(steps, "done"), more=[reader], config=replace(off(max_parallel=3), budget=budget))
    run = await agent.run("Look", run_id="r")
    assert run.status == "completed"
    store = store_of(agent)
    ids = [info.run_id for info in await store.runs() if info.outer]
    limits = [
        one.config.budget.max_tokens or 0
        for i in ids
        for one in await events_of(store, i)
        if isinstance(one, RunStarted)
    ]
    assert len(limits) == 3
    assert sum(limits) <= 3_000


async def test_the_limits_of_a_plan_hold_for_the_agents_that_are_its_steps() -> None:
    reader = Agent(turns("seen")).as_tool("reader", "")
    steps = plan(step("a", "reader", task="Look"), thinking("told", ["a"], "response"))
    config = off(max_tokens=2_000, max_cost_usd=3.0)
    agent = World().agent(script(steps, "done"), more=[reader], config=config)
    run = await agent.run("Look", run_id="r")
    assert run.status == "completed"
    store = store_of(agent)
    (inner,) = [info.run_id for info in await store.runs() if info.outer]
    begun = (await events_of(store, inner))[0]
    assert isinstance(begun, RunStarted)
    assert (begun.config.budget.max_tokens or 9_999) < 2_000
    assert (begun.config.budget.max_cost_usd or 99) <= 3.0
    planning = fold(await events_of(store, "r")).planning
    assert planning is not None
    assert planning.stats.llm_calls == run.requests


async def test_what_a_foreign_journal_says_a_person_allowed_inside_is_asked_again() -> None:
    post, store = Post(), MemoryJournal()
    agent = desk(asking(post), store)
    await agent.run(TASK, run_id="r")
    await agent.approve("r", "1.0/1.0", by="Somebody")
    run = await agent.resume("r", origin="foreign")
    assert [one.id for one in run.waiting] == ["1.0"]
    await agent.approve("r", "1.0", by="Ada")
    run = await agent.resume("r")
    assert [one.id for one in run.waiting] == ["1.0/1.0"]
    assert not post.sent
    await agent.approve("r", "1.0/1.0", by="Ada")
    run = await agent.resume("r")
    assert (run.status, post.sent.total()) == ("completed", 1)
    await alike(store)


async def test_one_question_about_calls_of_several_agents_is_answered_at_once() -> None:
    post, store = Post(), MemoryJournal()
    one, two = asking(post).as_tool("one", "", effect="read"), asking(post).as_tool("two", "", effect="read")
    both = calls(("one", {"task": TASK}), ("two", {"task": TASK}))
    agent = Agent(turns(both, "done"), tools=[one, two], journal=store, guard=True)
    run = await agent.run(TASK, run_id="r")
    ids = [call.id for call in run.waiting]
    assert ids == ["1.0/1.0", "1.1/1.0"]
    for rows in run.questions:
        run = await agent.approve("r", [call.id for call in rows], by="Ada")
    assert (await agent.resume("r")).status == "completed"


async def test_death_at_any_append_under_a_guard_and_while_somebody_answers() -> None:
    """The whole of it: begin, wait, be answered, go on; whoever takes it up asks, or answers, what is still open."""

    async def driven(agent: Agent, store: JournalStore, post: Post) -> Run:
        known = await store.beginning("r", 1)
        run = await agent.resume("r") if known else await agent.run(TASK, run_id="r")
        while run.status == "paused":
            (asked,) = run.waiting
            if run.reason == "in_doubt":
                await agent.settle("r", asked.id, "done" if post.sent else "not_done", by="Ada")
            else:
                await agent.approve("r", asked.id, by="Ada")
            run = await agent.resume("r")
        return run

    def agent_on(post: Post, store: JournalStore) -> Agent:
        return desk(asking(post), store, guard=True)

    counted = CrashingStore(MemoryJournal(), 0, "before", of=["append"])
    await driven(agent_on(Post(), counted), counted, Post())
    assert counted.operations > 12
    for at in range(1, counted.operations + 1):
        post, memory = Post(), MemoryJournal()
        broken = CrashingStore(memory, at, "after" if at % 2 else "before", of=["append"])
        with pytest.raises(Crash):
            await driven(agent_on(post, broken), broken, post)
        run = await driven(agent_on(post, memory), memory, post)
        assert (run.status, run.answer, post.sent.total()) == ("completed", "done", 1), at
        await alike(memory)
