"""A plan before a person at a terminal: it is shown, and their word about it is taken, while nobody drives the run."""

from __future__ import annotations

import getpass
import sys
from typing import TextIO

from surefoot.agent import Agent
from surefoot.cli.driving import Work
from surefoot.cli.live import put, stderr
from surefoot.cli.why import plan_question
from surefoot.core.plan.accept import PLAN
from surefoot.core.state.state import State
from surefoot.run import Run
from surefoot.runtime.world import Watch
from surefoot.types.ports import JournalStore

_ASKED = "Run this plan? Type yes or no, or say what you want instead: "
_SHORT = {"yes": "yes", "y": "yes", "no": "no", "n": "no"}


def word_on_plan(agent: Agent, store: JournalStore, run: Run, state: State, by: str = "") -> Work | None:
    """Ask about a plan that waits for its signature; gives what puts the answer on record, and drives the run on.

    None where no plan waits, where nobody sits at a terminal, and when nothing is said: the run goes on waiting.
    """
    if not any(one.id == PLAN for one in run.waiting) or not sys.stdin.isatty():
        return None
    put(stderr(), plan_question(state))
    said = answer_on(sys.stdin, sys.stderr)
    if not said:
        return None
    name = by or getpass.getuser()

    async def go_on(watch: Watch, stream: bool) -> Run:
        if said == "yes":
            await agent.approve(run.id, PLAN, by=name)
        else:
            await agent.refuse(run.id, PLAN, by=name, reason="" if said == "no" else said)
        for record in (await store.read_recorded(run.id))[0][state.seen :]:
            watch(record.event)
        return await agent.resume(run.id, by=name, watch=watch, stream=stream)

    return go_on


def answer_on(stream: TextIO, out: TextIO) -> str:
    """What is said about a plan: "yes", "no", words, or "" for nothing."""
    print(_ASKED, end="", flush=True, file=out)
    said = stream.readline().strip()
    return _SHORT.get(said.casefold(), said)
