"""What may happen between a store and its database: lost answers, cut connections, a crash, tables of others."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from journal_cases import REPLY, Made, read_all, started, story, write

from cases import cases
from processes import LIMIT_S
from records import until
from servers import PostgresServer
from surefoot.journal.codec import genesis, rows_of
from surefoot.journal.postgres import PostgresJournal
from surefoot.journal.postgres_follow import Follower
from surefoot.journal.postgres_inbox import _READY  # pyright: ignore[reportPrivateUsage]  # as it is sent
from surefoot.journal.postgres_server import FORMS, Database, Values
from surefoot.journal.postgres_write import Line, Writer
from surefoot.types.errors import (
    JournalCorrupt,
    JournalError,
    JournalTooNew,
    JournalUnavailable,
    LeaseLost,
    RunUnknown,
    UsageError,
)
from surefoot.types.events import CallStarted, Event, RunNoted
from surefoot.types.ports import NO_RECORDS, Durability, Place
from surefoot.types.words import Note

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]

NOTE = Note("more", "mika")
NOTED = RunNoted("more", "mika")
CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'surefoot'"


def does(url: str, statement: str) -> list[tuple[Any, ...]]:  # Any: what a column holds
    """What somebody else does to the database, or asks of it."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


async def locked(url: str, number: int, kind: str = "%") -> None:
    """Return once at least so many wait for a lock, or for one of that kind."""
    waiting = f"SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype LIKE '{kind}'"  # noqa: S608  # words of ours
    while (await asyncio.to_thread(does, url, waiting))[0][0] < number:
        pass


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresJournal]:
    one = PostgresJournal(postgres_url)
    yield one
    await one.aclose()


