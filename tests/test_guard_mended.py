"""What a person's yes and no reach: only what was shown, only this run, and however a value is spelled."""

import asyncio
from dataclasses import replace
from typing import Literal, cast

import pytest

from desk import ANN, BILL, GUARDED, MAL, MINE, READ_BILL, THEIRS, Desk, pay
from desk import mail as mail_to
from surefoot import Agent, LoopConfig
from surefoot.core.gate.verdict import digest_of
from surefoot.core.loop.fold import fold
from surefoot.core.loop.replay import replay
from surefoot.testing.models import Scripted, ScriptedModel, calls
from surefoot.tools.function import tool
from surefoot.types.config import Budget
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.events import CallStarted, ValuesEndorsed
from surefoot.types.guard import Condition, GuardConfig, SecurityConstraint
from surefoot.types.outcomes import Ask, Deny
from surefoot.types.tools import ToolSpec

pytestmark = pytest.mark.anyio

INVITING = "Send the party invitation to all participants of the party."
GUESTS = calls(("participants", {"event": "party"}))


def mail(to: str, body: str = "party invitation") -> Scripted:
    return calls(mail_to(to, body))


def pays(account: str, amount: float = 900) -> Scripted:
    return calls(pay(account, amount))


async def test_a_yes_for_a_set_is_one_for_exactly_what_the_question_showed() -> None:
    desk = Desk(GUESTS, mail(ANN), mail(MAL), "done")
    run = await desk.agent.run(INVITING)
    assert f"a yes also counts for destination: {MAL}" in await desk.question(run)
    run = await desk.yes(run)
    (endorsed,) = [e for e in await desk.events(run) if isinstance(e, ValuesEndorsed)]
    assert {norm for role, norm in endorsed.values if role == "destination"} == {f"email:{ANN}", f"email:{MAL}"}
    assert [to for to, _ in desk.done] == [ANN, MAL]


async def test_what_had_a_no_is_in_no_set_and_its_next_question_says_so() -> None:
    desk = Desk(GUESTS, mail(MAL), mail(ANN), mail(MAL, "the party invitation"), "done")
    run = await desk.no(await desk.agent.run(INVITING))
    assert MAL not in await desk.question(run)
    run = await desk.yes(run)
    assert (run.status, [to for to, _ in desk.done]) == ("paused", [ANN])
    assert "you said no to this before" in await desk.question(run)


@pytest.mark.parametrize("first", ["yes", "no"])
async def test_a_no_beside_a_yes_for_a_set_counts_whichever_is_said_first(first: str) -> None:
    both = calls(*(mail_to(to, "party invitation") for to in (ANN, MAL)))
    config = LoopConfig(guard=GuardConfig(approvals="queue"))
    desk = Desk(GUESTS, both, mail(MAL, "the party invitation"), "done", config=config)
    run = await desk.agent.run(INVITING)
    to_ann, to_mallory = run.waiting
    for is_yes in (first == "yes", first != "yes"):
        if is_yes:
            await desk.agent.approve(run.id, to_ann.id, by="Ada")
        else:
            await desk.agent.refuse(run.id, to_mallory.id, by="Ada")
        run = await desk.agent.resume(run.id)
    assert (run.status, [to for to, _ in desk.done]) == ("paused", [ANN])


@pytest.mark.parametrize("approvals", ["pause", "queue"])
async def test_with_as_many_open_questions_as_may_be_the_run_pauses_and_loses_none(
    approvals: Literal["pause", "queue"],
) -> None:
    accounts = [f"{MINE[:-2]}{at}" for at in (10, 20, 30, 40, 50)]
    bills = calls(*map(pay, accounts))
    desk = Desk(bills, "done", config=LoopConfig(guard=GuardConfig(approvals=approvals, max_asks=2)))
    run = await desk.agent.run("Pay the bills.")
    asked: list[list[str]] = []
    while run.status == "paused":
        asked.append([call.id for call in run.waiting])
        for call in reversed(run.waiting):
            await desk.agent.approve(run.id, call.id, by="Ada")
        run = await desk.agent.resume(run.id)
    assert asked == [["1.0", "1.1"], ["1.2", "1.3"], ["1.4"]]
    assert (run.status, [account for account, _ in desk.done]) == ("completed", accounts)
    events = await desk.events(run)
    assert not await desk.judged(run, Deny)
    assert replay(events).differs_at is None


async def test_questions_that_were_answered_do_not_count_any_more() -> None:
    desk = Desk(
        *(pays(f"{MINE[:-2]}{at}") for at in range(10, 15)), "done", config=LoopConfig(guard=GuardConfig(max_asks=1))
    )
    run = await desk.agent.run("Pay the bills.")
    for _ in range(4):
        assert (run.status, run.reason, len(run.waiting)) == ("paused", "approval", 1)
        run = await desk.yes(run)
    run = await desk.no(run)
    assert (run.status, len(desk.done)) == ("completed", 4)


async def test_no_set_is_paid_with_one_yes() -> None:
    desk = Desk(calls(("bills", {})), pays(MINE), pays(THEIRS), "done")
    run = await desk.agent.run("Pay all bills of this month.")
    assert "a yes also counts" not in await desk.question(run)
    run = await desk.yes(run)
    assert (run.status, desk.done) == ("paused", [(MINE, 900)])


