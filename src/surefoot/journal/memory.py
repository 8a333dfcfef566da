"""Runs kept in memory: the promises of a journal but the one to outlive the process.

Events are kept as they are; a fork holds its parent and the place where it left it. They are encoded all the same, for
the chain, and so that what no file could hold is refused here too. Event loops on several threads may share a journal.

Whoever gives `keep` has what is encoded as lines of JSON, to be kept where they like, and begins another journal with
them. A line is a run (with the one that it was forked from), bytes that are kept beside records, a record, or what is
kept beside the runs.
"""

from __future__ import annotations

import asyncio
import json
import time
from base64 import b64decode
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from itertools import islice
from math import inf
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import Any

from surefoot.core.state.summary import is_listed, ready_at
from surefoot.journal.codec import Blob, check_fork, check_id, digest_of, place_of, same_word
from surefoot.journal.memory_log import Changes, Keep, Keeper, Log, MemoryRun, Watcher, blob_in
from surefoot.journal.raw import check_blobs, check_end, check_origin, new_rows, references
from surefoot.journal.side import MemorySide
from surefoot.types.archive import Origin, Row
from surefoot.types.errors import JournalError, RunBusy, RunExists, RunUnknown, UsageError, overtaken
from surefoot.types.events import RunEnded
from surefoot.types.ports import EVERY_RUN, Claimed, JournalStore, Recorded, RunFilter, RunPage, RunSummary
from surefoot.types.words import Posted, Word

DATABASES = ("postgresql://", "postgres://")  # how the address of a database begins


