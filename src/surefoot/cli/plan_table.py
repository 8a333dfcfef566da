"""A plan as data and as lines: its steps as rows, its figures and edits, and what came of it, for people and machines.

`show` prints them, the live table redraws them, the picture has the same words. Source: spec/planning.md, 16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import assert_never

from surefoot.cli.lines import (
    READY,
    Line,
    Style,
    as_plain,
    brief_output,
    brief_parameters,
    count,
    cut,
    in_columns,
    one_line,
    visible,
)
from surefoot.core.loop.phase import phase_of, status_of
from surefoot.core.plan.child import open_calls, owner_of
from surefoot.core.plan.history import execution_context
from surefoot.core.plan.limits import turns_so_far
from surefoot.core.state.state import Planning, State
from surefoot.core.text import json_text
from surefoot.run import Run
from surefoot.types.errors import UsageError
from surefoot.types.events import Event, InStep, ToolsSelected
from surefoot.types.outcomes import Ask
from surefoot.types.plan import Add, Operation, PlanStep, StepStatus
from surefoot.types.plan_events import OfStep, PlanEdited, PlanMade, PlanSigned, StepStarted
from surefoot.types.selection import ToolSelectionResult

LOOKS: Mapping[StepStatus, tuple[str, Style, str, str]] = {
    "pending": ("·", "", "#f6f8fa", "#6e7781"),
    "running": ("▸", "call", "#ddf4ff", "#0969da"),
    "waiting": ("?", "warn", "#fff8c5", "#9a6700"),
    "succeeded": ("✓", "good", "#dafbe1", "#1a7f37"),
    "failed": ("✗", "bad", "#ffebe9", "#cf222e"),
    "skipped": ("-", "dim", "#ffffff", "#6e7781"),
    "superseded": ("×", "dim", "#ffffff", "#6e7781"),
    "cancelled": ("■", "warn", "#fff1e5", "#bc4c00"),
    "in_doubt": ("!", "warn", "#fbefff", "#8250df"),
}
"""How a step looks, by its status: its mark, the style of its line, and its inside and outline in a picture."""
LATEST = "latest"

_UNSETTLED = {"waiting": "waits for a person", "in_doubt": "nobody knows whether it took effect"}
_SIGNED = {"approved": "signed", "rejected": "rejected", "revise": "sent back"}
_LONGEST_WHAT = 40
_LONGEST_ACTOR = 24
_LEAST_WITH_NOTES = 60


@dataclass(frozen=True, slots=True)
class Row:
    """One step: `actor` is its tool or kind, `what` its parameters or goal, `notes` what is particular about it."""

    step_id: str
    name: str
    actor: str
    status: StepStatus
    what: str
    notes: tuple[str, ...]
    result: str

    @property
    def head(self) -> str:
        """Its mark and its id."""
        return f"{LOOKS[self.status][0]} {self.step_id}"


def rows_of(state: State, planning: Planning, *, is_driven: bool = False) -> list[Row]:
    """The steps in plan order, those taken out and left out too."""
    waiting = () if is_driven else Run.of(state).waiting
    answerable = {call.id: owner_of(state, call.id).step_id for call in waiting}
    return [row_of(state, planning, name, answerable, is_driven=is_driven) for name in planning.order]


def row_of(
    state: State,
    planning: Planning,
    step_id: str,
    answerable: Mapping[str, str] = MappingProxyType({}),
    *,
    is_driven: bool = False,
) -> Row:
    """One step; `answerable` are the questions that a person can answer now, with the step that each is of.

    Raises `KeyError` for a step that the run does not have.
    """
    record, status = planning.steps[step_id], status_of(state, step_id, is_driven=is_driven)
    step = record.step
    asked = (
        call.arguments
        for owner, call in open_calls(state)
        if owner.step_id == step.step_id and call.is_waiting and isinstance(call.decision, Ask)
    )
    what = brief_parameters(next(asked, step.parameters)) if step.kind == "tool" else step.instruction
    notes = (
        _added_by(planning, step.step_id),
        f"attempt {record.attempt}" if record.attempt > 1 else "",
        "must succeed" if step.must_succeed else "",
        "asks first" if step.unanchored else "",
    )
    result = ""
    if status in ("waiting", "in_doubt"):
        more = "" if status == "waiting" else " --outcome …"
        mine = (call_id for call_id, asked_in in answerable.items() if asked_in == step.step_id)
        result = "; ".join(f"surefoot approve {state.run_id} {one}{more}" for one in mine) or _UNSETTLED[status]
    elif record.result is not None and record.status in ("succeeded", "failed", "running"):
        result = brief_output(record.result.output)
        if (error := record.result.error) is not None:
            result = f"{error.cls} {error.code}" + (f": {error.message}" if error.message else "")
    actor, name = visible(step.tool_id or step.kind), one_line(step.step_name)
    return Row(visible(step.step_id), name, actor, status, one_line(what), tuple(filter(None, notes)), one_line(result))


def _added_by(planning: Planning, step_id: str) -> str:
    """By which round of reflection a step came into the plan, or with which version; "" for the first plan's."""
    for edit in planning.edits:
        if any(isinstance(one, Add) and one.step.step_id == step_id for one in edit.operations):
            at = next((at for at, one in enumerate(planning.reflections, 1) if one.strategy == edit.strategy), 0)
            return f"+ round {at}" if at else f"+ v{edit.version}"
    return ""


