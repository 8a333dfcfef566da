"""A run as it happens, for whoever sits before it: progress on stderr, the answer alone on stdout; or JSON lines."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Self, cast, get_args

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markdown import Markdown
from rich.status import Status
from rich.text import Text

from surefoot.cli.lines import as_plain, closing, outcome
from surefoot.cli.plan_table import aligned, mark_of, rows_of
from surefoot.cli.teller import Teller
from surefoot.core.loop.moves import next_moves, phase_of
from surefoot.core.state.roles import SOLO
from surefoot.core.state.state import EMPTY, State
from surefoot.run import Run
from surefoot.telling.plan import Node, figures
from surefoot.telling.rows import whose
from surefoot.telling.text import Line, count, cut, json_line, one_line, visible
from surefoot.types import messages
from surefoot.types.errors import UsageError
from surefoot.types.events import Event, InStep, RunStarted
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


class Answers:
    """Where the answer of a run goes: to a file, else to stdout; to a terminal as the Markdown that models write."""

    def __init__(self, output: Path | None = None) -> None:
        if output is not None and not output.parent.is_dir():
            raise UsageError(f"--output {output}: no such folder")
        self.output = output

    def give(self, text: str) -> str:
        """Write it; the name of the file, "" for stdout. Raises `UsageError` where it cannot be written."""
        if self.output is not None:
            write_whole("--output", self.output, text + "\n" * (not text.endswith("\n")), "the answer is")
            return str(self.output)
        if not sys.stdout.isatty():
            _put_out(text)
        else:
            print(file=sys.stderr)
            stdout().print(as_markdown(visible(text)))
        return ""


def write_whole(option: str, path: Path, text: str, what: str, newline: str | None = None) -> None:
    """Write a file that an option names, whole or not at all.

    Raises `UsageError` where that is not possible; `what` the text holds is on stdout then.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_text(text, encoding="utf-8", newline=newline)
        fresh.replace(path)
    except OSError as error:
        print(text, end="")
        why = f"cannot be written ({error.strerror}); {what} on standard output"
        raise UsageError(f"{option} {path}: {why}") from error


def _put_out(text: str, then: str = "") -> None:
    """Print to stdout; where its reader is gone, this and all that is still printed goes nowhere."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        with Path(os.devnull).open("wb") as nowhere:  # so does what Python flushes at its exit
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        print(f"surefoot: stdout was closed{then}", file=sys.stderr)


def as_markdown(text: str) -> RenderableType:
    """A text as Markdown in which each line stays a line; JSON, and text without any mark of Markdown, as it is."""
    if text[:1] in "{[" or not _MARKDOWN.search(text):
        return Text(text)
    parts = text.split("```")  # the odd ones are code
    parts[::2] = [re.sub(r"(?<=\S)\n(?=\S)", "  \n", part) for part in parts[::2]]
    return Markdown("```".join(parts))


_MARKDOWN = re.compile(r"^\s{0,3}(#{1,6} |[-*+] |\d+[.)] |>|```|\|)|\*\*|`", re.MULTILINE)
_CHARS_A_TOKEN = 4


class JsonLines:
    """One JSON object for each event on stdout, and at last {"run": …}; each has the `run_id`."""

    streams = False
    """Whether pieces of replies are wanted, too."""

    def __init__(self, run_id: str, reasoner: str, answers: Answers) -> None:
        self._run_id = run_id
        self._reasoner = reasoner
        self._answers = answers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return

    def watch(self, item: Event | messages.Signal) -> None:
        """Print one event, also of an agent's run. How far a call is passes by, and no other signal is asked for."""
        run_id, told = self._run_id, cast("object", item)
        while isinstance(told, messages.Inside):
            run_id, told = told.run_id, told.item
        if not isinstance(told, messages.ToolProgress):
            _put_out(json_line(told, run_id), "; the run goes on")

    def over(self, run: Run, hint: str) -> None:  # noqa: ARG002 - machines know what to call
        _put_out(json_line({"run": as_plain(run, self._reasoner)}, run.id))
        if self._answers.output is not None and run.answer:
            self._answers.give(outcome(run, self._reasoner))


