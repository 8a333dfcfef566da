"""What limits calls beside their values: what words, a configuration or a model has forbidden, a person's rules, Cedar.

A person's rules tighten, or always allow one thing. Both ask the same of a value, and doubt goes the other way: a rule
that tightens holds as soon as something in the value may be meant, one that allows only if all of it is. No permit of
Cedar, a forbid, and whatever cannot be evaluated is a refusal; a forbid that is annotated with `@ask` is a question.
Source: spec/guard.md, sections 4.9, 4.10 and 5.1.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Literal, cast

from surefoot.core.gate.effects import may_only_read
from surefoot.core.gate.origins import traced
from surefoot.core.gate.record import Started
from surefoot.core.gate.roles import Path, currencies_in, leaves, sums_of
from surefoot.core.gate.sinks import Aimed
from surefoot.core.gate.sources import Known
from surefoot.core.text.json import pin_of
from surefoot.core.text.look import holds, normal_text
from surefoot.core.text.values import hard_tokens, kind_of, norm_of
from surefoot.core.text.words import fits
from surefoot.types.dataclass import dataclass
from surefoot.types.errors import ConfigError, extra_needed
from surefoot.types.guard import Condition, Evidence, SecurityConstraint
from surefoot.types.rules import Rule, StandingRule, ValueTest
from surefoot.types.tools import Effect, ToolSpec


@dataclass(frozen=True, slots=True)
class Asked:
    """A call as the policies see it."""

    known: Known
    spec: ToolSpec
    arguments: Mapping[str, object]
    aim: Aimed
    digest: str
    started: Sequence[Started]

    @property
    def values(self) -> tuple[Evidence, ...]:
        """Every value of the call for a person to read: each with the result that holds it, if any does."""
        return tuple(traced(self.known, e) for e in self.aim.evidence)

    @property
    def may_only_read(self) -> bool:
        """Whether what the call is taken to do is so doubtful that it may be asked about, and not be refused."""
        return may_only_read(self.spec, self.aim.effect)


@dataclass(frozen=True, slots=True)
class Word:
    """What one policy says against a call. A question that `is_firm` a person has ordered: no standing rule answers."""

    rule: str
    verdict: Literal["ask", "deny"]
    for_model: str
    for_person: str
    evidence: tuple[Evidence, ...] = ()
    is_firm: bool = False


Policy = Callable[[Asked], Sequence[Word]]  # pure and small, named for what it forbids


def limits(call: Asked) -> Sequence[Word]:
    """The constraints that a call breaks, the strongest first."""
    known = call.known
    constraints = (*known.words.anchor.constraints.constraints, *known.config.constraints)
    found: list[Word] = []
    for constraint in sorted(constraints, key=lambda one: one.priority):
        if _applies(constraint.condition, call.spec.name, call.aim.classes) and (broken := _broken(constraint, call)):
            verdict, why = broken
            if constraint.condition.effect is not None and call.may_only_read:
                verdict = "ask"
            found.append(Word("intent", verdict, f"refused: {why}", why, is_firm=True))
    return found


def _applies(condition: Condition, name: str, effects: frozenset[Effect | None]) -> bool:
    if condition.effect is not None and condition.effect not in effects:
        return False
    if condition.tool_name is not None and condition.tool_name != name:
        return False
    return condition.tool_name_pattern is None or fits(condition.tool_name_pattern, name)


def _broken(constraint: SecurityConstraint, call: Asked) -> tuple[Literal["ask", "deny"], str] | None:
    """Whether the call breaks a constraint that applies to it: refused, or a question; and why."""
    condition = constraint.condition
    evidence, said = call.aim.evidence, constraint.violation_message or constraint.description
    targets = [e for e in evidence if e.role in ("destination", "object")]
    if condition.max_amount is not None and (passes := _passes(condition, condition.max_amount, call)):
        verdict = "ask" if constraint.constraint_type == "require_confirmation" else passes
        return verdict, said or f"more than {condition.max_amount:g} in this run"
    if condition.max_count is not None and len(_counted(condition, call)) >= condition.max_count:
        return "ask", said or f"more than {condition.max_count} such calls in this run"
    allowed = condition.allowed_targets
    if allowed and any(not _is_any(e, allowed) for e in targets):
        return "ask", said or f"only {', '.join(allowed)} was allowed"
    if constraint.constraint_type == "allow" or not _is_aimed_at(condition, targets):
        return None
    if condition.max_amount is not None or condition.max_count is not None or allowed:
        return None  # it limits, and the limit is kept
    return ("deny" if constraint.constraint_type == "forbid" else "ask"), said


def _is_aimed_at(condition: Condition, targets: Sequence[Evidence]) -> bool:
    """Whether the call has a target that the condition is about; one without targets is about every call."""
    meant = (*condition.forbidden_targets, *((condition.target,) if condition.target else ()))
    if condition.except_targets:
        return not targets or any(not _is_any(e, condition.except_targets) for e in targets)
    if condition.target_pattern is not None:
        return any(fits(normal_text(condition.target_pattern), normal_text(e.value)) for e in targets)
    return not meant or any(_is_any(e, meant) for e in targets)


def _is_any(evidence: Evidence, names: Sequence[str]) -> bool:
    """Whether a target is one of the names: the same value, or a text that holds the name in whole words."""
    text, norm = normal_text(evidence.value), norm_of(evidence.value)
    return any(norm == norm_of(name) or (evidence.kind == "text" and holds(text, normal_text(name))) for name in names)


def _counted(condition: Condition, call: Asked) -> list[Started]:
    """The started calls that a condition is about; one of which nobody knows any effect may have the limited one."""
    limited = frozenset((condition.effect,))
    return [
        one
        for one in call.started
        if _applies(condition, one.name, one.effects | limited if None in one.effects else one.effects)
    ]


def _passes(condition: Condition, limit: float, call: Asked) -> Literal["ask", "deny"] | None:
    """Whether the call takes the sum of the run over its limit; where that cannot be told, a person has to."""
    # an element of a list is called like its list
    names = (next((part for part in reversed(e.path.split("/")) if not part.isdigit()), "") for e in call.aim.evidence)
    ours = sums_of((name, e.role, e.value) for name, e in zip(names, call.aim.evidence, strict=True))
    if not ours:
        return None
    counted = [amount for one in _counted(condition, call) for amount in one.amounts]
    meant = currencies_in(condition.currency or "")
    alike = [one for one in (*counted, *ours) if not meant or not one.currencies or one.currencies & meant]
    read = [(abs(one.amount), one.times) for one in alike if one.amount is not None]  # no sum makes room for another
    most = Decimal(str(limit))
    if sum((amount for amount, _ in read), Decimal(0)) > most:
        return "deny"
    is_sure = len(read) == len(counted) + len(ours)
    return None if is_sure and sum((amount * times for amount, times in read), Decimal(0)) <= most else "ask"


_Leaf = tuple[Path, object, Evidence]


def user_rules(call: Asked) -> Sequence[Word]:
    """What the rules of the configuration object to. They never allow anything."""
    found = ((one, one.reason or f"rule {one.id}", _evidence(one, call)) for one in call.known.config.rules)
    return [
        Word("user_rules", rule.then, f"refused by a rule: {said}", said, meant, is_firm=True)
        for rule, said, meant in found
        if meant is not None
    ]


def standing_for(call: Asked, words: Sequence[Word]) -> StandingRule | None:
    """The rule of a person that answers all the questions about a call; None when one of them is left.

    If the question is where values come from, where the call goes has to be one of its exact values, and it has to
    speak of each value that is asked about.
    """
    if any(word.is_firm or word.verdict == "deny" for word in words):
        return None
    return next((rule for rule in call.known.config.standing if _answers(rule, call, words)), None)


def _answers(rule: StandingRule, call: Asked, words: Sequence[Word]) -> bool:
    if rule.tool != call.spec.name or not rule.holds_on(call.known.today) or rule.pin != pin_of(call.spec):
        return False
    if not {word.rule for word in words} <= set(rule.covers):
        return False
    values = _leaves(call)
    for test in rule.when:
        about = [leaf for leaf in values if _is_about(test, leaf)]
        if not about or not all(_holds(test, leaf, doubt=False) for leaf in about):
            return False
    if not any(word.rule == "provenance" for word in words):
        return True
    asked_about = {e.path for word in words for e in word.evidence}
    return all(
        any(_is_about(test, leaf) and (test.equals is not None or test.in_ or not is_place) for test in rule.when)
        for leaf in values
        if (is_place := leaf[2].role == "destination") or leaf[2].path in asked_about
    )


def _evidence(rule: Rule, call: Asked) -> tuple[Evidence, ...] | None:
    """The values that a rule is about, () when it asks nothing of any; None when the rule does not hold."""
    when, test = rule.when, rule.when.value

    def is_of(name: str, effects: frozenset[Effect | None]) -> bool:
        return (when.tool is None or fits(when.tool, name)) and (when.effect is None or when.effect in effects)

    is_about = (
        is_of(call.spec.name, call.aim.classes)
        and (when.server is None or when.server == call.spec.server)
        and (when.step_kind is None or when.step_kind == call.known.step_kind)
    )
    if is_about and when.count_above is not None:  # with this call
        is_about = sum(is_of(one.name, one.effects) for one in call.started) >= when.count_above
    if not is_about or test is None:
        return () if is_about else None
    found = tuple(leaf[2] for leaf in _leaves(call) if _is_about(test, leaf) and _holds(test, leaf, doubt=True))
    return found or None


def _leaves(call: Asked) -> Sequence[_Leaf]:
    given = leaves(call.arguments, call.spec)
    return [(path, value, e) for (path, value), e in zip(given, call.aim.evidence, strict=True)]


def _is_about(test: ValueTest, leaf: _Leaf) -> bool:
    path, _, evidence = leaf
    return (test.arg is None or test.arg in path) and test.role in (None, evidence.role)


def _holds(test: ValueTest, leaf: _Leaf, *, doubt: bool) -> bool:
    """Whether all that is asked holds of a value; where that cannot be told, `doubt`.

    Of a text, its normal form counts, and the addresses, links and numbers in it.
    """
    _, value, evidence = leaf
    held, kind = any if doubt else all, kind_of(value)
    norms = [norm_of(value, kind), *(token.norm for token in (hard_tokens(str(value)) if kind == "text" else ()))]
    wanted = {norm_of(one) for one in (*test.in_, *(() if test.equals is None else (test.equals,)))}
    if wanted and not held(norm in wanted for norm in norms):
        return False
    told = [norm.partition(":")[2].casefold() for norm in norms]
    if test.matches is not None and not held(fits(normal_text(test.matches), text) for text in told):
        return False
    if test.not_matches is not None and not held(not fits(normal_text(test.not_matches), text) for text in told):
        return False
    if test.above is not None or test.below is not None:
        amount = Decimal(norms[0].removeprefix("number:")) if kind == "number" else Decimal("NaN")
        if not amount.is_finite():
            return doubt
        above = Decimal(str(test.above)) if test.above is not None else Decimal("-Infinity")
        below = Decimal(str(test.below)) if test.below is not None else Decimal("Infinity")
        if not held(above < one < below for one in (amount, abs(amount))):  # nobody knows what a tool makes of a sign
            return False
    return not test.origin or evidence.origin in test.origin


def cedar(call: Asked) -> Sequence[Word]:
    """What the Cedar policies of the configuration say against a call."""
    if not call.known.config.cedar:
        return ()
    try:
        firm, whole = _parse_cedar(call.known.config.cedar)
        is_allowed, why = _ask_cedar(firm, call)
        if not is_allowed:
            return (Word("cedar", "deny", "refused by a policy", why),)
        is_allowed, why = _ask_cedar(whole, call)
    except Exception as error:  # noqa: BLE001  # what cannot be evaluated is refused
        return (Word("cedar", "deny", "refused: a policy could not be evaluated", str(error)),)
    return () if is_allowed else (Word("cedar", "ask", "a policy wants a person's word", why, is_firm=True),)


def check_cedar(text: str) -> None:
    """Raise `ConfigError` unless a text is Cedar policies that can be used here."""
    try:
        _parse_cedar(text)
        if not text.strip():
            raise ValueError("it holds no policy, so nothing would be permitted")  # noqa: TRY301  # told as the others are
    except ImportError as error:
        raise ConfigError("cedar", "…", f"Cedar policies need the package cedarpy; {extra_needed('cedar')}") from error
    except ValueError as error:
        raise ConfigError("cedar", "…", f"not valid Cedar: {error}") from error


@lru_cache(maxsize=16)
def _parse_cedar(text: str) -> tuple[str, str]:
    """The policies without the forbids that only ask, and all of them."""
    import cedarpy  # noqa: PLC0415  # of an extra

    told = json.loads(cedarpy.policies_to_json_str(text))
    policies = cast("dict[str, dict[str, object]]", told["staticPolicies"])
    kept = {
        name: policy
        for name, policy in policies.items()
        if policy["effect"] != "forbid" or "ask" not in cast("Mapping[str, object]", policy.get("annotations", {}))
    }
    return cedarpy.policies_from_json_str(json.dumps({**told, "staticPolicies": kept})), text


def _ask_cedar(policies: str, call: Asked) -> tuple[bool, str]:
    """Whether the policies allow the call, and which decided. Raises `ValueError` where one cannot be evaluated."""
    import cedarpy  # noqa: PLC0415  # of an extra

    counts = Counter(effect or "unknown" for one in call.started for effect in one.effects)
    request = {
        "principal": {"type": "User", "id": call.known.config.user},
        "action": {"type": "Action", "id": call.aim.effect.effect or "unknown"},
        "resource": {"type": "Tool", "id": call.spec.name},
        "context": {
            "server": call.spec.server,
            "arguments": _cedar_value(call.arguments),
            "origins": {e.path: e.origin for e in call.aim.evidence},
            "counts": {**counts, "total": len(call.started)},
        },
    }
    result = cedarpy.is_authorized(request, policies, [])  # pyright: ignore[reportUnknownMemberType]  # it takes any dict
    if result.diagnostics.errors:
        raise ValueError("; ".join(result.diagnostics.errors))
    reasons = ", ".join(result.diagnostics.reasons)
    return result.decision == cedarpy.Decision.Allow, f"policy {reasons}" if reasons else "no policy permits it"


def _cedar_value(value: object) -> object:
    """A JSON value as Cedar knows it: no null, a fraction as a decimal of four digits.

    Raises `ValueError` for a value that it has no form for, and for a key that Cedar would read as another kind.
    """
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, object]", value)  # JSON: the keys are text
        if entries.keys() & {"__extn", "__entity", "__expr"}:
            raise ValueError("an argument has a key of Cedar's own")
        return {key: _cedar_value(one) for key, one in entries.items() if one is not None}
    if isinstance(value, list | tuple):
        return [_cedar_value(one) for one in cast("Sequence[object]", value) if one is not None]
    if isinstance(value, float):
        exact = Decimal(str(value))
        if not exact.is_finite() or round(exact, 4) != exact:
            raise ValueError("a number has more digits than Cedar has")
        if exact != exact.to_integral_value():
            return {"__extn": {"fn": "decimal", "arg": f"{exact:f}"}}
        value = int(exact)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("a number is too large for Cedar")
    return value
