"""A planned run as rows and lines, for people and machines: its steps in plan order, its figures, its edits.

`show` prints them, the live table redraws them, the picture has the same words. Source: spec/planning.md, 16.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from surefoot.cli.lines import Line, Style, brief_output, brief_parameters, count, cut, in_columns, one_line, visible
from surefoot.cli.plan_lines import edit_line, plan_lines
from surefoot.cli.standing import READY, as_plain
from surefoot.core.loop.phase import phase_of, status_of
from surefoot.core.plan.child import open_calls, owner_of
from surefoot.core.plan.history import execution_context, history
from surefoot.core.plan.limits import turns_so_far
from surefoot.core.state.plans import StepRecord
from surefoot.core.state.state import Call, Planning, State
from surefoot.run import Run
from surefoot.types.endings import Ask
from surefoot.types.errors import UsageError
from surefoot.types.events import (
    CallJudged,
    DoubtSettled,
    Event,
    InStep,
    ModelFailed,
    ModelTraitLearnt,
    StepInner,
    StepLimitReached,
    ToolsSelected,
)
from surefoot.types.plan import Add, StepExecutionResult, StepStatus
from surefoot.types.plan_events import OfStep, PlanEdited, PlanMade, PlanSigned, ReasoningStepViolated, StepStarted
from surefoot.types.selection import ToolSelectionResult

MARKS: Mapping[StepStatus, str] = {
    "pending": "·",
    "running": "▸",
    "waiting": "?",
    "succeeded": "✓",
    "failed": "✗",
    "skipped": "-",
    "superseded": "×",
    "cancelled": "■",
    "in_doubt": "!",
}
STYLES: Mapping[StepStatus, Style] = {
    "pending": "",
    "running": "call",
    "waiting": "warn",
    "succeeded": "good",
    "failed": "bad",
    "skipped": "dim",
    "superseded": "dim",
    "cancelled": "warn",
    "in_doubt": "warn",
}

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
    asked = asked_in(state, step.step_id)
    parameters = asked[0].arguments if asked and step.kind == "tool" else step.parameters
    what = brief_parameters(parameters) if step.kind == "tool" else step.instruction
    notes = [added_by(planning, step.step_id)]
    notes += [f"attempt {record.attempt}"] if record.attempt > 1 else []
    notes += ["must succeed"] if step.must_succeed else []
    notes += ["asks first"] if step.unanchored else []
    return Row(
        visible(step.step_id),
        one_line(step.step_name),
        visible(step.tool_id or step.kind),
        status,
        one_line(what),
        tuple(filter(None, notes)),
        one_line(_outcome(state, record, status, answerable)),
    )


def settled_rows(before: State, after: State, event: Event) -> list[Row]:
    """The step that has come to something by an event: to its end, to a doubt, or to another try."""
    if not isinstance(event, InStep | OfStep) or before.planning is None or after.planning is None:
        return []
    was, now = before.planning.steps.get(event.step_id), after.planning.steps.get(event.step_id)
    if was is None or now is None or (was.status == now.status and was.due == now.due):
        return []
    return [] if isinstance(event, StepStarted) else [row_of(after, after.planning, event.step_id)]


def concerns_a_person(event: StepInner) -> bool:
    """Whether what happens inside a step is not its own business: a question, a word about one, a model that fails."""
    match event:
        case CallJudged(decision=decision, by=by):
            return bool(by) or isinstance(decision, Ask)
        case ModelFailed() | DoubtSettled() | ModelTraitLearnt() | ReasoningStepViolated() | StepLimitReached():
            return True
        case _:
            return False


def added_by(planning: Planning, step_id: str) -> str:
    """By which round of reflection a step came into the plan, or with which version; "" for the first plan's."""
    for edit in planning.edits:
        if any(isinstance(one, Add) and one.step.step_id == step_id for one in edit.operations):
            at = next((at for at, one in enumerate(planning.reflections, 1) if one.strategy == edit.strategy), 0)
            return f"+ round {at}" if at else f"+ v{edit.version}"
    return ""


