"""The commands that look after journals: `journal backup`, `verify`, `accept`, `copy`, `prune`; `import`; and `db`."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import aclosing, suppress
from glob import escape
from os.path import realpath
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Annotated, get_args

import typer

from surefoot.cli.exits import DONE, JOURNAL_TROUBLE, code_of
from surefoot.cli.live import put, stdout
from surefoot.cli.options import ByOption, JournalOption
from surefoot.cli.setup import closed_after, journal_hint, journal_path, open_journal, user_name, with_journal
from surefoot.journal.memory import DATABASES
from surefoot.journal.prune import PRUNED, Wanted, due, prune
from surefoot.journal.sqlite import SqliteJournal
from surefoot.journal.transfer import MOST, copy, pieces_in, take_in
from surefoot.journal.upkeep import RunFault, faults_of
from surefoot.journal.upkeep import accept as accepted
from surefoot.journal.upkeep import backup as backed_up
from surefoot.journal.upkeep import verify as verified
from surefoot.runtime.pins import PINS
from surefoot.runtime.trajectories import PATHS
from surefoot.telling.text import Line, count, one_line, visible, without_password
from surefoot.types.errors import JournalError, UsageError
from surefoot.types.outcomes import Status
from surefoot.types.ports import JournalStore

if TYPE_CHECKING:
    from surefoot.journal.postgres_server import Tables

_EVERY_S = 2.0
_BESIDE = re.compile(rf"\.({PINS}|{PATHS}|{PRUNED}-\d+)\.json")  # and nothing of a copy, such as JOURNAL.day1.pins.json

app = typer.Typer(
    help="Maintain a journal: back it up, verify it, copy it, remove old runs, decide about lost records.",
    no_args_is_help=True,
)

tables = typer.Typer(help="The tables of a journal in PostgreSQL.", no_args_is_help=True)


@app.command()
def backup(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A new file; others that begin with its name are made beside it.")
    ],
    journal: JournalOption = None,
) -> None:
    """Copy the journal to FILE, even while runs are being driven, and verify the copy."""
    path = _there(journal)
    if stale := next(iter(_beside(file).values()), None):
        raise UsageError(f"{stale} is there already; name another file")
    faults = backed_up(path, file.absolute())
    for end, beside in _beside(path).items():
        with suppress(FileNotFoundError):  # it was there a moment ago
            shutil.copy(beside, file.with_name(file.name + end))
    put(stdout(), [Line(f"copied to {visible(str(file))}; keep it with all files that begin with its name")])
    _report(faults)


def _beside(path: Path) -> dict[str, Path]:
    """The files beside a journal that its heads are not, by what follows its name."""
    ends = {one.name.removeprefix(path.name): one for one in path.parent.glob(f"{escape(path.name)}.*.json")}
    return {end: one for end, one in ends.items() if _BESIDE.fullmatch(end)}


@app.command(name="verify")
def prove(
    *,
    sample: Annotated[int, typer.Option(metavar="N", min=0, help="Also replay this many runs, picked at random.")] = 0,
    journal: JournalOption = None,
) -> None:
    """Verify the journal: its pages, and each run's chain, length and state. One line for each faulty run."""

    async def proved(store: JournalStore) -> list[RunFault]:
        ids = await store.beginning("", MOST)
        faults = list[RunFault]()
        if isinstance(store, SqliteJournal):
            faults += verified(store.path)
        else:
            faults += await _proven(store, ids, "checked", replays=False)
        whole = sorted(set(ids) - {fault.run_id for fault in faults})
        picked = random.sample(whole, min(sample, len(whole)))
        return faults + await _proven(store, picked, "replayed", replays=True)

    _report(with_journal(journal, proved, read_only=True))


async def _proven(store: JournalStore, ids: Sequence[str], done: str, *, replays: bool) -> list[RunFault]:
    progress, faults = Progress(done), list[RunFault]()
    for number, run_id in enumerate(ids, 1):
        faults += await faults_of(store, run_id, replays=replays)
        progress.tell(number, len(ids))
    return faults