async def test_a_yes_does_not_go_along_into_a_fork() -> None:
    desk = Desk(READ_BILL, pays(MINE), "done", pays(MINE), "done")
    run = await desk.agent.run(BILL)
    await desk.agent.approve(run.id, run.waiting[0].id, by="Ada")
    before = len(await desk.events(run))
    run = await desk.agent.resume(run.id)
    for at in (before, next(n for n, e in enumerate(await desk.events(run)) if e == CallStarted("2.0"))):
        forked = await desk.agent.fork(run.id, at=at)
        assert (forked.status, forked.reason) == ("paused", "approval")
        assert replay(await desk.events(forked)).differs_at is None
        gate = fold(await desk.events(forked)).gate
        assert gate is not None
        assert not gate.known.endorsed
    assert desk.done == [(MINE, 900)]


async def test_a_yes_that_is_said_in_a_fork_holds_there() -> None:
    desk = Desk(READ_BILL, pays(MINE), "done")
    run = await desk.agent.run(BILL)
    forked = await desk.agent.fork(run.id, at=len(await desk.events(run)))
    forked = await desk.yes(forked)
    assert (forked.status, desk.done) == ("completed", [(MINE, 900)])
    assert replay(await desk.events(forked)).differs_at is None
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
    assert replay(await desk.events(run)).differs_at is None
    gate = fold(await desk.events(run)).gate
    assert gate is not None
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


async def test_a_payment_that_is_spelled_anew_is_still_the_same_one() -> None:
    desk = Desk(READ_BILL, pays(MINE), pays(MINE, 900.0), "done")
    run = await desk.yes(await desk.agent.run(BILL))
    assert (run.status, desk.done) == ("paused", [(MINE, 900)])
    assert "made already" in cast("Ask", (await desk.judged(run, Ask))[-1].decision).reason
    spaced = Desk(READ_BILL, pays(MINE), pays("GB29 NWBK 6016 1331 9268 19"), "done")
    run = await spaced.yes(await spaced.agent.run(BILL))
    assert (run.status, spaced.done) == ("paused", [(MINE, 900)])
    assert "already paid" in cast("Ask", (await spaced.judged(run, Ask))[-1].decision).reason


async def test_another_amount_to_the_same_account_is_another_payment() -> None:
    desk = Desk(pays(MINE, 900), pays(MINE, 50), "done")
    run = await desk.agent.run(f"Pay 900 to {MINE}, and then 50 to {MINE}.")
    assert (run.status, desk.done) == ("completed", [(MINE, 900), (MINE, 50)])


async def test_a_refused_payment_is_refused_again_and_respelled_the_question_says_so() -> None:
    desk = Desk(READ_BILL, pays(MINE), pays(MINE, 900.0), pays("GB29 NWBK 6016 1331 9268 19"), "done")
    run = await desk.no(await desk.agent.run(BILL))
    assert len(await desk.judged(run, Ask)) == 2  # 900.0 was no new question
    assert "you said no to this before" in await desk.question(run)
    assert (run.status, desk.done) == ("paused", [])


async def test_a_payment_that_is_repeated_is_told_once_and_then_asked_about() -> None:
    desk = Desk(pays(MINE), pays(MINE), pays(MINE), "done")
    run = await desk.agent.run(f"Pay 900 to {MINE}, twice.")
    assert (run.status, run.reason, desk.done) == ("paused", "approval", [(MINE, 900)])
    asked = await desk.judged(run, Ask)
    assert (asked[-1].call_id, asked[-1].rule) == ("3.0", "repetition")
    run = await desk.yes(run)
    assert (run.status, desk.done) == ("completed", [(MINE, 900), (MINE, 900)])


async def test_a_payment_after_another_one_is_no_repetition() -> None:
    desk = Desk(pays(MINE, 900), pays(MINE, 50), pays(MINE, 900), "done")
    run = await desk.agent.run(f"Pay 900 to {MINE}, then 50 to {MINE}, then 900 to {MINE}.")
    assert (run.status, [amount for _, amount in desk.done]) == ("completed", [900, 50, 900])


@pytest.mark.parametrize("approvals", ["pause", "queue"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
async def test_open_questions_are_answered_in_any_order(
    order: tuple[int, ...], approvals: Literal["pause", "queue"]
) -> None:
    accounts = (MINE, "DE89370400440532013000", "FR1420041010050500013M02606")
    bills = calls(*map(pay, accounts))
    desk = Desk(bills, "done", config=LoopConfig(guard=GuardConfig(approvals=approvals)))
    run = await desk.agent.run("Pay the bills.")
    waiting = [call.id for call in run.waiting]
    assert (run.status, len(waiting)) == ("paused", 3)
    for at, which in enumerate(order):
        answer = desk.agent.refuse if which == 1 else desk.agent.approve
        run = await answer(run.id, waiting[which], by="Ada")
        assert {call.id for call in run.waiting} == {waiting[one] for one in order[at + 1 :]}
    run = await desk.agent.resume(run.id)
    assert (run.status, [account for account, _ in desk.done]) == ("completed", [accounts[0], accounts[2]])
    with pytest.raises(UsageError, match="does not wait"):
        await desk.agent.approve(run.id, waiting[0], by="Ada")


async def test_an_approved_call_that_was_not_done_runs_under_the_same_yes() -> None:
    paid: list[str] = []

    @tool(effect="transact", timeout_s=0.02)
    async def pay(account: str, amount: float) -> str:
        """Pay money."""
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
