"""Hundreds of runs on models whose replies are lost, late, cut or garbled: each ends by name, no effect comes twice.

Each seed is one run of its own: another call mode, other tools that fail, other accidents in 30 % of the replies. The
model is asked through `Retried` and `CircuitBreaker`, whose waiting only moves a clock of the test.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from records import events_of
from surefoot import Agent, Budget, LoopConfig, MemoryJournal, Run, SqliteJournal, ToolCallContext, tool
from surefoot.core.state.roles import ROLES, THINKER
from surefoot.core.text import json_text
from surefoot.models.wrapper import CircuitBreaker, Retried
from surefoot.testing.models import ACCIDENTS, Accident, ChaosModel, FunctionModel, Scripted, calls
from surefoot.types.events import CallEnded, CallStarted, Event
from surefoot.types.messages import CallMode, ModelMessage, ModelRequest
from surefoot.types.ports import JournalStore, Model, Tool

pytestmark = pytest.mark.anyio

SEEDS = 240
MODES: tuple[CallMode, ...] = ("native", "schema", "text")
ENDS = {"completed", "completed_partial", "stopped", "failed", "paused"}
MOST_STEPS = 12
HANGS_AFTER_S = 20.0
SLOW_S = 0.005  # after so many seconds nobody waits for a tool any more; none of these does anything that takes as long
CONFIG = LoopConfig(budget=Budget(max_steps=MOST_STEPS), tool_result_chars=200)
KNOWN = ("react", "mono", "dual")


@dataclass
class World:
    """One run's tools, what they really did, and a model that wants something of each of them."""

    seed: int
    reasoner: str
    now: float = 0.0
    effects: Counter[str] = field(default_factory=Counter[str])
    chaos: list[ChaosModel] = field(default_factory=list[ChaosModel])

    def __post_init__(self) -> None:
        self._luck = random.Random(self.seed)  # noqa: S311  # accidents of a test, not secrets

    @property
    def mode(self) -> CallMode:
        return MODES[self.seed // len(KNOWN) % len(MODES)]

    def tools(self) -> list[Tool]:
        @tool(effect="read", timeout_s=SLOW_S)
        async def look(q: str) -> str:
            """Look something up."""
            await self._accident()
            return f"about {q} " * self._luck.choice((1, 1, 60))

        @tool(idempotent=True, timeout_s=SLOW_S)
        async def put(key: str, value: int, context: ToolCallContext) -> str:
            """Set a value."""
            self.effects[f"put {context.idempotency_key}"] += 1
            await self._accident()
            return f"{key}={value}"

        @tool(timeout_s=SLOW_S)
        async def pay(to: str, context: ToolCallContext) -> str:
            """Pay somebody."""
            self.effects[f"pay {context.idempotency_key}"] += 1
            await self._accident()
            return f"paid {to}"

        return [look, put, pay]

    def models(self) -> tuple[Mapping[str, Model], list[FunctionModel]]:
        """A model for each role, and what of each is asked in the end."""
        asked = {
            role: FunctionModel(
                self._instruct if role == THINKER else self._reply, modes=(self.mode,), name=f"test:{role}"
            )
            for role in ROLES[self.reasoner]
        }
        return {role: self._around(model) for role, model in asked.items()}, list(asked.values())

    def _around(self, model: Model) -> Model:
        chaos = ChaosModel(model, seed=self.seed)
        self.chaos.append(chaos)
        retried = Retried(chaos, clock=self._clock, sleep=self._sleep, random01=self._luck.random)
        return CircuitBreaker(retried, clock=self._clock, sleep=self._sleep)

    def _clock(self) -> float:
        return self.now

    async def _sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)

    async def _accident(self) -> None:
        """Now and then a tool fails, or nobody knows whether it did."""
        luck = self._luck.random()
        if luck < 0.1:
            raise ConnectionError("the line is dead")
        if luck < 0.15:
            await asyncio.Event().wait()

    def _wanted(self) -> tuple[str, Mapping[str, object]]:
        number = self._luck.randrange(4)
        return self._luck.choice(
            (("look", {"q": str(number)}), ("put", {"key": "k", "value": number}), ("pay", {"to": str(number)}))
        )

    def _reply(self, request: ModelRequest) -> Scripted:
        """What a sound model of this reasoner would say: mostly calls, then an end."""
        if self._luck.random() < 0.02:
            return ""
        if self._luck.random() < 0.25 or "o tool can be called" in request.messages[-1].content:
            return self._end(request)
        if request.mode == "native":
            return calls(*(self._wanted() for _ in range(self._luck.choice((1, 1, 2, 3)))))
        name, arguments = self._wanted()
        if request.mode == "schema":
            return json_text({"thought": "on", "action": name, "action_input": arguments})
        if self.reasoner == "react":
            return f"Thought: on\nAction: {name}\nAction Input: {json_text(arguments)}"
        call = json_text({"name": name, "call_objective": "on", "args": arguments})
        return f"<action><function_call>{call}</function_call></action>"

    def _instruct(self, request: ModelRequest) -> Scripted:
        is_over, wanted = self._luck.random() < 0.4, f"do number {len(request.messages)}"
        if request.mode == "schema":
            over = {"known": "all of it", "next": "TASK_DONE"}
            return json_text(
                over if is_over else {"missing": "it", "next": "look", "instruction": wanted, "input": "1"}
            )
        return "TASK_DONE" if is_over else f"<instruction>{wanted}</instruction><input>None</input>"

    def _end(self, request: ModelRequest) -> Scripted:
        text = "It is done."
        if self.reasoner == "mono" or "eliver" in request.messages[-1].content:
            text = f"<deliverable><final_output>{text}</final_output></deliverable>\nTASK_DONE"
        if request.mode == "schema":
            return json_text({"thought": "over", "action": "Final Answer", "action_input": text})
        return f"Thought: over\nFinal Answer: {text}" if (request.mode, self.reasoner) == ("text", "react") else text


