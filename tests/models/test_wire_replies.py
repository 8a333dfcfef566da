"""Replies as servers of every kind send them, whole and in pieces."""

import json
from dataclasses import replace
from typing import Any, cast

import orjson
import pytest
from fake_endpoint import Json, completion
from wires import CLAUDE, FUNCTION_CALL, MESSAGE, REASONING, RESPONSE, THINKING, TOOL_USE, named

from cases import cases
from surefoot.models.anthropic import Anthropic
from surefoot.models.json_edge import mapping
from surefoot.models.openai_chat import ChatReply, OpenAIChat
from surefoot.models.openai_responses import OpenAIResponses
from surefoot.models.wire import ReplyStream, Wire
from surefoot.types.errors import ModelRefused, ModelUnreachable
from surefoot.types.messages import (
    CallPreview,
    FinishReason,
    ModelMessage,
    ModelRequest,
    ModelSettings,
    ModelSignal,
    NativeCall,
    ReasoningDelta,
    TextDelta,
    Usage,
)

SETTINGS = ModelSettings(price_in=1.0, price_out=2.0)


def claude(**fields: object) -> ModelMessage:
    return Anthropic("m").read({**CLAUDE, **fields}, 400, SETTINGS)


def response(**fields: object) -> ModelMessage:
    return OpenAIResponses("m").read({**RESPONSE, **fields}, 400, SETTINGS)


def feed(stream: ReplyStream, *events: bytes) -> ReplyStream:
    for event in events:
        stream.feed(mapping(orjson.loads(event.partition(b"data: ")[2])))
    return stream


# OpenAI chat


def assemble(
    *deltas: Json, finish: str | None = "stop", usage: object = None
) -> tuple[ModelMessage, list[ModelSignal]]:
    shown: list[ModelSignal] = []
    stream = ChatReply(shown.append)
    for delta in deltas:
        stream.feed({"model": "m", "id": "i", "choices": [{"index": 0, "delta": delta}]})
    if finish:
        stream.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage:
        stream.feed({"choices": [], "usage": usage})
    return stream.message(400, SETTINGS), shown


def piece(index: int | None = None, call_id: str | None = None, **function: object) -> Json:
    call: Json = {"function": function}
    if index is not None:
        call["index"] = index
    if call_id is not None:
        call["id"] = call_id
    return {"tool_calls": [call]}


def calls(*deltas: Json) -> list[tuple[str, str, object]]:
    return [(call.id, call.name, call.arguments) for call in assemble(*deltas, finish="tool_calls")[0].calls]


def test_text_and_reasoning_are_shown_as_they_come() -> None:
    message, shown = assemble(
        {"role": "assistant", "content": ""}, {"reasoning_content": "hm"}, {"content": "a"}, {"content": "b"}
    )
    assert (message.content, message.reasoning, message.model, message.id) == ("ab", "hm", "m", "i")
    assert shown == [ReasoningDelta("hm"), TextDelta("a"), TextDelta("b")]


def test_content_as_parts() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "hi"}]
    message, shown = assemble({"content": parts})
    assert (message.content, message.reasoning) == ("hi", "hm")
    assert shown == [ReasoningDelta("hm"), TextDelta("hi")]


def test_the_usual_pieces() -> None:
    deltas = (
        piece(0, "c1", name="add", arguments=""),
        piece(0, arguments='{"a"'),
        piece(1, "c2", name="mul", arguments=""),
        piece(0, arguments=":1}"),
        piece(1, arguments="{}"),
    )
    assert calls(*deltas) == [("c1", "add", '{"a":1}'), ("c2", "mul", "{}")]
    shown = assemble(*deltas, finish="tool_calls")[1]
    assert shown == [CallPreview(0, "add"), CallPreview(1, "mul")]


ONE, TWO = [("c1", "f", "{}")], [("c1", "f", "{}"), ("c2", "f", "{}")]
NO_IDS = [("", "f", "{}"), ("", "g", "{}")]


@cases("models/wire_replies")
def test_calls_of_every_kind_of_server(deltas: list[Json], expected: list[tuple[str, str, object]]) -> None:
    assert calls(*deltas) == expected


def test_the_whole_message_in_one_chunk() -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "hi", "tool_calls": [call]}
    chunk = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
    reply = feed(ChatReply(None), b"data: " + orjson.dumps(chunk)).message(0, SETTINGS)
    assert (reply.content, reply.calls, reply.finish_reason) == ("hi", (NativeCall("c", "f", "{}"),), "tool_calls")


