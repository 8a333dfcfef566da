"""A file of results as JSON lines: what is in it is not measured again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

Row = dict[str, Any]
"""One result. Any: each measure has columns of its own."""


def rows_in(path: Path) -> list[Row]:
    """The results so far; none where there is no file yet."""
    return [orjson.loads(line) for line in path.read_bytes().splitlines()] if path.is_file() else []


def keep(path: Path, row: Row) -> Row:
    """Add a result to the file."""
    with path.open("ab") as file:
        file.write(orjson.dumps(row) + b"\n")
    return row
