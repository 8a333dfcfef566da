"""A plan given with a task: checked before its run begins, spoken with its own templates, and told in the log."""

from __future__ import annotations

from dataclasses import replace

from surefoot.core.parse.validate import validate
from surefoot.core.plan.accept import plan_given as decide
from surefoot.core.plan.child import WORDS
from surefoot.core.plan.fold import planning_of
from surefoot.core.plan.history import fault_words
from surefoot.core.state.state import EMPTY, Planning
from surefoot.core.state.turn import changed
from surefoot.core.state.window import READ_RESULT
from surefoot.core.text import json_text
from surefoot.core.view.step import ISOLATED, PROMPT_OF
from surefoot.prompts.load import template
from surefoot.types.config import LoopConfig
from surefoot.types.errors import UsageError
from surefoot.types.events import Event, ToolsSelected
from surefoot.types.messages import ModelMessage
from surefoot.types.plan import PlanConfig, PlanStep
from surefoot.types.plan_events import ProposalMade, ProposalRefused
from surefoot.types.selection import ToolSelectionResult
from surefoot.types.settings import non_defaults
from surefoot.types.task import Task
from surefoot.types.tools import Catalogue


def planned(asked: Task, reasoner: str, tools: Catalogue, config: LoopConfig) -> Task:
    """The task with the arguments of its tool steps as their tools take them.

    Raises `UsageError` for steps that these tools or this reasoner cannot carry out.
    """
    for step in asked.steps:
        try:
            json_text(step.parameters)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"step {step.step_id!r}: its parameters are no JSON: {error}") from error
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
