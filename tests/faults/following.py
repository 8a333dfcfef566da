"""How late readers are that follow what another process writes; none may miss a record, or get one twice.

    python tests/faults/following.py

Once as it should be, once with nobody who listens, and once over a pooler, where no notification arrives though it was
asked for. Told is the time from the commit to the reader.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from database import FORK, Database

from surefoot.journal.postgres import PostgresJournal
from surefoot.journal.postgres_server import Connection
from surefoot.types.events import RunNoted

RUNS = 50
_EVERY_S = 1.0


class Deaf:
    """A database at which nobody can listen; the rest is as it was."""

    def __init__(self, database: object) -> None:
        self._database = database

    async def connect(self) -> Connection:
        raise ConnectionRefusedError

    def __getattr__(self, name: str) -> object:
        return getattr(self._database, name)


@dataclass
class Reader:
    """Who follows a run, and when each record came."""

    run_id: str
    places: list[int]
    times: list[float]

    async def follow(self, store: PostgresJournal, records: int) -> None:
        async for record in store.subscribe(self.run_id):
            self.places.append(record.seq)
            self.times.append(time.time())
            if len(self.places) == records:
                return


def write(url: str, seconds: int, told: Path) -> None:
    """A process that appends to each run once a second, and writes down when each record counted."""

    async def append(store: PostgresJournal, run_id: str, number: int, counted: dict[str, list[float]]) -> None:
        run = await store.open(run_id)
        await asyncio.sleep(_EVERY_S * number / RUNS)
        for _ in range(seconds):
            await run.append([RunNoted("more", "Ada")], "written")
            counted[run_id].append(time.time())
            await asyncio.sleep(_EVERY_S)
        await run.release()

    async def all_of_them() -> dict[str, list[float]]:
        store, counted = PostgresJournal(url), {f"r{number}": list[float]() for number in range(RUNS)}
        await asyncio.gather(*(append(store, run_id, at, counted) for at, run_id in enumerate(counted)))
        await store.aclose()
        return counted

    told.write_text(json.dumps(asyncio.run(all_of_them())))


async def measure(url: str, readers: int, seconds: int, told: Path, *, is_deaf: bool) -> str:
    """Follow while that process writes; what came of it. Raises `AssertionError` where a record is missing or twice."""
    store = PostgresJournal(url)
    for number in range(RUNS):
        await (await store.open(f"r{number}", create=True)).append([RunNoted("first", "Ada")], "written")
    await store.aclose()
    if is_deaf:
        opened = await store._at_work()  # pyright: ignore[reportPrivateUsage]  # nobody else has such a server
        vars(opened.follower)["_database"] = Deaf(opened.database)
    following = [Reader(f"r{number % RUNS}", [], []) for number in range(readers)]
    writing = FORK.Process(target=write, args=(url, seconds, told))
    async with asyncio.timeout(seconds + 60), asyncio.TaskGroup() as group:
        for one in following:
            group.create_task(one.follow(store, seconds + 1))
        await asyncio.sleep(2)
        writing.start()
    await asyncio.to_thread(writing.join, 60)
    await store.aclose()
    counted = json.loads(await asyncio.to_thread(told.read_text))
    for one in following:
        assert one.places == list(range(seconds + 1)), f"{one.run_id}: {one.places}"
    late = sorted(
        max(0.0, came - at) for one in following for came, at in zip(one.times[1:], counted[one.run_id], strict=True)
    )
    half, most = late[len(late) // 2], late[int(len(late) * 0.99)]
    waits = f"half within {half:.3f} s, 99 of 100 within {most:.3f} s, all within {late[-1]:.3f} s"
    return f"{len(late)} records, {waits}"


def main(arguments: Sequence[str]) -> int:
    """Measure all three."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=20)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="following-", ignore_cleanup_errors=True) as folder:
        database = Database(Path(folder))
        for what in ("listening", "nobody listens", "over a pooler"):
            if what == "over a pooler":
                database.pool()
            url, told = database.made(what.replace(" ", "_")), Path(folder) / "told"
            found = asyncio.run(measure(url, given.readers, given.seconds, told, is_deaf=what == "nobody listens"))
            print(f"{what}: {given.readers} readers of {RUNS} runs, {found}", flush=True)
        database.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
