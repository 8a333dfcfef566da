"""What is read before the first request: references of the task and the conventions of the workspace.

`PreHydrationEngine` fetches the references of a text without a run, under the name that seed 001 gives it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

from surefoot.core.parse.frames import mark_for
from surefoot.core.state.roles import MOST_DIRECTORIES
from surefoot.core.state.state import State
from surefoot.core.text import clean
from surefoot.core.view.observations import frame_of
from surefoot.knowledge.directories import HEADING, files_message
from surefoot.knowledge.prefetch.extract import Extraction, references_in
from surefoot.knowledge.prefetch.hydrate import PlannedCall, examined, hydrated, items_of, lookups, planned
from surefoot.runtime.act import failed
from surefoot.types.errors import ConfigError
from surefoot.types.events import ConventionsRead, Event, PreHydrationComplete, ReferencesFound
from surefoot.types.knowledge import ROOT, ConventionFile, KnowledgeError
from surefoot.types.ports import Tool, ToolCallContext
from surefoot.types.prehydration import HydratedContext, PreHydrationConfig
from surefoot.types.reply import ParsedCall
from surefoot.types.tools import Catalogue, ToolResult

if TYPE_CHECKING:
    from surefoot.knowledge.bridge import KnowledgeBridge
    from surefoot.runtime.world import World


_MOST_NAMED = 1_000
"""References of a task among which files are looked for."""


async def read_conventions(world: World, directory: str, state: State) -> Sequence[Event]:
    """The files that count there and were not shown so before. A place outside the workspace has none.

    With those of the workspace itself, which come before the first model call, come those of the places that the task
    names: in the order of the task, and as many whole files as `max_bytes` takes. When one of these has changed by the
    time that the run comes to the root again, all of them are told anew.
    """
    config = state.config.conventions
    step = state.turn.step if state.turn else 0
    if world.knowledge is None or config is None:
        return (ConventionsRead(directory, step=step),)
    scope, found, errors = await _files(world.knowledge, directory)
    others, before = state.conventions, None
    if scope == ROOT and state.conventions:
        before, *others = state.conventions
    if scope == ROOT:
        if before is not None:
            folders = [path.rpartition("/")[0] for path, *_ in before.files]
        else:  # the places below the root that the user's words name; those that are still to be made, too
            root, words = config.root, [state.task.text] if state.task else []
            named = await references_in(
                words,
                PreHydrationConfig(max_references=_MOST_NAMED),
                exists=lambda path: "/" in path and os.path.isdir(os.path.join(root, os.path.dirname(path))),  # noqa: PTH112, PTH118, PTH120  # a Path raises for odd names
            )
            files = (one.value for one in named.references if one.type == "file")
            folders = list({os.path.dirname(path): path for path in files}.values())[:MOST_DIRECTORIES]  # noqa: PTH120
        for place in filter(None, folders):
            _, more, wrong = await _files(world.knowledge, place)
            found, errors = [*found, *more], [*errors, *wrong]
    known = {path: (digest, kept) for one in others for path, digest, kept in one.files}  # the last counts
    new: list[ConventionFile] = []
    left = config.max_bytes
    for file in found:
        digest, kept = known.get(file.path, ("", 0))
        if digest == file.digest and file.kept <= kept:
            continue
        if file.kept > left:  # it comes when a call touches its directory
            errors.append(f"{file.path}: left out for now, the files before it fill max_bytes")
            continue
        known[file.path] = (file.digest, file.kept)
        new.append(file)
        left -= file.kept
    shown = tuple((file.path, file.digest, file.kept) for file in new)
    if before and shown == before.files:
        return (ConventionsRead(directory, scope=scope, step=step),)
    mark = mark_for(f"{state.run_id}:conventions:{directory}", [file.text for file in new])
    message = files_message(new, mark) or (f"{HEADING}\n(there are none any more)" if before else "")
    error = "; ".join(dict.fromkeys(errors))
    return (ConventionsRead(directory, shown, clean(message), clean(error), scope, step),)


async def _files(knowledge: KnowledgeBridge, place: str) -> tuple[str, list[ConventionFile], list[str]]:
    """The directory that a place means, its files, and what is wrong with it; "" for one outside the workspace."""
    try:
        found = await knowledge.files(place)
    except (ConfigError, KnowledgeError) as error:
        return "", [], [str(error)]
    return found.scope, list(found.files), list(found.errors)


async def find(world: World, state: State) -> Sequence[Event]:
    """The references in the user's words, and the calls that resolve them."""
    config = state.config.pre_hydration or PreHydrationConfig()
    found = await references_in([state.task.text] if state.task else [], config)
    made = lookups(config, state.tools)
    references = examined(found.references, made, state.tools)
    calls = tuple(ParsedCall(call.place, call.tool, call.arguments) for call in planned(references, made))
    return (ReferencesFound(references, found.dropped, found.scan_truncated, calls, world.elapsed_s),)


