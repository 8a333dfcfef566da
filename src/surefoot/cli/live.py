"""A run as it happens, for whoever sits before it: progress on stderr, the answer alone on stdout; or JSON lines.

On a terminal what streams by is shown in one line that goes away, and what came of it in lines that stay; so no text
stands there twice.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

from surefoot.cli.json_lines import json_line
from surefoot.cli.lines import Line, cut, visible
from surefoot.cli.screen import Teller, progress, under_way
from surefoot.cli.standing import as_plain, closing, outcome
from surefoot.core.state import State
from surefoot.run import Run
from surefoot.types.events import Event
from surefoot.types.messages import CallPreview, ReasoningDelta, Reset, Signal, TextDelta, ToolProgress

STYLES = {
    "head": "bold",
    "dim": "dim",
    "call": "cyan",
    "result": "",
    "good": "green",
    "warn": "yellow",
    "bad": "red",
    "": "",
}
_WIDTH = 160
"""Cells of a line that nobody's terminal limits."""


class Showing(Protocol):
    """Somebody who is shown a run. `streams`: whether pieces of replies are wanted, too."""

    @property
    def streams(self) -> bool: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def watch(self, item: Event | Signal) -> None:
        """Called with each event and signal, in order."""
        ...

    def over(self, run: Run, hint: str) -> None:
        """Called once, after leaving, with what came of the run; `hint` ends each command that is proposed."""
        ...


class JsonLines:
    """One JSON object for each event on stdout, and at last {"run": …}. `reasoner`: that of the run."""

    def __init__(self, reasoner: str) -> None:
        self._reasoner = reasoner

    @property
    def streams(self) -> bool:
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def watch(self, item: Event | Signal) -> None:
        """Print one event. How far a call is passes by, and no other signal is asked for."""
        if not isinstance(item, ToolProgress):
            print(json_line(item), flush=True)

    def over(self, run: Run, hint: str) -> None:  # noqa: ARG002 - machines know what to call
        """Print what came of it."""
        print(json_line({"run": as_plain(run, self._reasoner)}), flush=True)


class Progress:
    """Lines for a person. `state`: what happened before, when a run goes on; `detail`: all that happens."""

    def __init__(self, state: State, *, detail: bool = False, clock: Callable[[], float] = time.time) -> None:
        self._console = stderr()
        self._teller = Teller(state, width=self._console.width, detail=detail)
        self._clock = clock
        self._tail = ""
        self._busy = "thinking"
        self._status: Status | None = None

    @property
    def streams(self) -> bool:
        return self._console.is_terminal

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status(Text(self._busy, "dim"))
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def watch(self, item: Event | Signal) -> None:
        """Show one event in lines that stay, or a piece of a reply or a call's progress in the one that goes away."""
        match item:
            case TextDelta(text) | ReasoningDelta(text):
                self._tail = (self._tail + text)[-_WIDTH:]
            case CallPreview(_, name):
                self._tail = f"{self._tail} → {name}"[-_WIDTH:]
            case ToolProgress():
                self._tail = progress(self._teller.state, item)
            case Reset():
                self._tail = ""
            case _:
                self._tail = ""
                put(self._console, self._teller.tell(item, self._clock()))
                self._busy = under_way(self._teller.state)
        if self._status is not None:
            busy = self._busy
            tail = visible(" ".join(self._tail.split()))[-(self._console.width // 2) :]
            self._status.update(Text(cut(f"{busy} … {tail}" if tail else busy, self._console.width - 4), "dim"))

    def over(self, run: Run, hint: str) -> None:
        """The answer to stdout, all else to stderr."""
        said_at_last(self._console, run, self._teller.state.reasoner, hint)


def said_at_last(console: Console, run: Run, reasoner: str, hint: str) -> None:
    """What came of a run: the answer to stdout, how it stands to the console."""
    if text := outcome(run, reasoner):
        if sys.stdout.isatty():
            print(file=sys.stderr)
        print(visible(text) if sys.stdout.isatty() else text, flush=True)
    put(console, closing(run, hint))


def stderr() -> Console:
    """Where progress goes."""
    return _wide(Console(stderr=True, highlight=False, emoji=False, markup=False))


def stdout() -> Console:
    """Where results go."""
    return _wide(Console(highlight=False, emoji=False, markup=False))


def _wide(console: Console) -> Console:
    if not console.is_terminal:
        console.width = _WIDTH
    return console


def put(console: Console, lines: Iterable[Line]) -> None:
    """Print lines; a terminal wraps them at words, a file gets them whole."""
    for line in lines:
        text = Text(" " * line.indent + line.text.replace("\n", "\n" + " " * line.indent), STYLES[line.style])
        console.print(text, soft_wrap=not console.is_terminal)