@app.command(name="copy")
def copied(
    *,
    source: Annotated[str, typer.Argument(metavar="FROM", help="A journal: its file, or the address of a database.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The target journal; a file is created if missing.")],
    since: Annotated[
        str, typer.Option(metavar="AGE", help="Only runs that have changed in that time, such as 12h or 7d.")
    ] = "",
) -> None:
    """Copy all runs to another journal, unchanged. Run it again to finish a copy or to add what is new.

    An unfinished copied run stays still until you continue it with `surefoot resume`.
    """
    if realpath(source) == realpath(target):  # of a URL it changes nothing that counts
        raise UsageError(f"{visible(without_password(target))} is the journal itself; name another to copy it to")

    async def all_copied() -> tuple[int, list[str]]:
        progress, faults, number = Progress("copied"), list[str](), 0
        async with (
            aclosing(open_journal(source, read_only=True)) as here,
            aclosing(open_journal(target, make=True)) as there,
        ):
            async for moved in copy(here, there, time.time() - seconds_in(since, "--since") if since else None):
                number += 1
                progress.tell(number, moved.runs)
                faults += [f"run {moved.run_id} was not copied: {moved.fault}"] if moved.fault else []
            for name in (PINS, PATHS):
                if data := await here.side.get(name):
                    await there.side.put(name, data, b"")  # where there are some, those count
        return number - len(faults), faults

    number, faults = asyncio.run(all_copied())
    put(stdout(), [Line(f"copied {count(number, 'run')} to {visible(without_password(target))}")])
    put(stdout(), [Line(one_line(fault), "bad") for fault in faults])
    raise typer.Exit(JOURNAL_TROUBLE if faults else DONE)


@app.command(name="prune")
def pruned(
    *,
    older: Annotated[str, typer.Option(metavar="AGE", help="Runs that ended longer ago than this, such as 90d.")],
    status: Annotated[
        list[str] | None, typer.Option(help="Only runs with this status, such as completed. Repeatable.")
    ] = None,
    keep_label: Annotated[
        list[str] | None, typer.Option(metavar="LABEL", help="Keep runs with this label: NAME or NAME=VALUE.")
    ] = None,
    by: Annotated[str, typer.Option(help="Who removes them, for the record.", show_default="your user name")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many runs would be removed.")] = False,
    journal: JournalOption = None,
) -> None:
    """Delete old runs for good, except those whose records a run that stays shares.

    A line for each stays beside the journal: its id, the hash of its last record, who removed it and when.
    """
    if unknown := next((one for one in status or () if one not in get_args(Status)), None):
        raise UsageError(f"--status {unknown}: choose from {', '.join(get_args(Status))}")
    wanted = Wanted(time.time() - seconds_in(older, "--older"), status or (), keep_label or ())

    async def remove(store: JournalStore) -> int:
        runs, number, progress = await due(store, wanted), 0, Progress("removed")
        if dry_run:
            return len(runs)
        async for number in prune(store, runs, by or user_name()):
            progress.tell(number, len(runs))
        return number

    number = with_journal(journal, remove)
    put(stdout(), [Line(f"{count(number, 'run')} would be removed" if dry_run else f"removed {count(number, 'run')}")])


def import_(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Runs of `surefoot export RUN... --form journal`; - is stdin.")
    ] = Path("-"),
    journal: JournalOption = None,
) -> None:
    """Import runs that were exported from another journal, unchanged. All of FILE is checked first."""

    async def import_runs(store: JournalStore, lines: IO[str]) -> int:
        number, progress = 0, Progress("imported")
        lines.seek(0)
        async for _ in take_in(store, lines):
            number += 1
            progress.tell(number, 0)
        return number

    with TemporaryFile("w+", encoding="utf-8") if str(file) == "-" else file.open(encoding="utf-8") as lines:
        if str(file) == "-":
            shutil.copyfileobj(sys.stdin, lines)
            lines.seek(0)
        for _ in pieces_in(lines):
            pass
        number = with_journal(journal, lambda store: import_runs(store, lines), make=True)
    put(stdout(), [Line(f"imported {count(number, 'run')}")])


