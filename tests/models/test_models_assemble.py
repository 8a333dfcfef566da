import pytest

from surefoot.models.assemble import Assembler
from surefoot.types.errors import ModelRefused, ModelUnreachable
from surefoot.types.messages import (
    CallPreview,
    ModelMessage,
    ModelSettings,
    ModelSignal,
    NativeCall,
    ReasoningDelta,
    TextDelta,
    Usage,
)

Json = dict[str, object]
SETTINGS = ModelSettings(price_in=1.0, price_out=2.0)


def assemble(
    *deltas: Json, finish: str | None = "stop", usage: object = None
) -> tuple[ModelMessage, list[ModelSignal]]:
    shown: list[ModelSignal] = []
    assembler = Assembler(shown.append)
    for delta in deltas:
        assembler.feed({"model": "m", "id": "i", "choices": [{"index": 0, "delta": delta}]})
    if finish:
        assembler.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage:
        assembler.feed({"choices": [], "usage": usage})
    return assembler.message(400, SETTINGS), shown


def piece(index: int | None = None, call_id: str | None = None, **function: object) -> Json:
    call: Json = {"function": function}
    if index is not None:
        call["index"] = index
    if call_id is not None:
        call["id"] = call_id
    return {"tool_calls": [call]}


def whole_piece(index: int, call_id: str) -> list[object]:
    return [{"index": index, "id": call_id, "function": {"name": "f", "arguments": "{}"}}]


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


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        pytest.param(
            [{"tool_calls": [*whole_piece(0, "c0"), *whole_piece(1, "c1")]}],
            [("c0", "f", "{}"), ("c1", "f", "{}")],
            id="several in one chunk",
        ),
        pytest.param(
            [piece(None, "c1", name="f", arguments="{"), piece(None, None, arguments="}")],
            [("c1", "f", "{}")],
            id="no index",
        ),
        pytest.param(
            [piece(None, "c1", name="f", arguments="{}"), piece(None, "c2", name="f", arguments="{}")],
            [("c1", "f", "{}"), ("c2", "f", "{}")],
            id="no index, two calls",
        ),
        pytest.param(
            [piece(None, None, name="f", arguments="{}"), piece(None, None, name="f", arguments="{}")],
            [("", "f", "{}"), ("", "f", "{}")],
            id="neither index nor id",
        ),
        pytest.param(
            [piece(0, "c1", name="f", arguments="{}"), piece(0, "c2", name="g", arguments="{}")],
            [("c1", "f", "{}"), ("c2", "g", "{}")],
            id="index 0 for each",
        ),
        pytest.param(
            [piece(None, None, name="f", arguments={"a": 1}), piece(None, None, name="f", arguments={"a": 2})],
            [("", "f", {"a": 1}), ("", "f", {"a": 2})],
            id="neither index nor id, objects",
        ),
        pytest.param(
            [piece(0, name="f", arguments={"a": 1}), piece(0, name="g", arguments={"a": 2})],
            [("", "f", {"a": 1}), ("", "g", {"a": 2})],
            id="index 0 for each, objects, no id",
        ),
        pytest.param(
            [piece(0, name="f", arguments="{}"), piece(0, name="g", arguments="{"), piece(0, arguments="}")],
            [("", "f", "{}"), ("", "g", "{}")],
            id="index 0 for each, no id",
        ),
        pytest.param(
            [piece(0, name="f", arguments="{"), piece(0, name="f", arguments="}")],
            [("", "f", "{}")],
            id="name repeated, no id",
        ),
        pytest.param(
            [piece(0, "c1", name="f", arguments="{"), piece(0, "c1", name="f", arguments="}")],
            [("c1", "f", "{}")],
            id="id and name repeated",
        ),
        pytest.param(
            [piece(0, "c1", name="get_"), piece(0, name="weather"), piece(0, arguments="{}")],
            [("c1", "get_weather", "{}")],
            id="name in pieces",
        ),
        pytest.param([piece(0, "c1", name="f", arguments={"a": 1})], [("c1", "f", {"a": 1})], id="an object"),
        pytest.param([piece(0, "c1", name="f")], [("c1", "f", "")], id="no arguments"),
        pytest.param([{"function_call": {"name": "f", "arguments": "{}"}}], [("", "f", "{}")], id="the old form"),
    ],
)
def test_calls_of_every_kind_of_server(deltas: list[Json], expected: list[tuple[str, str, object]]) -> None:
    assert calls(*deltas) == expected


def test_the_whole_message_in_one_chunk() -> None:
    assembler = Assembler(None)
    call = {"id": "c", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "hi", "tool_calls": [call]}
    assembler.feed({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    reply = assembler.message(0, SETTINGS)
    assert (reply.content, reply.calls, reply.finish_reason) == ("hi", (NativeCall("c", "f", "{}"),), "tool_calls")


def test_usage_is_told_or_estimated() -> None:
    told = {"prompt_tokens": 7, "completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 2}}
    assert assemble({"content": "x"}, usage=told)[0].usage == Usage(7, 3, 0, 2, 13e-6)
    assert assemble({"content": "12345678"})[0].usage == Usage(100, 2, cost_usd=104e-6, estimated=True)


def test_a_stream_that_breaks_off_is_no_reply() -> None:
    with pytest.raises(ModelUnreachable, match="before the reply was complete"):
        assemble({"content": "half"}, finish=None)
    empty = Assembler(None)
    empty.is_over = True
    with pytest.raises(ModelUnreachable):
        empty.message(0, SETTINGS)


def test_done_without_a_finish_reason_is_an_end() -> None:
    assembler = Assembler(None)
    assembler.feed({"choices": [{"delta": {"content": "hi"}}]})
    assembler.is_over = True
    assert assembler.message(0, SETTINGS).finish_reason == "unknown"


def test_a_refusal_in_pieces() -> None:
    with pytest.raises(ModelRefused, match="I cannot") as caught:
        assemble({"refusal": "I "}, {"refusal": "cannot"})
    assert caught.value.kind == "refused"
