"""A plan as data: its steps as nodes of a graph, its edges, versions and edits; and as lines, with its figures.

The terminal, the picture and the page are drawn of it. Source: spec/planning.md, 16; spec/serving.md, 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from surefoot.core.loop.moves import RunPhase, phase_of, status_of
from surefoot.core.plan.child import open_calls
from surefoot.core.plan.edits import needs_planning
from surefoot.core.plan.limits import turns_so_far
from surefoot.core.state.state import Planning, State
from surefoot.core.text import json_text
from surefoot.telling.layers import layers_of
from surefoot.telling.tale import Tale
from surefoot.telling.text import Said, Style, brief_output, brief_parameters, count, one_line, visible
from surefoot.types import plan_events as p
from surefoot.types.events import Event, InStep, ToolsShortlisted
from surefoot.types.outcomes import Ask
from surefoot.types.plan import NON_EMPTY, Add, Operation, PlanStep, StepKind, StepStatus, Supersede
from surefoot.types.selection import ToolSelectionResult

UNSETTLED: Mapping[StepStatus, str] = {
    "waiting": "waits for a person",
    "in_doubt": "nobody knows whether it took effect",
}
"""What stands in place of the result of a step that cannot go on by itself."""
Told = tuple[Style, *tuple[Said, ...]]
"""The style of a line, and what stands in it."""

_SIGNED = {"approved": "signed", "rejected": "rejected", "revise": "sent back"}


@dataclass(frozen=True, slots=True)
class Node:
    """One step, and its place in the graph: `column` is its layer, `row` its place in that.

    `title` may be "", `tools` are its tool, or those that it may use. `what` has its parameters or its goal, `notes`
    what is particular about it, `criteria` what its result has to be. `result` and `error` are brief, of the newest
    attempt; of one that waits, `result` says so.
    """

    id: str
    title: str
    kind: StepKind
    tools: tuple[str, ...]
    status: StepStatus
    attempts: int = 0
    depends_on: tuple[str, ...] = ()
    row: int = 0
    column: int = 0
    criteria: str = ""
    what: str = ""
    notes: tuple[str, ...] = ()
    result: str = ""
    error: str = ""

    @property
    def actor(self) -> str:
        return self.tools[0] if self.kind == "tool" and self.tools else self.kind


@dataclass(frozen=True, slots=True)
class Edit:
    """A repair of the plan: the steps that it put in, took out, changed; `at` is its record, `text` all in a line."""

    version: int
    strategy: str
    reason: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    at: int
    text: str


@dataclass(frozen=True, slots=True)
class PlanView:
    """The plan of a run. An edge leads from a step to one that needs it."""

    version: int
    description: str
    phase: RunPhase
    steps: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]
    edits: tuple[Edit, ...]
    versions: tuple[int, ...]


def plan_of(tale: Tale, *, is_driven: bool = False) -> PlanView | None:
    """The plan as it is now; None of a run that has none. With `is_driven`, what was started is being done."""
    planning = tale.state.planning
    if planning is None:
        return None
    nodes = nodes_of(tale.state, planning, is_driven=is_driven)
    edges = edges_of(nodes)
    places = {
        place.step_id: (row, column)
        for column, layer in enumerate(layers_of([node.id for node in nodes], edges).layers)
        for row, place in enumerate(layer)
    }
    return PlanView(
        planning.version,
        one_line(planning.plan.description) if planning.plan is not None else "",
        phase_of(tale.state),
        tuple(replace(node, row=places[node.id][0], column=places[node.id][1]) for node in nodes),
        tuple(edges),
        tuple(_edit(planning, one, dict(tale.versions)) for one in planning.edits),
        tuple(dict.fromkeys(version for version, _ in tale.versions)),
    )


def edges_of(nodes: Sequence[Node]) -> list[tuple[str, str]]:
    """The edges between these steps; what a step needs that is not among them is left out."""
    known = {node.id for node in nodes}
    return [(one, node.id) for node in nodes for one in node.depends_on if one in known]


def nodes_of(state: State, planning: Planning, *, is_driven: bool = False) -> list[Node]:
    """The steps in plan order, those taken out and left out too, without their places."""
    return [node_of(state, planning, name, is_driven=is_driven) for name in planning.order]


def node_of(state: State, planning: Planning, step_id: str, *, is_driven: bool = False) -> Node:
    """One step. Raises `KeyError` for a step that the run does not have."""
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
    result, error = UNSETTLED.get(status, ""), ""
    if not result and record.result is not None and record.status in ("succeeded", "failed", "running"):
        result = brief_output(record.result.output)
        if (fault := record.result.error) is not None:
            result = error = f"{fault.cls} {fault.code}" + (f": {fault.message}" if fault.message else "")
    wanted = step.postcondition
    criteria = "" if wanted is None else "not empty" if wanted == NON_EMPTY else json_text(wanted)
    return Node(
        visible(step.step_id),
        one_line(step.step_name),
        step.kind,
        tuple(map(visible, (step.tool_id,) if step.tool_id else step.allowed_tools)),
        status,
        record.attempt,
        step.dependencies,
        criteria=one_line("; ".join(filter(None, (step.expected_output, criteria)))),
        what=one_line(what),
        notes=tuple(filter(None, notes)),
        result=one_line(result),
        error=one_line(error),
    )


def _added_by(planning: Planning, step_id: str) -> str:
    """By which round of reflection a step came into the plan, or with which version; "" for the first plan's."""
    for edit in planning.edits:
        if any(isinstance(one, Add) and one.step.step_id == step_id for one in edit.operations):
            at = next((at for at, one in enumerate(planning.reflections, 1) if one.strategy == edit.strategy), 0)
            return f"+ round {at}" if at else f"+ v{edit.version}"
    return ""


