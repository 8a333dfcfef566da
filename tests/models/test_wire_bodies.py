"""The bodies of requests on every wire. The recorded ones (`data/wire_requests.jsonl`) are kept byte by byte."""

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from conversations import CONVERSATIONS, QUESTION, SCORE, SETTINGS, TOOLS, request
from hypothesis import given
from hypothesis import strategies as st
from wires import WIRES

from cases import cases
from surefoot.models.anthropic import DEFAULT_MAX_TOKENS, wire_id
from surefoot.models.json_edge import Json, items, mapping
from surefoot.models.wire import opaque_item
from surefoot.types.errors import ModelRefused
from surefoot.types.messages import CallMode, ModelMessage, ModelRequest, ModelSettings, NativeCall
from surefoot.types.tools import Catalogue, ToolSpec

CHAT, CLAUDE, RESPONSES = "openai_chat", "anthropic", "openai_responses"
RECORDED = (Path(__file__).parent.parent / "data" / "wire_requests.jsonl").read_text(encoding="utf-8").splitlines()
THOUGHT: Json = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
REASONING: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
MESSAGES = {CHAT: "messages", CLAUDE: "messages", RESPONSES: "input"}


def body(wire: str, asked: ModelRequest, model: str = "m") -> Json:
    return mapping(orjson.loads(WIRES[wire].wire(model).body(asked)))


def messages(wire: str, asked: ModelRequest, model: str = "m") -> list[Json]:
    return [mapping(item) for item in items(body(wire, asked, model)[MESSAGES[wire]])]


def fields(wire: str, asked: ModelRequest) -> Json:
    apart = (MESSAGES[wire], "system", "instructions")
    return {name: value for name, value in body(wire, asked).items() if name not in apart}


def blocks(asked: ModelRequest, at: int, model: str = "m") -> list[Json]:
    return [mapping(block) for block in items(messages(CLAUDE, asked, model)[at]["content"])]


def bare(settings: ModelSettings) -> ModelRequest:
    return ModelRequest("", (), settings=settings)


def test_requests_are_the_recorded_bytes() -> None:
    rows = [cast("Mapping[str, str]", json.loads(line)) for line in RECORDED]  # as it was written
    assert {(row["wire"], row["conversation"]) for row in rows} == {(w, c) for w in WIRES for c in CONVERSATIONS}
    for row in rows:
        asked = request(row["conversation"], cast("CallMode", row["mode"]))
        assert WIRES[row["wire"]].wire("m").body(asked).decode() == row["body"]


def part(sent: object, path: str) -> object:
    """What stands at a path in a body: `messages/0/role`."""
    for step in path.split("/"):
        row, members = items(sent), mapping(sent)
        if not row and step not in members:
            return "(nothing)"
        sent = row[int(step)] if row else members[step]
    return sent


def asked_for(given: Mapping[str, Any]) -> ModelRequest:
    """A request by its conversation, mode and traits, and what else is set of it."""
    apart = {name: given[name] for name in given if name not in ("conversation", "mode", "traits", "settings", "model")}
    asked = request(given.get("conversation", "question"), given.get("mode", "native"), **given.get("traits", {}))
    settings = ModelSettings(**given["settings"]) if "settings" in given else asked.settings
    return replace(asked, settings=settings, **apart)


@cases("models/wire_bodies")
def test_what_stands_in_a_body(wire: str, given: Mapping[str, Any], parts: Mapping[str, object]) -> None:
    sent = body(wire, asked_for(given), given.get("model", "m"))
    assert {path: part(sent, path) for path in parts} == parts


@cases("models/wire_bodies")
def test_a_trait_drops_its_field(wire: str, mode: CallMode, trait: str, gone: str) -> None:
    usual = fields(wire, request("question", mode))
    assert fields(wire, request("question", mode, **{trait: "no"})) == {n: v for n, v in usual.items() if n != gone}
    assert gone in usual


