"""The commands that look at runs and speak for a person: `runs`, `show`, `replay`, `approve`, `settle`, `cancel`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TextIO

import typer

from surefoot.chat import is_next_turn
from surefoot.cli.exits import CODES, DONE, JOURNAL_TROUBLE
from surefoot.cli.lines import READY, closing, dollars, ending_lines, header, listing
from surefoot.cli.live import put, stdout
from surefoot.cli.options import ByOption, CallArgument, JournalOption, JsonOption, RunArgument, Settled, VerboseOption
from surefoot.cli.picture import write_picture
from surefoot.cli.plan_table import LATEST, as_fold, as_of, plan_shown, planning_of
from surefoot.cli.recipes import recipe_path
from surefoot.cli.setup import Found, find, journal_hint, journal_path, or_beside, question_within, with_journal, within
from surefoot.cli.teller import Teller
from surefoot.core.loop.fold import fold
from surefoot.core.loop.replay import replay as replayed
from surefoot.core.plan.accept import PLAN
from surefoot.core.plan.child import owner_of
from surefoot.core.plan.history import history as history_of
from surefoot.core.state.state import EMPTY
from surefoot.core.text.urls import redacted
from surefoot.delegate import inner_run_id
from surefoot.run import Run
from surefoot.speak import Voice
from surefoot.telling.tale import inner_event
from surefoot.telling.text import Line, json_line, moment, one_line, program_text, visible, without_password
from surefoot.telling.why import why as reasons
from surefoot.types.errors import AnswerLate, UsageError
from surefoot.types.events import CallStarted, Event, Outcome, RunEnded, RunStarted
from surefoot.types.ports import JournalStore, Recorded, RunSummary

_TURNS = 10
"""Runs that are looked at for one line of the list, where the turns of a chat take one together."""
_PLAN = "For a run with --reasoner plan"


def runs(
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many, newest first.")] = 20,
    every: Annotated[bool, typer.Option("--all", help="Also each turn of a chat, and runs made for agents.")] = False,
    journal: JournalOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the newest runs: one row for each chat, and none for runs that one agent made for another."""

    async def list_rows(store: JournalStore) -> list[tuple[RunSummary, str]]:
        if every or as_json:
            found = await store.runs(limit)
        else:
            found, looked_at = list[RunSummary](), limit * _TURNS
            while len(found) < limit:
                newest = await store.runs(looked_at)
                earlier = {info.parent for info in newest if is_next_turn(info.run_id, info.parent)}
                found = [info for info in newest if info.run_id not in earlier and not info.outer][:limit]
                if len(newest) < looked_at:
                    break
                looked_at *= 4
        return [(info, await _status(store, info)) for info in found]

    found = with_journal(journal, list_rows, read_only=True)
    if as_json:
        for info, status in found:
            print(json_line({"run": info, "status": status}, info.run_id))
        return
    rows: list[list[str]] = []
    for info, status in found:
        when, model = _time(info.started_at)[: -len(":00")], without_password(info.model)
        row = (info.run_id, status, when, str(info.events), dollars(info.usage), model, redacted(info.task))
        rows.append([one_line(cell) for cell in row])
    place = journal_path(journal)
    none = Line(f"no runs yet in {without_password(place)}{or_beside(place)}")
    put(stdout(), listing(rows, stdout().width) if rows else [none])


async def _status(store: JournalStore, info: RunSummary) -> str:
    """As the list has it. A run whose process died without a word is looked at: it may be in doubt."""
    if info.status == "paused":
        return f"paused ({info.standing.replace('_', ' ')})"
    if info.status != "interrupted":
        return READY if info.status == "ready" else info.status.replace("_", " ")
    run = (await find(store, info.run_id)).run
    return f"{run.status} ({run.reason.replace('_', ' ')})" if run.reason else run.status