def repeated(events: list[Event]) -> list[str]:
    """The calls that were started after their end was on record."""
    ended: set[str] = set()
    again: list[str] = []
    for event in events:
        if isinstance(event, CallEnded):
            ended.add(event.call_id)
        elif isinstance(event, CallStarted) and event.call_id in ended:
            again.append(event.call_id)
    return again


async def one_run(world: World, store: JournalStore) -> Run:
    """A run, settled and taken up again once where it stood still or its model was gone."""
    models, asked = world.models()
    agent = Agent(models, tools=world.tools(), journal=store, config=CONFIG, reasoner=world.reasoner)
    async with asyncio.timeout(HANGS_AFTER_S):
        run = await agent.run("Do what has to be done.", run_id=f"{world.reasoner}-{world.seed}")
        assert sum(len(model.requests) for model in asked) <= MOST_STEPS * 3
        if run.status == "paused" or run.reason == "model_unavailable":
            for call in run.waiting:
                await agent.settle(run.id, call.id, "done", by="Ada", result="it came through")
            run = await agent.resume(run.id, by="Ada")
    assert sum(len(model.requests) for model in asked) <= MOST_STEPS * 6
    return run


@pytest.mark.slow
@pytest.mark.parametrize("reasoner", KNOWN)
async def test_chaos_ends_by_name_and_repeats_nothing(reasoner: str, tmp_path: Path) -> None:
    memory, sqlite = MemoryJournal(), SqliteJournal(tmp_path / "chaos.journal")
    ends: Counter[str] = Counter()
    accidents: Counter[Accident] = Counter()
    effects = 0
    for seed in range(KNOWN.index(reasoner), SEEDS, len(KNOWN)):
        world = World(seed, reasoner)
        store = sqlite if seed % 7 == 0 else memory
        run = await one_run(world, store)
        events = await events_of(store, run.id)
        assert run.status in ENDS, f"seed {seed} is {run.status}"
        assert repeated(events) == [], f"seed {seed} ran a finished call again"
        twice = [key for key, count in world.effects.items() if key.startswith("pay") and count > 1]
        assert twice == [], f"seed {seed} did twice what cannot be undone"
        ends[run.status] += 1
        effects += sum(world.effects.values())
        accidents.update(accident for chaos in world.chaos for accident in chaos.accidents)
    await sqlite.aclose()
    assert ends["completed"] > ends.total() / 2, ends  # the runs were worth something
    assert ends["paused"] + ends["failed"] < ends.total() / 2, ends
    assert effects > ends.total() / 2
    assert set(accidents) == set(ACCIDENTS)


async def accidents_of(seed: int, share: float = 0.3) -> tuple[list[Accident], list[str]]:
    model = ChaosModel(FunctionModel(lambda _: calls(("look", {"q": "x"}), text="some words")), seed=seed, share=share)
    replies: list[str] = []
    for _ in range(1_000):
        try:
            replies.append(repr(await model.send(ModelRequest("", ()))))
        except Exception as error:  # noqa: BLE001  # whatever it is, it is to be the same twice
            replies.append(repr(error))
    return model.accidents, replies


async def test_a_share_of_the_replies_goes_wrong_in_each_way_and_the_seed_decides_which() -> None:
    accidents, replies = await accidents_of(1)
    assert 250 < len(accidents) < 350
    assert all(50 < count < 100 for count in Counter(accidents).values())
    assert set(accidents) == set(ACCIDENTS)
    assert await accidents_of(1) == (accidents, replies)
    assert (await accidents_of(2))[0] != accidents
    assert (await accidents_of(1, share=0.0))[0] == []


async def test_a_cut_reply_says_so_and_a_garbled_one_holds_no_call() -> None:
    whole = calls(("look", {"q": "x"}), text="some words")
    model = ChaosModel(FunctionModel(lambda _: whole), share=1.0)
    seen: dict[Accident, ModelMessage] = {}
    while not {"cut", "garble"} <= set(seen):
        try:
            message = await model.send(ModelRequest("", ()))
        except Exception:  # noqa: BLE001, S112  # the other two ways
            continue
        seen[model.accidents[-1]] = message
    assert (seen["cut"].content, seen["cut"].calls[0].arguments) == ("some ", '{"q"')
    assert seen["cut"].finish_reason == "length"
    assert (sorted(seen["garble"].content), seen["garble"].calls) == (sorted("some words"), ())
