from dataclasses import replace
from itertools import pairwise

import orjson
import pytest
from conversations import CONVERSATIONS, QUESTION, SETTINGS, TOOLS, request
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from surefoot.models.anthropic import Anthropic
from surefoot.models.anthropic_body import DEFAULT_MAX_TOKENS, wire_id
from surefoot.models.history import opaque_item
from surefoot.models.json_edge import Json, items, mapping
from surefoot.types.errors import ModelRefused
from surefoot.types.messages import CallMode, ModelMessage, ModelRequest, ModelSettings, NativeCall
from surefoot.types.tools import Catalogue

MARK = {"type": "ephemeral"}
THOUGHT: Json = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


def body(asked: ModelRequest, model: str = "m") -> Json:
    return mapping(orjson.loads(Anthropic(model).body(asked)))


def messages(asked: ModelRequest, model: str = "m") -> list[Json]:
    return [mapping(item) for item in items(body(asked, model)["messages"])]


def fields(asked: ModelRequest) -> Json:
    return {name: value for name, value in body(asked).items() if name not in ("messages", "system")}


def blocks(asked: ModelRequest, at: int, model: str = "m") -> list[Json]:
    return [mapping(block) for block in items(messages(asked, model)[at]["content"])]


EXPECTED_MESSAGES: dict[str, object] = snapshot(
    {
        "question": [
            {
                "role": "user",
                "content": [
                    {
                        "type": "text",
                        "text": "Sum of Alice's and Bob's scores? 分数",
                        "cache_control": {"type": "ephemeral"},
                    }
                ],
            }
        ],
        "two_calls": [
            {"role": "user", "content": [{"type": "text", "text": "Sum of Alice's and Bob's scores? 分数"}]},
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "tool_use",
                        "id": "functions_exam_score_0_fbe56ea8",
                        "name": "exam_score",
                        "input": {"name": "Alice"},
                    },
                    {"type": "tool_use", "id": "call_2", "name": "exam_score", "input": {"name": "Bob"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "functions_exam_score_0_fbe56ea8", "content": "90"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_2",
                        "content": '{"Bob":81}',
                        "cache_control": {"type": "ephemeral"},
                    },
                ],
            },
        ],
        "faulty_calls": [
            {"role": "user", "content": [{"type": "text", "text": "Sum of Alice's and Bob's scores? 分数"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Trying."},
                    {
                        "type": "tool_use",
                        "id": "c3",
                        "name": "exam_score",
                        "input": {"unreadable_arguments": '{"name":'},
                    },
                    {"type": "tool_use", "id": "c4", "name": "exam_score", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c3", "content": "the arguments are no JSON"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "c4",
                        "content": "name is required",
                        "cache_control": {"type": "ephemeral"},
                    },
                ],
            },
        ],
        "text_steps": [
            {"role": "user", "content": [{"type": "text", "text": "Sum of Alice's and Bob's scores? 分数"}]},
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "text",
                        "text": """\
Action: exam_score
Action Input: Alice\
""",
                    }
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Observation: 90"},
                    {"type": "text", "text": "You have 2 rounds left.", "cache_control": {"type": "ephemeral"}},
                ],
            },
        ],
    }
)
EXPECTED_FIELDS: dict[str, object] = snapshot(
    {
        "native": {
            "model": "m",
            "max_tokens": 64,
            "temperature": 0,
            "tools": [
                {
                    "name": "exam_score",
                    "description": "Exam score of one student.",
                    "input_schema": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}},
                        "required": ["name"],
                    },
                    "cache_control": {"type": "ephemeral"},
                }
            ],
        },
        "schema": {
            "model": "m",
            "max_tokens": 64,
            "temperature": 0,
            "output_config": {
                "format": {
                    "type": "json_schema",
                    "schema": {
                        "type": "object",
                        "properties": {"thought": {"type": "string"}},
                        "required": ["thought"],
                        "additionalProperties": False,
                    },
                }
            },
        },
        "text": {
            "model": "m",
            "max_tokens": 64,
            "temperature": 0,
            "stop_sequences": [
                """\

Observation:\
"""
            ],
        },
    }
)


def test_the_messages_of_every_conversation() -> None:
    assert {name: messages(request(name)) for name in CONVERSATIONS} == EXPECTED_MESSAGES


def test_the_fields_of_every_mode() -> None:
    modes: tuple[CallMode, ...] = ("native", "schema", "text")
    assert {mode: fields(request("question", mode)) for mode in modes} == EXPECTED_FIELDS


