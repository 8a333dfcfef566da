"""What a server of each wire says (`data/models/wires.jsonl`), so that one list of tests goes through all of them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson
from fake_endpoint import DONE, Json, completion

from surefoot.models.anthropic import Anthropic
from surefoot.models.json_edge import items, mapping
from surefoot.models.openai_chat import OpenAIChat
from surefoot.models.openai_responses import OpenAIResponses
from surefoot.models.wire import Form, Wire


@dataclass(frozen=True)
class Spoken:
    """One wire, as a server speaks it. The reply thinks `hm`, says `héllo` and calls `f` with `{"a":1}`."""

    wire: Callable[[str], Wire[Form]]
    path: str
    key_header: str
    whole: Json
    start: bytes
    rest: bytes
    error_event: bytes

    @property
    def stream(self) -> bytes:
        return self.start + self.rest


def named(kind: str, **fields: object) -> bytes:
    """An event with its type also in the line before the data, as both newer wires send it."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **fields}))


def _event(told: object) -> bytes:
    line = b"event: %b\n" % str(mapping(told)["type"]).encode() if "type" in mapping(told) else b""
    return DONE if told == "[DONE]" else b"%bdata: %b\n\n" % (line, orjson.dumps(told))


def _spoken(wire: Callable[[str], Wire[Form]], line: str) -> Spoken:
    told = mapping(json.loads(line))
    start, rest, error = (b"".join(map(_event, items(told[name]))) for name in ("start", "rest", "error_event"))
    return Spoken(wire, str(told["path"]), str(told["key_header"]), mapping(told["whole"]), start, rest, error)


_LINES = (Path(__file__).parents[1] / "data" / "models" / "wires.jsonl").read_text(encoding="utf-8").splitlines()
CHAT, ANTHROPIC, RESPONSES = map(_spoken, (OpenAIChat, Anthropic, OpenAIResponses), _LINES)
WIRES = {"openai_chat": CHAT, "anthropic": ANTHROPIC, "openai_responses": RESPONSES}
CLAUDE, RESPONSE = ANTHROPIC.whole, RESPONSES.whole
THINKING, _, TOOL_USE = map(mapping, items(CLAUDE["content"]))
REASONING, MESSAGE, FUNCTION_CALL = map(mapping, items(RESPONSE["output"]))


def words(wire: str, text: str) -> Json:
    """A whole reply on a wire that is this text and nothing else."""
    return {
        "openai_chat": completion(text),
        "anthropic": {**CLAUDE, "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"},
        "openai_responses": {**RESPONSE, "output": [{**MESSAGE, "content": [{"type": "output_text", "text": text}]}]},
    }[wire]
