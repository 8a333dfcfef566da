"""Values of ours as one line of JSON each, for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import cast

import orjson


def json_line(value: object) -> str:
    """The value as JSON on one line; dataclasses are objects. Fields that begin with "_" are left out."""
    try:
        return orjson.dumps(value, default=_plain).decode()
    except TypeError:  # lone surrogates and whole numbers beyond 64 bits, which only the slower writer can write
        return json.dumps(value, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, frozenset):
        return sorted(cast("frozenset[str]", value))  # the sets of events hold words
    if isinstance(value, Mapping):
        return dict(cast("Mapping[object, object]", value))  # orjson knows dicts only
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value) if not field.name.startswith("_")}
    raise TypeError(f"a {type(value).__name__} is no JSON value")