class MemoryJournal:
    """A `JournalStore` that lasts as long as this object, or as the place where `keep` stores its lines.

    `keep` is called before anything that its lines announce is done, by one thread at a time. `lines` are those that it
    was given so far, in their order; one process at a time may go on with them. Raises `JournalError` for a line that
    was altered or is missing. When `keep` fails nothing more is recorded: start again with what was kept.
    """

    def __init__(self, lines: Iterable[str] = (), keep: Keep | None = None) -> None:
        self._logs: dict[str, Log] = {}
        self._blobs: dict[str, bytes] = {}
        self._making = Lock()
        self._fences: dict[str, int] = {}
        self._words = self._made = 0
        self._changes = Changes()
        self._keeper = None if keep is None else Keeper(keep)
        self.side = MemorySide(None if self._keeper is None else self._keeper.put_side)
        for number, line in enumerate(lines):
            try:
                self._take(json.loads(line))
            except (AttributeError, KeyError, TypeError, ValueError, UsageError) as error:
                raise JournalError(f"line {number} of the journal cannot be read: {error}") from error
        for log in self._logs.values():
            log.ready_at = ready_at(log.summary, None, has_words=False)

    async def open(self, run_id: str, *, create: bool = False, fence: int | None = None) -> MemoryRun:
        with self._making:
            log = self._logs.get(run_id)
            if log is not None and log.driver is not None:
                raise RunBusy(f"run {run_id} is being driven by this process already; wait until it stands still")
            if not create:
                log = self._log(run_id)
            elif log is None or log.place.seq > 0:
                log = self._new(Origin(run_id, time.time()))
            if fence not in (None, now := self._fences.get(run_id, 0)):
                raise overtaken(run_id)
            self._fences[run_id] = now + (fence is None and not create)
            log.driver, log.ready_at = MemoryRun(log, self._blobs, self._keeper), None
            return log.driver

    async def fork(self, parent: str, at: int, run_id: str) -> None:
        with self._making:
            self._new(Origin(run_id, time.time(), parent, at))

    async def runs(self, limit: int = 50) -> Sequence[RunSummary]:
        return [*(await self.list(limit=limit)).runs]

    async def beginning(self, prefix: str, limit: int = 50) -> Sequence[str]:
        logs = tuple(self._logs.items())
        return sorted(name for name, log in logs if name.startswith(prefix) and log.place.seq)[:limit]

    async def read_recorded(
        self, run_id: str, since: int = 0, limit: int | None = None
    ) -> tuple[Sequence[Recorded], str]:
        return self._log(run_id).records(max(since, 0))[:limit], ""

    async def subscribe(self, run_id: str, since: int = 0) -> AsyncIterator[Recorded]:
        log, since, watcher = self._log(run_id), max(since, 0), Watcher()
        log.watchers.add(watcher)
        try:
            while not watcher.is_over:
                watcher.changed.clear()
                records = log.records(since)
                since += len(records)
                for record in records:
                    yield record
                if log.place.seq <= since and log.own and isinstance(log.own[-1].event, RunEnded):
                    return
                await watcher.changed.wait()
        finally:
            log.watchers.discard(watcher)

    async def put_blob(self, run_id: str, data: bytes) -> str:
        self._log(run_id)
        self._blobs[digest := digest_of(data)] = data
        return digest

    async def get_blob(self, digest: str) -> bytes:
        return blob_in(self._blobs, digest)

    async def say(self, run_id: str, word: Word, *, key: str = "") -> Posted:
        log = self._log(run_id)
        with self._making:
            for posted in log.inbox if key else ():
                if posted.key == key:
                    return same_word(posted, word)
            self._words += 1
            log.inbox.append(posted := Posted(self._words, word, key))
            if (driver := log.driver) is None:
                log.ready_at = min(time.time(), log.ready_at or inf)
        if driver is not None:
            driver.wake()
        return posted

    async def posted(self, run_id: str, number: int) -> Posted:
        found = next((one for one in self._log(run_id).inbox if one.number == number), None)
        if found is None:
            raise UsageError(f"run {run_id}: no word {number} was said to it")
        return found

    async def list(self, wanted: RunFilter = EVERY_RUN, after: str = "", limit: int = 50) -> RunPage:
        logs, before = reversed(tuple(self._logs.values())), place_of(after)
        earlier = (log for log in logs if log.place.seq and (before is None or log.number < before))
        found = ((log.number, log.current_summary()) for log in earlier)
        page = tuple(islice(((at, one) for at, one in found if is_listed(one, wanted)), limit + 1))
        more = str(page[limit - 1][0]) if len(page) > limit else ""
        return RunPage(tuple(one for _, one in page[:limit]), more)

    async def count(self, wanted: RunFilter = EVERY_RUN, most: int = 10_000) -> int:
        return len((await self.list(wanted, limit=most)).runs)

    async def summary(self, run_id: str) -> RunSummary:
        return self._log(run_id).current_summary()

    async def changes(self, since: int | None = None) -> AsyncIterator[RunSummary]:
        watcher, since = Watcher(), self._changes.count if since is None else since
        self._changes.watchers.add(watcher)
        try:
            while not watcher.is_over:
                watcher.changed.clear()
                logs = sorted(
                    (log for log in tuple(self._logs.values()) if log.change > since), key=attrgetter("change")
                )
                for log in logs:
                    since = log.change
                    yield log.current_summary()
                await watcher.changed.wait()
        finally:
            self._changes.watchers.discard(watcher)

    async def delete(self, run_id: str, *, end: str = "") -> None:
        with self._making:
            log = self._log(run_id)
            if log.driver is not None:
                raise RunBusy(f"run {run_id} is being driven; cancel it, or wait until it stands still")
            if any(one.parent is log for one in self._logs.values()):
                raise UsageError(f"run {run_id} cannot be deleted: another run shares its records")
            check_end(run_id, log.place.hash, end)
            if self._keeper is not None:
                self._keeper.put_deleted(run_id)
            del self._logs[run_id]

    async def origin(self, run_id: str) -> Origin:
        return self._log(run_id).origin

    async def rows(self, run_id: str, since: int = 0, limit: int | None = None) -> Sequence[Row]:
        return self._log(run_id).rows(since, limit)

    async def adopt(self, origin: Origin, rows: Sequence[Row] = (), blobs: Sequence[Blob] = ()) -> None:
        run_id, data = origin.run_id, dict(blobs)
        check_blobs(run_id, blobs)
        with self._making:
            log = self._logs.get(run_id) or self._log_from(origin)
            if log.driver is not None:
                raise RunBusy(f"run {run_id} is being driven here; wait until it stands still")
            check_origin(origin, log.origin)
            new = new_rows(run_id, log.place, rows, lambda seq: bytes.fromhex(log.records(seq)[0].hash))
            log.take(new, {**self._blobs, **data})
            if self._keeper is not None:
                self._keeper.put(log, blobs, [(0, row.seq, row.at, row.form, row.body, row.hash) for row in new])
            self._blobs |= data
            self._logs[run_id] = log

    async def sweep(self) -> int:
        logs = tuple(self._logs.values())
        if any(log.driver or log.summary.status == "running" for log in logs):
            return 0
        used = {one for log in logs for row in log.rows(0, None) for one in references(row.body)}
        return sum(len(self._blobs.pop(digest)) for digest in self._blobs.keys() - used)

    async def claim(self, agents: Collection[str], limit: int, lease_s: float) -> Sequence[Claimed]:
        now, found = time.time(), list[Claimed]()
        with self._making:
            ready = [log for log in self._logs.values() if log.ready_at is not None and log.ready_at <= now]
            own = (one for one in ready if one.summary.agent in agents and not one.summary.outer)
            for log in sorted(own, key=attrgetter("ready_at"))[:limit]:
                log.ready_at = now + lease_s  # until it is opened
                fence = self._fences[log.run_id] = self._fences.get(log.run_id, 0) + 1
                found.append(Claimed(log.run_id, log.summary.agent, fence))
        return found

    async def renew(self, lease_s: float) -> Collection[str]:  # noqa: ARG002  # who dies takes all runs along
        return ()

    async def aclose(self) -> None:
        here, watchers = asyncio.get_running_loop(), [*self._changes.watchers]
        for log in tuple(self._logs.values()):
            if (driver := log.driver) is not None and (driver.loop is here or not driver.loop.is_running()):
                await driver.release()
            watchers += log.watchers
        for watcher in watchers:
            if watcher.loop is here:
                watcher.is_over = True
                watcher.wake()

    def _take(self, line: dict[str, Any]) -> None:  # Any: JSON, and what it lacks is said
        match line:
            case {"blob": str(digest), "data": str(data)}:
                if digest_of(whole := b64decode(data)) != digest:
                    raise ValueError("its bytes were altered")
                self._blobs[digest] = whole
            case {"side": str(name), "data": str(data)}:
                self.side.kept[name] = b64decode(data)
                return
            case {"surefoot": "journal"}:  # the first line of an export
                return
            case {"deleted": str(run_id)}:
                del self._logs[run_id]
                if self._keeper is not None:
                    self._keeper.known.discard(run_id)
                return
            case {"run": str(run_id), "parent": parent, "fork": int(at), "began": float(began)}:
                self._new(Origin(run_id, began, parent or "", at))
            case _:
                row = Row(line["seq"], line["at"], line["form"], line["body"].encode(), bytes.fromhex(line["hash"]))
                self._log(line["run"]).take([row], self._blobs)
        if self._keeper is not None:
            self._keeper.known.add(line["blob"] if "blob" in line else line["run"])

    def _log(self, run_id: str) -> Log:
        log = self._logs.get(run_id)
        if log is None:
            raise RunUnknown(f"unknown run {run_id!r} in this journal, which lasts only as long as its process")
        return log

    def _new(self, origin: Origin) -> Log:
        if origin.run_id in self._logs:
            raise RunExists(f"there is already a run {origin.run_id}; resume it, or choose another id")
        log = self._logs[origin.run_id] = self._log_from(origin)
        return log

    def _log_from(self, origin: Origin) -> Log:
        check_id(origin.run_id)
        parent = self._log(origin.parent) if origin.parent else None
        if parent is not None:
            check_fork(origin.parent, origin.fork, parent.place.seq)
        self._made += 1
        return Log(origin, self._made, parent, self._changes)


def store_of(journal: JournalStore | str | Path | None) -> JournalStore:
    """Where runs are kept: as given, a database of that address, a file of that path, or memory."""
    if journal is None:
        return MemoryJournal()
    if isinstance(journal, str) and journal.startswith(DATABASES):
        from surefoot.journal.postgres import PostgresJournal  # noqa: PLC0415  # it needs an extra

        return PostgresJournal(journal)
    if isinstance(journal, str | Path):
        from surefoot.journal.sqlite import SqliteJournal  # noqa: PLC0415  # sqlite3 loads when it is used

        return SqliteJournal(journal)
    return journal