class Proxy:
    """Stands between a store and its server; the next answers of which there are to be `lost` end their connection."""

    def __init__(self, server: Path, folder: Path) -> None:
        self.lost = 0
        self.path = folder / server.name
        self._server = server
        self._writers: list[asyncio.StreamWriter] = []
        self._serving: set[asyncio.Task[None] | None] = set()

    async def __aenter__(self) -> Proxy:
        self._listener = await asyncio.start_unix_server(self._connected, self.path)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave no connection behind: an open one would be told of in a later test, when it is collected."""
        self._listener.close()
        while self._serving:
            for writer in self._writers:
                writer.transport.abort()
            await asyncio.sleep(0)
        for writer in self._writers:
            with suppress(OSError):
                await writer.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(task := asyncio.current_task())
        self._writers += [writer]
        try:
            there_reader, there = await asyncio.open_unix_connection(self._server)
            self._writers += [there]
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, there, (there, writer), is_answer=False))
                group.create_task(self._pass(there_reader, writer, (there, writer), is_answer=True))
        finally:
            self._serving.remove(task)

    async def _pass(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        both: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
        *,
        is_answer: bool,
    ) -> None:
        while data := await source.read(65536):
            if is_answer and self.lost > 0:
                self.lost -= 1
                break
            target.write(data)
        for one in both:
            one.close()


@pytest.mark.parametrize("durability", ["written", "synced"])
async def test_an_append_whose_answer_is_lost_counts_once(
    postgres_url: str, own_postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory, durability: Durability
) -> None:
    folder = tmp_path_factory.mktemp("p")
    async with Proxy(own_postgres.socket, folder) as proxy:
        store = PostgresJournal(f"{postgres_url.partition('?')[0]}?host={folder}")
        run = await store.open("r1", create=True)
        events: list[Event] = [started()]
        await run.append(events, "written")
        for number in range(5):
            proxy.lost = 1 + number % 2  # also that of whoever asks what there is
            events += (more := [CallStarted(f"c{number}"), REPLY])
            await run.append(more, durability)
        assert await run.read() == events
        await run.release()
        await store.aclose()


async def test_connections_that_are_cut_lose_and_double_nothing(store: PostgresJournal, postgres_url: str) -> None:
    async def drive(name: str) -> None:
        run = await store.open(name, create=True)
        for step in range(30):
            await run.append([CallStarted(name, step)], ("soon", "written", "synced")[step % 3])
        await run.release()

    await store.runs()
    driving = asyncio.gather(*(drive(f"r{number}") for number in range(8)))
    for _ in range(6):
        await asyncio.to_thread(does, postgres_url, CUT)
    await driving
    for number in range(8):
        wanted = [CallStarted(f"r{number}", step) for step in range(30)]
        assert await read_all(store, f"r{number}") == (wanted, "")


async def test_a_run_survives_a_server_that_crashes(postgres_url: str, own_postgres: PostgresServer) -> None:
    store = PostgresJournal(postgres_url)
    run, idle = await store.open("r1", create=True), await store.open("r2", create=True)
    await run.append([started(), CallStarted("c0")], "synced")
    await idle.append([started("r2"), CallStarted("c0")], "written")
    posted = await store.say("r1", NOTE)
    await run.append([CallStarted("c1")], "written", heard=[replace(posted, outcome="applied", seq=2)])
    await run.append([CallStarted("c2")], "written")
    own_postgres.stop()
    waiting = asyncio.ensure_future(run.append([CallStarted("c3")], "synced"))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    own_postgres.start()
    assert (await waiting).seq == 5
    assert [event for event in await run.read() if isinstance(event, CallStarted)] == [
        CallStarted(f"c{number}") for number in range(4)
    ]
    assert await run.words() == []
    await idle.append([CallStarted("c1")], "written")
    assert len(await idle.read()) == 3
    await store.aclose()
    assert [one.events for one in await store.runs()] == [3, 5]
    await store.aclose()


def lose_all_but_one(url: str) -> None:
    """Have the server as a standby that lagged behind leaves it: with one record, and no word."""
    does(url, "DELETE FROM surefoot.event WHERE seq > 0")
    does(url, "UPDATE surefoot.run SET events = 1, head = (SELECT hash FROM surefoot.event)")
    does(url, "DELETE FROM surefoot.word")
    does(url, CUT)


async def test_who_drives_or_follows_a_run_whose_records_a_failover_has_lost_is_told_and_can_go_on(
    store: PostgresJournal, postgres_url: str
) -> None:
    run = await store.open("r", create=True)
    await run.append([NOTED] * 3, "synced")
    following, posted = store.subscribe("r"), await store.say("r", NOTE)
    assert [(await anext(following)).seq for _ in range(3)] == [0, 1, 2]
    lose_all_but_one(postgres_url)
    with pytest.raises(UsageError, match=rf"no word {posted.number}; .* say it again"):
        await store.posted("r", posted.number)
    with pytest.raises(LeaseLost, match=r"run r has 1 of 3 confirmed .* failover .*; release it and open it again"):
        await run.append([NOTED], "synced")
    with pytest.raises(LeaseLost):
        await run.release()
    again = await store.open("r")
    assert await again.read() == [NOTED]
    await again.append([NOTED] * 4, "synced")
    assert len((await store.read_recorded("r"))[0]) == 5
    with pytest.raises(JournalError, match=r"record 2 is not the one that was read: .* failover .* read it anew"):
        await anext(following)


async def test_who_closes_while_the_server_is_away_is_told_what_may_be_missing(
    postgres_url: str, own_postgres: PostgresServer
) -> None:
    store = PostgresJournal(postgres_url)
    run, idle = await store.open("r1", create=True), await store.open("r2", create=True)
    await run.append([started()], "synced")
    await idle.append([started("r2")], "synced")
    own_postgres.stop()
    try:
        await run.append([CallStarted("c1"), CallStarted("c2")])
        with pytest.raises(JournalError, match="may be missing: 2 of run r1; resume these runs once it is back"):
            await store.aclose()
    finally:
        own_postgres.start()
    assert len((await store.read_recorded("r1"))[0]) == 1
    await store.aclose()


async def test_readers_elsewhere_are_told_and_miss_nothing_otherwise(store: PostgresJournal, postgres_url: str) -> None:
    here = PostgresJournal(postgres_url)
    run = await store.open("r1", create=True)
    await run.append([started()], "written")
    records = aiter(here.subscribe("r1"))
    assert (await anext(records)).event == started()
    waiting = asyncio.ensure_future(anext(records))
    await run.append([REPLY], "written")
    assert (await asyncio.wait_for(waiting, 20)).event == REPLY
    waiting = asyncio.ensure_future(anext(records))
    await run.release()
    ((number, head),) = does(postgres_url, "SELECT number, head FROM surefoot.run")
    (row,), *_ = rows_of(number, [CallStarted("c1")], 7.5, Place(2, head), NO_RECORDS)
    with psycopg.connect(postgres_url) as other:  # who tells nobody
        other.execute("INSERT INTO surefoot.event VALUES (%s, %s, %s, %s, %s, %s)", row)
        other.execute("UPDATE surefoot.run SET events = 3, head = %s", (row[5],))
    assert (await asyncio.wait_for(waiting, 20)).event == CallStarted("c1")
    await here.aclose()


async def test_words_and_lists_are_followed_though_a_connection_breaks(
    store: PostgresJournal, postgres_url: str
) -> None:
    here = PostgresJournal(postgres_url)
    run, woken = await store.open("r1", create=True), asyncio.Event()
    await run.append([started()], "written")
    run.listen(woken.set)
    changes = aiter(here.changes(0))
    assert (await asyncio.wait_for(anext(changes), 20)).run_id == "r1"
    does(postgres_url, CUT)
    await here.say("r1", NOTE)
    await asyncio.wait_for(woken.wait(), 20)
    await run.append(story()[1:], "written")
    while (await asyncio.wait_for(anext(changes), 20)).status != "completed":
        pass
    await here.aclose()


async def test_a_claim_whose_answer_was_lost_is_made_again(store: PostgresJournal, postgres_url: str) -> None:
    run = await store.open("r1", create=True)
    await run.append([replace(started(), agent="clerk")])
    await run.release()
    does(postgres_url, "UPDATE surefoot.run SET owner = (SELECT token FROM surefoot.owner), ready_at = NULL, fence = 1")
    assert [(one.run_id, one.fence) for one in await store.claim(["clerk"], 5, 30.0)] == [("r1", 2)]
    assert await store.claim(["clerk"], 5, 30.0) == []


async def test_a_claim_looks_at_no_run_but_those_it_takes(store: PostgresJournal, postgres_url: str) -> None:
    await store.runs()
    does(
        postgres_url,
        "INSERT INTO surefoot.run (run_id, started_at, events, head, agent, ready_at) "
        "SELECT 'r' || i, i, 1, '', 'clerk', 1e9 + 9e8 * (i % 2) + i FROM generate_series(1, 5000) i; ANALYZE",
    )
    with psycopg.connect(postgres_url) as other:
        told = {"whose": "me", "agents": ["clerk"], "held": [], "limit": 9}
        lines = other.execute(f"EXPLAIN (ANALYZE, COSTS OFF) {_READY}".encode(), told).fetchall()
    plan = "\n".join(line for (line,) in lines)
    assert "Index Cond: (ready_at <= " in plan
    assert "Sort" not in plan
    assert "Rows Removed" not in plan


async def test_a_fork_of_a_run_that_is_being_deleted_is_not_made(store: PostgresJournal, postgres_url: str) -> None:
    await write(store, "r1", story())
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT 1 FROM surefoot.run FOR UPDATE")
        other.execute("DELETE FROM surefoot.run")
        forking = asyncio.create_task(store.fork("r1", 2, "r2"))
        done, _ = await asyncio.wait((forking,), timeout=0.5)
        assert not done
    with pytest.raises(RunUnknown):
        await forking


async def test_who_follows_a_run_that_is_deleted_hears_that_it_is_not_there(store: PostgresJournal) -> None:
    run = await store.open("r1", create=True)
    await run.append([started("r1"), REPLY], "written")
    await run.release()
    seen = list[int]()

    async def follow() -> None:
        async for record in store.subscribe("r1"):
            seen.append(record.seq)
            if len(seen) == 2:
                await store.delete("r1")

    with pytest.raises(RunUnknown):
        await asyncio.wait_for(follow(), 30)
    assert seen == [0, 1]


async def test_a_run_of_which_a_fork_is_being_made_is_not_deleted(store: PostgresJournal, postgres_url: str) -> None:
    await write(store, "r1", story())
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT 1 FROM surefoot.run FOR KEY SHARE")
        other.execute(
            "INSERT INTO surefoot.run (run_id, started_at, parent, at, events, head) "
            "SELECT 'r2', 0, number, 1, 1, head FROM surefoot.run"
        )
        deleting = asyncio.create_task(store.delete("r1"))
        done, _ = await asyncio.wait((deleting,), timeout=0.5)
        assert not done
    with pytest.raises(UsageError, match="shares its records"):
        await deleting


async def test_a_run_that_a_store_still_drives_is_not_claimed_by_it(store: PostgresJournal, postgres_url: str) -> None:
    run = await store.open("r1", create=True)
    await run.append([replace(started(), agent="clerk")], "written")
    does(postgres_url, "UPDATE surefoot.run SET owner = '', ready_at = 0")
    assert await store.claim(["clerk"], 5, 30.0) == []


@cases("journal_damage")
async def test_what_was_altered_is_found_and_what_precedes_it_is_read(
    store: PostgresJournal, postgres_url: str, change: str, wrong: str
) -> None:
    await write(store, "r1", story())
    does(postgres_url, change)
    records, told = await store.read_recorded("r1")
    assert wrong in told
    assert [record.event for record in records] == story()[: len(records)]
    run = await store.open("r1")
    with pytest.raises(JournalCorrupt):
        await run.read()
    await run.release()


async def test_appends_touch_no_index(store: PostgresJournal, postgres_url: str) -> None:
    asked = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'run'"
    does(postgres_url, "SELECT pg_stat_reset()")
    run = await store.open("r1", create=True)
    for step in range(100):
        await run.append([CallStarted("c1", step)], "written")
    await run.release()
    await store.aclose()
    while True:  # what was counted is told when a session ends
        updates, hot = (int(str(one)) for one in does(postgres_url, asked)[0])
        if updates >= 100:
            break
    assert hot >= 0.95 * updates


@pytest.fixture
async def bare(postgres_url: str) -> AsyncIterator[str]:
    """The address of a database without any tables."""
    does(postgres_url, "DROP SCHEMA IF EXISTS surefoot CASCADE")
    yield postgres_url
    does(postgres_url, "DROP SCHEMA IF EXISTS surefoot CASCADE")


async def test_tables_of_a_later_form_are_refused_and_older_ones_named(bare: str, tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="it has no tables; run `surefoot db init`"):
        await Database(bare, tables="upgrade").ask("SELECT 1")
    shutil.copy(FORMS / "1.sql", tmp_path)
    await Database(bare, tmp_path).ask("SELECT 1")
    (tmp_path / "2.sql").write_text("CREATE TABLE surefoot.more (one integer)", "utf-8")
    with pytest.raises(JournalError, match="form 1, not 2; run `surefoot db upgrade`"):
        await Database(bare, tmp_path).ask("SELECT 1")
    await Database(bare, tmp_path, tables="upgrade").ask("SELECT one FROM surefoot.more")
    with pytest.raises(JournalTooNew, match="form 2, this surefoot knows 1"):
        await PostgresJournal(bare).runs()


async def test_many_stores_that_begin_at_once_make_the_tables_once(bare: str) -> None:
    stores = [PostgresJournal(bare) for _ in range(5)]
    await asyncio.gather(*(store.open(f"r{number}", create=True) for number, store in enumerate(stores)))
    assert does(bare, "SELECT form FROM surefoot.meta") == [(1,)]
    for store in stores:
        await store.aclose()


async def test_who_may_not_make_the_tables_is_told_who_can(bare: str) -> None:
    does(bare, "DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN")
    url = bare.replace("postgres:@", "guest:@")
    with pytest.raises(JournalError, match=r"permission denied.*`surefoot db init`"):
        await PostgresJournal(url).runs()
    does(bare, "DROP ROLE guest")


async def test_a_server_that_is_not_there_is_named_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"journal postgresql://.*/runs: .*see whether it is up") as caught:
        await PostgresJournal(f"postgresql://ann:s3cret@/runs?host={tmp_path}").runs()
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["ann:s3cret/@h/x", "ann:12/s3cret@h/x", "ann:s3cret@h:port/x", "ann:s3cret@h/x?wrong=1"]
)
def test_an_address_that_cannot_be_read_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(UsageError, match="write postgresql://USER@HOST") as caught:
        PostgresJournal(f"postgresql://{url}")
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


WITHOUT = """
import sys
import surefoot
assert "psycopg" not in sys.modules
sys.modules["psycopg"] = None
from surefoot import Agent
from surefoot.testing.models import ScriptedModel
try:
    Agent(ScriptedModel([]), journal="postgresql://h/d").run_sync("hello")
