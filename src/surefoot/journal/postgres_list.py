"""The list of a database's runs, by what is wanted of them; and what has changed in it. No record is read for it.

Source: spec/serving.md, section 4; spec/scale.md, section 3.1.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import LiteralString

from surefoot.core.state.summary import LEAST_SEARCHED, is_listed, status_of
from surefoot.journal.codec import place_of, summary_of
from surefoot.journal.postgres_owner import is_dead_here
from surefoot.journal.postgres_read import Reader
from surefoot.journal.postgres_server import Database, Row
from surefoot.journal.postgres_write import label_of, text_of
from surefoot.types.ports import RunFilter, RunPage, RunSummary

_ROW: LiteralString = """
SELECT run.number, run.run_id, run.owner, run.owner <> '' AND surefoot.lives(run.owner), run.ready_at, run.started_at,
    summary.body, summary.change
FROM surefoot.summary JOIN surefoot.run ON run.number = summary.run WHERE """
_UNDECIDED = frozenset({"running", "paused", "ready", "queued", "interrupted", "set_aside"})
"""What a run that has not ended may be called, which depends on who drives it."""
_MAY_BE: dict[str, LiteralString] = {
    "running": "run.owner <> ''",
    "queued": "run.ready_at IS NOT NULL AND summary.agent <> ''",
    "ready": "summary.standing = 'ready'",
    "set_aside": "run.ready_at IS NULL AND summary.standing = 'set_aside'",
}
"""What can be told beforehand of a run that may be called so."""
_BEGINS = "starts_with(run.run_id, %s) OR summary.run IN (SELECT run FROM surefoot.label WHERE starts_with(label, %s))"
_PIECE = 200
"""Rows that are looked at in one turn of the event loop: what takes about 10 ms."""


class Lister:
    """What lists ask of a database. Raises `JournalError`."""

    def __init__(self, database: Database, reader: Reader) -> None:
        self._database = database
        self._reader = reader

    async def page(self, wanted: RunFilter, after: str, limit: int) -> RunPage:
        """A page of the runs that are wanted, newest first."""
        found: list[tuple[int, RunSummary]] = []
        async for number, summary in self._wanted(wanted, place_of(after)):
            if len(found) == limit:
                return RunPage(tuple(one for _, one in found), str(found[-1][0]))
            found.append((number, summary))
        return RunPage(tuple(one for _, one in found))

    async def count(self, wanted: RunFilter, most: int) -> int:
        """How many runs are wanted, at most `most`."""
        number = 0
        async for _ in self._wanted(wanted, None):
            number += 1
            if number == most:
                break
        return number

    async def last_change(self) -> int:
        """The number of the newest change."""
        rows = await self._database.ask("SELECT coalesce(max(change), 0) FROM surefoot.summary")
        return int(rows[0][0])

    async def changed(self, since: int) -> list[RunSummary]:
        """Some summaries that were kept after a change, in the order in which they were; none where there are none."""
        told = f"{_ROW}summary.change > %s ORDER BY summary.change LIMIT %s"
        return [await self._line(row) for row in await self._database.ask(told, (since, _PIECE))]

    async def _wanted(self, wanted: RunFilter, before: int | None) -> AsyncIterator[tuple[int, RunSummary]]:
        where, values = _where(wanted)
        while True:
            bounds: list[LiteralString] = [] if before is None else ["summary.run < %s"]
            told = " AND ".join([*bounds, *where]) or "true"
            asked = f"{_ROW}{told} ORDER BY summary.run DESC LIMIT %s"
            rows = await self._database.ask(asked, [*([] if before is None else [before]), *values, _PIECE])
            for row in rows:
                if is_listed(summary := await self._line(row), wanted):
                    yield row[0], summary
            if len(rows) < _PIECE:
                return
            before = rows[-1][0]

    async def _line(self, row: Row) -> RunSummary:
        _, run_id, owner, lives, ready_at, began, body, change = row
        summary = summary_of(body)
        if summary is None:  # it was written by another surefoot
            return replace(await self._reader.listed(run_id), change=change)
        is_driven = summary.status == "running" and lives and not is_dead_here(owner)
        status = status_of(summary, is_driven=is_driven, is_ready=ready_at is not None)
        return replace(summary, run_id=run_id, started_at=began, status=status, change=change)


def _where(wanted: RunFilter) -> tuple[list[LiteralString], list[object]]:
    """What PostgreSQL can tell of it; the rest is asked of each row."""
    where: list[LiteralString] = []
    values: list[object] = []

    def add(told: LiteralString, *of: object) -> None:
        where.append(told)
        values.extend(text_of(one) if isinstance(one, str) else one for one in of)

    if wanted.status:
        add("summary.status = %s", "running" if wanted.status in _UNDECIDED else wanted.status)
        add(_MAY_BE.get(wanted.status, "true"))
    if wanted.agents or wanted.agent:
        add("summary.agent = ANY (%s)", [text_of(one) for one in ((wanted.agent,) if wanted.agent else wanted.agents)])
    if wanted.waiting or wanted.status == "paused":
        add("summary.waits")
    for label in wanted.labels:
        add("summary.run IN (SELECT run FROM surefoot.label WHERE label = %s)", label_of(label))
    if wanted.parent:
        add("run.parent IN (SELECT number FROM surefoot.run WHERE run_id = %s)", wanted.parent)
    if wanted.since is not None:
        add("run.started_at >= %s", wanted.since)
    if wanted.until is not None:
        add("run.started_at < %s", wanted.until)
    if wanted.prefix:
        add("starts_with(run.run_id, %s)", wanted.prefix)
    if len(wanted.q) >= LEAST_SEARCHED:
        add("summary.text LIKE %s", "%" + re.sub(r"[%_\\]", "_", wanted.q.casefold()) + "%")  # any character
    elif wanted.q:
        add(f"({_BEGINS})", wanted.q, label_of(wanted.q))
    return where, values
