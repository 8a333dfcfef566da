from dataclasses import replace

import orjson
import pytest
from conversations import CONVERSATIONS, QUESTION, request
from inline_snapshot import snapshot

from surefoot.models.history import opaque_item
from surefoot.models.json_edge import Json, items, mapping
from surefoot.models.openai_responses import OpenAIResponses
from surefoot.types.errors import ModelRefused
from surefoot.types.messages import CallMode, ModelRequest, ModelSettings

REASONING: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}


def body(asked: ModelRequest, model: str = "m") -> Json:
    return mapping(orjson.loads(OpenAIResponses(model).body(asked)))


def sent_items(asked: ModelRequest, model: str = "m") -> list[Json]:
    return [mapping(item) for item in items(body(asked, model)["input"])]


def fields(asked: ModelRequest) -> Json:
    return {name: value for name, value in body(asked).items() if name != "input"}


EXPECTED_INPUT: dict[str, object] = snapshot(
    {
        "question": [{"role": "user", "content": "Sum of Alice's and Bob's scores? 分数"}],
        "two_calls": [
            {"role": "user", "content": "Sum of Alice's and Bob's scores? 分数"},
            {
                "type": "function_call",
                "call_id": "functions.exam_score:0",
                "name": "exam_score",
                "arguments": '{"name":"Alice"}',
            },
            {"type": "function_call", "call_id": "call_2", "name": "exam_score", "arguments": '{"name":"Bob"}'},
            {"type": "function_call_output", "call_id": "functions.exam_score:0", "output": "90"},
            {"type": "function_call_output", "call_id": "call_2", "output": '{"Bob":81}'},
        ],
        "faulty_calls": [
            {"role": "user", "content": "Sum of Alice's and Bob's scores? 分数"},
            {"role": "assistant", "content": "Trying."},
            {
                "type": "function_call",
                "call_id": "c3",
                "name": "exam_score",
                "arguments": '{"unreadable_arguments":"{\\"name\\":"}',
            },
            {"type": "function_call", "call_id": "c4", "name": "exam_score", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c3", "output": "the arguments are no JSON"},
            {"type": "function_call_output", "call_id": "c4", "output": "name is required"},
        ],
        "text_steps": [
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
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "temperature": 0,
            "max_output_tokens": 64,
            "tools": [
                {
                    "type": "function",
                    "name": "exam_score",
                    "description": "Exam score of one student.",
                    "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
                    "strict": False,
                }
            ],
            "instructions": "Be brief.",
        },
        "schema": {
            "model": "m",
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "temperature": 0,
            "max_output_tokens": 64,
            "instructions": "Be brief.",
            "text": {
                "format": {
                    "type": "json_schema",
                    "name": "step",
                    "schema": {
                        "type": "object",
                        "properties": {"thought": {"type": "string"}},
                        "required": ["thought"],
                        "additionalProperties": False,
                    },
                    "strict": True,
                }
            },
        },
        "text": {
            "model": "m",
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "temperature": 0,
            "max_output_tokens": 64,
            "instructions": "Be brief.",
        },
    }
)


def test_the_items_of_every_conversation() -> None:
    assert {name: sent_items(request(name)) for name in CONVERSATIONS} == EXPECTED_INPUT


def test_the_fields_of_every_mode() -> None:
    modes: tuple[CallMode, ...] = ("native", "schema", "text")
    assert {mode: fields(request("question", mode)) for mode in modes} == EXPECTED_FIELDS


@pytest.mark.parametrize(
    ("mode", "trait", "gone"),
    [
        ("native", "native_tools", "tools"),
        ("native", "temperature", "temperature"),
        ("native", "max_tokens_field", "max_output_tokens"),
        ("native", "reasoning_echo", "include"),
        ("native", "store", "store"),
        ("schema", "json_schema", "text"),
    ],
)
def test_a_trait_drops_its_field(mode: CallMode, trait: str, gone: str) -> None:
    usual = fields(request("question", mode))
    assert fields(request("question", mode, **{trait: "no"})) == {n: v for n, v in usual.items() if n != gone}
    assert gone in usual


def test_the_effort_and_parallel_calls() -> None:
    asked = replace(request("question", parallel_calls="off"), settings=ModelSettings(reasoning_effort="low"))
    assert (body(asked)["reasoning"], body(asked)["parallel_tool_calls"]) == ({"effort": "low"}, False)
    assert "reasoning" not in body(replace(asked, traits={"reasoning_effort": "no"}))


def test_extra_goes_in_as_it_is_but_not_over_ours() -> None:
    assert fields(ModelRequest("", (), settings=ModelSettings(extra={"user": "u"})))["user"] == "u"
    with pytest.raises(ModelRefused, match="instructions"):
        body(ModelRequest("", (), settings=ModelSettings(extra={"instructions": "x"})))


def test_encrypted_reasoning_goes_back_unchanged_and_in_its_place_to_its_model_only() -> None:
    kept = tuple(opaque_item("openai_responses m", at, {**REASONING, "id": f"rs_{at}"}) for at in (0, 1, 2))
    ask, *results = CONVERSATIONS["two_calls"][1:]
    asked = replace(request("two_calls"), messages=(QUESTION, replace(ask, opaque=kept), *results))
    kinds = [item.get("type", "message") for item in sent_items(asked)]
    outputs = ["function_call_output", "function_call_output"]
    assert kinds == ["message", "reasoning", "function_call", "reasoning", "function_call", *outputs]
    assert sent_items(asked)[1] == {**REASONING, "id": "rs_0"}
    for other in (sent_items(asked, "other"), sent_items(replace(asked, traits={"reasoning_echo": "no"}))):
        assert "reasoning" not in [item.get("type") for item in other]


def test_the_body_only_grows_at_its_end() -> None:
    wire, history = OpenAIResponses("m"), CONVERSATIONS["two_calls"]
    first = wire.body(replace(request("two_calls"), messages=history[:2]))
    assert wire.body(request("two_calls")).startswith(first.removesuffix(b"]}"))
