"""What makes two calls the same, whoever makes them."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from surefoot.core.parse.json_strict import as_list, as_object
from surefoot.core.parse.schema import Schema, resolve
from surefoot.core.text import json_text
from surefoot.types.tools import ToolSpec

_EXACT = 2**53
"""Below it a whole number is the same as an integer and as a float."""


def fingerprint(actor: str, arguments: object) -> str:
    """SHA-256 of a tool and its resolved parameters, or of a kind of step and its instruction, as canonical JSON.

    Source: spec/planning.md, section 8.
    """
    return sha256(f"{actor}\0{json_text(arguments, sort_keys=True)}".encode("utf-8", "replace")).hexdigest()


def call_fingerprint(name: str, arguments: Mapping[str, object], spec: ToolSpec | None) -> str:
    """The fingerprint of a call. What it leaves out counts as said where the tool's schema names a default.

    Else a call that has had its effect would be another one as soon as a model restates what holds anyway. It is made
    anew in each fold and stands in no journal.
    """
    return fingerprint(name, arguments if spec is None else _whole(arguments, spec.parameters, spec.parameters))


def _whole(value: object, schema: Schema, root: Schema) -> object:
    """A value with the defaults of its schema in place of what it leaves out, and 1.0 as 1, in all that it holds."""
    node = resolve(schema, root) or schema
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    members, items = as_object(value), as_list(value)
    if members is not None:
        known = {name: as_object(part) or {} for name, part in (as_object(node.get("properties")) or {}).items()}
        left = {name: part["default"] for name, part in known.items() if name not in members and "default" in part}
        return {name: _whole(one, known.get(name, {}), root) for name, one in {**members, **left}.items()}
    return value if items is None else [_whole(one, as_object(node.get("items")) or {}, root) for one in items]
