"""Where surefoot keeps what is the user's own, beside journals: recipes of runs, logins at MCP servers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from surefoot.types.errors import UsageError

STATE_VARIABLE = "SUREFOOT_STATE"


def state_folder(kind: str) -> Path:
    """The folder for things of a kind: in `$SUREFOOT_STATE`, else in the place that the system has for such.

    Raises `UsageError` for a user without a home folder.
    """
    if named := os.environ.get(STATE_VARIABLE):
        return Path(named).absolute() / kind
    if (named := os.environ.get("XDG_STATE_HOME", "")) and Path(named).is_absolute():
        return Path(named, "surefoot", kind)
    try:
        home = Path.home()
    except RuntimeError as error:
        raise UsageError(f"this user has no home folder; name one for {kind} with ${STATE_VARIABLE}") from error
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local", "surefoot", kind)
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "surefoot" / kind
    return home / ".local" / "state" / "surefoot" / kind
