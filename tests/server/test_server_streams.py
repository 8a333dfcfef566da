"""Streams: each record once and in order, whatever is cut; what is said meanwhile; places, not queues."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from cutting import cutting, followed
from server_world import Served, serving, token_of

from surefoot import MemoryJournal, SqliteJournal
from surefoot.server.signals import KEPT_CHARS, Heard, Live
from surefoot.server.site import Limits
from surefoot.server.tails import KEPT_BYTES
from surefoot.types.config import LoopConfig
from surefoot.types.events import Event, RunEnded, RunNoted, RunStarted, Speaker
from surefoot.types.messages import CallPreview, Inside, ReasoningDelta, Reset, TextDelta, ToolProgress
from surefoot.types.outcomes import Completed
from surefoot.types.ports import JournalStore
from surefoot.types.task import Task
from surefoot.types.tools import Catalogue

pytestmark = pytest.mark.anyio

END = RunEnded(Completed("done"))


def opening(run_id: str, **given: str) -> RunStarted:
    labels = {f"surefoot.{name}": value for name, value in given.items() if name == "tenant"}
    return RunStarted(
        run_id, Task("a task"), {"solo": Speaker("test:none")}, Catalogue(()), {}, config=LoopConfig(), labels=labels
    )


async def record(store: JournalStore, run_id: str, events: Sequence[Event], *, is_new: bool = True) -> None:
    journal = await store.open(run_id, create=is_new)
    await journal.append([opening(run_id), *events] if is_new else events, "written")
    await journal.release()


def notes(count: int, size: int = 100) -> list[Event]:
    return [RunNoted(f"{number} " + "x" * size, "tester") for number in range(count)]


def ids(frames: Sequence[dict[str, str]]) -> list[int]:
    return [int(one["id"]) for one in frames if "id" in one]


async def test_a_stream_gives_each_record_as_the_journal_has_it_and_then_ends(
    store: MemoryJournal, served: Served
) -> None:
    await record(store, "one", [*notes(700), END])
    frames = await served.frames("/v1/runs/one/events")
    assert ids(frames) == list(range(702))
    assert frames[-1] == {"event": "end", "data": "{}"}
    assert [frames[0]["event"], frames[1]["event"], frames[701]["event"]] == ["RunStarted", "RunNoted", "RunEnded"]
    page = await served.get("/v1/runs/one/events?since=0&limit=1000")
    assert [json.loads(one["data"]) for one in frames[:-1]] == page["events"]
    assert page["total"] == 702
    assert page["next"] is None


async def test_a_reader_goes_on_where_it_was_and_sees_what_comes(store: MemoryJournal, served: Served) -> None:
    await record(store, "one", notes(10))
    reading = asyncio.ensure_future(served.frames("/v1/runs/one/events?since=3", headers={"Last-Event-ID": "7"}))
    await asyncio.wait((reading,), timeout=0.3)
    await record(store, "one", [*notes(3), END], is_new=False)
    frames = await reading
    assert ids(frames) == list(range(8, 15))
    assert ids(await served.frames("/v1/runs/one/events?since=12")) == [12, 13, 14]
    assert ids(await served.frames("/v1/runs/one/events?since=99")) == []
    for last in ("x", "-1", "1" * 30, "²"):
        headers = {"Last-Event-ID": last, "Accept": "text/event-stream"}
        bad = await served.ask("GET", "/v1/runs/one/events", headers=headers)
        assert bad.problem == "invalid", last


async def cut_at_random(store: JournalStore, cuts: int, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311  # it picks places to cut
    await record(store, "one", [*notes(60), END])
    done = 0
    async with (
        serving(store) as served,
        cutting(served.port, lambda: dice.choice((dice.randrange(1, 900), dice.randrange(1, 9_000)))) as proxy,
    ):  # what precedes the first record is over 600 bytes, so that cuts fall there, too
        while done < cuts:
            before = proxy.cuts
            frames = await followed(proxy.port, "/v1/runs/one/events")
            assert ids(frames) == list(range(62)), proxy.cuts
            assert json.loads(frames[30]["data"])["event"]["text"].startswith("29 ")
            done += proxy.cuts - before


@pytest.mark.parametrize("times", [100, pytest.param(1_000, marks=pytest.mark.scale)])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_stream_that_is_cut_anywhere_is_joined_again(kind: str, times: int, tmp_path: Path) -> None:
    store = MemoryJournal() if kind == "memory" else SqliteJournal(tmp_path / "journal.db")
    await cut_at_random(store, times, 7)
    await store.aclose()


async def test_many_readers_follow_a_run_that_goes_on() -> None:
    store = MemoryJournal()
    await record(store, "one", notes(5))
    async with serving(store, limits=Limits(streams_a_token=100)) as served:
        readers = [asyncio.ensure_future(served.frames("/v1/runs/one/events")) for _ in range(50)]
        journal = await store.open("one")
        for one in notes(100, 600):
            await journal.append([one])
            await asyncio.sleep(0)
        await journal.append([END])
        await journal.release()
        for frames in await asyncio.gather(*readers):
            assert ids(frames) == list(range(107))
        assert served.site.pace.streams == 0


async def test_a_reader_that_is_slow_loses_nothing_and_costs_no_memory(store: MemoryJournal, served: Served) -> None:
    await record(store, "one", [])
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=2**20)
    head = f"GET /v1/runs/one/events HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {token_of('all')}\r\n"
    writer.write(f"{head}Accept: text/event-stream\r\n\r\n".encode())
    assert b"RunStarted" in await reader.readuntil(b"event: RunStarted")
    quick = asyncio.ensure_future(served.frames("/v1/runs/one/events"))
    await record(store, "one", [*notes(3_000, 10_000), END], is_new=False)  # 30 MB, which no socket's buffers hold
    assert ids(await quick) == list(range(3_002))
    assert served.site.tails.size <= KEPT_BYTES + 20_000
    rest = await asyncio.wait_for(reader.read(), 60)
    assert rest.count(b"\nid: ") == 3_001
    assert rest.endswith(b"event: end\ndata: {}\n\n")
    writer.close()


async def test_a_run_that_stands_still_says_so_and_the_stream_stays(store: MemoryJournal, served: Served) -> None:
    journal = await store.open("one", create=True)
    await journal.append([opening("one")])
    reading = asyncio.ensure_future(served.frames("/v1/runs/one/events", until="paused"))
    await asyncio.wait((reading,), timeout=0.6)
    assert not reading.done()
    await journal.release("approval")
    frames = await reading
    assert json.loads(frames[-1]["data"])["status"] == "paused"


async def test_what_is_said_is_told_from_its_beginning_and_never_moves_the_place(
    store: MemoryJournal, served: Served
) -> None:
    await record(store, "one", [])
    served.site.live.tell("one", TextDelta("Alice "))
    reading = asyncio.ensure_future(served.frames("/v1/runs/one/events", most=2))
    frames = await reading
    assert frames[1]["event"] == "signal"
    assert "id" not in frames[1]
    assert json.loads(frames[1]["data"]) == {"type": "text", "step": 1, "text": "Alice "}


def test_a_reader_of_what_is_said_has_a_place_in_it() -> None:
    live, heard = Live(), Heard()
    wake = asyncio.Event()

    def told() -> list[dict[str, object]]:
        frames = [one.decode() for one in said.since(heard)]
        assert all(one.startswith("event: signal\ndata: ") and one.endswith("\n\n") for one in frames)
        return [json.loads(one.splitlines()[1].removeprefix("data: ")) for one in frames]

    with live.listen("one", wake) as said:
        live.tell("one", ReasoningDelta("hm"))
        live.tell("one", TextDelta("Ali"))
        live.tell("one", TextDelta("ce\u202e"))
        assert wake.is_set()
        words = {"type": "text", "step": 1, "text": "Alice\\u202e"}
        assert told() == [{"type": "reasoning", "step": 1, "text": "hm"}, words]
        assert told() == []
        live.tell("one", TextDelta(" has"))
        assert told() == [{"type": "text", "step": 1, "text": " has"}]
        live.tell("one", Reset("it broke off"))
        live.tell("one", TextDelta("Bob"))
        assert told() == [{"type": "reset", "reason": "it broke off"}, {"type": "text", "step": 1, "text": "Bob"}]
        live.tell("one", CallPreview(0, "send_mail"))
        live.tell("two", Inside("1.0", "one", ToolProgress("1.0", "half", 1, 2)))
        half = {"type": "progress", "call_id": "1.0", "text": "half", "done": 1, "total": 2}
        assert told() == [{"type": "under_way", "name": "send_mail"}, half]
        live.tell("one", TextDelta("x" * (KEPT_CHARS + 500)))
        assert [one["type"] for one in told()] == ["gap", "text"]
        live.tell("one", TextDelta("y" * 10))
        assert told() == [{"type": "text", "step": 1, "text": "y" * 10}]


async def test_places_for_streams_are_counted() -> None:
    store = MemoryJournal()
    await record(store, "one", [])
    async with serving(store, limits=Limits(streams_a_token=2, streams=3)) as served:
        path, accepts = "/v1/runs/one/events", {"Accept": "text/event-stream"}
        tokens = [{"Authorization": f"Bearer {token_of(who)}"} for who in ("all", "all", "reader")]
        open_ones = [await served.client.get(f"{served.url}{path}", headers=accepts | one) for one in tokens]
        for who in ("all", "reader"):
            refused = await served.refused("429 too_many_streams", "GET", path, who=who, headers=accepts)
            assert refused.headers["Retry-After"] == "5"
        assert (await served.ask("GET", "/v1/feed", who="approver")).status == 429
        refused = await served.ask("POST", "/v1/runs", {"agent": "helper", "task": "hello", "stream": True})
        assert (refused.status, len(await store.runs())) == (429, 1)  # and nothing was begun
        for one in open_ones:
            one.close()
        async with asyncio.timeout(10):
            while served.site.pace.streams:  # noqa: ASYNC110  # the server sees them go by itself
                await asyncio.sleep(0)
        assert (await served.frames("/v1/runs/one/events", most=1))[0]["event"] == "RunStarted"


async def test_streams_say_bye_when_the_server_leaves(store: MemoryJournal, served: Served) -> None:
    await record(store, "one", [])
    reading = asyncio.ensure_future(served.frames("/v1/runs/one/events", until="bye"))
    feeding = asyncio.ensure_future(served.frames("/v1/feed", until="bye"))
    await asyncio.wait((reading, feeding), timeout=0.3)
    served.site.leave()
    assert (await reading)[-1]["event"] == "bye"
    assert (await feeding)[-1]["event"] == "bye"
    await served.refused("503 draining", "GET", "/readyz", who="")
    assert (await served.ask("GET", "/healthz", who="")).status == 200


async def test_the_feed_tells_of_runs_as_they_change_and_resumes(store: MemoryJournal, served: Served) -> None:
    await record(store, "before", [END])
    reading = asyncio.ensure_future(served.frames("/v1/feed", most=2))
    await asyncio.wait((reading,), timeout=0.3)
    await record(store, "one", notes(2))
    await record(store, "two", [END])
    frames = await reading
    assert [json.loads(one["data"])["run_id"] for one in frames] == ["one", "two"]
    assert ids(frames) == sorted(ids(frames))
    again = await served.frames("/v1/feed", headers={"Last-Event-ID": frames[0]["id"]}, most=1)
    assert json.loads(again[0]["data"])["run_id"] == "two"
    everything = await served.frames("/v1/feed?since=0", most=3)
    assert {json.loads(one["data"])["run_id"] for one in everything} == {"before", "one", "two"}


async def test_the_feed_holds_no_run_of_another_tenant(store: MemoryJournal, served: Served) -> None:
    reading = asyncio.ensure_future(served.frames("/v1/feed", who="acme", most=1))
    await asyncio.wait((reading,), timeout=0.3)
    await record(store, "hidden", [END])
    journal = await store.open("seen", create=True)
    await journal.append([opening("seen", tenant="acme"), END])
    await journal.release()
    assert json.loads((await reading)[0]["data"])["run_id"] == "seen"
