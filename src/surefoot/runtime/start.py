"""What a run starts with: the records before its first move, in which all stands that its fold depends on.

The user's intent is anchored before anything else (spec/guard.md, sections 3.2 and 4.9), and a plan that is given with
a task is checked before its run begins.
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
from surefoot.core.parse.validate import validate
from surefoot.core.plan.accept import plan_given as decide
from surefoot.core.plan.child import WORDS
from surefoot.core.plan.fold import planning_of
from surefoot.core.plan.history import fault_words
from surefoot.core.state.roles import ROLES
from surefoot.core.state.state import EMPTY, Planning, State
from surefoot.core.state.turn import changed
from surefoot.core.state.window import READ_RESULT
from surefoot.core.text import json_text
from surefoot.core.view.step import ISOLATED, PROMPT_OF
from surefoot.prompts.load import template
from surefoot.runtime.ask import stage_templates
from surefoot.runtime.cast import Cast
from surefoot.runtime.offers import Offered, Offers, selected_anew
from surefoot.types.config import LoopConfig, checked_config
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.events import (
    VERSION,
    Event,
    IntentAnchored,
    JournalOrigin,
    RunForked,
    RunResumed,
    RunStarted,
    Speaker,
    ToolsSelected,
)
from surefoot.types.inner import MADE_BEFORE
from surefoot.types.messages import ModelMessage
from surefoot.types.plan import PlanConfig, PlanStep
from surefoot.types.plan_events import ProposalMade, ProposalRefused
from surefoot.types.selection import ToolSelectionResult
from surefoot.types.settings import non_defaults
from surefoot.types.task import Task
from surefoot.types.tools import Catalogue

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
    tools = offered.catalogue
    intent: tuple[Event, ...] = ()
    if asked.steps or reasoner == "plan":
        prompts, config = {**prompts, **step_templates(asked, reasoner)}, bounded(config, reasoner)
    if config.guard is not None:
        prompts, intent = {**prompts, **stage_templates(config.guard)}, await anchor(asked.text, config, before, over)
    how = (run_id, asked, cast.speakers, tools, prompts, instructions, reasoner, config, VERSION)
    outer, names = over.outer if over is not None else None, (named.agent, named.recipe, named.labels, named.request)
    started = RunStarted(*how, before.run_id, at_hash, outer, *names)
    return (started, *intent, *offered.selected, *cast.remembered(ROLES[reasoner]), *plan_given(asked, reasoner, tools))


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
    changes = cast.changes(state, config)
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


def planned(asked: Task, reasoner: str, tools: Catalogue, config: LoopConfig) -> Task:
    """The task with the arguments of its tool steps as their tools take them.

    Raises `UsageError` for steps that these tools or this reasoner cannot carry out.
    """
    for step in asked.steps:
        try:
            json_text(step.parameters)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"step {step.step_id!r}: its parameters are not valid JSON: {error}") from error
    if reasoner == "plan":  # held to what any plan is held to; a mistake in it is the developer's to mend
        state = changed(EMPTY, task=asked, tools=tools, config=config)
        decided = decide(state, planning_of(asked, config), _draft(asked), by="developer")
        if isinstance(decided, ProposalRefused):
            faults = "; ".join(map(fault_words, decided.detail.split(";")))
            if "too_many_steps" in decided.detail:
                most = (config.plan or PlanConfig()).max_steps
                faults += f" than {len(asked.steps)}, or raise PlanConfig(max_steps={most})"
            raise UsageError(f"the plan that comes with the task cannot be run: {faults}")
        return asked
    if reasoner != "react":
        raise UsageError(f"a task with steps needs the reasoner 'react' or 'plan', and this agent has {reasoner!r}")
    steps: list[PlanStep] = []
    for step in asked.steps:
        wanted = (step.tool_id,) if step.kind == "tool" else step.allowed_tools
        if unknown := [name for name in wanted if tools.get(name) is None]:
            raise UsageError(f"step {step.step_id!r} names tools that this agent does not have: {', '.join(unknown)}")
        spec = tools.get(step.tool_id)
        if spec is None:
            steps.append(step)
            continue
        checked = validate(step.parameters, spec.parameters)
        if checked.errors:
            wrong = "; ".join(map(str, checked.errors))
            raise UsageError(f"step {step.step_id!r} does not fit the tool {spec.name!r}: {wrong}")
        steps.append(replace(step, parameters=checked.value))
    return replace(asked, steps=tuple(steps))


def bounded(config: LoopConfig, reasoner: str, before: Planning | None = None) -> LoopConfig:
    """The configuration as a run has it on record: the steps that a budget is said to allow bound a plan as a whole.

    They become the plan's own ceiling, because a record leaves out a number that equals a default. `before`: the
    planning of a run that goes on, whose settings stay where none are given.
    """
    said = config.budget.steps_said
    if reasoner != "plan" or said is None:
        return config
    plan = config.plan or (before.config if before is not None else PlanConfig())
    own = config.plan.max_llm_calls if config.plan is not None else None
    return replace(config, plan=replace(plan, max_llm_calls=said if own is None else min(said, own)))


def _draft(task: Task) -> dict[str, object]:
    return {"steps": [non_defaults(step) for step in task.steps]}


def step_templates(task: Task, reasoner: str) -> dict[str, str]:
    """What the steps of a plan are told, and whoever proposes one; nothing for a task without."""
    names = (*PROMPT_OF.values(), ISOLATED) if task.steps or reasoner == "plan" else ()
    if reasoner == "plan":
        from surefoot.core.plan.requests import PLAN_TEMPLATES  # noqa: PLC0415  # only a run that plans pays for it

        names = (*names, WORDS, *PLAN_TEMPLATES)
    return {name: template(name) for name in names}


def plan_given(task: Task, reasoner: str, tools: Catalogue) -> tuple[Event, ...]:
    """The plan that came with a task, for the reasoner that repairs it: proposed, with all tools to plan with."""
    if reasoner != "plan" or not task.steps:
        return ()
    names = tuple(name for name in tools.names if name != READ_RESULT)
    draft = json_text(_draft(task))
    selected = ToolsSelected(tools.names, "given", selection=ToolSelectionResult(names))
    return (selected, ProposalMade("decompose", ModelMessage("assistant", draft), by="developer"))
