"""Replies of the two newer wires that are not the usual one, and what their errors teach."""

import orjson
import pytest
from wires import CLAUDE, FUNCTION_CALL, MESSAGE, REASONING, RESPONSE, THINKING, TOOL_USE, named

from surefoot.models.anthropic import Anthropic
from surefoot.models.json_edge import Json, mapping
from surefoot.models.openai_responses import OpenAIResponses
from surefoot.models.step_schemas import closed
from surefoot.types.errors import ModelRefused
from surefoot.types.messages import FinishReason, ModelMessage, ModelSettings, Usage

SETTINGS = ModelSettings(price_in=1.0, price_out=2.0)
CLAUDE_SENT: Json = {
    "model": "m", "max_tokens": 5, "temperature": 0, "top_p": 1, "stop_sequences": ["x"], "tools": [{"name": "f"}],
    "tool_choice": {"type": "auto"}, "thinking": {"type": "adaptive"},
    "output_config": {"effort": "low", "format": {"type": "json_schema"}}, "messages": [],
}  # fmt: skip
PLAIN_SENT: Json = {**CLAUDE_SENT, "thinking": None, "output_config": {"format": {}}}
RESPONSES_SENT: Json = {
    "model": "m", "store": False, "include": ["reasoning.encrypted_content"], "temperature": 0, "top_p": 1,
    "max_output_tokens": 5, "reasoning": {"effort": "low"}, "text": {"format": {}}, "tools": [{"name": "f"}],
    "parallel_tool_calls": False, "input": [],
}  # fmt: skip


def claude(**fields: object) -> ModelMessage:
    return Anthropic("m").read({**CLAUDE, **fields}, 400, SETTINGS)


def response(**fields: object) -> ModelMessage:
    return OpenAIResponses("m").read({**RESPONSE, **fields}, 400, SETTINGS)


@pytest.mark.parametrize(
    ("told", "finish"),
    [
        ("end_turn", "stop"), ("stop_sequence", "stop"), ("tool_use", "tool_calls"), ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"), ("pause_turn", "length"), ("refusal", "content_filter"),
        ("whatever", "unknown"), (None, "unknown"),
    ],
)  # fmt: skip
def test_why_claude_stopped(told: str | None, finish: FinishReason) -> None:
    assert claude(stop_reason=told).finish_reason == finish


def test_usage_of_claude_counts_the_cache_as_input() -> None:
    assert claude().usage == Usage(10, 5, 5, 0, 20 / 1e6)
    told = {"input_tokens": 1, "output_tokens": 2, "output_tokens_details": {"thinking_tokens": 1}}
    assert claude(usage=told).usage == Usage(1, 2, 0, 1, 5 / 1e6)
    assert claude(usage=None).usage.estimated


def test_only_reasoning_that_can_go_back_is_kept() -> None:
    hidden: Json = {"type": "redacted_thinking", "data": "AAAA"}
    torn: Json = {"type": "thinking", "thinking": "and"}
    reply = claude(content=[THINKING, {"type": "text", "text": "a"}, hidden, TOOL_USE, torn])
    assert reply.reasoning == "hm\n\nand"
    assert reply.opaque == (
        {"origin": "anthropic m", "position": 0, "item": THINKING},
        {"origin": "anthropic m", "position": 1, "item": hidden},
    )
    orjson.dumps(reply)  # it can be put on record


def test_claudes_servers_own_blocks_are_passed_over() -> None:
    own: Json = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    reply = claude(content=[own, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}])
    assert (reply.content, reply.calls) == ("ab", ())