def test_the_system_text_is_a_marked_block() -> None:
    assert body(request("question"))["system"] == [{"type": "text", "text": "Be brief.", "cache_control": MARK}]
    assert "system" not in body(replace(request("question"), system=""))


def test_without_the_trait_nothing_is_marked() -> None:
    assert b"cache_control" not in Anthropic("m").body(request("two_calls", prompt_cache="no"))


def test_what_stands_before_a_mark_is_the_same_bytes_in_the_next_request() -> None:
    wire = Anthropic("m")
    history = CONVERSATIONS["two_calls"]
    first = wire.body(replace(request("two_calls"), messages=history[:1]))
    second = wire.body(replace(request("two_calls"), messages=history))
    told = first.index(b',"cache_control"', first.index(b'"messages"'))
    assert second.startswith(first[:told])


def test_a_limit_is_always_sent() -> None:
    assert body(ModelRequest("", (QUESTION,)))["max_tokens"] == DEFAULT_MAX_TOKENS
    assert fields(request("question", max_output_tokens="32"))["max_tokens"] == 32
    assert fields(request("question", max_output_tokens="4096"))["max_tokens"] == 64


def test_none_is_not_sent_and_zero_is() -> None:
    assert fields(ModelRequest("", ())) == {"model": "m", "max_tokens": DEFAULT_MAX_TOKENS}
    zeros = fields(ModelRequest("", (), settings=ModelSettings(temperature=0, top_p=0)))
    assert (zeros["temperature"], zeros["top_p"]) == (0, 0)


def test_extra_goes_in_as_it_is_but_not_over_ours() -> None:
    assert fields(ModelRequest("", (), settings=ModelSettings(extra={"top_k": 5})))["top_k"] == 5
    with pytest.raises(ModelRefused, match="system"):
        body(ModelRequest("", (), settings=ModelSettings(extra={"system": "x"})))


def test_blank_stop_sequences_are_left_out() -> None:
    asked = replace(request("question", "text"), stop=("\n\n", "\nObservation:"))
    assert fields(asked)["stop_sequences"] == ["\nObservation:"]
    assert "stop_sequences" not in fields(replace(asked, traits={"stop": "no"}))


@pytest.mark.parametrize(("value", "disabled"), [("on", False), ("off", True), ("", None)])
def test_parallel_calls_are_spoken_of_by_trait_only(value: str, disabled: bool | None) -> None:
    choice = fields(request("question", parallel_calls=value)).get("tool_choice")
    assert choice == (None if disabled is None else {"type": "auto", "disable_parallel_tool_use": disabled})


def test_ids_of_other_wires_are_put_into_the_alphabet_and_stay_apart() -> None:
    assert wire_id("toolu_01-A") == "toolu_01-A"
    assert len({wire_id(given) for given in ("a:0", "a.0", "a_0", "", "_")}) == 5
    used = [block["id"] for block in blocks(request("two_calls"), 1)]
    assert [block["tool_use_id"] for block in blocks(request("two_calls"), 2)] == used


def test_results_come_first_whatever_was_said_between() -> None:
    ask, one, two = CONVERSATIONS["two_calls"][1:]
    asked = replace(request("two_calls"), messages=(QUESTION, ask, one, ModelMessage("user", "note"), two))
    assert [block["type"] for block in blocks(asked, 2)] == ["tool_result", "tool_result", "text"]


def test_blank_texts_are_left_out() -> None:
    said = (QUESTION, ModelMessage("assistant", " "), ModelMessage("user", ""), ModelMessage("user", "more"))
    sent = messages(ModelRequest("", said))
    assert [(message["role"], len(items(message["content"]))) for message in sent] == [("user", 2)]


def test_a_last_word_names_the_tools_of_the_past() -> None:
    """The wire takes no calls in a history without declared tools."""
    asked = replace(request("two_calls"), tools=Catalogue())
    assert fields(asked)["tools"] == [{"name": "exam_score", "input_schema": {"type": "object"}}]
    assert fields(asked)["tool_choice"] == {"type": "none"}
    assert "tools" not in fields(replace(request("question"), tools=Catalogue()))


# reasoning


def thought_by(model: str, *positions: int) -> ModelRequest:
    kept = tuple(opaque_item(f"anthropic {model}", at, {**THOUGHT, "thinking": str(at)}) for at in positions)
    ask, *results = CONVERSATIONS["two_calls"][1:]
    ask = replace(ask, content="Let me see.", opaque=kept)
    return replace(request("two_calls"), messages=(QUESTION, ask, *results))


