"""`surefoot chat`: a conversation at a terminal, turn by turn; what is asked about a call is answered in place."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Annotated

import typer

from surefoot.agent import Agent
from surefoot.chat import Chat
from surefoot.cli import setup
from surefoot.cli.conduct import Work, agent_with, driven, keeping
from surefoot.cli.exits import DONE, TERMINATED, Terminated
from surefoot.cli.live import Progress, put, stderr, stdout
from surefoot.cli.options import JournalOption, Options, SettingsOption, VerboseOption, takes_options
from surefoot.cli.recipes import Recipe
from surefoot.cli.runs import answer_on
from surefoot.cli.setup import Found
from surefoot.core.state.state import EMPTY, Call, State
from surefoot.core.state.window import READ_RESULT
from surefoot.run import Run
from surefoot.speak import Voice
from surefoot.telling.text import Line, visible
from surefoot.telling.why import why
from surefoot.types.errors import UsageError
from surefoot.types.events import CallJudged

HELP = """\
/tools       the tools of this chat
/why [CALL]  why a call was allowed, asked about or refused; the newest without CALL
/fork        continue in a separate chat that begins here
/resume      continue a turn that was interrupted or waits for an answer
/quit        leave; continue later with `surefoot chat --continue ID` (Ctrl-D does the same)"""


@takes_options
def chat(
    *,
    options: Options,
    going_on: Annotated[str, typer.Option("--continue", metavar="ID", help="Continue this chat.")] = "",
    instructions: Annotated[str, typer.Option(help="Standing instructions for the model.")] = "",
    config: SettingsOption = None,
    journal: JournalOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Chat with an agent, one line a turn; it remembers the turns before. /help lists the commands."""
    agent, recipe = agent_with(options, config, journal, instructions)
    room = _Room(agent, agent.chat(going_on), recipe, journal, verbose)
    if going_on:
        try:
            put(stderr(), [Line(f"chat {visible(going_on)} goes on after {visible(room.last().id)}", "head")])
        except UsageError:
            raise UsageError(f"unknown chat {going_on!r} in this journal; `surefoot runs` lists its turns") from None
    else:
        put(stderr(), [Line(f"chat {room.chat.id} · /help lists the commands; Ctrl-D leaves", "head")])
    while (said := _line()) is not None and said != "/quit":
        try:
            room.hear(said)
        except UsageError as error:
            put(stderr(), [Line(visible(str(error)), "bad")])
    put(stderr(), [Line(f"continue with: surefoot chat --continue {room.chat.id}{setup.journal_hint(journal)}", "dim")])
    raise typer.Exit(DONE)


def _line() -> str | None:
    """What is said next; None at the end. On a terminal with a prompt and its history of lines."""
    if not sys.stdin.isatty():
        return next((said for line in sys.stdin if (said := line.strip())), None)
    with suppress(ImportError):
        import_module("readline")  # `input` edits lines and remembers them once it is loaded
    while True:
        try:
            if said := input("\nyou> ").strip():
                return said
        except EOFError:
            return None
        except KeyboardInterrupt:
            print("\n(Ctrl-D leaves)")


@dataclass
class _Room:
    agent: Agent
    chat: Chat
    recipe: Recipe
    journal: str | None
    verbose: bool

    def last(self) -> Run:
        return asyncio.run(setup.closed_after(self.agent, lambda _: self.chat.last()))

    def hear(self, said: str) -> None:
        command, _, rest = said.partition(" ")
        match command:
            case "/help":
                put(stdout(), [Line(line) for line in HELP.splitlines()])
            case "/tools":
                path = setup.journal_path(self.journal)
                specs = self._state().tools.tools or [tool.spec for tool in setup.tools_of(self.recipe, path)]
                put(stdout(), [Line(f"{visible(one.name)}  {one.effect}") for one in specs if one.name != READ_RESULT])
            case "/why":
                records = _records(self.journal, self.last().id).records
                judged = [one.event.call_id for one in records if isinstance(one.event, CallJudged)]
                if not (call_id := rest.strip() or next(reversed(judged), "")):
                    raise UsageError("no call has been judged in this chat yet")
                put(stdout(), why(records, call_id).lines)
            case "/fork":
                self.chat = self.agent.chat(after=self.last().id)
                put(stderr(), [Line(f"chat {self.chat.id} goes on from here", "head")])
            case "/resume":
                self._turn(self.chat.resume)
            case _ if said.startswith("/"):
                raise UsageError(f"unknown command {command!r}; /help lists them")
            case _:
                self._turn(partial(self.chat.send, said))

    def _turn(self, work: Work) -> None:
        next_work: Work | None = work
        try:
            while next_work is not None:
                showing = Progress(self._state(), detail=self.verbose)
                run = driven(self.agent, keeping(next_work, self.journal, self.recipe), showing)
                next_work = self._answered(run) if run.status == "paused" else None
                if next_work is None:
                    showing.over(run, setup.journal_hint(self.journal))
        except (KeyboardInterrupt, asyncio.CancelledError, Terminated) as stopped:
            put(stderr(), [Line("interrupted; /resume continues this turn", "warn")])
            if not isinstance(stopped, KeyboardInterrupt):  # SIGTERM is for the whole of it
                raise typer.Exit(TERMINATED) from None

    def _answered(self, run: Run) -> Work | None:
        """Ask what waits; what goes on with the run then. None where a question was left open."""
        found = _records(self.journal, run.id)
        for rows in run.questions:
            if any(call.is_in_doubt for call in rows):
                return None  # the lines at the end of the turn say how it is settled
            for call in rows:
                put(stdout(), setup.with_journal(self.journal, partial(setup.question_within, found=found, call=call)))
            picked = answer_on(sys.stdin, len(rows))
            if picked is None:
                put(stderr(), [Line("that is not an answer; /resume asks again", "warn")])
                return None
            self._say(run.id, [rows[at - 1] for at in picked] or rows, is_yes=bool(picked))
        return self.chat.resume

    def _say(self, run_id: str, calls: Sequence[Call], *, is_yes: bool) -> None:
        say, name = Voice.approve if is_yes else Voice.refuse, setup.user_name()
        setup.with_journal(self.journal, lambda store: say(Voice(store), run_id, calls, by=name))

    def _state(self) -> State:
        try:
            return _records(self.journal, self.last().id).state
        except UsageError:
            return EMPTY


def _records(journal: str | None, run_id: str) -> Found:
    return setup.with_journal(journal, lambda store: setup.find(store, run_id, journal))
