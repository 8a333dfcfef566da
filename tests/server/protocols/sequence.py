"""The rules of AG-UI about which event may follow which, as its own client holds them, and its patches of a state."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ag_ui.core import Event
from ag_ui.encoder import EventEncoder
from pydantic import TypeAdapter

Json = Any
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
_STREAMS = {
    "TEXT_MESSAGE_START": ("TEXT_MESSAGE", ("CONTENT",), "END", "messageId"),
    "REASONING_MESSAGE_START": ("REASONING_MESSAGE", ("CONTENT",), "END", "messageId"),
    "REASONING_START": ("REASONING", (), "END", "messageId"),
    "TOOL_CALL_START": ("TOOL_CALL", ("ARGS",), "END", "toolCallId"),
}
LAST = ("RUN_FINISHED", "RUN_ERROR")


def written(events: Iterable[Any]) -> list[Json]:
    """Events as they go over the wire."""
    lines = "".join(map(EventEncoder().encode, events)).splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line]


def key_of(at: Json, part: str) -> Json:
    return int(part) if isinstance(at, list) else part


def patched(state: Json, patch: Sequence[Json]) -> Json:
    state = json.loads(json.dumps(state))
    for one in patch:
        assert one["op"] == "replace"
        *path, last = [part.replace("~1", "/").replace("~0", "~") for part in one["path"].split("/")][1:]
        at = state
        for part in path:
            at = at[key_of(at, part)]
        key = key_of(at, last)
        assert at[key] != one["value"]
        at[key] = one["value"]
    return state


@dataclass
class Client:
    """What a client makes of a stream; `see` fails for an event that its protocol forbids there."""

    open: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    steps: set[str] = field(default_factory=set[str])
    texts: dict[str, str] = field(default_factory=dict[str, str])
    calls: dict[str, str] = field(default_factory=dict[str, str])
    results: dict[str, str] = field(default_factory=dict[str, str])
    custom: list[Json] = field(default_factory=list[Json])
    state: Json = None
    started: Json = None
    last: Json = None

    def see(self, stream: Iterable[Json]) -> Client:
        for one in stream:
            EVENT.validate_python(one)
            self._one(one)
        return self

    def done(self) -> Client:
        assert self.last is not None
        return self

    def _one(self, one: Json) -> None:
        kind: str = one["type"]
        assert self.last is None, f"{kind} after {self.last}"
        assert (kind == "RUN_STARTED") == (self.started is None), kind
        for start, (name, middles, end, key) in _STREAMS.items():
            if kind == start:
                assert (name, one[key]) not in self.open, one
                self.open.add((name, one[key]))
            elif kind in [f"{name}_{middle}" for middle in middles] or kind == f"{name}_{end}":
                assert (name, one[key]) in self.open, one
                if kind == f"{name}_{end}":
                    self.open.remove((name, one[key]))
        match kind:
            case "RUN_STARTED":
                self.started = one
            case "STEP_STARTED":
                assert one["stepName"] not in self.steps
                self.steps.add(one["stepName"])
            case "STEP_FINISHED":
                self.steps.remove(one["stepName"])
            case "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT":
                self.texts[one["messageId"]] = self.texts.get(one["messageId"], "") + one["delta"]
            case "TOOL_CALL_START":
                assert one["toolCallId"] not in self.calls
                self.calls[one["toolCallId"]] = ""
            case "TOOL_CALL_ARGS":
                self.calls[one["toolCallId"]] += one["delta"]
            case "TOOL_CALL_RESULT":
                assert one["toolCallId"] not in self.results
                self.results[one["toolCallId"]] = one["content"]
            case "STATE_SNAPSHOT":
                assert self.state is None
                self.state = one["snapshot"]
            case "STATE_DELTA":
                self.state = patched(self.state, one["delta"])
            case "CUSTOM":
                self.custom.append(one)
            case "RUN_FINISHED" | "RUN_ERROR":
                assert not self.open, self.open
                assert not self.steps, self.steps
                if kind == "RUN_FINISHED":
                    assert (one["threadId"], one["runId"]) == (self.started["threadId"], self.started["runId"])
                    asked = [ask["id"] for ask in one["outcome"].get("interrupts", ())]
                    assert len(asked) == len(set(asked))
                self.last = one
            case _:
                pass
