"""`surefoot journal`: copy a journal while it is in use, prove it, and decide about records that are lost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli.exits import DONE, JOURNAL_TROUBLE
from surefoot.cli.lines import Line, count, visible
from surefoot.cli.live import put, stdout
from surefoot.cli.options import ByOption, JournalOption
from surefoot.cli.setup import journal_hint, journal_path, opened
from surefoot.journal.heads import heads_of
from surefoot.journal.upkeep import RunFault
from surefoot.journal.upkeep import accept as accepted
from surefoot.journal.upkeep import backup as backed_up
from surefoot.journal.upkeep import verify as verified
from surefoot.types.errors import JournalError, UsageError

app = typer.Typer(help="Keep a journal safe: copy it, prove it, decide about lost records.", no_args_is_help=True)


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file; `FILE.heads` is made beside it.")],
    journal: JournalOption = None,
) -> None:
    """Copy the journal to FILE, also while runs are driven, and prove the copy."""
    faults = backed_up(_there(journal), file.absolute())
    heads = heads_of(file)
    both = f" and {visible(heads.name)}; keep both" if heads.exists() else ""
    put(stdout(), [Line(f"copied to {visible(str(file))}{both}")])
    _tell(faults)


@app.command()
def verify(journal: JournalOption = None) -> None:
    """Prove the journal: its pages, each run's chain and length, and that it can be folded. One line a faulty run."""
    _tell(verified(_there(journal)))


@app.command()
def accept(
    *,
    by: ByOption,
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN...", help="Ids of runs, whole.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All runs of which `verify` says so.")] = False,
    journal: JournalOption = None,
) -> None:
    """Let runs go on without records that are lost. A call that only they told of may be made again: look first."""
    if bool(runs) == everything:
        raise UsageError("name the runs to accept, or --all")
    path = _there(journal)
    failed = False
    for run_id in runs or [fault.run_id for fault in verified(path) if fault.is_lost]:
        try:
            left = asyncio.run(accepted(path, run_id, by))
        except (JournalError, UsageError) as error:
            if not everything:
                raise
            failed = True
            put(stdout(), [Line(visible(" ".join(str(error).split())), "bad")])
            continue
        told = "is gone; its id is free"
        if left.has_ended:
            told = f"stays as it ended, with {count(left.records, 'record')}"
        elif left.records:
            told = f"goes on after {count(left.records, 'record')}: surefoot resume {run_id}{journal_hint(journal)}"
        put(stdout(), [Line(f"run {visible(run_id)} {visible(told)}")])
    raise typer.Exit(JOURNAL_TROUBLE if failed else DONE)


def _there(journal: Path | None) -> Path:
    return opened(journal_path(journal)).path


def _tell(faults: list[RunFault]) -> None:
    put(stdout(), [Line(visible(" ".join(fault.message.split())), "bad") for fault in faults] or [Line("all is well")])
    raise typer.Exit(JOURNAL_TROUBLE if faults else DONE)
