"""One agent, many runs: nothing of one run's gate is in another, however mixed. Source: spec/guard.md, 4.11."""

import re
from collections.abc import Mapping
from typing import cast

import anyio
import orjson
import pytest
from anyio.lowlevel import checkpoint

from records import events_of, gate_of
from surefoot import Agent, LoopConfig
from surefoot.journal.codec import encode
from surefoot.journal.memory import MemoryJournal
from surefoot.run import Run
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.tools.function import tool
from surefoot.types.errors import UsageError
from surefoot.types.events import CallJudged, CallStarted, Event, ValuesEndorsed
from surefoot.types.guard import GuardConfig
from surefoot.types.messages import ModelRequest

pytestmark = pytest.mark.anyio

_TIMES = ("at", "elapsed_s", "took_s", "seconds", "micros", "today")


def account(number: int) -> str:
    return f"GB29NWBK{number:014}"


def task(number: int) -> str:
    """Every second run has the account in its words, the others in a bill; the next run's account is never theirs."""
    if number % 2:
        return f"Pay 900 to {account(number)} and 5 to all of them, run {number}."
    return f"Pay the bill in bill-{number}.txt, run {number}."


def reply(request: ModelRequest) -> Scripted:
    """Read, pay what is one's own, then pay what is the next run's. The same call ids in every run."""
    number = int(re.search(r"run (\d+)\.", str(request.messages)).group(1))  # type: ignore[union-attr]  # it is in each task
    turns = sum(message.role == "assistant" for message in request.messages)
    steps = (
        calls(("read_file", {"path": f"bill-{number}.txt"})),
        calls(("pay", {"account": account(number), "amount": 900})),
        calls(("pay", {"account": account(number + 1), "amount": 900})),
        "done",
    )
    return steps[min(turns, 3)]


class Bank:
    """One agent for all runs, with tools that let the others go first."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.store = MemoryJournal()

        @tool(effect="read")
        async def read_file(path: str) -> str:
            await checkpoint()
            number = int("".join(c for c in path if c.isdigit()))
            return f"Rent: pay 900 to {account(number)}."

        @tool(effect="transact")
        async def pay(account: str, amount: float) -> str:
            await checkpoint()
            self.paid.append(account)
            return f"paid {amount} to {account}"

        async def think(request: ModelRequest) -> Scripted:
            await checkpoint()
            return reply(request)

        config = LoopConfig(guard=GuardConfig())
        self.agent = Agent(FunctionModel(think), tools=[read_file, pay], journal=self.store, config=config)

    async def go(self, number: int) -> Run:
        """The whole run: a person says yes to what is its own, and no to what is another's."""
        run = await self.agent.run(task(number), run_id=f"run-{number}")
        while run.status == "paused":
            call = run.waiting[0]
            is_own = call.arguments["account"] == account(number)
            await (self.agent.approve if is_own else self.agent.refuse)(run.id, call.id, by="Ada")
            run = await self.agent.resume(run.id)
        return run

    async def events(self, number: int) -> list[Event]:
        return await events_of(self.store, f"run-{number}")


def timeless(value: object) -> object:
    """An event without what a clock says."""
    if isinstance(value, dict):
        entries = cast("Mapping[str, object]", value)
        return {key: timeless(one) for key, one in entries.items() if key not in _TIMES}
    return [timeless(one) for one in cast("list[object]", value)] if isinstance(value, list) else value


@pytest.mark.slow
async def test_mixed_runs_leave_the_journals_that_they_leave_alone() -> None:
    mixed = Bank()
    async with anyio.create_task_group() as group:
        for number in range(24):
            group.start_soon(mixed.go, number)
    for number in range(24):
        alone = Bank()
        await alone.go(number)
        ours, theirs = [
            [timeless(orjson.loads(encode(event)[0])) for event in await bank.events(number)] for bank in (mixed, alone)
        ]
        assert ours == theirs
        gate = gate_of(await mixed.events(number))
        known = gate.known
        told = repr((known.words, known.sources, known.fields, known.endorsed, known.doubled, gate.shown, gate.masks))
        assert set(re.findall(r"GB29NWBK\d{14}", told.upper())) == {account(number)}


async def test_a_yes_in_one_run_does_nothing_in_another() -> None:
    bank = Bank()
    first = await bank.agent.run(task(2), run_id="run-2")
    await bank.agent.run(task(4), run_id="run-4")
    await bank.agent.approve(first.id, first.waiting[0].id, by="Ada")
    assert (await bank.agent.resume("run-4")).status == "paused"
    assert bank.paid == []
    events = await bank.events(4)
    assert not [e for e in events if isinstance(e, ValuesEndorsed) or (isinstance(e, CallJudged) and e.by)]
    assert [e.call_id for e in events if isinstance(e, CallStarted)] == ["1.0"]
    for run_id, call_id in (("run-4", "9.0"), (first.id, first.waiting[0].id)):  # the latter has its answer
        with pytest.raises(UsageError):
            await bank.agent.approve(run_id, call_id, by="Ada")
