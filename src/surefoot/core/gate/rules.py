"""What a person's own rules say of a call: those that tighten, and those that always allow one thing.

Both ask the same of a value, and doubt goes the other way: a rule that tightens holds as soon as something in the value
may be meant, one that allows only if all of it is. Source: spec/guard.md, sections 4.9 and 4.10.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from surefoot.core.gate.asked import Asked, Word, classes_of
from surefoot.core.gate.forms import normal_text
from surefoot.core.gate.roles import Path, leaves
from surefoot.core.gate.values import hard_tokens, kind_of, norm_of
from surefoot.core.pins import pin_of
from surefoot.core.select.profile import matched
from surefoot.types.guard import Evidence
from surefoot.types.rules import Rule, StandingRule, Value, ValueTest

Leaf = tuple[Path, object, Evidence]


def user_rules(call: Asked) -> Sequence[Word]:
    """What the rules of the configuration object to. They never allow anything."""
    found: list[Word] = []
    for rule in call.known.config.rules:
        meant = _meant(rule, call)
        if meant is not None:
            said = rule.reason or f"rule {rule.id}"
            found.append(Word("user_rules", rule.then, f"refused by a rule: {said}", said, meant, is_firm=True))
    return found


def standing_for(call: Asked, words: Sequence[Word]) -> StandingRule | None:
    """The rule of a person that answers all the questions about a call; None when one of them is left.

    It answers none that a person has ordered to be asked. Where the call goes has to be one of its exact values if the
    question is where values come from, and it has to speak of each value that is asked about.
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


def _meant(rule: Rule, call: Asked) -> tuple[Evidence, ...] | None:
    """The values that a rule is about, () when it asks nothing of any; None when the rule does not hold."""
    when = rule.when
    is_about = (
        (when.tool is None or _fits(when.tool, call.spec.name))
        and (when.effect is None or when.effect in classes_of(call.aim))
        and (when.server is None or when.server == call.spec.server)
        and (when.step_kind is None or when.step_kind == call.known.step_kind)
        and (when.count_above is None or _count(rule, call) > when.count_above)
    )
    if not is_about:
        return None
    if when.value is None:
        return ()
    test = when.value
    found = tuple(leaf[2] for leaf in _leaves(call) if _is_about(test, leaf) and _holds(test, leaf, doubt=True))
    return found or None


def _count(rule: Rule, call: Asked) -> int:
    """The calls of the run that are of the rule's tool and effect, with this one. An unknown effect may be any."""
    when = rule.when
    return 1 + sum(
        (when.tool is None or _fits(when.tool, one.name)) and (when.effect is None or when.effect in one.effects)
        for one in call.started
    )


def _leaves(call: Asked) -> Sequence[Leaf]:
    given = leaves(call.arguments, call.spec)
    return [(path, value, e) for (path, value), e in zip(given, call.aim.evidence, strict=True)]


def _is_about(test: ValueTest, leaf: Leaf) -> bool:
    path, _, evidence = leaf
    return (test.arg is None or test.arg in path) and test.role in (None, evidence.role)


def _holds(test: ValueTest, leaf: Leaf, *, doubt: bool) -> bool:
    """Whether all that is asked holds of a value; where that cannot be told, `doubt`."""
    _, value, evidence = leaf
    held = any if doubt else all
    norms = _norms(value)
    if (wanted := _wanted(test)) and not held(norm in wanted for norm in norms):
        return False
    told = [norm.partition(":")[2].casefold() for norm in norms]
    if test.matches is not None and not held(_fits(normal_text(test.matches), text) for text in told):
        return False
    if test.not_matches is not None and not held(not _fits(normal_text(test.not_matches), text) for text in told):
        return False
    if test.above is not None or test.below is not None:
        amount = _amount(value)
        if amount is None:
            return doubt
        is_above = test.above is None or amount > Decimal(str(test.above))
        if not is_above or (test.below is not None and amount >= Decimal(str(test.below))):
            return False
    return not test.origin or evidence.origin in test.origin


def _wanted(test: ValueTest) -> frozenset[str]:
    values: Iterable[Value] = (*test.in_, *(() if test.equals is None else (test.equals,)))
    return frozenset(norm_of(value) for value in values)


def _norms(value: object) -> tuple[str, ...]:
    """A value in its normal form, and if it is a text, also the addresses, links and numbers in it."""
    kind = kind_of(value)
    inside = hard_tokens(str(value)) if kind == "text" else ()
    return (norm_of(value, kind), *(token.norm for token in inside))


def _amount(value: object) -> Decimal | None:
    if kind_of(value) != "number":
        return None
    amount = Decimal(norm_of(value, "number").removeprefix("number:"))
    return amount if amount.is_finite() else None


def _fits(pattern: str, text: str) -> bool:
    return bool(matched((pattern,), (text,))[pattern])
