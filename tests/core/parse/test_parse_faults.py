"""What the model is told about a fault. Source: spec/react.md, section 9."""

from typing import get_args

from tools_for_parsing import TOOLS, tool

from cases import cases, each
from surefoot.core.parse.reply import parse
from surefoot.core.view.observations import tell, tell_warnings
from surefoot.types.messages import NativeCall
from surefoot.types.reply import Fault, FaultKind
from surefoot.types.tools import Catalogue


@each("kind", get_args(FaultKind))
@each("mode", ["native", "schema", "text", "react", "tags"])
def test_every_fault_has_a_short_message(kind: FaultKind, mode: str) -> None:
    told = tell(Fault(kind, "details", "search"), TOOLS, mode)
    assert 10 < len(told) < 900
    assert told == tell(Fault(kind, "details", "search"), TOOLS, mode)


def test_an_unknown_tool_is_told_the_nearest_and_all_names() -> None:
    told = tell(Fault("unknown_tool", tool="get_wether"), TOOLS)
    assert "The nearest name is get_weather." in told
    assert "search, add, now" in told


def test_at_most_twenty_names_are_told_and_long_ones_are_cut() -> None:
    many = Catalogue(tuple(tool(f"tool_{n}_" + "x" * 100) for n in range(50)))
    told = tell(Fault("unknown_tool", tool="get_weather"), TOOLS)  # it was withheld from that reply
    assert told == '"get_weather" cannot be called now; nothing was run. Call another tool, or answer.'
    told = tell(Fault("unknown_tool", tool="y" * 500), many)
    assert told.count("tool_") == 20
    assert "and 30 more" in told
    assert "y" * 61 not in told
    assert "x" * 61 not in told


def test_all_field_errors_and_the_schema_are_told() -> None:
    native = (NativeCall("c", "add", '{"a": "x", "c": 1}'),)
    error = parse("", TOOLS, tool_calls=native).error
    assert error is not None
    told = tell(error, TOOLS)
    for part in ("a: must be integer", "c: is not a known parameter", "b: is required", "Sent: a='x'", '"properties"'):
        assert part in told


def test_the_place_and_the_sign_of_broken_json_are_told() -> None:
    error = parse("", TOOLS, tool_calls=(NativeCall("c", "delete_all", '{"a": 1 "b"}'),)).error
    assert error is not None
    assert "unexpected '\"' at character 9" in tell(error, TOOLS)


@cases("parse/faults")
def test_the_form_is_that_of_the_mode(mode: str, form: str) -> None:
    told = tell(Fault("no_step"), TOOLS, mode)
    assert told.count(form) == 1


def test_what_was_not_used_is_told_in_one_line() -> None:
    assert tell_warnings({"repaired_json", "name_corrected", "unlabelled_answer"}) == ""
    told = tell_warnings({"final_dropped", "hallucinated_observation"})
    assert told.startswith("Part of your reply was not used: ")
    assert "\n" not in told