def test_none_is_not_sent_and_zero_is() -> None:
    zeros = ModelSettings(temperature=0, top_p=0, max_output_tokens=0, seed=0)
    assert fields(CHAT, bare(ModelSettings())) == {"model": "m"}
    assert fields(CHAT, bare(zeros)) == {"model": "m", "temperature": 0, "top_p": 0, "max_tokens": 0, "seed": 0}
    assert fields(CLAUDE, bare(ModelSettings())) == {"model": "m", "max_tokens": DEFAULT_MAX_TOKENS}
    assert fields(CLAUDE, bare(zeros)) == {"model": "m", "max_tokens": 0, "temperature": 0, "top_p": 0}


@pytest.mark.parametrize(("wire", "ours"), [(CHAT, "messages"), (CLAUDE, "system"), (RESPONSES, "instructions")])
def test_extra_goes_in_as_it_is_but_not_over_ours(wire: str, ours: str) -> None:
    assert fields(wire, bare(ModelSettings(extra={"top_k": 5})))["top_k"] == 5
    with pytest.raises(ModelRefused, match=ours):
        body(wire, bare(ModelSettings(extra={ours: []})))


@pytest.mark.parametrize("wire", WIRES)
def test_half_a_surrogate_pair_does_not_stop_a_run(wire: str) -> None:
    assert b"a?b" in WIRES[wire].wire("m").body(ModelRequest("", (ModelMessage("user", "a\ud83db"),)))


def test_tools_are_encoded_once_a_catalogue() -> None:
    catalogue = Catalogue((SCORE, ToolSpec("分", "数", {"type": "object"})))
    first = WIRES[CHAT].wire("a").body(ModelRequest("", (), tools=catalogue))
    assert "分".encode() in first
    assert catalogue.derived("openai_chat", lambda _: b"made again") in first


def test_nothing_is_remembered_between_forms() -> None:
    assert ModelMessage.encoded([ModelMessage("user", "a")], "", lambda one: one.content.encode()) == [b"a"]
    wire = WIRES[CHAT].wire("m")
    plain, dropped = request("two_calls"), request("two_calls", temperature="no", null_content="empty")
    first = wire.body(plain)
    assert b"temperature" not in wire.body(dropped)
    assert wire.body(plain) == first
    for number in range(20):
        wire.body(replace(plain, settings=ModelSettings(seed=number)))
    assert wire.body(plain) == first
    for said in ((), (QUESTION,)):  # a comma stands behind the system text only where something follows
        assert orjson.loads(wire.body(replace(plain, messages=said)))


@pytest.mark.parametrize("wire", [CLAUDE, RESPONSES])
def test_the_body_only_grows_at_its_end(wire: str) -> None:
    """What stands before a mark of the prompt cache is the same bytes in the next request."""
    spoken, history = WIRES[wire].wire("m"), CONVERSATIONS["two_calls"]
    first = spoken.body(replace(request("two_calls"), messages=history[:1]))
    mark = first.find(b',"cache_control"', first.index(b'"messages"')) if wire == CLAUDE else len(first) - 2
    assert spoken.body(replace(request("two_calls"), messages=history)).startswith(first[:mark])


# OpenAI chat


# Anthropic


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
    sent = messages(CLAUDE, ModelRequest("", said))
    assert [(message["role"], len(items(message["content"]))) for message in sent] == [("user", 2)]


def test_a_last_word_names_the_tools_of_the_past() -> None:
    """The wire takes no calls in a history without declared tools."""
    sent = fields(CLAUDE, replace(request("two_calls"), tools=Catalogue()))
    assert sent["tools"] == [{"name": "exam_score", "input_schema": {"type": "object"}}]
    assert sent["tool_choice"] == {"type": "none"}
    assert "tools" not in fields(CLAUDE, replace(request("question"), tools=Catalogue()))


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
    for other in (blocks(asked, 1, "other"), blocks(replace(asked, traits={"reasoning_echo": "no"}), 1)):
        assert "thinking" not in [block["type"] for block in other]


