"""The user's words as the gate of a run reads them: before anything else, and again whenever the user says more.

Every value that the user has named counts, and a limit holds until it is lifted. An effect that was asked for and has
not been used stays asked for where the new words answer a question or agree; else they alone say what is to be done.
Source: spec/guard.md, section 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import get_args

from surefoot.core.gate.intent import read_words
from surefoot.core.gate.slots import Use, Words, fit_at
from surefoot.core.guard.ledger import used_effects, words_of
from surefoot.core.state.state import EMPTY, State
from surefoot.core.text.look import normal_text, places_in
from surefoot.core.text.words import late
from surefoot.types.config import LoopConfig
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.events import IntentAnchored
from surefoot.types.guard import ConstraintSet, IntentAnchor, SecurityConstraint
from surefoot.types.inner import Outer, Refused, Started
from surefoot.types.tools import Effect

_AGREES = late(r"\s*(?:{agrees})(?!\w)")
_TURNS_AWAY = late(r"\s*(?:{turns_away})(?!\w)")
_LIFTS = late("{lifts_limit}")


@dataclass(frozen=True, slots=True)
class HandOver:
    """What the gate of an agent is told by the run that asks it: the user's words as that has read them, if it has.

    `begun` is what that run has begun, which counts for its limits, `refused` what a person said no to there. `most` is
    the effect that the developer has declared for the agent.
    """

    outer: Outer
    anchor: IntentAnchor | None = None
    begun: tuple[Started, ...] = ()
    refused: Refused = Refused()
    most: Effect | None = None


def anchored(
    words: str, config: LoopConfig, today: str, before: State = EMPTY, over: HandOver | None = None
) -> tuple[IntentAnchored, ...]:
    """What the user's own words ask for, where the gate is on. Attachments are material and are not read.

    `before` is the run that they follow in a conversation. With `over` they are a model's, which has asked an agent.
    `today` is a day in ISO form. Source: spec/guard.md, section 3.2.
    """
    guard = config.guard
    if guard is None or guard.mode == "off":
        return ()
    if over is not None:
        said = over.anchor or read_words(over.outer.words, guard.lexicon)
        read = narrowed(said, read_words(words, guard.lexicon), over.most)
    elif before.task is None:
        read = read_words(words, guard.lexicon)
    else:
        earlier, gate = words_of(before), before.gate
        known = gate.known.words.anchor if gate is not None else read_words(earlier, guard.lexicon)
        used = used_effects(before) if gate is not None else known.effects_asked
        answer = getattr(before.ending, "answer", "") if before.ending is not None else "?"  # it is still at work on it
        read = read_turn(known, earlier, words, guard.lexicon, used=used, answer=answer)
    Words.of(read)  # kept for the fold, which runs on the loop
    anchored = IntentAnchored(read, today)
    return (anchored if over is None else replace(anchored, begun=over.begun, refused=over.refused),)


def read_turn(
    before: IntentAnchor,
    earlier: str,
    words: str,
    extra: Mapping[str, tuple[str, ...]],
    *,
    used: Set[Effect | None],
    answer: str,
) -> IntentAnchor:
    """The anchor of a conversation with one more turn of the user's; `before` is that of the `earlier` words.

    `used` are the effects of calls that were started since the last of them, `answer` what the model has said to them.
    """
    now, whole = read_words(words, extra), read_words(f"{earlier}\n\n{words}", extra)
    said = normal_text(words)
    is_question = any(sign in answer[-400:] for sign in "?？")  # at the end of an answer
    goes_on = not _TURNS_AWAY.match(said) and (is_question or _AGREES.match(said) is not None)
    open_still = before.effects_asked - used if goes_on else frozenset[Effect]()
    kept = (left for one in before.constraints.constraints if (left := _still_set(one, now, said)) is not None)
    mark = whole.words_sha256[:6]
    new = (replace(one, constraint_id=f"{one.constraint_id}.{mark}") for one in now.constraints.constraints)
    return replace(
        whole,
        effects_asked=now.effects_asked | open_still,
        cues=now.cues | before.cues if goes_on else now.cues,
        constraints=ConstraintSet((*kept, *new), before.constraints.source),
    )


_EFFECTS: tuple[Effect, ...] = get_args(Effect)


def narrowed(words: IntentAnchor, hand_over: IntentAnchor, most: Effect | None = None) -> IntentAnchor:
    """The anchor of an agent that another one has asked: what the user's words ask for, and the hand-over too.

    A model has written that, so it grants nothing and vouches for no value; what it forbids or limits holds. Nor is
    anything granted beyond `most`, the effect that the developer has declared for the agent.
    """
    effects = words.effects_asked & hand_over.effects_asked
    if most is not None:
        effects &= frozenset(_EFFECTS[: _EFFECTS.index(most) + 1])
    limits = (
        replace(one, constraint_id=f"{one.constraint_id}.{hand_over.words_sha256[:6]}")
        for one in hand_over.constraints.constraints
        if one.constraint_type != "allow"
    )
    known = words.constraints
    return replace(
        words,
        effects_asked=effects,
        cues=words.cues & hand_over.cues,
        constraints=replace(known, constraints=(*known.constraints, *limits)),
        sketch=None,
    )


def _still_set(one: SecurityConstraint, now: IntentAnchor, said: str) -> SecurityConstraint | None:
    """What is left of a limit after later words: another limit of that kind, or a word that there is none, lifts it.

    An order lifts what was forbidden for those alone whom it names; what is to be confirmed stays so.
    """
    condition, is_lifted = one.condition, _LIFTS.search(said) is not None
    if condition.max_amount is not None or condition.max_count is not None:
        others = (each.condition for each in now.constraints.constraints if each.condition.effect == condition.effect)
        kind = (condition.max_amount is None, condition.max_count is None)
        is_replaced = any((other.max_amount is None, other.max_count is None) == kind for other in others)
        return None if is_replaced or is_lifted else one
    if one.constraint_type == "allow":
        return None if is_lifted or not (condition.allowed_targets or condition.except_targets) else one
    if one.constraint_type != "forbid":
        return one
    if not condition.forbidden_targets:
        return None if is_lifted or condition.effect in now.effects_asked else one
    left = tuple(n for n in condition.forbidden_targets if not _is_ordered(normal_text(n), condition.effect, now))
    return replace(one, condition=replace(condition, forbidden_targets=left)) if left else None


def _is_ordered(name: str, effect: Effect | None, now: IntentAnchor) -> bool:
    """Whether the words order an effect, or any, for what is called so: "mail Eve", and not "mail Bob about Eve"."""
    wanted = "either" if effect in ("write", "delete") else "to"
    for clause in now.clauses:
        use = Use(frozenset({effect} if effect is not None else clause.effects - {"read"}), frozenset())
        fits = (fit_at(clause, at, use, wanted, at + len(name)) for at in places_in(clause.text, name))
        if use.effects and "yes" in fits:
            return True
    return False
