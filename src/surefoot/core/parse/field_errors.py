"""What is wrong with one field of a call's arguments, in words that a model can act on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from jsonschema_rs import ValidationError, ValidationErrorKind

from surefoot.core.parse.schema import type_name
from surefoot.types.dataclass import dataclass

_MOST_TOLD = 300

Place = tuple[str | int, ...]
"""Where a value stands in the arguments: keys and positions from the top."""


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
    """What a value should be and is not."""
    kinds = ValidationErrorKind
    match kind:
        case kinds.Type(types):
            return f"must be {' or '.join(sorted(types))}, not {type_name(here)}"
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
