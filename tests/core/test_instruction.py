"""A Thinker's reply: what it instructs, when it is done, and what is a fault. Source: spec/reasoners.md, section 7."""

from collections.abc import Mapping
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import cases
from surefoot import Catalogue, NativeCall, ToolSpec
from surefoot.core.parse.reply import instruction_schema, read_instruction
from surefoot.core.parse.validate import validate
from surefoot.types.reply import Instruction

CALL = '<function_call>{"name": "look", "args": {}}</function_call>'
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@cases("core/instruction")
def test_an_instruction_is_read(text: str, instruction: Mapping[str, Any]) -> None:
    parsed = read_instruction(text)
    assert (parsed.instruction, parsed.error, parsed.calls) == (Instruction(**instruction), None, ())


@cases("core/instruction")
def test_what_is_no_instruction_is_a_fault(text: str, kind: str) -> None:
    parsed = read_instruction(text)
    assert (parsed.error.kind if parsed.error else None, parsed.instruction, parsed.calls) == (kind, None, ())


def test_a_native_call_beside_an_instruction_is_a_fault() -> None:
    parsed = read_instruction("<instruction>look</instruction>", calls=[NativeCall("a", "look", "{}")])
    assert parsed.error is not None
    assert (parsed.error.kind, parsed.instruction) == ("calls_not_allowed", None)


def test_an_instruction_that_was_cut_off_is_not_carried_out() -> None:
    parsed = read_instruction("<instruction>delete all files but", finish_reason="length")
    assert parsed.error is not None
    assert parsed.error.kind == "truncated"
    assert read_instruction("<instruction>look</instruction>\n<inp", finish_reason="length").instruction is not None
    for cut in ("<instruction>look</instruction>\n<input>keep all but", '{"thought": "t", "next": "look", "inp'):
        parsed = read_instruction(cut, finish_reason="length")
        assert parsed.error is not None
        assert (parsed.error.kind, parsed.instruction) == ("truncated", None)


def test_what_nests_too_deeply_is_a_fault() -> None:
    parsed = read_instruction('{"next": "x", "input": ' + "[" * 400 + "]" * 400 + "}")
    assert parsed.error is not None
    assert parsed.error.kind == "malformed_json"


@given(st.text(st.sampled_from('<>/instruconp{}"_TASKDOE\n :,'), max_size=200))
def test_no_text_breaks_it_and_nothing_in_it_is_a_call(text: str) -> None:
    parsed = read_instruction(text)
    assert parsed.calls == ()
    assert (parsed.instruction is None) == (parsed.error is not None)


def branches(tools: int, *, may_end: bool) -> list[object]:
    catalogue = Catalogue(tuple(ToolSpec(f"tool{at}", "", NAME) for at in range(tools)))
    return cast("list[object]", instruction_schema(catalogue, may_end=may_end)["anyOf"])  # as JSON Schema has it


def test_the_schema_gives_each_tool_its_shape_and_the_end_its_own_branch() -> None:
    assert len(branches(2, may_end=True)) == 3
    assert len(branches(2, may_end=False)) == 2
    good = {"thought": "t", "next": "tool1", "input": {"name": "Ada"}}
    schema = {"anyOf": branches(2, may_end=False)}
    assert not validate(good, schema).errors
    assert validate({**good, "input": "Ada"}, schema).errors


@pytest.mark.parametrize("tools", [0, 13])
def test_without_tools_or_with_many_the_thinker_instructs_in_words(tools: int) -> None:
    words = {"thought": "t", "next": "WORDS", "instruction": "sum it up", "input": ""}
    assert not validate(words, {"anyOf": branches(tools, may_end=False)}).errors
