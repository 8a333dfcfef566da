"""What a planned run asks a model about, asked alone: which tools fit, and what to do after a failure.

The functions have the names of seed 004 and the prompts, forms and checks of the reasoner `plan` (`core/plan/`). They
drive nothing and put nothing on record: `run` are the events of a run that the journal holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from surefoot.core.loop.fold import fold
from surefoot.core.plan.choose import shortlisted
from surefoot.core.plan.fold import planning_of
from surefoot.core.plan.reflect import decided
from surefoot.core.plan.requests import PlanPrompt, prompt_for
from surefoot.core.state.plans import Escalation, Shortlist
from surefoot.core.state.state import EMPTY, Planning, State
from surefoot.core.state.turn import changed
from surefoot.models.names import resolve
from surefoot.prompts.load import template
from surefoot.runtime.offers import bound_tools, catalogue_of
from surefoot.types.config import LoopConfig
from surefoot.types.errors import ModelError, TraitRefused, UsageError
from surefoot.types.events import Event, ToolsSelected
from surefoot.types.messages import ModelMessage, ModelRequest, ModelSettings
from surefoot.types.plan import PlanConfig, ProposalKind
from surefoot.types.plan_events import ProposalMade, ProposalRefused, RunReflected, StepReflected
from surefoot.types.ports import Model, Tool
from surefoot.types.reflection import ReflectionResult, StepReflection
from surefoot.types.selection import ToolSelectionResult
from surefoot.types.task import Task

T = TypeVar("T")

_TRIES = 3


async def select_relevant_tools(
    task: str | Task,
    tools: Sequence[Tool | Callable[..., object]],
    *,
    model: str | Model,
    config: PlanConfig | None = None,
) -> ToolSelectionResult:
    """The tools that a plan for this task would use. Raises `ModelError` if no reply can be used."""
    given, loop = Task.of(task), LoopConfig(plan=config or PlanConfig())
    catalogue = catalogue_of(bound_tools(tools))
    state = changed(EMPTY, task=given, tools=catalogue, offered=catalogue, config=loop)
    planning = planning_of(given, loop)
    planning = changed(planning, shortlist=Shortlist(*shortlisted(state, planning)))
    return await _ask(state, planning, "select_initial", model, _selection)


async def select_tools_for_replanning(run: Sequence[Event], *, model: str | Model) -> ToolSelectionResult:
    """The tools for planning the rest of a run, after what has happened; with what has changed.

    Raises `UsageError` for a run without a plan, `ModelError` where no reply can be used.
    """
    state, planning = _planned(run)
    planning = changed(planning, phase="reselecting")
    planning = changed(planning, shortlist=Shortlist(*shortlisted(state, planning)))
    return await _ask(state, planning, "select_corrective", model, _selection)


async def reflect_on_single_step(run: Sequence[Event], step_id: str, *, model: str | Model) -> StepReflection:
    """Ask a model about a step that has failed, and what to do next. Raises as `select_tools_for_replanning`.

    An action that the run would refuse, such as the same call once more, is refused here, too, and asked for again.
    """
    state, planning = _planned(run)
    record = planning.steps.get(step_id)
    if record is None or not record.failures:
        failed = ", ".join(name for name, one in planning.steps.items() if one.failures) or "none"
        raise UsageError(f"step {step_id!r} has not failed in this run; those that have: {failed}")
    return await _ask(state, planning, "step_reflection", model, _of_step, about=step_id)


async def perform_overall_reflection(run: Sequence[Event], *, model: str | Model) -> ReflectionResult:
    """Ask a model about a whole run in which something has failed. Raises as `select_tools_for_replanning`."""
    state, planning = _planned(run)
    if planning.escalation is None:
        failed = [(name, one) for name, one in planning.steps.items() if one.failures]
        if not failed:
            raise UsageError("no step of this run has failed, so there is nothing to reflect on")
        name, record = failed[-1]
        planning = changed(planning, escalation=Escalation(name, record.cause))
    return await _ask(state, planning, "overall_reflection", model, _of_run)


def _planned(run: Sequence[Event]) -> tuple[State, Planning]:
    state = fold(run)
    if state.planning is None or state.planning.plan is None:
        raise UsageError("this run has no plan; give the events of one with the reasoner 'plan'")
    return state, state.planning


def _selection(event: Event) -> ToolSelectionResult | None:
    return event.selection if isinstance(event, ToolsSelected) else None


def _of_step(event: Event) -> StepReflection | None:
    return event.reflection if isinstance(event, StepReflected) else None


def _of_run(event: Event) -> ReflectionResult | None:
    return event.reflection if isinstance(event, RunReflected) else None


async def _ask(
    state: State,
    planning: Planning,
    kind: ProposalKind,
    model: str | Model,
    wanted: Callable[[Event], T | None],
    *,
    about: str = "",
) -> T:
    """What is wanted of the model's reply, once the run would take it; why one is refused is told to the model."""
    if isinstance(model, str):
        asked = resolve(model)
        try:
            return await _ask(state, planning, kind, asked, wanted, about=about)
        finally:
            await asked.aclose()
    why, traits = "", dict(model.traits)
    for _ in range(_TRIES):
        prompt = prompt_for(state, planning, kind, about)
        message = replace(await _reply(state, prompt, model, traits), calls=(), opaque=())
        events = decided(state, planning, ProposalMade(kind, message, about))
        if found := next((one for event in events if (one := wanted(event)) is not None), None):
            return found
        refused = next((event for event in events if isinstance(event, ProposalRefused)), None)
        why = f"{refused.what}: {refused.detail}" if refused is not None else "nothing in it can be used"
        planning = changed(planning, refusal=refused)
    raise ModelError(f"no reply of {model.name} could be used in {_TRIES} tries; the last one: {why}")


async def _reply(state: State, prompt: PlanPrompt, model: Model, traits: dict[str, str]) -> ModelMessage:
    """The model's reply; a part that its endpoint refuses is added to `traits`, and left out from then on."""
    held = "schema" in model.modes and traits.get("json_schema") != "no"
    request = ModelRequest(
        state.prompts.get(prompt.template) or template(prompt.template),
        (ModelMessage("user", prompt.text),),
        "schema" if held else "text",
        schema=prompt.schema if held else None,
        settings=ModelSettings(),
        traits=dict(traits),
    )
    try:
        return await model.send(request)
    except TraitRefused as refused:
        if traits.get(refused.trait) == refused.value:
            raise
        traits[refused.trait] = refused.value
        return await _reply(state, prompt, model, traits)
