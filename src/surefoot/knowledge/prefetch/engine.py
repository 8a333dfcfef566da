"""Pre-hydration on its own, under the name that seed 001 gives it: a text in, what its references hold out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

from surefoot.knowledge.prefetch.extract import references_in
from surefoot.knowledge.prefetch.hydrate import PlannedCall, examined, hydrated, lookups, planned
from surefoot.types.ports import Tool, ToolCallContext
from surefoot.types.prehydration import HydratedContext, PreHydrationConfig
from surefoot.types.tools import Catalogue, ToolResult


class PreHydrationEngine:
    """Finds the references in a text, fetches them side by side with tools that only read, and lays them out.

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
        outcomes: dict[str, ToolResult] = {}

        async def fetch(call: PlannedCall) -> None:
            async with side_by_side:
                limit_s = self.config.reference_timeout
                context = ToolCallContext(run_id, call.call_id, f"{run_id}:{call.call_id}", deadline_s=limit_s)
                try:
                    async with asyncio.timeout(limit_s):
                        outcomes[call.call_id] = await self._tools[call.tool].call(call.arguments, context)
                except TimeoutError:
                    outcomes[call.call_id] = ToolResult("", "timeout")

        fetching = [asyncio.ensure_future(fetch(call)) for call in calls]
        if fetching:
            _, late = await asyncio.wait(fetching, timeout=self.config.timeout)
            for one in late:
                one.cancel()
            await asyncio.gather(*fetching, return_exceptions=True)
        late_ones = {call.call_id: ToolResult("", "timeout") for call in calls if call.call_id not in outcomes}
        return hydrated(found, self._lookups, {**late_ones, **outcomes}, self.config, run_id=run_id)
