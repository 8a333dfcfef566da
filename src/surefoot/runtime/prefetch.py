"""What a task refers to, fetched before the first model call. Source: spec/primitives.md, section 3.

Finding the references and laying out what came of them are moves of their own. The calls between them are ordinary
calls of the run: judged, announced, timed, and made again after a crash, since only tools that read may resolve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from surefoot.core.parse.frames import Frame
from surefoot.core.state import Call, State
from surefoot.core.text import clean
from surefoot.core.told import frame_of
from surefoot.knowledge.prefetch.extract import Extraction, references_in
from surefoot.knowledge.prefetch.hydrate import hydrated, items_of
from surefoot.knowledge.prefetch.resolvers import Lookup, examined, lookups, planned
from surefoot.types.events import Event, PreHydrationComplete, ReferencesFound
from surefoot.types.prehydration import PreHydrationConfig
from surefoot.types.reply import ParsedCall
from surefoot.types.tools import ToolResult

if TYPE_CHECKING:
    from surefoot.runtime.world import World


async def find(world: World, state: State) -> Sequence[Event]:
    """The references in the user's words, and the calls that resolve them."""
    config = _config(state)
    found = await references_in([state.task.text] if state.task else [], config)
    made = lookups(config, state.tools)
    references = examined(found.references, made, state.tools)
    calls = tuple(ParsedCall(call.place, call.tool, call.arguments) for call in planned(references, made))
    return (ReferencesFound(references, found.dropped, found.scan_truncated, calls, world.elapsed_s),)


async def hydrate(world: World, state: State) -> Sequence[Event]:
    """What the model gets to read of the references, and what became of each.

    What was found decides which calls there are; the configuration may be another one by now.
    """
    config, told = _config(state), state.found
    assert told is not None  # noqa: S101  # the move was made from this state
    found = Extraction(told.references, told.dropped, told.scan_truncated)
    made = {told.references[call.position].type: Lookup(call.name, "") for call in told.calls}
    outcomes = {
        call.id: await _whole(world, call, frame_of(state, call)) for call in state.calls if call.result is not None
    }
    context = hydrated(found, made, outcomes, config, run_id=state.run_id, prefix="0.")
    return (
        PreHydrationComplete(
            len(context.references),
            len(context.resolved),
            len(context.failed),
            context.total_tokens,
            context.dropped,
            context.frame_tokens,
            context.scan_truncated,
            max(0, round((world.elapsed_s - told.elapsed_s) * 1000)),
            items_of(context),
            clean(context.message),
        ),
    )


async def _whole(world: World, call: Call, frame: Frame) -> ToolResult:
    """The result of a call as it may be shown, whole where the journal keeps more than its beginning."""
    result = call.result
    assert result is not None  # noqa: S101  # asked only then
    content = result.content if result.blob is None else (await world.journal.get_blob(result.blob)).decode()
    shown = frame.cleaned(content)
    return result if shown is result.content else replace(result, content=shown)


def _config(state: State) -> PreHydrationConfig:
    return state.config.pre_hydration or PreHydrationConfig()
