"""What a server of each wire says, so that one list of tests goes through all of them."""

from collections.abc import Callable
from dataclasses import dataclass

import orjson
from fake_endpoint import DONE, Json, completion, event

from surefoot.models.anthropic import Anthropic
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


CALL: Json = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
CHAT = Spoken(
    OpenAIChat,
    "/v1/chat/completions",
    "Authorization: Bearer ",
    completion("héllo", "tool_calls", tool_calls=[CALL], reasoning_content="hm"),
    event({"role": "assistant", "reasoning_content": "hm"}) + event({"content": "hé"}),
    event({"content": "llo"})
    + event({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "f", "arguments": '{"a"'}}]})
    + event({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]})
    + event({}, "tool_calls")
    + event(usage={"prompt_tokens": 10, "completion_tokens": 5})
    + DONE,
    b'data: {"error": {"message": "overloaded", "code": 529}}\n\n',
)

THINKING: Json = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}
TOOL_USE: Json = {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}
CLAUDE: Json = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m-2026", "stop_reason": "tool_use",
    "stop_sequence": None, "content": [THINKING, {"type": "text", "text": "héllo"}, TOOL_USE],
    "usage": {"input_tokens": 3, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 5, "output_tokens": 5},
}  # fmt: skip
ANTHROPIC = Spoken(
    Anthropic,
    "/v1/messages",
    "x-api-key: ",
    CLAUDE,
    named("message_start", message={**CLAUDE, "content": [], "stop_reason": None,
                                    "usage": {"input_tokens": 3, "cache_creation_input_tokens": 2,
                                              "cache_read_input_tokens": 5, "output_tokens": 1}})
    + named("content_block_start", index=0, content_block={"type": "thinking", "thinking": "", "signature": ""})
    + named("ping")
    + named("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "hm"})
    + named("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "c2lnbmVk"})
    + named("content_block_stop", index=0)
    + named("content_block_start", index=1, content_block={"type": "text", "text": ""})
    + named("content_block_delta", index=1, delta={"type": "text_delta", "text": "hé"}),
    named("content_block_delta", index=1, delta={"type": "text_delta", "text": "llo"})
    + named("content_block_stop", index=1)
    + named("content_block_start", index=2, content_block={"type": "tool_use", "id": "c1", "name": "f", "input": {}})
    + named("content_block_delta", index=2, delta={"type": "input_json_delta", "partial_json": ""})
    + named("content_block_delta", index=2, delta={"type": "input_json_delta", "partial_json": '{"a"'})
    + named("content_block_delta", index=2, delta={"type": "input_json_delta", "partial_json": ":1}"})
    + named("content_block_stop", index=2)
    + named("message_delta", delta={"stop_reason": "tool_use", "stop_sequence": None}, usage={"output_tokens": 5})
    + named("message_stop"),
    named("error", error={"type": "overloaded_error", "message": "Overloaded"}),
)  # fmt: skip

REASONING: Json = {
    "type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAA",
}  # fmt: skip
MESSAGE: Json = {
    "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
    "content": [{"type": "output_text", "text": "héllo", "annotations": []}],
}  # fmt: skip
FUNCTION_CALL: Json = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": '{"a":1}'}
RESPONSE: Json = {
    "id": "resp_1", "object": "response", "status": "completed", "model": "m-2026", "error": None,
    "incomplete_details": None, "output": [REASONING, MESSAGE, FUNCTION_CALL],
    "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 5}, "output_tokens": 5,
              "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 15},
}  # fmt: skip
RESPONSES = Spoken(
    OpenAIResponses,
    "/v1/responses",
    "Authorization: Bearer ",
    RESPONSE,
    named("response.created", response={**RESPONSE, "status": "in_progress", "output": [], "usage": None})
    + named("response.output_item.added", output_index=0, item={"type": "reasoning", "id": "rs_1", "summary": []})
    + named("response.reasoning_summary_text.delta", output_index=0, summary_index=0, delta="hm")
    + named("response.output_item.done", output_index=0, item=REASONING)
    + named("response.output_item.added", output_index=1, item={**MESSAGE, "content": []})
    + named("response.output_text.delta", output_index=1, content_index=0, delta="hé"),
    named("response.output_text.delta", output_index=1, content_index=0, delta="llo")
    + named("response.output_text.done", output_index=1, content_index=0, text="héllo")
    + named("response.output_item.done", output_index=1, item=MESSAGE)
    + named("response.output_item.added", output_index=2, item={**FUNCTION_CALL, "arguments": ""})
    + named("response.function_call_arguments.delta", output_index=2, delta='{"a":1}')
    + named("response.function_call_arguments.done", output_index=2, arguments='{"a":1}')
    + named("response.output_item.done", output_index=2, item=FUNCTION_CALL)
    + named("response.completed", response=RESPONSE),
    named("error", code="server_error", message="overloaded", param=None, sequence_number=3),
)

WIRES = {"openai_chat": CHAT, "anthropic": ANTHROPIC, "openai_responses": RESPONSES}
