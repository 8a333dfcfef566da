"""Two runs side by side: what they share, and the replies after that which correspond, with what differs in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from surefoot.core.plan.child import owner_of
from surefoot.telling.calls import call_text
from surefoot.telling.plan import edit_line, step_line
from surefoot.telling.row import ROW_CHARS
from surefoot.telling.tale import NO_TALE, inner_event
from surefoot.telling.text import brief_output, one_line, visible
from surefoot.types.events import CallEnded, CallJudged, CallReused, ModelReplied
from surefoot.types.plan_events import PlanEdited, PlanMade
from surefoot.types.ports import Recorded


@dataclass(frozen=True, slots=True)
class Called:
    """One call: what it is known by in both runs, what was called, the last verdict on it, and briefly what it gave."""

    key: str
    text: str
    verdict: str = ""
    result: str = ""


@dataclass(frozen=True, slots=True)
class Side:
    """A reply of one run, by the record `seq`, and what came of it until the next. `plan` has the edits of a plan."""

    seq: int
    model: str
    reply: str
    calls: tuple[Called, ...] = ()
    plan: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """The replies of one number; None where a run has none. Step 0 is what was there before the first reply."""

    step: int
    a: Side | None
    b: Side | None
    differs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many records two runs share at their beginning, and their replies after that, in pairs."""

    shared: int
    pairs: tuple[Pair, ...]


def compare(a: Iterable[Recorded], b: Iterable[Recorded]) -> Comparison:
    """Two runs side by side. Records are the same where their hashes are."""
    a, b = tuple(a), tuple(b)
    shared = sum(1 for _ in takewhile(lambda two: two[0].hash == two[1].hash, zip(a, b, strict=False)))
    one, other = _sides(a, shared), _sides(b, shared)
    steps = sorted({*one, *other})
    pairs = (Pair(step, one.get(step), other.get(step), _differs(one.get(step), other.get(step))) for step in steps)
    return Comparison(shared, tuple(pairs))


def _differs(a: Side | None, b: Side | None) -> tuple[str, ...]:
    if a is None or b is None:
        return ("reply",)
    mine, others = ({call.key: call for call in side.calls} for side in (a, b))
    both = [(call, others[key]) for key, call in mine.items() if key in others]
    found = {
        "model": a.model != b.model,
        "reply": a.reply != b.reply,
        "calls": mine.keys() != others.keys(),
        "verdicts": any(one.verdict != other.verdict for one, other in both),
        "results": any(one.result != other.result for one, other in both),
        "plan": a.plan != b.plan,
    }
    return tuple(name for name, is_other in found.items() if is_other)


def _sides(records: Sequence[Recorded], since: int) -> dict[int, Side]:
    """The replies from record `since` on, by their number in the run, each with its calls."""
    sides: dict[int, Side] = {}
    calls: dict[str, tuple[int, Called]] = {}
    seen: Counter[str] = Counter()
    tale, step = NO_TALE, 0
    for at, record in enumerate(records):
        tale = tale.plus(record)
        event = inner_event(record)
        step += isinstance(event, ModelReplied)
        if at < since:
            continue
        match event:
            case ModelReplied(message=message, role=role):
                speaker = tale.state.speakers.get(role)
                model = speaker.model if speaker is not None else message.model
                sides[step] = Side(record.seq, visible(model), visible(message.content)[:ROW_CHARS])
            case CallJudged(call_id) | CallReused(call_id) | CallEnded(call_id):
                if call_id not in calls and (call := owner_of(tale.state, call_id).state.call(call_id)) is not None:
                    key = f"{visible(call.name)} {call.trail_key.hex()}"
                    calls[call_id] = (step, Called(f"{key} {seen[key]}", visible(call_text(call))))
                    seen[key] += 1
                if call_id in calls:
                    calls[call_id] = (calls[call_id][0], _with_event(calls[call_id][1], event))
            case PlanMade() | PlanEdited():
                lines = map(step_line, event.plan.steps) if isinstance(event, PlanMade) else (edit_line(event),)
                side = sides.setdefault(step, Side(record.seq, "", ""))
                sides[step] = replace(side, plan=(*side.plan, *map(one_line, lines)))
            case _:
                pass
    for step, call in calls.values():
        side = sides.setdefault(step, Side(records[0].seq, "", ""))
        sides[step] = replace(side, calls=(*side.calls, call))
    return sides


def _with_event(call: Called, event: CallJudged | CallReused | CallEnded) -> Called:
    match event:
        case CallJudged(decision=decision, rule=rule, by=by):
            return replace(call, verdict=decision.kind + (f" [{rule}]" if rule else "") + (f" by {by}" if by else ""))
        case CallReused(_, known):
            return replace(call, result=f"known from call {known}")
        case CallEnded(_, result):
            return replace(call, result=one_line(brief_output(result.content))[:ROW_CHARS])
