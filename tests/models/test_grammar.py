"""Schemas as each decoder can hold to them."""

import json

from conversations import STEP

from cases import cases
from surefoot.models.grammar import close, grammar_schema, is_strict


def test_strict_only_where_the_wire_allows_it() -> None:
    closed: dict[str, object] = {
        "type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False,
    }  # fmt: skip
    assert is_strict(closed)
    assert not is_strict({"anyOf": [closed]})
    assert not is_strict({**closed, "required": []})
    assert not is_strict({**closed, "properties": {"a": {"type": "object"}}})


def test_a_schema_for_claudes_grammar() -> None:
    properties = {
        "maxLength": {"type": "string", "maxLength": 400},  # a name, and a limit
        "open": {"type": "object"},
        "list": {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 2},
    }
    given = {"type": "object", "properties": properties, "required": ["maxLength"]}
    found = {
        "maxLength": {"type": "string"},
        "open": {"type": "object"},
        "list": {"type": "array", "items": {"type": "integer"}},
    }
    taken = {**given, "properties": found, "additionalProperties": False}
    constant = {"const": {"minimum": 1}}
    assert close({"anyOf": [given, constant]}) == {"anyOf": [taken, constant]}


@cases("models/grammar")
def test_schema_is_simplified_to_what_the_decoder_holds(schema: dict[str, object], expected: dict[str, object]) -> None:
    simple = grammar_schema(schema)
    simple.pop("x-guidance")
    assert simple == expected


def test_step_schema_keeps_the_order_of_its_keys() -> None:
    first = json.loads(json.dumps(grammar_schema(STEP)))["anyOf"][0]
    assert list(first["properties"]) == ["thought", "action", "action_input"]


def test_schema_that_contains_itself_comes_to_an_end() -> None:
    tree = {"$ref": "#/$defs/T", "$defs": {"T": {"properties": {"left": {"$ref": "#/$defs/T"}}}}}
    assert json.dumps(grammar_schema(tree)).count("left") == 4
    assert grammar_schema({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}})
