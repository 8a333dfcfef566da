"""A JSON Schema as one function: the single rules put together as the schema's structure says."""

from __future__ import annotations

from collections.abc import Callable

from surefoot.core.parse.json_strict import as_list, as_object
from surefoot.core.parse.schema import Schema, is_open, properties_of, required_of, resolve, types_of
from surefoot.core.parse.schema_limits import limits, pattern_search
from surefoot.core.parse.schema_rules import (
    Check,
    Log,
    accept,
    all_of,
    any_of,
    excluded,
    of_type,
    one_of_values,
    refuse,
)

Extra = Callable[[str, object, str, Log], object]
"""(key, its value, its path, log) -> the value: the rule for keys that are not declared by name."""

_MOST_LEVELS = 8
_ALTERNATIVES = ("anyOf", "oneOf")
_OBJECT_KEYS = ("properties", "required", "additionalProperties", "patternProperties")


def compile_schema(schema: Schema) -> Check:
    """The check of a whole schema. References are compiled when they are first met: a schema may hold itself."""
    return _Compiler(schema).check_of(schema, closed=True)


class _Compiler:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._references: dict[tuple[str, bool], Check] = {}

    def check_of(self, schema: object, *, closed: bool) -> Check:
        """The check of one schema. `closed`: a key that it does not declare is refused unless it admits such keys."""
        found = as_object(schema)
        if found is None:
            return refuse if schema is False else accept
        in_parts = "allOf" in found or (
            ("properties" in found or "$ref" in found)
            and any(key in found for key in (*_ALTERNATIVES, *(("$ref",) if "properties" in found else ())))
        )
        each_closed = closed and not in_parts
        rules: list[Check] = []
        if isinstance(reference := found.get("$ref"), str):
            rules.append(self._reference(reference, closed=each_closed))
        if types := types_of({"type": found.get("type"), "nullable": found.get("nullable")}, self._root):
            rules.append(of_type(types))
        rules += limits(found)
        rules += self._combined(found, closed=each_closed)
        if any(key in found for key in _OBJECT_KEYS) or (in_parts and closed):
            rules.append(self._object(found, closed=closed))
        if "items" in found or "prefixItems" in found:
            rules.append(self._list(found))
        if (options := as_list(found.get("enum"))) is not None:
            rules.append(one_of_values(options))
        if "const" in found:
            rules.append(one_of_values([found["const"]]))
        return all_of(rules)

    def _reference(self, reference: str, *, closed: bool) -> Check:
        known = self._references.get((reference, closed))
        if known is not None:
            return known
        made: list[Check] = []

        def check(value: object, path: str, log: Log) -> object:
            if not made:
                target = resolve({"$ref": reference}, self._root)
                made.append(accept if target is None else self.check_of(target, closed=closed))
            return made[0](value, path, log)

        self._references[reference, closed] = check
        return check

    def _combined(self, schema: Schema, *, closed: bool) -> list[Check]:
        rules = [self.check_of(part, closed=False) for part in as_list(schema.get("allOf")) or ()]
        for key in _ALTERNATIVES:
            if branches := as_list(schema.get(key)):
                checks = [self.check_of(branch, closed=closed) for branch in branches]
                rules.append(any_of(checks, exactly_one=key == "oneOf"))
        if "not" in schema:
            rules.append(excluded(self.check_of(schema["not"], closed=False)))
        return rules

    def _object(self, schema: Schema, *, closed: bool) -> Check:
        properties = properties_of(schema)
        checks = {name: self.check_of(part, closed=True) for name, part in properties.items()}
        required = required_of(schema)
        omittable = frozenset(
            name for name, part in properties.items() if name not in required and not self._takes_null(part)
        )
        extra = self._extra(schema, closed=closed)

        def check(value: object, path: str, log: Log) -> object:
            members = as_object(value)
            if members is None:
                return value
            made: dict[str, object] = {}
            prefix = f"{path}." if path else ""
            for name, member in members.items():
                rule = checks.get(name)
                if rule is None:
                    made[name] = extra(name, member, prefix + name, log)
                elif member is None and name in omittable:
                    log.coerced.append(prefix + name)
                else:
                    made[name] = rule(member, prefix + name, log)
            for name in required:
                if name not in made:
                    log.wrong(prefix + name, "is required")
            return made

        return check

    def _extra(self, schema: Schema, *, closed: bool) -> Extra:
        patterns = [
            (search, self.check_of(part, closed=True))
            for pattern, part in (as_object(schema.get("patternProperties")) or {}).items()
            if (search := pattern_search(pattern)) is not None
        ]
        declared = schema.get("additionalProperties")
        other = self.check_of(declared, closed=True) if as_object(declared) is not None else None
        known, refuses = frozenset(properties_of(schema)), declared is False
        if declared is None and closed:
            parts = self._parts(schema)
            known = frozenset(name for part in parts for name in properties_of(part))
            refuses = any("properties" in part for part in parts) and not any(_admits(part) for part in parts)

        def check(name: str, member: object, path: str, log: Log) -> object:
            for search, rule in patterns:
                if search(name):
                    return rule(member, path, log)
            if other is not None:
                return other(member, path, log)
            if refuses and name not in known:
                shown = ", ".join(sorted(known))[:200] or "none"
                log.wrong(path, f"is not a known parameter (known: {shown})")
            return member

        return check

    def _list(self, schema: Schema) -> Check:
        first = [self.check_of(part, closed=True) for part in as_list(schema.get("prefixItems")) or ()]
        rest = self.check_of(schema.get("items", True), closed=True)

        def check(value: object, path: str, log: Log) -> object:
            row = as_list(value)
            if row is None:
                return value
            return [(first[at] if at < len(first) else rest)(item, f"{path}[{at}]", log) for at, item in enumerate(row)]

        return check

    def _takes_null(self, schema: object) -> bool:
        types = types_of(schema, self._root)
        return not types or "null" in types

    def _parts(self, schema: Schema, depth: int = 0) -> list[Schema]:
        """The schema and those that describe the same object with it."""
        parts = [schema]
        if depth < _MOST_LEVELS:
            inner = [part for key in ("allOf", *_ALTERNATIVES) for part in as_list(schema.get(key)) or ()]
            if "$ref" in schema:
                inner.append({"$ref": schema["$ref"]})
            for part in inner:
                if (found := resolve(part, self._root)) is not None:
                    parts += self._parts(found, depth + 1)
        return parts


def _admits(schema: Schema) -> bool:
    return schema.get("additionalProperties") not in (None, False) or (
        "patternProperties" in schema and is_open(schema)
    )
