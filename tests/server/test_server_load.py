"""What many readers cost, and whether long requests hold up short ones."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from pathlib import Path

import pytest
from server_agents import agents
from server_world import serving
from test_server_streams import END, notes, record

from surefoot import SqliteJournal
from surefoot.server.app import prepare
from surefoot.server.site import Limits

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

READERS, EVENTS = 100, 100


READER = """
import asyncio, sys

async def count():
    reader, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
    head = "GET /v1/runs/one/events HTTP/1.0\\r\\nHost: localhost\\r\\nAuthorization: Bearer sft_all\\r\\n"
    writer.write(f"{head}Accept: text/event-stream\\r\\n\\r\\n".encode())
    found, before = 0, b""
    while data := await reader.read(1 << 20):
        found += (before + data).count(b"\\nid: ")
        before = data[-4:]
    return found

async def all():
    print(*await asyncio.gather(*(count() for _ in range(int(sys.argv[2])))))

asyncio.run(all())
"""
"""Readers in a process of their own, which count the frames of their streams: what they cost is not the server's."""


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


async def test_many_readers_of_a_run_cost_little(tmp_path: Path) -> None:
    store = SqliteJournal(tmp_path / "journal.db")
    await record(store, "one", [])
    prepare()
    async with serving(store, limits=Limits(streams_a_token=500, burst=1_000, requests_s=1_000)) as served:
        memory_mib = resident_mib()
        command = (sys.executable, "-c", READER, str(served.port), str(READERS))
        readers = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        async with asyncio.timeout(60):
            while served.site.pace.streams < READERS:  # noqa: ASYNC110  # they come by themselves
                await asyncio.sleep(0.01)
        began = time.process_time()
        journal = await store.open("one")
        for one in notes(EVENTS, 600):
            await journal.append([one], "written")
            await asyncio.sleep(0)
        await journal.append([END])
        await journal.release()
        told, _ = await readers.communicate()
        assert [int(one) for one in told.split()] == [EVENTS + 2] * READERS
        each_us = (time.process_time() - began) / (READERS * EVENTS) * 1e6
        memory_mib = resident_mib() - memory_mib
        print(f"{each_us:.1f} µs CPU an event sent, {memory_mib:.0f} MiB for {READERS} readers")  # noqa: T201
        assert memory_mib < 60
    await store.aclose()


async def test_no_request_holds_up_the_others(tmp_path: Path) -> None:
    store = SqliteJournal(tmp_path / "journal.db")
    await record(store, "one", [*notes(1_000, 300), END])
    async with serving(store, agents(), limits=Limits(burst=10_000, requests_s=10_000)) as served:
        turns: list[float] = []

        async def watch() -> None:
            while True:
                began = time.thread_time()
                await asyncio.sleep(0)
                turns.append(time.thread_time() - began)

        prepare()
        gc.freeze()  # as the server does in a process of its own
        watching = asyncio.ensure_future(watch())
        paths = ("state?at=950", "rows?since=0&limit=1000", "rows?q=nothing", "events?limit=1000", "verify", "export")
        replies = await asyncio.gather(*(served.ask("GET", f"/v1/runs/one/{path}") for path in paths))
        watching.cancel()
        gc.unfreeze()
        assert {reply.status for reply in replies} == {200}, [reply.body[:200] for reply in replies]
        assert json.loads(replies[0].body)["at"] == 950
        turns.sort()
        print(f"longest turns (CPU) {[f'{one * 1000:.0f} ms' for one in turns[-5:]]} of {len(turns)}")  # noqa: T201
    await store.aclose()
