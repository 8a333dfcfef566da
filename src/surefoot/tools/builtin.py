"""The tools that surefoot brings, ready to hand to an agent; the clock and those of files among them are made here."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import StringIO
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from surefoot.core.text import decoded
from surefoot.tools.arithmetic import arithmetic_tool
from surefoot.tools.call import ToolFailed
from surefoot.tools.function import tool
from surefoot.tools.results import with_files
from surefoot.tools.search import Query, best_lines
from surefoot.tools.web import web_fetch_tool
from surefoot.tools.workspace import MAX_READ_BYTES, NotThere, Place, Workspace
from surefoot.types.attachments import Attachment, media_type_of
from surefoot.types.ports import Tool
from surefoot.types.tools import ToolResult

MAX_LISTED = 300  # entries in one listing


def file_tools(workspace: Workspace, *, write: bool = True) -> tuple[Tool, ...]:
    """`file_list`, `file_read`, `file_search`, and `file_write` unless `write` is false."""
    files = _Files(workspace)
    listing, reading = tool(files.file_list, effect="read"), tool(files.file_read, effect="read")
    writing = (tool(files.file_write, effect="write", idempotent=True),) if write else ()
    return (listing, reading, tool(files.file_search, effect="read"), *writing)


@dataclass(frozen=True, slots=True)
class _Files:
    workspace: Workspace

    def file_list(self, path: str = ".", deep: bool = False) -> str:
        """List the files and folders in a folder.

        Args:
            path: The folder. Leave it out for the whole workspace.
            deep: Also list what is in the folders below.
        """
        place = self.workspace.place(path)
        lines: list[str] = []
        with _explained(self.workspace, place), self.workspace.folder(place, place.parts) as folder:
            for _, shown, entry in self.workspace.walk(folder, "", deep=deep):
                if len(lines) == MAX_LISTED:
                    lines.append("(there is more; list one of the folders)")
                    break
                size = f"{entry.size} bytes" if entry.kind == "file" else entry.kind
                lines.append(f"{shown}/" if entry.kind == "folder" else f"{shown} ({size})")
        return "\n".join(lines) or "(the folder is empty)"

    def file_read(self, path: str, start_line: int | None = None, lines: int | None = None) -> ToolResult:
        """Read a text file. Give only its path to read all of it.

        Args:
            path: The file, by its path in the workspace.
            start_line: First line to read. Leave it out to read from the beginning.
            lines: How many lines to read. Leave it out to read to the end.
        """
        place = self.workspace.place(path)
        with _explained(self.workspace, place):
            data, size = self.workspace.read(place)
        text = decoded(data, is_cut=size > len(data))
        if text is None:
            # What is not text, for a model that takes it; for others, what it is.
            kind = media_type_of(data)
            if not kind or size > len(data):
                told = f" but {kind} of {size:,} bytes, which is too large to be looked at" if kind else ""
                raise ToolFailed(f"{place.shown} is not text{told}.")
            return replace(with_files("", [Attachment.from_bytes(data, place.parts[-1])]), source=place.shown)
        text = text.removeprefix("\ufeff")
        if start_line is not None or lines is not None:
            every, start = StringIO(text).readlines(), start_line or 1  # as `file_search` counts them
            if start < 1 or (lines is not None and lines < 1):
                raise ToolFailed("Lines count from one. Give start_line and lines above zero.")
            if start > len(every):
                part = f"Only the first {len(every)} lines of the file can be read."
                told = part if size > len(data) else f"The file has only {len(every)} lines."
                raise ToolFailed(f"{told} Give a smaller start_line.")
            text = "".join(every[start - 1 : None if lines is None else start - 1 + lines])
        if size > len(data):
            text += f"\n(only the first {MAX_READ_BYTES} of {size} bytes of the file can be read)"
        return ToolResult(text, source=place.shown)

    def file_write(self, path: str, text: str) -> str:
        """Write a text file: make it, or replace all that was in it.

        Args:
            path: The file. Missing folders are made.
            text: The whole new content of the file.
        """
        data = text.encode("utf-8", "replace")
        if len(data) > MAX_READ_BYTES:
            raise ToolFailed("The text is too large for one file. Write it in several files.")
        place = self.workspace.place(path)
        replaced = self.workspace.write(place, data)
        return f"{'Replaced' if replaced else 'Created'} {place.shown} ({len(text)} characters)."

    def file_search(self, query: str, path: str = ".", limit: int = 10) -> str:
        """Search all text files for words. Gives the lines that fit best and the lines beside them.

        Args:
            query: A few words that the text may hold.
            path: Folder or file to search. Leave it out to search all files.
            limit: How many lines to show at most.
        """
        place = self.workspace.place(path)
        if not (asked := Query(query)).words:
            raise ToolFailed("The query holds no word to look for. Give words that the text may hold.")
        with _explained(self.workspace, place):
            lines, note = best_lines(self.workspace, place, asked, max(1, min(limit, 100)))
        return ("\n".join(lines) or "No line holds any of these words.") + note


@contextmanager
def _explained(workspace: Workspace, place: Place) -> Generator[None]:
    """Adds to "no such file" the names in the nearest folder that exists, the most alike first."""
    try:
        yield
    except NotThere as error:
        nearby = ""
        for depth in range(len(place.parts) - 1, -1, -1):
            parts = place.parts[:depth]
            try:
                with workspace.folder(place, parts) as folder:
                    names = [f"{each.name}/" if each.kind == "folder" else each.name for each in folder.entries()]
            except ToolFailed:
                continue
            alike = difflib.get_close_matches(place.parts[depth], names[:1000], n=5, cutoff=0.4)
            shown = [*alike, *(name for name in names if name not in alike)][:20]
            where = "/".join(parts) or "the workspace"
            nearby = f"In {where} there are: {', '.join(shown)}." if shown else f"There is nothing in {where}."
            break
        raise ToolFailed(f"{error} {nearby}") from error


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
        name = timezone.strip() or "UTC"
        try:
            here = now().astimezone(ZoneInfo(name))
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # OSError: the name of a directory of zones
            cities = {zone.rpartition("/")[2].casefold(): zone for zone in sorted(available_timezones())}
            wanted = name.rpartition("/")[2].replace(" ", "_").casefold()
            alike = [cities[city] for city in difflib.get_close_matches(wanted[:100], cities, n=3)]
            hint = f"Perhaps {', '.join(alike)}." if alike else "Give an IANA name, or leave it out for UTC."
            raise ToolFailed(f"Unknown time zone {name[:100]!r}. {hint}") from error
        return f"{here.isoformat(timespec='seconds')}, {WEEKDAYS[here.weekday()]} ({name})"

    return date_time