except surefoot.UsageError as error:
    print(error)
"""


def test_without_the_extra_the_error_names_it() -> None:
    command = [sys.executable, "-c", WITHOUT]
    told = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout
    assert "install the extra postgres: pip install 'surefoot[postgres]'" in told


async def test_leases_are_renewed_while_every_connection_is_busy(store: PostgresJournal, postgres_url: str) -> None:
    await store.open("r1", create=True)
    database = (await store._at_work()).database  # pyright: ignore[reportPrivateUsage] - the room's own tests look behind its door
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(7)")
        busy = [asyncio.create_task(database.ask("SELECT pg_advisory_xact_lock(7)")) for _ in range(5)]
        await locked(postgres_url, 4)
        async with asyncio.timeout(LIMIT_S):
            assert await store.renew(30.0) == []
    await asyncio.gather(*busy)


@pytest.mark.parametrize("durability", ["written", "synced"])
async def test_what_a_crash_took_along_is_sent_again_also_where_a_pooler_hides_the_crash(
    store: PostgresJournal, postgres_url: str, durability: Durability
) -> None:
    run, other = await store.open("r1", create=True), await store.open("r2", create=True)
    await other.append([REPLY], "synced")
    await run.append(wanted := [started(), CallStarted("c1")], "written")
    with psycopg.connect(postgres_url, autocommit=True) as crash:
        crash.execute("UPDATE surefoot.run SET events = 0, head = %s WHERE run_id = 'r1'", (genesis("r1"),))
        crash.execute("DELETE FROM surefoot.event WHERE run = %s", (run.line.number,))
    await other.append([CallStarted("c2")], "synced")
    assert await read_all(store, "r1") == (wanted, "")
    await run.append([REPLY], durability)
    assert await run.read() == [*wanted, REPLY]


async def test_an_append_that_its_server_still_works_on_when_its_connection_breaks_counts_once(
    store: PostgresJournal, postgres_url: str
) -> None:
    run = await store.open("r1", create=True)
    await run.append(events := [started()], "written")
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(1937076837, 1)")  # what keeps a summary waits for it
        events += (more := [replace(started(), agent="clerk")])
        writing = asyncio.ensure_future(run.append(more, "written"))
        await locked(postgres_url, 1)
        for one in gc.get_objects():
            if type(one) is not psycopg.AsyncConnection or one.closed:
                continue
            with socket.socket(fileno=os.dup(one.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)
        await locked(postgres_url, 2)
        other.execute("SELECT pg_advisory_unlock(1937076837, 1)")
        await writing
    assert await run.read() == events
    await run.append([CallStarted("c1")], "synced")


async def test_who_lets_a_run_go_lets_go_only_of_what_it_took_itself(store: PostgresJournal, postgres_url: str) -> None:
    run = await store.open("r1", create=True)
    await run.append([started()], "written")
    does(postgres_url, "UPDATE surefoot.run SET fence = fence + 1")  # the same store has claimed it anew
    await run.release()
    assert does(postgres_url, "SELECT owner <> '' FROM surefoot.run") == [(True,)]


async def test_nothing_is_prepared_which_a_pooler_would_not_find_again(bare: str) -> None:
    database = Database(bare)
    counts = [await database.ask("SELECT count(*) FROM pg_prepared_statements") for _ in range(20)]
    assert counts[-1] == [(0,)]
    await database.aclose()


REFUSES = """
CREATE FUNCTION surefoot.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_advisory_xact_lock(7);
    RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100';
