"""The commands that drive a run: `run`, `resume`, `fork`."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, TextIO

import typer

from surefoot.agent import Agent, Run, new_run_id
from surefoot.cli.driving import Work, conduct
from surefoot.cli.finding import Found, find, state_of
from surefoot.cli.lines import Line, visible
from surefoot.cli.live import JsonLines, PlanProgress, Progress, Showing, put, stderr
from surefoot.cli.options import (
    KEPT_BY_FORK,
    KEPT_BY_RESUME,
    JournalOption,
    JsonOption,
    Options,
    RunArgument,
    VerboseOption,
    takes_options,
)
from surefoot.cli.recipes import keep_recipe, recipe_of
from surefoot.cli.review import word_on_plan
from surefoot.cli.settings import SettingsOption, changed, config_in, guard_files, settings_path
from surefoot.cli.setup import (
    agent_from,
    check_tools,
    journal_hint,
    journal_path,
    opened,
    recipe_from,
    tools_of,
)
from surefoot.core.loop.fold import fold
from surefoot.core.state.state import EMPTY, State
from surefoot.journal.sqlite import SqliteJournal
from surefoot.runtime.world import Watch
from surefoot.types.config import LoopConfig
from surefoot.types.errors import UsageError
from surefoot.types.events import Attachment, Task

TaskArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-] TASK", help="What is to be done, in words; - attaches what comes on stdin."),
]
WordsOption = Annotated[
    str,
    typer.Option("--words", metavar="-", help="In place of TASK: - takes the words from stdin.", show_default=False),
]
AttachOption = Annotated[list[Path] | None, typer.Option(metavar="FILE", help="Text file for the task; repeatable.")]


@takes_options
def run(
    *,
    options: Options,
    task: TaskArgument = None,
    words: WordsOption = "",
    attach: AttachOption = None,
    instructions: Annotated[str, typer.Option(help="Standing instructions for the model.")] = "",
    config: SettingsOption = None,
    journal: JournalOption = None,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a task: progress on stderr, the answer on stdout, the exit code tells how it ended."""
    given = _task(task or (), words, attach or ())
    settings = settings_path(config)
    by_file = config_in(settings, is_found=config is None) if settings else LoopConfig()
    closed = guard_files(settings, options)
    recipe = replace(recipe_from(options), settings=str(settings or ""), guard_files=closed)
    path = journal_path(journal)
    tools = tools_of(recipe, path)
    store = opened(path, make=True)
    agent = agent_from(recipe, tools, store, changed(options, by_file, recipe.reasoner) or by_file, instructions)
    run_id = new_run_id()
    keep_recipe(path, run_id, recipe)

    async def work(watch: Watch, stream: bool) -> Run:
        return await agent.run(given, run_id=run_id, watch=watch, stream=stream)

    if settings and not as_json:
        put(stderr(), [Line(f"settings: {visible(str(settings))}", "dim")])
    showing = _showing(EMPTY, recipe.reasoner, as_json=as_json, verbose=verbose)
    hint, word = journal_hint(journal), _word(agent, store, options, as_json=as_json)
    raise typer.Exit(conduct(agent, work, store=store, run_id=run_id, showing=showing, hint=hint, word=word))