def test_a_streamed_call_without_arguments() -> None:
    stream = Anthropic("m").stream(None)
    for event in (
        named("message_start", message={**CLAUDE, "content": [], "stop_reason": None}),
        named("content_block_start", index=0, content_block={**TOOL_USE, "input": {}}),
        named("content_block_start", index=1, content_block={"type": "text", "text": "a"}),
        named("content_block_delta", index=7, delta={"type": "text_delta", "text": "lost"}),
        named("content_block_delta", index=1, delta={"type": "citations_delta", "citation": {}}),
        named("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 9, "input_tokens": None}),
    ):
        stream.feed(mapping(orjson.loads(event.partition(b"data: ")[2])))
    reply = stream.message(400, SETTINGS)
    assert (reply.calls[0].arguments, reply.content, reply.usage.input_tokens) == ({}, "a", 10)


@pytest.mark.parametrize(
    ("fields", "finish"),
    [
        ({}, "tool_calls"),
        ({"output": [MESSAGE]}, "stop"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ({"status": "incomplete"}, "unknown"),
    ],
)
def test_why_a_response_ended(fields: Json, finish: FinishReason) -> None:
    assert response(**fields).finish_reason == finish


def test_usage_of_a_response() -> None:
    assert response().usage == Usage(10, 5, 5, 2, 20 / 1e6)
    assert response(usage=None).usage.estimated


def test_a_refusal_in_a_response() -> None:
    with pytest.raises(ModelRefused, match="I cannot") as caught:
        response(output=[{**MESSAGE, "content": [{"type": "refusal", "refusal": "I cannot"}]}])
    assert caught.value.kind == "refused"


def test_encrypted_reasoning_is_kept_with_its_place() -> None:
    unsigned = {"type": "reasoning", "id": "rs_2", "summary": [], "content": [{"type": "reasoning_text", "text": "so"}]}
    reply = response(output=[REASONING, FUNCTION_CALL, {**REASONING, "id": "rs_3"}, FUNCTION_CALL, unsigned])
    assert reply.reasoning == "hm\n\nhm\n\nso"
    assert [(kept["origin"], kept["position"]) for kept in reply.opaque] == [
        ("openai_responses m", 0), ("openai_responses m", 1),
    ]  # fmt: skip


def test_finished_items_stand_in_for_an_output_that_was_left_out() -> None:
    stream = OpenAIResponses("m").stream(None)
    for event in (
        named("response.output_item.done", item=MESSAGE),
        named("response.completed", response={**RESPONSE, "output": []}),
    ):
        stream.feed(mapping(orjson.loads(event.partition(b"data: ")[2])))
    assert stream.message(400, SETTINGS).content == "héllo"


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (named("response.failed", response={**RESPONSE, "status": "failed", "error": {"code": "c", "message": "m"}}),
         {"code": "c", "message": "m"}),
        (named("response.failed", response={**RESPONSE, "status": "failed"}),
         {"code": "server_error", "message": "the reply failed without a reason"}),
        (named("error", error={"message": "m", "code": "c"}), {"message": "m", "code": "c", "param": None}),
        (b'data: {"error": {"message": "m"}}', {"message": "m", "code": None, "param": None}),
    ],
)  # fmt: skip
def test_errors_in_a_stream_of_responses(event: bytes, error: Json) -> None:
    stream = OpenAIResponses("m").stream(None)
    stream.feed(mapping(orjson.loads(event.partition(b"data: ")[2])))
    assert mapping(stream.error)["error"] == error


