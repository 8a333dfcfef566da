"""What is said to the runs of a journal file, and who may drive them: the inbox, the queue and its leases.

A word is one row until whoever drives its run writes what came of it, in the transaction of the events that it became.
A run is ready when nothing drives it and there is something to do; a claim takes it with a lease by the clock of this
machine. That of an agent that another run has asked goes on within that one, and is claimed by nobody. Whoever outlives
its lease adds nothing any more. Source: spec/scale.md, sections 2 and 4.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from surefoot.journal.codec import encode_word, same_word, word_of
from surefoot.journal.sqlite_file import form_of, transaction, translate_errors
from surefoot.types.errors import JournalError, UsageError
from surefoot.types.ports import Claimed
from surefoot.types.words import Posted, Word

_WORD = "SELECT number, body, key, outcome, detail, seq FROM word WHERE "
_READY = """
SELECT run.number, run.run_id, summary.agent FROM run JOIN summary ON summary.run=run.number
WHERE run.ready_at<=? AND run.owner='' AND summary.agent IN ({})
AND json_extract(CAST(summary.body AS TEXT), '$.outer')='' ORDER BY run.ready_at, run.number LIMIT ?"""
_DRIVEN = """
SELECT run.number, run.run_id, summary.agent, run.owner, run.lease_until FROM run JOIN summary ON summary.run=run.number
WHERE run.owner<>'' AND run.number NOT IN (SELECT value FROM json_each(?)) AND summary.agent IN ({})
AND (summary.status='running' OR EXISTS (SELECT 1 FROM word WHERE word.run=run.number AND outcome=''))
AND json_extract(CAST(summary.body AS TEXT), '$.outer')='' ORDER BY run.number"""
_IS_READY = "UPDATE run SET ready_at=min(:now, coalesce(ready_at, :now)) WHERE number=:run AND owner=''"
_CLAIM = "UPDATE run SET owner=?, fence=fence+1, lease_until=?, ready_at=NULL WHERE number=? RETURNING fence"
_RENEW = """
UPDATE run SET lease_until=? WHERE owner=? AND lease_until IS NOT NULL
AND number IN (SELECT value FROM json_each(?))"""

_TAKE = """
UPDATE run SET lease_until=iif(:fence IS NULL, NULL, lease_until), owner=:token, ready_at=NULL,
fence=fence+(:fence IS NULL) WHERE number=:run AND fence=coalesce(:fence, fence)"""


class Inbox:
    """The inbox and the queue of one open journal file. Raises `JournalError` for trouble with the file."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path

    def say(self, run: int, word: Word, key: str) -> Posted:
        body = encode_word(word)
        with translate_errors(self._path), transaction(self._db):
            if key:
                for posted in self._posted("run=? AND key=?", run, key):
                    return same_word(posted, word)
            row = self._db.execute("INSERT INTO word (run, key, body) VALUES (?, ?, ?)", (run, key, body))
            self._db.execute(_IS_READY, {"now": time.time(), "run": run})
            return Posted(cast("int", row.lastrowid), word, key)

    def posted(self, run_id: str, run: int, number: int) -> Posted:
        with translate_errors(self._path):
            has_words = form_of(self._db) > 2  # noqa: PLR2004  # form 3 is the first with words
            for posted in self._posted("run=? AND number=?", run, number) if has_words else ():
                return posted
        raise UsageError(f"run {run_id}: no word {number} was said to it")

    def unheard(self, run: int) -> list[Posted]:
        with translate_errors(self._path):
            return list(self._posted("run=? AND outcome='' ORDER BY number", run))

    def has_unheard(self, runs: Sequence[int]) -> list[int]:
        """Those of the runs to which something was said that has no outcome yet."""
        with translate_errors(self._path):
            if self._db.execute("SELECT 1 FROM word WHERE outcome='' LIMIT 1").fetchone() is None:
                return []
            waiting = {run for (run,) in self._db.execute("SELECT DISTINCT run FROM word WHERE outcome=''")}
        return [run for run in runs if run in waiting]

    def claim(
        self,
        token: str,
        agents: Collection[str],
        limit: int,
        lease_s: float,
        is_alive: Callable[[str], bool],
        *,
        driven: Collection[int],
    ) -> list[Claimed]:
        """Take up to so many runs; its own that are not `driven`, once their leases are over, as others would."""
        names, marks, now = tuple(agents), ",".join("?" * len(agents)), time.time()
        with translate_errors(self._path), transaction(self._db):
            taken, lives = list[tuple[int, str, str, bool]](), dict[str, bool]()
            for number, run_id, agent, owner, until in self._db.execute(
                _DRIVEN.format(marks), (json.dumps([*driven]), *names)
            ):
                if len(taken) >= limit:
                    break
                if owner not in lives:
                    lives[owner] = is_alive(owner)
                is_lost = owner == token and until is None  # its release could not be written
                if is_lost or not lives[owner] or (until is not None and until < now):
                    taken.append((number, run_id, agent, True))
            ready = self._db.execute(_READY.format(marks), (now, *names, limit - len(taken))).fetchall()
            found: list[Claimed] = []
            for number, run_id, agent, is_takeover in (*taken, *((*row, False) for row in ready)):
                (fence,) = self._db.execute(_CLAIM, (token, now + lease_s, number)).fetchone()
                found.append(Claimed(run_id, agent, fence, is_takeover))
        return found

    def renew(self, token: str, driven: Mapping[int, str], lease_s: float) -> list[str]:
        with translate_errors(self._path), transaction(self._db):
            self._db.execute(_RENEW, (time.time() + lease_s, token, json.dumps([*driven])))
            own = {number for (number,) in self._db.execute("SELECT number FROM run WHERE owner=?", (token,))}
        return [run_id for number, run_id in driven.items() if number not in own]

    def is_lease_over(self, run: int) -> bool:
        """Whether a run was claimed, and whoever did has not extended the lease."""
        (until,) = self._db.execute("SELECT lease_until FROM run WHERE number=?", (run,)).fetchone()
        return until is not None and until < time.time()

    def take(self, run: int, token: str, fence: int | None) -> bool:
        """Make somebody the owner of a run; a lease that they have stays. False where that `fence` has grown."""
        return self._db.execute(_TAKE, {"token": token, "run": run, "fence": fence}).rowcount == 1

    def keep(self, digest: str, data: bytes, run: int, seq: int) -> None:
        """Keep bytes beside the record of a run."""
        with translate_errors(self._path):
            self._db.execute(
                "INSERT OR IGNORE INTO blob (digest, data, run, seq) VALUES (?,?,?,?)", (digest, data, run, seq)
            )

    def _posted(self, where: str, *values: object) -> Iterator[Posted]:
        for number, body, key, outcome, detail, seq in self._db.execute(_WORD + where, values).fetchall():
            try:
                word = word_of(body)
            except ValueError as error:
                raise JournalError(f"journal {self._path}: word {number} cannot be read: {error}") from error
            yield Posted(number, word, key, outcome, detail, seq)
