"""Which tools a run plans with, and what changed when they were chosen again. Source: spec/planning.md, sections 2, 14.

The names are those of seed 004.
"""

from __future__ import annotations

from typing import Literal

from surefoot.types.dataclass import dataclass

SelectionMode = Literal["given", "all", "predictive", "corrective"]
"""By the developer · a catalogue too small to choose from · by the task · by what has happened."""

ExecutionStatus = Literal["Success", "Failed", "Mixed", "NotUsed"]


@dataclass(frozen=True, slots=True)
class Replacement:
    """A tool that left, and the one that came in its place."""

    old: str
    new: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ToolChange:
    """A tool that came, or left."""

    tool_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ChangesFromPrevious:
    """What changed between two selections: computed from both; the reasons are the model's."""

    kept_tools: tuple[str, ...] = ()
    replaced_tools: tuple[Replacement, ...] = ()
    added_tools: tuple[ToolChange, ...] = ()
    removed_tools: tuple[ToolChange, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolSelectionResult:
    """The tools that were chosen, by name; confidence from 0 to 100."""

    selected_tool_ids: tuple[str, ...]
    task_type: str = "general"
    selection_confidence: int = 0
    brief_reasoning: str = ""
    changes_from_previous: ChangesFromPrevious | None = None


@dataclass(frozen=True, slots=True)
class ToolUse:
    """How a tool did in one step."""

    step_id: str
    ok: int = 0
    failed: int = 0
    last_error: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class PreviousToolInfo:
    """How a tool that was selected before has done, over the run and step by step."""

    tool_id: str
    tool_name: str
    calls_ok: int = 0
    calls_failed: int = 0
    steps: tuple[ToolUse, ...] = ()
    failure_reason: str = ""
    execution_summary: str = ""

    @property
    def execution_status(self) -> ExecutionStatus:
        """One word for it."""
        if self.calls_ok and self.calls_failed:
            return "Mixed"
        return "Success" if self.calls_ok else "Failed" if self.calls_failed else "NotUsed"


@dataclass(frozen=True, slots=True)
class ReplanningToolSelectionContext:
    """What a corrective selection is made from."""

    previous_tools: tuple[PreviousToolInfo, ...]
    execution_history: str
    reflection_analysis: str
    overall_reflection_guidance: str = ""
