"""The reasoners by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from surefoot.core.loop import dual, solo
from surefoot.core.loop.read import read_step
from surefoot.core.loop.slices import request
from surefoot.core.state.state import State
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.moves import Record, Think
from surefoot.types.reply import Parsed


class Reasoner(NamedTuple):
    """Three pure functions. Source: spec/reasoners.md, section 5.

    `speaker`: who speaks next, and for what; or that it is over, and how. Asked only while nothing is open. `view`:
    what that speaker sees; the request lacks only settings, which are the runtime's. `read`: what a reply is read as.
    """

    speaker: Callable[[State], Think | Record]
    view: Callable[[State, Think], ModelRequest]
    read: Callable[[State, Think, ModelMessage], Parsed]


def mended(parsed: Parsed) -> Parsed:
    """What a reply was read as, with the warning that its text had to be mended before."""
    return replace(parsed, warnings=parsed.warnings | {"invalid_text_replaced"})


REASONERS: dict[str, Reasoner] = {
    "react": Reasoner(solo.speaker, solo.view, solo.read),
    "mono": Reasoner(solo.mono_speaker, request, solo.mono_read),
    "dual": Reasoner(dual.speaker, dual.view, dual.read),
    "once": Reasoner(solo.once_speaker, request, read_step),
}

CHOICES = ("react", "mono", "dual", "plan")
"""Those that an agent can have; the other drives the calls of a single reply."""