def test_a_budget_waits_until_a_reply_that_did_not_think_is_done_with() -> None:
    settings = replace(SETTINGS, reasoning_effort="low", max_output_tokens=None)
    traits = {"reasoning_effort": "budget"}
    assert "thinking" not in body(CLAUDE, replace(thought_by("other", 0), settings=settings, traits=traits))
    assert "thinking" in body(CLAUDE, replace(thought_by("m", 0), settings=settings, traits=traits))
    assert "thinking" in body(CLAUDE, replace(thought_by("other", 0), settings=settings))  # an adaptive one may not


# OpenAI Responses


def test_encrypted_reasoning_goes_back_unchanged_and_in_its_place_to_its_model_only() -> None:
    kept = tuple(opaque_item("openai_responses m", at, {**REASONING, "id": f"rs_{at}"}) for at in (0, 1, 2))
    ask, *results = CONVERSATIONS["two_calls"][1:]
    asked = replace(request("two_calls"), messages=(QUESTION, replace(ask, opaque=kept), *results))
    sent = messages(RESPONSES, asked)
    outputs = ["function_call_output", "function_call_output"]
    kinds = ["message", "reasoning", "function_call", "reasoning", "function_call", *outputs]
    assert [item.get("type", "message") for item in sent] == kinds
    assert sent[1] == {**REASONING, "id": "rs_0"}
    echoless = replace(asked, traits={"reasoning_echo": "no"})
    for other in (messages(RESPONSES, asked, "other"), messages(RESPONSES, echoless)):
        assert "reasoning" not in [item.get("type") for item in other]


# any calls

TEXT = st.text(max_size=12)
CALLS = st.lists(
    st.builds(NativeCall, TEXT, TEXT, TEXT | st.dictionaries(TEXT, st.integers(-5, 5) | TEXT, max_size=2)), max_size=4
)


@given(CALLS, TEXT, st.sampled_from(["null", "empty", "blank"]), st.booleans())
def test_no_call_id_is_lost_or_invented(calls: list[NativeCall], content: str, null_content: str, merge: bool) -> None:
    turn = (ModelMessage("assistant", content, tuple(calls)), *(ModelMessage("tool", "r", call_id=c.id) for c in calls))
    history = (ModelMessage("user", "q"), *turn, ModelMessage("user", "q"), ModelMessage("user", "q"), *turn)
    traits = {"null_content": null_content, "alternation": "yes" if merge else "no"}
    sent = messages(CHAT, ModelRequest("s", history, settings=SETTINGS, tools=TOOLS, traits=traits))
    ids = [call.id.encode("utf-8", "replace").decode() for call in calls] * 2
    asked = [mapping(call) for message in sent for call in items(message.get("tool_calls"))]
    assert [call["id"] for call in asked] == ids
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == ids
    for call in asked:
        arguments = mapping(call["function"])["arguments"]
        assert isinstance(arguments, str)
        assert isinstance(orjson.loads(arguments), dict)


@given(CALLS, TEXT, st.integers(0, 3))
def test_every_call_is_answered_in_the_next_message_and_roles_alternate(
    calls: list[NativeCall], content: str, notes: int
) -> None:
    calls = list({call.id: call for call in calls}.values())
    said = ModelMessage("assistant", content, tuple(calls))
    results = tuple(ModelMessage("tool", content, call_id=call.id) for call in calls)
    history = (ModelMessage("user", "q"), said, *results, *(ModelMessage("user", "n"),) * notes, said, *results)
    sent = messages(CLAUDE, ModelRequest("s", history, settings=SETTINGS, tools=TOOLS))
    assert all(one["role"] != other["role"] for one, other in pairwise(sent))
    for at, message in enumerate(sent):
        parts = [mapping(block) for block in items(message["content"])]
        assert parts
        asked = [part["id"] for part in parts if part["type"] == "tool_use"]
        assert all(isinstance(part["input"], dict) for part in parts if part["type"] == "tool_use")
        if asked:
            told = [mapping(block) for block in items(sent[at + 1]["content"])]
            assert [part.get("tool_use_id") for part in told[: len(asked)]] == asked
