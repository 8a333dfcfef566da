"""Forms of a call that are all of a reply, and names as models write them. Source: spec/react.md, sections 5 and 9."""

from collections.abc import Mapping
from functools import partial

import pytest
from tools_for_parsing import ADD, NOW, SEARCH, TOOLS, calls, kind, rows, tool

from cases import cases, each
from surefoot.core.parse.reply import parse
from surefoot.core.parse.scan import MOST_CALLS
from surefoot.core.parse.text_calls import text_call
from surefoot.types.messages import NativeCall
from surefoot.types.reply import Parsed
from surefoot.types.tools import Catalogue

Calls = list[tuple[str, Mapping[str, object]]]

X: Calls = [("search", {"query": "x"})]
ONE_AND_NOW: Calls = [*X, ("now", {})]
SUM: Calls = [("add", {"a": 1, "b": 2})]
DIALECTS = ("auto", "native", "react")
QUERY = '{"query": "x"}'
CALL = '{"name": "search", "arguments": {"query": "x"}}'
HERMES = f"<tool_call>{CALL}</tool_call>"

PYTHON: dict[str, Calls] = {text: [*map(tuple, want)] for text, want in rows("calls_in_python")}
ALONE: dict[str, Calls] = {text: [*map(tuple, want)] for text, want in [*rows("calls_in_python"), *rows("calls_alone")]}


@each("text", ALONE)
@each("dialect", DIALECTS)
def test_a_form_that_is_all_of_the_reply_is_its_calls(text: str, dialect: str) -> None:
    parsed = parse(text, TOOLS, dialect=dialect)
    assert (calls(parsed), parsed.error) == (ALONE[text], None)
    assert not (parsed.content or "").startswith(("[", "{", "search"))


@each("text", [*PYTHON, "[search(query='x')]"])
def test_calls_in_python_are_read_in_the_tags_dialect_too(text: str) -> None:
    assert calls(parse(text, TOOLS, dialect="tags")) == PYTHON.get(text, X)


TALK = rows("talk")


@each("text", TALK)
@each("dialect", ["auto", "native"])
def test_a_reply_that_only_talks_is_content(text: str, dialect: str) -> None:
    parsed = parse(text, TOOLS, dialect=dialect)
    assert (parsed.content, parsed.final, parsed.calls, parsed.error) == (text, None, (), None)


@each("text", TALK)
@each(("dialect", "fault"), [("react", "no_step"), ("tags", "no_call")])
def test_talk_is_no_step_where_one_is_due(text: str, dialect: str, fault: str) -> None:
    parsed = parse(text, TOOLS, dialect=dialect)
    assert (parsed.calls, parsed.errors, kind(parsed), parsed.content) == ((), (), fault, text)


@pytest.mark.parametrize(
    "text", ["f(a=1)", "print('x')", "dict(a=1)", '["f(a=1)"]', 'f\n{"a": 1}', "now()", '{"name": "now"}']
)
def test_without_any_tools_a_form_that_needs_their_names_is_text(text: str) -> None:
    assert parse(text) == Parsed(content=text)


@each(("text", "fault"), rows("meant_as_a_call"))
@each("dialect", DIALECTS)
def test_what_is_meant_as_a_call_and_is_none_is_a_fault(text: str, fault: str, dialect: str) -> None:
    parsed = parse(text, TOOLS, dialect=dialect)
    assert (parsed.calls, kind(parsed), parsed.final) == ((), fault, None)


@cases("parse/forms")
def test_a_broken_call_drops_no_sibling(text: str, want: Calls, fault: str) -> None:
    parsed = parse(text, TOOLS)
    assert (calls(parsed), kind(parsed)) == (want, fault)


def test_a_native_call_that_was_cut_off_behind_its_name_does_not_run() -> None:
    sent = (NativeCall("1", "now", ""), NativeCall("2", "search", ""))
    parsed = parse("", TOOLS, dialect="native", tool_calls=sent, finish_reason="length")
    assert ([one.name for one in parsed.calls], kind(parsed)) == (["now"], "truncated")


@each("text", ALONE)
def test_what_was_cut_off_never_runs_incomplete(text: str) -> None:
    want = ALONE[text]
    for cut in range(len(text)):
        for dialect in DIALECTS:
            made = calls(parse(text[:cut], TOOLS, dialect=dialect, finish_reason="length"))
            assert made == want[: len(made)], text[:cut]


