"""Records of older forms, brought to the form of today before they are read as events.

A record is kept as it was written, for ever; only its reading changes. When the form of an event changes, `VERSION`
in `types/events.py` goes up by one and `UPGRADES` gains the row that takes a record of the form before to the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from surefoot.types.errors import JournalTooNew
from surefoot.types.events import VERSION

Record = dict[str, object]
"""One record as JSON gives it. `type` names the event, or is "Catalogue" for the tools that runs share."""


def _without_guesses(record: Record) -> Record:
    """Form 2 knows no repair of JSON that guesses: "safe" and "full" are what is left of them, the default."""
    config = record.get("config")
    if not isinstance(config, dict) or cast("Record", config).get("repair") not in ("safe", "full"):
        return record
    return {**record, "config": {name: value for name, value in cast("Record", config).items() if name != "repair"}}


UPGRADES: Mapping[int, Callable[[Record], Record]] = {1: _without_guesses}
"""From a form to the function that gives the form of the next one; it returns unconcerned types as they are."""


def upgrade(
    record: Record, version: int, rows: Mapping[int, Callable[[Record], Record]] = UPGRADES, target: int = VERSION
) -> Record:
    """The record in the form `target`, one row after the other.

    Raises `JournalTooNew` for a later form than `target`, `ValueError` for a form that no row knows.
    """
    if version > target:
        raise JournalTooNew(
            f"a later surefoot wrote this record (form {version}; this one knows {target}): upgrade surefoot"
        )
    for step in range(version, target):
        if step not in rows:
            raise ValueError(f"no form {version} of this record is known")
        record = rows[step](record)
    return record
