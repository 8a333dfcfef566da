"""What the gate and its stages say, as lines for a person: the intent, each odd value with its source, the question.

Source: spec/guard.md, sections 4.9 and 6. Values and foreign text are shown in full on one line, nothing hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from surefoot.core.gate.record import question
from surefoot.core.state.turn import Call
from surefoot.core.text import json_text
from surefoot.core.text.look import in_full
from surefoot.telling.text import visible
from surefoot.types import guard_events
from surefoot.types.events import CallJudged, IntentAnchored
from surefoot.types.guard import Cue, Evidence, IntentAnchor
from surefoot.types.outcomes import Ask


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value stands: in the user's words, in the result of a call that ended with record `seq`, or nowhere ("").

    `text` is the sentence in which it stands, where that is known.
    """

    kind: Literal["words", "call", "config", ""]
    call_id: str = ""
    seq: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a call: its place in the arguments, what it is, and where it comes from."""

    path: str
    role: str
    kind: str
    value: str
    origin: str
    form: str
    note: str
    source: Source


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


def stage_lines(event: IntentAnchored | guard_events.GuardEvent) -> list[str]:
    """What a stage of the guard found, and why it failed; of an anchor what a model has added to the rules."""
    lines: list[str] = []
    match event:
        case IntentAnchored(anchor, dropped=dropped, asking=guard_events.Asking()):
            steps = ", ".join(in_full(step.step_type) for step in anchor.sketch.steps) if anchor.sketch else "none"
            lines.append(f"steps: {steps}" + (f" · not in the words, so dropped: {dropped}" if dropped else ""))
        case IntentAnchored():
            pass
        case guard_events.PerceptionSanitised(call_id, stripped, masks, ignored):
            told = [f"{stripped} invisible characters"] if stripped else []
            told += [f"«{in_full(mask)}»" for mask in masks]
            told += [f"{ignored} passages that it does not contain were ignored"] if ignored else []
            if told:
                lines.append(f"not shown of the result of call {call_id}: {', '.join(told)}")
        case guard_events.JudgementMade(call_id, verdict=verdict, reason=reason):
            if verdict:
                lines.append(f"the judge on call {call_id}: {verdict}" + (f", «{in_full(reason)}»" if reason else ""))
        case _:
            assert_never(event)
    return lines + _failure(event.asking)


def tree_lines(event: guard_events.SpeculationEvent) -> list[str]:
    """The ways to go on that were named, which are out and why, and which one is taken."""
    match event:
        case guard_events.HypothesesMade(tree, dropped, asking):
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
        case guard_events.BranchRejected(_, branch_id, rule, reason):
            return [f"{in_full(branch_id)} is out [{rule}]: {in_full(reason)}"]
        case guard_events.BranchCommitted(decision, asking, direct):
            how = "made without asking the model" if direct else "recommended"
            taken = decision.selected_branch_id
            what = f"{in_full(taken)} is taken and {how}" if taken else "none is taken"
            return [f"{what}, by {decision.by}: {in_full(decision.reason)}", *_failure(asking)]
        case _:
            assert_never(event)


def _failure(asking: guard_events.Asking | None) -> list[str]:
    return [f"! the guard's model failed: {in_full(asking.failure)}"] if asking is not None and asking.failure else []


def values_of(evidence: Iterable[Evidence], ended: Mapping[str, int]) -> tuple[Value, ...]:
    """Values that matter, for a person to read; `ended` has the records with which calls ended."""
    return tuple(
        Value(
            visible(one.path),
            one.role,
            one.kind,
            in_full(one.value),
            one.origin,
            one.form,
            in_full(one.note),
            _source(one, ended),
        )
        for one in evidence
    )


def _source(one: Evidence, ended: Mapping[str, int]) -> Source:
    text = in_full(one.sentence)
    match one.source_id:
        case "" | "config":
            return Source(one.source_id)
        case "user":
            return Source("words", text=text)
        case call_id:
            return Source("call", call_id, ended.get(call_id), text)


def value_line(value: Value, *, kinds: bool = False) -> str:
    """A value with its role, where it comes from, and the call whose result holds it.

    With `kinds` also what the value looks like.
    """
    where = f", from call {value.source.call_id}" if value.source.call_id else ""
    form = f" ({value.form})" if value.form else ""
    note = f" · {value.note}" if value.note else ""
    what = f"{value.role} ({value.kind})" if kinds else value.role
    return f"{value.path} {what}: {value.value}  {value.origin}{form}{where}{note}"


def grounds_lines(event: CallJudged) -> tuple[list[str], list[str]]:
    """What a decision rests on; and of a call that is simply allowed its values, which are told where all is told."""
    grounds = event.grounds
    lines = [f"also: {', '.join(grounds.also)}"] if grounds.also else []
    if grounds.would_be:
        lines.append(f"would be: {grounds.would_be} (the gate only observes)")
    if grounds.reason_person:
        lines.append(in_full(grounds.reason_person))
    values = list(map(value_line, values_of(grounds.evidence, {})))
    is_plain = event.decision.kind == "allow" and not grounds.would_be
    return (lines, values) if is_plain else (lines + values, [])


def question_lines(call: Call, event: CallJudged, asked_before: int = 0, others: Sequence[Evidence] = ()) -> list[str]:
    """The question that a person answers, as the page and the API show it too; `others` are all values of the call."""
    if not isinstance(event.decision, Ask) or call.spec is None or not event.grounds.digest:
        return []
    asked = question(call.spec, event.decision.reason, event.grounds, others)
    lines = [f"{asked.on_yes}."]
    for odd in asked.odd:
        lines.append(f"{odd.path}: {odd.value}")
        lines.append(f"  {'; '.join(filter(None, (odd.said, odd.source, odd.why)))}")
    lines += [f"{path}: {value} ({origin})" for path, value, origin in asked.others]
    lines += [f"a yes also counts for {role}: {value}" for role, value in asked.also_for]
    return lines + ([f"questions asked before in this run: {asked_before}"] if asked_before else [])
