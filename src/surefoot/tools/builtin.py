"""The tools that surefoot brings, ready to hand to an agent."""

from __future__ import annotations

import os
from collections.abc import Sequence

from surefoot.tools.arithmetic import arithmetic_tool
from surefoot.tools.clock import date_time_tool
from surefoot.tools.files import file_tools
from surefoot.tools.web import web_fetch_tool
from surefoot.tools.workspace import Workspace
from surefoot.types.ports import Tool


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
