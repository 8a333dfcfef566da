"""What is said to the runs of a database, and who may drive them: the inbox, the queue and its leases.

A word is one row until whoever drives its run writes what came of it. A claim raises the fence of a run and names its
owner; how long that one lives stands once for all its runs, by the clock of the server. Source: spec/scale.md,
sections 2 and 4.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import uuid4

from surefoot.journal.codec import check_id, encode_word, same_word, word_of
from surefoot.journal.postgres_server import Connection, Database, Row, is_dead_here, rows_of
from surefoot.journal.postgres_write import text_of
from surefoot.journal.raw import check_end
from surefoot.types.errors import JournalError, RunBusy, RunUnknown, UsageError
from surefoot.types.ports import Claimed
from surefoot.types.words import Posted, Word

_LIVES = """
INSERT INTO surefoot.owner (token, until) VALUES (%(whose)s, surefoot.now() + %(lease_s)s)
ON CONFLICT (token) DO UPDATE SET until = """
_LIVE = _LIVES + "excluded.until"
_LIVE_ON = _LIVES + "greatest(owner.until, excluded.until)"
_LEAVE = "DELETE FROM surefoot.owner WHERE token = %(whose)s OR until < surefoot.now() - 86400"
_MAKE = """
INSERT INTO surefoot.run (run_id, started_at, parent, at, events, head, owner)
SELECT %(run_id)s, surefoot.now(), %(parent)s::bigint, %(at)s, %(at)s, %(head)s, %(owner)s
WHERE %(parent)s::bigint IS NULL OR EXISTS (SELECT 1 FROM surefoot.run WHERE number = %(parent)s FOR KEY SHARE)
ON CONFLICT (run_id) DO NOTHING RETURNING number, started_at"""
_TAKE = """
UPDATE surefoot.run SET owner = %(whose)s, ready_at = NULL,
    fence = fence + (%(fence)s::bigint IS NULL AND owner <> %(whose)s)::int
WHERE run_id = %(run_id)s AND CASE WHEN %(fence)s::bigint IS NULL
    THEN owner IN ('', %(whose)s, %(dead)s) OR NOT surefoot.lives(owner) ELSE fence = %(fence)s END RETURNING fence"""
_CLAIM = """UPDATE surefoot.run SET owner = %(whose)s, fence = fence + 1, ready_at = NULL FROM found
WHERE run.number = found.number RETURNING found.ready_at, run.number, run.run_id, run.agent, run.fence"""
_READY = f"""
WITH found AS (
    SELECT number, ready_at FROM surefoot.run
    WHERE ready_at <= (SELECT surefoot.now()) AND agent = ANY (%(agents)s) AND owner = '' AND number <> ALL (%(held)s)
    ORDER BY ready_at, number LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) {_CLAIM}"""  # noqa: S608  # words of ours
_OWNERS = """
WITH owners AS (SELECT DISTINCT owner FROM surefoot.run WHERE owner <> '')
SELECT owner, surefoot.lives(owner) FROM owners"""
_LEFT = f"""
WITH found AS (
    SELECT run.number, 0 AS ready_at FROM surefoot.run JOIN surefoot.summary ON summary.run = run.number
    WHERE run.owner = ANY (%(left)s) AND run.agent = ANY (%(agents)s)
    AND (status = 'running' OR EXISTS (SELECT 1 FROM surefoot.word WHERE word.run = run.number AND outcome = ''))
    AND NOT (run.owner = %(whose)s AND run.number = ANY (%(held)s))
    ORDER BY run.number LIMIT %(limit)s FOR UPDATE OF run SKIP LOCKED
) {_CLAIM}"""  # noqa: S608  # words of ours
_WORD = "SELECT number, body, key, outcome, detail, seq FROM surefoot.word WHERE "
_SAY = """
INSERT INTO surefoot.word (run, key, posting, body) VALUES (%s, %s, %s, %s)
ON CONFLICT (posting) DO NOTHING"""
_IS_READY = "UPDATE surefoot.run SET ready_at = least(ready_at, surefoot.now()) WHERE number = %s AND owner = ''"
_RUN = "SELECT number FROM surefoot.run WHERE run_id = %s FOR UPDATE"

_DELETED = """
SELECT number, owner, head, owner <> '' AND surefoot.lives(owner) FROM surefoot.run WHERE run_id = %s FOR UPDATE"""
_DELETE = """
WITH gone AS (
    DELETE FROM surefoot.run WHERE number = %(run)s
    AND NOT EXISTS (SELECT 1 FROM surefoot.run AS fork WHERE fork.parent = %(run)s) RETURNING number
),
    events AS (DELETE FROM surefoot.event WHERE run = (SELECT number FROM gone)),
    summary AS (DELETE FROM surefoot.summary WHERE run = (SELECT number FROM gone)),
    labels AS (DELETE FROM surefoot.label WHERE run = (SELECT number FROM gone)),
    words AS (DELETE FROM surefoot.word WHERE run = (SELECT number FROM gone))
