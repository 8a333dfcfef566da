"""What a run starts with: the records before its first move, in which all stands that its fold depends on.

The user's intent is anchored before anything else. Source: spec/guard.md, sections 3.2 and 4.9.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256

from surefoot.core.guard.anchor import HandOver, anchored
from surefoot.core.guard.ledger import words_of
from surefoot.core.guard.resume import guard_of, stricter
from surefoot.core.state.roles import ROLES
from surefoot.core.state.state import EMPTY, State
from surefoot.core.text import json_text
from surefoot.runtime.ask import stage_templates
from surefoot.runtime.cast import Cast
from surefoot.runtime.offers import Offered, Offers, selected_anew
from surefoot.runtime.task_plan import bounded, plan_given, step_templates
from surefoot.types.config import LoopConfig, checked_config
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.events import Event, IntentAnchored, JournalOrigin, RunForked, RunResumed, RunStarted, Speaker
from surefoot.types.inner import MADE_BEFORE
from surefoot.types.settings import non_defaults
from surefoot.types.task import Task

Recipe = tuple[Cast, Mapping[str, str], str, str, LoopConfig]
"""Who speaks, the templates, the instructions, the reasoner and the configuration of an agent."""


MOST_ON_THE_LOOP = 4_096
"""Characters of the words that are read at once; longer ones are read in a thread, so that other runs go on."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True)
class Named:
    """What a run is called by: its agent and what that is made of, the user's labels, and the request that began it."""

    agent: str = ""
    recipe: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    request: str = ""

    def __post_init__(self) -> None:
        is_mapping = isinstance(self.labels, Mapping)  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
        given = (self.request, *self.labels, *self.labels.values()) if is_mapping else (None,)
        if not all(isinstance(one, str) for one in given):
            told = "labels and request are texts, such as labels={'order': '17'}"  # others could not be read back
            raise UsageError(f"{told}; these are {self.labels!r} and {self.request!r}")


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
    told = json_text([models, dict(prompts), instructions, reasoner, non_defaults(config)], sort_keys=True)
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
    tools, intent, plan = offered.catalogue, tuple[Event, ...](), tuple[Event, ...]()
    if asked.steps or reasoner == "plan":
        prompts, config = {**prompts, **step_templates(asked, reasoner)}, bounded(config, reasoner)
        plan = plan_given(asked, reasoner, tools)
    if config.guard is not None:
        prompts, intent = {**prompts, **stage_templates(config.guard)}, await anchor(asked.text, config, before, over)
    started = RunStarted(run_id, asked, cast.speakers, tools, prompts, instructions, reasoner, config)
    if named.agent or named.labels or named.request:
        names = {"agent": named.agent, "recipe": named.recipe, "labels": named.labels, "request": named.request}
        started = replace(started, **names)
    if over is not None:
        started = replace(started, outer=over.outer)
    if before.task is not None:
        started = replace(started, follows=before.run_id, follows_hash=at_hash)
    return (started, *intent, *offered.selected, *cast.remembered(ROLES[reasoner]), *plan)


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


async def anchor(
    words: str, config: LoopConfig, before: State = EMPTY, over: HandOver | None = None
) -> tuple[Event, ...]:
    """What the user's own words ask for, where the gate is on. Attachments are material and are not read.

    `before` is the run that they follow in a conversation. With `over` they are a model's, which has asked an agent.
    """
    size = len(words) + sum(len(one.task.text) for one in before.exchanges) + (len(over.outer.words) if over else 0)
    if size > MOST_ON_THE_LOOP:
        return await asyncio.to_thread(anchored, words, config, today(), before, over)
    return anchored(words, config, today(), before, over)


def today() -> str:
    """The day here, in ISO form."""
    return datetime.now().astimezone().date().isoformat()


def config_taken(state: State, config: LoopConfig | None, own: LoopConfig) -> LoopConfig | None:
    """The configuration with which a run is taken up, None where it stays; guard and output of whoever does it count.

    Raises `ConfigError` for a guard that needs a model: the templates for that are put on record when a run begins.
    """
    given = state.config if config is None else checked_config(config)
    if own.output_schema is not None and given.output_schema != own.output_schema:
        given = replace(given, output_schema=own.output_schema)
    guard = stricter(given.guard, own.guard)
    taken = guard_of(state, replace(given, guard=guard))
    if state.task is not None and not stage_templates(taken).keys() <= state.prompts.keys():
        raise ConfigError("guard", taken, "a run begun without it takes no guard that asks a model; begin it anew")
    if config is None and given is state.config and taken == state.config.guard:
        return None
    return bounded(replace(given, guard=guard), state.reasoner, state.planning)


async def anchor_late(state: State, config: LoopConfig | None, over: HandOver | None = None) -> tuple[Event, ...]:
    """The user's words, for a run that is taken up and in which they were not read before.

    It was cut off before, or had no guard and is given one with `config`. One in which they were read is told what the
    run that asks it has begun since then.
    """
    if (gate := state.gate) is not None and over is not None:
        known = tuple(one for one in gate.started if one.call_id.startswith(MADE_BEFORE))
        told = IntentAnchored(gate.known.words.anchor, gate.known.today, begun=over.begun, refused=over.refused)
        return (told,) if known != over.begun or gate.with_noes(over.refused) != gate else ()
    if gate is not None or state.task is None:
        return ()
    words = state.task.text if state.earlier or state.outer else words_of(state)
    over = over or (HandOver(state.outer) if state.outer is not None else None)
    return await anchor(words, replace(state.config, guard=guard_of(state, config)), over=over)
