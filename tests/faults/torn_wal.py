"""Damage the log of a journal whose process was killed, and see whether a run is ever believed that lacks records.

A process drives runs that send letters, which cannot be called back, and is killed. Copies of what it leaves get a log
with a byte changed, an end cut off, or none at all. Each run of each copy must then have every record that was written,
or be `JournalCorrupt` by name; those that are whole go on to their end; and no letter is sent twice.
`python tests/faults/torn_wal.py [COPIES] [SEED]`.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from surefoot import Agent, SqliteJournal, tool
from surefoot.journal.upkeep import verify
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.types.errors import JournalError
from surefoot.types.messages import ModelRequest
from surefoot.types.ports import JournalStore

RUNS = tuple(f"run-{number}" for number in range(6))
LETTERS = 40
WAIT_S = 60.0
END_BYTES = 60_000
"""The end of a log, where a change takes only some runs along; half of the damage is done there."""


@dataclass
class Found:
    """What became of the runs of all copies."""

    whole: int = 0
    named: int = 0
    silent: list[str] = field(default_factory=list[str])
    again: list[str] = field(default_factory=list[str])
    stranded: list[str] = field(default_factory=list[str])


def agent_on(folder: Path, store: JournalStore) -> Agent:
    """An agent whose every letter is noted in a book when it is sent."""
    book = os.open(folder / "book.txt", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    @tool
    async def send(to: str) -> str:
        """Send a letter, which cannot be called back."""
        os.write(book, f"{to}\n".encode())
        return f"sent to {to}"

    def reply(request: ModelRequest) -> Scripted:
        run_id = request.messages[0].content.rpartition(" ")[2]
        sent = sum(1 for message in request.messages if message.role == "assistant")
        return calls(("send", {"to": f"{run_id}/{sent}"})) if sent < LETTERS else "all sent"

    return Agent(FunctionModel(reply), tools=[send], journal=store)


async def drive(folder: Path) -> None:
    """Two runs from their beginning to their end, then the others side by side."""
    store = SqliteJournal(folder / "journal.db")
    agent = agent_on(folder, store)
    for run_id in RUNS[:2]:
        await agent.run(f"Send letters as {run_id}", run_id=run_id)
    await agent.aclose()
    await asyncio.gather(*(agent.run(f"Send letters as {run_id}", run_id=run_id) for run_id in RUNS[2:]))


def killed(folder: Path, letters: int) -> None:
    """What a process leaves that is killed once it has sent so many letters."""
    book = folder / "book.txt"
    process = subprocess.Popen([sys.executable, __file__, "drive", str(folder)], stderr=subprocess.PIPE)
    until = time.monotonic() + WAIT_S
    while not book.exists() or book.read_bytes().count(b"\n") < letters:
        if process.poll() is not None or time.monotonic() > until:
            process.kill()
            raise AssertionError(f"it did not get that far: {process.communicate(timeout=WAIT_S)}")
        time.sleep(0.001)
    process.kill()
    process.communicate(timeout=WAIT_S)


def damage(log: Path, chance: random.Random) -> str:
    """Do one thing to the log that a bad disk or a careless copy may do."""
    data = bytearray(log.read_bytes())
    at = chance.choice((chance.randrange(len(data)), len(data) - 1 - chance.randrange(min(len(data), END_BYTES))))
    match chance.choice(("flip", "flip", "cut", "cut", "gone")):
        case "flip":
            data[at] ^= 1 << chance.randrange(8)
            log.write_bytes(data)
            return f"a bit of byte {at} changed"
        case "cut":
            log.write_bytes(data[:at])
            return f"cut at byte {at}"
        case _:
            log.unlink()
            return "gone"


async def records_of(path: Path) -> dict[str, int]:
    """How many records each run has."""
    store = SqliteJournal(path)
    counts = {run_id: len((await store.read_recorded(run_id))[0]) for run_id in RUNS}
    await store.aclose()
    return counts


async def judge(folder: Path, truth: dict[str, int], what: str, found: Found) -> None:
    """See what is told of each run, and go on with those that are whole."""
    path, book = folder / "journal.db", folder / "book.txt"
    named = {fault.run_id for fault in verify(path)}
    store = SqliteJournal(path)
    agent = agent_on(folder, store)
    for run_id in RUNS:
        before = book.read_bytes()
        try:
            run = await agent.resume(run_id)
            while run.status == "paused":
                (call,) = run.waiting
                is_sent = f"{call.arguments['to']}\n".encode() in before
                await agent.settle(run_id, call.id, "done" if is_sent else "not_done", by="Ada")
                run = await agent.resume(run_id)
        except JournalError as error:
            is_named = run_id in str(error) and run_id in named and book.read_bytes() == before
            found.named += is_named
            found.silent += [] if is_named else [f"{what}: {run_id}: {error}"]
            continue
        found.whole += 1
        found.stranded += [] if run.status == "completed" else [f"{what}: {run_id}: {run.status}"]
        records, wrong = await store.read_recorded(run_id)
        found.silent += [f"{what}: {run_id}: {wrong}"] if wrong or len(records) < truth[run_id] else []
    await agent.aclose()
    again = Counter(book.read_text().splitlines())
    found.again += [f"{what}: {letter} sent {count} times" for letter, count in again.items() if count > 1]


def torn(copies: int, seed: int, folder: Path) -> Found:
    """So many damaged copies, each of a journal left by one of a few killed processes."""
    found, chance = Found(), random.Random(seed)
    left, truth = folder, dict[str, int]()
    for number in range(copies):
        if number % 20 == 0:
            left = folder / f"left-{number}"
            left.mkdir()
            killed(left, 2 * LETTERS + chance.randrange(LETTERS, 3 * LETTERS))
            sound = folder / f"sound-{number}"
            shutil.copytree(left, sound)
            truth = asyncio.run(records_of(sound / "journal.db"))
        copy = folder / f"copy-{number}"
        shutil.copytree(left, copy)
        (copy / "journal.db-shm").unlink(missing_ok=True)
        what = f"copy {number}, log {damage(copy / 'journal.db-wal', chance)}"
        asyncio.run(judge(copy, truth, what, found))
        shutil.rmtree(copy)
    return found


def main() -> int:
    """Print what became of the copies; 1 when anything was lost in silence or done twice."""
    copies, seed = (int(one) for one in (*sys.argv[1:], *("60", "0")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as folder:
        found = torn(copies, seed, Path(folder))
    print(f"{copies} copies, seed {seed}: {found.whole} runs whole, {found.named} named")
    for told, what in (("lost in silence", found.silent), ("sent again", found.again), ("not ended", found.stranded)):
        print(f"{told}: {len(what)}", *what[:5], sep="\n  ")
    return 1 if found.silent or found.again or found.stranded else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["drive"]:
        asyncio.run(drive(Path(sys.argv[2])))
    else:
        raise SystemExit(main())
