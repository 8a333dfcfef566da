"""The tools that surefoot brings, ready to hand to an agent; the clock among them is made here."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from surefoot.tools.arithmetic import arithmetic_tool
from surefoot.tools.call import ToolFailed
from surefoot.tools.files import file_tools
from surefoot.tools.function import tool
from surefoot.tools.web import web_fetch_tool
from surefoot.tools.workspace import Workspace
from surefoot.types.ports import Tool

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def builtin_tools(
    workspace_root: str | os.PathLike[str] | Workspace | None,
    *,
    web: bool = True,
    allow_hosts: Sequence[str] = (),
    write: bool = True,
) -> tuple[Tool, ...]:
    """Files below `workspace_root` (none without one), the web unless `web` is false, the clock and arithmetic.

    `write=False` leaves `file_write` out. `allow_hosts`: see `web_fetch_tool`. Raises `ConfigError`.
    """
    tools: list[Tool] = []
    if workspace_root is not None:
        workspace = workspace_root if isinstance(workspace_root, Workspace) else Workspace(workspace_root)
        tools += file_tools(workspace, write=write)
    if web:
        tools.append(web_fetch_tool(allow_hosts=allow_hosts))
    return (*tools, date_time_tool(), arithmetic_tool())


def date_time_tool(now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Tool:
    """The tool `date_time`; `now` gives the present in any time zone."""

    @tool(effect="read", polling=True, name="date_time")
    def date_time(timezone: str = "UTC") -> str:
        """Give the current date, time and day of the week.

        Args:
            timezone: IANA name of a time zone.
        """
        here = now().astimezone(_zone(timezone.strip()))
        return f"{here.isoformat(timespec='seconds')}, {WEEKDAYS[here.weekday()]} ({timezone.strip() or 'UTC'})"

    return date_time


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # OSError: the name of a directory of zones
        cities = {zone.rpartition("/")[2].casefold(): zone for zone in sorted(available_timezones())}
        wanted = name.rpartition("/")[2].replace(" ", "_").casefold()
        alike = [cities[city] for city in difflib.get_close_matches(wanted[:100], cities, n=3)]
        hint = f"Perhaps {', '.join(alike)}." if alike else "Give an IANA name, or leave it out for UTC."
        raise ToolFailed(f"There is no time zone {name[:100]!r}. {hint}") from error