def settled_row(before: State, after: State, event: Event) -> Row | None:
    """The step that has come to something by an event: to its end, to a doubt, or to another try."""
    if not isinstance(event, InStep | OfStep) or before.planning is None or after.planning is None:
        return None
    was, now = before.planning.steps.get(event.step_id), after.planning.steps.get(event.step_id)
    if was is None or now is None or (was.status == now.status and was.due == now.due):
        return None
    return None if isinstance(event, StepStarted) else row_of(after, after.planning, event.step_id)


# ------------------------------------------------------------------ lines


def figures(state: State, planning: Planning, standing: str) -> str:
    """Version, round, completion, budgets, and how it stands: the first line about a plan."""
    config, stats = planning.config, planning.stats
    counted = [one for one in planning.steps.values() if one.step.kind != "response"]
    done = sum(one.status == "succeeded" for one in counted)
    left = sum(one.status not in ("succeeded", "skipped", "superseded") for one in counted)

    def of(used: int, most: int | None) -> str:
        return f"{used:,}" if most is None else f"{used:,}/{most:,}"

    parts = [
        f"plan v{planning.version}" if planning.plan is not None else "no plan yet",
        f"round {stats.rounds}",
        f"{done} of {count(done + left, 'step')}, {planning.completion_percent} %" if counted else "",
        f"replans {of(stats.replans, config.max_replans)}",
        f"calls {of(stats.tool_calls, config.max_tool_calls)}",
        f"model {of(turns_so_far(state, planning), config.max_llm_calls)}",
        "" if config.max_tokens is None else f"tokens {of(state.usage.total_tokens, config.max_tokens)}",
    ]
    if config.max_cost_usd is not None:
        parts.append(f"${state.usage.cost_usd or 0.0:.2f}/{config.max_cost_usd:.2f}")
    return " · ".join(filter(None, (*parts, standing or phase_of(state))))


def row_line(row: Row, seconds: float) -> Line:
    """One step by itself, when it has come to something."""
    parts = (row.head, row.actor, row.what, *row.notes, row.result, f"({seconds:.1f} s)")
    return Line("  ".join(filter(None, parts)), LOOKS[row.status][1])


def table(rows: Sequence[Row], width: int) -> list[Line]:
    """The rows under each other in `width` cells; what is too long is cut. Only a wide one has room for the notes."""

    def cells(row: Row) -> tuple[str, ...]:
        notes = "  ".join(row.notes) if width >= _LEAST_WITH_NOTES else ""
        return (row.head, cut(row.actor, _LONGEST_ACTOR), cut(row.what, _LONGEST_WHAT), notes, row.result)

    return aligned(rows, list(map(cells, rows)), width)


def aligned(rows: Sequence[Row], cells: Sequence[Sequence[str]], width: int) -> list[Line]:
    """These cells of each row under each other, in the style of its status."""
    return [Line(text, LOOKS[row.status][1]) for text, row in zip(in_columns(cells, width), rows, strict=True)]


def plan_view(state: State, planning: Planning, standing: str, events: Sequence[Event], width: int) -> list[Line]:
    """All that `show` has to say about a plan. `events` are those of the run so far, `standing` how it stands."""
    lines = [Line(figures(state, planning, standing), "head"), *table(rows_of(state, planning), width)]
    for event in events:
        match event:
            case PlanEdited():
                lines.append(Line(one_line(f"{edit_line(event)}{_reason(planning, event)}")))
            case PlanSigned():
                lines.append(Line(one_line(signed_line(event)), "dim"))
            case ToolsSelected(reason=mode, selection=ToolSelectionResult() as selection):
                lines.append(Line(selection_line(mode, selection), "dim"))
            case _:
                pass
    for kind in dict.fromkeys(one.kind for one in planning.refusals):
        told = ", ".join(f"{one.what} {one.detail}".rstrip() for one in planning.refusals if one.kind == kind)
        lines.append(Line(one_line(f"refused ({kind}): {told}"), "warn"))
    return lines


def _reason(planning: Planning, event: PlanEdited) -> str:
    """Why it was made: in the words of whoever proposed it, and what had failed."""
    reflected = next((one for one in planning.reflections if one.strategy == event.strategy), None)
    said: str = getattr(event.strategy, "reason", "")
    if reflected is not None:
        said = said or "; ".join(reflected.reflection.root_causes)
        said = " ".join(filter(None, reflected.cause)) + (f": {said}" if said else "")
        return f"  ({said})"
    return f"  ({said})" if said else ""