async def hydrate(world: World, state: State) -> Sequence[Event]:
    """What the model gets to read of the references, and what became of each.

    What was found decides which calls there are; the configuration may be another one by now.
    """
    config, told = state.config.pre_hydration or PreHydrationConfig(), state.found
    assert told is not None  # noqa: S101  # the move was made from this state
    found = Extraction(told.references, told.dropped, told.scan_truncated)
    outcomes: dict[str, ToolResult] = {}
    for call in state.calls:
        if (result := call.result) is not None:  # it may be shown whole where the journal keeps more than its beginning
            content = result.content if result.blob is None else (await world.journal.get_blob(result.blob)).decode()
            shown = frame_of(state, call).cleaned(content)
            outcomes[call.id] = result if shown is result.content else replace(result, content=shown)
    context = hydrated(found, outcomes, config, run_id=state.run_id, prefix="0.")
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


class PreHydrationEngine:
    """Finds the references in a text, fetches them in parallel with tools that only read, and presents them.

    What a run does before its first model call (`LoopConfig.pre_hydration`), without a run: nothing is on record, and
    no gate is asked. Raises `ConfigError` for a tool that is not there, may change something or takes no such value.
    """

    def __init__(self, tools: Sequence[Tool], config: PreHydrationConfig | None = None) -> None:
        self.config = config or PreHydrationConfig()
        self._tools = {tool.spec.name: tool for tool in tools}
        self._catalogue = Catalogue(tuple(tool.spec for tool in tools))
        self._lookups = lookups(self.config, self._catalogue)

    async def hydrate(self, text: str) -> HydratedContext:
        """What came of the references in a text, within the configured times; `message` is what a model would read."""
        found = await references_in([text], self.config)
        found = replace(found, references=examined(found.references, self._lookups, self._catalogue))
        calls, run_id = planned(found.references, self._lookups), uuid4().hex
        side_by_side = asyncio.Semaphore(self.config.max_concurrency)
        outcomes = {call.call_id: ToolResult("", "timeout", infrastructure=True) for call in calls}

        async def fetch(call: PlannedCall) -> None:
            async with side_by_side:
                limit_s = self.config.reference_timeout
                context = ToolCallContext(run_id, call.call_id, f"{run_id}:{call.call_id}", deadline_s=limit_s)
                try:
                    async with asyncio.timeout(limit_s):
                        outcomes[call.call_id] = await self._tools[call.tool].call(call.arguments, context)
                except Exception as error:  # noqa: BLE001  # a tool may be anybody's code: the model is told
                    if not isinstance(error, TimeoutError):
                        outcomes[call.call_id] = failed(error)

        fetching = [asyncio.ensure_future(fetch(call)) for call in calls]
        if fetching:
            _, late = await asyncio.wait(fetching, timeout=self.config.timeout)
            for one in late:
                one.cancel()
            await asyncio.gather(*fetching, return_exceptions=True)
        return hydrated(found, outcomes, self.config, run_id=run_id)
