"""The reasoners by name: pure functions, which keep nothing. Source: spec/reasoners.md, section 5."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from surefoot.core.loop.read import read_alone, read_of_two, read_round, read_step
from surefoot.core.loop.slices import request, view_of_two
from surefoot.core.state.state import State
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.moves import Think
from surefoot.types.reply import Parsed


class Reasoner(NamedTuple):
    """What the next speaker sees, where only the runtime's settings lack, and what a reply is read as.

    Who speaks next, or that it is over, says `core/loop/speakers.py`.
    """

    view: Callable[[State, Think], ModelRequest]
    read: Callable[[State, Think, ModelMessage], Parsed]


REASONERS: dict[str, Reasoner] = {
    "react": Reasoner(request, read_alone),
    "mono": Reasoner(request, read_round),
    "dual": Reasoner(view_of_two, read_of_two),
    "once": Reasoner(request, read_step),
}

CHOICES = ("react", "mono", "dual", "plan")
"""Those that an agent can have; the other drives the calls of a single reply."""


def mended(parsed: Parsed) -> Parsed:
    """What a reply was read as, with the warning that its text had to be mended before."""
    return replace(parsed, warnings=parsed.warnings | {"invalid_text_replaced"})