@partial(takes_options, hidden=KEPT_BY_RESUME)
def resume(
    *,
    options: Options,
    run_id: RunArgument,
    by: Annotated[str, typer.Option("--by", help="Who resumes it; goes on record.")] = "",
    journal: JournalOption = None,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Go on with a run that was interrupted, paused or ended, with its own model and tools unless others are named."""
    path = journal_path(journal)
    store = opened(path)
    found = _found(store, run_id)
    state = found.state
    recipe = recipe_from(options, recipe_of(path, found.run_id), state)
    tools = tools_of(recipe, path)
    check_tools(state, tools, recipe)
    if options.said("guard") or options.rules or options.cedar:
        raise UsageError(f"run {found.run_id} keeps the gate that it was started with; start a new run with another")
    config = changed(options, state.config, state.reasoner)
    if options.prefetch is not None and (state.found or state.turn or state.done):
        raise UsageError(f"run {found.run_id} is past its prefetching; start a new run with what you want about it")
    agent = agent_from(recipe, tools, store, config, state.instructions)
    keep_recipe(path, found.run_id, recipe)

    async def work(watch: Watch, stream: bool) -> Run:
        return await agent.resume(found.run_id, by=by, config=config, watch=watch, stream=stream)

    showing = _showing(state, recipe.reasoner, as_json=as_json, verbose=verbose)
    hint, word = journal_hint(journal), _word(agent, store, options, by, as_json=as_json)
    raise typer.Exit(conduct(agent, work, store=store, run_id=found.run_id, showing=showing, hint=hint, word=word))


@partial(takes_options, hidden=KEPT_BY_FORK)
def fork(
    *,
    options: Options,
    run_id: RunArgument,
    at: Annotated[int, typer.Option("--at", min=1, help="How many records to share; `show` numbers them from 0.")],
    journal: JournalOption = None,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make a new run out of the first N records of another, and drive it, perhaps with another model."""
    if changed(options, LoopConfig()):
        raise UsageError("a fork begins with the limits and settings of its run; `surefoot resume` can give it others")
    path = journal_path(journal)
    store = opened(path)
    found = _found(store, run_id)
    if at > len(found.records):
        raise UsageError(f"run {found.run_id} has {len(found.records)} records; --at can be 1 to {len(found.records)}")
    state = fold(record.event for record in found.records[:at])
    recipe = recipe_from(options, recipe_of(path, found.run_id), state)
    tools = tools_of(recipe, path)
    check_tools(state, tools, recipe)
    agent = agent_from(recipe, tools, store, instructions=state.instructions)
    forked = new_run_id()
    keep_recipe(path, forked, recipe)

    async def work(watch: Watch, stream: bool) -> Run:
        return await agent.fork(found.run_id, at, new_id=forked, watch=watch, stream=stream)

    showing = _showing(state, recipe.reasoner, as_json=as_json, verbose=verbose)
    raise typer.Exit(conduct(agent, work, store=store, run_id=forked, showing=showing, hint=journal_hint(journal)))


def _found(store: SqliteJournal, given: str) -> Found:
    async def closed_after() -> Found:
        try:
            return (await find(store, given)).whole()
        finally:
            await store.aclose()

    return asyncio.run(closed_after())


def _showing(state: State, reasoner: str, *, as_json: bool, verbose: bool) -> Showing:
    if as_json:
        return JsonLines(reasoner)
    if reasoner == "plan" and not verbose and stderr().is_terminal:
        return PlanProgress(state)
    return Progress(state, detail=verbose)


def _word(
    agent: Agent, store: SqliteJournal, options: Options, by: str = "", *, as_json: bool
) -> Callable[[Run], Work | None] | None:
    """What asks a person at the terminal about plans, where that is wanted."""
    if not options.review_plan or as_json:
        return None
    return lambda run: word_on_plan(agent, store, run, asyncio.run(state_of(store, run.id)), by)


def _task(given: Sequence[str], words: str, attach: Sequence[Path]) -> Task:
    """The user's words, and what comes with them; stdin is material, unless it is said to hold the words."""
    said = [text for text in given if text != "-"]
    is_attached, is_words = len(said) < len(given), words == "-"
    if words and not is_words:
        raise UsageError(f"--words takes - alone; to say {words!r}, leave --words out")
    if is_words and given:
        raise UsageError("--words - reads the task's words from stdin: leave out TASK and -, or leave out --words")
    if len(said) > 1:
        raise UsageError("the task comes in several parts; put quotes around it")
    if is_attached and not said:
        raise UsageError(
            "- attaches what comes on stdin: say in words what is to be done with it, as in "
            "surefoot run - 'Summarise the attached text.'; --words - takes the words themselves from stdin"
        )
    text = _stdin() if is_words else "".join(said)
    if not text.strip():
        raise UsageError("the task is empty; say in words what is to be done")
    piped = (Attachment("stdin", _stdin()),) if is_attached else ()
    return Task(text, (*piped, *map(_attached, attach)))


def _stdin() -> str:
    stream: TextIO = sys.stdin
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="strict")  # some locales let through what is no text
    try:
        return stream.read()
    except UnicodeError as error:
        raise UsageError("what comes on stdin is no text in the encoding of this system; give it as UTF-8") from error


def _attached(path: Path) -> Attachment:
    try:
        if path.is_file():
            return Attachment(path.name, path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise UsageError(f"--attach {path}: cannot be read: {error.strerror}") from error
    raise UsageError(f"--attach {path}: there is no such file")
