"""What `show` has of a planned run: the plan as it is or was, for people, for machines, and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from surefoot.cli.lines import Line, visible
from surefoot.cli.plan_rows import figures, plan_view, rows_of
from surefoot.cli.plan_svg import picture
from surefoot.cli.standing import READY, as_plain
from surefoot.core.plan.dag import Planning, StepRecord
from surefoot.core.plan.execution import execution_context
from surefoot.core.plan.history import history
from surefoot.core.plan.phase import phase_of, status_of
from surefoot.core.state import State
from surefoot.run import Run
from surefoot.types.errors import UsageError
from surefoot.types.events import Event, ToolsSelected
from surefoot.types.plan_events import PlanEdited, PlanMade

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


def shown(state: State, events: Sequence[Event], width: int, standing: str = "") -> list[Line]:
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
        "steps": [_step(state, planning.steps[name]) for name in planning.order],
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


def _step(state: State, record: StepRecord) -> Mapping[str, object]:
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


def write_picture(state: State, path: Path) -> None:
    """The plan drawn, as a file. Raises `UsageError` where it cannot be written."""
    planning = planning_of(state, "--svg")
    run = Run.of(state)
    drawn = picture(rows_of(state, planning), _needs(planning), figures(state, planning, run.status))
    try:
        path.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--svg {path}: cannot be written: {error.strerror}") from error


def _needs(planning: Planning) -> dict[str, tuple[str, ...]]:
    return {name: record.step.dependencies for name, record in planning.steps.items()}
