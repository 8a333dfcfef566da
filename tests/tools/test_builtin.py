"""The tools that surefoot brings, and the clock among them."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from surefoot.tools.builtin import builtin_tools, date_time_tool
from surefoot.tools.workspace import Workspace
from surefoot.types.errors import ConfigError
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio
FILES = ["file_list", "file_read", "file_search", "file_write"]


def names(*args: Path | Workspace | None, **options: bool) -> list[str]:
    return [tool.spec.name for tool in builtin_tools(*args, **options)]


def test_what_is_in_it(tmp_path: Path) -> None:
    assert names(tmp_path) == [*FILES, "web_fetch", "date_time", "arithmetic"]
    assert names(Workspace(tmp_path), web=False, write=False) == [*FILES[:-1], "date_time", "arithmetic"]
    assert names(None, web=False) == ["date_time", "arithmetic"]


def test_misuse_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        builtin_tools(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="host:port"):
        builtin_tools(None, allow_hosts=("localhost",))


Call = Callable[..., Awaitable[ToolResult]]


def now() -> datetime:
    return datetime(2024, 2, 29, 23, 30, 5, 999, tzinfo=UTC)


async def test_the_time_here_and_there(call: Call) -> None:
    clock = date_time_tool(now)
    assert (await call(clock)).content == "2024-02-29T23:30:05+00:00, Thursday (UTC)"
    shanghai = await call(clock, timezone="Asia/Shanghai")
    assert shanghai.content == "2024-03-01T07:30:05+08:00, Friday (Asia/Shanghai)"


@pytest.mark.parametrize("zone", ["shanghai", "../etc/passwd", "Asia", "a\0b", "x" * 9999])
async def test_an_unknown_zone_is_told(call: Call, zone: str) -> None:
    result = await call(date_time_tool(now), timezone=zone)
    assert result.is_error
    assert result.content.startswith("Unknown time zone")
    assert ("Asia/Shanghai" in result.content) is (zone == "shanghai")  # a city is enough of a hint


def test_it_may_be_asked_again() -> None:
    spec = date_time_tool().spec
    assert (spec.name, spec.effect, spec.polling) == ("date_time", "read", True)
