"""The commands that drive a run, `run`, `resume` and `fork`: until it ends, pauses, or is stopped by a signal.

A plan that waits for its signature can be shown to whoever sits at the terminal, while nobody drives the run.
"""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, TextIO, TypeVar

import typer

from surefoot.agent import Agent
from surefoot.cli import options as shared
from surefoot.cli import setup
from surefoot.cli.exits import CODES, INTERRUPTED, TERMINATED, Terminated
from surefoot.cli.live import Answers, JsonLines, PlanProgress, Progress, Showing, put, stderr
from surefoot.cli.options import Options, changed, takes_options
from surefoot.cli.recipes import Recipe, keep_recipe, recipe_of
from surefoot.cli.setup import Found
from surefoot.core.loop.fold import fold
from surefoot.core.plan.accept import PLAN, signature
from surefoot.core.plan.child import open_calls
from surefoot.core.state.state import EMPTY, State
from surefoot.run import Run, new_run_id
from surefoot.runtime.world import Watch
from surefoot.speak import Voice
from surefoot.telling.state import plan_question
from surefoot.telling.text import Line, visible
from surefoot.types.attachments import Attachment
from surefoot.types.config import LoopConfig
from surefoot.types.errors import UsageError
from surefoot.types.events import Event, JournalOrigin, RunForked, RunResumed, RunStarted
from surefoot.types.messages import Signal
from surefoot.types.ports import JournalStore
from surefoot.types.task import Task

T = TypeVar("T")
TaskArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[-] TASK", help="What to do, in words; - attaches stdin.")
]
WordsOption = Annotated[
    str, typer.Option("--words", metavar="-", help="Instead of TASK: - reads the words from stdin.", show_default=False)
]
AttachOption = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE", help="Text, picture, PDF or audio file, or mcp:SERVER/URI of a resource; repeatable."),
]

OutputOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write the answer to this file (overwritten) instead of stdout.", show_default=False
    ),
]

Work = Callable[..., Coroutine[object, object, Run]]
"""What drives the run; it is given who is to `watch`, and whether to `stream` pieces of replies."""

_ASKED = "Run this plan? Type yes or no, or say what you want instead: "
_SHORT = {"yes": "yes", "y": "yes", "no": "no", "n": "no"}


@takes_options
def run(
    *,
    options: Options,
    task: TaskArgument = None,
    attach: AttachOption = None,
    output: OutputOption = None,
    verbose: shared.VerboseOption = False,
    as_json: shared.JsonOption = False,
    schema: Annotated[Path | None, typer.Option(metavar="FILE", help="JSON Schema that the answer must fit.")] = None,
    words: WordsOption = "",
    instructions: Annotated[str, typer.Option(help="Standing instructions for the model.")] = "",
    config: shared.SettingsOption = None,
    journal: shared.JournalOption = None,
) -> None:
    """Run a task. The answer goes to stdout, progress to stderr; the exit code says how it ended."""
    answers, given = Answers(output), task_from(task or (), words, attach or (), options.mcp or ())
    agent, recipe = agent_with(options, config, journal, instructions, setup.schema_in(schema))
    run_id = new_run_id()
    keep_recipe(setup.journal_path(journal), run_id, recipe)
    if recipe.settings and not as_json:
        put(stderr(), [Line(f"settings: {visible(recipe.settings)}", "dim")])
    showing = _showing(EMPTY, run_id, recipe.reasoner, answers, as_json=as_json, verbose=verbose)
    work = partial(agent.run, given, run_id=run_id)
    _conduct(agent, work, run_id, showing, journal, by="" if options.review_plan and not as_json else None)


def agent_with(
    options: Options,
    config: str | None,
    journal: str | None,
    instructions: str,
    schema: Mapping[str, object] | None = None,
) -> tuple[Agent, Recipe]:
    """The agent that some options and settings describe, and its recipe. Makes the journal's folder."""
    settings, by_file, closed = shared.settings_for(config, options)
    recipe = replace(setup.recipe_from(options), settings=str(settings or ""), guard_files=closed, schema=schema)
    path = setup.journal_path(journal)
    tools = setup.tools_of(recipe, path)
    store, by_options = setup.open_journal(path, make=True), setup.config_for(recipe, tools, options, by_file)
    return setup.agent_from(recipe, tools, store, by_options, instructions), recipe


@partial(takes_options, hidden=shared.KEPT_BY_RESUME)
def resume(
    *,
    options: Options,
    run_id: shared.RunArgument,
    by: Annotated[str, typer.Option("--by", help="Your name, for the record.")] = "",
    output: OutputOption = None,
    verbose: shared.VerboseOption = False,
    as_json: shared.JsonOption = False,
    journal: shared.JournalOption = None,
) -> None:
    """Continue a run that was interrupted, paused or ended, with its own model and tools unless you name others."""
    answers, found = Answers(output), _find(run_id, journal)
    state = found.state
    recipe, agent_of, origin = _again(options, found, state, journal)
    if options.get("guard") or options.rules or options.cedar:
        raise UsageError(f"run {found.run_id} keeps the gate that it was started with; start a new run to use another")
    config = changed(options, state.config, state.reasoner)
    if options.prefetch is not None and (state.found or state.turn or state.done):
        raise UsageError(f"run {found.run_id} is past its prefetching; start a new run to change that")
    agent = agent_of(config)
    work = partial(agent.resume, found.run_id, by=by, config=config, origin=origin)
    showing = _showing(state, found.run_id, recipe.reasoner, answers, as_json=as_json, verbose=verbose)
    asked = by if options.review_plan and not as_json else None
    _conduct(agent, keeping(work, journal, recipe, found.run_id), found.run_id, showing, journal, by=asked)