def test_usage_is_told_or_estimated() -> None:
    told = {"prompt_tokens": 7, "completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 2}}
    assert assemble({"content": "x"}, usage=told)[0].usage == Usage(7, 3, 0, 2, 13e-6)
    assert assemble({"content": "12345678"})[0].usage == Usage(100, 2, cost_usd=104e-6, estimated=True)


def test_a_stream_that_breaks_off_is_no_reply() -> None:
    with pytest.raises(ModelUnreachable, match="before the reply was complete"):
        assemble({"content": "half"}, finish=None)
    for finish in ("error", "insufficient_system_resource"):
        with pytest.raises(ModelUnreachable, match=f"broke the reply off .{finish}"):
            assemble({"content": "half"}, finish=finish)
    empty = ChatReply(None)
    empty.is_over = True
    with pytest.raises(ModelUnreachable):
        empty.message(0, SETTINGS)


def test_done_without_a_finish_reason_is_an_end() -> None:
    done = feed(ChatReply(None), b'data: {"choices": [{"delta": {"content": "hi"}}]}')
    done.is_over = True
    assert done.message(0, SETTINGS).finish_reason == "unknown"


def test_a_refusal_in_pieces() -> None:
    with pytest.raises(ModelRefused, match="I cannot") as caught:
        assemble({"refusal": "I "}, {"refusal": "cannot"})
    assert caught.value.kind == "refused"


@cases("models/wire_replies")
def test_the_forms_of_whole_replies(content: object, finish: str, message: Json, expected: tuple[object, ...]) -> None:
    reply = OpenAIChat("m").read(completion(content, finish, **message), 400, SETTINGS)
    made = tuple((call.id, call.name, call.arguments) for call in reply.calls)
    assert (reply.content, reply.finish_reason, made) == expected


def test_usage_of_a_whole_reply() -> None:
    told = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 8}, "cost": 0.5}
    assert OpenAIChat("m").read({**completion("x"), "usage": told}, 400, SETTINGS).usage == Usage(9, 4, 8, 0, 0.5)
    usage = OpenAIChat("m").read({**completion("12345678"), "usage": None}, 400, SETTINGS).usage
    assert usage == Usage(100, 2, cost_usd=104e-6, estimated=True)


def test_a_refusal_of_a_whole_reply() -> None:
    with pytest.raises(ModelRefused, match="I cannot help"):
        OpenAIChat("m").read(completion(None, refusal="I cannot help with that."), 400, SETTINGS)


# Anthropic, OpenAI Responses


@cases("models/wire_replies")
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
    events = (
        named("message_start", message={**CLAUDE, "content": [], "stop_reason": None}),
        named("content_block_start", index=0, content_block={**TOOL_USE, "input": {}}),
        named("content_block_start", index=1, content_block={"type": "text", "text": "a"}),
        named("content_block_delta", index=7, delta={"type": "text_delta", "text": "lost"}),
        named("content_block_delta", index=1, delta={"type": "citations_delta", "citation": {}}),
        named("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 9, "input_tokens": None}),
    )
    reply = feed(Anthropic("m").stream(None), *events).message(400, SETTINGS)
    assert (reply.calls[0].arguments, reply.content, reply.usage.input_tokens) == ({}, "a", 10)


@cases("models/wire_replies")
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
    events = (
        named("response.output_item.done", item=MESSAGE),
        named("response.completed", response={**RESPONSE, "output": []}),
    )
    assert feed(OpenAIResponses("m").stream(None), *events).message(400, SETTINGS).content == "héllo"


@cases("models/wire_replies")
def test_errors_in_a_stream_of_responses(event: Json, error: Json) -> None:
    stream = OpenAIResponses("m").stream(None)
    stream.feed(event)
    assert mapping(stream.error)["error"] == error


def test_what_a_call_carries_is_sent_back_to_its_model_alone() -> None:
    signed = {"google": {"thought_signature": "S"}}
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}, "extra_content": signed}
    wire = OpenAIChat("gemini")
    reply = wire.stream(None)
    reply.feed_whole(
        {
            "model": "gemini",
            "choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135},
        }
    )
    message = reply.message(10, ModelSettings())
    assert (message.usage.input_tokens, message.usage.output_tokens) == (32, 103)  # the total counts what was thought
    history = (ModelMessage("user", "Add."), message, ModelMessage("tool", "1", call_id="c1"))
    sent = [
        orjson.loads(one.body(ModelRequest("", history)))["messages"][1]["tool_calls"][0]
        for one in (wire, OpenAIChat("another"))
    ]
    assert [one.get("extra_content") for one in sent] == [signed, None]


LONG = f"chatcmpl-tool-{'a' * 32}"