def settled_node(before: State, after: State, event: Event) -> Node | None:
    """The step that has come to something by an event: to its end, to a doubt, or to another try."""
    if not isinstance(event, InStep | p.OfStep) or before.planning is None or after.planning is None:
        return None
    was, now = before.planning.steps.get(event.step_id), after.planning.steps.get(event.step_id)
    if was is None or now is None or (was.status == now.status and was.due == now.due):
        return None
    return None if isinstance(event, p.StepStarted) else node_of(after, after.planning, event.step_id)


def _edit(planning: Planning, event: p.PlanEdited, places: Mapping[int, int]) -> Edit:
    added = dict.fromkeys(one.step.step_id for one in event.operations if isinstance(one, Add))
    removed = dict.fromkeys(one.step_id for one in event.operations if isinstance(one, Supersede))
    changed = dict.fromkeys(one.step_id for one in event.operations if not isinstance(one, Add | Supersede))
    return Edit(
        event.version,
        event.strategy.type,
        one_line(reason_of(planning, event)),
        tuple(added),
        tuple(removed),
        tuple(changed),
        places.get(event.version, 0),
        one_line(edit_line(event)),
    )


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


def reason_of(planning: Planning, event: p.PlanEdited) -> str:
    """Why an edit was made: in the words of whoever proposed it, and what had failed; "" where nobody says."""
    reflected = next((one for one in planning.reflections if one.strategy == event.strategy), None)
    said: str = getattr(event.strategy, "reason", "")
    if reflected is not None:
        said = said or "; ".join(reflected.reflection.root_causes)
        said = " ".join(filter(None, reflected.cause)) + (f": {said}" if said else "")
    return said


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


def signed_line(event: p.PlanSigned) -> str:
    """A person's word on a plan."""
    return f"plan v{event.version} {_SIGNED[event.decision]} by {event.by}" + (f": {event.note}" if event.note else "")


def step_line(step: PlanStep) -> str:
    """A step of a plan that is still to be done: what it calls with what, after which others."""
    what = brief_parameters(step.parameters) if step.kind == "tool" else step.instruction
    after = f"  after {', '.join(step.dependencies)}" if step.dependencies else ""
    must = "  must succeed" if step.must_succeed else ""
    return f"{step.step_id}  {step.tool_id or step.kind}  {what}{after}{must}"


def edit_line(event: p.PlanEdited) -> str:
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


