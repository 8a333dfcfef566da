"""The moves that bring what a model is to know before it speaks. Loaded by runs that ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from surefoot.core.state import State
from surefoot.runtime.conventions import read_conventions
from surefoot.runtime.prefetch import find, hydrate
from surefoot.types.events import Event
from surefoot.types.moves import Find, Hydrate, ReadConventions

if TYPE_CHECKING:
    from surefoot.runtime.world import World


async def prepare(world: World, move: Find | Hydrate | ReadConventions, state: State) -> Sequence[Event]:
    """Make one of these moves."""
    match move:
        case Find():
            return await find(world, state)
        case Hydrate():
            return await hydrate(world, state)
        case ReadConventions(directory):
            return await read_conventions(world, directory, state)
        case _:
            assert_never(move)
