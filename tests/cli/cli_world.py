"""What the tests of the command line live in: a server that speaks for a model, and a way to call the command."""

import json
import os
import pty
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from chat_server import ChatServer, Json, calls, chat_server, says
from processes import LIMIT_S, Forked, command
from surefoot.cli import main

__all__ = ("ChatServer", "calls", "chat_server", "says")  # which tests have from here too


SCORES = '''
import surefoot

@surefoot.tool(effect="read")
def exam_score(name: str) -> int:
    """Exam score of one student."""
    return {"Alice": 90, "小明": 81}[name]
'''


@dataclass(frozen=True)
class Ended:
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json_lines(self) -> list[Json]:
        return [cast("Json", json.loads(line)) for line in self.out.splitlines()]


Command = Callable[..., Ended]


@pytest.fixture
def surefoot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command, called in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    for name, value in clean_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    for name in set(os.environ) - set(clean_environment(tmp_path)):
        monkeypatch.delenv(name)

    def call(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["surefoot", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, captured.out, captured.err)

    return call


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes the streams of this process a terminal of so many columns and lines."""

    def make(columns: int, lines: int = 25) -> None:
        for name, value in {"FORCE_COLOR": 1, "TERM": "xterm", "COLUMNS": columns, "LINES": lines}.items():
            monkeypatch.setenv(name, str(value))

    return make


def lasting(terminal: str, height: int = 1000) -> list[str]:
    """What stands on a terminal at last: lines, without those that were erased; what has scrolled out stays."""
    lines: list[str] = [""]
    top = 0
    for piece in re.split(r"(\n|\x1b\[2K|\x1b\[1A)", terminal):
        match piece:
            case "\n":
                lines.append("")
                top = max(top, len(lines) - height)
            case "\x1b[2K":
                lines[-1] = ""
            case "\x1b[1A":
                del lines[max(len(lines) - 1, top + 1) :]
            case _:
                lines[-1] += re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]|\r", "", piece)
    return [line.rstrip() for line in lines if line.strip()]


_FOLDERS = {"HOME": "home", "XDG_CACHE_HOME": "cache", "SUREFOOT_STATE": "state"}


def clean_environment(home: Path) -> Mapping[str, str]:
    """This process's own environment, without keys and settings, and with an empty home."""
    kept = {"PATH", "PYTHONPATH", "SYSTEMROOT", "LANG", "LC_ALL", "TMPDIR"}
    found = {name: value for name, value in os.environ.items() if name in kept}
    found |= {name: str(home / place) for name, place in _FOLDERS.items()}
    return {**found, "COLUMNS": "160", "NO_COLOR": "1"}


def typed(folder: Path, keys: str, *arguments: str) -> Ended:
    """The command with a terminal as its input, on which somebody has typed already."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, keys.encode())
        return ended(start(folder, *arguments, stdin=theirs))
    finally:
        os.close(ours)
        os.close(theirs)


def start(folder: Path, *arguments: str, stdin: int | None = None) -> Forked:
    """The command in a process of its own."""
    return command(*arguments, folder=folder, environment=clean_environment(folder), stdin=stdin)


def ended(process: Forked) -> Ended:
    out, err = process.communicate(timeout=LIMIT_S)
    return Ended(process.wait(timeout=LIMIT_S), out, err)


def wait_until(holds: Callable[[], bool], process: Forked) -> None:
    """Look until it holds; fail with what the process said when it ends before, or the deadline passes."""
    until = time.monotonic() + LIMIT_S
    while not holds():
        if process.poll() is not None or time.monotonic() > until:
            process.kill()
            pytest.fail(f"it never came to that: {ended(process)}")
        threading.Event().wait(0.02)


def run_id_in(text: str) -> str:
    """The id that a command told on stderr."""
    return text.split("run ", 1)[1].split(maxsplit=1)[0]


def texts(body: Json, role: str) -> Sequence[str]:
    messages = cast("list[Json]", body["messages"])
    return [str(message["content"]) for message in messages if message["role"] == role]


@pytest.fixture
def finished(surefoot: Command) -> str:
    """A run that has ended."""
    with chat_server(calls(("arithmetic", {"expression": "6*7"}), text="I compute."), says("It is 42.")) as chat:
        return run_id_in(surefoot("run", "--model", chat.model, "6 times 7? 六乘七").err)


def offered(body: Json) -> set[str]:
    """The tools of a request."""
    tools = cast("list[dict[str, Json]]", body.get("tools", []))
    return {str(tool["function"]["name"]) for tool in tools}
