"""What a call must fit beside its own values: the sketch of the task, and results that were looked at.

Source: spec/guard.md, sections 3.3 and 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from surefoot.core.gate.asked import Asked, Word, classes_of
from surefoot.types.guard import EFFECT_OF


def conformance(call: Asked) -> Sequence[Word]:
    """An effect that no step of the sketch has; one that a step rules out, and none has, is refused."""
    sketch = call.known.words.anchor.sketch
    if sketch is None or not call.aim.is_effectful:
        return ()
    allowed = {EFFECT_OF[each] for step in sketch.steps for each in step.allowed_capabilities}
    if not classes_of(call.aim).isdisjoint(allowed):
        return ()
    ruled_out = {EFFECT_OF[each] for step in sketch.steps for each in step.forbidden_capabilities}
    if call.aim.effect.effect in ruled_out:
        told = "refused: the task as it was read rules this out; do what was asked"
        return (Word("conformance", "deny", told, "the task as it was read rules this out"),)
    told = "the task as it was read has no such step; finish what was asked, or ask the user"
    return (Word("conformance", "ask", told, "no step of the task, as it was read, does this"),)


def perception(call: Asked) -> Sequence[Word]:
    """A value from a result in which a model should have looked for orders, and has not."""
    unread = tuple(e for e in call.aim.evidence if e.source_id in call.known.degraded)
    if not unread:
        return ()
    told = "a value comes from a result that could not be checked; look it up elsewhere, or ask the user"
    return (Word("perception", "ask", told, "a value is from a result that could not be checked", unread),)
