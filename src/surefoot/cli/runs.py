"""The commands that look at runs and speak for a person: `runs`, `show`, `replay`, `approve`, `settle`, `cancel`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, TextIO, TypeVar

import typer

from surefoot.agent import Agent
from surefoot.cli.exits import CODES, DONE, JOURNAL_TROUBLE
from surefoot.cli.finding import Found, find
from surefoot.cli.lines import Line, json_line, visible, without_password
from surefoot.cli.live import put, stdout
from surefoot.cli.options import ByOption, CallArgument, JournalOption, JsonOption, RunArgument, Settled, VerboseOption
from surefoot.cli.plan_svg import write_picture
from surefoot.cli.plan_table import LATEST, as_fold, as_of, history_text, plan_shown
from surefoot.cli.screen import Teller
from surefoot.cli.setup import journal_hint, journal_path, opened, speaker
from surefoot.cli.standing import READY, closing, ending_lines, header, listing
from surefoot.cli.why import question_of
from surefoot.cli.why import why as why_lines
from surefoot.core.loop.fold import fold
from surefoot.core.loop.replay import replay as replayed
from surefoot.core.plan.accept import PLAN
from surefoot.core.state.state import EMPTY
from surefoot.journal.sqlite import SqliteJournal
from surefoot.knowledge.prefetch.urls import redacted
from surefoot.run import Run
from surefoot.types.errors import JournalError, UsageError
from surefoot.types.events import Event, Outcome, RunEnded
from surefoot.types.ports import Recorded, RunSummary

T = TypeVar("T")

OUTCOMES: Mapping[Settled, Outcome] = {
    "done": "done",
    "not-done": "not_done",
    "abandon": "abandoned",
}
"""What is said of a call in doubt, as the journal has it."""

_PLAN = "Of a run with --reasoner plan"


def runs(
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many, newest first.")] = 20,
    journal: JournalOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the newest runs."""

    async def listed(store: SqliteJournal) -> list[tuple[RunSummary, str]]:
        return [(info, await _status(store, info)) for info in await store.runs(limit)]

    found = _with(journal, listed, read_only=True)
    if as_json:
        for info, status in found:
            print(json_line({"run": info, "status": status}))
        return
    console = stdout()
    put(console, listing([_row(*one) for one in found], console.width) if found else [Line("no runs yet")])


