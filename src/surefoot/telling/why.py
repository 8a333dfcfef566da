"""Why a call was allowed, asked about or refused: what all policies said, where each value is from, what came of it.

Source: spec/guard.md, sections 4.9 and 6; spec/serving.md, section 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from surefoot.core.gate.origins import endorsed_by, listed_in
from surefoot.core.gate.rules import Asked
from surefoot.core.gate.verdict import POLICIES
from surefoot.core.guard.judge import POLICIES as FIRST
from surefoot.core.guard.judge import policy_call
from surefoot.core.loop.inbox import digest_of_call
from surefoot.core.plan.child import owner_of
from surefoot.core.state.state import State
from surefoot.core.state.turn import Call, changed
from surefoot.core.text.look import in_full
from surefoot.telling.guard import Value, grounds_lines, question_lines, stage_lines, value_line, values_of
from surefoot.telling.state import below
from surefoot.telling.tale import NO_TALE, Tale, inner_event, tale_of
from surefoot.telling.text import Line, Style, one_line, program_text, visible, visible_members
from surefoot.types.errors import UsageError
from surefoot.types.events import CallEnded, CallJudged
from surefoot.types.outcomes import Ask
from surefoot.types.ports import Recorded

Verdict = Literal["allow", "ask", "deny"]
STYLES: Mapping[Verdict, Style] = {"allow": "good", "ask": "warn", "deny": "bad"}


@dataclass(frozen=True, slots=True)
class PolicyWord:
    """What one policy says of a call."""

    name: str
    verdict: Verdict
    reason: str = ""
    evidence: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Cover:
    """A value that a yes makes the user's own, in its role."""

    role: str
    value: str


@dataclass(frozen=True, slots=True)
class Later:
    """What was said about the call after it was judged; `by` is "" where it was the gate again."""

    decision: Verdict
    by: str
    at: int


@dataclass(frozen=True, slots=True)
class Why:
    """The verdict on a call, and all that it rests on. `judged_at` is the place of its record, in the run `run_id`."""

    call: str
    name: str
    arguments: Mapping[str, object]
    digest: str
    judged_at: int
    decision: Verdict
    rule: str
    reason: str
    policies: tuple[PolicyWord, ...]
    values: tuple[Value, ...]
    covers: tuple[Cover, ...]
    asked_before: int
    later: tuple[Later, ...]
    lines: tuple[Line, ...] = ()
    run_id: str = ""


def why(records: Sequence[Recorded], call_id: str, start: Tale = NO_TALE) -> Why:
    """What all policies say of a call as the run stood when the gate judged it, and what came of it.

    `records` are those after `start`. Raises `UsageError` for a call that the gate has not judged in them.
    """
    found: tuple[int, CallJudged] | None = None  # the last word of the gate before a person's first
    for place, event in enumerate(map(inner_event, records)):
        if isinstance(event, CallJudged) and event.call_id == call_id:
            if event.by:
                break
            found = place, event
    if found is None:
        raise UsageError(f"no verdict on a call {call_id!r} in this run; `surefoot show RUN` lists its calls")
    at, verdict = found
    tale = tale_of(records[:at], start)
    state = owner_of(tale.state, call_id).state
    call = state.call(call_id)
    if call is None:
        raise UsageError(f"record {at} judges call {call_id!r}, which no record before it makes")
    asked = policy_call(state, call)
    ended = {one.call_id: r.seq for r in records[:at] if isinstance(one := inner_event(r), CallEnded)}
    later = (
        Later(one.decision.kind, visible(one.by), record.seq)
        for record in records[at + 1 :]
        if isinstance(one := inner_event(record), CallJudged) and one.call_id == call_id
    )
    made = Why(
        call_id,
        visible(call.name),
        visible_members(call.arguments),
        digest_of_call(changed(call, digest=verdict.grounds.digest)),
        records[at].seq,
        verdict.decision.kind,
        verdict.rule,
        visible(getattr(verdict.decision, "reason", "")),
        tuple(_words(state, call, asked, ended)),
        values_of(asked.values, ended) if asked is not None else (),
        _covers(call, verdict, asked),
        len(tale.asks - {(verdict.rule, verdict.decision)}) if isinstance(verdict.decision, Ask) else 0,
        tuple(later),
    )
    return replace(made, lines=tuple(_lines(made, state, call, verdict)))


def _words(state: State, call: Call, asked: Asked | None, ended: Mapping[str, int]) -> list[PolicyWord]:
    decisions = ((first.__name__, first(state, call)) for first in FIRST)
    words = [PolicyWord(name, one.kind, one_line(getattr(one, "reason", ""))) for name, one in decisions]
    for policy in POLICIES if asked is not None else ():
        said = policy(asked) if asked is not None else ()
        words += [] if said else [PolicyWord(policy.__name__, "allow")]
        for one in said:
            evidence = values_of(one.evidence, ended)
            words.append(PolicyWord(policy.__name__, one.verdict, one_line(one.for_person), evidence))
    return words


def _covers(call: Call, verdict: CallJudged, asked: Asked | None) -> tuple[Cover, ...]:
    """What a yes to the question makes the user's own."""
    if asked is None or call.spec is None or not isinstance(verdict.decision, Ask):
        return ()
    shown = (*listed_in(call.spec, call.arguments, verdict.grounds.evidence), *verdict.grounds.shown)
    given = set(endorsed_by(asked.known, call.spec, call.arguments, shown))
    return tuple(Cover(role, in_full(value)) for role, value, norm in shown if (role, norm) in given)


# ------------------------------------------------------------------ as lines


def _lines(made: Why, state: State, call: Call, verdict: CallJudged) -> list[Line]:
    lines = [Line(f"{visible(program_text(call))}  #{call.id} · judged by record {made.judged_at}", "head")]
    lines += map(_policy, made.policies[: len(FIRST)])
    if len(made.policies) == len(FIRST):
        lines.append(Line("the gate is off, so nothing else was asked", "dim", 2))
    else:
        for word in made.policies[len(FIRST) :]:
            lines += [_policy(word), *below(map(value_line, word.evidence), "dim", 4)]
        judgement = state.gate.judgements.get(call.id) if state.gate is not None else None
        lines += below(stage_lines(judgement)) if judgement is not None else []
        lines += [Line("values:", "head"), *below(value_line(one, kinds=True) for one in made.values)]
    rule = f" [{made.rule}]" if made.rule else ""
    lines.append(Line(f"decided: {made.decision}{rule}", STYLES[made.decision]))
    lines += below([made.reason] if made.reason else [], "dim")
    lines += below(question_lines(call, verdict) or grounds_lines(verdict)[0], "dim")
    return lines + [Line(f"{one.decision}, by {one.by or 'the gate'}", indent=2) for one in made.later]


def _policy(word: PolicyWord) -> Line:
    told = f": {word.reason}" if word.reason else ""
    return Line(f"{word.name}  {word.verdict}{told}", STYLES[word.verdict] if word.verdict != "allow" else "", 2)
