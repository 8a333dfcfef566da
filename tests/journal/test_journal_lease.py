"""Two processes and one journal: one drives, the other waits, follows, or takes over after a death."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from journal_cases import alter, read_all

from processes import Forked, ran, told_until
from surefoot.journal.memory import store_of
from surefoot.journal.sqlite import SqliteJournal
from surefoot.journal.sqlite_file import Owner, is_alive
from surefoot.types.errors import JournalError, RunBusy
from surefoot.types.events import CallStarted, RunEnded
from surefoot.types.outcomes import Stopped

pytestmark = pytest.mark.anyio

DRIVER = """
import asyncio, sys
from surefoot.journal.memory import store_of
from surefoot.types.outcomes import Stopped
from surefoot.types.events import CallStarted, RunEnded

async def main():
    journal = store_of(sys.argv[1])
    run = await journal.open("r1", create=True)
    for line in sys.stdin:
        event = RunEnded(Stopped("told to")) if line == "end\\n" else CallStarted(line.strip())
        await run.append([event], "synced")
        print("done", flush=True)

asyncio.run(main())
"""


class Driver:
    """Another process that drives run r1 and appends what it is told to."""

    def __init__(self, place: str) -> None:
        its, ours = os.pipe()
        self.process, self.line = Forked(DRIVER, place, stdin=its), os.fdopen(ours, "w", 1)
        os.close(its)

    def append(self, what: str) -> None:
        self.line.write(what + "\n")
        assert told_until("\n", self.process, self.process.stdout) == "done\n"

    def kill(self) -> None:
        self.line.close()
        with self.process:
            self.process.kill()


@pytest.fixture
def driver(path: Path) -> Iterator[Driver]:
    one = Driver(str(path))
    yield one
    one.kill()


ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere its lease has to run out")


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, ON_LINUX])])
async def test_a_killed_driver_leaves_its_run_at_once(kind: str, path: Path, request: pytest.FixtureRequest) -> None:
    place = request.getfixturevalue("postgres_url") if kind == "postgres" else str(path)
    driver, journal = await asyncio.to_thread(Driver, place), store_of(place)
    try:
        await asyncio.to_thread(driver.append, "c1")
        with pytest.raises(RunBusy, match="another process"):
            await journal.open("r1")
        assert [info.status for info in await journal.runs()] == ["running"]
        assert await read_all(journal, "r1") == ([CallStarted("c1")], "")
    finally:
        driver.kill()
    assert [info.status for info in await journal.runs()] == ["interrupted"]
    run = await journal.open("r1")
    assert await run.read() == [CallStarted("c1")]
    await run.append([CallStarted("c2")], "written")
    owners = path.with_name("runs.db.owners")
    assert kind == "postgres" or len(list(owners.iterdir())) == 1, "the dead one's file is gone"
    await journal.aclose()
    assert kind == "postgres" or list(owners.iterdir()) == []


async def test_a_run_whose_maker_died_before_its_first_record_is_made_again(
    driver: Driver, journal: SqliteJournal
) -> None:
    driver.append("")  # its run is there from now on
    alter(journal.path, "DELETE FROM event")
    journal.path.with_name("runs.db.heads").write_bytes(b"")
    assert await journal.runs() == []
    with pytest.raises(RunBusy, match="another process"):
        await journal.open("r1", create=True)
    driver.kill()
    run = await journal.open("r1", create=True)
    await run.append([CallStarted("c1")], "written")
    assert await run.read() == [CallStarted("c1")]


async def test_what_another_process_writes_is_followed(driver: Driver, journal: SqliteJournal) -> None:
    driver.append("c1")
    records = aiter(journal.subscribe("r1"))
    async with asyncio.timeout(10):
        assert (await anext(records)).event == CallStarted("c1")
        waiting = asyncio.ensure_future(anext(records))
        await asyncio.sleep(0)
        await asyncio.to_thread(driver.append, "c2")
        assert (await waiting).event == CallStarted("c2")
        await asyncio.to_thread(driver.append, "end")
        assert [record.event async for record in records] == [RunEnded(Stopped("told to"))]


FORKER = """
import asyncio, os, sys
from surefoot.journal.memory import store_of
from surefoot.journal.sqlite import SqliteJournal

journal = SqliteJournal(sys.argv[1])
asyncio.run(journal.open("r1", create=True))
child = os.fork()
try:
    asyncio.run(journal.runs())
except Exception as error:
    print(type(error).__name__, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print("parent goes on")
asyncio.run(journal.aclose())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_child_needs_a_store_of_its_own(tmp_path: Path) -> None:
    assert ran(FORKER, str(tmp_path / "runs.db")).stdout == "UsageError\nparent goes on\n"


def test_an_owner_is_alive_until_it_gives_up(tmp_path: Path) -> None:
    folder = tmp_path / "owners"
    owner = Owner(folder)
    assert is_alive(folder, owner.token)
    owner.give_up()
    assert not is_alive(folder, owner.token)
    (folder / owner.token).write_bytes(b"left over from a crash, and damaged too" * 99)
    assert not is_alive(folder, owner.token)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("token", ["", "x", "../outside", "0" * 31, "0" * 32])
def test_a_token_that_names_no_owner_touches_nothing(tmp_path: Path, token: str) -> None:
    folder, outside = tmp_path / "owners", tmp_path / "outside"
    folder.mkdir()
    outside.write_bytes(b"")
    assert not is_alive(folder, token)
    assert outside.exists()


def test_an_owner_needs_a_place(tmp_path: Path) -> None:
    (tmp_path / "owners").write_bytes(b"")
    with pytest.raises(JournalError, match="owners"):
        Owner(tmp_path / "owners")
