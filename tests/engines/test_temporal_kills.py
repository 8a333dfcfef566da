"""Workers of Temporal, and its server, killed in the middle: nothing happens twice, and each run comes to its end."""

from __future__ import annotations

import asyncio
import random
import subprocess
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("temporalio", reason="the extra `temporal` is not installed")

from dev_server import Server

from processes import COMMAND, LIMIT_S, command
from surefoot import Agent
from surefoot.cli.agents_file import agents_in
from surefoot.core.loop.replay import replay
from surefoot.journal.memory import store_of
from surefoot.types.ports import JournalStore

pytestmark = [pytest.mark.anyio, pytest.mark.temporal, pytest.mark.timeout(300)]

AGENTS = '''
import asyncio, os
from surefoot import Agent, Budget, LoopConfig, ToolCallContext, tool
from surefoot.testing.models import FunctionModel, calls

def note(line):
    book = os.open("book", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(book, (line + "\\n").encode())
    os.fsync(book)
    os.close(book)

@tool(effect="read")
async def look(n: int, context: ToolCallContext) -> str:
    """Look it up."""
    note(f"look {context.run_id} {n}")
    await asyncio.sleep(0.05)
    return f"seen {n}"

@tool
async def pay(n: int, context: ToolCallContext) -> str:
    """Pay once."""
    note(f"pay {context.run_id} {n}")
    await asyncio.sleep(0.3)
    return f"paid {n}"

def reply(request):
    done = sum(one.role == "tool" for one in request.messages)
    return "Done." if done >= 8 else calls(("pay" if done % 2 else "look", {"n": done}))

config = LoopConfig(budget=Budget(max_steps=20))
agents = {"clerk": Agent(FunctionModel(reply), tools=[look, pay], config=config)}
'''


class Shop:
    """Runs that pay and look, in a folder with a book of what they really did."""

    def __init__(self, folder: Path, server: Server, journal: str) -> None:
        (folder / "agents.py").write_text(AGENTS, encoding="utf-8")
        self.folder, self.journal, self.address = folder, journal, server.address
        self.queue = folder.name
        self.store: JournalStore = store_of(journal)
        self.clerk: Agent = agents_in(folder / "agents.py", self.store, str(folder / "runs.db"))["clerk"]
        self.runs: list[str] = []

    async def start(self, how_many: int) -> None:
        for _ in range(how_many):
            self.runs.append((await self.clerk.start("go", run_id=f"{self.folder.name}-{len(self.runs)}")).id)

    @contextmanager
    def worker(self, size: str) -> Generator[subprocess.Popen[str]]:
        options = ("--engine", "temporal", "--address", self.address, "--queue", self.queue, "--activity", size)
        whole = (*COMMAND, "worker", "--agents", "agents.py", "--journal", self.journal, *options)
        with (self.folder / "worker.log").open("a") as log:
            process = subprocess.Popen(whole, cwd=self.folder, stdout=log, stderr=log, text=True)
        try:
            yield process
        finally:
            process.kill()
            process.wait(timeout=60)

    def book(self) -> list[str]:
        book = self.folder / "book"
        return book.read_text(encoding="utf-8").splitlines() if book.exists() else []

    async def is_over(self) -> bool:
        """Whether all runs have ended; a person looks into the book for each call in doubt."""
        is_over = True
        for run_id in self.runs:
            summary = await self.store.summary(run_id)
            assert summary.standing != "set_aside", summary.reason
            is_over = is_over and summary.status == "completed"
            if summary.status == "paused":
                records, _ = await self.store.read_recorded(run_id)
                told = replay([one.event for one in records]).state
                for call in told.calls:
                    if call.is_in_doubt:
                        is_made = f"pay {run_id} {call.arguments['n']}" in self.book()
                        await self.clerk.settle(run_id, call.id, "done" if is_made else "not_done", by="Ada")
        return is_over

    async def end(self, limit_s: float) -> None:
        until = time.monotonic() + limit_s
        while not await self.is_over():
            assert time.monotonic() < until, (self.folder / "worker.log").read_text(encoding="utf-8")[-3000:]
            await asyncio.sleep(0.2)

    async def judge(self) -> None:
        """The chain is whole, a replay is alike, and nothing was paid twice."""
        paid = Counter(line for line in self.book() if line.startswith("pay"))
        assert set(paid.values()) == {1}, paid
        assert len(paid) == 4 * len(self.runs)
        for run_id in self.runs:
            records, wrong = await self.store.read_recorded(run_id)
            assert wrong == ""
            assert replay([one.event for one in records]).differs_at is None
        await self.clerk.aclose()


@pytest.mark.parametrize("size", ["move", pytest.param("run", marks=pytest.mark.scale)])
async def test_a_worker_dies_while_it_pays(temporal_server: Server, tmp_path: Path, size: str) -> None:
    shop = Shop(tmp_path, temporal_server, str(tmp_path / "runs.db"))
    await shop.start(2)
    with shop.worker(size) as worker:
        until = time.monotonic() + 60
        while not any(line.startswith("pay") for line in shop.book()):
            assert time.monotonic() < until, (tmp_path / "worker.log").read_text(encoding="utf-8")[-3000:]
            await asyncio.sleep(0.02)
        worker.kill()
    with shop.worker(size):
        await shop.end(120)
    await shop.judge()


async def test_what_the_commands_say_of_a_run_without_a_workflow(temporal_server: Server, tmp_path: Path) -> None:
    shop = Shop(tmp_path, temporal_server, str(tmp_path / "runs.db"))
    await shop.start(1)
    where = ("--journal", shop.journal, "--address", shop.address)

    checked = command("temporal", "check", *where, folder=tmp_path)
    out, _ = await asyncio.to_thread(checked.communicate, LIMIT_S)
    assert checked.returncode == 1
    assert f"{shop.runs[0]}: is queued, but no workflow is open for it" in out.splitlines()
    adopted = command("temporal", "adopt", shop.runs[0], *where, folder=tmp_path)
    _, err = await asyncio.to_thread(adopted.communicate, LIMIT_S)
    assert adopted.returncode == 2
    assert "has no open workflow" in err
    await shop.clerk.aclose()


@pytest.mark.scale
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("size", ["move", "run"])
async def test_workers_die_thirty_times_and_the_server_five(temporal_server: Server, tmp_path: Path, size: str) -> None:
    dice = random.Random(7)  # noqa: S311
    shop = Shop(tmp_path, temporal_server, str(tmp_path / "runs.db"))
    for at in range(30):
        await shop.start(1)
        with shop.worker(size) as worker:
            await asyncio.sleep(dice.uniform(1.0, 6.0))
            await shop.is_over()
            worker.kill()
            if at % 6 == 5:
                temporal_server.kill()
                temporal_server.start()
    with shop.worker(size):
        await shop.end(600)
    await shop.judge()
