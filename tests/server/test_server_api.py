"""Every address of the API: the good case, each right missing, another tenant, each problem."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from server_agents import agents
from server_world import LIMIT_S, Reply, Served, serving

from cases import rows
from surefoot import Agent, MemoryJournal, SqliteJournal, tool
from surefoot.core.loop.fold import fold
from surefoot.server.about import delete
from surefoot.server.answers import KINDS, Problem
from surefoot.server.api import Endpoint, Nothing, checked
from surefoot.server.app import ENDPOINTS
from surefoot.server.protocols.openai import Lax
from surefoot.server.shapes import Start
from surefoot.server.site import Limits
from surefoot.testing.models import ScriptedModel, calls
from surefoot.types.ports import JournalStore

pytestmark = pytest.mark.anyio

Json = Any

BODIES: Mapping[str, Json] = {
    "start": {"agent": "helper", "task": "hello"}, "fork": {"at": 1}, "note": {"text": "and quickly"},
    "approve": {"digest": "0" * 64}, "deny": {"digest": "0" * 64}, "settle": {"outcome": "done"},
    "sign": {"version": 1, "verdict": "approved"},
}  # fmt: skip
"""A body that is valid, by the name of the handler; {} where it is not here."""
QUERIES = {"compare_runs": "?a={run}&b={run}"}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[JournalStore]:
    made = SqliteJournal(tmp_path / "journal.db")
    yield made
    await made.aclose()


def path_of(one: Endpoint, run: str) -> str:
    parts = {
        "agent": "helper", "run_id": run, "call": "9.9", "response_id": f"resp_{run}", "number": "999",
        "digest": "0" * 64,
    }  # fmt: skip
    return one.path.replace(":path", "").format(**parts) + QUERIES.get(one.handle.__name__, "").format(run=run)


def body_of(one: Endpoint) -> Json:
    return None if one.body is Nothing else BODIES.get(one.handle.__name__, {})


EACH = [pytest.param(one, id=f"{one.method} {one.path}") for one in ENDPOINTS]


@pytest.mark.parametrize("one", EACH)
async def test_each_address_asks_for_a_token_for_its_right_and_for_a_run_of_ones_own(one: Endpoint) -> None:
    async with serving(MemoryJournal(), agents(), drive=0) as served:
        run = await served.start("hello")
        path, body = path_of(one, run), body_of(one)
        await served.refused("401 unauthorized", one.method, path, body, who="")
        if len(one.rights) == 1:
            lacking = await served.refused("403 forbidden", one.method, path, body, who=f"without-{one.rights[0]}")
            assert one.rights[0] in lacking.json["detail"]
        if "{run_id}" in one.path or "{response_id}" in one.path or "{run}" in QUERIES.get(one.handle.__name__, ""):
            for who in ("acme", "other", "narrow"):
                await served.refused("404 no_such_run", one.method, path, body, who=who)
            await served.refused("404 no_such_run", one.method, path_of(one, "none"), body)
        strange = await served.ask(one.method, f"{path}{'&' if '?' in path else '?'}nonsense=1", body)
        if issubclass(one.query, Lax):  # clients of others send what means nothing here
            assert strange.status == 200, strange.body
        else:
            assert (strange.status, strange.problem) == (422, "invalid")
            assert strange.json["faults"][0] == {"path": "nonsense", "message": "unknown field; leave it out"}
        if one.method == "POST":
            odd: tuple[Json, ...] = ({"nonsense": 1}, [], "x", 7)
            for bad in odd:
                await served.refused("422 invalid", one.method, path, bad)
            assert (await served.ask(one.method, path, data=b"{")).problem == "invalid"
            assert (await served.ask(one.method, path, data=b"\xff\xfe")).problem == "invalid"
            await served.refused("415 not_json", one.method, path, data=b"{}", headers={"Content-Type": "text/plain"})
            await served.refused("422 invalid", one.method, path, body, headers={"Idempotency-Key": "k" * 201})


async def test_a_run_is_started_driven_and_shown(served: Served) -> None:
    run = await served.start("the score of Alice", labels={"team": "travel"})
    shown = await served.until(run, "completed")
    assert (shown["answer"], shown["agent"], shown["labels"]) == ("It is done.", "helper", {"team": "travel"})
    assert shown["waiting"] == []
    assert shown["damaged"] is None
    events = (await served.get(f"/v1/runs/{run}/events"))["events"]
    assert [one["seq"] for one in events] == list(range(shown["events"]))
    assert events[0]["event"]["task"]["text"] == "the score of Alice"
    whole = await served.get(f"/v1/runs/{run}/rows")
    assert whole["next"] is None
    told = " ".join(part["text"] for row in whole["rows"] for part in row["parts"])
    assert "Alice: 50" in told
    found = await served.get(f"/v1/runs/{run}/rows?q=alice:%2050")
    assert 0 < len(found["rows"]) < len(whole["rows"])
    pieces: list[Json] = []
    since: int | None = 0
    while since is not None:
        piece = await served.get(f"/v1/runs/{run}/rows?since={since}&limit=2")
        pieces += piece["rows"]
        since = piece["next"]
    assert pieces == whole["rows"]
    state = await served.get(f"/v1/runs/{run}/state")
    assert (state["status"], state["at"], state["total"]) == ("completed", len(events), len(events))
    early = await served.get(f"/v1/runs/{run}/state?at=2")
    assert (early["at"], early["total"]) == (2, len(events))
    assert await served.get(f"/v1/runs/{run}/verify") == {"records": len(events), "chain": "ok", "replay": "ok"}
    assert (await served.ask("GET", f"/v1/runs/{run}/plan")).problem == "no_plan"


async def test_runs_are_listed_in_pages_and_filtered(served: Served) -> None:
    runs = [await served.start(f"hello {number}", labels={"n": str(number % 2)}) for number in range(5)]
    for run in runs:
        await served.until(run, "completed")
    page = await served.ask("GET", "/v1/runs?limit=2&count=1")
    assert [one["run_id"] for one in page.json["runs"]] == runs[:2:-1]
    assert page.json["count"] == 5
    seen = list(page.json["runs"])
    while page.json["next"]:
        link = page.headers["Link"]
        assert link.endswith('>; rel="next"')
        page = await served.ask("GET", link[1:].partition(">")[0])
        seen += page.json["runs"]
    assert [one["run_id"] for one in seen] == runs[::-1]
    assert "Link" not in page.headers
    for query, expected in (
        ("label=n=1", [runs[3], runs[1]]), ("label=n:0", [runs[4], runs[2], runs[0]]), ("agent=helper", runs[::-1]),
        ("agent=mailer", []), ("status=completed", runs[::-1]), ("status=failed", []), ("q=hello%203", [runs[3]]),
        ("waiting=1", []), ("since=0&until=1", []),
    ):  # fmt: skip
        found = await served.get(f"/v1/runs?{query}")
        assert [one["run_id"] for one in found["runs"]] == expected, query
    assert (await served.get("/v1/runs", "acme"))["runs"] == []
    assert (await served.get("/v1/runs", "narrow"))["runs"] == []
    for bad in ("limit=201", "limit=0", "since=x", "cursor=%00", "status=complete"):
        assert (await served.ask("GET", f"/v1/runs?{bad}")).problem == "invalid", bad


async def test_a_fork_whose_maker_has_died_is_made_by_who_asks_again(store: JournalStore, served: Served) -> None:
    run, cut_off, key = await served.done("hello"), {"at": 2, "labels": {"cut": "off"}}, {"Idempotency-Key": "g"}
    made = await served.ask("POST", f"/v1/runs/{run}/fork", cut_off, headers=key)
    await store.delete(fork := str(made.json["run_id"]))
    await store.fork(run, 2, fork)  # and whoever did so has died
    late = await served.ask("POST", f"/v1/runs/{run}/fork", cut_off, headers=key)
    assert (late.status, late.json["run_id"]) == (202, fork), late.body


async def test_limits_of_a_run_stay_and_may_be_loosened_up_to_those_of_its_agent(
    store: JournalStore, served: Served
) -> None:
    limits = {"max_steps": 1, "max_tokens": 100_000}
    asked = {"agent": "helper", "task": "the score of Alice", "limits": limits}
    run = (await served.ask("POST", "/v1/runs", asked)).json["run_id"]
    await served.until(run, "completed_partial", "stopped")
    fork = (await served.ask("POST", f"/v1/runs/{run}/fork", {"at": 1})).json["run_id"]
    await served.until(fork, "completed_partial", "stopped")
    assert (await served.ask("POST", f"/v1/runs/{run}/resume", {"limits": {"max_steps": 4}})).status == 202
    await served.until(run, "completed")
    records, _ = await store.read_recorded(run)
    budget = fold(one.event for one in records).config.budget
    assert (budget.max_steps, budget.max_tokens) == (4, 100_000)


@pytest.mark.parametrize("path", sorted({row["path"] for row in rows("server_refusals")}))
async def test_what_cannot_be_meant_makes_no_run(served: Served, path: str) -> None:
    """The rows of `tests/data/server_refusals.jsonl`; "§9" in one is a text of nine characters."""
    if path.startswith("/agui"):
        pytest.importorskip("ag_ui", reason="needs the extra agui")
    for row in rows("server_refusals"):
        if row["path"] == path:
            text = re.sub(r"§(\d+)", lambda found: "x" * int(found[1]), json.dumps(row["body"], ensure_ascii=False))
            await served.refused(row["told"], "POST", path, json.loads(text))
            assert (await served.get("/v1/runs"))["runs"] == [], row


def test_what_is_wrong_with_a_request_is_told_by_field_with_its_remedy() -> None:
    bad = {"task": 3, "stream": "x", "steps": 3, "labels": 3, "limits": {"max_steps": 1.5, "max_seconds": "x"}, "no": 1}
    with pytest.raises(Problem) as told:
        checked(Start, bad | {"context": {"x": 1}})
    faults: Any = told.value.fields["faults"]
    assert {(one["path"], one["message"]) for one in faults} == {
        ("agent", "missing; give it"), ("task", "give a string"), ("stream", "give true or false"),
        ("steps", "give an array"), ("labels", "give an object"), ("limits.max_steps", "give a whole number"),
        ("limits.max_seconds", "give a number"), ("context", "unknown field 'x'"),
        ("no", "unknown field; leave it out"),
    }  # fmt: skip


async def test_a_start_can_be_followed_at_once(served: Served) -> None:
    body = json.dumps({"agent": "helper", "task": "the score of Alice", "stream": True}).encode()
    headers = {"Authorization": "Bearer sft_all", "Content-Type": "application/json"}
    async with served.client.post(f"{served.url}/v1/runs", data=body, headers=headers) as response:
        assert response.status == 200
        assert response.headers["Location"].startswith("/v1/runs/")
        text = await asyncio.wait_for(response.text(), LIMIT_S)
    assert text.startswith("retry: 1000\n\nid: 0\nevent: RunStarted\n")
    assert text.endswith("event: end\ndata: {}\n\n")


async def test_a_run_without_an_agent_is_answered_and_waits_for_whoever_started_it(
    store: JournalStore, served: Served
) -> None:
    like = agents()["mailer"]
    alone = Agent(like.model, tools=like.tools, config=like.config, journal=store)
    run = await alone.run("send a mail to bob@example.org")
    (question,) = (await served.get(f"/v1/runs/{run.id}"))["waiting"]
    path = f"/v1/runs/{run.id}/calls/{question['call']}/approve"
    assert (await served.ask("POST", path, {"digest": question["digest"]})).status == 200
    shown = await served.get(f"/v1/runs/{run.id}")
    assert (shown["status"], shown["agent"], shown["waits_for"]) == ("ready", "", "agent")


async def test_the_next_turn_of_a_conversation_follows_and_a_fork_does_not(served: Served) -> None:
    chat = served.site.agents["helper"].chat("talk")
    first, second = await chat.send("hello"), await chat.send("hello again")
    turn = await served.get(f"/v1/runs/{second.id}")
    assert (turn["parent"], turn["follows"]) == (first.id, True)
    made = (await served.ask("POST", f"/v1/runs/{second.id}/fork", {"at": turn["events"] - 1})).json
    assert (made["parent"], made["follows"]) == (second.id, False)


async def test_a_run_that_is_not_deleted_keeps_the_runs_of_its_agents() -> None:
    @tool(effect="communicate", approval="always")
    async def send(to: str) -> str:
        """Send it."""
        return f"sent to {to}"

    store = MemoryJournal()
    clerk = Agent(ScriptedModel([calls(("send", {"to": "bob"})), "Sent."]), [send]).as_tool("clerk", "Does it.")
    asks = ScriptedModel([calls(("clerk", {"task": "write to bob"})), "Done."])
    agent = Agent(asks, [clerk], journal=store)
    run = await agent.run("write to bob", run_id="x")
    await agent.fork("x", 1, new_id="f", drives=False)
    asked: Any = SimpleNamespace(  # Any: as far as it is looked at
        site=SimpleNamespace(store=store),
        token=SimpleNamespace(sees=bool),
        request=SimpleNamespace(path_params={"run_id": "x"}),
    )
    with pytest.raises(Problem, match="shares its records"):
        await delete(asked)
    await agent.approve("x", run.waiting[0].id, by="Ada")
    assert (await agent.resume("x")).answer == "Done."


@pytest.mark.parametrize("form", ["jsonl", "md", "html", "otlp"])
async def test_a_run_is_exported(form: str, served: Served) -> None:
    run = await served.done("the score of Alice")
    got = await served.ask("GET", f"/v1/runs/{run}/export?form={form}")
    assert got.status == 200
    assert got.headers["Content-Disposition"] == f'attachment; filename="{run}.{form.replace("otlp", "otlp.json")}"'
    assert (b"Alice: 50" in got.body) == (form != "otlp")  # spans hold no contents
    assert form != "otlp" or got.json["resourceSpans"]


async def test_queued_runs_are_limited_before_anything_is_written() -> None:
    async with serving(MemoryJournal(), agents(), drive=0, limits=Limits(queued=2, burst=1_000)) as served:
        for _ in "12":
            await served.start("hello")
        full = await served.refused("429 too_many_runs", "POST", "/v1/runs", {"agent": "helper", "task": "hello"})
        assert int(full.headers["Retry-After"]) >= 1
        assert len((await served.get("/v1/runs"))["runs"]) == 2
        body = {"agent": "helper", "task": "hello"}  # of a tenant only its own count
        assert [(await served.ask("POST", "/v1/runs", body, who="acme")).status for _ in "123"] == [202, 202, 429]


async def test_a_word_that_was_never_said_is_not_found(served: Served) -> None:
    run = await served.done("hello")
    for number in ("7", "x", "9" * 30):
        await served.refused("404 no_such_word", "GET", f"/v1/runs/{run}/words/{number}")


async def test_no_run_is_begun_by_a_server_that_leaves() -> None:
    async with serving(MemoryJournal(), agents()) as served:
        served.site.leave()
        reply = await served.refused("503 draining", "POST", "/v1/runs", {"agent": "helper", "task": "hello"})
        assert "Retry-After" in reply.headers


async def test_a_hundred_starts_with_one_key_on_two_servers_make_one_run(tmp_path: Path) -> None:
    first, second = SqliteJournal(tmp_path / "journal.db"), SqliteJournal(tmp_path / "journal.db")
    async with serving(first, agents()) as one, serving(second, agents()) as two:
        body, key = {"agent": "helper", "task": "hello"}, {"Idempotency-Key": "once"}
        asked = [(one, two)[number % 2].ask("POST", "/v1/runs", body, headers=key) for number in range(100)]
        replies: list[Reply] = await asyncio.gather(*asked)
        assert {reply.status for reply in replies} == {202}, [one.body for one in replies if one.status != 202][:1]
        assert len({reply.json["run_id"] for reply in replies}) == 1
        assert len((await one.get("/v1/runs"))["runs"]) == 1
        await one.until(replies[0].json["run_id"], "completed")
    await first.aclose()
    await second.aclose()


async def test_a_damaged_journal_is_shown_up_to_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    store = SqliteJournal(path)
    async with serving(store, agents()) as served:
        run = await served.done("the score of Alice")
        whole = (await served.get(f"/v1/runs/{run}/events"))["events"]
    await store.aclose()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE event SET body=replace(body, 'Alice', 'Alicf') WHERE seq=?", (len(whole) - 2,))
        number = db.execute("SELECT seq FROM event WHERE body LIKE '%Alicf%'").fetchall()
        if not number:
            db.execute("UPDATE event SET hash=zeroblob(32) WHERE seq=?", (len(whole) - 2,))
    db.close()
    store = SqliteJournal(path)
    async with serving(store, agents(), drive=0) as served:
        page = await served.get(f"/v1/runs/{run}/events")
        assert [one["seq"] for one in page["events"]] == list(range(len(whole) - 2))
        assert page["damaged"]["at"] == len(whole) - 2
        told = await served.get(f"/v1/runs/{run}/rows")
        assert told["damaged"]["at"] == len(whole) - 2
        assert (await served.get(f"/v1/runs/{run}"))["damaged"] is not None
        verified = await served.get(f"/v1/runs/{run}/verify")
        assert verified["chain"] != "ok"
        await served.refused("409 journal_damaged", "POST", f"/v1/runs/{run}/cancel", {})
        frames = await served.frames(f"/v1/runs/{run}/events", until="damaged")
        assert json.loads(frames[-1]["data"])["at"] == len(whole) - 2
    await store.aclose()


def test_each_problem_has_an_address_that_may_answer_with_it() -> None:
    told = {name for one in ENDPOINTS for name in one.problem_names}
    everywhere = {"foreign_origin", "not_found", "no_such_method", "wrong_host", "header_too_large"}
    assert told | everywhere == set(KINDS)


async def test_no_token_is_ever_given_back(served: Served) -> None:
    secret = "sft_all"
    run = await served.done("the score of Alice")
    for form in ("jsonl", "md", "html", "otlp"):
        await served.ask("GET", f"/v1/runs/{run}/export?form={form}")
    for path in ("", "/events", "/rows", "/state", "/verify"):
        await served.ask("GET", f"/v1/runs/{run}{path}?token={secret[:3]}")
        await served.ask("GET", f"/v1/runs/{run}{path}")
    await served.ask("GET", "/v1/me", headers={"Authorization": f"Basic {secret}"})
    assert len(served.seen) > 10
    assert not [one for one in served.seen if secret.encode() in one.body or secret in str(one.headers)]
