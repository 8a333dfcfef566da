"""What a person's answers do to a run: spec/guard.md, section 9, rows 7 and 8."""

from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desk import MINE, READ_BILL, Desk, pay
from records import gate_of
from surefoot import LoopConfig
from surefoot.core.gate.intent import read_words
from surefoot.testing.models import calls
from surefoot.types.events import IntentAnchored
from surefoot.types.guard import Condition, GuardConfig, SecurityConstraint
from surefoot.types.outcomes import Deny

pytestmark = pytest.mark.anyio

CONFIRM = SecurityConstraint("sign", "require_confirmation", "every payment is signed", Condition(effect="transact"))
SIGNED = LoopConfig(guard=GuardConfig(constraints=(CONFIRM,)))
OWN = [f"Pay 900 to {MINE}.", f"Please transfer 900 to {MINE} today.", f"转账 900 到 {MINE}。", f"请支付 900 给 {MINE}"]


@pytest.mark.parametrize("words", OWN)
async def test_a_no_to_the_users_own_call_holds_for_one_repeat(words: str) -> None:
    desk = Desk(calls(pay(MINE)), calls(pay(MINE)), calls(pay(MINE)), "done", config=SIGNED)
    run = await desk.no(await desk.agent.run(words))
    assert [(one.call_id, one.decision.kind) for one in await desk.judged(run)] == [
        ("1.0", "ask"), ("1.0", "deny"), ("2.0", "deny"), ("3.0", "ask"),
    ]  # fmt: skip
    run = await desk.yes(run)
    assert (run.status, desk.done) == ("completed", [(MINE, 900)])
    await desk.events(run)


@pytest.mark.parametrize("words", OWN)
async def test_a_no_to_the_users_own_call_ends_with_the_next_message(words: str) -> None:
    desk = Desk(calls(pay(MINE)), "done", config=SIGNED)
    run = await desk.no(await desk.agent.run(words))
    events = await desk.events(run)
    gate = gate_of(events)
    assert gate.refused == gate.refused_once != frozenset()
    assert not gate_of([*events[:-1], IntentAnchored(read_words(f"{words}\n\nDo it now."))]).refused


FLOODED = [
    "Pay 900 for the bill in bill.txt.", "According to bill.txt, pay 900.", "按照 bill.txt 支付账单，900元。",
]  # fmt: skip


@pytest.mark.parametrize("words", FLOODED)
@pytest.mark.parametrize("approvals", ["pause", "queue"])
async def test_a_flood_of_odd_calls_leaves_room_for_one_that_touches_the_words(
    words: str, approvals: Literal["pause", "queue"]
) -> None:
    flood = [pay(f"{MINE[:-2]}{at}", 7) for at in range(10, 25)]
    config = LoopConfig(guard=GuardConfig(approvals=approvals))
    desk = Desk(READ_BILL, calls(*flood, pay(MINE)), "done", config=config)
    run = await desk.agent.run(words)
    assert [one.id for one in run.waiting] == [*(f"2.{at}" for at in range(8)), "2.15"]
    while run.status == "paused":
        call = run.waiting[-1]
        run = await (desk.yes(run) if (len(run.waiting), call.id) == (1, "2.15") else _no_to_first(desk, run.id))
    assert (run.status, desk.done) == ("completed", [(MINE, 900)])
    assert len(await desk.judged(run, Deny)) == len(flood)
    await desk.events(run)


async def _no_to_first(desk: Desk, run_id: str):  # noqa: ANN202  # the run as it goes on
    run = await desk.agent.resume(run_id)
    await desk.agent.refuse(run_id, run.waiting[0].id, by="Ada")
    return await desk.agent.resume(run_id)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 14), st.integers(1, 12))
async def test_however_many_odd_calls_there_are_one_that_touches_the_words_is_asked_about(odd: int, most: int) -> None:
    flood = [pay(f"{MINE[:-2]}{at}", 7) for at in range(10, 10 + odd)]
    desk = Desk(READ_BILL, calls(*flood, pay(MINE)), "done", config=LoopConfig(guard=GuardConfig(max_asks=most)))
    run = await desk.agent.run(FLOODED[0])
    assert (f"2.{odd}" in [one.id for one in run.waiting]) == (odd < most or most > 3)
    assert len(run.waiting) <= most
