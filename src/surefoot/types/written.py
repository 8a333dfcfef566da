"""A configuration as it is written down: what differs from the defaults, as JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def written(config: DataclassInstance) -> dict[str, object]:
    """The fields that have not their default, by name; configurations inside are written the same way.

    So a default that changes would change what is read from an old journal: give it a row in `journal/upgrade.py`.
    Source: spec/primitives.md, 1 and 5.
    """
    given = ((field, getattr(config, field.name)) for field in fields(config))
    return {field.name: _plain(value) for field, value in given if value != _default(field)}


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return written(value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in cast("Sequence[object]", value)]
    return value


def _default(field: Field[Any]) -> object:  # Any: of whatever type; it is only compared
    """The default; `MISSING`, which equals nothing, when the field has none."""
    return field.default if field.default_factory is MISSING else field.default_factory()