def selection_line(mode: str, selection: ToolSelectionResult) -> str:
    """Which tools were chosen, and how; of a later selection what has changed, and why."""
    changes = selection.changes_from_previous
    if changes is None:
        return one_line(f"tools ({mode}): {', '.join(selection.selected_tool_ids) or 'none'}")
    changed = [(f"{one.old} → {one.new}", one.reason) for one in changes.replaced_tools]
    changed += [(f"+ {one.tool_id}", one.reason) for one in changes.added_tools]
    changed += [(f"- {one.tool_id}", one.reason) for one in changes.removed_tools]
    told = "; ".join(what + (f" ({why})" if why else "") for what, why in changed)
    return one_line(f"tools ({mode}): {told or 'the same'}")


def signed_line(event: PlanSigned) -> str:
    """A person's word on a plan."""
    return f"plan v{event.version} {_SIGNED[event.decision]} by {event.by}" + (f": {event.note}" if event.note else "")


def step_line(step: PlanStep) -> str:
    """A step of a plan that is still to be done: what it calls with what, after which others."""
    what = brief_parameters(step.parameters) if step.kind == "tool" else step.instruction
    after = f"  after {', '.join(step.dependencies)}" if step.dependencies else ""
    must = "  must succeed" if step.must_succeed else ""
    return f"{step.step_id}  {step.tool_id or step.kind}  {what}{after}{must}"


def edit_line(event: PlanEdited) -> str:
    """An edit in one line, with the strategy that it follows."""
    before = {one.before for one in event.operations if one.op == "add"}
    told = "; ".join(part for one in event.operations for part in _operation(one, before))
    return f"v{event.base_version} → v{event.version} {event.strategy.type}: {told}"


def _operation(one: Operation, before: set[str]) -> list[str]:
    match one.op:
        case "add":
            where = f" before {one.before}" if one.before else f" after {one.after}" if one.after else ""
            return [f"+ {one.step.step_id}{where}"]
        case "supersede":
            return [f"- {one.step_id}"]
        case "skip":
            return [f"skip {one.step_id}"]
        case "set_dependencies":  # what is put in before a step, it depends on
            told = f"{one.step_id} after {', '.join(one.dependencies) or 'nothing'}"
            return [told] if one.step_id not in before else []
        case "set_parameters":
            values = ((name, v if isinstance(v, str) else json_text(v)) for name, v in one.parameters.items())
            return [f"{one.step_id}.{name} = {value}" for name, value in values]  # no quotes: references are read
        case "mark":
            return [f"{one.step_id} asks first"]
        case "reopen":
            return []
        case _:
            assert_never(one.op)


# ------------------------------------------------------------------ the plan that is asked for


def planning_of(state: State, option: str) -> Planning:
    """The planning of a run. Raises `UsageError` for a run that has none."""
    if state.planning is None:
        raise UsageError(f"run {state.run_id} has the reasoner {state.reasoner}: {option} is for runs of `plan`")
    return state.planning


def as_of(events: Sequence[Event], version: str) -> Sequence[Event]:
    """The events of a run up to the one that made a version of its plan: all of them for "latest".

    Raises `UsageError` for a version that there never was.
    """
    if version == LATEST:
        return events
    made: dict[str, int] = {}  # of a version that a person had made anew, the newest
    for at, event in enumerate(events):
        if isinstance(event, PlanMade | PlanEdited):
            made[f"v{event.plan.version if isinstance(event, PlanMade) else event.version}"] = at
    at = made.get(f"v{version.lower().removeprefix('v')}")
    if at is None:
        known = ", ".join(made)
        raise UsageError(f"unknown version {version!r} of the plan; there is {known or 'no plan yet'}")
    return events[: at + 1]


def plan_shown(state: State, events: Sequence[Event], width: int, standing: str = "") -> list[Line]:
    """The plan, as far as these events go; `standing` says how the run stands, where it is not as it was at an end."""
    run = Run.of(state, events[-1] if events else None)
    if not standing:
        reason = f" ({run.reason})" if run.reason else ""
        standing = READY if run.status == "ready" else f"{run.status.replace('_', ' ')}{reason}"
        standing += f", {phase_of(state)}" if run.status == "interrupted" else ""
    return plan_view(state, planning_of(state, "--plan"), standing, events, width)


def as_fold(state: State, events: Sequence[Event]) -> Mapping[str, object]:
    """A planned run for machines: the fold of its journal."""
    planning, run = planning_of(state, "--json"), Run.of(state, events[-1])
    context = execution_context(state, planning)
    selected = [one for one in events if isinstance(one, ToolsSelected) and one.selection is not None]
    return {
        "run": as_plain(run, state.reasoner),
        "phase": phase_of(state),
        "plan": planning.plan,
        "steps": [
            {
                "step": one.step,
                "status": status_of(state, one.step.step_id),
                "attempt": one.attempt,
                "transient_retries": one.transient,
                "result": one.result,
                "reflected": one.reflected,
            }
            for one in (planning.steps[name] for name in planning.order)
        ],
        "results": context.step_results,
        "refusals": planning.refusals,
        "edits": planning.edits,
        "reflections": planning.reflections,
        "evaluations": planning.evaluations,
        "selections": [{"mode": event.reason, "selection": event.selection} for event in selected],
        "stats": context.stats,
        "completion_percent": planning.completion_percent,
        "budget_left": context.budget_left,
    }
