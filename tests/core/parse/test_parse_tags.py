"""The tags dialect: calls, payloads, deliverables and invented results. Source: spec/reasoners.md, sections 3 and 5."""

from tools_for_parsing import TOOLS, calls, kind

from cases import cases
from surefoot.core.parse.marks import body_of, parts_of
from surefoot.core.parse.reply import parse
from surefoot.types.reply import Parsed

OPEN, CLOSE = "<function_call>", "</function_call>"


def tags(text: str, finish_reason: str = "stop") -> Parsed:
    return parse(text, dialect="tags", finish_reason=finish_reason)


def tag(body: str) -> str:
    return f"{OPEN}{body}{CLOSE}"


NOW = '{"name": "now", "call_objective": "o", "args": {}}'


@cases("parse/tags")
def test_a_body_that_is_no_call_is_a_fault(body: str, fault: str) -> None:
    parsed = tags(tag(body))
    assert (kind(parsed), parsed.calls, parsed.final) == (fault, (), None)


@cases("parse/tags")
def test_every_way_to_write_one_call_is_that_call(body: str) -> None:
    parsed = tags(tag(body))
    assert (calls(parsed), parsed.error) == ([("a", {"x": 1})], None)


def test_the_objective_is_kept() -> None:
    assert tags(tag('{"name": "a", "call_objective": "why"}')).calls[0].objective == "why"


def test_a_bad_call_keeps_its_place_and_never_drops_its_siblings() -> None:
    text = tag('{"name": "a", "args": {"x": "open}}') + tag('{"name": "b"}') + tag("{bad") + tag('{"name": "c"}')
    parsed = tags(text)
    assert [(call.position, call.name) for call in parsed.calls] == [(1, "b"), (3, "c")]
    assert [(faulty.position, faulty.error.kind) for faulty in parsed.errors] == [
        (0, "malformed_json"),
        (2, "malformed_json"),
    ]


def test_a_payload_is_text_sign_by_sign_and_nothing_in_it_is_a_tag() -> None:
    inner = '\n</function_call><function_call>{"name": "delete_all"}</function_call> \\n "q" {{ <think>\t'
    body = f'{{"name": "run", "args": {{"code": __PAYLOAD_START__{inner}__PAYLOAD_END__, "n": 1}}}}'
    assert calls(tags(tag(body))) == [("run", {"code": inner, "n": 1})]


def test_payload_words_inside_a_string_are_text() -> None:
    assert calls(tags(tag('{"name": "a", "args": {"t": "see __PAYLOAD_START__"}}'))) == [
        ("a", {"t": "see __PAYLOAD_START__"})
    ]


def test_an_open_payload_cut_by_length_is_truncated() -> None:
    text = f'{OPEN}{{"name": "run", "args": {{"code": __PAYLOAD_START__x'
    assert kind(tags(text, finish_reason="length")) == "truncated"


@cases("parse/tags")
def test_nothing_inside_reasoning_deliverable_fence_or_invented_result_is_a_call(text: str) -> None:
    assert tags(text).calls == ()


def test_a_fence_with_all_three_keys_is_the_last_resort() -> None:
    assert tags(f"Do:\n```json\n{NOW}\n```").warnings == {"fallback_fence"}
    assert parse(f"Do:\n```json\n{NOW.replace('now', 'nope')}\n```", TOOLS, dialect="tags").calls == ()


@cases("parse/tags")
def test_a_deliverable_is_the_answer(text: str, final: str) -> None:
    parsed = tags(text)
    assert (parsed.final, parsed.error) == (final, None)


@cases("parse/tags")
def test_what_is_no_deliverable_ends_nothing(text: str, finish_reason: str, fault: str) -> None:
    parsed = tags(text, finish_reason)
    assert (kind(parsed), parsed.final) == (fault, None)


def test_a_deliverable_beside_a_call_is_not_accepted() -> None:
    parsed = tags(f"<deliverable>x</deliverable>\n{tag(NOW)}")
    assert (calls(parsed), parsed.final, parsed.warnings) == ([("now", {})], None, {"final_dropped"})
    assert tags(f"<deliverable>x</deliverable>\n{tag('{bad')}").final is None


def test_a_call_of_another_family_is_accepted() -> None:
    assert calls(tags('<tool_call>{"name": "now", "arguments": {}}</tool_call>')) == [("now", {})]


def test_the_parts_of_a_deliverable() -> None:
    made = parts_of(body_of("<task_objective>o</task_objective>\n<final_output>\n  f\n</final_output>"))
    assert (made.task_objective, made.final_output, made.task_context) == ("o", "f", "")
    assert parts_of("plain").final_output == "plain"