def show(
    *,
    run_id: RunArgument,
    events: Annotated[bool, typer.Option("--events", help="The raw records, one JSON object a line.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run ends.")] = False,
    why: Annotated[str, typer.Option(metavar="CALL", help="Only this call: what each policy said, each value.")] = "",
    verbose: VerboseOption = False,
    plan: Annotated[
        str, typer.Option(metavar="vN|latest", help="Only the plan, as it was in that version.", rich_help_panel=_PLAN)
    ] = "",
    history: Annotated[
        bool, typer.Option("--history", help="Only the document that reflections are given.", rich_help_panel=_PLAN)
    ] = False,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the plan into that file.", rich_help_panel=_PLAN)
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Only the plan and what came of it, as JSON.", rich_help_panel=_PLAN)
    ] = False,
    journal: JournalOption = None,
) -> None:
    """Tell a run step by step; of one with a plan, the plan and how far it is, and with -v all that happened.

    Of a damaged journal, what can be read, and then the bad record.
    """
    if len([one for one in (why, events or follow or verbose, history, svg, as_json) if one]) > 1 or (
        plan and (why or events or follow or verbose)
    ):
        raise UsageError("these options of show give different things; choose one of them")

    async def shown(store: SqliteJournal) -> int:
        found = await find(store, run_id)
        if why:
            put(stdout(), why_lines(found.records, why))
            return DONE
        has_plan = bool(found.records) and found.state.planning is not None
        if plan or history or svg or as_json or (has_plan and not (events or follow or verbose)):
            _show_plan(found, plan, _Wanted(history, svg, as_json), journal_hint(journal))
            return DONE
        told = _Told(found, as_events=events)
        for record in found.records:
            told.tell(record)
        if found.wrong:
            raise JournalError(found.wrong)
        if follow and not told.is_over:
            async for record in store.subscribe(found.run_id, len(found.records)):
                told.tell(record)
        told.close(journal_hint(journal))
        return DONE

    raise typer.Exit(_with(journal, shown, read_only=not follow))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What of a plan is wanted in place of lines for a person."""

    history: bool
    svg: Path | None
    as_json: bool


def _show_plan(found: Found, version: str, wanted: _Wanted, hint: str) -> None:
    events = as_of([record.event for record in found.records], version or LATEST)
    state = fold(events)
    if wanted.history:
        print(history_text(state))
    elif wanted.svg is not None:
        write_picture(state, wanted.svg)
        put(stdout(), [Line(f"drawn into {visible(str(wanted.svg))}")])
    elif wanted.as_json:
        print(json_line(as_fold(state, events)))
    elif version:
        at = "" if len(events) == len(found.records) else f"as of record {len(events) - 1}"
        put(stdout(), plan_shown(state, events, stdout().width, at))
    else:
        console, run = stdout(), found.run
        put(console, [*header(state, run, _time(found.records[0].at), len(events)), Line("")])
        put(console, [*plan_shown(state, events, console.width), *ending_lines(state), Line(""), *closing(run, hint)])
    found.whole()


def replay(run_id: RunArgument, journal: JournalOption = None) -> None:
    """Run the records again without model and tools, and say whether the same comes out."""

    async def again(store: SqliteJournal) -> int:
        found = await find(store, run_id)
        outcome = replayed([record.event for record in found.records])
        if outcome.differs_at is not None:
            print(f"{outcome.differs_at} records alike; record {outcome.differs_at} comes out differently")
            print(f"  recorded: {json_line(outcome.expected)}")
            print(f"  replayed: {json_line(outcome.got) if outcome.got else 'nothing: no move asks for it here'}")
            return JOURNAL_TROUBLE
        print(f"{len(found.records)} records, all alike")
        found.whole()
        return DONE

    raise typer.Exit(_with(journal, again, read_only=True))


def approve(
    *,
    run_id: RunArgument,
    call: CallArgument,
    by: ByOption,
    refuse: Annotated[bool, typer.Option("--refuse", "--deny", help="Say no.")] = False,
    reason: Annotated[
        str, typer.Option("--reason", "--note", help="Why not; the model reads it. Of a plan: asks for another.")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Say yes without being asked, as a script must.")] = False,
    outcome: Annotated[
        Settled | None, typer.Option(help="Of a call in doubt: whether it took effect, or is given up.")
    ] = None,
    result: Annotated[str, typer.Option(help="With --outcome done: what the call gave, such as JSON.")] = "",
    journal: JournalOption = None,
) -> None:
    """Show the question about a call that waits for a person, and take the answer. `resume` then goes on.

    No is the default: without a terminal, and with anything but yes, the call is not allowed. A "no" is put on record;
    with no answer it goes on waiting, and the exit code is 6. CALL may be "plan", which signs the plan of a run; that
    allows none of its calls. With --outcome it settles a call in doubt.
    """
    if refuse and yes:
        raise UsageError("--refuse and --yes contradict each other; leave one of them out")
    if reason and not refuse:
        raise UsageError("--reason goes with --refuse")
    if outcome is not None and (refuse or yes):
        raise UsageError("--outcome settles a call in doubt, which is no yes or no: leave --refuse and --yes out")
    if result and outcome != "done":
        raise UsageError("--result goes with --outcome done")

    async def spoken(agent: Agent, found: Found) -> Run:
        if outcome is not None:
            return await agent.settle(found.run_id, call, OUTCOMES[outcome], by=by, result=result)
        waiting = next((one for one in Run.of(found.state).waiting if one.id == call), None)
        answer = "no" if refuse else "yes"
        if waiting is not None:  # else the agent says what is wrong
            put(stdout(), question_of(found.records, waiting))
            answer = answer if refuse or yes or call == PLAN else answer_on(sys.stdin)
        if answer == "yes":
            return await agent.approve(found.run_id, call, by=by)
        if answer == "no":
            return await agent.refuse(found.run_id, call, by=by, reason=reason)
        put(stdout(), [Line("not allowed: nobody said yes, and the call goes on waiting", "warn")])
        return Run.of(found.state)

    run = _speak(run_id, journal, spoken)
    if any(one.id == call for one in run.waiting):  # others may wait still; this one has its answer, or has not
        raise typer.Exit(CODES["paused"])


def answer_on(stream: TextIO) -> Literal["yes", "no", ""]:
    """What a person types on a terminal; "" for nothing, for anything else, and where there is no terminal."""
    if not stream.isatty():
        return ""
    print("Allow exactly this? Type yes or no: ", end="", flush=True)
    said = stream.readline().strip().casefold()
    return "yes" if said == "yes" else "no" if said in ("no", "n") else ""


def settle(
    *,
    run_id: RunArgument,
    call: CallArgument,
    by: ByOption,
    done: Annotated[bool | None, typer.Option("--done/--not-done", help="Whether the call took effect.")] = None,
    result: Annotated[str, typer.Option(help="With --done: what the call gave, for the model to read.")] = "",
    journal: JournalOption = None,
) -> None:
    """Say whether an interrupted call took effect. A call that did not runs again at `resume`."""
    if done is None:
        raise UsageError("say --done (it took effect) or --not-done (it did not, and runs again)")
    if result and not done:
        raise UsageError("--result goes with --done")
    outcome: Literal["done", "not_done"] = "done" if done else "not_done"

    async def spoken(agent: Agent, found: Found) -> Run:
        return await agent.settle(found.run_id, call, outcome, by=by, result=result)

    _speak(run_id, journal, spoken)


def cancel(run_id: RunArgument, by: ByOption, journal: JournalOption = None) -> None:
    """End a run that nobody drives."""

    async def spoken(agent: Agent, found: Found) -> Run:
        return await agent.cancel(found.run_id, by=by)

    _speak(run_id, journal, spoken)


class _Told:
    """A run on stdout, record by record: as JSON, or as lines with a header before and the ending after."""

    def __init__(self, found: Found, *, as_events: bool) -> None:
        self._console = stdout()
        self._as_events = as_events
        self._teller = Teller(EMPTY, width=self._console.width, detail=True)
        self.is_over = False
        self._last: Event | None = None
        if not as_events and found.records:
            first = found.records[0]
            state = found.state
            put(self._console, header(state, found.run, _time(first.at), len(found.records)))
            if found.wrong:
                put(self._console, [Line("the journal of this run is damaged; this is what can be read", "bad")])
            put(self._console, [Line("")])

    def tell(self, record: Recorded) -> None:
        """One record."""
        if self._as_events:
            print(json_line(record), flush=True)
        put(self._console, [] if self._as_events else self._teller.tell(record.event, record.at))
        self._last = record.event
        self.is_over = isinstance(record.event, RunEnded)

    def close(self, hint: str) -> None:
        """The end of it."""
        if not self._as_events:
            state = self._teller.state
            put(self._console, [*ending_lines(state), Line(""), *closing(Run.of(state, self._last), hint)])


def _speak(given: str, journal: Path | None, word: Callable[[Agent, Found], Coroutine[object, object, Run]]) -> Run:
    async def spoken(store: SqliteJournal) -> Run:
        return await word(speaker(store), (await find(store, given)).whole())

    run = _with(journal, spoken)
    put(stdout(), closing(run, journal_hint(journal)))
    return run


def _with(
    journal: Path | None, work: Callable[[SqliteJournal], Coroutine[object, object, T]], *, read_only: bool = False
) -> T:
    """What `work` gives with the journal open."""
    store = opened(journal_path(journal), read_only=read_only)

    async def closed_after() -> T:
        try:
            return await work(store)
        finally:
            await store.aclose()

    return asyncio.run(closed_after())


def _row(info: RunSummary, status: str) -> tuple[str, ...]:
    model = without_password(info.model)
    told = (info.run_id, status, _time(info.started_at)[: -len(":00")], str(info.events), model, redacted(info.task))
    return tuple(visible(" ".join(cell.split())) for cell in told)


async def _status(store: SqliteJournal, info: RunSummary) -> str:
    """As the list has it. A run whose process died without a word is looked at: it may be in doubt."""
    if info.status != "interrupted":
        return info.status.replace("_", " ")
    if info.standing:
        return READY if info.standing == "ready" else f"paused ({info.standing.replace('_', ' ')})"
    run = (await find(store, info.run_id)).run
    return f"{run.status} ({run.reason.replace('_', ' ')})" if run.reason else run.status


def _time(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