def asked_in(state: State, step_id: str) -> list[Call]:
    """The calls of a running step about which a person is asked."""
    return [
        call
        for owner, call in open_calls(state)
        if owner.step_id == step_id and call.is_waiting and isinstance(call.decision, Ask)
    ]


def _outcome(state: State, record: StepRecord, status: StepStatus, answerable: Mapping[str, str]) -> str:
    if status in ("waiting", "in_doubt"):
        more = "" if status == "waiting" else " --outcome …"
        mine = (asked for asked, step_id in answerable.items() if step_id == record.step.step_id)
        commands = [f"surefoot approve {state.run_id} {one}{more}" for one in mine]
        return "; ".join(commands) or _UNSETTLED[status]
    if record.result is None:
        return ""
    return result_in_short(record.result) if record.status in ("succeeded", "failed", "running") else ""


_UNSETTLED = {"waiting": "waits for a person", "in_doubt": "nobody knows whether it took effect"}


def result_in_short(result: StepExecutionResult) -> str:
    """What came of an attempt, in a few words: how much of what, or why not."""
    if result.error is not None:
        told = f": {result.error.message}" if result.error.message else ""
        return f"{result.error.cls} {result.error.code}{told}"
    return brief_output(result.output)


# ------------------------------------------------------------------ lines


def figures(state: State, planning: Planning, standing: str) -> str:
    """Version, round, completion, budgets, and how it stands: the first line about a plan."""
    config, stats = planning.config, planning.stats
    counted = [one for one in planning.steps.values() if one.step.kind != "response"]
    done = sum(one.status == "succeeded" for one in counted)
    left = sum(one.status not in ("succeeded", "skipped", "superseded") for one in counted)
    parts = [f"plan v{planning.version}"] if planning.plan is not None else ["no plan yet"]
    parts.append(f"round {stats.rounds}")
    parts += [f"{done} of {count(done + left, 'step')}, {planning.completion_percent} %"] if counted else []
    parts.append(f"replans {_of(stats.replans, config.max_replans)}")
    parts += [f"calls {_of(stats.tool_calls, config.max_tool_calls)}"]
    parts += [f"model {_of(turns_so_far(state, planning), config.max_llm_calls)}"]
    if config.max_tokens is not None:
        parts.append(f"tokens {_of(state.usage.total_tokens, config.max_tokens)}")
    if config.max_cost_usd is not None:
        parts.append(f"${state.usage.cost_usd or 0.0:.2f}/{config.max_cost_usd:.2f}")
    return " · ".join((*parts, standing or phase_of(state)))


def _of(used: int, most: int | None) -> str:
    return f"{used:,}" if most is None else f"{used:,}/{most:,}"


def row_line(row: Row, seconds: float | None = None) -> Line:
    """One step by itself, when it has come to something."""
    took = f"({seconds:.1f} s)" if seconds is not None else ""
    parts = (f"{MARKS[row.status]} {row.step_id}", row.actor, row.what, *row.notes, row.result, took)
    return Line("  ".join(filter(None, parts)), STYLES[row.status])


def table(rows: Sequence[Row], width: int) -> list[Line]:
    """The rows under each other in `width` cells; what is too long is cut. Only a wide one has room for the notes."""
    cells = [
        (
            f"{MARKS[row.status]} {row.step_id}",
            cut(row.actor, _LONGEST_ACTOR),
            cut(row.what, _LONGEST_WHAT),
            "  ".join(row.notes) if width >= _LEAST_WITH_NOTES else "",
            row.result,
        )
        for row in rows
    ]
    return [Line(text, STYLES[row.status]) for text, row in zip(in_columns(cells, width), rows, strict=True)]


