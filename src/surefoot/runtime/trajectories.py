"""The memory of verified paths between runs, as JSON beside the journal: for one in a file in `JOURNAL.paths.json`.

Source: spec/guard.md, section 3.6; spec/scale.md, section 2.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime

import orjson

from surefoot.core.loop.trajectory import learnt, merge_paths, unchanged
from surefoot.core.state.state import State
from surefoot.journal.side import amend
from surefoot.types.archive import SideStore
from surefoot.types.errors import JournalError
from surefoot.types.guard import VerifiedPath
from surefoot.types.ports import RunJournal
from surefoot.types.tools import Catalogue

PATHS = "paths"
"""The name under which they are kept."""


class Trajectories:
    """The verified paths beside a journal. Raises `JournalError` for those that cannot be read or written."""

    def __init__(self, side: SideStore) -> None:
        self._side = side

    async def of(self, tools: Catalogue) -> Mapping[str, VerifiedPath]:
        """The paths that hold for these tools; one whose tool has changed is taken out for good."""
        before = self._paths_of(await self._side.get(PATHS))
        after = unchanged(before, tools)
        if len(after) < len(before):
            await amend(self._side, PATHS, lambda was: _dump(unchanged(self._paths_of(was), tools)))
        return after

    async def remember(self, journal: RunJournal, state: State) -> None:
        """Take in what a run with a gate that has ended shows of its paths, where the gate is to remember."""
        if state.gate is None or not state.gate.known.config.memory or state.ending is None:
            return
        today = datetime.now().astimezone().date().isoformat()
        new, failed = learnt(state, await journal.read(), today)
        if new or failed:
            await amend(self._side, PATHS, lambda was: _dump(merge_paths(self._paths_of(was), new, failed)))

    def _paths_of(self, data: bytes) -> Mapping[str, VerifiedPath]:
        if not data:
            return {}
        from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415  # it takes 0.2 s to load, and few remember

        try:
            paths = TypeAdapter(list[VerifiedPath]).validate_json(data)
        except ValidationError as error:
            why = "fix it, or remove it to start again"
            where = self._side.place(PATHS)
            raise JournalError(f"the memory of verified paths, {where}, cannot be read; {why}") from error
        return {path.key: path for path in paths}


def _dump(paths: Mapping[str, VerifiedPath]) -> bytes:
    return orjson.dumps([asdict(path) for path in paths.values()], option=orjson.OPT_INDENT_2)
