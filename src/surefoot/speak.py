"""Saying something to a run: an answer to what it asks, more of the user's words, or that it is to end.

A word goes into the inbox of its run. Whoever drives the run hears it there; where nobody does, whoever speaks does so
for a moment. Source: spec/serving.md, section 6.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Generic, assert_never, get_args

from surefoot.core.guard.anchor import HandOver
from surefoot.core.loop.fold import fold
from surefoot.core.loop.inbox import Said, asked_in, digest_of_call, events_of
from surefoot.core.loop.moves import standing
from surefoot.core.plan.accept import waiting
from surefoot.core.plan.child import open_calls, owner_of
from surefoot.core.state.state import Call, State
from surefoot.delegate import check_taken_up, inner_ids, late, look_inside
from surefoot.run import Opened, Out, Out_co, Run, id_of, inner_run, state_of
from surefoot.runtime.act import call_key
from surefoot.runtime.output import Shape
from surefoot.runtime.start import today
from surefoot.tools.call import is_running
from surefoot.types.config import LoopConfig
from surefoot.types.errors import AnswerLate, RunBusy, UsageError
from surefoot.types.events import DriverChanged, Event, JournalOrigin, Outcome
from surefoot.types.inner import CallPaused
from surefoot.types.ports import Claimed, JournalStore, RunJournal
from surefoot.types.settings import choice, text
from surefoot.types.words import Approve, Cancel, Note, Posted, Problem, Refuse, Resume, Settle, Sign, Word

WAIT_S = 2.0
"""For how long whoever speaks waits until a run that somebody drives has heard it, in seconds."""

_LOOK_S = 0.05


async def speak(store: JournalStore, run_id: str, word: Word, *, key: str = "", wait_s: float = WAIT_S) -> Posted:
    """Say something to a run, and what came of it; "" where it is driven elsewhere and has not got to it in time.

    That a run is to go on is heard by whoever takes it up. A word counts once, whatever happens to this process from
    here on. Raises `UsageError` for an unknown run, a word without a name to it, and a `key` that another word had.
    """
    for name in ("by", "text", "reason"):
        text(name, getattr(word, name, ""))
    if not word.by.strip():
        raise UsageError("say who decides this: give `by`")
    if isinstance(word, Approve | Refuse) and not word.calls:
        raise UsageError("give the ids of the calls; `Run.waiting` has them")
    posted = await store.say(run_id, word, key=key)
    until = time.monotonic() + wait_s
    while not posted.outcome and not isinstance(word, Resume):
        try:
            journal = await store.open(run_id)
        except RunBusy:
            if time.monotonic() > until:
                return posted
            await asyncio.sleep(_LOOK_S)
        else:
            async with Opened(journal, store) as opened:
                state = await catch_up(store, journal, fold(await journal.read()))
                opened.leave(Run.of(state))
        posted = await store.posted(run_id, posted.number)
    return posted


async def catch_up(store: JournalStore, journal: RunJournal, state: State) -> State:
    """Hear what was said to a run that is opened and at rest; its state then.

    A word to go on waits for whoever resumes the run.
    """
    events, heard = await hear(store, journal, state, goes_on=False)
    if heard:
        await journal.append(events, "written", heard=heard)
    return fold(events, state)


async def at_rest(opened: Opened, words: Sequence[Posted], run: Run[Out]) -> Run[Out]:
    """A run that is left as it stands; words that it is to go on have been heard with that."""
    if words:
        await opened.journal.append((), "written", heard=words)
    return opened.leave(run)


async def state_now(
    store: JournalStore,
    run_id: str,
    opened: Opened,
    over: HandOver | None = None,
    origin: JournalOrigin = "own",
    *,
    claimed: Claimed | None = None,
    by: str = "",
) -> tuple[State, Sequence[Posted]]:
    """A run that was opened, once it has heard what was said to it and to the runs of agents that it has asked.

    And the words that it is to go on, which are heard once it does. Questions that nobody has answered in time are
    refused. The run of an agent goes on within the one that has asked it, which hands `over`. One that a worker, `by`,
    has `claimed` says so where something was under way: whoever drove it finds its place taken. Raises `UsageError` for
    one that cannot go on.
    """
    state = fold(await opened.journal.read())
    if state.task is None:
        raise UsageError(f"run {run_id!r} has no records, so there is nothing to resume; start it again")
    check_taken_up(state, run_id, over)
    if claimed is not None and (claimed.is_takeover or any(call.attempts for _, call in open_calls(state))):
        await opened.journal.append(changed := (DriverChanged(by, claimed.fence),), "written")
        state = fold(changed, state)
    state = await catch_up(store, opened.journal, state)
    no = await look_inside(store, state, origin)
    no += late(state, (await store.read_recorded(run_id))[0]) if standing(state) else ()
    if no:
        await opened.journal.append(no, "written")
    words = [one for one in await opened.journal.words() if isinstance(one.word, Resume)]
    return fold(no, state), [replace(one, outcome="applied") for one in words]


async def hear(
    store: JournalStore,
    journal: RunJournal,
    state: State,
    is_thinking: bool = False,
    acting: Collection[str] = (),
    *,
    goes_on: bool = True,
) -> tuple[Sequence[Event], Sequence[Posted]]:
    """What was said to a run and was not heard yet: as events, and the words with what came of them.

    While a model is asked, what the user adds waits for the next request. What becomes of calls under way (`acting`)
    nobody can say: they will.
    """
    left = (*((Note,) if is_thinking else ()), *(() if goes_on else (Resume,)))
    posted = [one for one in await journal.words() if not isinstance(one.word, left)]
    if not posted:
        return (), ()
    is_answer = any(isinstance(one.word, Approve | Refuse | Settle) for one in posted)  # nothing else needs the records
    asked = asked_in((await store.read_recorded(journal.run_id))[0] if is_answer else ())
    events: list[Event] = []
    heard: list[Posted] = []
    for one in posted:
        said = await _inside(store, one.word, state)
        if said is None:
            said = events_of(one.word, state, asked, time.time(), today())
        if isinstance(one.word, Settle) and not said.problem:
            said = _checked(state, one.word, said, acting)
        events += said.events
        state = fold(said.events, state)
        at = state.seen - 1 if said.events else -1
        heard.append(replace(one, outcome=said.problem or "applied", detail=said.detail, seq=at))
    return events, heard


def _checked(state: State, word: Settle, said: Said, acting: Collection[str]) -> Said:
    """A call under way is not in doubt; and that one took no effect cannot be said while it still runs here."""
    call = owner_of(state, word.call_id).state.call(word.call_id)
    if call is not None and call.id in acting:
        return _no(state, "not_waiting", f"call {call.id!r} does not wait for a person: it is under way")
    if call is None or word.outcome != "not_done" or not is_running(call_key(state, call)):
        return said
    return Said(problem="invalid", detail=f"call {call.id!r} still runs in this process; settle it once it has ended")


def _no(state: State, problem: Problem, detail: str) -> Said:
    return Said(problem=problem, detail=f"run {state.run_id}: {detail}")


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
    told = ", ".join(call_id for call_id, _ in named)
    if "/" not in told:
        return None
    outer_ids = {call_id.partition("/")[0] for call_id, _ in named}
    owner = owner_of(state, min(outer_ids))
    call = owner.state.call(min(outer_ids))
    if len(outer_ids) > 1:
        return _no(state, "invalid", f"{told}: answer the questions of one agent at a time")
    if call is None or call.inner is None or not call.is_open:
        return _no(state, "not_waiting", f"{told}: no agent is waiting there")
    inner_id = call.inner.run_id
    there = {one.id: one for one in waiting(await state_of(store, inner_id))}
    shown = {one.id: one for one in call.asks}
    inside: list[tuple[str, str]] = []
    for call_id, digest in named:
        one, its_own = shown.get(call_id), there.get(call_id.partition("/")[2])
        if one is None or its_own is None:
            return _no(state, "not_waiting", f"call {call_id!r} does not wait for a person")
        if (one.name, one.arguments) != (its_own.name, its_own.arguments) or digest not in ("", digest_of_call(one)):
            return _no(state, "changed", f"call {call_id!r} is not the one that was shown; look at it again")
        inside.append((its_own.id, digest_of_call(its_own)))
    of = {"call_id": inside[0][0], "digest": inside[0][1]} if isinstance(word, Settle) else {"calls": tuple(inside)}
    posted = await speak(store, inner_id, replace(word, **of))
    if posted.outcome and posted.outcome != "applied":
        return _no(state, posted.outcome, f"{told}: {posted.detail}")
    now = inner_run(await state_of(store, inner_id), call)
    return Said(owner.wrap((CallPaused(call.id, now, state.elapsed_s, by=word.by),)))


CallIds = str | Call | Sequence[str | Call]
"""Calls by their ids, taken as they stand now; or those of `Run.waiting`, of which a word counts only for these."""


def _named(calls: CallIds) -> tuple[tuple[str, str], ...]:
    """Calls as a word names them. Raises `ConfigError` for what is neither a call nor the id of one."""
    several = calls if isinstance(calls, Iterable) and not isinstance(calls, str) else (calls,)
    named = [(one.id, digest_of_call(one)) if isinstance(one, Call) else (one, "") for one in several]
    for call_id, _ in named:
        text("call_id", call_id)
    return tuple(dict.fromkeys(named))


class Voice(Generic[Out_co]):
    """What a person may say to the runs of an agent, or of a journal: `run_id` is a run or its id, `by` is a name."""

    config: LoopConfig
    _store: JournalStore
    _shape: Shape[Out_co] | None

    def __init__(self, store: JournalStore) -> None:
        self.config, self._store, self._shape = LoopConfig(), store, None

    async def settle(
        self, run_id: str | Run, call_id: str | Call, outcome: Outcome, *, by: str, result: str = ""
    ) -> Run[Out_co]:
        """Say what became of a call in doubt: "done" (with `result`), "not_done" (it runs again), or "abandoned".

        Raises `UsageError` for "not_done" while the call still runs in this process.
        """
        choice(*get_args(Outcome))("outcome", outcome)
        text("result", result)
        ((named, digest),) = _named((call_id,))
        if len(result) > (most := self.config.tool_result_chars):
            raise UsageError(f"the result has {len(result)} characters; give at most {most}")
        return await self._say(run_id, Settle(named, outcome, by, result, digest))

    async def approve(self, run_id: str | Run, call_id: CallIds, *, by: str) -> Run[Out_co]:
        """Allow a call that waits for a person, exactly as it is, or sign the plan ("plan"). `by` is their name.

        Of a question about several calls (`Run.questions`), give the ids of those that may run. Raises `AnswerLate`
        when it has waited longer than `GuardConfig.approval_timeout_s`, which is a no.
        """
        return await self._say(run_id, Approve(_named(call_id), by))

    async def refuse(self, run_id: str | Run, call_id: CallIds, *, by: str, reason: str = "") -> Run[Out_co]:
        """Refuse calls that wait; the model reads the reason. Of a plan, it asks for another."""
        return await self._say(run_id, Refuse(_named(call_id), by, reason))

    async def note(self, run_id: str | Run, text: str, *, by: str) -> Run[Out_co]:
        """Add to what was said to a run that has not ended: it counts as the user's words, and the model reads it."""
        return await self._say(run_id, Note(text, by))

    async def cancel(self, run_id: str | Run, *, by: str) -> Run[Out_co]:
        """End a run, also one that is driven elsewhere; one that has ended stays as it is.

        Every open call is settled: as cancelled, or as in doubt where it was started and must not be repeated.
        """
        return await self._say(run_id, Cancel(by))

    async def _say(self, run: str | Run, word: Word) -> Run[Out_co]:
        """Say something to a run; how it stands then. Raises `UsageError` where the word does not count."""
        run_id = id_of(run)
        posted = await speak(self._store, run_id, word)
        if posted.outcome == "expired":
            raise AnswerLate(posted.detail)
        if posted.outcome not in ("", "applied") and not (posted.outcome == "ended" and isinstance(word, Cancel)):
            raise UsageError(posted.detail)
        records, _ = await self._store.read_recorded(run_id)
        return Run.of(fold(one.event for one in records), records[-1].event, self._shape)
