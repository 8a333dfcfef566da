"""Whole runs as they were written: what every store gives, takes in, and frees."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from journal_cases import EVERY_KIND, KINDS, REPLY, Made, add, started, story, write

from surefoot.journal.codec import digest_of, encode, genesis
from surefoot.journal.memory import MemoryJournal
from surefoot.journal.raw import chain, references
from surefoot.types.archive import Origin, Row
from surefoot.types.attachments import Attachment
from surefoot.types.errors import JournalCorrupt, JournalError, RunBusy, RunUnknown, UsageError
from surefoot.types.events import VERSION, CallEnded, CallStarted, InStep, RunEnded, RunResumed
from surefoot.types.outcomes import Completed
from surefoot.types.ports import JournalStore
from surefoot.types.task import Task
from surefoot.types.tools import ToolResult

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("kind", KINDS)]

GOLDEN = Path(__file__).parents[1] / "golden" / "0.1.0.journal"

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(8) + bytes((0, 0, 0, 1, 0, 0, 0, 1))


async def taken(source: JournalStore, target: JournalStore, run_id: str = "r1", since: int = 0) -> None:
    rows = await source.rows(run_id, since)
    digests = {digest for row in rows for digest in references(row.body) if len(digest) == 64}
    await target.adopt(await source.origin(run_id), rows, [(one, await source.get_blob(one)) for one in digests])


async def hashes(store: JournalStore, run_id: str = "r1") -> list[str]:
    records, wrong = await store.read_recorded(run_id)
    assert wrong == ""
    return [record.hash for record in records]


async def test_own_records_are_given_as_they_were_written(kind: str, made: Made) -> None:
    store = made(kind)
    await write(store, "r1", EVERY_KIND)
    rows, (records, _) = await store.rows("r1"), await store.read_recorded("r1")
    assert [row.body for row in rows] == [encode(event)[0] for event in EVERY_KIND]
    assert [(row.seq, row.at, row.hash.hex()) for row in rows] == [(one.seq, one.at, one.hash) for one in records]
    assert {row.form for row in rows} == {VERSION}
    assert await store.rows("r1", 3, 2) == rows[3:5]
    assert await store.rows("r1", len(rows)) == await store.rows("r1", len(rows) + 9) == []
    began = (await store.summary("r1")).started_at
    assert await store.origin("r1") == Origin("r1", began)
    for asked in (store.rows, store.origin):
        with pytest.raises(RunUnknown):
            await asked("unknown")


async def test_of_a_fork_only_its_own_records_are_given(kind: str, made: Made) -> None:
    store = made(kind)
    await write(store, "r1", story())
    await store.fork("r1", 4, "f")
    assert await store.rows("f") == []
    await add(store, "f", CallStarted("c9"), RunEnded(Completed("x")))
    assert [row.seq for row in await store.rows("f")] == [4, 5]
    assert [row.seq for row in await store.rows("f", 5)] == [5]
    origin = await store.origin("f")
    assert (origin.parent, origin.fork) == ("r1", 4)


@pytest.mark.parametrize("to", KINDS)
async def test_what_is_adopted_has_the_same_hashes_summary_and_forks(kind: str, to: str, made: Made) -> None:
    if kind == to == "postgres":
        pytest.skip("there is one database")
    source, target = made(kind), made(to)
    await write(source, "r1", EVERY_KIND)
    await source.fork("r1", 5, "f")
    await add(source, "f", *story("f")[3:])
    for run_id in ("r1", "f"):
        await taken(source, target, run_id)
        assert await hashes(target, run_id) == await hashes(source, run_id)
        assert await target.origin(run_id) == await source.origin(run_id)
        here, there = [replace(await one.summary(run_id), change=0, parent="") for one in (source, target)]
        assert replace(here, standing="", status="") == replace(there, standing="", status="")
    await add(target, "f", RunResumed("Ada"))  # it can be driven on
    assert (await hashes(target, "f"))[:-1] == await hashes(source, "f")


async def test_nobody_takes_up_what_was_adopted_before_somebody_says_so(kind: str, made: Made) -> None:
    source, target = made("memory"), made(kind)
    first = replace(started(), agent="clerk")
    await write(source, "r1", [first])
    assert (await source.summary("r1")).status == "queued"
    await taken(source, target)
    assert await target.claim(["clerk"], 5, 30) == []
    assert (await target.summary("r1")).status == "interrupted"


async def test_a_run_grows_by_further_pieces_and_what_is_there_must_be_the_same(kind: str, made: Made) -> None:
    source, target = made("memory"), made(kind)
    await write(source, "r1", story()[:4])
    await taken(source, target)
    await add(source, "r1", *story()[4:])
    await taken(source, target, since=3)
    await taken(source, target, since=3)
    assert await hashes(target) == await hashes(source)
    other = made("memory")
    await write(other, "r1", [*story()[:4], CallStarted("other")])
    with pytest.raises(JournalError, match="record 4 is another one"):
        await taken(other, target)
    assert await hashes(target) == await hashes(source)


async def test_what_does_not_follow_or_was_altered_is_refused_whole(kind: str, made: Made) -> None:
    source, target = made("memory"), made(kind)
    await write(source, "r1", story())
    origin, rows = await source.origin("r1"), await source.rows("r1")
    blob = (digest_of(b"x"), b"y")
    wrong = [rows[1:], [rows[0], rows[2]], [rows[0], rows[1]._replace(body=rows[2].body)], [rows[0]._replace(at=1.0)]]
    blobs = [(one, await source.get_blob(one)) for one in references(rows[0].body)]
    with pytest.raises(JournalError, match="no bytes of digest"):
        await target.adopt(origin, rows)
    for given in wrong:
        with pytest.raises(JournalCorrupt):
            await target.adopt(origin, given, blobs)
    with pytest.raises(JournalError, match="were altered"):
        await target.adopt(origin, rows, [*blobs, blob])
    with pytest.raises(RunUnknown):
        await target.summary("r1")
    with pytest.raises(UsageError, match="unknown run 'p'"):
        await target.adopt(replace(origin, parent="p", fork=1))
    await target.adopt(origin, rows, blobs)
    with pytest.raises(UsageError, match="another one"):
        await target.adopt(replace(origin, parent="p", fork=2))


async def test_a_run_that_is_driven_takes_nothing_in(kind: str, made: Made) -> None:
    source, target = made("memory"), made(kind)
    await write(source, "r1", story()[:2])
    await taken(source, target)
    run = await target.open("r1")
    with pytest.raises(RunBusy):
        await taken(source, target)
    await run.release()


@pytest.mark.parametrize("to", KINDS)
async def test_records_of_former_forms_keep_theirs(kind: str, to: str, made: Made) -> None:
    first, *lines = GOLDEN.read_bytes().splitlines()
    tools, previous, rows = first.partition(b"\t")[2], genesis("golden"), list[Row]()
    for seq, line in enumerate(lines):
        form, _, body = line.partition(b"\t")
        previous = chain(previous, int(form), 1.5 + seq, body)
        rows.append(Row(seq, 1.5 + seq, int(form), body, previous))
    if kind == to == "postgres":
        pytest.skip("there is one database")
    source, target = made(kind), made(to)
    await source.adopt(Origin("golden", 1.5), rows, [(digest_of(tools), tools)])
    await taken(source, target, "golden")
    assert await target.rows("golden") == await source.rows("golden") == rows
    assert await hashes(target, "golden") == [row.hash.hex() for row in rows]
    assert (await target.summary("golden")).status == "completed_partial"


def age(kind: str, request: pytest.FixtureRequest) -> None:
    """Let a day pass for bytes in PostgreSQL."""
    if kind == "postgres":
        psycopg = pytest.importorskip("psycopg")
        with psycopg.connect(request.getfixturevalue("postgres_server"), autocommit=True) as server:
            server.execute("UPDATE surefoot.blob SET first_at = first_at - interval '2 days'")


async def test_only_bytes_that_nothing_refers_to_go(kind: str, made: Made, request: pytest.FixtureRequest) -> None:
    store = made(kind)
    run = await store.open("r1", create=True)
    picture = Attachment.from_bytes(PICTURE, "a.png")
    one, two, lost = [await run.put_blob(data) for data in (PICTURE, b"result", b"lost")]
    assert picture.digest == one
    task = replace(started(), task=Task("Look.", (picture,)))
    result = InStep("s1", 1, CallEnded("c1", ToolResult("cut", blob=two)))
    await run.append([task, result, *story()[5:]], "written")
    await run.release()
    await write(store, "r2", [*story("r2")[:1], REPLY, *story()[5:]])
    age(kind, request)
    assert await store.sweep() == len(b"lost")
    assert [await store.get_blob(digest) for digest in (one, two)] == [PICTURE, b"result"]
    with pytest.raises(JournalError):
        await store.get_blob(lost)
    await store.delete("r1")
    assert await store.sweep() == len(PICTURE + b"result")
    assert (await store.read_recorded("r2"))[1] == ""
    assert await store.sweep() == 0


async def test_two_that_sweep_at_once_remove_each_once(kind: str, made: Made, request: pytest.FixtureRequest) -> None:
    store = made(kind)
    run = await store.open("r1", create=True)
    await run.put_blob(b"lost")
    await run.append(story(), "written")
    await run.release()
    age(kind, request)
    assert sum(await asyncio.gather(store.sweep(), store.sweep())) == len(b"lost")


async def test_bytes_of_a_run_that_has_not_ended_stay(kind: str, made: Made) -> None:
    store = made(kind)
    run = await store.open("r1", create=True)
    await run.append(story()[:1], "written")
    digest = await run.put_blob(b"whole")
    await run.append(story()[1:2], "written")
    assert await store.sweep() == 0
    await run.release()
    assert await store.sweep() == 0
    await add(store, "r1", CallEnded("c1", ToolResult("cut", blob=digest)))
    assert await store.sweep() == 0
    assert await store.get_blob(digest) == b"whole"


async def test_lines_of_a_journal_tell_of_runs_that_were_adopted_and_deleted(kind: str, made: Made) -> None:
    source, lines = made(kind), list[str]()
    await write(source, "r1", story())
    await write(source, "r2", story("r2"))
    kept = MemoryJournal(keep=lines.extend)
    for run_id in ("r1", "r2"):
        await taken(source, kept, run_id)
    await kept.delete("r1")
    again = MemoryJournal(lines)
    assert await again.beginning("") == ["r2"]
    assert await hashes(again, "r2") == await hashes(source, "r2")
