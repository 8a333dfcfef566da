"""What a protocol that gives one answer says of a run: once it stands how it does, and where a person sees it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

from surefoot.server.api import Asked
from surefoot.server.records import Reading
from surefoot.telling.text import visible
from surefoot.types.ports import RunSummary

GOING = ("queued", "running", "ready", "interrupted")
"""How a run stands that needs nobody's word to go on."""
_LOOK_S = 0.25


async def stood(asked: Asked[Any, Any], run: RunSummary, within_s: float = float("inf")) -> RunSummary:
    """The run once it has ended or waits for a person.

    As it is by then where that takes longer, where whoever asks has gone, or where this server leaves.
    """
    site, until, wake = asked.site, time.monotonic() + within_s, asyncio.Event()
    with site.reader(wake):
        async with site.tails.of(run.run_id, run.events, wake):
            while True:
                wake.clear()
                run = await site.store.summary(run.run_id)
                left_s = until - time.monotonic()
                is_left = site.leaving.is_set() or await asked.request.is_disconnected()
                if run.status not in GOING or left_s <= 0 or is_left:
                    return run
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left_s, _LOOK_S)):
                        await wake.wait()


async def words_of(asked: Asked[Any, Any], run: RunSummary) -> str:
    """The answer of a run; of one that is not done, in a sentence, how it stands and where a person sees it."""
    tale = await asked.site.library.tale(Reading(asked.site.store, run.run_id), run.events)
    answer = visible(getattr(tale.state.ending, "answer", ""))
    if run.status == "completed":
        return answer
    if run.status == "paused":
        said = "The run waits for a person's decision"
    elif run.status in GOING:
        said = "The run is not over yet"
    else:
        said = f"The run ended as {run.status}, {visible(run.reason)}".rstrip(", ")
    return "\n\n".join((*([answer] if answer else []), f"{said}: {asked.request.base_url}runs/{run.run_id}"))
