"""Validation of arguments against a JSON Schema. Source: spec/react.md, section 8."""

import pytest

from cases import cases
from surefoot.core.parse.validate import Validator, validate

TEXT = {"type": "string"}
INT = {"type": "integer"}


def obj(*required: str, **properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(required)}


@cases("parse/validate")
def test_coercion_loses_nothing(schema: dict[str, object], sent: object, made: object) -> None:
    checked = validate({"x": sent}, obj("x", x=schema))
    assert (checked.errors, checked.value, type(checked.value["x"])) == ((), {"x": made}, type(made))
    assert bool(checked.coerced) is (repr(made) != repr(sent))


@cases("parse/validate")
def test_what_does_not_fit_is_refused(schema: dict[str, object], sent: object) -> None:
    assert validate({"x": sent}, obj("x", x=schema)).errors


def test_all_errors_come_back_with_their_paths() -> None:
    schema = obj("a", a=INT, b=obj("c", c={"type": "array", "items": INT}))
    checked = validate({"b": {"c": [1, "x"]}, "q": 1}, schema)
    assert sorted(error.path for error in checked.errors) == ["a", "b.c[1]", "q"]


def test_null_for_an_optional_parameter_that_takes_none_is_left_out() -> None:
    assert validate({"a": None}, obj(a=INT)).value == {}
    assert validate({"a": None}, obj("a", a=INT)).errors
    assert validate({"a": None}, obj(a={})).value == {"a": None}


@cases("parse/validate")
def test_unknown_keys_are_refused_unless_the_schema_admits_them(schema: dict[str, object], *, fits: bool) -> None:
    assert (not validate({"x": 1}, schema).errors) is fits


def test_a_schema_may_hold_itself() -> None:
    node = obj("v", v=INT, next={"$ref": "#/$defs/Node"})
    schema: dict[str, object] = {"$ref": "#/$defs/Node", "$defs": {"Node": node}}
    assert validate({"v": 1, "next": {"v": "2"}}, schema).value == {"v": 1, "next": {"v": 2}}
    assert validate({"v": 1, "next": {"v": "x"}}, schema).errors[0].path == "next.v"
    assert validate({"v": 1}, {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}).value == {"v": 1}


def test_keywords_that_are_not_checked_are_listed() -> None:
    schema = obj(
        a={"type": "string", "format": "email", "pattern": "(a+)+$"},
        b={"type": "array", "contains": INT, "items": {"x-mine": 1}},
        d={"pattern": "(?=a)b"},
        c={"$ref": "https://example.com/schema"},
    )
    assert Validator(schema).unchecked == ("$ref", "format", "pattern", "x-mine")
    assert Validator(obj(a={"type": "string", "pattern": "^[a-z]+@[a-z]+$"})).unchecked == ()


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(?:a*)*b", "(\\w*)+x", "a*a*a*a*a*b"])
def test_no_pattern_can_hang(pattern: str) -> None:
    assert validate({"x": "a" * 100_000 + "!"}, obj(x={"type": "string", "pattern": pattern})).errors


@pytest.mark.parametrize("pattern", ["(?=a)b", "(a)\\1", "[", "(a{1000}){1000}"])
def test_a_pattern_that_no_linear_engine_runs_is_left_out_and_named(pattern: str) -> None:
    schema = obj(x={"type": "string", "pattern": pattern})
    assert validate({"x": "a"}, schema).errors == ()
    assert Validator(schema).unchecked == ("pattern",)


def test_a_schema_that_doubles_at_each_level_vouches_for_nothing() -> None:
    refers = [{"$ref": f"#/$defs/{level + 1}"} for level in range(60)]
    defs = {str(n): {"allOf": [ref, ref]} for n, ref in enumerate(refers)} | {"60": {}}
    assert validate({}, {"$defs": defs, "$ref": "#/$defs/0"}).errors[0].message.endswith("too complex")


def test_rules_between_parameters_are_held() -> None:
    schema = obj(card=TEXT, address=TEXT) | {"dependentRequired": {"card": ["address"]}}
    assert validate({"card": "1"}, schema).errors
    assert not validate({"card": "1", "address": "here"}, schema).errors
    chosen = obj(a=INT, b=INT) | {"if": {"required": ["a"]}, "then": {"required": ["b"]}}
    assert [error.path for error in validate({"a": 1}, chosen).errors] == ["b"]


def test_half_a_character_is_no_reason_to_fail() -> None:
    checked = validate({"x": "\ud800"}, obj(x=TEXT))
    assert (checked.errors, checked.value) == ((), {"x": "\ud800"})


def test_null_in_a_map_is_not_left_out() -> None:
    assert validate({"m": {"k": None}}, obj(m={"type": "object", "additionalProperties": INT})).errors


def test_the_alternatives_of_a_definition_are_closed_one_by_one() -> None:
    one = {"oneOf": [obj(a=INT), obj(b=INT)]}
    schema = obj(x={"$ref": "#/$defs/One"}) | {"$defs": {"One": one}}
    assert validate({"x": {"a": "1"}}, schema).value == {"x": {"a": 1}}
    assert validate({"x": {"a": 1, "b": 1}}, schema).errors


@pytest.mark.parametrize(
    "schema", [{"type": 5}, {"required": 5}, {"properties": []}, {"enum": 3}, {"anyOf": "x"}, {"$ref": 7}, {"items": 3}]
)
def test_a_schema_that_is_none_refuses_nothing_and_breaks_nothing(schema: dict[str, object]) -> None:
    assert validate({"x": 1}, {"type": "object", "properties": {"x": schema}}).value == {"x": 1}
