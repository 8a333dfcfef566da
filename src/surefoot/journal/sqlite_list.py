"""The list of a journal file's runs, by what is wanted of them; and what has changed in it. No record is read for it.

Text is looked for by trigrams, so that Chinese is found too. What is looked through is brought up to date when somebody
looks, so that runs do not pay for it. Source: spec/serving.md, section 4; spec/scale.md, section 3.1.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import cast

from surefoot.core.state.summary import LEAST_SEARCHED, is_listed, status_of
from surefoot.journal.codec import place_of, storable, summary_of
from surefoot.journal.sqlite_file import FORMAT, form_of, transaction, translate_errors
from surefoot.journal.sqlite_read import Reader
from surefoot.types.ports import RunFilter, RunPage, RunSummary

_COLUMNS = "run.number, run.run_id, run.owner, run.ready_at, summary.body, summary.change, run.started_at"
_OF = "FROM summary JOIN run ON run.number=summary.run WHERE"
_Row = tuple[int, str, str, float | None, bytes, int, float]
_AFTER_ALL = "\U0010ffff"
_SEARCH = "CREATE VIRTUAL TABLE IF NOT EXISTS search USING fts5(text, tokenize='trigram')"
_BEGINS = """summary.run IN (SELECT number FROM run WHERE run_id>=? AND run_id<?
UNION SELECT run FROM label WHERE label>=? AND label<?)"""
_MAY_BE = {
    "running": "summary.run IN (SELECT number FROM run WHERE owner<>'')",
    "paused": "summary.standing IN ('approval', 'in_doubt')",
    "queued": "summary.standing='' AND run.ready_at IS NOT NULL AND summary.agent<>''",
    "interrupted": "summary.standing='' AND (run.ready_at IS NULL OR summary.agent='')",
    "ready": "summary.standing='ready'",
    "set_aside": "summary.standing='set_aside'",
}
"""What tells how a run is called that has not ended; if it has an owner, it also counts whether that one lives."""
_PIECE = 100
"""Rows that are looked at in one turn of the event loop: 5 ms; where FTS5 merges what it has indexed, 40 ms."""


class Lister:
    """What lists ask of one open journal file. Who may not `write` there looks for text in each row.

    A file of an earlier form has nothing to list it by, so that its runs are read. Raises `JournalError`.
    """

    def __init__(
        self, db: sqlite3.Connection, path: Path, reader: Reader, is_alive: Callable[[str], bool], *, writes: bool
    ) -> None:
        self._db = db
        self._path = path
        self._reader = reader
        self._is_alive = cache(is_alive)
        self._writes = writes

    async def page(self, wanted: RunFilter, after: str, limit: int) -> RunPage:
        found: list[tuple[int, RunSummary]] = []
        async for number, summary in self._wanted(wanted, place_of(after)):
            if len(found) == limit:
                return RunPage(tuple(one for _, one in found), str(found[-1][0]))
            found.append((number, summary))
        return RunPage(tuple(one for _, one in found))

    async def count(self, wanted: RunFilter, most: int) -> int:
        """How many runs are wanted, at most `most`. SQLite counts those that nobody drives, which it can tell whole."""
        number, of = 0, "1"
        if form_of(self._db) == FORMAT:
            told, values, rest = await self._as_sql(wanted)
            if len(rest.q) < LEAST_SEARCHED:
                of = "summary.run IN (SELECT number FROM run WHERE owner<>'')"
                counted = f"SELECT count(*) FROM (SELECT 1 {_OF} {told} AND +run.owner='' LIMIT ?)"  # noqa: S608  # of ours
                with translate_errors(self._path):
                    (number,) = self._db.execute(counted, (*values, most)).fetchone()
        if number < most:
            async for _ in self._wanted(wanted, None, of):
                number += 1
                if number == most:
                    break
        return number

    def last_change(self) -> int:
        if form_of(self._db) < FORMAT:
            return 0
        with translate_errors(self._path):
            return cast("int", self._db.execute("SELECT coalesce(max(change), 0) FROM summary").fetchone()[0])

    def changed(self, since: int) -> list[RunSummary]:
        """Some summaries that were kept after a change, in the order in which they were; none where there are none."""
        if form_of(self._db) < FORMAT:
            return []
        return [self._line(row) for row in self._rows("summary.change>? ORDER BY summary.change", since)]

    async def _wanted(
        self, wanted: RunFilter, before: int | None, of: str = "1"
    ) -> AsyncIterator[tuple[int, RunSummary]]:
        if form_of(self._db) < FORMAT:
            for number, run_id in self._reader.numbered(before):
                if is_listed(summary := self._reader.listed_run(run_id, self._is_alive), wanted):
                    yield number, summary
                await asyncio.sleep(0)
            return
        told, values, rest = await self._as_sql(wanted)
        at = list[object]() if before is None else [before]
        while True:
            bound = "summary.run<? AND " if at else ""
            rows = self._rows(f"{bound}{of} AND {told} ORDER BY summary.run DESC", *at, *values)
            for row in rows:
                if is_listed(summary := self._line(row), rest):
                    yield row[0], summary
            if len(rows) < _PIECE:
                return
            at = [rows[-1][0]]
            await asyncio.sleep(0)

    def _rows(self, told: str, *values: object) -> list[_Row]:
        with translate_errors(self._path):
            return self._db.execute(f"SELECT {_COLUMNS} {_OF} {told} LIMIT {_PIECE}", values).fetchall()

    async def _as_sql(self, wanted: RunFilter) -> tuple[str, list[object], RunFilter]:
        """What SQLite can tell of it, with its values, and what is to be asked of each row."""
        is_indexed = self._writes and len(wanted.q) >= LEAST_SEARCHED and storable(wanted.q) == wanted.q
        if is_indexed := is_indexed and "\0" not in wanted.q:
            await self._index()
        where, values = self._where(wanted, is_indexed=is_indexed)
        return " AND ".join(where) or "1", values, replace(wanted, q="") if is_indexed else wanted

    def _where(self, wanted: RunFilter, *, is_indexed: bool) -> tuple[list[str], list[object]]:
        where: list[str] = []
        values: list[object] = []

        def add(told: str, *of: object) -> None:
            where.append(told)
            values.extend(storable(one) if isinstance(one, str) else one for one in of)

        waits = wanted.waiting or wanted.status == "paused"
        index = "+" if waits else ""  # of those that wait there are few: no other index is to be used
        if wanted.status:
            if wanted.status in _MAY_BE:
                add(f"{index}summary.status='running'")
                add(_MAY_BE[wanted.status])
            else:
                add("summary.status=?", wanted.status)
        if wanted.agents or wanted.agent:
            names = [one for one in wanted.agents or (wanted.agent,) if wanted.agent in ("", one)]
            add(f"{index}summary.agent IN ({','.join('?' * len(names))})", *names)
            add("1" if "" in names else f"{index}summary.agent<>''")
        if waits:
            add("summary.waits")
        for label in wanted.labels:
            add("summary.run IN (SELECT run FROM label WHERE label=?)", label)
        if wanted.parent:
            add("run.parent IN (SELECT number FROM run WHERE run_id=?)", wanted.parent)
        if wanted.since is not None:
            add(
                "run.started_at>=? AND summary.run>=(SELECT min(number) FROM run WHERE started_at>=?)",
                *[wanted.since] * 2,
            )
        if wanted.until is not None:
            add(
                "run.started_at<? AND summary.run<=(SELECT max(number) FROM run WHERE started_at<?)",
                *[wanted.until] * 2,
            )
        if wanted.prefix:
            add("run.run_id>=? AND run.run_id<?", wanted.prefix, storable(wanted.prefix) + _AFTER_ALL)
        if is_indexed:
            add("summary.run IN (SELECT rowid FROM search WHERE text MATCH ?)", '"' + wanted.q.replace('"', '""') + '"')
        elif 0 < len(wanted.q) < LEAST_SEARCHED:
            bounds = (wanted.q, storable(wanted.q) + _AFTER_ALL)
            add(_BEGINS, *bounds, *bounds)
        return where, values

    async def _index(self) -> None:
        """Bring what is looked through up to date, piece by piece: others are to have their turn."""
        with translate_errors(self._path):
            self._db.execute(_SEARCH)
        is_left = True
        while is_left:
            with translate_errors(self._path), transaction(self._db):
                (mark,) = self._db.execute("SELECT text FROM search WHERE rowid=-1").fetchone() or ("0",)
                rows = self._rows("summary.change>? ORDER BY summary.change", int(mark))
                for row in rows:
                    one = self._line(row)
                    text = storable("\n".join((one.run_id, one.task, one.answer, *one.labels.values())))
                    self._db.execute("INSERT OR REPLACE INTO search (rowid, text) VALUES (?, ?)", (row[0], text))
                if rows:
                    self._db.execute("INSERT OR REPLACE INTO search (rowid, text) VALUES (-1, ?)", (str(rows[-1][5]),))
            is_left = len(rows) == _PIECE
            await asyncio.sleep(0)

    def _line(self, row: _Row) -> RunSummary:
        _, run_id, owner, ready_at, body, change, began = row
        summary = summary_of(body)
        if summary is None:  # it was written by another surefoot
            return replace(self._reader.listed_run(run_id, self._is_alive), change=change)
        is_driven = summary.status == "running" and owner != "" and self._is_alive(owner)
        status = status_of(summary, is_driven=is_driven, is_ready=ready_at is not None)
        return replace(summary, run_id=run_id, started_at=began, status=status, change=change)
