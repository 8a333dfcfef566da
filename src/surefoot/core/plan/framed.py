"""How texts that are not the user's, the developer's or our own stand in what a model of planning reads.

They stand between marks that name source and trust, with the run's nonce in them, whether there is a gate or not.
Source: spec/planning.md, section 9.
"""

from __future__ import annotations

import re

from surefoot.core.gate.perception import Frame, key_of, nonce_of
from surefoot.core.plan.dag import Planning
from surefoot.core.state import State
from surefoot.core.told import attribute, plain
from surefoot.types.tools import Trust

_NAME = re.compile(r"[A-Za-z0-9_./-]{1,64}")
_UNSHOWN = "(a name that is not shown)"


def framed(state: State, text: str, source: str, trust: Trust, most: int) -> str:
    """A text as data that cannot end its frame, the first `most` bytes of it."""
    gate = state.gate
    masks = gate.masks.get(key_of(text), ()) if gate is not None and gate.masks else ()
    frame = Frame(nonce_of(state.run_id), masks)
    return frame.around(clipped(plain(frame.cleaned(text)), most), attribute(frame.cleaned(source)), trust)


def trust_of_words(planning: Planning) -> Trust:
    """The trust of what models have proposed in this run so far."""
    return "untrusted" if planning.has_read else "trusted"


def clipped(text: str, most: int) -> str:
    """A text cut to so many bytes, with a line that says so."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= most:
        return text
    return f"{raw[:most].decode('utf-8', 'ignore')} … [cut: {len(text)} characters in all]"


def named(name: str) -> str:
    """A name that a model may have made up, where it reads as a name; anything else could be a sentence."""
    return name if is_name(name) else _UNSHOWN


def is_name(text: str) -> bool:
    """Whether a text reads as a name, and not as a sentence."""
    return _NAME.fullmatch(text) is not None
