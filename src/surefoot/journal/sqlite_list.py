"""The list of a journal file's runs, by what is wanted of them; and what has changed in it. No record is read for it.

Text is looked for by trigrams, so that Chinese is found too. What is looked through is brought up to date when somebody
looks, so that runs do not pay for it. Source: spec/serving.md, section 4; spec/scale.md, section 3.1.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import cast

from surefoot.core.state.summary import is_listed, status_of
from surefoot.journal.codec import place_of, summary_of
from surefoot.journal.sqlite_file import transaction
from surefoot.journal.sqlite_read import Reader
from surefoot.types.ports import RunFilter, RunPage, RunSummary

_ROW = """
SELECT run.number, run.run_id, run.owner, run.ready_at, summary.body, summary.change
FROM summary JOIN run ON run.number=summary.run WHERE """
_UNDECIDED = frozenset({"running", "paused", "ready", "queued", "interrupted", "set_aside"})
"""What a run that has not ended may be called, which depends on who drives it."""
_LEAST_SEARCHED = 3
_AFTER_ALL = "\U0010ffff"
_SEARCH = "CREATE VIRTUAL TABLE IF NOT EXISTS search USING fts5(text, tokenize='trigram')"
_PIECE = 500


class Lister:
    """What lists ask of one open journal file."""

    def __init__(self, db: sqlite3.Connection, reader: Reader, is_alive: Callable[[str], bool]) -> None:
        self._db = db
        self._reader = reader
        self._is_alive = cache(is_alive)

    def page(self, wanted: RunFilter, after: str, limit: int) -> RunPage:
        """A page of the runs that are wanted, newest first."""
        found: list[tuple[int, RunSummary]] = []
        for number, summary in self._wanted(wanted, place_of(after)):
            if len(found) == limit:
                return RunPage(tuple(one for _, one in found), str(found[-1][0]))
            found.append((number, summary))
        return RunPage(tuple(one for _, one in found))

    def count(self, wanted: RunFilter, most: int) -> int:
        """How many runs are wanted, at most `most`."""
        number = 0
        for _ in self._wanted(wanted, None):
            number += 1
            if number == most:
                break
        return number

    def last_change(self) -> int:
        """The number of the newest change."""
        return cast("int", self._db.execute("SELECT coalesce(max(change), 0) FROM summary").fetchone()[0])

    def changed(self, since: int) -> Iterator[RunSummary]:
        """The summaries that were kept after a change, in the order in which they were."""
        rows = self._db.execute(f"{_ROW} summary.change>? ORDER BY summary.change", (since,)).fetchall()
        return (self._line(row) for row in rows)

    def _wanted(self, wanted: RunFilter, before: int | None) -> Iterator[tuple[int, RunSummary]]:
        where, values = self._where(wanted)
        at = before
        while True:
            limits, bound = (["summary.run<?"], [at]) if at is not None else ([], [])
            told = " AND ".join([*where, *limits]) or "1"
            rows = self._db.execute(
                f"{_ROW}{told} ORDER BY summary.run DESC LIMIT {_PIECE}", (*values, *bound)
            ).fetchall()
            for row in rows:
                if is_listed(summary := self._line(row), replace(wanted, q="")):
                    yield row[0], summary
            if len(rows) < _PIECE:
                return
            at = rows[-1][0]

    def _where(self, wanted: RunFilter) -> tuple[list[str], list[object]]:
        """What SQLite can tell of it; the rest is asked of each row."""
        where: list[str] = []
        values: list[object] = []

        def add(told: str, *of: object) -> None:
            where.append(told)
            values.extend(of)

        if wanted.status:
            add("summary.status=?", "running" if wanted.status in _UNDECIDED else wanted.status)
        if wanted.agents or wanted.agent:
            names = (wanted.agent,) if wanted.agent else wanted.agents
            add(f"summary.agent IN ({','.join('?' * len(names))})", *names)
        if wanted.waiting or wanted.status == "paused":
            add("summary.waits")
        for label in wanted.labels:
            add("summary.run IN (SELECT run FROM label WHERE label=?)", label)
        if wanted.parent:
            add("run.parent IN (SELECT number FROM run WHERE run_id=?)", wanted.parent)
        if wanted.since is not None:
            add("run.started_at>=?", wanted.since)
        if wanted.until is not None:
            add("run.started_at<?", wanted.until)
        if wanted.prefix:
            add("run.run_id>=? AND run.run_id<?", wanted.prefix, wanted.prefix + _AFTER_ALL)
        if wanted.q and len(wanted.q) < _LEAST_SEARCHED:
            add("run.run_id>=? AND run.run_id<?", wanted.q, wanted.q + _AFTER_ALL)
        elif wanted.q:
            self._index()
            add("summary.run IN (SELECT rowid FROM search WHERE text MATCH ?)", '"' + wanted.q.replace('"', '""') + '"')
        return where, values

    def _index(self) -> None:
        """Bring what is looked through up to date."""
        self._db.execute(_SEARCH)
        with transaction(self._db):
            (mark,) = self._db.execute("SELECT text FROM search WHERE rowid=-1").fetchone() or ("0",)
            rows = self._db.execute(f"{_ROW} summary.change>? ORDER BY summary.change", (int(mark),)).fetchall()
            for row in rows:
                one = self._line(row)
                text = "\n".join((one.run_id, one.task, one.answer, *one.labels.values()))
                self._db.execute("INSERT OR REPLACE INTO search (rowid, text) VALUES (?, ?)", (row[0], text))
            if rows:
                self._db.execute("INSERT OR REPLACE INTO search (rowid, text) VALUES (-1, ?)", (str(rows[-1][5]),))

    def _line(self, row: tuple[int, str, str, float | None, bytes, int]) -> RunSummary:
        _, run_id, owner, ready_at, body, change = row
        summary = summary_of(body)
        if summary is None:  # it was written by another surefoot
            return replace(self._reader.listed_run(run_id, self._is_alive), change=change)
        is_driven = summary.status == "running" and owner != "" and self._is_alive(owner)
        status = status_of(summary, is_driven=is_driven, is_ready=ready_at is not None)
        return replace(summary, run_id=run_id, status=status, change=change)