@partial(takes_options, hidden=shared.KEPT_BY_FORK)
def fork(
    *,
    options: Options,
    run_id: shared.RunArgument,
    at: Annotated[int, typer.Option("--at", min=1, help="How many records to share; `show` numbers them from 0.")],
    output: OutputOption = None,
    verbose: shared.VerboseOption = False,
    as_json: shared.JsonOption = False,
    journal: shared.JournalOption = None,
) -> None:
    """Start a new run from the first N records of another, with its model unless you name one."""
    if changed(options, LoopConfig()):
        raise UsageError("a fork begins with the limits and settings of its run; `surefoot resume` can give it others")
    answers, found = Answers(output), _find(run_id, journal)
    if at > len(found.records):
        raise UsageError(f"run {found.run_id} has {len(found.records)} records; --at can be 1 to {len(found.records)}")
    state = fold(record.event for record in found.records[:at])
    recipe, agent_of, origin = _again(options, found, state, journal)
    agent, forked = agent_of(None), new_run_id()
    work = keeping(partial(agent.fork, found.run_id, at, new_id=forked, origin=origin), journal, recipe, forked)
    showing = _showing(state, forked, recipe.reasoner, answers, as_json=as_json, verbose=verbose)
    _conduct(agent, work, forked, showing, journal)


def keeping(work: Work, journal: str | None, recipe: Recipe, run_id: str = "") -> Work:
    """The same, with the recipe kept once the run is on record: one with a recipe counts as begun by this user.

    Of one that does not start here, `run_id` says which it is; without it, none is kept of that one.
    """

    def seeing(*, watch: Watch, stream: bool) -> Coroutine[object, object, Run]:
        def notice(news: Event | Signal) -> None:
            begun = news.run_id if isinstance(news, RunStarted) else run_id
            if begun and isinstance(news, RunStarted | RunResumed | RunForked):
                keep_recipe(setup.journal_path(journal), begun, recipe)
            watch(news)

        return work(watch=notice, stream=stream)

    return seeing


def _find(given: str, journal: str | None) -> Found:
    return setup.with_journal(journal, lambda store: setup.find(store, given, journal)).whole()


def _again(
    options: Options, found: Found, state: State, journal: str | None
) -> tuple[Recipe, Callable[[LoopConfig | None], Agent], JournalOrigin]:
    """What a run that has begun goes on with: its recipe, what makes its agent, and whether this user has begun it."""
    path = setup.journal_path(journal)
    kept = recipe_of(path, found.run_id)
    recipe = setup.recipe_from(options, kept, state)
    tools = setup.tools_of(recipe, path)
    setup.check_tools(state, tools, recipe)
    origin: JournalOrigin = "own" if kept is not None else "foreign"
    return (
        recipe,
        lambda config: setup.agent_from(recipe, tools, setup.open_journal(path), config, state.instructions),
        origin,
    )


def _showing(state: State, run_id: str, reasoner: str, answers: Answers, *, as_json: bool, verbose: bool) -> Showing:
    if as_json:
        return JsonLines(run_id, reasoner, answers)
    if reasoner == "plan" and not verbose and stderr().is_terminal:
        return PlanProgress(state, answers=answers)
    return Progress(state, detail=verbose, answers=answers)


def task_from(given: Sequence[str], words: str, attach: Sequence[str], mcp: Sequence[Path]) -> Task:
    """The user's words, and what comes with them; stdin is material, unless it is said to hold the words."""
    said = [text for text in given if text != "-"]
    is_attached, is_words = len(said) < len(given), words == "-"
    if words and not is_words:
        raise UsageError(f"--words takes only -; to give {words!r} as the task, leave --words out")
    if is_words and given:
        raise UsageError("--words - reads the task's words from stdin: leave out TASK and -, or leave out --words")
    if len(said) > 1:
        raise UsageError("the task comes in several parts; put quotes around it")
    if is_attached and not said:
        raise UsageError(
            "- attaches stdin: also say in words what to do with it, as in "
            "surefoot run - 'Summarise the attached text.'; --words - reads the words themselves from stdin"
        )
    text = _stdin() if is_words else "".join(said)
    if not text.strip():
        raise UsageError("the task is empty; say in words what to do")
    attached = [Attachment("stdin", _stdin())] if is_attached else []
    for path in attach:
        try:
            attached += _resource(path, mcp) if path.startswith("mcp:") else [Attachment.from_path(path)]
        except UsageError as error:
            raise UsageError(f"--attach {error}") from error
    return Task(text, tuple(attached))


