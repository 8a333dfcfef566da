"""May this call run? All policies are asked; the strictest verdict wins."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from surefoot.core.budget import spent_limit
from surefoot.core.roles import PREFETCH
from surefoot.core.select.profile import refusal
from surefoot.core.state import Call, State
from surefoot.core.text import json_text
from surefoot.core.tracked import config_of, verdict
from surefoot.core.trail import REMEDY
from surefoot.types.decisions import Allow, Ask, Decision, Deny
from surefoot.types.progress import LimitAction

Policy = Callable[[State, Call], Decision]
"""Pure and small, named for what it forbids. It reads no clock, disk or model."""


def profile(state: State, call: Call) -> Decision:
    """A tool that is not offered does not run, even if the model knows its name (spec/primitives.md, section 1.6)."""
    if state.turn is not None and state.turn.role == PREFETCH:
        return Allow()  # the operator has named it for that, and it only reads
    if state.offered.get(call.name) is None:
        return Deny(refusal(call.name, state.offered.names))
    return Allow()


def no_finish_before_results(state: State, call: Call) -> Decision:
    """A finish tool beside other calls is not accepted: results come first. Source: spec/react.md, section 7.4."""
    if call.spec is None or not call.spec.finish:
        return Allow()
    if not answer_of_finish(call.arguments).strip():
        return Deny("not accepted: the answer is empty")
    others = [other for other in state.calls if other.id != call.id]
    if state.config.finish_with_reads and all(o.spec and o.spec.effect == "read" and not o.spec.finish for o in others):
        return Allow()
    return Deny("not accepted: results first") if others else Allow()


def answer_of_finish(arguments: Mapping[str, object]) -> str:
    """The answer that a finish tool is called with: its only text, or all of its arguments as JSON."""
    values = list(arguments.values())
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return json_text(arguments) if arguments else ""


def stuck(state: State, call: Call) -> Decision:
    """A call that has come to its limit, or goes on in a circle, does not run: a person may be asked in its place."""
    sign = verdict(state, call)
    if sign.decision not in ("block", "stop"):
        return Allow()
    if config_of(state).on_limit_reached == LimitAction.Escalate:
        return Ask(f"{sign.reason}. Shall it run all the same?")
    return Deny(f"refused: {sign.reason}. {REMEDY}")


def no_call_after_the_time(state: State, _call: Call) -> Decision:
    """A call that the time of the run no longer covers is not begun, so that it need not be broken off."""
    if spent_limit(state, reserve=True) == "time":
        return Deny("not run: the time limit of this run is reached")
    return Allow()


POLICIES: tuple[Policy, ...] = (profile, no_finish_before_results, no_call_after_the_time)

_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


def judge(state: State, call: Call, policies: tuple[Policy, ...] = POLICIES) -> tuple[Decision, str]:
    """The decision, and the name of the policy that made it ("" when all allow)."""
    strictest: Decision = Allow()
    rule = ""
    for policy in policies:
        decision = policy(state, call)
        if _STRICTNESS[decision.kind] > _STRICTNESS[strictest.kind]:
            strictest, rule = decision, policy.__name__
    return strictest, rule
