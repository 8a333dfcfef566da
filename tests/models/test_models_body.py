from dataclasses import replace

import orjson
import pytest
from conversations import CONVERSATIONS, SCORE, SETTINGS, SYSTEM, TOOLS, request
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from surefoot.models.json_edge import Json, items, mapping
from surefoot.models.openai_body import BodyWriter
from surefoot.models.step_schemas import is_strict
from surefoot.types.errors import ModelRefused
from surefoot.types.messages import CallMode, ModelMessage, ModelRequest, ModelSettings, NativeCall
from surefoot.types.tools import Catalogue, ToolSpec


def body(asked: ModelRequest, model: str = "m") -> Json:
    return mapping(orjson.loads(BodyWriter(model).body(asked)))


def messages(asked: ModelRequest, model: str = "m") -> list[Json]:
    return [mapping(item) for item in items(body(asked, model)["messages"])]


def fields(asked: ModelRequest) -> Json:
    return {name: value for name, value in body(asked).items() if name != "messages"}


EXPECTED_MESSAGES: dict[str, object] = snapshot(
    {
        "question": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Sum of Alice's and Bob's scores? 分数"},
        ],
        "two_calls": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Sum of Alice's and Bob's scores? 分数"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "functions.exam_score:0",
                        "type": "function",
                        "function": {"name": "exam_score", "arguments": '{"name":"Alice"}'},
                    },
                    {
                        "id": "call_2",
                        "type": "function",
                        "function": {"name": "exam_score", "arguments": '{"name":"Bob"}'},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "functions.exam_score:0", "content": "90"},
            {"role": "tool", "tool_call_id": "call_2", "content": '{"Bob":81}'},
        ],
        "faulty_calls": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Sum of Alice's and Bob's scores? 分数"},
            {
                "role": "assistant",
                "content": "Trying.",
                "tool_calls": [
                    {
                        "id": "c3",
                        "type": "function",
                        "function": {"name": "exam_score", "arguments": '{"unreadable_arguments":"{\\"name\\":"}'},
                    },
                    {"id": "c4", "type": "function", "function": {"name": "exam_score", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c3", "content": "the arguments are no JSON"},
            {"role": "tool", "tool_call_id": "c4", "content": "name is required"},
        ],
        "text_steps": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Sum of Alice's and Bob's scores? 分数"},
            {
                "role": "assistant",
                "content": """\
Action: exam_score
Action Input: Alice\
""",
            },
            {"role": "user", "content": "Observation: 90"},
            {"role": "user", "content": "You have 2 rounds left."},
        ],
    }
)
EXPECTED_FIELDS: dict[str, object] = snapshot(
    {
        "native": {
            "model": "m",
            "temperature": 0,
            "max_tokens": 64,
            "seed": 0,
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "exam_score",
                        "description": "Exam score of one student.",
                        "parameters": {
                            "type": "object",
                            "properties": {"name": {"type": "string"}},
                            "required": ["name"],
                        },
                    },
                }
            ],
        },
        "schema": {
            "model": "m",
            "temperature": 0,
            "max_tokens": 64,
            "seed": 0,
            "response_format": {
                "type": "json_schema",
                "json_schema": {
                    "name": "step",
                    "schema": {
                        "type": "object",
                        "properties": {"thought": {"type": "string"}},
                        "required": ["thought"],
                        "additionalProperties": False,
                    },
                    "strict": True,
                },
            },
        },
        "text": {
            "model": "m",
            "temperature": 0,
            "max_tokens": 64,
            "seed": 0,
            "stop": [
                """\

Observation:\
"""
            ],
        },
    }
)


def test_the_messages_of_every_conversation() -> None:
    assert {name: messages(request(name)) for name in CONVERSATIONS} == EXPECTED_MESSAGES


@pytest.mark.parametrize("mode", ["schema", "text"])
def test_messages_are_the_same_in_every_mode(mode: CallMode) -> None:
    # what differs between modes was decided by the view; the wire says the same messages the same way
    assert {name: messages(request(name, mode)) for name in CONVERSATIONS} == EXPECTED_MESSAGES


def test_the_fields_of_every_mode() -> None:
    modes: tuple[CallMode, ...] = ("native", "schema", "text")
    assert {mode: fields(request("question", mode)) for mode in modes} == EXPECTED_FIELDS


def test_streams_ask_for_usage() -> None:
    streamed = replace(request("question"), stream=True)
    assert body(streamed)["stream_options"] == {"include_usage": True}
    assert body(streamed)["stream"] is True
    assert "stream_options" not in body(replace(streamed, traits={"stream_usage": "no"}))


@pytest.mark.parametrize(
    ("mode", "trait", "value", "gone"),
    [
        ("native", "native_tools", "no", "tools"),
        ("schema", "json_schema", "no", "response_format"),
        ("text", "stop", "no", "stop"),
        ("text", "temperature", "no", "temperature"),
        ("text", "seed", "no", "seed"),
        ("text", "max_tokens_field", "no", "max_tokens"),
    ],
)
def test_a_trait_drops_its_field(mode: CallMode, trait: str, value: str, gone: str) -> None:
    usual = fields(request("question", mode))
    assert fields(request("question", mode, **{trait: value})) == {n: v for n, v in usual.items() if n != gone}
    assert gone in usual


def test_a_trait_renames_the_token_limit() -> None:
    named = fields(request("question", max_tokens_field="max_completion_tokens"))
    assert (named["max_completion_tokens"], "max_tokens" in named) == (64, False)


