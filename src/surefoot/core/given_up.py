"""What is on record of a call that nobody will wait for any more."""

from __future__ import annotations

from surefoot.core.state import Call
from surefoot.types.events import CallEnded
from surefoot.types.tools import ToolResult


def given_up(call: Call, elapsed_s: float) -> CallEnded:
    """An open call is cancelled where it had not begun or may be repeated; else nobody knows what it has done."""
    if call.is_waiting or (call.spec is not None and call.spec.may_repeat):
        told = ToolResult("cancelled: not run", "cancelled", source="surefoot", trust="trusted", infrastructure=True)
    else:
        unknown = "broken off, and nobody knows whether it took effect; find that out before you call it again"
        told = ToolResult(unknown, "in_doubt", source="surefoot", trust="trusted")
    return CallEnded(call.id, told, elapsed_s)
