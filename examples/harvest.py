"""Tools over small tables. `read_csv` really fails where a file is in another format than its name says."""

import csv
import json
from pathlib import Path
from typing import Any

from surefoot import ToolFailed, tool

Rows = list[dict[str, Any]]  # cells are numbers or texts


def _text(path: str) -> str:
    file = Path(path)
    if not file.is_file() or not file.resolve().is_relative_to(Path.cwd()):
        raise ToolFailed(f"there is no file {path!r} here", code="parameter:no_file")
    return file.read_text(encoding="utf-8")


@tool(effect="read")
def read_csv(path: str) -> dict[str, Rows]:
    """The rows of a CSV file whose first line names the columns, as {"rows": [...]}."""
    text = _text(path)
    if text.lstrip()[:1] in ("[", "{"):
        raise ToolFailed(f"{path} holds JSON and no CSV; the tool read_json can read it", code="tool:not_csv")
    return {"rows": list(csv.DictReader(text.splitlines()))}


@tool(effect="read")
def read_json(path: str) -> dict[str, Rows]:
    """The rows of a file that holds a JSON list of objects, as {"rows": [...]}."""
    try:
        rows: object = json.loads(_text(path))
    except json.JSONDecodeError as error:
        raise ToolFailed(f"{path} holds no JSON: {error}", code="tool:not_json") from error
    if not isinstance(rows, list):
        raise ToolFailed(f"{path} holds no list of rows", code="tool:no_rows")
    return {"rows": rows}


@tool(effect="read")
def column_sum(rows: Rows, column: str) -> dict[str, float]:
    """The sum of one column over rows, as {"sum": ...}."""
    try:
        return {"sum": sum(float(row[column]) for row in rows)}
    except KeyError:
        raise ToolFailed(f"the rows have no column {column!r}", code="parameter:no_column") from None


@tool(effect="read")
def add(numbers: list[float]) -> dict[str, float]:
    """The sum of some numbers, as {"sum": ...}."""
    return {"sum": sum(numbers)}
