"""Who drives runs of a database: the name that a store gives itself, and whether such a store died on this machine.

Elsewhere nobody can tell, and its lease has to run out. Where there is no `/proc` that holds here, too.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from uuid import uuid4

_PROC = Path("/proc")


def new_token() -> str:
    """A name that no other store has: machine, process and when that began, and a number."""
    return f"{_machine()}:{os.getpid()}:{_began(os.getpid())}:{uuid4().hex}"


def is_dead_here(token: str) -> bool:
    """Whether that is a store of a process of this machine which has ended."""
    match token.split(":"):
        case [machine, pid, began, _] if machine and machine == _machine() and pid.isdecimal():
            return _began(int(pid)) != began
        case _:
            return False


@cache
def _machine() -> str:
    """This start of this machine, as its processes see it; "" where that cannot be told."""
    with suppress(OSError):
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{(_PROC / 'self/ns/pid').stat().st_ino}"
    return ""


def _began(pid: int) -> str:
    """When a process began, in ticks since the start of the machine; "" where it has ended."""
    with suppress(OSError, IndexError):
        told = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return "" if told[0] in "ZX" else told[19]
    return ""
