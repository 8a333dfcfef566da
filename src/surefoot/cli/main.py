"""The door of the command line: what it needs is there, and what goes wrong becomes one line and an exit code."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import NoReturn

from surefoot.cli.exits import INTERRUPTED, MISUSED, TERMINATED, Terminated, code_of
from surefoot.cli.lines import without_password
from surefoot.types.errors import SurefootError, extra_needed

DEBUG_VARIABLE = "SUREFOOT_DEBUG"

_NEEDED = ("typer", "rich")


GRACE_S = 5.0
"""How long the end of the process waits for a tool's thread, which cannot be stopped."""


def process() -> None:
    """`main` as all that this process does: it ends within `GRACE_S`, where Python would wait for a thread for ever.

    SIGTERM ends it too, with a word on what that means for a run.
    """
    signal.signal(signal.SIGTERM, _terminated)
    try:
        main()
    except SystemExit as end:
        if signal.getsignal(signal.SIGTERM) is _terminated:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # all that is to be said was said
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        leaving = threading.Timer(GRACE_S, _leave_threads, (code,))
        leaving.daemon = True
        leaving.start()
        raise


def main() -> None:
    """Run the command line and exit. Errors of surefoot are one line on stderr; `SUREFOOT_DEBUG=1` shows where from."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        print(
            f"surefoot: the command line needs {' and '.join(missing)}; {extra_needed('cli')}",
            file=sys.stderr,
        )
        sys.exit(MISUSED)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a character must not end a run
            stream.reconfigure(errors="replace")
    try:
        # Only here, because it imports the packages of the extra `cli`.
        from surefoot.cli.app import app  # noqa: PLC0415

        app()
    except SurefootError as error:
        _leave(error, str(error), code_of(error))
    except (OSError, UnicodeError) as error:
        _leave(error, _told(error), MISUSED)
    except KeyboardInterrupt:
        print("surefoot: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except Terminated:
        print("surefoot: terminated; no run was started or resumed", file=sys.stderr)
        raise


def _terminated(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated(TERMINATED)


def _leave_threads(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # whoever read it may be gone
            stream.flush()
    os._exit(code)


def one_line(text: str) -> str:
    """A message without line breaks, control characters, and passwords in addresses."""
    return "".join(c if c.isprintable() else " " for c in without_password(text))


def _leave(error: Exception, told: str, code: int) -> NoReturn:
    if os.environ.get(DEBUG_VARIABLE):
        raise error
    sys.stdout.flush()
    print(f"surefoot: {one_line(told)}", file=sys.stderr)
    sys.exit(code)


def _told(error: OSError | UnicodeError) -> str:
    """What the system refused, in words."""
    if isinstance(error, UnicodeError):
        return f"a text that was given is not valid UTF-8 ({error})"
    try:
        Path.cwd()
    except OSError:
        return "the current folder is gone or closed; go to another one"
    what = f"{error.filename}: " if error.filename else ""
    return f"{what}{error.strerror or error}"
