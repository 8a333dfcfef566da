"""All commands under one roof."""

from __future__ import annotations

from typing import Annotated

import typer

from surefoot.cli import check, doctor, journal, knowledge, mcp_servers, model, run, runs
from surefoot.cli.doctor import installed
from surefoot.cli.exits import HELP

app = typer.Typer(
    name="surefoot",
    help="Run tool-using LLM agents that test a foothold before they put weight on it.",
    epilog=HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"surefoot {installed('surefoot') or '(from its sources)'}")
        raise typer.Exit


@app.callback()
def everywhere(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Run tool-using LLM agents that test a foothold before they put weight on it."""


for command in (
    run.run,
    runs.runs,
    runs.show,
    run.resume,
    run.fork,
    check.check,
    runs.replay,
    runs.approve,
    runs.settle,
    runs.cancel,
    doctor.doctor,
):
    app.command(epilog=HELP if command in (run.run, run.resume, run.fork) else None)(command)
app.add_typer(journal.app, name="journal")
app.add_typer(knowledge.app, name="knowledge")
app.add_typer(mcp_servers.app, name="mcp")
app.add_typer(model.app, name="model")
