"""Saying something to a run: an answer to what it asks, more of the user's words, or that it is to end.

A word goes into the inbox of its run. Whoever drives the run hears it there; where nobody does, whoever speaks does so
for a moment. Source: spec/serving.md, section 6.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from surefoot.core.loop.fold import fold
from surefoot.core.loop.words import Said, asked_in, digest_of_call, events_of, waiting_calls
from surefoot.core.plan.child import owner_of
from surefoot.core.state.state import State
from surefoot.delegate import inner_ids
from surefoot.run import Opened, Run, inner_run, state_of
from surefoot.runtime.act import call_key
from surefoot.runtime.approvals import today
from surefoot.tools.call import is_running
from surefoot.types.errors import RunBusy, UsageError
from surefoot.types.events import Event
from surefoot.types.inner import CallPaused
from surefoot.types.ports import JournalStore, RunJournal
from surefoot.types.words import Approve, Cancel, Note, Posted, Refuse, Resume, Settle, Sign, Word

WAIT_S = 2.0
"""For how long whoever speaks waits until a run that somebody drives has heard it, in seconds."""

_LOOK_S = 0.05


async def speak(store: JournalStore, run_id: str, word: Word, *, key: str = "", wait_s: float = WAIT_S) -> Posted:
    """Say something to a run, and what came of it; "" where it is driven elsewhere and has not got to it in time.

    It counts once, whatever happens to this process from here on. Raises `UsageError` for an unknown run, a word
    without a name to it, and a `key` that another word had.
    """
    if not word.by.strip():
        raise UsageError("say who decides this: give `by`")
    if isinstance(word, Approve | Refuse) and not word.calls:
        raise UsageError("name the calls that are meant; `Run.waiting` has their ids")
    posted = await store.say(run_id, word, key=key)
    until = time.monotonic() + wait_s
    while not posted.outcome:
        try:
            journal = await store.open(run_id)
        except RunBusy:
            if time.monotonic() > until:
                return posted
            await asyncio.sleep(_LOOK_S)
        else:
            async with Opened(journal) as opened:
                state = fold(await journal.read())
                await catch_up(store, opened, state)
        posted = await store.posted(run_id, posted.number)
    return posted


async def catch_up(store: JournalStore, opened: Opened, state: State) -> State:
    """Hear what was said to a run that is opened and at rest; its state then."""
    events, heard = await hear(store, opened.journal, state)
    if heard:
        await opened.journal.append(events, "written", heard=heard)
        state = fold(events, state)
    opened.left(Run.of(state, events[-1] if events else None))
    return state


async def hear(
    store: JournalStore, journal: RunJournal, state: State, is_thinking: bool = False
) -> tuple[Sequence[Event], Sequence[Posted]]:
    """What was said to a run and was not heard yet: as events, and the words with what came of them.

    While a model is asked, what the user adds waits for the next request.
    """
    posted = [one for one in await journal.words() if not (is_thinking and isinstance(one.word, Note))]
    if not posted:
        return (), ()
    asked = asked_in((await store.read_recorded(journal.run_id))[0])
    events: list[Event] = []
    heard: list[Posted] = []
    for one in posted:
        said = await _inside(store, one.word, state)
        if said is None:
            said = events_of(one.word, state, asked, time.time(), today())
        if isinstance(one.word, Settle) and not said.problem and one.word.outcome == "not_done":
            said = _checked(state, one.word, said)
        events += said.events
        state = fold(said.events, state)
        at = state.seen - 1 if said.events else -1
        heard.append(replace(one, outcome=said.problem or "applied", detail=said.detail, seq=at))
    return events, heard


def _checked(state: State, word: Settle, said: Said) -> Said:
    """That a call took no effect cannot be said while it still runs in this process."""
    call = owner_of(state, word.call_id).state.call(word.call_id)
    if call is None or not is_running(call_key(state, call)):
        return said
    return Said(problem="invalid", detail=f"call {call.id!r} still runs in this process; settle it once it has ended")


async def _inside(store: JournalStore, word: Word, state: State) -> Said | None:
    """A word that is for the run of an agent that this one has asked; None for any other."""
    match word:
        case Cancel():
            for inner_id in inner_ids(state):
                if inner_id in await store.beginning(inner_id, 1):  # it had begun
                    await speak(store, inner_id, word)
            return None
        case Approve(calls) | Refuse(calls):
            named = calls
        case Settle(call_id, digest=digest):
            named = ((call_id, digest),)
        case Note() | Resume() | Sign():
            return None
        case _:
            assert_never(word)
    outer_ids = {call_id.partition("/")[0] for call_id, _ in named}
    if not any("/" in call_id for call_id, _ in named):
        return None
    told = ", ".join(call_id for call_id, _ in named)
    owner = owner_of(state, min(outer_ids))
    call = owner.state.call(min(outer_ids))
    if len(outer_ids) > 1:
        return Said(
            problem="invalid", detail=f"run {state.run_id}: {told}: answer the questions of one agent at a time"
        )
    if call is None or call.inner is None or not call.is_open:
        return Said(problem="not_waiting", detail=f"run {state.run_id}: {told}: no agent waits there")
    inner_id = call.inner.run_id
    there = {one.id: one for one in waiting_calls(await state_of(store, inner_id))}
    shown = {one.id: one for one in call.asks}
    inside: list[tuple[str, str]] = []
    for call_id, digest in named:
        one, its_own = shown.get(call_id), there.get(call_id.partition("/")[2])
        if one is None or its_own is None:
            return Said(
                problem="not_waiting", detail=f"run {state.run_id}: call {call_id!r} does not wait for a person"
            )
        if (one.name, one.arguments) != (its_own.name, its_own.arguments) or digest not in ("", digest_of_call(one)):
            told = f"run {state.run_id}: call {call_id!r} is not the one that was shown; look at it again"
            return Said(problem="changed", detail=told)
        inside.append((its_own.id, digest_of_call(its_own)))
    inner = (
        replace(word, call_id=inside[0][0], digest=inside[0][1])
        if isinstance(word, Settle)
        else replace(word, calls=tuple(inside))
    )
    posted = await speak(store, inner_id, inner)
    if posted.outcome and posted.outcome != "applied":
        return Said(problem=posted.outcome, detail=f"run {state.run_id}: {told}: {posted.detail}")
    now = inner_run(await state_of(store, inner_id), call)
    return Said(owner.told((CallPaused(call.id, now, state.elapsed_s, by=word.by),)))
