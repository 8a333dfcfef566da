"""What the gate said and why, as lines for a person: the intent, each odd value with its source, the question.

Source: spec/guard.md, sections 4.9 and 6. Values and foreign text are shown in full on one line, nothing hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from surefoot.cli.lines import Line, Style, one_line, visible, written
from surefoot.cli.plan_table import edit_line, step_line
from surefoot.core.gate.question import question
from surefoot.core.gate.verdict import POLICIES
from surefoot.core.guard.judge import POLICIES as FIRST
from surefoot.core.guard.judge import asked_of
from surefoot.core.loop.fold import fold
from surefoot.core.plan.accept import PLAN
from surefoot.core.plan.child import owner_of
from surefoot.core.state.state import Call, State
from surefoot.core.text import json_text
from surefoot.core.text.look import in_full
from surefoot.types.errors import UsageError
from surefoot.types.events import CallJudged, Event, InStep, IntentAnchored
from surefoot.types.guard import Cue, Evidence, IntentAnchor
from surefoot.types.guard_events import (
    Asking,
    BranchCommitted,
    BranchRejected,
    GuardEvent,
    HypothesesMade,
    JudgementMade,
    PerceptionSanitised,
    SpeculationEvent,
)
from surefoot.types.outcomes import Ask
from surefoot.types.ports import Recorded

_CUES: Mapping[Cue, str] = {
    "adoption": "hands the orders over to a text",
    "delegation": "leaves values to a text",
    "relative_date": "counts dates from today",
    "set": "speaks of all of a kind",
}


def intent_line(anchor: IntentAnchor) -> str:
    """What the user's words ask for, in one line."""
    asked = ", ".join(sorted(anchor.effects_asked))
    named = ", ".join(in_full(entity.text) for entity in anchor.entities)
    cues = "".join(f" · {_CUES[cue]}" for cue in sorted(anchor.cues))
    limits = "".join(f" · {c.constraint_type}: {in_full(c.description)}" for c in anchor.constraints.constraints)
    return f"intent: {asked}" + (f" · named: {named}" if named else "") + cues + limits


def stage_lines(event: IntentAnchored | GuardEvent) -> list[str]:
    """What a stage of the guard found, and why it failed; of an anchor what a model has added to the rules."""
    lines: list[str] = []
    match event:
        case IntentAnchored(anchor, dropped=dropped, asking=Asking()):
            steps = ", ".join(in_full(step.step_type) for step in anchor.sketch.steps) if anchor.sketch else "none"
            lines.append(f"steps: {steps}" + (f" · not in the words, so dropped: {dropped}" if dropped else ""))
        case IntentAnchored():
            pass
        case PerceptionSanitised(call_id, stripped, masks, ignored):
            told = [f"{stripped} invisible characters"] if stripped else []
            told += [f"«{in_full(mask)}»" for mask in masks]
            told += [f"{ignored} passages that it does not contain were ignored"] if ignored else []
            if told:
                lines.append(f"not shown of the result of call {call_id}: {', '.join(told)}")
        case JudgementMade(call_id, verdict=verdict, reason=reason):
            if verdict:
                lines.append(f"the judge on call {call_id}: {verdict}" + (f", «{in_full(reason)}»" if reason else ""))
        case _:
            assert_never(event)
    return lines + _failure(event.asking)


