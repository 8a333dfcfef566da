"""The user's words as the gate of a run reads them: before anything else, and again whenever the user says more."""

from __future__ import annotations

from surefoot.core.gate.conversation import narrowed, read_turn
from surefoot.core.gate.intent import read_words
from surefoot.core.gate.slots import Words
from surefoot.core.guard.ledger import used_effects, words_of
from surefoot.core.state.state import EMPTY, State
from surefoot.types.config import LoopConfig
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.events import IntentAnchored
from surefoot.types.guard import IntentAnchor
from surefoot.types.inner import Outer, Refused, Started
from surefoot.types.tools import Effect


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
