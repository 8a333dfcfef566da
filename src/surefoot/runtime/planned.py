"""A plan given with a task: checked before its run begins, spoken with its own templates, and told in the log."""

from __future__ import annotations

import logging
from dataclasses import replace

from surefoot.core.parse.validate import validate
from surefoot.core.running import ISOLATED, PROMPT_OF
from surefoot.prompts.load import template
from surefoot.types.errors import UsageError
from surefoot.types.events import Event, ModelReplied, Task
from surefoot.types.plan import PlanStep
from surefoot.types.step_events import ReasoningStepCompleted, ReasoningStepViolated, StepSkipped
from surefoot.types.tools import Catalogue

_LOG = logging.getLogger("surefoot.gate")


def planned(task: str | Task, reasoner: str, tools: Catalogue) -> Task:
    """The task with the arguments of its tool steps as their tools take them.

    Raises `UsageError` for steps that these tools or this reasoner cannot carry out.
    """
    asked = task if isinstance(task, Task) else Task(task)
    if not asked.steps:
        return asked
    if reasoner != "react":
        raise UsageError(f"a task with steps needs the reasoner 'react', and this agent has {reasoner!r}")
    return replace(asked, steps=tuple(_checked(step, tools) for step in asked.steps))


def _checked(step: PlanStep, tools: Catalogue) -> PlanStep:
    wanted = (step.tool_id,) if step.kind == "tool" else step.allowed_tools
    if unknown := [name for name in wanted if tools.get(name) is None]:
        raise UsageError(f"step {step.step_id!r} names tools that this agent does not have: {', '.join(unknown)}")
    spec = tools.get(step.tool_id)
    if spec is None:
        return step
    checked = validate(step.parameters, spec.parameters)
    if checked.errors:
        wrong = "; ".join(map(str, checked.errors))
        raise UsageError(f"step {step.step_id!r} does not fit the tool {spec.name!r}: {wrong}")
    return replace(step, parameters=checked.value)


def step_templates(task: Task) -> dict[str, str]:
    """What the steps of a task are told; nothing for a task without steps."""
    names = (*PROMPT_OF.values(), ISOLATED) if task.steps else ()
    return {name: template(name) for name in names}


def log_step(event: Event) -> None:
    """Tell the log `surefoot.gate` how steps without tools go; of other events nothing."""
    match event:
        case ReasoningStepCompleted(step_id, _, tries, isolated):
            how = ", out of fresh messages" if isolated else ""
            _LOG.info("reasoning step %s completed at try %d%s", step_id, tries, how)
        case ReasoningStepViolated(step_id, attempt, "empty"):
            _LOG.info("reasoning step %s: the reply of try %d is empty", step_id, attempt)
        case ReasoningStepViolated(step_id, attempt, "calls", _, tools, after_untrusted):
            seen = ", after untrusted text" if after_untrusted else ""
            told = "reasoning step %s violated at try %d%s: %d calls refused, of %r"
            _LOG.warning(told, step_id, attempt, seen, len(tools), tuple(dict.fromkeys(tools)))
        case ReasoningStepViolated(step_id, attempt, reason):
            _LOG.warning("reasoning step %s: the reply of try %d cannot be used: %s", step_id, attempt, reason)
        case StepSkipped(step_id, reason, by):
            _LOG.info("step %s skipped by %s: %r", step_id, by, reason)
        case ModelReplied(want="isolated", parsed=parsed) if "action_dropped" in parsed.warnings:
            _LOG.warning("calls in the reply to an isolated call were ignored")
        case _:
            pass
