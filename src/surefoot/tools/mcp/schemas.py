"""JSON Schemas of others, checked with `jsonschema` where a rule is not one that our own validator knows.

A server chooses its schemas, so a check must not run away: references lead nowhere outside, patterns that could take
exponential time are not run, costly rules are left out, and the references that one check follows are counted. What is
left unchecked for that reason counts as right: the server checks its arguments itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from surefoot.core.parse.schema_limits import pattern_search
from surefoot.core.parse.validate import unknown_keywords

MOST_REFERENCES = 20_000
"""References that one check follows; a schema that doubles itself at each level needs many more."""
MOST_TOLD_CHARS = 300

_SPOKEN = frozenset({"format", "pattern", "$schema", "$id", "$comment", "title", "description", "default", "examples"})
"""What is not checked here either, or is no rule."""

_COSTLY = ("patternProperties", "unevaluatedProperties", "uniqueItems")
"""Rules that run patterns on keys, or compare all with all. Our own validator has the first and the last."""

Check = Callable[[object], str]
"""What is wrong with a value, in words; "" when nothing is."""


class _TooMany(Exception):
    """A check followed too many references."""


def rest_of(schema: Mapping[str, object]) -> Check | None:
    """The check of a schema that holds rules beyond our own validator; None when there are none."""
    return check_of(schema) if set(unknown_keywords(schema)) - _SPOKEN else None


def check_of(schema: Mapping[str, object]) -> Check:
    """The check of a schema by all its rules. A schema that is none says so of every value."""
    from jsonschema import Draft202012Validator, SchemaError, validators  # noqa: PLC0415  # the extra `mcp` brings it
    from referencing import Registry  # noqa: PLC0415  # as above
    from referencing.exceptions import Unresolvable  # noqa: PLC0415  # as above

    left = [MOST_REFERENCES]
    library = cast("Any", validators)  # Any: its classes are made by functions without types
    base = library.validator_for(schema, Draft202012Validator)
    kind = library.extend(base, _bounded(base.VALIDATORS, left))
    try:
        base.check_schema(schema)
    except (SchemaError, Unresolvable, RecursionError) as error:
        why = f"its schema is not valid: {getattr(error, 'message', type(error).__name__)}"[:MOST_TOLD_CHARS]
        return lambda _: why
    nowhere: Any = Registry[Any]()  # Any: of whatever schemas; empty, so nothing is fetched
    validator = kind(schema, registry=nowhere)

    def check(value: object) -> str:
        left[0] = MOST_REFERENCES
        try:
            first = next(iter(validator.iter_errors(value)), None)
        except _TooMany:
            return ""
        except (Unresolvable, RecursionError, ValueError) as error:
            return f"its schema cannot be checked: {str(error) or type(error).__name__}"[:MOST_TOLD_CHARS]
        if first is None:
            return ""
        return f"{first.json_path}: {first.message}"[:MOST_TOLD_CHARS]

    return check


def _bounded(rules: Mapping[str, Any], left: list[int]) -> dict[str, Any]:  # Any: the library's own functions
    """The rules that could run away, held back."""

    def counted(key: str) -> Any:  # Any: a rule of the library
        def rule(validator: Any, given: Any, instance: Any, schema: Any) -> Iterator[Any]:  # Any: as the library has it
            left[0] -= 1
            if left[0] < 0:
                raise _TooMany
            yield from rules[key](validator, given, instance, schema) or ()

        return rule

    def pattern(_validator: Any, given: Any, instance: Any, _schema: Any) -> Iterator[Any]:  # Any: as above
        from jsonschema import ValidationError  # noqa: PLC0415  # the extra `mcp` brings it

        search = pattern_search(given) if isinstance(given, str) else None
        if search is not None and isinstance(instance, str) and not search(instance):
            yield ValidationError(f"does not match the pattern {given!r}")

    def additional(validator: Any, given: Any, instance: Any, schema: Any) -> Iterator[Any]:  # Any: as above
        if "patternProperties" not in schema:
            yield from rules["additionalProperties"](validator, given, instance, schema) or ()

    def skipped(*_: object) -> Iterator[Any]:  # Any: as above
        return iter(())

    held = {key: counted(key) for key in ("$ref", "$dynamicRef", "$recursiveRef") if key in rules}
    return {**held, **dict.fromkeys(_COSTLY, skipped), "additionalProperties": additional, "pattern": pattern}
