"""What the user, a configuration or a model has forbidden or limited, as predicates on a call.

An allow never lifts a forbid, and no reading of a text lifts either. Source: spec/guard.md, section 5.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Literal

from surefoot.core.gate.forms import holds, normal_text
from surefoot.core.gate.money import Sum, currencies_in, sums_of
from surefoot.core.gate.roles import leaves, role_of
from surefoot.core.gate.values import norm_of
from surefoot.types.dataclass import dataclass
from surefoot.types.guard import Condition, Evidence, Role, SecurityConstraint
from surefoot.types.tools import Effect, ToolSpec

_TARGETS = ("destination", "object")


@dataclass(frozen=True, slots=True)
class Started:
    """A call of this run that was started: what it was for, which sums it moved, and where to (`moved_by`).

    `ended` is its place in the order in which calls with a result have ended, 0 for one that is open.
    """

    call_id: str
    name: str
    effects: frozenset[Effect | None]
    digest: str
    amounts: tuple[Sum, ...] = ()
    is_open: bool = False
    moved: frozenset[tuple[Role, str]] = frozenset()
    ended: int = 0


def moved_by(spec: ToolSpec, arguments: Mapping[str, object]) -> frozenset[tuple[Role, str]]:
    """Where a call goes, on what it acts and how much it moves, in normal form: however it is spelled, it is that."""
    roles = ((role_of(path, value, spec), value) for path, value in leaves(arguments, spec))
    return frozenset((role, norm_of(value)) for role, value in roles if role in ("destination", "object", "amount"))


@dataclass(frozen=True, slots=True)
class Broken:
    """A constraint that the call breaks, and whether that refuses it or only needs a person's word."""

    constraint: SecurityConstraint
    verdict: Literal["ask", "deny"]
    why: str


def limits(
    constraints: Sequence[SecurityConstraint],
    name: str,
    effects: frozenset[Effect | None],
    evidence: Sequence[Evidence],
    started: Sequence[Started],
) -> tuple[Broken, ...]:
    """The constraints that a call breaks, the strongest first."""
    found: list[Broken] = []
    for constraint in sorted(constraints, key=lambda one: one.priority):
        condition = constraint.condition
        if _applies(condition, name, effects) and (broken := _broken(constraint, evidence, started)):
            found.append(broken)
    return tuple(found)


def _applies(condition: Condition, name: str, effects: frozenset[Effect | None]) -> bool:
    if condition.effect is not None and condition.effect not in effects:
        return False
    if condition.tool_name is not None and condition.tool_name != name:
        return False
    return condition.tool_name_pattern is None or fnmatchcase(name, condition.tool_name_pattern)


def _broken(constraint: SecurityConstraint, evidence: Sequence[Evidence], started: Sequence[Started]) -> Broken | None:
    condition = constraint.condition
    targets = [e for e in evidence if e.role in _TARGETS]
    said = constraint.violation_message or constraint.description
    if condition.max_amount is not None and (passes := _passes(condition, condition.max_amount, evidence, started)):
        return Broken(constraint, passes, said or f"more than {condition.max_amount:g} in this run")
    if condition.max_count is not None and _count(condition, started) >= condition.max_count:
        return Broken(constraint, "ask", said or f"more than {condition.max_count} such calls in this run")
    allowed = condition.allowed_targets
    if allowed and any(not _is_any(e, allowed) for e in targets):
        return Broken(constraint, "ask", said or f"only {', '.join(allowed)} was allowed")
    if constraint.constraint_type == "allow" or not _is_aimed_at(condition, targets):
        return None
    if condition.max_amount is not None or condition.max_count is not None or allowed:
        return None  # it limits, and the limit is kept
    return Broken(constraint, "deny" if constraint.constraint_type == "forbid" else "ask", said)


def _is_aimed_at(condition: Condition, targets: Sequence[Evidence]) -> bool:
    """Whether the call has a target that the condition is about; one without targets is about every call."""
    meant = (*condition.forbidden_targets, *((condition.target,) if condition.target else ()))
    if condition.except_targets:
        return not targets or any(not _is_any(e, condition.except_targets) for e in targets)
    if condition.target_pattern is not None:
        return any(fnmatchcase(normal_text(e.value), normal_text(condition.target_pattern)) for e in targets)
    return not meant or any(_is_any(e, meant) for e in targets)


def _is_any(evidence: Evidence, names: Sequence[str]) -> bool:
    """Whether a target is one of the names: the same value, or a text that holds the name in whole words."""
    text, norm = normal_text(evidence.value), norm_of(evidence.value)
    return any(norm == norm_of(name) or (evidence.kind == "text" and holds(text, normal_text(name))) for name in names)


def _count(condition: Condition, started: Sequence[Started]) -> int:
    return sum(_applies(condition, one.name, _may_be(condition, one)) for one in started)


def _may_be(condition: Condition, one: Started) -> frozenset[Effect | None]:
    """The effects of a call that was started; one of which nobody knows any may have the one that is limited."""
    return frozenset({*one.effects, condition.effect}) if None in one.effects else one.effects


def _passes(
    condition: Condition, limit: float, evidence: Sequence[Evidence], started: Sequence[Started]
) -> Literal["ask", "deny"] | None:
    """Whether the call takes the sum of the run over its limit; where that cannot be told, a person has to."""
    ours = sums_of((_name(e), e.role, e.value) for e in evidence)
    if not ours:
        return None
    counted = [a for one in started if _applies(condition, one.name, _may_be(condition, one)) for a in one.amounts]
    meant = currencies_in(condition.currency or "")
    alike = [one for one in (*counted, *ours) if not meant or not one.currencies or one.currencies & meant]
    read = [(one.amount, one.times) for one in alike if one.amount is not None]
    most = Decimal(str(limit))
    if sum((amount for amount, _ in read), Decimal(0)) > most:
        return "deny"
    is_sure = len(read) == len(counted) + len(ours)
    return None if is_sure and sum((amount * times for amount, times in read), Decimal(0)) <= most else "ask"


def _name(evidence: Evidence) -> str:
    """What a leaf is called; an element of a list is called like its list."""
    return next((part for part in reversed(evidence.path.split("/")) if not part.isdigit()), "")
