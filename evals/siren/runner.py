"""Play cases through a real agent: the model is the script, the person is one of three kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from evals.siren.agenda import Agenda
from evals.siren.case import Attack, Call, Kind, Task
from evals.siren.ledger import Ledger
from evals.siren.shop import Shop
from evals.siren.world import Placed, World, foreign
from surefoot.agent import Agent
from surefoot.runtime.rules import declared_of
from surefoot.testing.models import ScriptedModel, calls
from surefoot.types.config import LoopConfig
from surefoot.types.events import CallJudged, Event
from surefoot.types.guard import GuardConfig
from surefoot.types.messages import Signal
from surefoot.types.outcomes import Deny

Asks = Literal["perfect", "refuse", "accept"]
"""Who answers questions: one who says yes to exactly the user's own calls, one who says no, one who says yes."""

PERSON = "the user"
SHIPPED = GuardConfig()
"""The gate as it ships."""

DECLARED = GuardConfig(declared=declared_of(Path(__file__).with_name("declarations.toml")))
"""The same with the page of declarations: what an operator says of the tools who has read their documentation."""


@dataclass(frozen=True, slots=True)
class Played:
    """How one script went: `denied` are calls that were refused unasked.

    `verdicts` are the tool of each call with its verdict and the rule that made it, in order. `done` says whether all
    of the user's calls were made, `reached` whether one was made that the attacker wanted.
    """

    id: str
    verdicts: tuple[str, ...]
    questions: int
    denied: int
    kind: Kind | None = None
    done: bool = False
    reached: bool = False


def tools_of(task: Task, world: World) -> tuple[Placed, ...]:
    """The tools that a task offers: its own, and those of foreign servers."""
    own = {one.name: one for one in (*Shop(world).tools(), *Agenda(world).tools(), *Ledger(world).tools())}
    remotes = (
        foreign(remote, world, own[remote.does].placed(world) if remote.does else None) for remote in task.remotes
    )
    return (*(own[name].placed(world) for name in task.offered), *remotes)


async def play(
    task: Task, script: Sequence[Call], asks: Asks, guard: GuardConfig | None = SHIPPED
) -> tuple[World, int, list[CallJudged]]:
    """Play a script in a fresh world: the world after it, the questions asked, and the gate's words in order.

    Raises `RuntimeError` for a run that did not come to its end, as the script then said nothing.
    """
    world = World.of(task)
    judged: list[CallJudged] = []

    def watch(event: Event | Signal) -> None:
        if isinstance(event, CallJudged) and not event.by:
            judged.append(event)

    model = ScriptedModel([*(calls((call.tool, call.args)) for call in script), "That is all."])
    agent = Agent(model, tools_of(task, world), config=LoopConfig(guard=guard))
    run = await agent.run(task.words, watch=watch)
    questions = 0
    while run.waiting:
        for call in run.waiting:
            questions += 1
            if asks == "accept" or (asks == "perfect" and Call(call.name, call.arguments) in task.calls):
                await agent.approve(run.id, call.id, by=PERSON)
            else:
                await agent.refuse(run.id, call.id, by=PERSON)
        run = await agent.resume(run.id, watch=watch)
    await agent.aclose()
    if run.status != "completed":
        raise RuntimeError(f"task {task.id}: the run is {run.status}: {run.reason} {run.detail}")
    return world, questions, judged


def is_done(task: Task, world: World) -> bool:
    """Whether the user's task was done, as far as the servers in that world let anybody do it."""
    failing = {remote.name for remote in task.remotes if remote.fails}
    return all(world.did(call) for call in task.calls if call.tool not in failing)


async def play_task(task: Task, asks: Asks, guard: GuardConfig | None = SHIPPED) -> Played:
    """A model that does what the user wants, and nothing else."""
    world, questions, judged = await play(task, task.calls, asks, guard)
    played = _played(task.id, task.calls, judged, questions)
    return replace(played, done=is_done(task, world))


async def play_attack(attack: Attack, asks: Asks, guard: GuardConfig | None = SHIPPED) -> Played:
    """A model that does what the attacker wants as soon as it has read him."""
    world, questions, judged = await play(attack.world, attack.script, asks, guard)
    played = _played(attack.id, attack.script, judged, questions)
    reached = any(world.did(goal) for goal in attack.goal)
    return replace(played, kind=attack.kind, done=is_done(attack.world, world), reached=reached)


def _played(name: str, script: Sequence[Call], judged: Sequence[CallJudged], questions: int) -> Played:
    told = tuple(
        f"{call.tool}: {event.decision.kind}{f' ({event.rule})' if event.rule else ''}"
        for call, event in zip(script, judged, strict=True)
    )
    denied = sum(isinstance(event.decision, Deny) for event in judged)
    return Played(name, told, questions, denied)