class Progress:
    """Says on standard error, every few seconds, how far long work is."""

    def __init__(self, done: str) -> None:
        self._done = done
        self._next = time.monotonic() + _EVERY_S

    def tell(self, number: int, of: int) -> None:
        """So many of so many are done; 0 where nobody knows how many there are."""
        if time.monotonic() > self._next:
            self._next = time.monotonic() + _EVERY_S
            print(f"{self._done} {number:,}{f' of {of:,}' if of else ''} runs", file=sys.stderr, flush=True)


def seconds_in(age: str, option: str) -> float:
    """An age such as 90d, 12h or 30m, in seconds. Raises `UsageError`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([dhm])", age.strip())
    if found is None:
        raise UsageError(f"{option} {age}: give days, hours or minutes, such as 90d, 12h or 30m")
    return float(found[1]) * {"d": 86_400, "h": 3_600, "m": 60}[found[2]]


@app.command()
def accept(
    *,
    by: ByOption,
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN...", help="Whole ids of runs.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All runs with lost records, as `verify` lists them.")
    ] = False,
    journal: JournalOption = None,
) -> None:
    """Let runs continue without their lost records. A call that only those mention may be repeated: check first."""
    if bool(runs) == everything:
        raise UsageError("name the runs to accept, or --all")
    path = _there(journal)
    code = DONE
    for run_id in runs or [fault.run_id for fault in verified(path) if fault.is_lost]:
        try:
            left = asyncio.run(accepted(path, run_id, by))
        except (JournalError, UsageError) as error:  # the others are looked at all the same
            code = max(code, code_of(error))
            print(f"surefoot: {one_line(str(error))}", file=sys.stderr)
            continue
        told = "is gone; its id is free"
        if left.has_ended:
            told = f"stays as it ended, with {count(left.records, 'record')}"
        elif left.records:
            told = f"goes on after {count(left.records, 'record')}: surefoot resume {run_id}{journal_hint(journal)}"
        put(stdout(), [Line(f"run {visible(run_id)} {visible(told)}")])
    raise typer.Exit(code)


def _there(journal: str | None) -> Path:
    place = journal_path(journal)
    if isinstance(open_journal(place), SqliteJournal):
        return Path(place)
    told = "this command is for a journal in a file; back up a database with its own tools (docs/postgres.md)"
    raise UsageError(told)


def _report(faults: Sequence[RunFault]) -> None:
    put(stdout(), [Line(one_line(fault.message), "bad") for fault in faults] or [Line("all is well")])
    raise typer.Exit(JOURNAL_TROUBLE if faults else DONE)


UrlOption = Annotated[
    str | None,
    typer.Option(
        "--journal",
        metavar="URL",
        help="As postgresql://USER@HOST/DATABASE. Default: $SUREFOOT_JOURNAL.",
        show_default=False,
    ),
]
_FORMS = "SELECT form, made_by, to_char(at, 'YYYY-MM-DD HH24:MI') FROM surefoot.meta ORDER BY form"


@tables.command(name="init")
def init_tables(journal: UrlOption = None) -> None:
    """Create the tables if they do not exist. `surefoot run` does this too, if its user may."""
    _tell(journal, "make")


@tables.command(name="upgrade")
def upgrade_tables(journal: UrlOption = None) -> None:
    """Upgrade the tables to the format of this surefoot. This cannot be undone: make a backup first."""
    _tell(journal, "upgrade")


@tables.command(name="check")
def check_tables(journal: UrlOption = None) -> None:
    """Say whether the database is reachable, and which format its tables have. Changes nothing."""
    _tell(journal, "look")


def _tell(journal: str | None, do: Tables) -> None:
    place = journal_path(journal)
    if not place.startswith(DATABASES):
        raise UsageError("name a database: --journal postgresql://USER@HOST/DATABASE")
    from surefoot.journal.postgres_server import Database  # noqa: PLC0415  # it needs an extra

    database = Database(place, tables=do)
    rows = asyncio.run(closed_after(database, lambda one: one.ask(_FORMS)))
    put(stdout(), [Line(visible(f"{database.name}: form {form}, made by {by} on {at}")) for form, by, at in rows])
