"""The memory of verified paths between runs, in a JSON file beside the journal, `JOURNAL.paths.json`.

Without a journal in a file it lives as long as the agent. Two processes that end a run in the same moment may both
write, and the later one counts. Source: spec/guard.md, section 3.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import orjson

from surefoot.core.loop.trajectory import kept, learnt, unchanged
from surefoot.core.state.state import State
from surefoot.runtime.pins import InAFile, write_whole
from surefoot.types.errors import JournalError
from surefoot.types.guard import VerifiedPath
from surefoot.types.ports import RunJournal
from surefoot.types.tools import Catalogue


def paths_file(journal: Path) -> Path:
    """Where the verified paths of a journal are."""
    return journal.with_name(f"{journal.name}.paths.json")


class Trajectories:
    """The verified paths beside a journal. Raises `JournalError` for a file that cannot be read or written."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._kept: Mapping[str, VerifiedPath] = {}

    @classmethod
    def beside(cls, journal: object) -> Trajectories:
        """The paths of a journal store, in memory for one that is not a file."""
        return cls(paths_file(journal.path) if isinstance(journal, InAFile) else None)

    def of(self, tools: Catalogue) -> Mapping[str, VerifiedPath]:
        """The paths that hold for these tools; one whose tool has changed is taken out for good."""
        before = self._read()
        after = unchanged(before, tools)
        if len(after) < len(before):
            self._write(after)
        return after

    async def remember(self, journal: RunJournal, state: State) -> None:
        """Take in what a run with a gate that has ended shows of its paths, where the gate is to remember."""
        if state.gate is None or not state.gate.known.config.memory or state.ending is None:
            return
        today = datetime.now().astimezone().date().isoformat()
        new, failed = learnt(state, await journal.read(), today)
        if new or failed:
            self._write(kept(self._read(), new, failed))

    def _read(self) -> Mapping[str, VerifiedPath]:
        if self._path is None:
            return self._kept
        from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415  # it takes 0.2 s to load, and few remember

        try:
            paths = TypeAdapter(list[VerifiedPath]).validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValidationError) as error:
            why = "mend it, or remove it to begin anew"
            raise JournalError(f"the memory of verified paths, {self._path}, cannot be read; {why}") from error
        return {path.key: path for path in paths}

    def _write(self, paths: Mapping[str, VerifiedPath]) -> None:
        if self._path is None:
            self._kept = paths
        else:
            content = orjson.dumps([asdict(path) for path in paths.values()], option=orjson.OPT_INDENT_2)
            write_whole(self._path, content, "the verified paths")
