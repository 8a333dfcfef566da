"""What a model says of a call, beside the policies: it can tighten their word, and never loosen it.

Where it failed, or was not asked, a person is. Source: spec/guard.md, sections 3.9 and 4.1, policy 10.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, assert_never

from surefoot.core.gate.record import GateRecord
from surefoot.core.gate.sinks import Aimed, aimed
from surefoot.types.decisions import Allow, Ask, Decision, Deny
from surefoot.types.guard import Grounds
from surefoot.types.guard_events import JudgementMade
from surefoot.types.tools import ToolSpec

RULE = "judge"

SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "verdict": {"enum": ["allow", "ask", "deny"]},
        "constraint_id": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["reason", "verdict", "constraint_id"],
    "additionalProperties": False,
}
"""What the reply of a judge has to be. The reason comes first: a small model decides better once it has given one."""

LONGEST_REASON = 200

Judged = tuple[Decision, str, Grounds]


def is_judged(gate: GateRecord, spec: ToolSpec, arguments: Mapping[str, object]) -> bool:
    """Whether a judge looks at such a call at all: it may change something, or carries a value out of the house."""
    if not gate.known.config.judge:
        return False
    return _does_more_than_read(aimed(gate.known, spec, arguments))


def _does_more_than_read(aim: Aimed) -> bool:
    carries = (e.kind == "url" and e.role != "content" for e in aim.evidence)
    return aim.is_effectful or aim.effect.egress or any(carries)


def tightened(gate: GateRecord, made: JudgementMade | None, judged: Judged) -> Judged:
    """What the policies say of a call that is judged, with the judge's word. Only "allow" leaves it as it is."""
    decision, rule, grounds = judged
    if isinstance(decision, Deny):
        return judged
    verdict = _verdict(made, grounds.digest)
    if verdict == "allow":
        return judged
    reason = f"the judge: {made.reason[:LONGEST_REASON]}" if made and made.reason else ""
    also = (rule, *grounds.also) if isinstance(decision, Ask) else grounds.also
    if verdict == "deny":
        told = "refused: this does not look like what the user asked for; do what was asked, or ask the user"
        return Deny(told), RULE, replace(grounds, also=also, reason_person=reason)
    asked = "the judge wants a person to look at this" if made and made.verdict else "the judge gave no answer"
    if gate.known.config.strict:
        return Deny(f"refused, and nobody is there to ask: {asked}"), RULE, replace(grounds, also=also)
    match decision:
        case Ask(why):
            return Ask(f"{why}; {asked}"), rule, replace(grounds, also=(*grounds.also, RULE), reason_person=reason)
        case Allow():
            return Ask(asked), RULE, replace(grounds, reason_person=reason)
        case _:
            assert_never(decision)


def _verdict(made: JudgementMade | None, digest: str) -> Literal["allow", "ask", "deny"]:
    """The judge's word on exactly this call; without one it is to ask."""
    if made is None or made.digest != digest:
        return "ask"
    return made.verdict or "ask"
