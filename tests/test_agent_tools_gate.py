"""The gate over agents that ask agents: what one may not do, no other does for it."""

from __future__ import annotations

import json

import pytest

from surefoot import Agent, MemoryJournal, UsageError, WrappedTool, tool
from surefoot.testing.models import Scripted, calls
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
            """Wait."""
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


def private_tools(post: Post) -> list[object]:
    @tool(effect="read", private=True)
    async def medical_file(name: str) -> str:
        """The medical file of somebody."""
        return "She has been treated for a rare illness of the liver since spring in the old clinic by the lake"

    return [medical_file]


SECRET = "She has been treated for a rare illness of the liver since spring"
TELL = calls(("send_mail", {"to": "ada@example.org", "body": SECRET}))
LOOK = calls(("medical_file", {"name": "Eve"}))


async def test_what_is_confidential_stays_so_when_it_is_handed_over() -> None:
    words = "Look things up and send a mail to ada@example.org about how we are."
    alone, post, store = Post(), Post(), MemoryJournal()
    run = await Agent(turns(LOOK, TELL, "done"), tools=[*alone.tools(), *private_tools(alone)], guard=True).run(words)
    assert run.status == "paused"
    asked = clerk(post, TELL, "sent").as_tool("clerk", "")
    over = calls(("clerk", {"task": f"Send a mail to ada@example.org: {SECRET}"}))
    agent = Agent(turns(LOOK, over, "done"), tools=[asked, *private_tools(post)], journal=store, guard=True)
    run = await agent.run(words, run_id="r")
    assert not post.sent
    assert run.status == "paused"


async def test_what_is_confidential_stays_so_when_an_agent_gives_it_back() -> None:
    words = "Look things up and send a mail to ada@example.org about how we are."
    post, store = Post(), MemoryJournal()
    doctor = Agent(turns(LOOK, SECRET), tools=private_tools(post)).as_tool("doctor", "")
    agent = Agent(
        turns(calls(("doctor", {"task": "How is Eve?"})), TELL, "done"),
        tools=[doctor, *post.tools()],
        journal=store,
        guard=True,
    )
    run = await agent.run(words, run_id="r")
    assert not post.sent
    assert run.status == "paused"


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
        tools=[people, *post.tools()],
        journal=store,
        guard=True,
    )
    run = await agent.run(words, run_id="r")
    assert (await store.read_recorded("r.1.0"))[0]
    assert not post.sent, run


async def test_an_agent_is_granted_no_more_than_its_declared_effect() -> None:
    paid: list[str] = []

    @tool(effect="transact")
    async def pay(recipient: str, amount: float) -> str:
        """Pay somebody."""
        paid.append(recipient)
        return "paid"

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

    @tool(effect="transact")
    async def pay(recipient: str, amount: float) -> str:
        """Pay somebody."""
        paid.append(recipient)
        return "paid"

    @tool(effect="transact", approval=approval)
    async def settle(recipient: str, amount: float) -> str:
        """Pay somebody."""
        paid.append(recipient)
        return "paid"

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
    run = await desk(clerk(post), store).run(TASK, run_id="r")
    print(run)
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
