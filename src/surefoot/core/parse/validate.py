"""Validation of a call's arguments against the tool's JSON Schema.

`jsonschema-rs` decides what fits. Two things are ours. **Keys:** one that a schema does not declare is refused unless
the schema admits it: by `additionalProperties` or `patternProperties`, or by declaring no properties at all. Where an
object is described in parts (`allOf`, or properties beside `anyOf`), the parts are taken together. **Coercion:** what
does not fit is coerced where that loses nothing, place by place, and each place is recorded; what still does not fit
comes back as one error a field. A schema is prepared once: broken rules, references that lead nowhere and patterns
that no linear engine can run are left out, and named in `unchecked`. Source: spec/react.md, section 8.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from itertools import islice
from typing import cast

from jsonschema_rs import Draft202012Validator, ValidationError, ValidationErrorKind

from surefoot.core.parse import schema as schemas
from surefoot.core.parse.scan import NotJsonError, decode
from surefoot.core.text.json import as_list, as_object, inner_of, same_json, shared_of
from surefoot.types.dataclass import dataclass, replace

_MOST_TOLD = 300

Place = tuple[str | int, ...]  # where a value stands in the arguments: keys and positions from the top
_Removed = dict[Place, ValidationError]


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field. `path` is like `items[0].name`; empty for the arguments as a whole."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def path_of(place: Place) -> str:
    """A place as people write it: `items[0].name`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")


def field_errors(error: ValidationError) -> Iterator[FieldError]:
    """What is wrong, by field."""
    place, kind, here = tuple(error.instance_path), error.kind, error.instance
    match kind:
        case ValidationErrorKind.Required(name):
            yield FieldError(path_of((*place, name)), "is required")
        case ValidationErrorKind.AdditionalProperties(names) | ValidationErrorKind.UnevaluatedProperties(names):
            for name in names:
                yield FieldError(path_of((*place, name)), "is not a known parameter")
        case ValidationErrorKind.PropertyNames(inner):
            options = inner.kind.options if isinstance(inner.kind, ValidationErrorKind.Enum) else []
            known = ", ".join(map(str, options))[:200] or "none"
            yield FieldError(path_of((*place, str(inner.instance))), f"is not a known parameter (known: {known})")
        case ValidationErrorKind.AnyOf(context) | ValidationErrorKind.OneOfNotValid(context):
            nearest = [one for inner in min(context, key=len) for one in field_errors(inner)]
            path = path_of(place)
            told = "; ".join(f"{e.path}: {e.message}" if e.path != path else e.message for e in nearest[:3])
            yield FieldError(path, f"fits none of the alternatives ({told})"[:_MOST_TOLD])
        case _:
            yield FieldError(path_of(place), _words(kind, here, error.message))


def _words(kind: ValidationErrorKind, here: object, message: str) -> str:
    kinds = ValidationErrorKind
    match kind:
        case kinds.Type(types):
            return f"must be {' or '.join(sorted(types))}, not {schemas.type_name(here)}"
        case kinds.Enum(options):
            shown = ", ".join(repr(one) if isinstance(one, str) else str(one) for one in options)
            return f"must be one of {shown}"[:_MOST_TOLD]
        case kinds.OneOfMultipleValid():
            return "fits more than one of the alternatives, and must fit exactly one"
        case kinds.Not():
            return "has a form that is excluded"
        case kinds.FalseSchema():
            return "is not allowed"
        case kinds.UniqueItems():
            return "must not hold the same item twice"
        case kinds.Pattern(pattern):
            return f"must match the pattern {pattern}"[:_MOST_TOLD]
        case kinds.MultipleOf(step):
            return f"must be a multiple of {step}, not {str(here)[:60]}"
        case _ if kind.name in _BOUNDS:
            return f"must be {_BOUNDS[kind.name]} {kind.value}, not {str(here)[:60]}"
        case _ if kind.name[:3] in ("min", "max") and isinstance(here, str | list | dict):
            least = "at least" if kind.name.startswith("min") else "at most"
            noun = {"Length": "characters", "Items": "items", "Properties": "keys"}[kind.name[3:]]
            return f"must have {least} {kind.value} {noun}, not {len(cast('list[object]', here))}"
        case _:
            return message[:_MOST_TOLD]


_BOUNDS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
}


MOST_ERRORS = 20
_MOST_ROUNDS = 40
_MOST_BITS = 1_000
_EXACT_FLOAT = 2**53
_INTEGER = re.compile(r"\s*([+-]?[0-9]{1,300})\s*")
_NUMBER = re.compile(r"\s*([+-]?[0-9]{1,300}(?:\.[0-9]{1,300})?(?:[eE][+-]?[0-9]{1,4})?)\s*")
_BOOLEANS = {"true": True, "false": False, "True": True, "False": False}


_TOO_COMPLEX = FieldError("", "cannot be checked: the tool's schema is too complex")
_TOO_DEEP = FieldError("", "nested too deeply to be checked")
_SCALARS = frozenset({str, int, bool})


