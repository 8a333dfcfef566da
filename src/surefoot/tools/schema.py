"""JSON Schema and Python values for the parameters of a tool.

Plain types are done by hand: pydantic costs a third of a millisecond for each, and its import more than the rest of
surefoot. Whatever is richer (models, dataclasses, constraints, dates, tuples, sets) imports it at that moment.
"""

from __future__ import annotations

import collections.abc
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, cast

import orjson

from surefoot.tools.call import ToolFailed
from surefoot.tools.signature import REQUIRED, Parameter, has_classes_only
from surefoot.types.errors import UsageError

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

Convert = Callable[[object], object]
Schema = dict[str, object]

INVALID = "Invalid arguments: "
"""How a failure begins that names what no type took."""

_PLAIN: Mapping[object, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    list: {"type": "array", "items": {}},
    dict: {"type": "object", "additionalProperties": True},
    object: {},
}
_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_JSON_NAMES: Mapping[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a tool takes: the JSON Schema object, and for some names how their JSON becomes a Python value.

    A converter raises `ToolFailed` that lists what is wrong. `absent` are parameters that no model can fill and that
    the function can do without: services that nobody registered.
    """

    schema: Schema
    converters: tuple[tuple[str, Convert], ...]
    absent: tuple[Parameter, ...] = ()


def arguments_of(tool_name: str, parameters: tuple[Parameter, ...], descriptions: Mapping[str, str]) -> Arguments:
    """The schema of these parameters; extra arguments are refused, defaults kept, no titles.

    Raises `UsageError` for a type that has no JSON Schema, unless it is a class and the parameter is optional.
    """
    absent: list[Parameter] = []
    properties: dict[str, Schema] = {}
    converters: dict[str, Convert] = {}
    adapters: dict[str, TypeAdapter[object]] = {}
    for parameter in parameters:
        annotation = parameter.annotation
        if parameter.default is None and isinstance(annotation, type) and annotation not in (object, type(None)):
            annotation = cast("object", annotation | None)  # `x: str = None` means that null may be sent
        if (schema := plain_schema(annotation)) is not None:
            if convert := _converter(annotation):
                converters[parameter.name] = convert
        else:
            from pydantic import TypeAdapter  # noqa: PLC0415  # only tools with rich types pay for it

            try:
                adapter = TypeAdapter[object](cast("type[object]", annotation))  # any; pydantic says if it cannot
            except Exception as error:  # pydantic and the type's own hooks may raise anything
                if parameter.is_optional and has_classes_only(annotation):  # it holds no data, and need not be filled
                    absent.append(parameter)
                    continue
                raise UsageError(_no_schema(tool_name, parameter.name, annotation, error)) from error
            schema = {}
            adapters[parameter.name] = adapter
            converters[parameter.name] = _validating(parameter.name, adapter)
        properties[parameter.name] = schema
    try:
        definitions = _fill(adapters, properties)
    except Exception as error:  # as above
        for parameter in parameters:  # one of them is at fault
            if adapter := adapters.get(parameter.name):
                try:
                    adapter.json_schema()
                except Exception as why:
                    raise UsageError(_no_schema(tool_name, parameter.name, parameter.annotation, why)) from why
        raise UsageError(f"tool {tool_name!r}: its types have no JSON Schema together ({error})") from error
    shown = [parameter for parameter in parameters if parameter.name in properties]
    for parameter in shown:
        schema = properties[parameter.name]
        if (told := descriptions.get(parameter.name)) and "description" not in schema:  # what its type says goes first
            schema["description"] = told
        default = parameter.default
        if default is not REQUIRED and (adapter := adapters.get(parameter.name)):
            try:
                default = cast("object", adapter.dump_python(default, mode="json", warnings=False))
            except Exception:  # noqa: BLE001  # a default may be any object; one that is no JSON is not shown
                default = REQUIRED
        if _is_json(default := default.value if isinstance(default, Enum) else default):
            schema["default"] = default
    whole: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required := [parameter.name for parameter in shown if parameter.default is REQUIRED]:
        whole["required"] = required
    if definitions:
        whole["$defs"] = definitions
    return Arguments(whole, tuple(converters.items()), tuple(absent))


def plain_schema(annotation: object) -> Schema | None:
    """The schema of a type that needs no pydantic; None when it does."""
    if annotation is Any:
        return {}
    if isinstance(annotation, type) and typing.get_origin(annotation) is None:
        if (plain := _PLAIN.get(annotation)) is not None:
            return {**plain}
        return one_of([member.value for member in annotation]) if issubclass(annotation, Enum) else None
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return one_of(list(parts))
    if origin is Annotated and all(isinstance(part, str) for part in parts[1:]):
        inner = plain_schema(parts[0])
        return None if inner is None else {**inner, "description": parts[1]}
    if origin is Union or origin is types.UnionType:
        found = [plain_schema(part) for part in parts]
        rest = [part for part in parts if part is not type(None)]
        needs_choice = len(rest) > 1 and any(map(_enum_of, rest))  # a value would have to be tried on each
        return None if None in found or needs_choice else {"anyOf": found}
    if origin in _LISTS:
        item = _unconverted(parts[0]) if len(parts) == 1 else None
        return None if item is None else {"type": "array", "items": item}
    if origin in _DICTS and len(parts) == 2 and parts[0] is str:  # noqa: PLR2004  # key and value
        item = _unconverted(parts[1])
        return None if item is None else {"type": "object", "additionalProperties": item or True}
    return None


def _unconverted(annotation: object) -> Schema | None:
    """Inside containers only what is already right as JSON: enums there are left to pydantic."""
    return None if _enum_of(annotation) or isinstance(annotation, str) else plain_schema(annotation)


def one_of(values: list[object]) -> Schema | None:
    """An enumeration; None when not all of its values are JSON, or there are none."""
    if not values or not all(value is None or type(value) in _JSON_NAMES for value in values):
        return None
    kinds = {_JSON_NAMES.get(type(value)) for value in values}
    kind = kinds.pop() if len(kinds) == 1 else None
    return {"type": kind, "enum": values} if kind else {"enum": values}


def _enum_of(annotation: object) -> type[Enum] | None:
    if isinstance(annotation, type):
        return annotation if typing.get_origin(annotation) is None and issubclass(annotation, Enum) else None
    if typing.get_origin(annotation) is Annotated:
        return _enum_of(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in (Union, types.UnionType):
        return next((enum for part in typing.get_args(annotation) if (enum := _enum_of(part))), None)
    return None


def _converter(annotation: object) -> Convert | None:
    """JSON knows one kind of number: `1.0` is an integer and `1` a number."""
    if annotation is int:
        return lambda value: int(value) if type(value) is float and value.is_integer() else value
    if annotation is float:
        return lambda value: float(value) if type(value) is int and -(2**53) <= value <= 2**53 else value
    if enum := _enum_of(annotation):
        return lambda value: value if value is None else enum(value)
    return None


def _is_json(value: object) -> bool:
    match value:
        case None | bool() | int() | str():
            return True
        case float():
            return math.isfinite(value)
        case list() | tuple():
            return all(_is_json(item) for item in cast("list[object]", value))
        case dict():
            items = cast("dict[object, object]", value).items()
            return all(isinstance(key, str) and _is_json(item) for key, item in items)
        case _:
            return False


def _no_schema(tool_name: str, parameter: str, annotation: object, error: Exception) -> str:
    why = str(error).split("\n", 1)[0].split(". ", 1)[0]  # what pydantic advises is no help here
    return (
        f"tool {tool_name!r}, parameter {parameter!r}: its type {annotation!r} has no JSON Schema ({why}); use another,"
        " or register it as a service: Agent(services={TYPE: …})"
    )


def _validating(name: str, adapter: TypeAdapter[object]) -> Convert:
    def convert(value: object) -> object:
        from pydantic import ValidationError  # noqa: PLC0415  # loaded with the adapter

        try:
            try:
                text = orjson.dumps(value)
            except TypeError:  # an integer that orjson cannot write
                return adapter.validate_python(value)
            return adapter.validate_json(text)  # JSON rules: also a strict model takes a date as text
        except ValidationError as error:
            raise ToolFailed(f"{INVALID}{faults_of(error, name)}") from error

    return convert


def faults_of(error: ValidationError, *place: str) -> str:
    """What pydantic finds wrong with a value, by field; `place` is where the value stands."""
    told = (
        (".".join(map(str, (*place, *fault["loc"]))), fault["msg"].removeprefix("Value error, "))
        for fault in error.errors()
    )
    return "; ".join(": ".join(filter(None, one)) for one in told)


def _fill(adapters: Mapping[str, TypeAdapter[object]], properties: Mapping[str, Schema]) -> dict[str, object]:
    """Write pydantic's schemas into `properties`; gives their shared definitions, in which no name means two things."""
    if not adapters:
        return {}
    from pydantic import TypeAdapter  # noqa: PLC0415  # loaded with the adapters

    schemas, shared = TypeAdapter.json_schemas([(name, "validation", one) for name, one in adapters.items()])
    for (name, _), schema in schemas.items():
        properties[name].update(cast("Schema", untitled(schema)))
    return {key: untitled(value) for key, value in cast("Schema", shared.get("$defs", {})).items()}


def untitled(schema: object, *, names: bool = False) -> object:
    """A schema without its titles; `names`: the keys are names of properties, among which `title` is a name."""
    if isinstance(schema, list):
        return [untitled(item) for item in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, object] = {}
    for key, value in cast("dict[str, object]", schema).items():
        if names or key not in ("title", "default", "enum", "const", "examples"):
            kept[key] = untitled(value, names=not names and key in ("properties", "patternProperties", "$defs"))
        elif key != "title":
            kept[key] = value
    return kept
