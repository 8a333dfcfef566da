"""What an answer is to be, as a type or a JSON Schema: a schema for the model, a value for the user.

The journal keeps the schema alone, so a run can be read and taken up without the type. pydantic, which knows the
types, is imported when one is given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

import orjson
from jsonschema_rs import ValidationError, meta

from surefoot.core.text import at, json_text, object_schema, shared_of
from surefoot.core.view.shape import FINISH, output_text
from surefoot.tools.schema import faults_of, untitled
from surefoot.types.config import LoopConfig
from surefoot.types.errors import UsageError
from surefoot.types.ports import Tool

T = TypeVar("T")

RESULT = "result"
"""The only key of an answer whose own shape is not an object: what the wires take at the root of a schema is one."""

_WHOLE = "whole_answer"
_DEFINED = ("#/$defs/", "#/definitions/")
_BESIDE = frozenset({"$ref", "$defs", "$schema", "title", "description"})
"""What may stand beside a reference that asks for nothing more than it does."""
_PARTS = ("properties", "$defs", "definitions", "patternProperties")


@dataclass(frozen=True, slots=True)
class Shape(Generic[T]):
    """A `schema`, whose root is an object, and how the JSON of an answer becomes a value.

    `is_wrapped`: that object holds the answer as its `result`. One that `was_wrapped` reads also answers kept that way.
    `value_of` takes that JSON as bytes and raises `ValueError`, with the faults, for what it does not take.
    """

    schema: Mapping[str, object]
    is_wrapped: bool
    value_of: Callable[[bytes], T]
    was_wrapped: bool = False

    def __call__(self, answer: str) -> T:
        """The value of an answer. Raises `ValueError`, which says what is wrong with it."""
        text = output_text(answer)
        value: object = orjson.loads(text)
        if self.is_wrapped or (self.was_wrapped and isinstance(value, dict) and [*value] == [RESULT]):
            if not isinstance(value, dict) or RESULT not in value:
                raise ValueError(f"{RESULT}: is required")
            text = json.dumps(json.loads(text)[RESULT])  # whole numbers of any size
        return self.value_of(text.encode())

    def faults(self, answer: str) -> str:
        """What is wrong with an answer; "" when it has a value."""
        try:
            self(answer)
        except Exception as error:  # noqa: BLE001  # the type's own checks may raise anything
            named = type(error).__name__
            return str(error) or named if isinstance(error, ValueError) else f"{named}: {error}".removesuffix(": ")
        return ""


def shape_of(output: object) -> Shape[Any] | None:  # Any: of whatever type was given
    """The shape of a type or a JSON Schema; None for plain text. Raises `UsageError` for what has no JSON Schema."""
    if output is None or output is str:
        return None
    if isinstance(output, Mapping):
        given = cast("Mapping[str, object]", output)  # its config checks what it holds
        if fault := schema_fault(given):
            raise UsageError(f"output: {fault}")
        return _shape(given, json.loads)
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415  # only typed agents pay for it

    try:
        adapter = TypeAdapter[object](cast("type[object]", output))  # pydantic says if it is none
        schema = adapter.json_schema()
    except Exception as error:  # pydantic and the type's own hooks may raise anything
        why = str(error).split("\n", 1)[0]
        use = "give a pydantic model, a dataclass, a TypedDict, a list of these or a JSON Schema"
        raise UsageError(f"output: {output!r} has no JSON Schema ({why}); {use}") from error

    def value_of(written: bytes) -> object:
        try:
            return adapter.validate_json(written)
        except ValidationError as error:
            raise ValueError(faults_of(error)) from error

    return _shape(_closed(untitled(schema)), value_of)


def schema_fault(schema: Mapping[str, object]) -> str:
    """What is wrong with a JSON Schema as such; "" for a valid one, and for one of an older draft."""
    if "$schema" in schema:
        return ""
    try:
        meta.validate(json.loads(json_text(schema)))
    except ValidationError as error:
        place = "/".join(map(str, error.instance_path)) or "its top"
        return f"not a valid JSON Schema, at {place}: {error.message}"
    except (TypeError, ValueError):  # no JSON at all, which its config tells
        return ""
    return ""


def with_shape(config: LoopConfig, shape: Shape[Any] | None, tools: Mapping[str, Tool]) -> LoopConfig:  # Any: as above
    """The configuration of runs that answer in this shape. Raises `UsageError` for what leaves two ways to answer."""
    if shape is None:
        return config
    if config.output_schema not in (None, shape.schema):
        raise UsageError("the shape of the answer is given twice: leave out `output`, or `output_schema` in the config")
    for name, tool in tools.items():
        if name == FINISH or tool.spec.finish:
            raise UsageError(f"tool {name!r} gives the answer, and so does `output`: leave one out, or rename the tool")
    return replace(config, output_schema=shape.schema)


def _shape(schema: Mapping[str, object], value_of: Callable[[bytes], T]) -> Shape[T]:
    moved = _moved(schema)
    if moved != schema:
        own = {key: value for key, value in moved.items() if key not in shared_of(moved)}
        schema = {**moved, "$defs": {**moved.get("$defs", {}), _WHOLE: own}}
    root = at(schema, "$defs", str(schema.get("$ref", "")).removeprefix(_DEFINED[0]))
    if was_wrapped := isinstance(root, Mapping) and _BESIDE.issuperset(schema):  # of a type that holds itself
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**cast("Mapping[str, object]", root), **rest}
    if schema.get("type") == "object":
        was_wrapped = was_wrapped and at(schema, "properties", RESULT) is None
        return Shape(schema, is_wrapped=False, value_of=value_of, was_wrapped=was_wrapped)
    shared = shared_of(schema)
    own = {key: value for key, value in schema.items() if key not in shared}
    return Shape({**object_schema({RESULT: own}), **shared}, is_wrapped=True, value_of=value_of)


def _moved(schema: object) -> Any:  # Any: as deep as the schema
    """The schema with references to its root leading to a definition, since it is put into others."""
    if isinstance(schema, list):
        return [_moved(part) for part in cast("list[object]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    made = {key: _moved(part) for key, part in cast("Mapping[str, object]", schema).items()}
    reference = made.get("$ref")
    if isinstance(reference, str) and reference.startswith("#") and not reference.startswith(_DEFINED):
        made["$ref"] = f"#/$defs/{_WHOLE}{reference[1:]}"
    return made


def _closed(schema: object, *, named: bool = False) -> Any:  # Any: as deep as the schema
    """The schema with every object closed that names its keys, as decoders ask for; `named`: the keys are names."""
    if isinstance(schema, list):
        return [_closed(part) for part in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    node = cast("dict[str, object]", schema)
    made = {key: _closed(part, named=not named and key in _PARTS) for key, part in node.items()}
    if not named and "properties" in node:
        made.setdefault("additionalProperties", False)
    return made