SELECT number FROM gone"""  # done under that lock: it sees each fork


class Inbox:
    """The inbox and the queue of a database, for the store of that token. Raises `JournalError`."""

    def __init__(self, database: Database, token: str) -> None:
        self._database = database
        self._token = token

    async def say(self, run_id: str, word: Word, key: str) -> tuple[int, Posted]:
        """Put a word into the inbox of a run, and make a run that nobody drives ready. Gives its number and the word.

        However often it is sent, it is one word.
        """
        posting, body, key = uuid4().hex, encode_word(word), text_of(key)

        async def add_word(connection: Connection) -> tuple[int, list[Row]]:
            async with connection.transaction():
                runs = await rows_of(connection, _RUN, (run_id,))  # locked: who lets the run go sees the word, or waits
                if not runs:
                    raise RunUnknown(f"unknown run {run_id!r} in the journal {self._database.name}")
                run: int = runs[0][0]
                if key and (found := await rows_of(connection, f"{_WORD}run = %s AND key = %s", (run, key))):
                    return run, found
                await rows_of(connection, _SAY, (run, key, posting, body))
                await rows_of(connection, _IS_READY, (run,))
                await rows_of(connection, "SELECT pg_notify('surefoot', %s)", (f"word {run}",))
                return run, await rows_of(connection, f"{_WORD}posting = %s", (posting,))

        run, rows = await self._database.work(add_word)
        (posted,) = self._posted(rows)
        return run, same_word(posted, word)

    async def posted(self, run_id: str, run: int, number: int) -> Posted:
        for posted in self._posted(await self._database.ask(f"{_WORD}run = %s AND number = %s", (run, number))):
            return posted
        raise UsageError(
            f"run {run_id}: there is no word {number}; if it was confirmed, a failover has lost it: say it again"
        )

    async def unheard(self, run: int) -> list[Posted]:
        return self._posted(await self._database.ask(f"{_WORD}run = %s AND outcome = '' ORDER BY number", (run,)))

    async def live(self, lease_s: float) -> None:
        """Say that this store lives for so long from now on, at least."""
        await self._database.ask(_LIVE_ON, {"whose": self._token, "lease_s": lease_s})

    async def leave(self) -> None:
        """Say that this store drives nothing any more, and forget those that have died long ago."""
        await self._database.ask(_LEAVE, {"whose": self._token}, patience_s=0)

    async def make(self, run_id: str, origin: tuple[int | None, int, bytes], owner: str) -> tuple[int, float] | None:
        """Put a run into the list, forked from the run of a number at a record that follows a hash.

        Gives its number, and when it was made; None where there is one of that id.
        """
        check_id(run_id)
        parent, at, head = origin
        told = {"run_id": run_id, "parent": parent, "at": at, "head": head, "owner": owner}
        rows = await self._database.ask(_MAKE, told, is_final=parent is not None)
        return (rows[0][0], rows[0][1]) if rows else None

    async def take(self, run_id: str, dead: str, fence: int | None) -> int | None:
        """Become the driver of a run that nobody living drives, or one that is dead; its fence, or None.

        With the `fence` of a claim, whoever drives it by that claim.
        """
        told = {"whose": self._token, "run_id": run_id, "dead": dead, "fence": fence}
        rows = await self._database.ask(_TAKE, told)
        return rows[0][0] if rows else None

    async def claim(
        self, agents: Collection[str], limit: int, lease_s: float, held: Sequence[int]
    ) -> dict[int, Claimed]:
        """Take runs, as a store promises. What is this store's and not `held` was claimed when an answer was lost."""
        told = {"whose": self._token, "agents": list(agents), "held": list(held), "lease_s": lease_s}

        async def claimed(connection: Connection) -> dict[int, Claimed]:
            await rows_of(connection, _LIVE_ON, told)
            owners = await rows_of(connection, _OWNERS)
            left = [one for one, lives in owners if one == self._token or not lives or is_dead_here(one)]
            found = dict[int, Claimed]()
            for statement in (_LEFT, _READY):
                values = {**told, "left": left, "limit": limit - len(found)}
                for _, number, run_id, agent, fence in sorted(await rows_of(connection, statement, values)):
                    found[number] = Claimed(run_id, agent, fence, is_takeover=statement is _LEFT)
            return found

        return await self._database.work(claimed, patience_s=0)

    async def renew(self, driven: Mapping[int, str], lease_s: float) -> list[str]:
        """Extend the lease of this store; those of the runs that it drives and others have taken."""

        async def renewed(connection: Connection) -> list[str]:
            await rows_of(connection, _LIVE, {"whose": self._token, "lease_s": lease_s})
            rows = await rows_of(connection, "SELECT number FROM surefoot.run WHERE owner = %s", (self._token,))
            own = {number for (number,) in rows}
            return [run_id for number, run_id in driven.items() if number not in own]

        return await self._database.work(renewed, patience_s=0, is_urgent=True)

    async def delete(self, run_id: str, end: str) -> None:
        async def deleted(connection: Connection) -> None:
            async with connection.transaction():
                found = await rows_of(connection, _DELETED, (run_id,)) if run_id.isprintable() else []
                if not found:
                    raise RunUnknown(f"unknown run {run_id!r} in the journal {self._database.name}")
                ((number, owner, head, is_driven),) = found
                if is_driven and not is_dead_here(owner):
                    raise RunBusy(f"run {run_id} is being driven; cancel it, or wait until it stands still")
                check_end(run_id, head, end)
                if not await rows_of(connection, _DELETE, {"run": number}):
                    raise UsageError(f"run {run_id} cannot be deleted: another run shares its records")

        await self._database.work(deleted, is_final=True)

    def _posted(self, rows: Sequence[Row]) -> list[Posted]:
        try:
            return [Posted(number, word_of(body), key, *rest) for number, body, key, *rest in rows]
        except ValueError as error:
            raise JournalError(f"journal {self._database.name}: a word cannot be read: {error}") from error
