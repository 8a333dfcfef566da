"""What came of one call of a reply, for whoever asked for it to be carried out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from surefoot.types.dataclass import dataclass, field
from surefoot.types.reply import FaultKind
from surefoot.types.tools import Trust

CallStatus = Literal["SUCCEEDED", "FAILED"]


@dataclass(frozen=True, slots=True)
class FunctionCallResult:
    """One call of a reply and what it gave. Source: seed 003, 2.1, and spec/reasoners.md, section 3.

    `func_args` is what the model sent, validated; what the runtime injected is never in it. `output` is what the model
    is to read: the result, or why there is none. `position` counts the calls of the reply, those that could not be read
    among them, from 0. `call_id` is "RUN:STEP.POSITION" in the journal.

    `error` is "" or the kind of what went wrong: of a fault in the reply (`FaultKind`), or "error", "timeout",
    "denied", "cancelled", "in_doubt" (it was started, and nobody knows whether it took effect). When `truncated`, the
    whole output is in the journal as the blob of the digest `blob`.
    """

    func_name: str
    func_args: Mapping[str, object] = field(default_factory=dict[str, object])
    call_objective: str = ""
    output: str = ""
    status: CallStatus = "SUCCEEDED"
    call_id: str = ""
    position: int = 0
    error: str = ""
    duration_ms: float = 0.0
    source: str = ""
    trust: Trust = "untrusted"
    truncated: bool = False
    blob: str = ""

    @classmethod
    def failed(cls, position: int, kind: FaultKind, message: str) -> FunctionCallResult:
        """A call that could not be read: nothing was run, and `message` tells the model how to mend it."""
        return cls("", output=message, status="FAILED", position=position, error=kind, source="surefoot")
