"""The repair ladder: what is forgiven, and what never is. Source: spec/react.md, section 8."""

from typing import Literal

import pytest
from tools_for_parsing import TOOLS, kind

from cases import cases
from surefoot.core.parse.objects import Rules, read, value_end
from surefoot.core.parse.reply import parse
from surefoot.core.parse.scan import NotJsonError
from surefoot.types.messages import NativeCall

STRICT = Rules(lossless=False)


@cases("parse/ladder")
def test_loss_free_repairs_are_made_and_told(text: str, value: object) -> None:
    made = read(text, 0)
    assert (made.value, made.end, made.repaired) == (value, len(text), True)


@pytest.mark.parametrize("text", ['{"a": "// no {comment}, \'x\', {{}}"}', '{"a": 1}', "[]", '{"a": {"a": 1}}'])
def test_valid_json_is_never_repaired(text: str) -> None:
    assert not read(text, 0).repaired


@cases("parse/ladder")
def test_what_cannot_be_told_is_refused(text: str) -> None:
    with pytest.raises(NotJsonError):
        read(text, 0)


def test_a_key_given_twice_with_one_value_is_one_key() -> None:
    assert read('{"a": 1, "a": 1}', 0).value == {"a": 1}


@pytest.mark.parametrize("text", ["{'a': 1}", '{"a": 1,}', '{"a": True}', '{"a": "x\ny"}'])
def test_strict_allows_no_repair(text: str) -> None:
    with pytest.raises(NotJsonError):
        read(text, 0, STRICT)


def test_strict_still_unwraps() -> None:
    assert read('{{"a": 1}}', 0, STRICT).value == {"a": 1}


@pytest.mark.parametrize("text", ['{"a": {"b": [1', '{"a": {"b": [1]'])
def test_brackets_are_added_only_where_the_form_ends(text: str) -> None:
    assert read(text, 0, Rules(at_end=True)).value == {"a": {"b": [1]}}
    assert read(f"{text} </x>", 0, Rules(marks=("</x>",))).value == {"a": {"b": [1]}}
    for rules in (Rules(), Rules(marks=("</y>",))):
        with pytest.raises(NotJsonError):
            read(f"{text} </x>", 0, rules)


@pytest.mark.parametrize("text", ['{"a": "b', '{"a":', '{"a": 1,', '{"a"', "{"])
def test_brackets_are_not_added_where_more_than_brackets_is_missing(text: str) -> None:
    with pytest.raises(NotJsonError) as error:
        read(text, 0, Rules(at_end=True))
    assert error.value.at_end


def test_large_values_and_errors_far_away_are_read_as_near_ones() -> None:
    text = '{"a": [' + ", ".join(str(n) for n in range(20_000)) + '], "b": "' + "x" * 50_000 + '"} rest'
    assert read(text, 0).end == len(text) - len(" rest")
    assert value_end(text.replace('"b"', "!b"), 0)[0] == -1


@pytest.mark.parametrize("repair", ["strict", "lossless"])
def test_no_repair_guesses(repair: Literal["strict", "lossless"]) -> None:
    broken = '{"query": "he said "hi" to me"}'
    assert kind(parse("", TOOLS, tool_calls=(NativeCall("c", "search", broken),), repair=repair)) == "malformed_json"
    body = f'<tool_call>{{"name": "search", "arguments": {broken}}}</tool_call>'
    assert kind(parse(body, TOOLS, repair=repair)) == "malformed_json"
