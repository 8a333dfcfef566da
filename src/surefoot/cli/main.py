"""The door of the command line: all commands under one roof; what goes wrong becomes one line and an exit code."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import sys
import threading
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn, cast

from surefoot.cli.exits import HELP, INTERRUPTED, MISUSED, TERMINATED, Terminated, code_of
from surefoot.telling.text import without_password
from surefoot.types.errors import SurefootError, extra_needed

if TYPE_CHECKING:
    import typer

DEBUG_VARIABLE = "SUREFOOT_DEBUG"

GRACE_S = 5.0
"""How long the end of the process waits for a tool's thread, which cannot be stopped."""

_NEEDED = ("typer", "rich")


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

        def leave_threads() -> None:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):  # whoever read it may be gone
                    stream.flush()
            os._exit(code)

        leaving = threading.Timer(GRACE_S, leave_threads)
        leaving.daemon = True
        leaving.start()
        raise


def main() -> None:
    """Run the command line and exit. Errors of surefoot are one line on stderr; `SUREFOOT_DEBUG=1` shows where from."""
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        needed = f"the command line needs {' and '.join(missing)}; {extra_needed('cli')}"
        print(f"surefoot: {needed}", file=sys.stderr)
        sys.exit(MISUSED)
    import typer  # noqa: PLC0415

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a character must not end a run
            stream.reconfigure(errors="replace")
    try:
        gc.disable()  # what a start makes stays: to look it through took a tenth of the time
        app = commands(*sys.argv[1:2])
        gc.freeze()
        gc.enable()
        sys.exit(app(prog_name="surefoot", standalone_mode=False))
    except cast("type[typer.BadParameter]", typer.BadParameter.__base__) as error:  # of click, or of typer's own copy
        if not (told := error.format_message().replace("Value error, ", "").rstrip(".")):  # it was help that was shown
            sys.exit(MISUSED)
        command = error.ctx.command_path if error.ctx else " ".join(("surefoot", *sys.argv[1:2]))
        _leave(error, f"{told[0].lower()}{told[1:]} (see `{command} --help`)", MISUSED)
    except SurefootError as error:
        _leave(error, str(error), code_of(error))
    except UnicodeError as error:
        _leave(error, f"an input is not valid UTF-8 ({error})", MISUSED)
    except OSError as error:
        told = f"{error.filename}: " if error.filename else ""
        told += error.strerror or str(error)
        try:
            Path.cwd()
        except OSError:
            told = "the current folder is gone or unreadable; use another"
        _leave(error, told, MISUSED)
    except KeyboardInterrupt:
        print("surefoot: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except Terminated:
        print("surefoot: terminated; no run was started or resumed", file=sys.stderr)
        raise


def _terminated(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated(TERMINATED)


def _leave(error: Exception, told: str, code: int) -> NoReturn:
    """End with one line that has no line breaks, no control characters, and no passwords in addresses."""
    if os.environ.get(DEBUG_VARIABLE):
        raise error
    sys.stdout.flush()
    print(f"surefoot: {''.join(c if c.isprintable() else ' ' for c in without_password(told))}", file=sys.stderr)
    sys.exit(code)


_COMMANDS = {
    "run": "conduct.run",
    "chat": "chat.chat",
    "batch": "rows.batch",
    "runs": "runs.runs",
    "show": "runs.show",
    "resume": "conduct.resume",
    "fork": "conduct.fork",
    "check": "check.check",
    "replay": "runs.replay",
    "export": "export.export",
    "approve": "runs.approve",
    "settle": "runs.settle",
    "cancel": "runs.cancel",
    "serve": "serve.serve",
    "worker": "worker.worker",
    "demo": "demo.demo",
    "doctor": "doctor.doctor",
    "import": "journal.import_",
}
_GROUPS = {
    "journal": "journal.app",
    "db": "journal.tables",
    "knowledge": "stores.app",
    "mcp": "check.app",
    "model": "doctor.app",
    "token": "serve.token_app",
    "temporal": "worker.app",
}
"""Where each command, and each group of them, is defined: its module here, and its name there."""


def commands(only: str = "") -> typer.Typer:
    """All commands, or `only` the one of that name where there is one: a start then loads no other.

    They are loaded only here, since they need the packages of the extra `cli`.
    """
    import typer  # noqa: PLC0415

    about = "Run tool-using LLM agents that test a foothold before they put weight on it."
    app = typer.Typer(
        name="surefoot",
        help=about,
        epilog=HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    def show_version(wanted: bool) -> None:
        if wanted:
            doctor = import_module("surefoot.cli.doctor")
            print(f"surefoot {doctor.installed('surefoot') or '(from its sources)'}")
            raise typer.Exit

    asked = typer.Option("--version", callback=show_version, is_eager=True, help="Show the version.")

    def everywhere(*, version: bool = False) -> None:
        """Nothing but the option that goes without a command."""

    everywhere.__annotations__["version"] = Annotated[bool, asked]
    app.callback(help=about)(everywhere)
    is_one = only in _COMMANDS or only in _GROUPS
    for name, place in {**_COMMANDS, **_GROUPS}.items():
        if is_one and name != only:
            continue
        module, _, found = place.partition(".")
        command = getattr(import_module(f"surefoot.cli.{module}"), found)
        if name in _GROUPS:
            app.add_typer(command, name=name)
        else:
            app.command(name, epilog=HELP if module == "conduct" else None)(command)
    return app
