"""The clock."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from surefoot.tools.builtin import date_time_tool
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio
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
    assert result.content.startswith("There is no time zone")


async def test_a_city_is_enough_of_a_hint(call: Call) -> None:
    assert "Asia/Shanghai" in (await call(date_time_tool(now), timezone="Shanghai")).content


def test_it_may_be_asked_again() -> None:
    spec = date_time_tool().spec
    assert (spec.name, spec.effect, spec.polling) == ("date_time", "read", True)
