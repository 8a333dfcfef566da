"""A plan as a table, with all that `show` says about it, and as JSON for machines.

`show` prints it, the live table redraws it, the picture has the same words. Source: spec/planning.md, 16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from surefoot.cli.lines import READY, as_plain, in_columns
from surefoot.core.loop.moves import phase_of, status_of
from surefoot.core.plan.accept import waiting
from surefoot.core.plan.child import owner_of
from surefoot.core.plan.history import execution_context
from surefoot.core.state.state import Planning, State
from surefoot.run import Run
from surefoot.telling.plan import UNSETTLED, Node, edit_line, figures, nodes_of, reason_of, selection_line, signed_line
from surefoot.telling.text import Line, Style, cut, one_line, visible
from surefoot.types.errors import UsageError
from surefoot.types.events import Event, ToolsSelected
from surefoot.types.plan import StepStatus
from surefoot.types.plan_events import PlanEdited, PlanMade, PlanSigned
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

_LONGEST_WHAT = 40
_LONGEST_ACTOR = 24
_LEAST_WITH_NOTES = 60


def mark_of(node: Node) -> str:
    """The mark of a step and its id."""
    return f"{LOOKS[node.status][0]} {node.id}"


def rows_of(state: State, planning: Planning, *, is_driven: bool = False) -> list[Node]:
    """The steps in plan order; of one that waits, with the commands that answer what it asks."""
    asked = [(owner_of(state, call.id).step_id, call.id) for call in (() if is_driven else waiting(state))]
    nodes: list[Node] = []
    for node in nodes_of(state, planning, is_driven=is_driven):
        more = " --outcome …" if node.status == "in_doubt" else ""
        commands = [f"surefoot approve {state.run_id} {one}{more}" for step_id, one in asked if step_id == node.id]
        is_told = node.status in UNSETTLED and bool(commands)
        nodes.append(replace(node, result=one_line("; ".join(commands))) if is_told else node)
    return nodes


def node_line(node: Node, seconds: float) -> Line:
    """One step by itself, when it has come to something."""
    parts = (mark_of(node), node.actor, node.what, *node.notes, node.result, f"({seconds:.1f} s)")
    return Line("  ".join(filter(None, parts)), LOOKS[node.status][1])


def table(nodes: Sequence[Node], width: int) -> list[Line]:
    """The steps under each other in `width` cells; what is too long is cut. Only a wide one has room for the notes."""

    def cells(node: Node) -> tuple[str, ...]:
        notes = "  ".join(node.notes) if width >= _LEAST_WITH_NOTES else ""
        return (mark_of(node), cut(node.actor, _LONGEST_ACTOR), cut(node.what, _LONGEST_WHAT), notes, node.result)

    return aligned(nodes, list(map(cells, nodes)), width)


def aligned(nodes: Sequence[Node], cells: Sequence[Sequence[str]], width: int) -> list[Line]:
    """These cells of each step under each other, in the style of its status."""
    return [Line(text, LOOKS[node.status][1]) for text, node in zip(in_columns(cells, width), nodes, strict=True)]


def plan_shown(state: State, events: Sequence[Event], width: int, standing: str = "") -> list[Line]:
    """All that `show` has to say about a plan, as far as these events go.

    `standing` says how the run stands, where it is not as it was at an end.
    """
    run, planning = Run.of(state, events[-1] if events else None), planning_of(state, "--plan")
    if not standing:
        reason = f" ({visible(run.reason)})" if run.reason else ""
        standing = READY if run.status == "ready" else f"{run.status.replace('_', ' ')}{reason}"
        standing += f", {phase_of(state)}" if run.status == "interrupted" else ""
    lines = [Line(figures(state, planning, standing), "head"), *table(rows_of(state, planning), width)]
    for event in events:
        match event:
            case PlanEdited():
                why = f"  ({reason})" if (reason := reason_of(planning, event)) else ""
                lines.append(Line(one_line(edit_line(event) + why)))
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