def test_signed_reasoning_goes_back_unchanged_and_in_its_place_to_its_model_only() -> None:
    asked = thought_by("m", 0, 1, 3)
    kinds = [block["type"] for block in blocks(asked, 1)]
    assert kinds == ["thinking", "text", "thinking", "tool_use", "tool_use"]  # nothing follows the third
    assert blocks(asked, 1)[0] == {**THOUGHT, "thinking": "0"}
    assert "thinking" not in [block["type"] for block in blocks(asked, 1, "other")]
    asked = replace(asked, traits={"reasoning_echo": "no"})
    assert "thinking" not in [block["type"] for block in blocks(asked, 1)]


@pytest.mark.parametrize(
    ("effort", "kind", "limit", "expected"),
    [
        (None, "", None, (DEFAULT_MAX_TOKENS, None, None)),
        ("high", "", None, (DEFAULT_MAX_TOKENS, {"type": "adaptive"}, {"effort": "high"})),
        ("minimal", "adaptive", None, (DEFAULT_MAX_TOKENS, {"type": "adaptive"}, {"effort": "low"})),
        ("low", "budget", None, (DEFAULT_MAX_TOKENS + 2048, {"type": "enabled", "budget_tokens": 2048}, None)),
        ("high", "budget", 4096, (4096, {"type": "enabled", "budget_tokens": 3072}, None)),
        ("high", "budget", 1500, (1500, None, None)),
        ("high", "no", None, (DEFAULT_MAX_TOKENS, None, None)),
        ("none", "", None, (DEFAULT_MAX_TOKENS, None, None)),
    ],
)
def test_effort(effort: str | None, kind: str, limit: int | None, expected: tuple[object, ...]) -> None:
    settings = ModelSettings(temperature=0, max_output_tokens=limit, reasoning_effort=effort)
    traits = {"reasoning_effort": kind} if kind else {}
    sent = fields(ModelRequest("", (QUESTION,), settings=settings, traits=traits))
    assert (sent["max_tokens"], sent.get("thinking"), sent.get("output_config")) == expected
    assert ("temperature" in sent) is (expected[1] is None)


def test_a_budget_waits_until_a_reply_that_did_not_think_is_done_with() -> None:
    settings = replace(SETTINGS, reasoning_effort="low", max_output_tokens=None)
    traits = {"reasoning_effort": "budget"}
    assert "thinking" not in body(replace(thought_by("other", 0), settings=settings, traits=traits))
    assert "thinking" in body(replace(thought_by("m", 0), settings=settings, traits=traits))
    assert "thinking" in body(replace(thought_by("other", 0), settings=settings))  # an adaptive one need not begin so


def test_a_schema_stands_beside_the_effort() -> None:
    asked = replace(request("question", "schema"), settings=ModelSettings(reasoning_effort="low"))
    assert set(mapping(body(asked)["output_config"])) == {"effort", "format"}
    assert "output_config" not in body(request("question", "schema", json_schema="no"))


TEXT = st.text(max_size=12)
CALLS = st.lists(
    st.builds(NativeCall, TEXT, TEXT, TEXT | st.dictionaries(TEXT, st.integers(-5, 5) | TEXT, max_size=2)),
    max_size=4,
    unique_by=lambda call: call.id,
)


@given(CALLS, TEXT, st.integers(0, 3))
def test_every_call_is_answered_in_the_next_message_and_roles_alternate(
    calls: list[NativeCall], content: str, notes: int
) -> None:
    said = ModelMessage("assistant", content, tuple(calls))
    results = tuple(ModelMessage("tool", content, call_id=call.id) for call in calls)
    history = (ModelMessage("user", "q"), said, *results, *(ModelMessage("user", "n"),) * notes, said, *results)
    sent = messages(ModelRequest("s", history, settings=SETTINGS, tools=TOOLS))
    assert all(one["role"] != other["role"] for one, other in pairwise(sent))
    for at, message in enumerate(sent):
        parts = [mapping(block) for block in items(message["content"])]
        assert parts
        asked = [part["id"] for part in parts if part["type"] == "tool_use"]
        assert all(isinstance(part["input"], dict) for part in parts if part["type"] == "tool_use")
        if asked:
            told = [mapping(block) for block in items(sent[at + 1]["content"])]
            assert [part.get("tool_use_id") for part in told[: len(asked)]] == asked