def show(
    *,
    run_id: RunArgument,
    events: Annotated[bool, typer.Option("--events", help="The raw records, one JSON object per line.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the run until it ends.")] = False,
    why: Annotated[str, typer.Option(metavar="CALL", help="Only this call: what each policy said, each value.")] = "",
    verbose: VerboseOption = False,
    plan: Annotated[
        str, typer.Option(metavar="vN|latest", help="Only the plan, as it was in that version.", rich_help_panel=_PLAN)
    ] = "",
    history: Annotated[
        bool, typer.Option("--history", help="Only the document that reflections read.", rich_help_panel=_PLAN)
    ] = False,
    svg: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the plan and write it to this file.", rich_help_panel=_PLAN),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Only the plan and its results, as JSON.", rich_help_panel=_PLAN)
    ] = False,
    journal: JournalOption = None,
) -> None:
    """Show a run step by step; if it has a plan, the plan and its progress, and with -v everything.

    If the journal is damaged, it shows what can be read, then names the bad record.
    """
    is_told, console = events or follow or verbose, stdout()
    if sum(map(bool, (why, is_told, history, svg, as_json))) > 1 or (plan and (why or is_told)):
        raise UsageError("these options of show cannot be combined; choose one of them")

    def show_plan(found: Found) -> None:
        taken = as_of([record.event for record in found.records], plan or LATEST)
        state = fold(taken)
        if history:
            print(visible(history_of(state, planning_of(state, "--history"))))
        elif svg is not None:
            write_picture(state, svg)
            put(console, [Line(f"drawn to {visible(str(svg))}")])
        elif as_json:
            print(json_line(as_fold(state, taken), state.run_id))
        elif plan:
            at = "" if len(taken) == len(found.records) else f"as of record {len(taken) - 1}"
            put(console, plan_shown(state, taken, console.width, at))
        else:
            head = header(state, found.run, _time(found.records[0].at), len(taken))
            told = plan_shown(state, taken, console.width, "running" * found.is_driven)
            put(console, [*head, Line(""), *told, *ending_lines(state), Line(""), *_closing(found.run, journal)])
        found.whole()

    async def show_run(store: JournalStore) -> None:
        found = await find(store, run_id, journal)
        has_plan = bool(found.records) and found.state.planning is not None
        if why:
            put(console, reasons(*await within(store, found, why)).lines)
        elif plan or history or svg or as_json or (has_plan and not is_told):
            show_plan(found)
        else:
            await _tell(store, found, journal, as_events=events, follow=follow)

    with_journal(journal, show_run, read_only=not follow)


async def _tell(store: JournalStore, found: Found, journal: str | None, *, as_events: bool, follow: bool) -> None:
    """A run record by record: as JSON, or as lines with a header before and the ending after."""
    console = stdout()
    teller = Teller(EMPTY, width=console.width, detail=True)

    def tell(record: Recorded) -> Event:
        if as_events:
            print(json_line(record, found.run_id), flush=True)
        else:
            put(console, teller.tell(record.event, record.at))
        return record.event

    last: Event | None = None
    if not as_events and found.records:
        put(console, header(found.state, found.run, _time(found.records[0].at), len(found.records)))
        if found.wrong:
            put(console, [Line("the journal of this run is damaged; this is what can be read", "bad")])
        put(console, [Line("")])
    for record in found.records:
        last = tell(record)
        if not as_events and isinstance(begun := inner_event(record), CallStarted) and begun.attempt == 1:
            put(console, await _told_inside(store, teller, begun.call_id, console.width))
    found.whole()
    if follow and not isinstance(last, RunEnded):
        async for record in store.subscribe(found.run_id, len(found.records)):
            last = tell(record)
    if not as_events:
        run = Run.of(teller.state, last) if follow else found.run
        put(console, [*ending_lines(teller.state), Line(""), *_closing(run, journal)])


def _closing(run: Run, journal: str | None) -> list[Line]:
    return closing(run, journal_hint(journal), is_kept=recipe_path(journal_path(journal), run.id).exists())


