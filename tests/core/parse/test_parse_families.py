"""The families of calls in text, beyond the shared cases. Source: spec/react.md, section 5."""

from dataclasses import replace

from tools_for_parsing import SEARCH, TOOLS, calls, kind, rows, tool

from cases import cases, each
from surefoot.core.parse.reply import FAMILIES, parse
from surefoot.types.messages import NativeCall
from surefoot.types.tools import Catalogue

HERMES = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
ONE_CALL: dict[str, str] = dict(rows("one_call"))


@each("family", FAMILIES)
@each("dialect", ["auto", "native", "react", "tags", "hermes"])
def test_every_family_is_told_by_its_marker_in_every_dialect(family: str, dialect: str) -> None:
    parsed = parse(f"Let me see. {ONE_CALL[family]}", dialect=dialect)
    assert calls(parsed) == [("f", {"a": "x"})]
    assert parsed.format == family


@each("family", FAMILIES)
def test_a_call_that_was_cut_off_anywhere_never_runs_incomplete(family: str) -> None:
    whole = ONE_CALL[family]
    for cut in range(1, len(whole)):
        parsed = parse(whole[:cut], dialect=family, finish_reason="length")
        assert calls(parsed) in ([], [("f", {"a": "x"})]), whole[:cut]


@each("family", FAMILIES)
def test_a_marker_in_a_fence_or_in_reasoning_is_none(family: str) -> None:
    call = ONE_CALL[family]
    thoughts = (f"<think>{call}</think>", f"[THINK]{call}[/THINK]", f"{call}[/THINK]")
    for text in (f"See:\n```\n{call}\n```\nthat is all", *(f"{one}No tool is needed." for one in thoughts)):
        assert parse(text, dialect="auto").calls == ()


@each("opening", ["", "- ", "> ", "1. ", "**Tool:** ", "I call the tool: "])
def test_a_call_in_a_code_span_counts_unless_it_stands_behind_a_word(opening: str) -> None:
    assert calls(parse(f"{opening}`{HERMES}`", TOOLS)) == [("now", {})]
    assert calls(parse(f"{opening}Write `{HERMES}`", TOOLS)) == []
    asked = '<tool_call>{"name": "search", "arguments": {"query": "`x`"}}</tool_call>'
    assert calls(parse(f"{opening}I will use `search`{asked}", TOOLS)) == [("search", {"query": "`x`"})]


@each("family", FAMILIES)
def test_an_unknown_tool_is_told_and_never_guessed(family: str) -> None:
    parsed = parse(ONE_CALL[family], TOOLS)
    assert (kind(parsed), parsed.calls, parsed.errors[0].name) == ("unknown_tool", (), "f")


@cases("parse/families")
def test_a_mention_is_prose_and_an_attempt_is_a_fault(text: str, want: str | None) -> None:
    parsed = parse(text, TOOLS)
    assert (kind(parsed), parsed.calls, parsed.final) == (want, (), None)
    if want is None:
        assert parsed.content == text


def test_untyped_values_are_typed_by_the_schema() -> None:
    tools = Catalogue(
        (tool("f", s="string", i="integer", o="object", n={"anyOf": [{"type": "integer"}, {"type": "null"}]}),)
    )
    text = "<function=f><parameter=s>42</parameter><parameter=i>42</parameter><parameter=o>{'a': True}</parameter>"
    parsed = parse(text + "<parameter=n>null</parameter></function>", tools)
    assert calls(parsed) == [("f", {"s": "42", "i": 42, "o": {"a": True}, "n": None})]
    assert calls(parse("<function=f><parameter=i>42</parameter></function>")) == [("f", {"i": "42"})]


@cases("parse/families")
def test_a_parameter_keeps_what_looks_like_a_closing_tag_or_a_call(code: str) -> None:
    for text in (
        f"<function=run_python>\n<parameter=code>\n{code}\n</parameter>\n</function>",
        f"<tool_call>run_python\n<arg_key>code</arg_key>\n<arg_value>{code}</arg_value>\n</tool_call>",
    ):
        assert calls(parse(text, TOOLS)) == [("run_python", {"code": code})]


def test_the_recipient_of_a_message_may_have_a_dot() -> None:
    parsed = parse("<|channel|>commentary to=math.sum<|message|>{}<|call|>", (tool("math.sum"),))
    assert calls(parsed) == [("math.sum", {})]


def test_kimi_ids_are_kept() -> None:
    assert parse(ONE_CALL["kimi_k2"]).calls[0].id == "functions.f:0"


@cases("parse/families")
def test_python_literals(literal: str, value: object) -> None:
    assert calls(parse(f"[f(a={literal})]")) == [("f", {"a": value})]


@cases("parse/families")
def test_native_arguments_by_the_ladder(arguments: str | dict[str, object], want: dict[str, object]) -> None:
    parsed = parse("", TOOLS, dialect="native", tool_calls=(NativeCall("c", "search", arguments),))
    assert (calls(parsed), parsed.error) == ([("search", want)], None)


@cases("parse/families")
def test_broken_native_arguments_keep_the_id_of_the_call(arguments: str, finish_reason: str, fault: str) -> None:
    parsed = parse("", TOOLS, tool_calls=(NativeCall("c", "search", arguments),), finish_reason=finish_reason)
    assert (parsed.calls, kind(parsed), parsed.errors[0].id) == ((), fault, "c")


def test_empty_native_arguments_are_none() -> None:
    assert calls(parse("", TOOLS, tool_calls=(NativeCall("c", "now", ""),))) == [("now", {})]


def test_a_value_for_an_injected_parameter_is_dropped() -> None:
    native = (NativeCall("c", "search", '{"query": "x", "db": "mine"}'),)
    parsed = parse("", (replace(SEARCH, injected=("db",)),), tool_calls=native)
    assert (calls(parsed), parsed.warnings) == ([("search", {"query": "x"})], {"injected_argument_ignored"})
