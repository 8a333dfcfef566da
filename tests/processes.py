"""How tests start a process and listen to it, with a limit on each wait."""

import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO

LIMIT_S = 60.0
"""Seconds that a test waits for a process that has little to do."""

_COMMAND = """
import signal
from surefoot.cli import process
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
process()
"""
COMMAND = (sys.executable, "-c", _COMMAND)
"""The command line, with the signals as a shell in the foreground leaves them: whoever started the tests may ignore
SIGINT, as `nohup` and background jobs do, and children inherit that."""


@contextmanager
def limited(process: subprocess.Popen[str], limit_s: float = LIMIT_S) -> Generator[None]:
    """Kill a process that is still at it after `limit_s`, so that its pipes end and nobody waits for it for ever."""
    limit = threading.Timer(limit_s, process.kill)
    limit.start()
    try:
        yield
    finally:
        limit.cancel()


def told_until(sign: str, process: subprocess.Popen[str], pipe: IO[str] | None) -> str:
    """What a process says up to the line that holds `sign`; fails when it ends before, or takes too long."""
    assert pipe is not None
    told = ""
    with limited(process):
        while sign not in told:
            line = pipe.readline()
            assert line, f"{sign!r} never came: {told}"
            told += line
    return told