@pytest.mark.parametrize(
    ("sent", "message", "learnt"),
    [
        (CLAUDE_SENT, "adaptive thinking is not supported on this model", ("reasoning_effort", "budget")),
        (CLAUDE_SENT, "This model does not support the effort parameter.", ("reasoning_effort", "budget")),
        (CLAUDE_SENT, ("thinking: Input tag 'adaptive' found using 'type' does not match any of the expected tags: "
         "'disabled', 'enabled'"), ("reasoning_effort", "budget")),
        ({**CLAUDE_SENT, "thinking": {"type": "enabled"}}, ('"thinking.type.enabled" is not supported for this model. '
         'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'),
         ("reasoning_effort", "adaptive")),
        ({**CLAUDE_SENT, "thinking": {"type": "enabled"}}, "thinking: Extra inputs are not permitted",
         ("reasoning_effort", "no")),
        ({**CLAUDE_SENT, "thinking": {"type": "enabled"}}, ("messages.1.content.0.type: Expected `thinking` or "
         "`redacted_thinking`, but found `tool_use`. When `thinking` is enabled, …"), ("reasoning_effort", "no")),
        (PLAIN_SENT, "`temperature` is deprecated for this model.", ("temperature", "no")),
        (PLAIN_SENT, "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
         ("temperature", "no")),
        (PLAIN_SENT, "top_p: Extra inputs are not permitted", ("top_p", "no")),
        (PLAIN_SENT, "stop_sequences is not supported", ("stop", "no")),
        (PLAIN_SENT, "m does not support tools", ("native_tools", "no")),
        (PLAIN_SENT, "output_config: Extra inputs are not permitted", ("json_schema", "no")),
        (PLAIN_SENT, ("output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set "
         "to false"), ("json_schema", "no")),
        (PLAIN_SENT, "'m' does not support output format.", ("json_schema", "no")),
        (PLAIN_SENT, "tools.0.cache_control: Extra inputs are not permitted", ("prompt_cache", "no")),
        (PLAIN_SENT, "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for m",
         ("max_output_tokens", "4096")),
        (PLAIN_SENT, "messages.1.content.0: Invalid `signature` in `thinking` block", ("reasoning_echo", "no")),
        (PLAIN_SENT, ("messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message "
         "cannot be modified."), ("reasoning_echo", "no")),
        (PLAIN_SENT, "messages: at least one message is required", None),
        (PLAIN_SENT, "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", None),
    ],
)  # fmt: skip
def test_what_refusals_of_claude_teach(sent: Json, message: str, learnt: tuple[str, str] | None) -> None:
    refused = Anthropic("m").refused(message, "invalid_request_error", "", sent, {})
    assert (refused and (refused.trait, refused.value)) == learnt
    if learnt:
        assert Anthropic("m").refused(message, "", "", sent, dict([learnt])) is None


@pytest.mark.parametrize(
    ("message", "code", "param", "learnt"),
    [
        ("Encrypted content is not supported with this model.", "", "include", ("reasoning_echo", "no")),
        ("Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.", "", "input",
         ("reasoning_echo", "no")),
        ("The encrypted content gAAA... could not be verified.", "invalid_encrypted_content", "",
         ("reasoning_echo", "no")),
        ("Item 'rs_1' of type 'reasoning' was provided without its required following item.", "", "input",
         ("reasoning_echo", "no")),
        ("Unsupported parameter: 'temperature' is not supported with this model.", "", "temperature",
         ("temperature", "no")),
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", "unsupported_parameter",
         "reasoning.effort", ("reasoning_effort", "no")),
        ("Invalid schema for response_format 'step': …", "invalid_json_schema", "text.format.schema",
         ("json_schema", "no")),
        ("Unknown parameter: 'text'.", "unknown_parameter", "text", ("json_schema", "no")),
        ("Unknown parameter: 'store'.", "unknown_parameter", "store", ("store", "no")),
        ("tools are not supported", "", "", ("native_tools", "no")),
        ("parallel_tool_calls: not supported", "", "", ("parallel_calls", "no")),
        ("Invalid 'input[0].content': too weird", "", "input[0].content", None),
        ("Invalid schema for function 'f'", "invalid_function_parameters", "tools[0].parameters", None),
    ],
)  # fmt: skip
def test_what_refusals_of_responses_teach(message: str, code: str, param: str, learnt: tuple[str, str] | None) -> None:
    refused = OpenAIResponses("m").refused(message, code, param, RESPONSES_SENT, {})
    assert (refused and (refused.trait, refused.value)) == learnt


def test_a_schema_for_claudes_grammar() -> None:
    given = {
        "anyOf": [
            {
                "type": "object",
                "properties": {
                    "maxLength": {"type": "string", "maxLength": 400},  # a name, and a limit
                    "open": {"type": "object"},
                    "list": {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 2},
                },
                "required": ["maxLength"],
            },
            {"const": {"minimum": 1}},
        ]
    }
    assert closed(given) == {
        "anyOf": [
            {
                "type": "object",
                "properties": {
                    "maxLength": {"type": "string"},
                    "open": {"type": "object"},
                    "list": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["maxLength"],
                "additionalProperties": False,
            },
            {"const": {"minimum": 1}},
        ]
    }
