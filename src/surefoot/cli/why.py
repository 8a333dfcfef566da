"""Why a call was judged as it was: every policy in order, with what it said, and every value. Made of the journal."""

from __future__ import annotations

from collections.abc import Sequence

from surefoot.cli.brief import one_line
from surefoot.cli.judged import evidence_lines, grounds_lines, question_lines, stage_lines
from surefoot.cli.lines import Line, Style, visible, written
from surefoot.cli.planned import edit_line, step_told
from surefoot.core.fold import fold
from surefoot.core.gate.asked import Word
from surefoot.core.gate.judge import POLICIES as FIRST
from surefoot.core.gate.judge import asked_of
from surefoot.core.gate.verdict import POLICIES
from surefoot.core.owners import owner_of
from surefoot.core.plan.signing import PLAN
from surefoot.core.state import Call, State
from surefoot.types.decisions import Ask
from surefoot.types.errors import UsageError
from surefoot.types.events import CallJudged, Event, InStep
from surefoot.types.ports import Recorded

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
    for policy in FIRST:
        decision = policy(state, call)
        lines += _policy(policy.__name__, decision.kind, getattr(decision, "reason", ""))
    asked = asked_of(state, call)
    if asked is None:
        lines.append(Line("the gate is off, so nothing else was asked", "dim", 2))
    else:
        for policy in POLICIES:
            lines += _words(policy.__name__, policy(asked))
        judgement = state.gate.judgements.get(call_id) if state.gate is not None else None
        if judgement is not None:
            lines += [Line(visible(told), "", 2) for told in stage_lines(judgement)]
        lines.append(Line("values:", "head"))
        lines += [Line(visible(line), "", 2) for line in evidence_lines(asked.values, kinds=True)]
    rule = f" [{event.rule}]" if event.rule else ""
    lines.append(Line(f"decided: {event.decision.kind}{rule}", _STYLES[event.decision.kind]))
    lines += [Line(visible(line), "dim", 2) for line in _rest(call, event)]
    return lines + [Line(f"{one.decision.kind}, by {visible(one.by)}", "", 2) for one in _spoken(records[at:], call_id)]


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
    before = sum(isinstance(one.decision, Ask) for place, one in verdicts if place < at)
    lines.append(Line(visible(getattr(event.decision, "reason", "")), "warn"))
    told = question_lines(call, event, before, asked.values if asked else ())
    return lines + [Line(visible(line), "", 2) for line in told]


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
        told = f"{step_told(record.step)}  {record.status}" if planning.edits else step_told(record.step)
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
    raise UsageError(f"there is no verdict on a call {call_id!r} in this run; `surefoot show RUN` has their ids")


def _spoken(records: Sequence[Recorded], call_id: str) -> list[CallJudged]:
    events = map(_inner, records)
    return [one for one in events if isinstance(one, CallJudged) and one.call_id == call_id and one.by]


def _rest(call: Call, event: CallJudged) -> list[str]:
    reason = getattr(event.decision, "reason", "")
    return [*([reason] if reason else []), *(question_lines(call, event) or grounds_lines(event, every=False))]


def _words(name: str, words: Sequence[Word]) -> list[Line]:
    if not words:
        return _policy(name, "allow", "")
    return [
        line
        for word in words
        for line in (
            *_policy(name, word.verdict, word.for_person),
            *(Line(visible(told), "dim", 4) for told in evidence_lines(word.evidence)),
        )
    ]


def _policy(name: str, verdict: str, said: str) -> list[Line]:
    told = f": {visible(' '.join(said.split()))}" if said else ""
    return [Line(f"{name}  {verdict}{told}", _STYLES[verdict] if verdict != "allow" else "", 2)]