@dataclass(frozen=True, slots=True)
class Checked:
    """Arguments after validation: usable if there are no `errors`. `coerced` holds the paths that were changed."""

    value: Mapping[str, object]
    coerced: tuple[str, ...] = ()
    errors: tuple[FieldError, ...] = ()


class Validator:
    """One schema, prepared. Made once a tool; a call that fits costs about a microsecond.

    `closed`: keys that the schema does not declare are refused, as arguments need it. `unchecked`: the keywords that
    are not held, sorted: unknown ones, `format`, rules of a wrong shape, dead references, patterns that cannot be run.
    """

    __slots__ = ("_library", "_schema", "unchecked")

    def __init__(self, schema: schemas.Schema, *, closed: bool = True) -> None:
        self._schema = schema
        prepared = schemas.Prepared(schema)
        try:
            self._library = schemas.library(prepared.whole(closed=closed))
        except (RecursionError, ValueError):  # hundreds of levels, or rules out of all bounds
            self._library = None
        self.unchecked = tuple(sorted(prepared.unchecked))

    def check(self, arguments: Mapping[str, object]) -> Checked:
        """The arguments with lossless coercions made, or every field error (at most `MOST_ERRORS`)."""
        if self._library is None:
            return Checked(arguments, errors=(_TOO_COMPLEX,))
        given = arguments if isinstance(arguments, dict) else dict(arguments)
        try:
            try:
                return _checked(self._library, self._schema, given)
            except UnicodeEncodeError:
                checked = _checked(self._library, self._schema, cast("dict[str, object]", _without_halves(given)))
                return replace(checked, value=checked.value if checked.coerced else arguments)
        except (RecursionError, ValueError):
            return Checked(arguments, errors=(_TOO_DEEP,))

    def faults(self, value: object) -> tuple[FieldError, ...]:
        """What is wrong with a value as it is; nothing is coerced."""
        if self._library is None:
            return (_TOO_COMPLEX,)
        try:
            return _first_errors(islice(self._library.iter_errors(_without_halves(value)), MOST_ERRORS))
        except (RecursionError, ValueError):
            return (_TOO_DEEP,)


def validate_value(value: object, schema: schemas.Schema) -> Checked:
    """A value of any JSON type, as the member `result` of an object; its references lead into its own schema."""
    if schema.get("type") == "object" and isinstance(value, Mapping):  # as it is, so that `#` is the schema itself
        checked = Validator(schema).check(cast("Mapping[str, object]", value))
        errors = tuple(replace(one, path=f"result.{one.path}" if one.path else "result") for one in checked.errors)
        return Checked({"result": checked.value}, tuple(f"result.{path}" for path in checked.coerced), errors)
    whole: schemas.Schema = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    return validate({"result": value}, {**whole, **shared_of(schema)})


def validate(arguments: Mapping[str, object], schema: schemas.Schema) -> Checked:
    """Prepare and check in one go; for schemas that are used once."""
    return Validator(schema).check(arguments)


def _checked(validator: Draft202012Validator, schema: schemas.Schema, given: dict[str, object]) -> Checked:
    coerced: list[Place] = []
    value = given
    if _holds_whole_float(given):
        value = cast("dict[str, object]", _with_integers(given, schema, schema, (), coerced))  # an object stays one
    if validator.is_valid(value):
        return Checked(value, tuple(map(path_of, coerced)))
    value, more, errors = _Coercion(validator).apply(deepcopy(value))
    if not errors:
        return Checked(value, tuple(map(path_of, [*coerced, *more])))
    return Checked(given, errors=_first_errors(errors))


def _first_errors(errors: Iterable[ValidationError]) -> tuple[FieldError, ...]:
    """The first error of each field."""
    told: dict[str, FieldError] = {}
    for error in errors:
        for one in field_errors(error):
            told.setdefault(one.path, one)
    return tuple(told.values())[:MOST_ERRORS]


