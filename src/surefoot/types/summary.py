"""A run in one line, as a store keeps and lists it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from surefoot.types.events import models_line
from surefoot.types.messages import Usage

Standing = Literal["", "approval", "in_doubt", "ready"]
"""Why a run that has not ended stands still: what a person has to say; or "ready", once they have said it."""


@dataclass(frozen=True)  # no slots: one is made for each event, and copying a `__dict__` is one call
class RunSummary:
    """What a list of runs shows of one. Made of its records alone, by `core/state/summary.py`, and kept beside them.

    `status` is the ending's kind, or "running"; a store says "interrupted" of a run that nobody drives, and "damaged"
    of one that it cannot read. `reason` is why it ended. `task` and `answer` are their beginnings. `calls` counts those
    that were started, each once; `events` the records. Times are seconds since the epoch.
    Source: spec/scale.md, section 3.1; spec/serving.md, section 8.
    """

    run_id: str = ""
    started_at: float = 0.0
    changed_at: float = 0.0
    events: int = 0
    status: str = "running"
    standing: Standing = ""
    reason: str = ""
    task: str = ""
    answer: str = ""
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    requests: int = 0
    calls: int = 0
    usage: Usage = Usage()
    elapsed_s: float = 0.0
    parent: str = ""

    @property
    def model(self) -> str:
        """The models in one line."""
        return models_line(self.models)


NO_RECORDS = RunSummary()
"""A run before its first record."""
