"""What a model reads in the user's words, joined to what the rules read: it limits, and hardly ever opens.

Forbids, limits and questions of a model are added to those of the rules. An effect that the rules missed counts as
asked for only with words of the user's that the model quotes, outside of what they negate. A target must stand in the
words. What does not is dropped and counted. Source: spec/guard.md, section 3.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast, get_args

from surefoot.core.gate.forms import holds, normal_text
from surefoot.core.gate.record import BY_MODEL
from surefoot.core.gate.words import unnegated
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.guard import (
    AbstractSketch,
    AbstractStep,
    Capability,
    Condition,
    ConstraintSet,
    ConstraintType,
    IntentAnchor,
    SecurityConstraint,
)
from surefoot.types.tools import Effect

MOST_CONSTRAINTS = 12
MOST_STEPS = 8
LEAST_QUOTED = 3
"""Characters of the user's that a quote holds at least."""

RESPOND = AbstractStep("answer", "RESPOND", allowed_capabilities=("REASONING",))
"""The step in which every sketch ends."""

_TARGETS = ("allowed_targets", "forbidden_targets", "except_targets")
_Text = {"type": "string"}
_Texts = {"type": "array", "items": _Text, "maxItems": 8}


def constraints_schema(effects: Sequence[Effect]) -> dict[str, object]:
    """What a reply about constraints has to be, where these effects are in use."""
    condition = {
        "effect": {"enum": [*effects]},
        **dict.fromkeys(_TARGETS, _Texts),
        "max_amount": {"type": "number"},
        "max_count": {"type": "integer"},
    }
    one = {
        "constraint_type": {"enum": [*get_args(ConstraintType)]},
        "condition": {"type": "object", "properties": condition, "additionalProperties": False},
        "quote": _Text,
        "description": _Text,
    }
    return _object({"constraints": _list(one, ("constraint_type", "condition", "quote"), MOST_CONSTRAINTS)})


def sketch_schema() -> dict[str, object]:
    """What a reply with a sketch has to be."""
    capabilities = {"type": "array", "items": {"enum": [*get_args(Capability)]}, "maxItems": 4}
    one = {
        "step_type": _Text,
        "allowed_capabilities": capabilities,
        "forbidden_capabilities": capabilities,
        "description": _Text,
    }
    return _object({"steps": _list(one, ("step_type", "allowed_capabilities"), MOST_STEPS)})


def _object(properties: Mapping[str, object]) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _list(one: Mapping[str, object], required: Sequence[str], most: int) -> dict[str, object]:
    item = {"type": "object", "properties": one, "required": [*required], "additionalProperties": False}
    return {"type": "array", "items": item, "maxItems": most}


@dataclass(frozen=True, slots=True)
class Read:
    """An anchor with what a model has read in the words; `dropped` counts what of it does not stand in them."""

    anchor: IntentAnchor
    dropped: int = 0


def with_constraints(anchor: IntentAnchor, words: str, reply: Mapping[str, object]) -> Read:
    """The anchor with the constraints of a reply that fits `constraints_schema`."""
    said, whole = unnegated(words), normal_text(words)
    effects = set(anchor.effects_asked)
    kept: list[SecurityConstraint] = []
    given = cast("list[Mapping[str, object]]", reply["constraints"])  # as the schema has it
    for number, one in enumerate(given, 1):
        kind = cast("ConstraintType", one["constraint_type"])
        condition = _condition(cast("Mapping[str, object]", one["condition"]))
        if not _stands(condition, whole) or not _says_something(condition):
            continue
        quote = normal_text(str(one["quote"]))
        if kind == "allow":
            is_quoted = len(quote) >= LEAST_QUOTED and holds(said, quote)
            if condition.effect is None or condition.forbidden_targets or not is_quoted:
                continue
            effects.add(condition.effect)
        told = str(one.get("description") or one["quote"])[:200]
        kept.append(SecurityConstraint(f"{BY_MODEL}{number}", kind, f"as a model reads the words: {told}", condition))
    known = anchor.constraints.constraints
    said_before = {(one.constraint_type, one.condition) for one in known if one.constraint_id.startswith(BY_MODEL)}
    new = [one for one in kept if (one.constraint_type, one.condition) not in said_before]
    first = 1 + sum(one.constraint_id.startswith(BY_MODEL) for one in known)
    if said_before:
        new = [replace(one, constraint_id=f"{BY_MODEL}{number}") for number, one in enumerate(new, first)]
    joined = ConstraintSet((*known, *new), anchor.constraints.global_rules, "merged")
    made = replace(anchor, effects_asked=frozenset(effects), constraints=joined, made_by="rules and model")
    return Read(made, len(given) - len(kept))


def _condition(given: Mapping[str, object]) -> Condition:
    allowed, forbidden, excepted = (tuple(cast("list[str]", given.get(name) or ())) for name in _TARGETS)
    return Condition(
        cast("Effect | None", given.get("effect")),
        allowed_targets=allowed,
        forbidden_targets=forbidden,
        except_targets=excepted,
        max_amount=cast("float | None", given.get("max_amount")),
        max_count=cast("int | None", given.get("max_count")),
    )


def _stands(condition: Condition, words: str) -> bool:
    targets = (*condition.allowed_targets, *condition.forbidden_targets, *condition.except_targets)
    return all(target.strip() and holds(words, normal_text(target)) for target in targets)


def _says_something(condition: Condition) -> bool:
    """Whether a constraint is about anything; what is always asked for is not forbidden as a whole."""
    return replace(condition, effect=None) != Condition() or condition.effect not in (None, "read")


def with_sketch(anchor: IntentAnchor, reply: Mapping[str, object]) -> IntentAnchor:
    """The anchor with the sketch of a reply that fits `sketch_schema`; without a step there is none."""
    given = cast("list[Mapping[str, object]]", reply["steps"])  # as the schema has it
    if not given:
        return anchor
    steps = tuple(
        AbstractStep(
            f"s{number}",
            str(one["step_type"])[:80],
            str(one.get("description") or "")[:200],
            _capabilities(one, "allowed_capabilities"),
            _capabilities(one, "forbidden_capabilities"),
        )
        for number, one in enumerate(given, 1)
    )
    return replace(anchor, sketch=AbstractSketch((*steps, RESPOND)), made_by="rules and model")


def _capabilities(
    step: Mapping[str, object], name: Literal["allowed_capabilities", "forbidden_capabilities"]
) -> tuple[Capability, ...]:
    return tuple(dict.fromkeys(cast("list[Capability]", step.get(name) or ())))