def _resource(named: str, mcp: Sequence[Path]) -> tuple[Attachment, ...]:
    server, _, uri = named.removeprefix("mcp:").partition("/")
    if not (server and uri):
        raise UsageError(f"{named}: write mcp:SERVER/URI, as in mcp:docs/file:///notes.md")
    if not mcp:
        raise UsageError(f"{named}: name the file of MCP servers with --mcp")
    return asyncio.run(setup.served(mcp, lambda servers: servers.resource(server, uri)))


def _stdin() -> str:
    stream: TextIO = sys.stdin
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="strict")  # some locales let through what is not text
    try:
        return stream.read()
    except UnicodeError as error:
        raise UsageError("stdin is not text in the encoding of this system; give it as UTF-8") from error


def driven(agent: Agent, work: Work, showing: Showing) -> Run:
    """Drive a run and show it. Ctrl-C and SIGTERM cancel it, and leave it resumable."""
    seen = partial(work, watch=showing.watch, stream=showing.streams)
    with showing:
        return asyncio.run(terminable(setup.closed_after(agent, lambda _: seen())))


async def terminable(work: Awaitable[T]) -> T:
    """SIGTERM cancels it, where asyncio lets only Ctrl-C do so; also in its last moment, in which no task can be."""
    loop, task, has_come = asyncio.get_running_loop(), asyncio.current_task(), threading.Event()
    assert task is not None  # noqa: S101  # a coroutine runs in one

    def cancel(_number: int, _frame: object) -> None:
        has_come.set()
        loop.call_soon_threadsafe(task.cancel)

    before = signal.signal(signal.SIGTERM, cancel)
    try:
        done = await work
    finally:
        signal.signal(signal.SIGTERM, before)
    if has_come.is_set():
        raise asyncio.CancelledError
    return done


def _conduct(
    agent: Agent, work: Work, run_id: str, showing: Showing, journal: str | None, *, by: str | None = None
) -> None:
    """Drive a run and show it, and exit. `by` is who is asked about its plans; None: nobody.

    The first Ctrl-C or SIGTERM cancels what is under way and leaves the run resumable; a second one leaves at once.
    """
    next_work: Work | None = work
    ended: Run | None = None
    try:
        while next_work is not None:
            ended = driven(agent, next_work, showing)
            is_asked = by is not None and any(one.id == PLAN for one in ended.waiting) and sys.stdin.isatty()
            next_work = _word_on_plan(agent, journal, _find(run_id, journal).state, by or "") if is_asked else None
    except (KeyboardInterrupt, asyncio.CancelledError, Terminated) as stopped:
        # from `asyncio.run`, once the task is cancelled and the journal released; or nobody drove it just then
        code = INTERRUPTED if isinstance(stopped, KeyboardInterrupt) else TERMINATED
        for one in (signal.SIGINT, signal.SIGTERM):  # nothing is left to be done but to wait for tools' threads
            signal.signal(one, lambda _number, _frame: os._exit(code))
        try:
            state = _find(run_id, journal).state
        except UsageError:
            print("surefoot: interrupted before the run began", file=sys.stderr)
            raise typer.Exit(code) from None
        ended = Run.of(state)
        showing.over(ended, setup.journal_hint(journal))
        if any(call.attempts for _, call in open_calls(state)) and threading.active_count() > 1:
            print("a tool may still be running and cannot be stopped; Ctrl-C again exits at once", file=sys.stderr)
        if ended.status in ("paused", "interrupted"):  # else it has ended just before
            raise typer.Exit(code) from None
        raise typer.Exit(CODES[ended.status]) from None
    assert ended is not None  # noqa: S101  # the first work was done
    showing.over(ended, setup.journal_hint(journal))
    raise typer.Exit(CODES[ended.status])


def _word_on_plan(agent: Agent, journal: str | None, state: State, by: str) -> Work | None:
    """Ask about a plan that waits for its signature, and put the answer on record; gives what drives the run on.

    None when nothing is said: the run goes on waiting.
    """
    put(stderr(), plan_question(state))
    said = answer_on(sys.stdin, sys.stderr)
    if not said:
        return None
    name, shown = by or setup.user_name(), signature(state)

    async def send_word(store: JournalStore) -> Found:
        if said == "yes":
            await Voice(store).approve(state.run_id, shown, by=name)
        else:
            await Voice(store).refuse(state.run_id, shown, by=name, reason="" if said == "no" else said)
        return await setup.find(store, state.run_id, journal)

    new = setup.with_journal(journal, send_word).records[state.seen :]

    async def go_on(*, watch: Watch, stream: bool) -> Run:
        for record in new:
            watch(record.event)
        return await agent.resume(state.run_id, by=name, watch=watch, stream=stream)

    return go_on


def answer_on(stream: TextIO, out: TextIO) -> str:
    """What is said about a plan: "yes", "no", words, or "" for nothing."""
    print(_ASKED, end="", flush=True, file=out)
    said = stream.readline().strip()
    return _SHORT.get(said.casefold(), said)
