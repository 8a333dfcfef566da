"""What a run starts with: the records before its first move, in which all stands that its fold depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from surefoot.core.guard.anchor import HandOver
from surefoot.core.state.roles import ROLES
from surefoot.core.state.state import State
from surefoot.runtime.approvals import anchor
from surefoot.runtime.ask import stage_templates
from surefoot.runtime.cast import Cast
from surefoot.runtime.offers import Offered
from surefoot.runtime.task_plan import bounded, plan_given, step_templates
from surefoot.types.config import LoopConfig
from surefoot.types.events import Event, RunStarted
from surefoot.types.task import Task

Recipe = tuple[Cast, Mapping[str, str], str, str, LoopConfig]
"""Who speaks, the templates, the instructions, the reasoner and the configuration of an agent."""


async def first_events(  # noqa: PLR0917  # what a run is made of
    run_id: str,
    asked: Task,
    offered: Offered,
    recipe: Recipe,
    before: State,
    at_hash: str,
    over: HandOver | None = None,
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
    if over is not None:
        started = replace(started, outer=over.outer)
    if before.task is not None:
        started = replace(started, follows=before.run_id, follows_hash=at_hash)
    return (started, *anchored, *offered.selected, *cast.remembered(ROLES[reasoner]), *plan)
