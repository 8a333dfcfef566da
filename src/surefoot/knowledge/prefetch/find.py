"""Finding the references of a task, with the operator's patterns: the one call that a hand makes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from surefoot.knowledge.prefetch.patterns import custom_matches
from surefoot.knowledge.prefetch.references import Extraction, extract, scanned
from surefoot.types.prehydration import PreHydrationConfig


async def references_in(
    texts: Sequence[str], config: PreHydrationConfig, *, exists: Callable[[str], bool] | None = None
) -> Extraction:
    """What the user's messages refer to. Long texts take up to some 200 ms a million characters, in a thread.

    `exists` tells whether a path is in the workspace, and runs in that thread. What a custom pattern does cannot raise
    or take longer than its limit; so the result can differ from one time to the next, and belongs into the journal.
    """
    parts, _ = scanned(texts, config)
    custom = await custom_matches(config.custom_patterns, parts)
    return await asyncio.to_thread(extract, texts, config, custom=custom, exists=exists)