@pytest.mark.parametrize(
    ("shape", "given", "said"),
    [
        ("alnum9", "call_1_0", "Tool call id was call_1_0 but must be a-z, A-Z, 0-9, with a length of 9."),
        ("short", LONG, "Invalid 'messages[1].tool_calls[0].id': string too long. Expected maximum length 40."),
    ],
)
def test_an_id_that_a_server_refuses_is_sent_in_its_shape(shape: str, given: str, said: str) -> None:
    wire, fits = OpenAIChat("m"), "abcDEF012"
    calls = (NativeCall(given, "add", "{}"), NativeCall(fits, "add", "{}"))
    results = (ModelMessage("tool", "1", call_id=given), ModelMessage("tool", "2", call_id=fits))
    request = ModelRequest("", (ModelMessage("user", "Add."), ModelMessage("assistant", "", calls), *results))
    plain = orjson.loads(wire.body(request))
    assert [one["id"] for one in plain["messages"][1]["tool_calls"]] == [given, fits]
    learnt = wire.refused(said, "", "", plain, {})
    assert learnt is not None
    assert (learnt.trait, learnt.value) == ("id_shape", shape)
    sent = orjson.loads(wire.body(replace(request, traits={"id_shape": shape})))["messages"]
    ids = [one["id"] for one in sent[1]["tool_calls"]]
    assert ids == [one["tool_call_id"] for one in sent[2:]]
    assert ids[1] == fits
    assert len(ids[0]) == {"alnum9": 9, "short": 32}[shape]
    assert ids[0].isalnum()


def test_details_of_reasoning_are_sent_back_to_their_model_alone_as_they_came() -> None:
    thought: Json = {"type": "reasoning.text", "text": "Add them.", "index": 0, "signature": "S"}
    sealed: Json = {"type": "reasoning.encrypted", "data": "D", "id": "c1", "index": 1}
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    pieces: list[Json] = [
        {"reasoning_details": [{**thought, "text": "Add ", "signature": None}]},
        {"reasoning_details": [{**thought, "text": "them."}]},
        {"reasoning_details": [sealed]},
        {"content": None, "tool_calls": [call]},
    ]
    wire = OpenAIChat("google/gemini-3-flash")
    streamed, whole = wire.stream(None), wire.stream(None)
    for piece in pieces:
        streamed.feed({"choices": [{"delta": piece, "finish_reason": None}]})
    streamed.feed({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    message = {"content": None, "tool_calls": [call], "reasoning_details": [thought, sealed]}
    whole.feed_whole({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    for reply in (streamed, whole):
        said = reply.message(10, ModelSettings())
        history = (ModelMessage("user", "Add."), said, ModelMessage("tool", "1", call_id="c1"))
        for model, details in ((wire, [thought, sealed]), (OpenAIChat("another"), None)):
            sent = orjson.loads(model.body(ModelRequest("", history)))["messages"][1]
            assert sent.get("reasoning_details") == details
            assert sent["tool_calls"][0]["id"] == "c1"


def test_who_wants_reasoning_back_gets_the_field_with_each_message() -> None:
    wire = OpenAIChat("deepseek")
    said = [ModelMessage("assistant", "a", reasoning="hm", model="deepseek"), ModelMessage("assistant", "b", model="x")]
    request = ModelRequest("", (ModelMessage("user", "Go."), *said), traits={"reasoning_echo": "reasoning_content"})
    messages = orjson.loads(wire.body(request))["messages"]
    assert [one.get("reasoning_content") for one in messages] == [None, "hm", ""]


def test_settings_of_ones_own_are_merged_with_ours() -> None:
    settings = ModelSettings(reasoning_effort="low", extra={"reasoning": {"summary": "auto"}})
    body = OpenAIResponses("m").body(ModelRequest("", (ModelMessage("user", "Go."),), settings=settings))
    assert orjson.loads(body)["reasoning"] == {"effort": "low", "summary": "auto"}


@pytest.mark.parametrize(
    ("wire", "extra", "held", "alone"),
    [
        (OpenAIResponses("m"), {"text": {"verbosity": "low"}}, ["verbosity", "format"], ["verbosity"]),
        (Anthropic("m"), {"output_config": {"x": 1}, "thinking": {}}, ["x", "effort", "format"], ["x", "effort"]),
        (OpenAIChat("m"), {"response_format": {"type": "json_object"}}, ["type", "json_schema"], ["type"]),
    ],
)
def test_no_field_is_written_twice(wire: Wire[Any], extra: Json, held: list[str], alone: list[str]) -> None:
    settings = ModelSettings(reasoning_effort="low", extra=extra)
    asked = ModelRequest("", (ModelMessage("user", "Go."),), settings=settings, schema={"type": "object"})
    for request, names in ((asked, held), (replace(asked, schema=None), alone)):
        pairs: list[tuple[str, object]] = json.loads(wire.body(request), object_pairs_hook=list)
        assert len(pairs) == len(dict(pairs))
        inside = cast("list[tuple[str, object]]", dict(pairs)[wire.held_in])
        assert [name for name, _ in inside] == names
