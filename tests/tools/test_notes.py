"""Natural questions to the notes of the examples: `file_search` shows the line with the answer among the first."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from cases import cases
from surefoot.tools.builtin import file_tools
from surefoot.tools.workspace import Workspace
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio
NOTES = Path(__file__).parents[2] / "examples" / "notes"
Call = Callable[..., Awaitable[ToolResult]]


@cases("tools/notes")
async def test_the_answer_is_in_the_first_five_lines(note: str, query: str, answer: str, call: Call) -> None:
    search = next(tool for tool in file_tools(Workspace(NOTES)) if tool.spec.name == "file_search")
    shown = (await call(search, query=query)).content.split("\n")[:5]
    assert any(line.startswith(f"{note}:") and answer in line for line in shown), "\n".join(shown)