def plan_told(event: p.PlanEvent | ToolsShortlisted) -> list[Told]:
    """What has befallen a plan, in lines."""
    match event:
        case p.ProposalMade(by=by):
            return [] if by == "model" else [("dim", "a plan was given")]
        case ToolsShortlisted(names):
            return [("dim", f"{count(len(names), 'tool')} to choose from")]
        case p.ProposalRefused(kind, what, detail):
            return [("warn", f"! {kind} refused: {what}", (f" {detail}".rstrip(), "model"))]
        case p.PlanMade(plan):
            what = f": {plan.description}" if plan.description else ""
            head: Told = ("head", f"plan v{plan.version} of {count(len(plan.steps), 'step')}", (what, "model"))
            return [head, *(("dim", "  ", (step_line(step), "model")) for step in plan.steps)]
        case p.PlanEdited():
            return [("head", "plan ", (edit_line(event), "model"))]
        case p.PlanSigned():
            return [("head", (signed_line(event), "person"))]
        case p.StepReflected(step_id, _, decision, reflection, tool_id, parameters, instruction, why):
            cause = f": {reflection.root_cause}" if reflection is not None and reflection.root_cause else ""
            if decision == "escalate":
                return [("warn", f"~ step {step_id}: the whole run is to be reconsidered ({why})", (cause, "model"))]
            again = f"{tool_id} {brief_parameters(parameters)}" if parameters is not None else instruction
            return [("warn", f"~ step {step_id} is tried again: ", (f"{again.strip()}{cause}", "model"))]
        case p.Escalated(step_id, cause):
            told = " ".join(filter(None, cause))
            return [("warn", f"! {step_id or 'the run'} is to be reconsidered: ", (told, "tool"))]
        case p.RunReflected(decision, _, reflection, _, reason, strategy, percent):
            done = f"{reflection.completion_percent} % done, by the engine's count {percent} %"
            if decision == "stop" or strategy is None:
                return [("warn", f"~ stop: {reason} ({done})")]
            first = " after another selection" if needs_planning(strategy) else ""
            return [("warn", f"~ replan: {strategy.type}{first} ({done})")]
        case p.RunEvaluated(evaluation):
            return [] if evaluation.passed else [("warn", f"! {evaluation.name}: {evaluation.note}")]
        case _:
            assert_never(event)


def step_told(event: p.StepEvent, state: State) -> list[Told]:
    """What has happened to a step. Of one that went well its words are told, since later steps rest on them."""
    steps = state.plan.steps if state.plan is not None else ()
    if state.planning is not None:
        steps = tuple(record.step for record in state.planning.steps.values())
    writes = PlanStep(event.step_id, kind="response", instruction="write the answer")  # it is in no plan
    step = next((one for one in steps if one.step_id == event.step_id), writes)
    is_last = step in (writes, *steps[-1:])  # what it said is the answer, which is told at the end, once
    match event:
        case p.StepStarted():
            goal = f": {step.instruction}" if step.instruction else ""
            return [("head", f"step {step.step_id} ({step.kind})", (f" {step.step_name}".rstrip() + goal, "model"))]
        case p.StepEnded(error=error, output=output):
            if error is not None:
                return [("bad", f"✗ step {step.step_id} failed: {error.code}: ", (error.message, "tool"))]
            return [("", "= ", (output, "model"))] if output and not is_last else []
        case p.StepSkipped(_, reason, by):
            return [("dim", f"step {step.step_id} skipped by {by}: ", (reason, "model"))]
        case p.ReasoningStepCompleted(_, output, tries, isolated, sources, trust):
            how = f"{count(tries, 'try', 'tries')}{', with fresh messages' if isolated else ''}"
            rests = f"; rests on {', '.join(sources)} ({trust})" if sources else ""
            lines: list[Told] = [] if is_last else [("", "= ", (output, "model"))]
            return [*lines, ("dim", f"✓ step {step.step_id} completed without tools after {how}{rests}")]
        case p.ReasoningStepViolated(_, attempt, reason, _, tools, after_untrusted):
            called = f"{count(len(tools), 'call')} refused: {', '.join(dict.fromkeys(tools))}" if tools else reason
            seen = "; untrusted text was in view" if after_untrusted and tools else ""
            told = f"! step {step.step_id} has no tools: try {attempt} does not count ("
            return [("warn", told, (called, "model"), f"){seen}")]
        case _:
            assert_never(event)
