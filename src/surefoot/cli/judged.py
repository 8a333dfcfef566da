"""What the gate said, as lines for a person: the intent, each odd value with its source, the question.

Source: spec/guard.md, sections 4.9 and 6. Values and foreign text are shown in full on one line, nothing hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from surefoot.core.gate.question import in_full, question
from surefoot.core.state import Call
from surefoot.core.text import json_text
from surefoot.types.decisions import Ask
from surefoot.types.events import CallJudged, IntentAnchored
from surefoot.types.guard import Evidence, HypothesisBranch, IntentAnchor
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


def intent_line(anchor: IntentAnchor) -> str:
    """What the user's words ask for, in one line."""
    asked = ", ".join(sorted(anchor.effects_asked))
    named = ", ".join(in_full(entity.text) for entity in anchor.entities)
    cues = f" · cues: {', '.join(sorted(anchor.cues))}" if anchor.cues else ""
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
            told = [f"{stripped} characters that do not show"] if stripped else []
            told += [f"«{in_full(mask)}»" for mask in masks]
            told += [f"{ignored} passages that it does not hold were ignored"] if ignored else []
            if told:
                lines.append(f"not shown of the result of call {call_id}: {', '.join(told)}")
        case JudgementMade(call_id, verdict=verdict, reason=reason):
            if verdict:
                lines.append(f"the judge on call {call_id}: {verdict}" + (f", «{in_full(reason)}»" if reason else ""))
        case _:
            assert_never(event)
    if event.asking is not None and event.asking.failure:
        lines.append(f"! the guard's model failed: {in_full(event.asking.failure)}")
    return lines


def tree_lines(event: SpeculationEvent) -> list[str]:
    """The ways to go on that were named, which are out and why, and which one is taken."""
    lines: list[str] = []
    asking = None
    match event:
        case HypothesesMade(tree, dropped, asking):
            told = f" · dropped: {dropped}" if dropped else ""
            if tree.branches or dropped:
                lines.append(f"ways to go on, tree {tree.tree_id}: {len(tree.branches)}{told}")
            lines += [f"  {_branch_line(branch)}" for branch in tree.branches]
        case BranchRejected(_, branch_id, rule, reason):
            lines.append(f"{in_full(branch_id)} is out [{rule}]: {in_full(reason)}")
        case BranchCommitted(decision, asking, direct):
            how = "made without asking the model" if direct else "recommended"
            taken = decision.selected_branch_id
            what = f"{in_full(taken)} is taken and {how}" if taken else "none is taken"
            lines.append(f"{what}, by {decision.by}: {in_full(decision.reason)}")
        case _:
            assert_never(event)
    if asking is not None and asking.failure:
        lines.append(f"! the guard's model failed: {in_full(asking.failure)}")
    return lines


def _branch_line(branch: HypothesisBranch) -> str:
    calls = " | ".join(in_full(json_text(one)) for one in branch.argument_sets if one)
    signs = [f"risk {branch.risk_level}", f"necessity {branch.necessity_score:g}"]
    signs += ["out of memory"] if branch.source == "trajectory_memory" else []
    why = f" «{in_full(branch.rationale)}»" if branch.rationale else ""
    return f"{branch.branch_id} {in_full(branch.tool_name)} {calls}  {', '.join(signs)}{why}"


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
    lines += [f"a yes is also one to {role}: {value}" for role, value in asked.also_for]
    return lines + ([f"questions of this run before: {asked.asked_before}"] if asked.asked_before else [])
