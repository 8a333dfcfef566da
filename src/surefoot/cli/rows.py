"""`surefoot batch`: the same task for each row of a file. What has its answer is not run again."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from hashlib import sha256
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from surefoot.agent import Agent
from surefoot.batch import number_of
from surefoot.cli.conduct import agent_with, terminable
from surefoot.cli.exits import DONE, INTERRUPTED, TERMINATED
from surefoot.cli.live import put, stderr, write_whole
from surefoot.cli.options import JournalOption, Options, SettingsOption, takes_options
from surefoot.cli.recipes import keep_recipe
from surefoot.cli.setup import journal_path
from surefoot.run import Run
from surefoot.telling.text import Line, count, visible
from surefoot.types.attachments import Attachment
from surefoot.types.errors import UsageError
from surefoot.types.task import Task

Row = Mapping[str, object]
_PLACE = re.compile(r"\{([^{}]+)\}")
_GIVEN = ("run", "status", "answer")
"""The columns that a row is given."""


@takes_options
def batch(
    *,
    options: Options,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Rows: .csv with a header, or .jsonl of objects.")],
    task: Annotated[str, typer.Option("--task", help="The task of each row; {COLUMN} is replaced by its value.")],
    out: Annotated[Path, typer.Option("--out", help="Output file, the rows with their answers: .csv or .jsonl.")],
    attach: Annotated[
        list[str] | None,
        typer.Option("--attach", metavar="COLUMN", help="Attach this value as material, not instructions; repeatable."),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Runs at a time.")] = 4,
    name: Annotated[str, typer.Option("--id", help="The batch's id. Default: from the rows and the task.")] = "",
    instructions: Annotated[str, typer.Option(help="Standing instructions for the model.")] = "",
    config: SettingsOption = None,
    journal: JournalOption = None,
) -> None:
    """Run a task for each row of a file. Run it again to do the rows that have no answer yet.

    The value of a {COLUMN} counts as your own words; pass other people's texts with --attach.
    """
    rows = rows_of(file)
    taken = [name for name in _GIVEN if any(name in row for row in rows)]
    if taken and len(taken) < len(_GIVEN):  # with all three it is what an earlier batch wrote
        raise UsageError(f"{file}: the output gets a column {taken[0]!r} of its own; rename that of the rows")
    tasks = [task_of(task, attach or (), row, number) for number, row in enumerate(rows, 1)]
    if out.suffix not in (".csv", ".jsonl"):
        raise UsageError(f"--out {out}: the file must end in .csv or .jsonl")
    if out.exists() and file.exists() and out.samefile(file):
        raise UsageError(f"--out {out}: these are the rows themselves; name another file")
    if not out.parent.is_dir():
        raise UsageError(f"--out {out}: no such folder")
    if out.exists() and not _is_ours(out):
        raise UsageError(f"--out {out}: this file was not written by `surefoot batch`, so it stays; name another")
    agent, recipe = agent_with(options, config, journal, instructions)
    made_of = json.dumps([one.text for one in tasks] + [one.text for row in tasks for one in row.attachments])
    name = name or f"{re.sub(r'[^A-Za-z0-9_-]', '-', file.stem)[:24]}-{sha256(made_of.encode()).hexdigest()[:8]}"
    for number in range(1, len(tasks) + 1):
        keep_recipe(journal_path(journal), f"{name}-{number:06}", recipe)
    ended: dict[int, Run] = {}
    try:
        asyncio.run(terminable(_run_all(agent, tasks, name, concurrency, ended)))
    except (KeyboardInterrupt, asyncio.CancelledError) as stopped:
        _write(out, rows, ended)
        told = f"interrupted after {count(len(ended), 'row')} of {len(rows)}; the same command does the rest"
        put(stderr(), [Line(told, "warn")])
        raise typer.Exit(INTERRUPTED if isinstance(stopped, KeyboardInterrupt) else TERMINATED) from None
    _write(out, rows, ended)
    left = [run for run in ended.values() if run.status != "completed"]
    lines = [
        Line(f"{run.id}: {run.status.replace('_', ' ')}{f' ({run.reason})' if run.reason else ''}", "warn")
        for run in left
    ]
    done = f"{count(len(rows) - len(left), 'row')} of {len(rows)} completed{_cost(ended)}"
    told = f"{done}; written to {visible(str(out))}"
    hint = "`surefoot show RUN` says what each of the others needs; then the same command does the rest"
    put(stderr(), [*lines, Line(told, "head"), *([Line(hint)] if left else [])])
    raise typer.Exit(3 if left else DONE)


async def _run_all(agent: Agent, tasks: Sequence[Task], name: str, concurrency: int, ended: dict[int, Run]) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    async with AsyncExitStack() as after:
        after.push_async_callback(agent.aclose)
        progress = after.enter_context(Progress(*columns, TextColumn("{task.fields[cost]}"), console=stderr()))
        bar = progress.add_task(visible(name), total=len(tasks), cost="")
        runs = agent.map(tasks, id=name, concurrency=concurrency)
        after.push_async_callback(runs.aclose)
        async for run in runs:
            ended[number_of(run)] = run
            progress.update(bar, advance=1, cost=_cost(ended).removeprefix(", "))


def _cost(ended: Mapping[int, Run]) -> str:
    known = [run.usage.cost_usd for run in ended.values() if run.usage.cost_usd is not None]
    return f", ${sum(known):.4f}" if known else ""


def rows_of(path: Path) -> Sequence[Row]:
    """The rows of a file. Raises `UsageError` for one that cannot be read as rows."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from error
    if path.suffix == ".jsonl":
        rows = [_row(path, number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    elif path.suffix == ".csv":
        csv.field_size_limit(2**31 - 1)  # an answer may be long
        reader, rows = csv.reader(io.StringIO(text, newline="")), list[Row]()
        head = next(reader, list[str]())
        if twice := next((name for name in head if head.count(name) > 1), None):
            raise UsageError(f"{path}: two columns are called {twice!r}; rename one of them")
        for row in filter(None, reader):  # an empty line is none
            if len(row) != len(head):
                told = f"{count(len(row), 'value')} for {count(len(head), 'column')}"
                remedy = "put quotes around a value that holds a comma" if len(row) > len(head) else "leave none out"
                raise UsageError(f"{path}, line {reader.line_num}: {told}; {remedy}")
            rows.append(dict(zip(head, row, strict=True)))
    else:
        raise UsageError(f"{path}: the file must end in .csv or .jsonl")
    if not rows:
        raise UsageError(f"{path}: it has no rows")
    return rows


def _is_ours(path: Path) -> bool:
    """Whether a file is empty, or begins as those of `batch` do."""
    with suppress(OSError, UnicodeError, UsageError, csv.Error):
        text = path.read_text(encoding="utf-8-sig").strip()
        if path.suffix == ".jsonl":
            return not text or _row(path, 1, text.partition("\n")[0]).keys() >= set(_GIVEN)
        return not text or set(_GIVEN).issubset(next(csv.reader(io.StringIO(text, newline=""))))
    return False


def _row(path: Path, number: int, line: str) -> Row:
    try:
        row: object = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise UsageError(f"{path}, line {number}: not a JSON object")
    return cast("Row", row)  # the keys of JSON are text


def _text(value: object) -> str:
    """A value of a row, as a task or a CSV file has it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def task_of(template: str, attach: Sequence[str], row: Row, number: int) -> Task:
    """The task of a row. Raises `UsageError` for a column that it does not have, or an empty task."""
    for name in (*_PLACE.findall(template), *attach):
        if name not in row:
            raise UsageError(f"row {number} has no column {name!r}; it has {', '.join(row)}")
    text = _PLACE.sub(lambda place: _text(row[place[1]]), template)
    if not text.strip():
        raise UsageError(f"row {number} gives an empty task")
    return Task(text, tuple(Attachment(name, _text(row[name])) for name in attach))


def _write(out: Path, rows: Sequence[Row], ended: Mapping[int, Run]) -> None:
    """The rows with what came of each, in their order; whole or not at all."""
    found = [
        {**row, **dict(zip(_GIVEN, (run.id, run.status, run.answer) if run else ("", "", ""), strict=True))}
        for number, row in enumerate(rows, 1)
        for run in (ended.get(number),)
    ]
    text = io.StringIO(newline="")
    if out.suffix == ".jsonl":
        text.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in found)
    else:
        writer = csv.DictWriter(text, list(dict.fromkeys(key for one in found for key in one)), restval="")
        writer.writeheader()
        writer.writerows({key: _text(value) for key, value in one.items()} for one in found)
    write_whole("--out", out, text.getvalue(), "the rows are", newline="")
