"""What is on record of what a run is given before, or beside, the words of its model: these are events of a run.

Source: spec/primitives.md, sections 3.9, 4.5 and 6.
"""

from __future__ import annotations

from typing import Literal

from surefoot.types.dataclass import dataclass
from surefoot.types.prehydration import PreHydrationItem, Reference
from surefoot.types.reply import ParsedCall


@dataclass(frozen=True, slots=True)
class ReferencesFound:
    """What the user's words refer to, and the calls that fetch it.

    A call's position is the place of its reference, from 0, and its id "0." with that place. A reference without a call
    says why in `refusal`, and has no credentials in its value.
    """

    references: tuple[Reference, ...]
    dropped: int = 0
    scan_truncated: bool = False
    calls: tuple[ParsedCall, ...] = ()
    elapsed_s: float = 0.0
    type: Literal["ReferencesFound"] = "ReferencesFound"


@dataclass(frozen=True, slots=True)
class PreHydrationComplete:
    """What was fetched before the first model call, zeros included. `message` is what the model reads of it.

    Tokens are counted as four bytes each. Source: spec/primitives.md, sections 3.9 and 6.
    """

    references_found: int
    references_resolved: int
    references_failed: int
    total_tokens: int
    references_dropped: int = 0
    frame_tokens: int = 0
    scan_truncated: bool = False
    elapsed_ms: int = 0
    items: tuple[PreHydrationItem, ...] = ()
    message: str = ""
    type: Literal["PreHydrationComplete"] = "PreHydrationComplete"


@dataclass(frozen=True, slots=True)
class ConventionsRead:
    """A run has come to a place: the files of conventions (path, SHA-256, bytes shown) not shown so before, if any.

    `directory` is the place as a call names it, `scope` the directory of the workspace that it means ("" outside), and
    `step` the reply whose calls came there, 0 before the first. `message` is what the model reads of the files, `error`
    why there are none. What is told of the root later stands in place of what was. Source: spec/primitives.md, 4.5.
    """

    directory: str
    files: tuple[tuple[str, str, int], ...] = ()
    message: str = ""
    error: str = ""
    scope: str = ""
    step: int = 0
    type: Literal["ConventionsRead"] = "ConventionsRead"
