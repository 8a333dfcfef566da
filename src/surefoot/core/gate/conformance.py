"""What a call must fit beside its own values: the sketch of the task, and results that were looked at.

Source: spec/guard.md, sections 3.3 and 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from surefoot.core.gate.asked import Asked, Word, classes_of
from surefoot.core.gate.origins import GOOD
from surefoot.core.gate.sinks import quotes
from surefoot.types.guard import EFFECT_OF, Evidence


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
    if not call.known.degraded:
        return ()
    unread = tuple(found for e in call.aim.evidence if (found := _unread(call, e)) is not None)
    if not unread:
        return ()
    told = "a value comes from a result that could not be checked; look it up elsewhere, or ask the user"
    return (Word("perception", "ask", told, "a value is from a result that could not be checked", unread),)


def _unread(call: Asked, evidence: Evidence) -> Evidence | None:
    """A value that such a result holds, or a text that quotes one, with the result as its source; else None."""
    if evidence.source_id in call.known.degraded:
        return evidence
    if evidence.role != "content" or evidence.origin in GOOD:
        return None
    unread = (one for one in reversed(call.known.sources) if one.call_id in call.known.degraded)
    source = next((one for one in unread if quotes(evidence.value, one)), None)
    if source is None:
        return None
    return replace(evidence, source_id=source.call_id, note=f"it quotes what {source.name} gave, which was not checked")
