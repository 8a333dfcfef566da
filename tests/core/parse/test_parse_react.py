"""ReAct text: which label counts, which step wins, what an input binds to. Source: spec/react.md, sections 6 and 7."""

from collections.abc import Mapping

import pytest
from tools_for_parsing import TOOLS, calls, kind

from cases import cases
from surefoot.core.parse.marks import Labels, stop_sequences
from surefoot.core.parse.reply import parse
from surefoot.types.messages import NativeCall
from surefoot.types.reply import Parsed

Arguments = Mapping[str, object]


def react(text: str, finish_reason: str = "stop", labels: Labels | None = None) -> Parsed:
    return parse(text, TOOLS, dialect="react", finish_reason=finish_reason, labels=labels or Labels())


@cases("parse/react")
def test_an_input_binds_to_the_tools_parameters(given: str, name: str, arguments: Arguments) -> None:
    parsed = react(f"Thought: look\nAction: {given}")
    assert (calls(parsed), parsed.error) == ([(name, arguments)], None)


def test_an_object_among_words_is_meant_if_its_keys_are_the_tools() -> None:
    parsed = react('Action: search\nAction Input: I will pass {"query": "cats"} now')
    assert (calls(parsed), parsed.warnings) == ([("search", {"query": "cats"})], {"trailing_text"})


@cases("parse/react")
def test_what_looks_like_a_call_and_is_none_is_a_fault_and_never_an_answer(text: str, fault: str) -> None:
    parsed = react(text)
    assert (kind(parsed), parsed.calls, parsed.final) == (fault, (), None)


@cases("parse/react")
def test_nothing_cut_off_is_completed_and_run(text: str) -> None:
    assert kind(react(text, finish_reason="length")) == "truncated"


def test_a_complete_call_before_the_cut_stands() -> None:
    assert calls(react('Action: add\nAction Input: {"a": 1, "b": 2}', finish_reason="length"))
    assert calls(react("Action: search\nAction Input: cats\nObservation: th", finish_reason="length"))


@cases("parse/react")
def test_the_answer_goes_to_the_end_or_to_where_another_step_begins(text: str, final: str) -> None:
    parsed = react(text)
    assert (parsed.final, parsed.calls, parsed.error) == (final, (), None)


def test_the_first_complete_step_wins_and_the_rest_is_noted() -> None:
    parsed = react("Action: search\nAction Input: cats\nObservation: 3\nAction: now\nFinal Answer: 7")
    assert calls(parsed) == [("search", {"query": "cats"})]
    assert parsed.warnings == {"hallucinated_observation", "extra_actions_dropped", "final_dropped"}


def test_an_action_without_its_input_is_no_step_if_another_follows() -> None:
    assert calls(react("Action: search\nAction: now\nAction Input: {}")) == [("now", {})]


def test_what_stands_behind_the_step_is_not_part_of_the_reply() -> None:
    text = "<think>x</think>Thought: a\nAction: search\nAction Input: cats\nObservation: invented"
    assert text[: react(text).used] == "<think>x</think>Thought: a\nAction: search\nAction Input: cats"


@pytest.mark.parametrize("rest", ["\nObservation:", "\nObservation", "\nObserv", "\n观"])
def test_a_stop_sequence_that_the_server_left_is_no_part_of_the_input(rest: str) -> None:
    parsed = react(f"Action: search\nAction Input: cats{rest}")
    assert (calls(parsed), parsed.warnings) == ([("search", {"query": "cats"})], frozenset())


@cases("parse/react")
def test_labels_markers_and_reasoning_tags_inside_a_json_string_are_text(body: str) -> None:
    parsed = react(f'Action: search\nAction Input: {{"query": "a\n{body}\nb"}}')
    assert calls(parsed) == [("search", {"query": f"a\n{body}\nb".replace('\\"', '"')})]


def test_labels_in_a_fence_are_text() -> None:
    parsed = react("Thought: see\n```\nAction: delete_all\n```\nFinal Answer: ok")
    assert (parsed.final, parsed.calls) == ("ok", ())


def test_several_json_steps_are_one_and_a_note() -> None:
    one = '{"action": "search", "action_input": "x"}'
    parsed = react(f"```json\n[{one}, {one}]\n```")
    assert (len(parsed.calls), parsed.warnings) == (1, {"extra_actions_dropped"})


def test_calls_in_tags_come_before_labels_but_not_out_of_an_input() -> None:
    tag = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
    assert calls(react(f"Thought: use it\n{tag}\nFinal Answer: 3")) == [("now", {})]
    assert react(f"Final Answer: 3\n{tag}").warnings == {"final_dropped"}
    assert calls(react(f"Action: search\nAction Input: how to write {tag}")) == [
        ("search", {"query": f"how to write {tag}"})
    ]


def test_an_input_ends_where_reasoning_was_taken_out() -> None:
    assert calls(react("Action: search\nAction Input: cats <think>x</think> and dogs")) == [
        ("search", {"query": "cats"})
    ]


def test_labels_can_be_set() -> None:
    labels = Labels(action=("Akcja",), input=("Dane",), answer=("Odpowiedź",))
    assert calls(react("Akcja: search\nDane: koty", labels=labels)) == [("search", {"query": "koty"})]
    assert react("odpowiedź: 3", labels=labels).final == "3"
    assert kind(react("Action: search\nAction Input: cats", labels=labels)) == "no_step"


def test_stop_sequences_are_the_observation_labels_and_the_result_tag() -> None:
    assert stop_sequences() == ("\nObservation", "\n观察", "<function_call_result>")
    assert len(stop_sequences(Labels(observation=("a", "b", "c", "d", "e")))) == 4


def test_native_calls_settle_everything() -> None:
    native = (NativeCall("c1", "search", '{"query": "cats"}'),)
    parsed = parse("Final Answer: 42", TOOLS, dialect="react", tool_calls=native)
    assert (calls(parsed), parsed.final, parsed.warnings) == ([("search", {"query": "cats"})], None, {"final_dropped"})


@cases("parse/react")
def test_a_step_object_is_read_in_schema_mode_and_labels_still_are(text: str, name: str) -> None:
    assert [call.name for call in parse(text, TOOLS, dialect="schema").calls] == [name]


def test_a_step_object_cut_by_length_is_truncated() -> None:
    text = '{"thought": "t", "action": "Final Answer", "action_input": "They ha'
    parsed = parse(text, TOOLS, dialect="schema", finish_reason="length")
    assert (kind(parsed), parsed.final) == ("truncated", None)
