"""What a run starts with: the records before its first move, in which all stands that its fold depends on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

from surefoot.core.guard.anchor import HandOver
from surefoot.core.state.roles import ROLES
from surefoot.core.state.state import State
from surefoot.core.text import json_text
from surefoot.runtime.approvals import anchor, anchor_late, config_taken
from surefoot.runtime.ask import stage_templates
from surefoot.runtime.cast import Cast
from surefoot.runtime.offers import Offered, Offers, selected_anew
from surefoot.runtime.task_plan import bounded, plan_given, step_templates
from surefoot.types.config import LoopConfig
from surefoot.types.errors import UsageError
from surefoot.types.events import Event, JournalOrigin, RunForked, RunResumed, RunStarted, Speaker
from surefoot.types.settings import written
from surefoot.types.task import Task

Recipe = tuple[Cast, Mapping[str, str], str, str, LoopConfig]
"""Who speaks, the templates, the instructions, the reasoner and the configuration of an agent."""


_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True)
class Named:
    """What a run is called by: its agent and what that is made of, the user's labels, and the request that began it."""

    agent: str = ""
    recipe: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    request: str = ""


def checked_name(name: str) -> str:
    """The name of an agent; "" is none. Raises `UsageError` for what cannot be one."""
    if name and not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot be the name of an agent: use a-z, 0-9, - and _, at most 63 of them")
    return name


def digest_of_recipe(
    speakers: Mapping[str, Speaker], prompts: Mapping[str, str], instructions: str, reasoner: str, config: LoopConfig
) -> str:
    """What an agent is made of, without its keys, in one line: two of the same digest drive a run alike."""
    models = {role: (one.model, one.call_mode) for role, one in speakers.items()}
    told = json_text([models, dict(prompts), instructions, reasoner, written(config)], sort_keys=True)
    return sha256(told.encode(errors="replace")).hexdigest()[:16]


async def first_events(  # noqa: PLR0917  # what a run is made of
    run_id: str,
    asked: Task,
    offered: Offered,
    recipe: Recipe,
    before: State,
    at_hash: str,
    over: HandOver | None = None,
    named: Named = Named(),
) -> tuple[Event, ...]:
    """The first records of a run; `before` and `at_hash` are of the run that it follows, `over` of what asks it."""
    cast, prompts, instructions, reasoner, config = recipe
    tools, anchored, plan = offered.catalogue, tuple[Event, ...](), tuple[Event, ...]()
    if asked.steps or reasoner == "plan":
        prompts, config = {**prompts, **step_templates(asked, reasoner)}, bounded(config, reasoner)
        plan = plan_given(asked, reasoner, tools)
    if config.guard is not None:
        prompts, anchored = {**prompts, **stage_templates(config.guard)}, await anchor(asked.text, config, before, over)
    started = RunStarted(run_id, asked, cast.speakers, tools, prompts, instructions, reasoner, config)
    if named.agent or named.labels or named.request:
        names = {"agent": named.agent, "recipe": named.recipe, "labels": named.labels, "request": named.request}
        started = replace(started, **names)
    if over is not None:
        started = replace(started, outer=over.outer)
    if before.task is not None:
        started = replace(started, follows=before.run_id, follows_hash=at_hash)
    return (started, *anchored, *offered.selected, *cast.remembered(ROLES[reasoner]), *plan)


async def next_records(
    run_id: str,
    state: State,
    parts: tuple[Cast, Offers, LoopConfig],
    *,
    by: str,
    config: LoopConfig | None,
    origin: JournalOrigin = "own",
    over: HandOver | None = None,
) -> list[Event]:
    """What is put on record when somebody takes up a run, with the parts of their agent."""
    cast, offers, own = parts
    config = config_taken(state, config, own)
    first: list[Event] = []
    if state.run_id != run_id:  # it was forked, and died before it could say so
        first.append(RunForked(run_id, state.run_id, state.seen, journal=origin))
    changes = cast.changes(state)
    effects = await offers.effects_of(state.tools)
    first += (RunResumed(by, changes, config, effects, origin), *await anchor_late(state, config, over))
    first += selected_anew(state, config)
    first += cast.newly_remembered(changes, state)
    return first
