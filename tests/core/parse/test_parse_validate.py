"""Validation of arguments against a JSON Schema. Source: spec/react.md, section 8."""

import pytest

from surefoot.core.parse.validate import unknown_keywords, validate

TEXT = {"type": "string"}
INT = {"type": "integer"}


def obj(*required: str, **properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(required)}


@pytest.mark.parametrize(
    ("schema", "sent", "made"),
    [
        (INT, "3", 3),
        (INT, 3.0, 3),
        ({"type": "number"}, "3.5", 3.5),
        ({"type": "number"}, 3, 3),
        ({"type": "boolean"}, "true", True),
        (TEXT, 3, "3"),
        ({"type": "array"}, "[1, 2]", [1, 2]),
        ({"type": "array", "items": INT}, ["1", 2.0], [1, 2]),
        (obj(k=INT), '{"k": "1"}', {"k": 1}),
        ({"enum": [1, 2]}, "2", 2),
        ({"anyOf": [INT, {"type": "null"}]}, "5", 5),
        ({"anyOf": [TEXT, INT]}, "5", "5"),
        ({"type": ["integer", "null"]}, None, None),
        ({"type": "integer", "nullable": True}, None, None),
    ],
)
def test_coercion_loses_nothing(schema: dict[str, object], sent: object, made: object) -> None:
    checked = validate({"x": sent}, obj("x", x=schema))
    assert (checked.errors, checked.value, type(checked.value["x"])) == ((), {"x": made}, type(made))
    assert bool(checked.coerced) is (repr(made) != repr(sent))


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        (INT, 3.5),
        (INT, True),
        (INT, "3.5"),
        (INT, "three"),
        (TEXT, 3.5),
        (TEXT, True),
        ({"type": "boolean"}, 1),
        ({"type": "number"}, "1e999"),
        ({"type": "array"}, "1"),
        ({"type": "array"}, '{"a": 1}'),
        ({"type": "array", "items": INT}, ["x"]),
        ({"type": "array", "prefixItems": [INT, TEXT]}, ["x"]),
        ({"type": "array", "uniqueItems": True}, [{"a": 1}, {"a": 1}]),
        ({"type": "array", "minItems": 1}, []),
        ({"enum": ["a", "b"]}, "c"),
        ({"const": 1}, True),
        ({"type": "integer", "minimum": 1}, 0),
        ({"type": "integer", "exclusiveMaximum": 3}, 3),
        ({"type": "integer", "multipleOf": 2}, 3),
        ({"type": "string", "minLength": 2}, "a"),
        ({"type": "string", "maxLength": 2}, "abc"),
        ({"type": "string", "pattern": "^[a-z]+$"}, "abc\n"),
        ({"oneOf": [{"type": "integer"}, {"type": "integer", "minimum": 0}]}, 5),
        ({"not": TEXT}, "x"),
        ({"anyOf": [INT, {"type": "null"}]}, "x"),
        (obj("k", k=INT), {}),
        (obj(k=INT), {"z": 1}),
    ],
)
def test_what_does_not_fit_is_refused(schema: dict[str, object], sent: object) -> None:
    assert validate({"x": sent}, obj("x", x=schema)).errors


def test_all_errors_come_back_with_their_paths() -> None:
    schema = obj("a", a=INT, b=obj("c", c={"type": "array", "items": INT}))
    checked = validate({"b": {"c": [1, "x"]}, "q": 1}, schema)
    assert [error.path for error in checked.errors] == ["b.c[1]", "q", "a"]


def test_null_for_an_optional_parameter_that_takes_none_is_left_out() -> None:
    assert validate({"a": None}, obj(a=INT)).value == {}
    assert validate({"a": None}, obj("a", a=INT)).errors
    assert validate({"a": None}, obj(a={})).value == {"a": None}


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        ({"type": "object"}, True),
        ({"type": "object", "properties": {}}, False),
        ({"type": "object", "properties": {}, "additionalProperties": True}, True),
        ({"type": "object", "properties": {}, "additionalProperties": {"type": "boolean"}}, False),
        ({"type": "object", "properties": {}, "patternProperties": {"^x": INT}}, True),
        ({"allOf": [obj(a=INT), obj(x=INT)]}, True),
        ({"allOf": [obj(a=INT), obj(b=INT)]}, False),
        ({"anyOf": [obj(a=INT), obj(x=INT)]}, True),
        ({"$ref": "#/$defs/X", "$defs": {"X": obj(x=INT)}}, True),
        ({"$ref": "#/$defs/X", "$defs": {"X": obj(y=INT)}}, False),
    ],
)
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
        c={"$ref": "https://example.com/schema"},
    )
    assert unknown_keywords(schema) == ("$ref", "contains", "format", "pattern", "x-mine")
    assert unknown_keywords(obj(a={"type": "string", "pattern": "^[a-z]+@[a-z]+$"})) == ()


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(?:a*)*", "(\\w*)+x", "(a{2,}){3,}", "[", "a*a*a*a*a*b"])
def test_a_pattern_that_could_hang_is_never_run(pattern: str) -> None:
    assert validate({"x": "a" * 5000}, obj(x={"type": "string", "pattern": pattern})).errors == ()


def test_a_text_too_long_for_its_pattern_is_refused() -> None:
    schema = obj(x={"type": "string", "pattern": "a+b+"})
    assert validate({"x": "a" * 3000 + "b"}, schema).errors
    assert not validate({"x": "a" * 300 + "b"}, schema).errors


@pytest.mark.parametrize(
    "schema", [{"type": 5}, {"required": 5}, {"properties": []}, {"enum": 3}, {"anyOf": "x"}, {"$ref": 7}, {"items": 3}]
)
def test_a_schema_that_is_none_refuses_nothing_and_breaks_nothing(schema: dict[str, object]) -> None:
    assert validate({"x": 1}, {"type": "object", "properties": {"x": schema}}).value == {"x": 1}
