"""The hands of one run: ask its models, run its tools, ask their probes."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import assert_never

from surefoot.core.state.state import State
from surefoot.runtime.act import act, probe
from surefoot.runtime.ask import ask
from surefoot.runtime.think import think
from surefoot.runtime.world import World
from surefoot.types import moves
from surefoot.types.events import Event


class LiveHands(World):
    """Hands that touch the real world."""

    def do(self, move: moves.WorldMove, state: State) -> Awaitable[Sequence[Event]]:
        match move:
            case moves.Think():
                return think(self, move, state)
            case moves.Act(call_id):
                made = act(self, call_id, state)
                return made if self.spans is None else self.spans.inside(f"call {call_id}", made)
            case moves.Probe(call_id):
                return probe(self, call_id, state)
            case moves.Find() | moves.Hydrate() | moves.ReadConventions():
                from surefoot.runtime import fetch  # noqa: PLC0415  # its patterns take 40 ms to compile

                match move:
                    case moves.Find():
                        return fetch.find(self, state)
                    case moves.Hydrate():
                        return fetch.hydrate(self, state)
                    case moves.ReadConventions(directory):
                        return fetch.read_conventions(self, directory, state)
            case moves.Ask():
                return ask(self, move, state)
            case moves.Within() | moves.Shortlist() | moves.Wait() | moves.Evaluate():
                from surefoot.runtime.plan import plan_move  # noqa: PLC0415  # only a run with a plan pays for it

                return plan_move(self, move, state)
            case _:
                assert_never(move)
