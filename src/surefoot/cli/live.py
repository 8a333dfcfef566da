"""A run as it happens, for whoever sits before it: progress on stderr, the answer alone on stdout; or JSON lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.status import Status
from rich.text import Text

from surefoot.cli.lines import Line, as_plain, closing, count, cut, json_line, one_line, outcome, visible
from surefoot.cli.plan_table import Row, aligned, figures, rows_of
from surefoot.cli.teller import Teller, whose
from surefoot.core.loop.moves import next_moves
from surefoot.core.loop.phase import phase_of
from surefoot.core.state.roles import SOLO
from surefoot.core.state.state import State
from surefoot.run import Run
from surefoot.types.events import Event, InStep
from surefoot.types.messages import CallPreview, ReasoningDelta, Reset, Signal, TextDelta, ToolProgress
from surefoot.types.moves import Think
from surefoot.types.plan_events import OfStep, PlanMade, StepStarted

STYLES = {"head": "bold", "dim": "dim", "call": "cyan", "good": "green", "warn": "yellow", "bad": "red"}

_WIDTH = 160
"""Cells of a line that nobody's terminal limits."""
_AROUND = 8
"""Lines of a terminal that are left to what stands above and below the table."""
_NARROW = 80
"""Cells from which there is room for the names of steps."""
_PER_SECOND = 8
_OVER = frozenset({"succeeded", "skipped", "superseded"})


class JsonLines:
    """One JSON object for each event on stdout, and at last {"run": …}. `reasoner`: that of the run."""

    streams = False
    """Whether pieces of replies are wanted, too."""

    def __init__(self, reasoner: str) -> None:
        self._reasoner = reasoner

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return

    def watch(self, item: Event | Signal) -> None:
        """Print one event. How far a call is passes by, and no other signal is asked for."""
        if not isinstance(item, ToolProgress):
            print(json_line(item), flush=True)

    def over(self, run: Run, hint: str) -> None:  # noqa: ARG002 - machines know what to call
        """Print what came of it."""
        print(json_line({"run": as_plain(run, self._reasoner)}), flush=True)


