"""`surefoot export`: a run as a text to keep."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli.options import JournalOption, RunArgument
from surefoot.cli.setup import find, journal_hint, with_journal
from surefoot.journal.sqlite import SqliteJournal
from surefoot.telling.export import Form
from surefoot.telling.export import export as text_of


def export(
    *,
    run_id: RunArgument,
    form: Annotated[Form, typer.Option(help="Markdown, one page of HTML, or the records as JSON lines.")] = "md",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it to this file, not to stdout.")
    ] = None,
    journal: JournalOption = None,
) -> None:
    """Write a run as a text to keep: all that happened, for people or for machines."""

    async def exported(store: SqliteJournal) -> None:
        found = await find(store, run_id, journal_hint(journal))
        pieces = text_of(found.records, form, found.run_id)
        if output is None:
            sys.stdout.writelines(pieces)
        else:
            with output.open("w", encoding="utf-8") as file:
                file.writelines(pieces)
        found.whole()

    with_journal(journal, exported, read_only=True)
