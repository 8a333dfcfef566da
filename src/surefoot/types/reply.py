"""What a parser makes of a model's reply, and what came of each call in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from surefoot.types.dataclass import dataclass, field
from surefoot.types.tools import Trust

FaultKind = Literal[
    "no_step",
    "no_call",
    "empty",
    "empty_final",
    "missing_action",
    "missing_action_input",
    "missing_name",
    "malformed_json",
    "malformed_arguments",
    "args_not_object",
    "invalid_arguments",
    "unknown_tool",
    "truncated",
    "calls_not_allowed",
    "invalid_output",
    "invalid_value",
    "text_call",
]

ReplyWarning = Literal[
    "repaired_json",
    "repaired_tags",
    "unclosed_tag",
    "fallback_fence",
    "trailing_text",
    "special_tokens_removed",
    "name_corrected",
    "hallucinated_observation",
    "hallucinated_result_removed",
    "extra_actions_dropped",
    "action_dropped",
    "final_dropped",
    "injected_argument_ignored",
    "unlabelled_answer",
    "invalid_text_replaced",
    "leaked",
]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a reply, or one call in it, cannot be used.

    `detail` says what was wrong and where; `core.view.observations.tell` makes the message of it that the model reads.
    """

    kind: FaultKind
    detail: str = ""
    tool: str = ""


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """One call that can be run as it stands.

    `position` counts calls and faulty calls of the reply in document order, from 0. `id` is the id as received (native
    calls), `objective` the call_objective of a tagged call. `coerced` names the arguments that validation changed
    without loss.
    """

    position: int
    name: str
    arguments: Mapping[str, object]
    id: str = ""
    objective: str = ""
    coerced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FaultyCall:
    """One call that cannot be run: `error` says why. `name` and `id` are as far as they could be read."""

    position: int
    error: Fault
    name: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Instruction:
    """What a Thinker tells its Actor to do, with which `input` and, in schema mode, which `tool`.

    `done` says that the task is solved.
    """

    text: str
    input: str = ""
    done: bool = False
    tool: str = ""


@dataclass(frozen=True, slots=True)
class Parsed:
    """One reply, read: calls, good or faulty · or an answer (`final`) · or a fault (`error`) · or plain `content`.

    `content` is the visible text before the first call (None: none); `error` is the first fault; `format` names the
    family the reply was read as. `used` is the length of the reply up to the end of its step: what stands behind it was
    invented and is not shown to the model again (-1: all of it counts). `instruction` is only in a Thinker's reply.
    """

    calls: tuple[ParsedCall, ...] = ()
    final: str | None = None
    content: str | None = None
    error: Fault | None = None
    errors: tuple[FaultyCall, ...] = ()
    warnings: frozenset[ReplyWarning] = field(default_factory=frozenset[ReplyWarning])
    format: str = ""
    used: int = -1
    instruction: Instruction | None = None


CallStatus = Literal["SUCCEEDED", "FAILED"]


@dataclass(frozen=True, slots=True)
class FunctionCallResult:
    """One call of a reply and its result. Source: seed 003, 2.1, and spec/reasoners.md, section 3.

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