class Progress:
    """Lines for a person. `state`: what happened before, when a run goes on; `detail`: all that happens.

    `clock` gives seconds. `streams`: whether pieces of replies are wanted, too.
    """

    def __init__(self, state: State, *, detail: bool = False, clock: Callable[[], float] = time.time) -> None:
        self._console = stderr()
        self._teller = Teller(state, width=self._console.width, detail=detail)
        self._clock = clock
        self._tail = ""
        self._busy = "thinking"
        self._status: Status | None = None
        self.streams = self._console.is_terminal

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status(Text(self._busy, "dim"))
            self._status.start()
        return self

    def __exit__(self, *error: object) -> None:
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
                self._show(item)
        if self._status is not None:
            self._status.update(Text(self._with_tail(self._busy, self._console.width - 4), "dim"))

    def over(self, run: Run, hint: str) -> None:
        """The answer to stdout, all else to stderr; `hint` ends each command that is proposed."""
        if text := outcome(run, self._teller.state.reasoner):
            if sys.stdout.isatty():
                print(file=sys.stderr)
            print(visible(text) if sys.stdout.isatty() else text, flush=True)
        put(self._console, closing(run, hint))

    def _show(self, event: Event) -> None:
        put(self._console, self._teller.tell(event, self._clock()))
        self._busy = under_way(self._teller.state)

    def _with_tail(self, text: str, width: int) -> str:
        """A text, and behind it the end of what is said just now."""
        tail = one_line(self._tail)[-(self._console.width // 2) :]
        return cut(f"{text} … {tail}" if tail else text, width)


class PlanProgress(Progress):
    """The plan as a live table: mark, id, name, tool, state, time and what came of it; below it phase and budgets."""

    def __init__(self, state: State, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__(state, clock=clock)
        self._began: dict[str, float] = {}
        self._took: dict[str, float] = {}
        self._live: Live | None = None
        self.streams = True

    def __enter__(self) -> Self:
        self._live = Live(
            console=self._console, get_renderable=self._view, refresh_per_second=_PER_SECOND, transient=True
        )
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            sys.stdout.flush()  # what a tool has printed without a line's end, which the table would take along
            self._live.stop()
        self._live = None  # from now on nobody drives the run, so the last view tells what waits
        if any(isinstance(one, Exception) for one in error):
            self._draw()

    def over(self, run: Run, hint: str) -> None:
        """The table for good, the answer to stdout, all else to stderr."""
        self._draw()
        super().over(run, hint)

    def _show(self, event: Event) -> None:
        """Note when steps began and ended; what the table does not show itself stays above it."""
        at = self._clock()
        lines = self._teller.tell(event, at)
        if isinstance(event, InStep | OfStep):
            planning = self._teller.state.planning
            record = planning.steps.get(event.step_id) if planning is not None else None
            if isinstance(event, StepStarted):
                self._began[event.step_id] = at
                self._took.pop(event.step_id, None)
            elif record is None or record.status != "running":
                self._took.setdefault(event.step_id, at - self._began.get(event.step_id, at))
            lines = [line for line in lines if line.style == "bad" and line.text.startswith("! ")]
        elif isinstance(event, PlanMade):
            lines = lines[:1]
        put(self._console, lines)
        if lines and self._live is not None:
            self._live.refresh()  # else the table below is as old as when it was last drawn

    def _draw(self) -> None:
        if self._teller.state.planning is not None:
            self._console.print(self._view())

    def _view(self) -> RenderableType:
        """The steps, or as many as fit on the screen, from shortly before the first that is not done."""
        state, width = self._teller.state, self._console.width
        if (planning := state.planning) is None:
            return Text("")
        rows = rows_of(state, planning, is_driven=self._live is not None)
        room = max(self._console.height - _AROUND, 1)
        first, last = 0, len(rows)
        if self._live is not None and len(rows) > room:
            at_work = next((at for at, row in enumerate(rows) if row.status not in _OVER), len(rows))
            first = max(min(at_work - 1, len(rows) - room), 0)
            last = first + room
        lines = aligned(rows[first:last], [self._cells(row, width) for row in rows[first:last]], width)
        if first:
            lines.insert(0, Line(f"… {count(first, 'step')} before", "dim"))
        if last < len(rows):
            lines.append(Line(f"… {count(len(rows) - last, 'more step')}", "dim"))
        foot = figures(state, planning, "" if self._live is not None else Run.of(state).status)
        texts = [Text(one.text, STYLES.get(one.style, ""), no_wrap=True, overflow="ellipsis") for one in lines]
        return Group(*texts, Text(self._with_tail(foot, width - 1), "dim", no_wrap=True))

    def _cells(self, row: Row, width: int) -> tuple[str, ...]:
        name = (row.name or row.what,) if width >= _NARROW else ()
        took = self._took.get(row.step_id)
        if row.status in ("running", "waiting") and row.step_id in self._began:
            took = self._clock() - self._began[row.step_id]
        seconds = f"{took:.1f} s" if took is not None and row.status != "pending" else ""
        status = " · ".join((row.status.replace("_", " "), *(note for note in row.notes if note[0] in "a+")))
        return (row.head, *name, row.actor, status, seconds, row.result)


Showing = JsonLines | Progress
"""Somebody who is shown a run: entered while it is driven, given each event and signal, and at last the run."""


def under_way(state: State) -> str:
    """What a run is busy with, in a few words; of several models, which."""
    if running := _running(state):
        return f"running {', '.join(running)}"
    if state.planning is not None and state.planning.has_begun:
        return phase_of(state)
    moves = () if SOLO in state.speakers else next_moves(state)
    return f"{whose(next((move.role for move in moves if isinstance(move, Think)), SOLO))}thinking"


def progress(state: State, told: ToolProgress) -> str:
    """How far a call is; its name only where several run."""
    call = state.call(told.call_id)
    name = f"{call.name}: " if call and len(_running(state)) > 1 else ""
    total = "" if told.total is None else f" of {told.total:g}"
    return f"{name}{told.text}" + ("" if told.done is None else f" {told.done:g}{total}")


def _running(state: State) -> list[str]:
    return [visible(call.name) for call in state.calls if call.attempts and call.is_open]


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
        text = Text(" " * line.indent + line.text.replace("\n", "\n" + " " * line.indent), STYLES.get(line.style, ""))
        console.print(text, soft_wrap=not console.is_terminal)