async def _told_inside(store: JournalStore, teller: Teller, call_id: str, width: int) -> list[Line]:
    """The run of an agent that a call has asked, as lines; none for any other call."""
    state = owner_of(teller.state, call_id).state
    call = state.call(call_id)
    if call is None or call.spec is None or not call.spec.delegates:
        return []
    inner, lines = Teller(EMPTY, width=width - 4, detail=True), list[Line]()
    with suppress(UsageError):  # it died before it began
        for record in (await store.read_recorded(inner_run_id(state, call)))[0]:
            lines += [Line(f"run {record.event.run_id}", "head")] if isinstance(record.event, RunStarted) else []
            lines += inner.tell(record.event, record.at)
            if isinstance(begun := inner_event(record), CallStarted) and begun.attempt == 1:
                lines += await _told_inside(store, inner, begun.call_id, width - 4)
    return [replace(line, indent=line.indent + 4) for line in lines]


def replay(run_id: RunArgument, journal: JournalOption = None) -> None:
    """Replay the records without model or tools, and say whether they come out the same."""

    async def again(store: JournalStore) -> int:
        found = await find(store, run_id, journal)
        outcome = replayed([record.event for record in found.records])
        if outcome.differs_at is not None:
            print(f"{outcome.differs_at} records alike; record {outcome.differs_at} comes out differently")
            print(f"  recorded: {json_line(outcome.expected)}")
            print(f"  replayed: {json_line(outcome.got) if outcome.got else 'nothing: no move asks for it here'}")
            return JOURNAL_TROUBLE
        print(f"{len(found.records)} records, all alike")
        found.whole()
        return DONE

    raise typer.Exit(with_journal(journal, again, read_only=True))


