"""What a person's yes and no reach: only what was shown, only this run, and however a value is spelled."""

import asyncio
from dataclasses import replace

import pytest

from desk import BILL, GUARDED, MINE, READ_BILL, THEIRS, Desk, pay
from desk import mail as mail_to
from records import gate_of
from surefoot import Agent, LoopConfig
from surefoot.core.gate.verdict import digest_of
from surefoot.core.loop.fold import fold
from surefoot.testing.models import Scripted, ScriptedModel, calls
from surefoot.tools.function import tool
from surefoot.types.config import Budget
from surefoot.types.errors import ConfigError
from surefoot.types.events import CallStarted
from surefoot.types.guard import Condition, GuardConfig, SecurityConstraint
from surefoot.types.outcomes import Deny
from surefoot.types.tools import ToolSpec

pytestmark = pytest.mark.anyio


def mail(to: str, body: str = "party invitation") -> Scripted:
    return calls(mail_to(to, body))


def pays(account: str, amount: float = 900) -> Scripted:
    return calls(pay(account, amount))


async def test_a_yes_does_not_go_along_into_a_fork() -> None:
    desk = Desk(READ_BILL, pays(MINE), "done", pays(MINE), "done")
    run = await desk.agent.run(BILL)
    await desk.agent.approve(run.id, run.waiting[0].id, by="Ada")
    before = len(await desk.events(run))
    run = await desk.agent.resume(run.id)
    for at in (before, next(n for n, e in enumerate(await desk.events(run)) if e == CallStarted("2.0"))):
        forked = await desk.agent.fork(run.id, at=at)
        assert (forked.status, forked.reason) == ("paused", "approval")
        assert not gate_of(await desk.events(forked)).known.endorsed
    assert desk.done == [(MINE, 900)]


async def test_a_yes_that_is_said_in_a_fork_holds_there() -> None:
    desk = Desk(READ_BILL, pays(MINE), "done")
    run = await desk.agent.run(BILL)
    forked = await desk.agent.fork(run.id, at=len(await desk.events(run)))
    forked = await desk.yes(forked)
    assert (forked.status, desk.done) == ("completed", [(MINE, 900)])
    await desk.events(forked)
    assert (await desk.agent.resume(run.id)).status == "paused"


@pytest.mark.parametrize("guard", [None, GuardConfig(mode="off")])
@pytest.mark.parametrize("how", ["resume", "fork"])
async def test_a_guard_that_a_run_without_one_is_given_holds_from_there(how: str, guard: GuardConfig | None) -> None:
    first = Desk(READ_BILL, config=LoopConfig(budget=Budget(max_steps=1), guard=guard))
    run = await first.agent.run(BILL)
    desk = Desk(pays(THEIRS, 5000), pays(MINE), "done", store=first.store)
    if how == "resume":
        run = await desk.agent.resume(run.id, config=GUARDED)
    else:
        run = await desk.agent.fork(run.id, at=len(await desk.events(run)) - 1, config=GUARDED)
    assert (run.status, desk.done) == ("paused", [])
    denied = await desk.judged(run, Deny)
    waiting = run.waiting[0].arguments["account"]
    assert (len(denied), waiting) in ((1, MINE), (0, THEIRS))  # refused, or asked about first
    gate = gate_of(await desk.events(run))
    assert [source.call_id for source in gate.known.sources][:1] == ["1.0"]  # what was read before is known


async def test_a_guard_that_asks_a_model_is_not_taken_late_and_an_earlier_one_stays() -> None:
    first = Desk(READ_BILL, config=LoopConfig(budget=Budget(max_steps=1)))
    run = await first.agent.run(BILL)
    with pytest.raises(ConfigError, match="begin it anew"):
        await first.agent.resume(run.id, config=LoopConfig(guard=GuardConfig(judge="self")))
    desk = Desk(READ_BILL, pays(MINE), "done")
    run = await desk.agent.run(BILL)
    forked = await desk.agent.fork(run.id, at=5, config=LoopConfig(guard=GuardConfig(mode="observe")))
    kept = fold(await desk.events(forked)).config.guard
    assert kept == GuardConfig()


PAY = ToolSpec(
    "pay",
    "Pay.",
    {
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "n": {"type": "number"},
            "how": {"type": "object"},
            "fast": {"type": "boolean", "default": False},
        },
    },
    "transact",
)


async def test_a_digest_is_the_same_for_arguments_that_mean_the_same() -> None:
    call = {"to": "Jos\u00e9", "n": 900, "how": {"x": [1]}}
    same = ({**call, "n": 900.0}, {**call, "to": "Jose\u0301"}, {**call, "fast": False}, {**call, "how": {"x": [1.0]}})
    assert {digest_of(PAY, one) for one in same} == {digest_of(PAY, call)}
    others = ({**call, "n": 900.5}, {**call, "n": "900"}, {**call, "fast": True}, {**call, "to": "Jose"})
    assert len({digest_of(PAY, one) for one in (call, *others)}) == 5
    changed = replace(PAY, description="Pay fifty times.")
    assert digest_of(changed, call) != digest_of(PAY, call)


async def test_an_approved_call_that_was_not_done_runs_under_the_same_yes() -> None:
    paid: list[str] = []

    @tool(effect="transact", timeout_s=0.02)
    async def pay(account: str, amount: float) -> str:
        paid.append(f"{amount} to {account}")
        if len(paid) == 1:
            await asyncio.Event().wait()
        return "paid"

    most = SecurityConstraint("most", "forbid", "at most 1000", Condition(effect="transact", max_amount=1_000))
    config = LoopConfig(guard=GuardConfig(constraints=(most,)))  # it moves 900, and not 1800
    agent = Agent(ScriptedModel([pays(MINE), "done"]), [pay], config=config)
    run = await agent.run("Pay the rent.")
    await agent.approve(run.id, "1.0", by="Ada")
    run = await agent.resume(run.id)
    assert (run.status, run.reason) == ("paused", "in_doubt")
    await agent.settle(run.id, "1.0", "not_done", by="Ada")
    run = await agent.resume(run.id)
    assert (run.status, len(paid)) == ("completed", 2)


@pytest.mark.parametrize("at", [1, 2, 3])
async def test_fail_open_a_fork_from_before_the_words_were_read_runs_nothing(at: int) -> None:
    wanted = pays(THEIRS, 5)
    desk = Desk(wanted, "done", wanted, "done")
    run = await desk.agent.run("What is new?")
    assert desk.done == []
    forked = await desk.agent.fork(run.id, at=at)
    assert desk.done == []
    assert not [e for e in await desk.events(forked) if isinstance(e, CallStarted)]
