"""Which tools a model is shown and which a run plans with; what changed when they were chosen again.

The names of the choice are those of seed 004. Source: spec/planning.md, sections 2, 14.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from surefoot.types.dataclass import dataclass
from surefoot.types.settings import Settings, check_known, choice, flag, or_none, pairs_of, setting, texts, whole

TrustDescription = Literal["local", "all", "none"]
ProfileStage = Literal["registration", "include", "exclude", "verified", "cap", "pin", "lookalike"]
"""The stages of a profile, in their order, and those of the gate."""

_DIGEST = re.compile("sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ToolProfile(Settings):
    """Which tools of a catalogue a run may see and call. Source: spec/primitives.md, section 1.

    `include` and `exclude` are globs: `*` is any run of characters, `?` exactly one, everything else stands for itself.
    An empty `include` means every tool, also when the list was computed; to allow nothing, write `exclude=["*"]` or
    `max_tools=0`. The cap keeps the survivors that `pinned` names, then the first others. `digests` pins tools: name to
    what `digest_of_tool` gave for the tool as it was looked at. While it holds, the tool is verified; once it does not,
    nothing else makes it so, and a warning says so.

    Lists are kept as tuples. Raises `ConfigError` for a value that cannot be meant, also for a misspelt field.
    """

    include: Sequence[str] = setting((), texts, "globs of the tools to offer; none: every tool", option="--include")
    exclude: Sequence[str] = setting(
        (), texts, "globs of the tools not to offer; overrides `include`", option="--exclude"
    )
    max_tools: int | None = setting(
        None, or_none(whole(0), "no cap"), "the most tools to offer; 0: none", option="--max-tools"
    )
    require_verified: bool = setting(False, flag, "verified tools only", option="--verified-only")
    pinned: Sequence[str] = setting((), texts, "exact names that survive `max_tools`")
    trust_description: TrustDescription = setting(
        "local",
        choice("local", "all", "none"),
        "whose own word `[verified]` counts: that of tools of this process; `all`; `none`",
        found=("none",),  # more would weaken `require_verified`, and so would `digests`
    )
    digests: Mapping[str, str] = setting(
        dict[str, str],
        pairs_of(
            lambda name, digest: (
                isinstance(name, str) and isinstance(digest, str) and _DIGEST.fullmatch(digest) is not None
            ),
            'give "sha256:" and 64 hex digits for the name of a tool',
            "give the digest of each pinned tool by its name, or {} for none",
        ),
        "the digest that each verified tool must have ([tools](tools.md))",
        found="default",
    )

    def __new__(cls, *_values: object, **named: object) -> ToolProfile:
        """A misspelt field is a `ConfigError` also in Python, where it would be a `TypeError`."""
        check_known(cls, named)
        return object.__new__(cls)

    @classmethod
    def include_only(cls, patterns: Sequence[str]) -> ToolProfile:
        """Only tools that one of the globs matches; every tool when there are no globs."""
        return cls(include=patterns)

    @classmethod
    def exclude_only(cls, patterns: Sequence[str]) -> ToolProfile:
        """Every tool that none of the globs matches."""
        return cls(exclude=patterns)

    @classmethod
    def permissive(cls) -> ToolProfile:
        """Every tool."""
        return cls()


Dropped = tuple[str, ProfileStage, str]
"""A tool that is not visible: its name, the stage at which it fell out, and why, in words.

The name of a tool dropped at registration is as it came and may have any characters in it: escape it to show it.
"""


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """What a profile made of a catalogue. Source: spec/primitives.md, sections 1.1 and 1.5.

    `visible` are names in NFC, in the order of the catalogue. `dropped` has every other tool, stage by stage, in the
    order of the catalogue inside a stage. `warnings` are sentences for the operator.
    """

    visible: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    warnings: tuple[str, ...]

    @property
    def counts(self) -> dict[ProfileStage, int]:
        """How many tools each stage dropped; a stage that dropped none is left out."""
        return dict(Counter(stage for _name, stage, _detail in self.dropped))


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
