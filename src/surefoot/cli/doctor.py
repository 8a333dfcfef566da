"""The command `doctor`: what is configured, what is missing, and how to mend it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from surefoot.cli.casting import chosen_model
from surefoot.cli.checks import Check, all_checks
from surefoot.cli.live import stdout
from surefoot.cli.options import JournalOption
from surefoot.cli.setup import journal_path

_MARKS = {"good": ("✓", "green"), "note": ("·", "dim"), "bad": ("✗", "red")}
_UNUSABLE = 1


def doctor(
    model: Annotated[str | None, typer.Option(help="The model to look at. Default: as `run` chooses it.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Base URL of an OpenAI-compatible server.")] = None,
    journal: JournalOption = None,
) -> None:
    """Say what is configured, what is missing and how to mend it.

    Exit code 0: `surefoot run` can work. 1: it cannot, because a check failed.
    """
    found = all_checks(chosen_model(model), base_url, journal_path(journal), Path.cwd())
    console = stdout()
    for check in found:
        _put(check)
    broken = sum(check.mark == "bad" for check in found)
    told = f"{broken} of {len(found)} checks failed" if broken else "ready: surefoot run can work"
    console.print(Text(told, "red" if broken else "green"))
    raise typer.Exit(_UNUSABLE if broken else 0)


def _put(check: Check) -> None:
    console = stdout()
    mark, style = _MARKS[check.mark]
    soft = not console.is_terminal
    console.print(Text.assemble((mark, style), f" {check.name}: {check.text}"), soft_wrap=soft)
    if check.remedy:
        console.print(Text(f"    → {check.remedy}"), soft_wrap=soft)
