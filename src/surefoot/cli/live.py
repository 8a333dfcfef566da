"""A run as it happens, for whoever sits before it: progress on stderr, the answer alone on stdout; or JSON lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.status import Status
from rich.text import Text

from surefoot.cli.lines import Line, count, cut, in_columns, json_line, one_line, visible
from surefoot.cli.plan_table import MARKS, Row, figures, rows_of
from surefoot.cli.plan_table import STYLES as OF_STATUS
from surefoot.cli.screen import Teller, progress, under_way
from surefoot.cli.standing import as_plain, closing, outcome
from surefoot.core.state.state import State
from surefoot.run import Run
from surefoot.types.events import Event, InStep
from surefoot.types.messages import CallPreview, ReasoningDelta, Reset, Signal, TextDelta, ToolProgress
from surefoot.types.plan_events import OfStep, PlanMade, StepStarted

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


_TAIL = 200
_AROUND = 8
"""Lines of a terminal that are left to what stands above and below the table."""
_NARROW = 80
"""Cells from which there is room for the names of steps."""
_PER_SECOND = 8


class PlanProgress:
    """The plan as a live table: mark, id, name, tool, state, time and what came of it; below it phase and budgets.

    `state`: what happened before, when a run goes on. `clock` gives seconds.
    """

    def __init__(self, state: State, *, clock: Callable[[], float] = time.time) -> None:
        self._console: Console = stderr()
        self._teller = Teller(state, width=self._console.width)
        self._clock = clock
        self._began: dict[str, float] = {}
        self._took: dict[str, float] = {}
        self._tail = ""
        self._live: Live | None = None

    @property
    def streams(self) -> bool:
        return True

    def __enter__(self) -> Self:
        self._live = Live(
            console=self._console, get_renderable=self._view, refresh_per_second=_PER_SECOND, transient=True
        )
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            sys.stdout.flush()  # what a tool has printed without a line's end, which the table would take along
            self._live.stop()
        self._live = None  # from now on nobody drives the run, so the last view tells what waits
        if isinstance(error, Exception):
            self._draw()

    def watch(self, item: Event | Signal) -> None:
        """Show one event, or a piece of a reply."""
        match item:
            case TextDelta(text) | ReasoningDelta(text):
                self._tail = (self._tail + text)[-_TAIL:]
            case CallPreview(_, name):
                self._tail = f"{self._tail} → {name}"[-_TAIL:]
            case ToolProgress():
                self._tail = progress(self._teller.state, item)
            case Reset():
                self._tail = ""
            case _:
                self._tail = ""
                self._happened(item)

    def over(self, run: Run, hint: str) -> None:
        """The table for good, the answer to stdout, all else to stderr."""
        self._draw()
        said_at_last(self._console, run, self._teller.state.reasoner, hint)

    def _happened(self, event: Event) -> None:
        at = self._clock()
        lines = self._teller.tell(event, at)
        if isinstance(event, StepStarted):
            self._began[event.step_id] = at
            self._took.pop(event.step_id, None)
        elif isinstance(event, InStep | OfStep) and not self._is_running(event.step_id):
            self._took.setdefault(event.step_id, at - self._began.get(event.step_id, at))
        if beside := _beside_the_table(event, lines):
            put(self._console, beside)
            if self._live is not None:
                self._live.refresh()  # else the table below is as old as when it was last drawn

    def _is_running(self, step_id: str) -> bool:
        planning = self._teller.state.planning
        record = planning.steps.get(step_id) if planning is not None else None
        return record is not None and record.status == "running"

    # ------------------------------------------------------------------ the table

    def _draw(self) -> None:
        if self._teller.state.planning is not None:
            self._console.print(self._view())

    def _view(self) -> RenderableType:
        state, width = self._teller.state, self._console.width
        planning = state.planning
        if planning is None:
            return Text("")
        rows = rows_of(state, planning, is_driven=self._live is not None)
        tail = one_line(self._tail)[-(width // 2) :]
        foot = figures(state, planning, "" if self._live is not None else Run.of(state).status)
        lines = self._lines(rows, width)
        texts = [Text(line.text, STYLES[line.style], no_wrap=True, overflow="ellipsis") for line in lines]
        texts.append(Text(cut(f"{foot} … {tail}" if tail else foot, width - 1), "dim", no_wrap=True))
        return Group(*texts)

    def _lines(self, rows: Sequence[Row], width: int) -> list[Line]:
        """The steps, or as many as fit on the screen, from shortly before the first that is not done."""
        room = max(self._console.height - _AROUND, 1)
        first, last = 0, len(rows)
        if self._live is not None and len(rows) > room:
            at_work = next((at for at, row in enumerate(rows) if row.status not in _OVER), len(rows))
            first = max(min(at_work - 1, len(rows) - room), 0)
            last = first + room
        shown = in_columns([self._cells(row, width) for row in rows[first:last]], width)
        lines = [Line(text, OF_STATUS[row.status]) for text, row in zip(shown, rows[first:last], strict=True)]
        if first:
            lines.insert(0, Line(f"… {count(first, 'step')} before", "dim"))
        return [*lines, Line(f"… {count(len(rows) - last, 'more step')}", "dim")] if last < len(rows) else lines

    def _cells(self, row: Row, width: int) -> tuple[str, ...]:
        name = (row.name or row.what,) if width >= _NARROW else ()
        took = self._took.get(row.step_id)
        if row.status in ("running", "waiting") and row.step_id in self._began:
            took = self._clock() - self._began[row.step_id]
        seconds = f"{took:.1f} s" if took is not None and row.status != "pending" else ""
        status = " · ".join((row.status.replace("_", " "), *(note for note in row.notes if note[0] in "a+")))
        return (f"{MARKS[row.status]} {row.step_id}", *name, row.actor, status, seconds, row.result)


_OVER = frozenset({"succeeded", "skipped", "superseded"})


def _beside_the_table(event: Event, lines: list[Line]) -> list[Line]:
    """What stays above the table: all but what it shows itself."""
    if isinstance(event, InStep | OfStep):
        return [line for line in lines if line.style == "bad" and line.text.startswith("! ")]
    return lines[:1] if isinstance(event, PlanMade) else lines
