"""The reasoners by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from surefoot.core.loop import dual, mono, once, react
from surefoot.core.state.state import State
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.moves import Record, Think
from surefoot.types.reply import Parsed


class Reasoner(Protocol):
    """A pure module that answers three questions; it keeps nothing. Source: spec/reasoners.md, section 5."""

    def speaker(self, state: State) -> Think | Record:
        """Who speaks next, and for what; or that it is over, and how. Asked only while nothing is open."""
        ...

    def view(self, state: State, think: Think) -> ModelRequest:
        """What that speaker sees. The request lacks only settings, which are the runtime's."""
        ...

    def read(self, state: State, think: Think, message: ModelMessage) -> Parsed:
        """What the reply is to be read as."""
        ...


def read(state: State, think: Think, message: ModelMessage) -> Parsed:
    """What the reply is to be read as, with a warning where its text had to be mended."""
    parsed = REASONERS[state.reasoner].read(state, think, message)
    return replace(parsed, warnings=parsed.warnings | {"invalid_text_replaced"}) if message.mended else parsed


REASONERS: dict[str, Reasoner] = {"react": react, "mono": mono, "dual": dual, "once": once}

CHOICES = ("react", "mono", "dual", "plan")
"""Those that an agent can have; the other drives the calls of a single reply."""