def tree_lines(event: SpeculationEvent) -> list[str]:
    """The ways to go on that were named, which are out and why, and which one is taken."""
    match event:
        case HypothesesMade(tree, dropped, asking):
            lines: list[str] = []
            if tree.branches or dropped:
                told = f" · dropped: {dropped}" if dropped else ""
                lines.append(f"ways to go on, tree {tree.tree_id}: {len(tree.branches)}{told}")
            for branch in tree.branches:
                calls = " | ".join(in_full(json_text(one)) for one in branch.argument_sets if one)
                memory = ", from memory" if branch.source == "trajectory_memory" else ""
                signs = f"risk {branch.risk_level}, necessity {branch.necessity_score:g}{memory}"
                why = f" «{in_full(branch.rationale)}»" if branch.rationale else ""
                lines.append(f"  {branch.branch_id} {in_full(branch.tool_name)} {calls}  {signs}{why}")
            return lines + _failure(asking)
        case BranchRejected(_, branch_id, rule, reason):
            return [f"{in_full(branch_id)} is out [{rule}]: {in_full(reason)}"]
        case BranchCommitted(decision, asking, direct):
            how = "made without asking the model" if direct else "recommended"
            taken = decision.selected_branch_id
            what = f"{in_full(taken)} is taken and {how}" if taken else "none is taken"
            return [f"{what}, by {decision.by}: {in_full(decision.reason)}", *_failure(asking)]
        case _:
            assert_never(event)


def _failure(asking: Asking | None) -> list[str]:
    return [f"! the guard's model failed: {in_full(asking.failure)}"] if asking is not None and asking.failure else []


def evidence_lines(evidence: Sequence[Evidence], *, kinds: bool = False) -> list[str]:
    """Each value that matters, with its role, where it comes from, and the call whose result holds it.

    With `kinds` also what the value looks like.
    """
    lines: list[str] = []
    for one in evidence:
        where = f", from call {one.source_id}" if one.source_id not in ("", "user", "config") else ""
        form = f" ({one.form})" if one.form else ""
        note = f" · {in_full(one.note)}" if one.note else ""
        what = f"{one.role} ({one.kind})" if kinds else one.role
        lines.append(f"{one.path} {what}: {in_full(one.value)}  {one.origin}{form}{where}{note}")
    return lines


def grounds_lines(event: CallJudged, *, every: bool) -> list[str]:
    """What a decision rests on: of a question or a refusal always, of an allowed call with `every`."""
    grounds = event.grounds
    lines = [f"also: {', '.join(grounds.also)}"] if grounds.also else []
    if grounds.would_be:
        lines.append(f"would be: {grounds.would_be} (the gate only observes)")
    if grounds.reason_person:
        lines.append(in_full(grounds.reason_person))
    if every or event.decision.kind != "allow" or grounds.would_be:
        lines += evidence_lines(grounds.evidence)
    return lines


def question_lines(call: Call, event: CallJudged, asked_before: int = 0, others: Sequence[Evidence] = ()) -> list[str]:
    """The question that a person answers, as the page and the API show it too; `others` are all values of the call."""
    if not isinstance(event.decision, Ask) or call.spec is None or not event.grounds.digest:
        return []
    asked = question(call.spec, event.decision.reason, event.grounds, others, asked_before=asked_before)
    lines = [f"{asked.on_yes}."]
    for odd in asked.odd:
        lines.append(f"{odd.path}: {odd.value}")
        lines.append(f"  {odd.said}; {odd.source}; {odd.why}")
    lines += [f"{path}: {value} ({origin})" for path, value, origin in asked.others]
    lines += [f"a yes also counts for {role}: {value}" for role, value in asked.also_for]
    return lines + ([f"questions asked before in this run: {asked.asked_before}"] if asked.asked_before else [])


_STYLES: dict[str, Style] = {"allow": "good", "ask": "warn", "deny": "bad"}


