"""The tools that the parser's tests offer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surefoot.types.reply import Parsed
from surefoot.types.tools import Catalogue, Effect, ToolSpec


def tool(name: str, effect: Effect = "read", required: tuple[str, ...] = (), **properties: object) -> ToolSpec:
    """A tool whose parameters are given by type, or as a schema."""
    schema = {key: {"type": value} if isinstance(value, str) else value for key, value in properties.items()}
    return ToolSpec(name, "", {"type": "object", "properties": schema, "required": list(required)}, effect=effect)


SEARCH = tool("search", required=("query",), query="string")
ADD = tool("add", required=("a", "b"), a="integer", b="integer")
NOW = tool("now")
DELETE = tool("delete_all", effect="delete")
WRITE = tool("write_file", effect="write", required=("path", "text"), path="string", text="string")
WEATHER = tool("get_weather", required=("city",), city="string", unit={"anyOf": [{"type": "string"}, {"type": "null"}]})
SQUARE = tool("square", required=("n",), n="integer")
CHECK = tool("check_values", required=("items",), items="array")
PYTHON = tool("run_python", required=("code",), code="string")

TOOLS = Catalogue((SEARCH, ADD, NOW, DELETE, WRITE, WEATHER, SQUARE, CHECK, PYTHON))


def calls(parsed: Parsed) -> list[tuple[str, Mapping[str, object]]]:
    """The good calls by name and arguments."""
    return [(call.name, call.arguments) for call in parsed.calls]


def kind(parsed: Parsed) -> str | None:
    """The kind of the first fault."""
    return parsed.error.kind if parsed.error else None


def rows(name: str) -> list[Any]:
    """The rows of a file of replies, one a line."""
    told = (Path(__file__).parents[2] / "data" / "parse" / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(row) for row in told.splitlines()]
