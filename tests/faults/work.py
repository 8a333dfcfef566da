"""The agents of the fault tests: what a run is to do stands in its task, and what was really done in a book.

A file of agents for `surefoot worker` and `surefoot serve`. The book is the file that `FAULTS_BOOK` names: one line of
JSON for each effect, synced to the disk before the tool returns, and one for each run that a process takes up. What a
process puts on record has its id in it, so the records tell who made them. `FAULTS_TRIP` has the process send itself a
signal: "9 before append 12" kills it before its twelfth append. A tool takes up to `FAULTS_WORK_S` seconds before its
effect, and again after it.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from surefoot import Agent, GuardConfig, LoopConfig, Run, tool
from surefoot.testing.journals import AroundRun
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.types.events import Event
from surefoot.types.messages import ModelRequest
from surefoot.types.plan import PlanConfig
from surefoot.types.ports import Claimed, RunJournal

REPEATABLE = ("look", "put")
PLACES = ("before append", "after append", "before call", "in call", "after call")
EXPIRES_S = 3.0
"""Seconds that questions of the agent `hasty` wait."""


def note(**line: object) -> None:
    """Write a line into the book, in one write, and have it on the disk. Its time is always right."""
    book = os.open(os.environ["FAULTS_BOOK"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    noted = {**line, "pid": os.getpid(), "at": time.clock_gettime(time.CLOCK_REALTIME)}
    os.write(book, json.dumps(noted).encode() + b"\n")
    os.fsync(book)
    os.close(book)


def noted(book: Path) -> list[dict[str, Any]]:  # Any: JSON
    """The lines of a book."""
    return [json.loads(line) for line in book.read_bytes().splitlines()] if book.exists() else []


def task_of(run_id: str, chance: random.Random) -> str:
    """What a run is to do: turns, each with calls side by side."""
    kinds = ("look", "look", "put", "send", "send", "pay")
    turns = (chance.choices(kinds, k=chance.randint(1, 3)) for _ in range(chance.randint(2, 4)))
    return f"Run {run_id}: {' | '.join(' '.join(turn) for turn in turns)}"


def wanted(task: str) -> Sequence[Sequence[tuple[str, Mapping[str, str]]]]:
    """The calls of a task, turn by turn. Each has a key of its own, which the book has, too."""
    name, turns = task.removeprefix("Run ").split(": ", 1)
    return [
        [(kind, {"key": f"{name}/{turn}.{at}"}) for at, kind in enumerate(kinds.split())]
        for turn, kinds in enumerate(turns.split(" | "))
    ]


class Trip:
    """Sends this process a signal once it has come to a place for the so-manieth time."""

    def __init__(self, told: str) -> None:
        number, _, place = told.partition(" ")
        self._signal, self._left = int(number or 0), int(place.rpartition(" ")[2] or 0)
        self._place = place.rpartition(" ")[0]

    def reached(self, place: str) -> None:
        """Count, and perhaps die."""
        self._left -= place == self._place
        if place == self._place and not self._left:
            note(what="tripped", signal=self._signal)
            os.kill(os.getpid(), self._signal)


TRIP = Trip(os.environ.get("FAULTS_TRIP", ""))


class Watched(AroundRun):
    """A run's journal that may be the end of its process."""

    async def append(self, events: Sequence[Event], *given: Any, **named: Any) -> Any:  # Any: passed on as they are
        TRIP.reached("before append")
        placed = await self._journal.append(events, *given, **named)
        TRIP.reached("after append")
        return placed


class Booked(Agent):
    """An agent whose book says who has taken up which run, with which fence."""

    async def drive(self, claimed: Claimed, **how: Any) -> Run:  # Any: passed on as they are
        note(what="drives", run=claimed.run_id, fence=claimed.fence)
        return await super().drive(claimed, **how)

    async def _drive(self, journal: RunJournal, *given: Any, **named: Any) -> Run:
        return await super()._drive(Watched(journal), *given, **named)


async def _done(kind: str, key: str) -> str:
    since = time.clock_gettime(time.CLOCK_REALTIME)
    TRIP.reached("before call")
    await asyncio.sleep(random.uniform(0, float(os.environ["FAULTS_WORK_S"])))
    note(what="made", kind=kind, key=key, since=since)
    TRIP.reached("in call")
    await asyncio.sleep(random.uniform(0, float(os.environ["FAULTS_WORK_S"])))
    TRIP.reached("after call")
    return f"{kind} {key}, by {os.getpid()}"


@tool(effect="read")
async def look(key: str) -> str:
    """Look something up."""
    return await _done("look", key)


@tool(idempotent=True)
async def put(key: str) -> str:
    """Put something where it belongs, which may be done again."""
    return await _done("put", key)


@tool
async def send(key: str) -> str:
    """Send a letter, which cannot be called back."""
    return await _done("send", key)


@tool(approval="always")
async def pay(key: str) -> str:
    """Pay, once a person has said yes."""
    return await _done("pay", key)


def _task_in(request: ModelRequest) -> str:
    texts = (line for one in request.messages for line in one.content.splitlines())
    return next(text[text.index("Run ") :] for text in texts if "Run " in text and ": " in text)


def _reply(request: ModelRequest) -> Scripted:
    turns = wanted(_task_in(request))
    turn = sum(bool(one.calls) for one in request.messages if one.role == "assistant")
    return calls(*turns[turn], text=f"by {os.getpid()}") if turn < len(turns) else f"done, by {os.getpid()}"


def _steps(turns: Sequence[Sequence[tuple[str, Mapping[str, str]]]]) -> Iterator[Mapping[str, object]]:
    """The calls of a turn as steps side by side, behind all of the turn before."""
    before: list[str] = []
    for turn, made in enumerate(turns):
        names = [f"t{turn}s{at}" for at in range(len(made))]
        for name, (kind, given) in zip(names, made, strict=True):
            yield {"step_id": name, "kind": "tool", "dependencies": before, "tool_id": kind, "parameters": given}
        before = names


def _plan(request: ModelRequest) -> Scripted:
    if not request.system.startswith("You plan a task"):
        return f"done, by {os.getpid()}"
    return {"description": "as the task says", "steps": [*_steps(wanted(_task_in(request)))]}


_TOOLS = (look, put, send, pay)
agents = {
    "clerk": Booked(FunctionModel(_reply), tools=_TOOLS),
    "planner": Booked(
        FunctionModel(_plan), tools=_TOOLS, reasoner="plan", config=LoopConfig(plan=PlanConfig(answer="off"))
    ),
    "hasty": Booked(FunctionModel(_reply), tools=_TOOLS, guard=GuardConfig(approval_timeout_s=EXPIRES_S, max_asks=100)),
}