@pytest.mark.parametrize(("value", "sent"), [("on", True), ("off", False), ("no", None), ("", None)])
def test_parallel_calls_are_spoken_of_by_trait_only(value: str, sent: bool | None) -> None:
    assert fields(request("question", parallel_calls=value)).get("parallel_tool_calls") is sent


@pytest.mark.parametrize(
    ("role", "first"),
    [
        ("developer", {"role": "developer", "content": SYSTEM}),
        ("user", {"role": "user", "content": SYSTEM}),
        ("no", {"role": "user", "content": f"{SYSTEM}\n\nSum of Alice's and Bob's scores? 分数"}),
    ],
)
def test_the_system_message_by_trait(role: str, first: Json) -> None:
    assert messages(request("question", system_role=role))[0] == first


@pytest.mark.parametrize(("value", "content"), [("null", None), ("empty", ""), ("blank", " ")])
def test_missing_content_by_trait(value: str, content: str | None) -> None:
    assert messages(request("two_calls", null_content=value))[2]["content"] == content


def test_neighbours_are_merged_by_trait() -> None:
    merged = messages(request("text_steps", alternation="yes"))
    assert [message["role"] for message in merged] == ["system", "user", "assistant", "user"]
    assert merged[-1]["content"] == "Observation: 90\n\nYou have 2 rounds left."
    both = messages(request("text_steps", alternation="yes", system_role="user"))
    assert [message["role"] for message in both] == ["user", "user", "assistant", "user"]


def test_reasoning_goes_back_only_to_its_model_and_only_by_trait() -> None:
    assert messages(request("two_calls", reasoning_echo="yes"))[2]["reasoning_content"] == "I need both."
    assert messages(request("two_calls", reasoning_echo="reasoning"), "vendor/m")[2]["reasoning"] == "I need both."
    assert "reasoning_content" not in messages(request("two_calls", reasoning_echo="yes"), "other")[2]
    assert "reasoning_content" not in messages(request("two_calls", reasoning_echo="no"))[2]


def test_nothing_is_remembered_between_forms() -> None:
    writer = BodyWriter("m")
    plain, dropped = request("two_calls"), request("two_calls", temperature="no", null_content="empty")
    first = writer.body(plain)
    assert b"temperature" not in writer.body(dropped)
    assert writer.body(plain) == first
    for number in range(20):
        writer.body(replace(plain, settings=ModelSettings(seed=number)))
    assert writer.body(plain) == first


def test_none_is_not_sent_and_zero_is() -> None:
    bare = fields(ModelRequest("", ()))
    assert bare == {"model": "m"}
    zeros = ModelSettings(temperature=0, top_p=0, max_output_tokens=0, seed=0)
    assert fields(ModelRequest("", (), settings=zeros)) == {
        "model": "m", "temperature": 0, "top_p": 0, "max_tokens": 0, "seed": 0,
    }  # fmt: skip


def test_extra_goes_in_as_it_is_but_not_over_ours() -> None:
    assert fields(ModelRequest("", (), settings=ModelSettings(extra={"top_k": 5})))["top_k"] == 5
    with pytest.raises(ModelRefused, match="messages"):
        body(ModelRequest("", (), settings=ModelSettings(extra={"messages": []})))


def test_at_most_four_stops() -> None:
    asked = replace(request("question", "text"), stop=("a", "b", "a"), settings=ModelSettings(stop=("c", "d", "e")))
    assert fields(asked)["stop"] == ["a", "b", "c", "d"]


def test_strict_only_where_the_wire_allows_it() -> None:
    closed: Json = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}
    assert is_strict(closed)
    assert not is_strict({"anyOf": [closed]})
    assert not is_strict({**closed, "required": []})
    assert not is_strict({**closed, "properties": {"a": {"type": "object"}}})


def test_half_a_surrogate_pair_does_not_stop_a_run() -> None:
    assert messages(ModelRequest("", (ModelMessage("user", "a\ud83db"),)))[0]["content"] == "a?b"


def test_tools_are_encoded_once_a_catalogue() -> None:
    catalogue = Catalogue((SCORE, ToolSpec("分", "数", {"type": "object"})))
    first = BodyWriter("a").body(ModelRequest("", (), tools=catalogue))
    assert "分".encode() in first
    made = catalogue.derived("openai_chat", lambda _: b"made again")
    assert made in first


TEXT = st.text(max_size=12)
CALLS = st.lists(
    st.builds(NativeCall, TEXT, TEXT, TEXT | st.dictionaries(TEXT, st.integers(-5, 5) | TEXT, max_size=2)), max_size=4
)


@given(CALLS, TEXT, st.sampled_from(["null", "empty", "blank"]), st.booleans())
def test_no_call_id_is_lost_or_invented(calls: list[NativeCall], content: str, null_content: str, merge: bool) -> None:
    turn = (ModelMessage("assistant", content, tuple(calls)), *(ModelMessage("tool", "r", call_id=c.id) for c in calls))
    history = (ModelMessage("user", "q"), *turn, ModelMessage("user", "q"), ModelMessage("user", "q"), *turn)
    traits = {"null_content": null_content, "alternation": "yes" if merge else "no"}
    sent = messages(ModelRequest("s", history, settings=SETTINGS, tools=TOOLS, traits=traits))
    ids = [clean(call.id) for call in calls] * 2
    assert [mapping(call)["id"] for message in sent for call in items(message.get("tool_calls"))] == ids
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == ids
    for message in sent:
        for call in items(message.get("tool_calls")):
            arguments = mapping(mapping(call)["function"])["arguments"]
            assert isinstance(arguments, str)
            assert isinstance(orjson.loads(arguments), dict)


def clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
