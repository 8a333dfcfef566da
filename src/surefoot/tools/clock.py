"""`date_time`: what day and time it is."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from surefoot.tools.calling import ToolFailed
from surefoot.tools.function import tool
from surefoot.types.ports import Tool

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _system_clock() -> datetime:
    return datetime.now(UTC)


def date_time_tool(now: Callable[[], datetime] = _system_clock) -> Tool:
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
