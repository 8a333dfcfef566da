"""ReAct text: which label counts, which step wins, what an input binds to. Source: spec/react.md, sections 6 and 7."""

from collections.abc import Mapping

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


@cases("parse/react")
def test_what_looks_like_a_call_and_is_none_is_a_fault_and_never_an_answer(text: str, fault: str) -> None:
    parsed = react(text)
    assert (kind(parsed), parsed.calls, parsed.final) == (fault, (), None)


@cases("parse/react")
def test_nothing_cut_off_is_completed_and_run(text: str) -> None:
    assert kind(react(text, finish_reason="length")) == "truncated"


@cases("parse/react")
def test_the_answer_goes_to_the_end_or_to_where_another_step_begins(text: str, final: str) -> None:
    parsed = react(text)
    assert (parsed.final, parsed.calls, parsed.error) == (final, (), None)


@cases("parse/react")
def test_labels_markers_and_reasoning_tags_inside_a_json_string_are_text(body: str) -> None:
    parsed = react(f'Action: search\nAction Input: {{"query": "a\n{body}\nb"}}')
    assert calls(parsed) == [("search", {"query": f"a\n{body}\nb".replace('\\"', '"')})]


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