def approve(
    *,
    run_id: RunArgument,
    call: CallArgument,
    by: ByOption,
    refuse: Annotated[bool, typer.Option("--refuse", "--deny", help="Say no.")] = False,
    reason: Annotated[
        str, typer.Option("--reason", "--note", help="Why not; the model reads it. For a plan: asks for another.")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Answer yes without being asked, for scripts.")] = False,
    outcome: Annotated[
        Settled | None, typer.Option(help="For a call in doubt: whether it took effect, or is given up.")
    ] = None,
    result: Annotated[str, typer.Option(help="With --outcome done: what the call returned, such as JSON.")] = "",
    journal: JournalOption = None,
) -> None:
    """Show the question about a call that waits for approval, and take your answer. Then `resume` the run.

    Only a typed yes, or --yes, allows the call. A "no" is recorded; on any other answer, or without a terminal,
    the question stays open (exit code 6). CALL may be "plan", which signs the plan of a run but allows none of its
    calls. Calls that wait for the same reason are one question, answered row by row; 2.0,2.1 names some of them.
    """
    for is_wrong, why in (
        (refuse and yes, "--refuse and --yes contradict each other; leave one of them out"),
        (reason and not refuse, "--reason goes with --refuse"),
        (outcome and (refuse or yes), "--outcome settles a call in doubt: leave --refuse and --yes out"),
        (result and outcome != "done", "--result goes with --outcome done"),
    ):
        if is_wrong:
            raise UsageError(why)
    named = [one for one in call.split(",") if one]

    async def send_word(store: JournalStore, found: Found) -> Run:
        if outcome is not None:
            return await Voice(store).settle(found.run_id, call, _SETTLED[outcome], by=by, result=result)
        group = next((one for one in Run.of(found.state).questions if any(call.id in named for call in one)), ())
        is_asked = not (refuse or yes or call == PLAN)
        rows = [one for one in group if one.id in named or (is_asked and len(named) == 1)]
        for number, one in enumerate(rows, 1):  # of what does not wait, the agent says what is wrong
            place = [Line(f"row {number} of {len(rows)}", "dim")] if len(rows) > 1 else []
            put(stdout(), place + await question_within(store, found, one))
        allowed, refused = ([], named) if refuse else (named, [])
        if rows and is_asked:
            ids, picked = [one.id for one in rows], answer_on(sys.stdin, len(rows))
            allowed, refused = [ids[at - 1] for at in picked or ()], ids if picked == [] else []
        what = [{row.id: row for row in rows}.get(one, one) for one in allowed or refused]  # as it was shown
        if allowed:
            run, said = await Voice(store).approve(found.run_id, what, by=by), "allowed"
        elif refused:
            run, said = await Voice(store).refuse(found.run_id, what, by=by, reason=reason), "refused"
        else:
            put(stdout(), [Line(_NO_ANSWER[sys.stdin.isatty()], "warn")])
            return Run.of(found.state)
        told = ["the plan" if one.id == PLAN else program_text(one) for one in group if one.id in (allowed or refused)]
        put(stdout(), [Line(f"{said} by {visible(by)}: {visible(text)}") for text in told])
        return run

    run = _speak(run_id, journal, send_word)
    if any(one.id in named for one in run.waiting):  # others may wait still; these have their answer, or have not
        raise typer.Exit(CODES["paused"])


_SETTLED: Mapping[str, Outcome] = {"done": "done", "not-done": "not_done", "abandon": "abandoned"}
_NO_ANSWER = (
    "not allowed: answers are not read from a pipe, so use a terminal or --yes; the question stays open",
    "not allowed: that is not an answer; the question stays open",
)


def answer_on(stream: TextIO, rows: int = 1) -> list[int] | None:
    """The rows of a question that a person allows on a terminal, none of them for a no; None for no answer.

    Anything but "yes", "no" and numbers of rows is not an answer, and neither is a closed or missing terminal.
    """
    if not stream.isatty():
        return None
    which = "exactly this? Type yes or no" if rows == 1 else f"these? Type yes for all {rows}, no, or rows such as 1,2"
    print(f"Allow {which}: ", end="", flush=True)
    said = stream.readline().strip().casefold()
    if said in ("yes", "no", "n"):
        return list(range(1, rows + 1)) if said == "yes" else []
    parts = said.replace(",", " ").split() if rows > 1 else []
    picked = [int(one) for one in parts if one.isdecimal() and 1 <= int(one) <= rows]
    return picked if picked and len(picked) == len(parts) else None


def settle(
    *,
    run_id: RunArgument,
    call: CallArgument,
    by: ByOption,
    done: Annotated[bool | None, typer.Option("--done/--not-done", help="Whether the call took effect.")] = None,
    result: Annotated[str, typer.Option(help="With --done: what the call returned, for the model to read.")] = "",
    journal: JournalOption = None,
) -> None:
    """Say whether an interrupted call took effect. If it did not, `resume` runs it again."""
    if done is None:
        raise UsageError("say --done (it took effect) or --not-done (it did not, and runs again)")
    if result and not done:
        raise UsageError("--result goes with --done")

    async def send_word(store: JournalStore, found: Found) -> Run:
        return await Voice(store).settle(found.run_id, call, "done" if done else "not_done", by=by, result=result)

    _speak(run_id, journal, send_word)


def cancel(run_id: RunArgument, by: ByOption, journal: JournalOption = None) -> None:
    """End a run, whichever process drives it. A call in progress is interrupted, but may have taken effect."""

    async def send_word(store: JournalStore, found: Found) -> Run:
        return await Voice(store).cancel(found.run_id, by=by)

    _speak(run_id, journal, send_word)


def _speak(
    given: str, journal: str | None, word: Callable[[JournalStore, Found], Coroutine[object, object, Run]]
) -> Run:
    """Put a person's word on record, and tell how the run stands now."""

    async def send_word(store: JournalStore) -> Run:
        found = (await find(store, given, journal)).whole()
        try:
            return await word(store, found)
        except AnswerLate as late:
            raise UsageError(f"{late}: surefoot resume {found.run_id}{journal_hint(journal)}") from late

    run = with_journal(journal, send_word)
    put(stdout(), _closing(run, journal))
    return run


def _time(at: float) -> str:
    return moment(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
