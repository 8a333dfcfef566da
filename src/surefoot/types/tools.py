"""What a tool is to the core, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from surefoot.types.attachments import Attachment
from surefoot.types.dataclass import dataclass, field

T = TypeVar("T")

Effect = Literal["read", "write", "communicate", "transact", "delete"]
Trust = Literal["trusted", "untrusted"]
Approval = Literal["always", "once"]
Delegates = Literal["", "call", "hand_off"]
ResultKind = Literal[
    "ok", "error", "timeout", "denied", "cancelled", "unknown_tool", "in_doubt", "ReasoningStepViolation"
]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """The declaration of one tool: everything that the core, the gate and the model may know about it.

    `parameters` is a JSON Schema object. `effect="read"` promises that calling it changes nothing; `idempotent` that
    calling it twice with the same arguments is the same as once (reads always are); `polling` that the same call may
    rightly be made again because its answer changes by itself; `finish` that its argument is the run's answer.

    `injected` are the names of parameters that the runtime fills, so that what a model sends under them is dropped.
    `returns` is the JSON Schema of a result that its declared type keeps free of free text (numbers, enumerations,
    identifiers of a pattern), None for every other; it is a promise of the function, so check a result against it
    before you rely on it. Source: spec/reasoners.md, sections 4 and 7.

    For the gate (spec/guard.md, section 4.3): `declared` says that a person named the effect, `egress` that a read
    carries its arguments out of the house, `private` that its results are confidential. `roles` says what parameters
    are to the effect, `sensitive` which more of them need a good origin, `trusted_fields` which fields of its results
    may be believed. `directory`: it looks people or accounts up, so a record that the user named may say where
    something goes to (None: as its name says, of an own tool); `identity` are the fields that say whose record it is
    ((): those called like a name). `server` is where the tool comes from ("": this process), `output` the schema of its
    results. `category` is the kind of tool that it is, as its maker says: selection prefers the kind that a task names.

    `approval`: a person is asked before each call ("always"), or the first of a run ("once"), with the gate or without.
    `delegates`: it is an agent, so that a call of it is a run of its own, which goes on where it stood; the answer of a
    "hand_off" ends the run that made it.
    `queue` is the task queue of Temporal on which its calls are made ("": that of the run); see docs/temporal.md.
    For plans (spec/planning.md): `exclusive`, that one call of it runs at a time; `empty_ok`, that nothing found is a
    result like any other.
    """

    name: str
    description: str
    parameters: Mapping[str, object]
    effect: Effect = "write"
    idempotent: bool = False
    polling: bool = False
    finish: bool = False
    has_probe: bool = False
    verified: bool = False
    timeout_s: float | None = None
    origin: Literal["local", "remote"] = "local"
    injected: tuple[str, ...] = ()
    returns: Mapping[str, object] | None = None
    declared: bool = False
    egress: bool = False
    private: bool = False
    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    sensitive: tuple[str, ...] = ()
    trusted_fields: tuple[str, ...] = ()
    directory: bool | None = None
    identity: tuple[str, ...] = ()
    server: str = ""
    output: Mapping[str, object] | None = None
    category: str = ""
    exclusive: bool = False
    empty_ok: bool = False
    approval: Approval | None = None
    delegates: Delegates = ""
    queue: str = ""

    @property
    def is_foreign(self) -> bool:
        """Whether it is not a function of the developer's own: its name and texts are somebody else's words."""
        return bool(self.server) or self.origin == "remote"

    @property
    def may_repeat(self) -> bool:
        """Whether running an interrupted call again can do no harm."""
        return self.effect == "read" or self.idempotent


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The tools of a run, in their order. Made once per agent and shared by its runs; names are unique.

    What others derive from it (encoded declarations, prompt text) is kept beside the value and made once (`derived`).
    """

    tools: tuple[ToolSpec, ...] = ()
    _memo: dict[str, Any] = field(default_factory=dict[str, Any], init=False, repr=False, compare=False)
    _by_name: dict[str, ToolSpec] = field(default_factory=dict[str, ToolSpec], init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._by_name.update({tool.name: tool for tool in self.tools})

    def derived(self, key: str, make: Callable[[Catalogue], T]) -> T:
        """`make(self)`, made once for this catalogue. `key` names it: the same key, the same function."""
        if key not in self._memo:  # Any: the key names the function, so the value has its type
            self._memo[key] = make(self)
        return self._memo[key]

    def get(self, name: str) -> ToolSpec | None:
        """The tool of that exact name."""
        return self._by_name.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return self.derived("names", lambda all_: tuple(tool.name for tool in all_.tools))


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call: one text for the model, and what is known about it.

    `content` is at most `tool_result_chars` long; if the whole was longer, `size` is its length in characters and
    `blob` the digest under which the journal keeps it. `kind` other than "ok" means that the call failed, and
    `content` then says how, for the model to read. `infrastructure` marks failures
    that are not the tool's own (connection, timeout, overload). `structured` says that `content` is the JSON of a value
    that the tool gave as a value, and not a text that happens to parse. `outcome` is a digest of a whole that became a
    blob, for which times, ids and the like do not count (`core/state/trail.py: outcome`). `error` is "CLASS:CODE" of a
    failure where that is known (`types/plan.py: StepErrorClass`), `retry_after_s` what a server asks to wait. `files`
    go to a model that takes such; `content` has a line about each.
    """

    content: str
    kind: ResultKind = "ok"
    size: int = 0
    blob: str | None = None
    source: str = ""
    trust: Trust = "untrusted"
    infrastructure: bool = False
    structured: bool = False
    outcome: str = ""
    error: str = ""
    retry_after_s: float | None = None
    files: tuple[Attachment, ...] = ()

    @property
    def is_error(self) -> bool:
        """Whether the call failed."""
        return self.kind != "ok"