END $$;
CREATE TRIGGER refuse BEFORE INSERT ON surefoot.{} FOR EACH ROW WHEN ({}) EXECUTE FUNCTION surefoot.refuse()"""


async def test_bytes_that_are_refused_are_not_said_to_be_kept(bare: str) -> None:
    store = PostgresJournal(bare)
    await (await store.open("r1", create=True)).append([REPLY], "written")
    does(bare, REFUSES.format("blob", "true"))
    with pytest.raises(JournalUnavailable, match="could not extend file; the server's disk is full; free some space"):
        await store.put_blob("r1", b"bytes")
    does(bare, "DROP TRIGGER refuse ON surefoot.blob")
    assert await store.get_blob(await store.put_blob("r1", b"bytes")) == b"bytes"
    await store.aclose()


async def test_a_run_keeps_its_bytes_when_what_was_sent_before_it_is_refused(bare: str) -> None:
    store = PostgresJournal(bare)
    refused, run = await store.open("r1", create=True), await store.open("r2", create=True)
    await run.append([REPLY], "written")
    does(bare, REFUSES.format("event", "NEW.run = 1"))
    with psycopg.connect(bare, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(7)")
        failing = asyncio.ensure_future(refused.append([REPLY], "written"))
        await locked(bare, 1)
        digest = await run.put_blob(b"bytes")
        writing = asyncio.ensure_future(run.append([CallStarted("c1")], "written"))
        await asyncio.sleep(0)
    with pytest.raises(JournalError, match="disk is full"):
        await failing
    await writing
    assert await run.get_blob(digest) == b"bytes"
    with pytest.raises(JournalError, match="disk is full"):
        await store.aclose()


async def test_of_appends_that_are_sent_together_only_that_one_fails_that_is_refused(bare: str) -> None:
    store = PostgresJournal(bare)
    runs = [await store.open(f"r{number}", create=True) for number in range(1, 6)]
    await asyncio.gather(*(run.append([started(run.run_id)], "written") for run in runs))
    does(bare, REFUSES.format("event", "NEW.run = 2"))
    digest = await runs[1].put_blob(b"bytes")
    writing = (run.append([CallStarted("c1")], "synced") for run in runs)
    failed = [isinstance(one, JournalError) for one in await asyncio.gather(*writing, return_exceptions=True)]
    assert failed == [False, True, False, False, False]
    assert [len((await store.read_recorded(run.run_id))[0]) for run in runs] == [2, 1, 2, 2, 2]
    assert await runs[0].get_blob(digest) == b"bytes"
    with pytest.raises(JournalError, match="disk is full"):
        await store.aclose()


async def test_a_run_that_is_about_to_be_let_go_is_not_claimed(store: PostgresJournal, postgres_url: str) -> None:
    agent = replace(started(), agent="clerk")
    run, other_run = await store.open("r1", create=True), await store.open("r2", create=True)
    await run.append([agent], "written")
    await other_run.append([started("r2")], "written")
    with psycopg.connect(postgres_url) as owners, psycopg.connect(postgres_url, autocommit=True) as changes:
        owners.execute("SELECT 1 FROM surefoot.owner FOR UPDATE")
        changes.execute("SELECT pg_advisory_lock(1937076837, 1)")  # what keeps a summary waits for it
        claims = [asyncio.ensure_future(store.claim(["clerk"], 5, 30.0)) for _ in range(2)]
        await locked(postgres_url, 1)
        writing = asyncio.ensure_future(other_run.append([replace(started("r2"), agent="clerk")], "written"))
        await locked(postgres_url, 1, "advisory")
        await run.append([CallStarted("c1")])
        releasing = asyncio.ensure_future(run.release())
        await asyncio.sleep(0)
        owners.rollback()
        assert await asyncio.gather(*claims) == [[], []]
        changes.execute("SELECT pg_advisory_unlock(1937076837, 1)")
        await asyncio.gather(writing, releasing)
    assert len((await store.read_recorded("r1"))[0]) == 2


async def test_bytes_are_swept_while_others_write_not_those_sent_again(
    store: PostgresJournal, postgres_url: str
) -> None:
    await write(store, "r1", story())
    for data in (b"again", b"lost"):
        await store.put_blob("r1", data)
    does(postgres_url, "UPDATE surefoot.blob SET first_at = first_at - interval '2 days'")
    with psycopg.connect(postgres_url) as other, psycopg.connect(postgres_url) as another:
        other.execute("INSERT INTO surefoot.blob (digest, data) VALUES ('new', 'new')")
        another.execute("UPDATE surefoot.blob SET first_at = now() WHERE data = 'again'")
        sweeping = asyncio.ensure_future(store.sweep())
        await locked(postgres_url, 1)
        another.commit()
        assert await asyncio.wait_for(sweeping, 20) == len(b"lost")
    assert does(postgres_url, "SELECT data FROM surefoot.blob WHERE data IN ('again', 'lost')") == [(b"again",)]


async def test_a_run_that_two_adopt_at_once_is_there_once(
    store: PostgresJournal, postgres_url: str, made: Made
) -> None:
    source = made("memory")
    await write(source, "r1", story()[1:])
    await store.runs()
    origin, rows = await source.origin("r1"), await source.rows("r1")
    with psycopg.connect(postgres_url) as other:  # has begun a moment earlier
        other.execute(
            "INSERT INTO surefoot.run (run_id, started_at, events, head) VALUES ('r1', %s, %s, %s)",
            (origin.began, len(rows), rows[-1].hash),
        )
        for row in rows:
            told = (row.seq, row.at, row.form, row.body, row.hash)
            other.execute("INSERT INTO surefoot.event VALUES (1, %s, %s, %s, %s, %s)", told)
        adopting = asyncio.ensure_future(store.adopt(origin, rows))
        await locked(postgres_url, 1)
        other.commit()
    await adopting
    assert await read_all(store, "r1") == (story()[1:], "")


class Dead:
    """A connection whose line is half-open: it has listened, and nothing comes any more."""

    async def execute(self, statement: str) -> None:
        if not statement.startswith("LISTEN"):
            await asyncio.Event().wait()

    async def notifies(self, *, timeout: float) -> AsyncIterator[object]:  # noqa: ASYNC109  # as psycopg has it
        await asyncio.sleep(0)
        for note in ():
            yield note, timeout

    async def close(self) -> None:
        pass


class HalfOpen(Database):
    """Each of its connections dies without a word."""

    def __init__(self) -> None:
        super().__init__("postgresql://h/d")
        self.connected = 0

    async def connect(self) -> Any:  # Any: it stands for psycopg's
        self.connected += 1
        return Dead()


async def test_who_listens_over_a_line_that_has_died_without_a_word_listens_over_another() -> None:
    database = HalfOpen()
    follower = Follower(database, answer_s=0.01)
    with follower.watch(1):
        await until(lambda: database.connected > 1)
    await follower.aclose()


class Told(Database):
    """Keeps what it is to tell; something else changes as soon as that is done."""

    def __init__(self) -> None:
        super().__init__("postgresql://h/d")
        self.follower, self.told = Follower(self), list[object]()

    async def ask(self, statement: str, values: Values = (), **_: object) -> list[tuple[Any, ...]]:  # noqa: ARG002  # it tells nothing else
        self.told += values
        if self.told == ["1"]:
            asyncio.get_running_loop().call_soon(self.follower.tell, [2])
        return []


async def test_what_changes_in_the_moment_in_which_telling_ends_is_told() -> None:
    database = Told()
    database.follower.tell([1])
    await until(lambda: database.told == ["1", "2"])
    await database.follower.aclose()


async def test_a_run_that_is_opened_anew_while_it_is_found_out_what_was_lost_fails_nobody() -> None:
    writer, line = Writer(Database("postgresql://h/d"), "here", lambda _: None), Line(38, 2, Place(4, b""), NO_RECORDS)
    writer._unsafe[line] = None  # pyright: ignore[reportPrivateUsage]  # as after an append

    class Asked:
        async def execute(self, *_: object) -> Asked:
            return self

        async def fetchall(self) -> list[tuple[Any, ...]]:
            writer.forget(38)
            return []

    await writer._compare(cast("Any", Asked()))  # pyright: ignore[reportPrivateUsage]  # between two answers of the server
    assert line.failure is None