class _Coercion:
    """What does not fit coerced, as long as that loses nothing and brings it nearer to fitting."""

    def __init__(self, validator: Draft202012Validator) -> None:
        self._library = validator
        self._left = _MOST_ROUNDS

    def apply(self, value: dict[str, object]) -> tuple[dict[str, object], list[Place], list[ValidationError]]:
        """The value (changed in place), where it was changed, and the errors that are left."""
        coerced: list[Place] = []
        removed: _Removed = {}
        while True:
            errors = [*islice(self._library.iter_errors(value), MOST_ERRORS * 2)]
            self._left -= 1
            made = [self._mended(value, error, coerced, removed) for error in errors]
            if self._left < 0 or not any(made):
                left: list[ValidationError] = []
                for error in errors:
                    missing = [error.kind.property] if isinstance(error.kind, ValidationErrorKind.Required) else []
                    left.append(removed.get((*error.instance_path, *missing), error) if missing else error)
                return value, coerced, left

    def _mended(
        self, value: dict[str, object], error: ValidationError, coerced: list[Place], removed: _Removed
    ) -> bool:
        place = tuple(error.instance_path)
        if isinstance(error.kind, ValidationErrorKind.AnyOf | ValidationErrorKind.OneOfNotValid):
            # Whether one of the alternatives takes the value coerced; the first that does is taken.
            context = error.kind.context
            for errors in context:
                if self._left < 0:
                    return False
                trial, own, gone = deepcopy(value), list[Place](), _Removed()
                if not sum(self._mended(trial, error, own, gone) for error in errors):  # each of them is tried
                    continue
                trial, more, left = self.apply(trial)
                if not any(tuple(error.instance_path)[: len(place)] == place for error in left):
                    value.clear()
                    value.update(trial)
                    coerced += [*own, *more]
                    removed |= gone
                    return True
            return False
        here: object = value
        inside: dict[str | int, object] = {}
        for step in place:
            row = as_list(here)
            is_at = isinstance(step, int) and step < len(row) if row is not None else step in (as_object(here) or ())
            if not is_at:
                return False
            inside = cast("dict[str | int, object]", here)  # or a list: both are asked by a key that they have
            here = inside[step]
        if not place:
            return False
        steps = [step for step in error.evaluation_path if step in (*schemas.OF_A_VALUE, place[-1])]
        is_declared = isinstance(place[-1], str) and steps[-2:] == ["properties", place[-1]]  # and may be left out
        match error.kind:
            case ValidationErrorKind.Type() | ValidationErrorKind.Enum() if here is None and is_declared:
                del inside[place[-1]]
                removed[place] = error
                coerced.append(place)
                return True
            case ValidationErrorKind.Type(types):
                done, made = coerce(here, frozenset(types))
            case ValidationErrorKind.Enum(options):
                done, made = coerce(here, frozenset(map(schemas.type_name, options)))
                done = done and any(same_json(made, option) for option in options)
            case _:
                return False
        if done:
            inside[place[-1]] = made
            coerced.append(place)
        return done


def _holds_whole_float(value: object) -> bool:
    """Whether a number such as 3.0 stands anywhere inside; the library takes it for an integer, a tool may not."""
    inner = inner_of(value)
    if _SCALARS.issuperset(map(type, inner)):
        return False
    for one in inner:  # noqa: SIM110  # `any` takes two frames a level, and arguments may be deep
        if one.is_integer() if isinstance(one, float) else _holds_whole_float(one):
            return True
    return False


def _with_integers(value: object, schema: object, root: schemas.Schema, place: Place, coerced: list[Place]) -> object:
    """The value with 3.0 as 3 where only an integer will do."""
    found = schemas.resolve(schema, root)
    if found is None:
        return value
    if isinstance(value, float):
        types = schemas.types_of(found, root)
        if "integer" not in types or "number" in types or not value.is_integer() or abs(value) > _EXACT_FLOAT:
            return value
        coerced.append(place)
        return int(value)
    parts = [*islice(schemas.parts_of(found, root), schemas.MOST_PARTS)]

    def inner(step: str | int, member: object) -> object:
        keys = ("additionalProperties",) if isinstance(step, str) else ("items",)
        named = [schemas.properties_of(part).get(step) for part in parts] if isinstance(step, str) else []
        if isinstance(step, int):
            named = [row[step] for part in parts if (row := as_list(part.get("prefixItems"))) and step < len(row)]
        of = [one for one in named if one is not None] or [part[key] for part in parts for key in keys if key in part]
        return _with_integers(member, {"anyOf": of}, root, (*place, step), coerced) if of else member

    row, members = as_list(value), as_object(value)
    if members is not None:
        return {key: inner(key, member) for key, member in members.items()}
    return [inner(at, member) for at, member in enumerate(row)] if row is not None else value


def _without_halves(value: object) -> object:
    """The value with a replacement for half a character, which no encoding has."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            members = cast("dict[str, object]", value)  # a JSON object
            return {cast("str", _without_halves(key)): _without_halves(one) for key, one in members.items()}
        case list():
            return [_without_halves(one) for one in cast("list[object]", value)]  # a JSON list
        case _:
            return value


def coerce(value: object, types: frozenset[str]) -> tuple[bool, object]:
    """Whether the value becomes one of these types without loss, and what it then is."""
    match value:
        case str() as text:
            if "integer" in types and (found := _INTEGER.fullmatch(text)):
                return True, int(found.group(1))
            if "number" in types and (found := _NUMBER.fullmatch(text)):
                digits = found.group(1)
                number = int(digits) if digits.lstrip("+-").isdigit() else float(digits)
                return (True, number) if math.isfinite(number) else (False, text)
            if "boolean" in types and text.strip() in _BOOLEANS:
                return True, _BOOLEANS[text.strip()]
            if not types.isdisjoint(("object", "array")):
                stripped = text.strip()
                try:
                    value, end = decode(stripped, 0)
                except NotJsonError:
                    return False, text
                if end == len(stripped) and (as_object(value) is not None or as_list(value) is not None):
                    return schemas.type_name(value) in types, value
            return False, text
        case bool() | None:
            return False, value
        case int() if "string" in types and value.bit_length() <= _MOST_BITS:
            return True, str(value)
        case float() if "integer" in types and value.is_integer() and abs(value) <= _EXACT_FLOAT:
            return True, int(value)
        case _:
            return False, value