def test_a_key_is_spelled_as_the_schema_spells_it() -> None:
    tools = Catalogue((tool("find", user_id="string", filter={"type": "object"}),))
    for written in ("user\\_id", "user\\\\_id"):
        assert calls(parse(f'{{"name": "find", "arguments": {{"{written}": "a"}}}}', tools)) == [
            ("find", {"user_id": "a"})
        ]
    nested = '{"name": "find", "arguments": {"filter": {"a\\_b": {"name": "c"}}}}'
    assert calls(parse(nested, tools)) == [("find", {"filter": {"a_b": {"name": "c"}}})]
    assert calls(parse("find(user\\_id='a\\\\_b')", tools)) == [("find", {"user_id": "a\\_b"})]
    both = '{"name": "find", "arguments": {"user_id": "a", "user\\\\_id": "b"}}'
    assert kind(parse(both, tools)) == "invalid_arguments"
    data = '{"name": "find", "arguments": {"filter": {"a\\\\_b": 1}}}'
    assert calls(parse(data, tools)) == [("find", {"filter": {"a\\_b": 1}})]
    assert parse('{"name": "fi\\_nd", "arguments": {}}', tools, repair="strict").calls == ()


def test_dots_and_underscores_are_the_same_where_one_tool_is_meant() -> None:
    dotted = tool("math.add", a="integer")
    plain = tool("math_add", a="integer")
    for written, tools, name in (
        ("math_add", [dotted], "math.add"),
        ("math.add", [plain], "math_add"),
        ("math.add", [plain, dotted], "math.add"),
        ("math_add", [plain, dotted], "math_add"),
    ):
        for text in (f'{{"name": "{written}", "arguments": {{"a": 1}}}}', f"{written}(a=1)", f"[{written}(a=1)]"):
            parsed = parse(text, tools)
            assert calls(parsed) == [(name, {"a": 1})]
            assert ("name_corrected" in parsed.warnings) == (name != written)
    assert kind(parse('{"name": "math-add", "arguments": {}}', [plain, dotted])) == "unknown_tool"


@each("turn", rows("turns"))
@each("dialect", DIALECTS)
def test_tokens_that_begin_a_turn_stand_before_no_call_and_no_answer(turn: str, dialect: str) -> None:
    for text in (CALL, "search(query='x')", HERMES, "[search(query='x')]", f"search\n{QUERY}"):
        parsed = parse(turn + text, TOOLS, dialect=dialect)
        assert (calls(parsed), parsed.content) == (X, None), text
        assert "special_tokens_removed" in parsed.warnings
        assert parsed.used in (-1, len(turn + text))
    words = parse(f"{turn}It is 5.<|im_end|>", TOOLS)
    assert (words.content, words.warnings) == ("It is 5.", {"special_tokens_removed"})


def test_a_tool_that_takes_a_schema_or_is_called_no_function_is_called() -> None:
    tools = [tool("declare", type="string", properties={"type": "object"}), tool("no_function"), SEARCH, NOW, ADD]
    made = parse('{"name": "declare", "parameters": {"type": "object", "properties": {"a": 1}}}', tools)
    assert calls(made) == [("declare", {"type": "object", "properties": {"a": 1}})]
    assert calls(parse('{"name": "no_function", "arguments": {}}', tools)) == [("no_function", {})]
    beside = parse('[search(query="x"), no_function()]', TOOLS)
    assert (calls(beside), kind(beside)) == (X, "unknown_tool")


STEP = '{"action": "search", "action_input": {"query": "x"}}'
NEXT_STEP = '{"action": "now", "action_input": {}}'


@cases("parse/forms")
def test_of_steps_one_after_the_other_the_first_is_made_alone(text: str) -> None:
    parsed = parse(text, TOOLS, dialect="react")
    assert (calls(parsed), parsed.warnings) == (X, {"extra_actions_dropped"})
    found = text_call(text, TOOLS, partial(parse, tools=TOOLS))
    assert found is not None
    assert found.parsed is not None
    assert (calls(found.parsed), found.standing) == (X, "last" if text.startswith("I") else "alone")


@pytest.mark.parametrize("behind", ["\n", "\nThat was it.", f"\nor {NEXT_STEP}"])
def test_words_behind_a_step_are_no_further_step(behind: str) -> None:
    assert "extra_actions_dropped" not in parse(f"{STEP}{behind}", TOOLS, dialect="react").warnings


@each("form", rows("many_calls"))
@each("dialect", DIALECTS)
def test_of_very_many_calls_the_first_ones_are_taken_and_the_rest_is_noted(form: list[str], dialect: str) -> None:
    before, call, between, after = form

    def many(count: int) -> str:
        return f"{before}{between.join([call] * count)}{after}"

    whole = parse(many(MOST_CALLS), TOOLS, dialect=dialect)
    assert (len(whole.calls), whole.errors) == (MOST_CALLS, ())
    assert "extra_actions_dropped" not in whole.warnings
    for more in (1, 3 * MOST_CALLS):
        cut = parse(many(MOST_CALLS + more), TOOLS, dialect=dialect)
        assert (len(cut.calls), cut.errors) == (MOST_CALLS, ())
        assert "extra_actions_dropped" in cut.warnings
