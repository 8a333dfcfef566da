"""What a tool is to the core, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Effect = Literal["read", "write", "communicate", "transact", "delete"]
Trust = Literal["trusted", "untrusted"]
ResultKind = Literal["ok", "error", "timeout", "denied", "cancelled", "unknown_tool", "in_doubt"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """The declaration of one tool: all that the core, the gate and the model may know of it.

    `parameters` is a JSON Schema object. `effect="read"` promises that calling it changes nothing; `idempotent` that
    calling it twice with the same arguments is the same as once (reads always are); `polling` that the same call may
    rightly be made again because its answer changes by itself; `finish` that its argument is the run's answer.
    """

    name: str
    description: str
    parameters: Mapping[str, object]
    effect: Effect = "write"
    idempotent: bool = False
    polling: bool = False
    finish: bool = False
    has_probe: bool = False
    timeout_s: float | None = None
    origin: Literal["local", "remote"] = "local"

    @property
    def may_repeat(self) -> bool:
        """Whether running an interrupted call again can do no harm."""
        return self.effect == "read" or self.idempotent


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The tools of a run, in their order. Made once per agent and shared by its runs; names are unique.

    `memo` holds what others derive from it once (encoded declarations, prompt text); it is no part of its value.
    """

    tools: tuple[ToolSpec, ...] = ()
    memo: dict[object, object] = field(default_factory=dict[object, object], init=False, repr=False, compare=False)

    def get(self, name: str) -> ToolSpec | None:
        """The tool of that exact name."""
        by_name = self.memo.get("by_name")
        if by_name is None:
            by_name = self.memo["by_name"] = {tool.name: tool for tool in self.tools}
        return by_name.get(name)  # type: ignore[union-attr,no-any-return,attr-defined]

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(tool.name for tool in self.tools)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave: one text for the model, and what is known about it.

    `content` is at most `tool_result_chars` long; if the whole was longer, `size` is its length in characters and
    `blob` the digest under which the journal keeps it. `kind` other than "ok" means that the call failed, and
    `content` then says how, for the model to read. `infrastructure` marks failures that the tool's logic is not to blame for
    (connection, timeout, overload).
    """

    content: str
    kind: ResultKind = "ok"
    size: int = 0
    blob: str | None = None
    source: str = ""
    trust: Trust = "untrusted"
    infrastructure: bool = False

    @property
    def is_error(self) -> bool:
        """Whether the call failed."""
        return self.kind != "ok"
