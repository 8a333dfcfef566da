"""How a run stands, for a protocol that gives one answer: once it does, in a sentence; and answers to its questions."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from hashlib import sha256
from typing import Any

from surefoot.server.answers import Problem, dumped
from surefoot.server.api import Asked
from surefoot.server.follow import until
from surefoot.server.say import cancellable, wait_until_heard
from surefoot.server.tales import Reading
from surefoot.telling.state import Question
from surefoot.telling.text import visible
from surefoot.types.ports import RunSummary
from surefoot.types.words import Approve, Cancel, Refuse

GOING = ("queued", "running", "ready", "interrupted")
"""How a run stands that needs nobody's word to go on."""
_LOOK_S = 0.25


async def stood(
    asked: Asked[Any, Any],
    run: RunSummary,
    within_s: float = float("inf"),
    past: int = -1,
    *,
    goes_on: bool = False,
    stands: bool = False,
) -> RunSummary:
    """The run once it stands (or also while it `goes_on`) and has more than `past` records.

    With `stands`, one that stands and has no more is given, too. As it is by then where that takes longer, where
    whoever asks has gone, or where this server leaves.
    """
    site, end, wake = asked.site, time.monotonic() + within_s, asyncio.Event()
    with site.reader(wake):
        async with site.tails.of(run.run_id, run.events, wake):
            while True:
                wake.clear()
                run = await site.store.summary(run.run_id)
                left_s = end - time.monotonic()
                is_left = site.leaving.is_set() or await asked.request.is_disconnected()
                is_at_rest = run.status not in GOING
                has_more = run.events > past or (stands and is_at_rest and run.events == past)
                if ((goes_on or is_at_rest) and has_more) or left_s <= 0 or is_left:
                    return run
                await until(wake, min(left_s, _LOOK_S))


def link_to(asked: Asked[Any, Any], run: RunSummary) -> str:
    """Where a person sees a run, and answers what it asks."""
    return f"{asked.request.base_url}runs/{run.run_id}"


async def words_of(asked: Asked[Any, Any], run: RunSummary) -> str:
    """The answer of a run; of one that is not done, in a sentence, how it stands and where a person sees it."""
    tale = await asked.site.library.tale(Reading(asked.site.store, run.run_id), run.events)
    answer = visible(getattr(tale.state.ending, "answer", ""))
    if run.status == "completed":
        return answer
    return "\n\n".join((*([answer] if answer else []), sentence_of(asked, run)))


def sentence_of(asked: Asked[Any, Any], run: RunSummary) -> str:
    """How a run that is not done stands, and where a person sees it."""
    if run.status == "paused":
        said = "The run waits for a person's decision"
    elif run.status in GOING:
        said = "The run has not ended yet"
    else:
        said = f"The run ended as {run.status}, {visible(run.reason)}".rstrip(", ")
    return f"{said}: {link_to(asked, run)}"


async def asks_of(asked: Asked[Any, Any], run: RunSummary) -> dict[str, Question]:
    """What the run asks that is answered by yes or no, each under a name for exactly what is asked now."""
    waiting = await asked.site.library.waiting(run, Reading(asked.site.store, run.run_id), run.events)
    return {f"{one.digest}:{one.asked_at:.3f}:{one.call}": one for one in waiting if one.about != "in_doubt"}


async def answer(asked: Asked[Any, Any], run: RunSummary, name: str, via: str, reason: str, *, is_yes: bool) -> bool:
    """Answer a question by its name; whether the run has heard it, which after a while it may not have.

    Raises `Problem`, also where the token may not answer, or another question waits now.
    """
    if "approve" not in asked.token.rights:
        raise Problem("forbidden", "answering needs the right `approve`")
    digest, _, rest = name.partition(":")
    call, by = rest.partition(":")[2], f"{asked.token.name} via {via}"
    if not digest or not call:
        raise Problem("invalid", "answer a question by the name under which it was asked")
    said = ((call, digest),)
    word = Approve(said, by, reason) if is_yes else Refuse(said, by, reason)
    key = sha256(dumped([via, name, word])).hexdigest()  # the same answer, given again, counts once
    posted, _ = await wait_until_heard(replace(asked, key=key), run, word)
    return bool(posted.outcome)


async def cancel(asked: Asked[Any, Any], run_id: str, via: str, reason: str = "") -> RunSummary:
    """End a run; how it stands then. Raises `Problem`, also for one that is over."""
    run = await cancellable(asked, run_id)
    await wait_until_heard(asked, run, Cancel(f"{asked.token.name} via {via}", reason))
    return await asked.site.store.summary(run.run_id)
