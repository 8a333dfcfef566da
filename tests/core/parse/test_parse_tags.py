"""The tags dialect: calls, payloads, deliverables and invented results. Source: spec/reasoners.md, sections 3 and 5."""

from tools_for_parsing import calls, kind

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


@cases("parse/tags")
def test_nothing_inside_reasoning_deliverable_fence_or_invented_result_is_a_call(text: str) -> None:
    assert tags(text).calls == ()


@cases("parse/tags")
def test_a_deliverable_is_the_answer(text: str, final: str) -> None:
    parsed = tags(text)
    assert (parsed.final, parsed.error) == (final, None)


@cases("parse/tags")
def test_what_is_no_deliverable_ends_nothing(text: str, finish_reason: str, fault: str) -> None:
    parsed = tags(text, finish_reason)
    assert (kind(parsed), parsed.final) == (fault, None)


def test_the_parts_of_a_deliverable() -> None:
    made = parts_of(body_of("<task_objective>o</task_objective>\n<final_output>\n  f\n</final_output>"))
    assert (made.task_objective, made.final_output, made.task_context) == ("o", "f", "")
    assert parts_of("plain").final_output == "plain"