def plan_view(state: State, planning: Planning, standing: str, events: Iterable[Event], width: int) -> list[Line]:
    """All that `show` has to say about a plan. `events` are those of the run so far, `standing` how it stands."""
    lines = [Line(figures(state, planning, standing), "head"), *table(rows_of(state, planning), width)]
    for event in events:
        match event:
            case PlanEdited():
                lines.append(Line(one_line(f"{edit_line(event)}{_reason(planning, event)}")))
            case PlanSigned():
                lines += [Line(one_line(text), "dim") for text, _ in plan_lines(event)]
            case ToolsSelected(reason=mode, selection=ToolSelectionResult() as selection):
                lines.append(Line(selection_line(mode, selection), "dim"))
            case _:
                pass
    return lines + _refusals(planning)


def _reason(planning: Planning, event: PlanEdited) -> str:
    """Why it was made: in the words of whoever proposed it, and what had failed."""
    reflected = next((one for one in planning.reflections if one.strategy == event.strategy), None)
    said = getattr(event.strategy, "reason", "")
    if reflected is None:
        return f"  ({said})" if said else ""
    said = said or "; ".join(reflected.reflection.root_causes)
    cause = " ".join(filter(None, reflected.cause))
    return f"  ({cause}{f': {said}' if said else ''})"


def selection_line(mode: str, selection: ToolSelectionResult) -> str:
    """Which tools were chosen, and how; of a later selection what has changed, and why."""
    changes = selection.changes_from_previous
    if changes is None:
        return one_line(f"tools ({mode}): {', '.join(selection.selected_tool_ids) or 'none'}")
    parts = [f"{one.old} → {one.new}{_why(one.reason)}" for one in changes.replaced_tools]
    parts += [f"+ {one.tool_id}{_why(one.reason)}" for one in changes.added_tools]
    parts += [f"- {one.tool_id}{_why(one.reason)}" for one in changes.removed_tools]
    return one_line(f"tools ({mode}): {'; '.join(parts) or 'the same'}")


def _why(reason: str) -> str:
    return f" ({reason})" if reason else ""


def _refusals(planning: Planning) -> list[Line]:
    """What was refused, by what was proposed."""
    kinds: dict[str, list[str]] = {}
    for one in planning.refusals:
        kinds.setdefault(one.kind, []).append(f"{one.what} {one.detail}".rstrip())
    return [Line(one_line(f"refused ({kind}): {', '.join(told)}"), "warn") for kind, told in kinds.items()]


LATEST = "latest"


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
    made = [(at, _version(event)) for at, event in enumerate(events) if isinstance(event, PlanMade | PlanEdited)]
    wanted = [at for at, number in made if version.lower() in (f"v{number}", f"{number}")]
    if not wanted:
        known = ", ".join(dict.fromkeys(f"v{number}" for _, number in made))
        raise UsageError(f"there is no version {version!r} of the plan; there is {known or 'no plan yet'}")
    return events[: wanted[-1] + 1]  # of a version that a person had made anew, the newest


def _version(event: PlanMade | PlanEdited) -> int:
    return event.plan.version if isinstance(event, PlanMade) else event.version


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
    return {
        "run": as_plain(run, state.reasoner),
        "phase": phase_of(state),
        "plan": planning.plan,
        "steps": [_step_as_plain(state, planning.steps[name]) for name in planning.order],
        "results": context.step_results,
        "refusals": planning.refusals,
        "edits": planning.edits,
        "reflections": planning.reflections,
        "evaluations": planning.evaluations,
        "selections": [
            {"mode": event.reason, "selection": event.selection}
            for event in events
            if isinstance(event, ToolsSelected) and event.selection is not None
        ],
        "stats": context.stats,
        "completion_percent": planning.completion_percent,
        "budget_left": context.budget_left,
    }


def _step_as_plain(state: State, record: StepRecord) -> Mapping[str, object]:
    name = record.step.step_id
    return {
        "step": record.step,
        "status": status_of(state, name),
        "attempt": record.attempt,
        "transient_retries": record.transient,
        "result": record.result,
        "reflected": record.reflected,
    }


def history_text(state: State) -> str:
    """The history document, as reflections get it."""
    return visible(history(state, planning_of(state, "--history")))
