"""The gate around a run: the user's intent is anchored before anything else, and a person's word is put on record.

Source: spec/guard.md, sections 3.2 and 4.9.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime

from surefoot.core.guard.anchor import HandOver, anchored
from surefoot.core.guard.ledger import words_of
from surefoot.core.guard.resume import guard_of, stricter
from surefoot.core.state.state import EMPTY, State
from surefoot.runtime.ask import stage_templates
from surefoot.runtime.task_plan import bounded
from surefoot.types.config import LoopConfig
from surefoot.types.errors import ConfigError
from surefoot.types.events import Event, IntentAnchored
from surefoot.types.inner import MADE_BEFORE

MOST_ON_THE_LOOP = 4_096
"""Characters of the words that are read at once; longer ones are read in a thread, so that other runs go on."""


async def anchor(
    words: str, config: LoopConfig, before: State = EMPTY, over: HandOver | None = None
) -> tuple[Event, ...]:
    """What the user's own words ask for, where the gate is on. Attachments are material and are not read.

    `before` is the run that they follow in a conversation. With `over` they are a model's, which has asked an agent.
    """
    size = len(words) + sum(len(one.task.text) for one in before.exchanges) + (len(over.outer.words) if over else 0)
    if size > MOST_ON_THE_LOOP:
        return await asyncio.to_thread(anchored, words, config, today(), before, over)
    return anchored(words, config, today(), before, over)


def today() -> str:
    """The day here, in ISO form."""
    return datetime.now().astimezone().date().isoformat()


def config_taken(state: State, config: LoopConfig | None, own: LoopConfig) -> LoopConfig | None:
    """The configuration with which a run is taken up, None where it stays; guard and output of whoever does it count.

    Raises `ConfigError` for a guard that needs a model: the templates for that are put on record when a run begins.
    """
    given = config or state.config
    if own.output_schema is not None and given.output_schema != own.output_schema:
        given = replace(given, output_schema=own.output_schema)
    guard = stricter(given.guard, own.guard)
    taken = guard_of(state, replace(given, guard=guard))
    if state.task is not None and not stage_templates(taken).keys() <= state.prompts.keys():
        raise ConfigError("guard", taken, "a run begun without it takes no guard that asks a model; begin it anew")
    if config is None and given is state.config and taken == state.config.guard:
        return None
    return bounded(replace(given, guard=guard), state.reasoner, state.planning)


async def anchor_late(state: State, config: LoopConfig | None, over: HandOver | None = None) -> tuple[Event, ...]:
    """The user's words, for a run that is taken up and in which they were not read before.

    It was cut off before, or had no guard and is given one with `config`. One in which they were read is told what the
    run that asks it has begun since then.
    """
    if (gate := state.gate) is not None and over is not None:
        known = tuple(one for one in gate.started if one.call_id.startswith(MADE_BEFORE))
        told = IntentAnchored(gate.known.words.anchor, gate.known.today, begun=over.begun, refused=over.refused)
        return (told,) if known != over.begun or gate.with_noes(over.refused) != gate else ()
    if gate is not None or state.task is None:
        return ()
    words = state.task.text if state.earlier or state.outer else words_of(state)
    over = over or (HandOver(state.outer) if state.outer is not None else None)
    return await anchor(words, replace(state.config, guard=guard_of(state, config)), over=over)
