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


@cases("parse/validate")
def test_unknown_keys_are_refused_unless_the_schema_admits_them(schema: dict[str, object], *, fits: bool) -> None:
    assert (not validate({"x": 1}, schema).errors) is fits


@cases("parse/validate")
def test_what_a_schema_makes_of_arguments(
    schema: dict[str, object], sent: dict[str, object], made: object, wrong: tuple[str, ...]
) -> None:
    checked = validate(sent, schema)
    assert tuple(sorted(error.path for error in checked.errors)) == wrong
    assert wrong or checked.value == made


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


def test_half_a_character_is_no_reason_to_fail() -> None:
    checked = validate({"x": "\ud800"}, obj(x=TEXT))
    assert (checked.errors, checked.value) == ((), {"x": "\ud800"})