class Progress:
    """Lines for a person. `state`: what happened before, when a run goes on; `detail`: all that happens.

    `clock` gives seconds. `streams`: whether pieces of replies are wanted, too. While a model or tool is at work the
    last line on a terminal says for how long, and about how many tokens have come.
    """

    def __init__(
        self,
        state: State,
        *,
        detail: bool = False,
        clock: Callable[[], float] = time.time,
        answers: Answers | None = None,
    ) -> None:
        self._answers = answers or Answers()
        self._since, self._chars, self._first = clock(), 0, 0.0
        self._console = stderr()
        self._teller = Teller(state, width=self._console.width, detail=detail)
        self._clock, self._detail, self._asked = clock, detail, dict[str, Teller]()
        self._tail = ""
        self._busy = "thinking"
        self._status: Status | None = None
        self.streams = self._console.is_terminal

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status(self)
            self._status.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def watch(self, item: Event | messages.Signal) -> None:
        """Show one event in lines that stay, or a piece of a reply or a call's progress in the one that goes away."""
        match item:
            case messages.TextHeld(chars):
                self._count(chars)
            case messages.TextDelta(text) | messages.ReasoningDelta(text):
                self._count(len(text))
                self._tail = (self._tail + text)[-_WIDTH:]
            case messages.CallPreview(_, name):
                self._tail = f"{self._tail} → {name}"[-_WIDTH:]
            case messages.ToolProgress():
                self._tail = progress(self._teller.state, item)
            case messages.Reset():
                self._tail = ""
            case messages.Inside():
                put(self._console, self._inside(item))
            case _:
                self._show(item)
                self._tail, self._since, self._chars = "", self._clock(), 0

    def _count(self, chars: int) -> None:
        self._first = self._first if self._chars else self._clock()
        self._chars += chars

    def __rich__(self) -> Text:
        """The line that goes away, as it is now: what the run is busy with, for how long, and what has come of it."""
        now = self._clock()
        told = f"{self._busy} {now - self._since:.0f} s" if now - self._since >= 1 else self._busy
        if came := self._chars // _CHARS_A_TOKEN:
            speed = came / max(now - self._first, 1.0)
            told += f" · about {count(came, 'token')}, {speed:.0f}/s"
        return Text(self._with_tail(told, self._console.width - 4), "dim")

    def over(self, run: Run, hint: str) -> None:
        """The answer to stdout, all else to stderr; `hint` ends each command that is proposed."""
        text = outcome(run, self._teller.state.reasoner)
        written = self._answers.give(text) if text else ""
        put(self._console, closing(run, hint))
        if written:
            put(self._console, [Line(f"the answer is in {visible(written)}")])

    def _inside(self, news: messages.Inside, indent: int = 4) -> list[Line]:
        item = news.item
        if isinstance(item, messages.Inside):
            return self._inside(item, indent + 4)
        width = self._console.width - indent
        teller = self._asked.setdefault(news.run_id, Teller(EMPTY, width=width, detail=self._detail))
        if not isinstance(item, RunStarted) and (teller.state.task is None or not isinstance(item, get_args(Event))):
            return []
        told = teller.tell(cast("Event", item), self._clock())
        return [replace(line, indent=line.indent + indent) for line in told]

    def _show(self, event: Event) -> None:
        put(self._console, self._teller.tell(event, self._clock()))
        self._busy = under_way(self._teller.state)

    def _with_tail(self, text: str, width: int) -> str:
        tail = one_line(self._tail)[-(self._console.width // 2) :]
        return cut(f"{text} … {tail}" if tail else text, width)


class PlanProgress(Progress):
    """The plan as a live table: mark, id, name, tool, state, time and what came of it; below it phase and budgets."""

    def __init__(self, state: State, *, clock: Callable[[], float] = time.time, answers: Answers | None = None) -> None:
        super().__init__(state, clock=clock, answers=answers)
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

    def _cells(self, row: Node, width: int) -> tuple[str, ...]:
        name = (row.title or row.what,) if width >= _NARROW else ()
        took = self._took.get(row.id)
        if row.status in ("running", "waiting") and row.id in self._began:
            took = self._clock() - self._began[row.id]
        seconds = f"{took:.1f} s" if took is not None and row.status != "pending" else ""
        status = " · ".join((row.status.replace("_", " "), *(note for note in row.notes if note[0] in "a+")))
        return (mark_of(row), *name, row.actor, status, seconds, row.result)


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


def progress(state: State, told: messages.ToolProgress) -> str:
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
