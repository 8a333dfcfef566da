"""What the exit code of a command tells."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.types.errors import JournalError, SurefootError, UsageError
from surefoot.types.outcomes import Status

DONE = 0
JOURNAL_TROUBLE = 1
MISUSED = 2
FAILED = 5
INTERRUPTED = 130
TERMINATED = 143

CODES: Mapping[Status, int] = {
    "completed": DONE,
    "completed_partial": 3,
    "stopped": 4,
    "failed": FAILED,
    "paused": 6,
    "cancelled": INTERRUPTED,
    "ready": DONE,
    "interrupted": INTERRUPTED,
    "running": DONE,
}
"""The exit code for how a run stands."""

HELP = (
    "Exit codes: 0 completed · 3 a partial answer · 4 stopped · 5 failed · 6 paused, waiting for a person "
    "· 130 cancelled or interrupted · 143 terminated · 2 wrong usage or configuration · 1 the journal cannot be read "
    "or written (also: `replay` comes out differently, a check of `doctor` failed, `mcp list` cannot reach a server, "
    "the reader of a pipe is gone)."
)


class Terminated(SystemExit):
    """SIGTERM came while no run was driven. One that is driven is cancelled by it (`conduct.py`)."""


def code_of(error: SurefootError) -> int:
    """The exit code for an error that ended a command."""
    return MISUSED if isinstance(error, UsageError) else JOURNAL_TROUBLE if isinstance(error, JournalError) else FAILED
