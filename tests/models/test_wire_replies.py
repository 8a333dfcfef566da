"""Replies as servers of every kind send them, whole and in pieces."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import orjson
import pytest
from fake_endpoint import Json
from wires import WIRES

from cases import cases
from surefoot.models.anthropic import Anthropic
from surefoot.models.json_edge import mapping
from surefoot.models.openai_chat import OpenAIChat
from surefoot.models.openai_responses import OpenAIResponses
from surefoot.models.wire import Wire
from surefoot.types.errors import ModelError
from surefoot.types.messages import ModelMessage, ModelRequest, ModelSettings, ModelSignal, NativeCall

SETTINGS = ModelSettings(price_in=1.0, price_out=2.0)


def heard(wire: str, events: Sequence[Json], reply: Json | None, *, is_over: bool = False) -> Json:
    """What becomes of a reply, in events or whole, and what was shown of it: all that a row may say of that."""
    shown: list[ModelSignal] = []
    stream = WIRES[wire].wire("m").stream(shown.append)
    for event in events:
        stream.feed(event)
    if reply is not None:
        stream.feed_whole(reply)
    stream.is_over = stream.is_over or is_over
    try:
        message = stream.message(400, SETTINGS)
    except ModelError as error:
        return {"fails": f"{type(error).__name__}, {error.kind}: {error}"}
    told = cast("Json", json.loads(orjson.dumps(message)))  # as it can be put on record
    return {**told, "shown": [*map(str, shown)]}


@cases("models/wire_replies")
def test_what_a_reply_says(
    wire: str, events: Sequence[Json], reply: Json | None, says: Mapping[str, object], *, is_over: bool
) -> None:
    told = heard(wire, events, reply, is_over=is_over)
    assert {part: told[part] for part in says} == says


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
    bodies = [orjson.loads(one.body(ModelRequest("", history))) for one in (wire, OpenAIChat("another"))]
    sent = [body["messages"][1]["tool_calls"][0] for body in bodies]
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
        request = ModelRequest("", history, settings=ModelSettings(reasoning_effort="high"))
        plain = orjson.loads(wire.body(request))
        effort = wire.refused("reasoning effort is not supported for this model", "", "reasoning_effort", plain, {})
        refused = wire.refused("property 'messages.1.reasoning_details' is unsupported", "", "", plain, {})
        assert effort is not None
        assert refused is not None
        assert (effort.trait, refused.trait, refused.value) == ("reasoning_effort", "reasoning_echo", "no")
        without = orjson.loads(wire.body(replace(request, traits={"reasoning_echo": "no"})))["messages"][1]
        assert "reasoning_details" not in without


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