def why(records: Sequence[Recorded], call_id: str) -> list[Line]:
    """What all policies say of a call as the run stood when the gate judged it, and what came of it.

    Raises `UsageError` for a call that the gate has not judged.
    """
    at, event = _judged(records, call_id)
    state = _owner(records[:at], call_id)
    call = state.call(call_id)
    if call is None:
        raise UsageError(f"record {at} judges call {call_id!r}, which no record before it makes")
    lines = [Line(f"{visible(written(call))}  #{call_id} · judged by record {at}", "head")]
    for first in FIRST:
        decision = first(state, call)
        lines.append(_policy(first.__name__, decision.kind, getattr(decision, "reason", "")))
    asked = asked_of(state, call)
    if asked is None:
        lines.append(Line("the gate is off, so nothing else was asked", "dim", 2))
    else:
        for policy in POLICIES:
            words = policy(asked)
            lines += [] if words else [_policy(policy.__name__, "allow", "")]
            for word in words:
                lines.append(_policy(policy.__name__, word.verdict, word.for_person))
                lines += _below(evidence_lines(word.evidence), "dim", 4)
        judgement = state.gate.judgements.get(call_id) if state.gate is not None else None
        lines += _below(stage_lines(judgement)) if judgement is not None else []
        lines += [Line("values:", "head"), *_below(evidence_lines(asked.values, kinds=True))]
    rule = f" [{event.rule}]" if event.rule else ""
    lines.append(Line(f"decided: {event.decision.kind}{rule}", _STYLES[event.decision.kind]))
    reason: str = getattr(event.decision, "reason", "")
    lines += _below([reason] if reason else [], "dim")
    lines += _below(question_lines(call, event) or grounds_lines(event, every=False), "dim")
    later = [one for one in map(_inner, records[at:]) if isinstance(one, CallJudged)]
    return lines + _below([f"{one.decision.kind}, by {one.by}" for one in later if one.call_id == call_id and one.by])


def question_of(records: Sequence[Recorded], call: Call) -> list[Line]:
    """The question about a call that waits for a person, as it is shown everywhere; of a limit, what waits."""
    lines = [Line(visible(written(call)), "head")]
    if call.id == PLAN:
        return plan_question(fold(record.event for record in records))
    verdicts = [(at, event) for at, r in enumerate(records) if isinstance(event := _inner(r), CallJudged)]
    if not any(event.call_id == call.id for _, event in verdicts):
        return lines
    at, event = _judged(records, call.id)
    asked = asked_of(_owner(records[:at], call.id), call)
    asked_before = {(one.rule, one.decision) for place, one in verdicts if place < at and isinstance(one.decision, Ask)}
    before = len(asked_before - {(event.rule, event.decision)})
    lines.append(Line(visible(getattr(event.decision, "reason", "")), "warn"))
    return lines + _below(question_lines(call, event, before, asked.values if asked else ()))


def plan_question(state: State) -> list[Line]:
    """A plan that waits for its signature: what it was made for, its steps, and its last edit."""
    planning = state.planning
    if planning is None:
        return []
    lines = [Line(f"plan v{planning.version} is to be signed before it runs", "head")]
    if planning.plan is not None and planning.plan.description:
        lines.append(Line(one_line(planning.plan.description), indent=2))
    lines += [Line(one_line(edit_line(edit)), "warn", 2) for edit in planning.edits[-1:]]
    for name in planning.live:
        record = planning.steps[name]
        told = step_line(record.step) + (f"  {record.status}" if planning.edits else "")
        lines.append(Line(visible(" ".join(told.splitlines())), indent=2))
    return lines


def _inner(record: Recorded) -> Event:
    """What happened, also inside a step of a plan."""
    return record.event.event if isinstance(record.event, InStep) else record.event


def _owner(records: Sequence[Recorded], call_id: str) -> State:
    """Whose call that is: the run, or a running step of its plan."""
    return owner_of(fold(record.event for record in records), call_id).state


def _judged(records: Sequence[Recorded], call_id: str) -> tuple[int, CallJudged]:
    for at, event in enumerate(map(_inner, records)):
        if isinstance(event, CallJudged) and event.call_id == call_id and not event.by:
            return at, event
    raise UsageError(f"no verdict on a call {call_id!r} in this run; `surefoot show RUN` lists its calls")


def _below(told: Iterable[str], style: Style = "", indent: int = 2) -> list[Line]:
    return [Line(visible(one), style, indent) for one in told]


def _policy(name: str, verdict: str, said: str) -> Line:
    told = f": {visible(' '.join(said.split()))}" if said else ""
    return Line(f"{name}  {verdict}{told}", _STYLES[verdict] if verdict != "allow" else "", 2)
