"""Every address of the API: the good case, each right missing, another tenant, each problem."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from server_agents import PLAN, agents
from server_world import LIMIT_S, TOKENS, Reply, Served, serving, token

from surefoot import Agent, MemoryJournal, SqliteJournal, tool
from surefoot.core.loop.fold import fold
from surefoot.server.about import delete
from surefoot.server.answers import KINDS, Problem
from surefoot.server.api import Endpoint, Nothing, checked
from surefoot.server.app import ENDPOINTS
from surefoot.server.auth import RIGHTS, Right
from surefoot.server.protocols.openai import Lax
from surefoot.server.shapes import Start
from surefoot.server.site import Limits
from surefoot.testing.models import ScriptedModel, calls
from surefoot.types.ports import JournalStore

pytestmark = pytest.mark.anyio

Json = Any

LACKING = tuple(token(f"without-{right}", *set[Right](RIGHTS).difference({right})) for right in RIGHTS)
BODIES: Mapping[str, Json] = {
    "start": {"agent": "helper", "task": "hello"},
    "fork": {"at": 1},
    "note": {"text": "and quickly"},
    "approve": {"digest": "0" * 64},
    "deny": {"digest": "0" * 64},
    "settle": {"outcome": "done"},
    "sign": {"version": 1, "verdict": "approved"},
}
"""A body that is valid, by the name of the handler; {} where it is not here."""
QUERIES = {"compare_runs": "?a={run}&b={run}"}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[JournalStore]:
    made = SqliteJournal(tmp_path / "journal.db")
    yield made
    await made.aclose()


@asynccontextmanager
async def served_by(store: JournalStore, **options: Any) -> AsyncGenerator[Served]:
    async with serving(store, agents(), tokens=(*TOKENS, *LACKING), **options) as served:
        yield served


async def started(served: Served, task: str, agent: str = "helper", who: str = "all", **more: Json) -> str:
    reply = await served.ask("POST", "/v1/runs", {"agent": agent, "task": task, **more}, who=who)
    assert reply.status == 202, reply.body
    assert reply.headers["Location"] == f"/v1/runs/{reply.json['run_id']}"
    return str(reply.json["run_id"])


async def until(served: Served, run: str, *statuses: str, who: str = "all") -> Json:
    """The run once it stands like that."""
    async with asyncio.timeout(LIMIT_S):
        while (shown := await served.get(f"/v1/runs/{run}", who))["status"] not in statuses:
            assert shown["status"] in ("queued", "running", "ready", "interrupted"), shown
            await asyncio.sleep(0.02)
    return shown


def path_of(one: Endpoint, run: str, **parts: str) -> str:
    path = one.path.replace("{run_id}", run).replace("{call:path}", parts.get("call", "9.9"))
    path = (
        path.replace("{response_id}", f"resp_{run}")
        .replace("{number}", parts.get("number", "999"))
        .replace("{digest}", parts.get("digest", "0" * 64))
    )
    return path + QUERIES.get(one.handle.__name__, "").format(run=run)


def body_of(one: Endpoint) -> Json:
    return None if one.body is Nothing else BODIES.get(one.handle.__name__, {})


EACH = [pytest.param(one, id=f"{one.method} {one.path}") for one in ENDPOINTS]


@pytest.mark.parametrize("one", EACH)
async def test_each_address_asks_for_a_token_for_its_right_and_for_a_run_of_ones_own(one: Endpoint) -> None:
    async with served_by(MemoryJournal(), drive=0) as served:
        run = await started(served, "hello")
        path, body = path_of(one, run), body_of(one)
        nobody = await served.ask(one.method, path, body, who="")
        assert (nobody.status, nobody.problem) == (401, "unauthorized")
        if len(one.rights) == 1:
            lacking = await served.ask(one.method, path, body, who=f"without-{one.rights[0]}")
            assert (lacking.status, lacking.problem) == (403, "forbidden")
            assert one.rights[0] in lacking.json["detail"]
        if "{run_id}" in one.path or "{response_id}" in one.path or "{run}" in QUERIES.get(one.handle.__name__, ""):
            for who in ("acme", "other", "narrow"):
                foreign = await served.ask(one.method, path, body, who=who)
                assert (foreign.status, foreign.problem) == (404, "no_such_run"), who
            unknown = await served.ask(one.method, path_of(one, "none"), body)
            assert (unknown.status, unknown.problem) == (404, "no_such_run")
        strange = await served.ask(one.method, f"{path}{'&' if '?' in path else '?'}nonsense=1", body)
        if issubclass(one.query, Lax):  # clients of others send what means nothing here
            assert strange.status == 200, strange.body
        else:
            assert (strange.status, strange.problem) == (422, "invalid")
            assert strange.json["faults"][0] == {"path": "nonsense", "message": "unknown field; leave it out"}
        if one.method == "POST":
            odd: tuple[Json, ...] = ({"nonsense": 1}, [], "x", 7)
            for bad in odd:
                reply = await served.ask(one.method, path, bad)
                assert (reply.status, reply.problem) == (422, "invalid"), bad
            assert (await served.ask(one.method, path, data=b"{")).problem == "invalid"
            assert (await served.ask(one.method, path, data=b"\xff\xfe")).problem == "invalid"
            plain = await served.ask(one.method, path, data=b"{}", headers={"Content-Type": "text/plain"})
            assert (plain.status, plain.problem) == (415, "not_json")
            long_key = await served.ask(one.method, path, body, headers={"Idempotency-Key": "k" * 201})
            assert (long_key.status, long_key.problem) == (422, "invalid")


async def test_a_run_is_started_driven_and_shown(store: JournalStore) -> None:
    async with served_by(store) as served:
        run = await started(served, "the score of Alice", labels={"team": "travel"})
        shown = await until(served, run, "completed")
        assert (shown["answer"], shown["agent"], shown["labels"]) == ("It is done.", "helper", {"team": "travel"})
        assert shown["waiting"] == []
        assert shown["damaged"] is None
        events = (await served.get(f"/v1/runs/{run}/events"))["events"]
        assert [one["seq"] for one in events] == list(range(shown["events"]))
        assert events[0]["event"]["task"]["text"] == "the score of Alice"
        rows = await served.get(f"/v1/runs/{run}/rows")
        assert rows["next"] is None
        told = " ".join(part["text"] for row in rows["rows"] for part in row["parts"])
        assert "Alice: 50" in told
        found = await served.get(f"/v1/runs/{run}/rows?q=alice:%2050")
        assert 0 < len(found["rows"]) < len(rows["rows"])
        pieces: list[Json] = []
        since: int | None = 0
        while since is not None:
            piece = await served.get(f"/v1/runs/{run}/rows?since={since}&limit=2")
            pieces += piece["rows"]
            since = piece["next"]
        assert pieces == rows["rows"]
        state = await served.get(f"/v1/runs/{run}/state")
        assert (state["status"], state["at"], state["total"]) == ("completed", len(events), len(events))
        early = await served.get(f"/v1/runs/{run}/state?at=2")
        assert (early["at"], early["total"]) == (2, len(events))
        assert await served.get(f"/v1/runs/{run}/verify") == {"records": len(events), "chain": "ok", "replay": "ok"}
        assert (await served.ask("GET", f"/v1/runs/{run}/plan")).problem == "no_plan"


async def test_runs_are_listed_in_pages_and_filtered(store: JournalStore) -> None:
    async with served_by(store) as served:
        runs = [await started(served, f"hello {number}", labels={"n": str(number % 2)}) for number in range(5)]
        for run in runs:
            await until(served, run, "completed")
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
            ("label=n=1", [runs[3], runs[1]]),
            ("label=n:0", [runs[4], runs[2], runs[0]]),
            ("agent=helper", runs[::-1]),
            ("agent=mailer", []),
            ("status=completed", runs[::-1]),
            ("status=failed", []),
            ("q=hello%203", [runs[3]]),
            ("waiting=1", []),
            ("since=0&until=1", []),
        ):
            found = await served.get(f"/v1/runs?{query}")
            assert [one["run_id"] for one in found["runs"]] == expected, query
        assert (await served.get("/v1/runs", "acme"))["runs"] == []
        assert (await served.get("/v1/runs", "narrow"))["runs"] == []
        for bad in ("limit=201", "limit=0", "since=x", "cursor=%00"):
            assert (await served.ask("GET", f"/v1/runs?{bad}")).problem == "invalid", bad


async def test_a_tenant_sees_its_own_runs_alone(store: JournalStore) -> None:
    async with served_by(store) as served:
        mine = await started(served, "hello", who="acme")
        theirs = await started(served, "hello", who="other")
        await until(served, mine, "completed", who="acme")
        await until(served, theirs, "completed", who="other")
        assert [one["run_id"] for one in (await served.get("/v1/runs", "acme"))["runs"]] == [mine]
        assert {one["run_id"] for one in (await served.get("/v1/runs"))["runs"]} == {mine, theirs}
        assert "surefoot" not in json.dumps(await served.get(f"/v1/runs/{mine}"))
        usage = await served.get("/v1/usage?by=day", "acme")
        assert [one["runs"] for one in usage["rows"]] == [1]
        refused = await served.ask(
            "POST", "/v1/runs", {"agent": "helper", "task": "x", "labels": {"surefoot.tenant": "other"}}, who="acme"
        )
        assert refused.problem == "invalid"
        fork = await served.ask("POST", f"/v1/runs/{mine}/fork", {"at": 1}, who="acme")
        assert fork.status == 202
        assert (await served.ask("GET", f"/v1/runs/{fork.json['run_id']}", who="other")).status == 404


async def test_a_key_makes_one_run_and_no_other_request_may_use_it(store: JournalStore) -> None:
    async with served_by(store) as served:
        key = {"Idempotency-Key": "once"}
        body = {"agent": "helper", "task": "hello"}
        first = await served.ask("POST", "/v1/runs", body, headers=key)
        again = await served.ask("POST", "/v1/runs", body, headers=key)
        assert (first.status, again.status) == (202, 202)
        assert again.json["run_id"] == first.json["run_id"]
        assert "Idempotency-Replayed" not in first.headers
        assert again.headers["Idempotency-Replayed"] == "true"
        other = await served.ask("POST", "/v1/runs", {**body, "task": "other"}, headers=key)
        assert (other.status, other.problem) == (422, "key_reused")
        foreign = await served.ask("POST", "/v1/runs", body, headers=key, who="acme")
        assert foreign.json["run_id"] != first.json["run_id"]
        run = first.json["run_id"]
        await until(served, run, "completed")
        forks = [
            await served.ask("POST", f"/v1/runs/{run}/fork", {"at": 2}, headers={"Idempotency-Key": "f"}) for _ in "12"
        ]
        assert forks[0].json["run_id"] == forks[1].json["run_id"]
        assert forks[1].headers["Idempotency-Replayed"] == "true"
        wrong = await served.ask("POST", f"/v1/runs/{run}/fork", {"at": 1}, headers={"Idempotency-Key": "f"})
        assert wrong.problem == "key_reused"
        cut_off = {"at": 2, "labels": {"cut": "off"}}
        made = await served.ask("POST", f"/v1/runs/{run}/fork", cut_off, headers={"Idempotency-Key": "g"})
        await store.delete(fork := str(made.json["run_id"]))
        await store.fork(run, 2, fork)  # and whoever did so has died
        late = await served.ask("POST", f"/v1/runs/{run}/fork", cut_off, headers={"Idempotency-Key": "g"})
        assert (late.status, late.json["run_id"]) == (202, fork), late.body


async def test_limits_of_a_run_stay_and_may_be_loosened_up_to_those_of_its_agent(store: JournalStore) -> None:
    async with served_by(store) as served:
        limits = {"max_steps": 1, "max_tokens": 100_000}
        asked = {"agent": "helper", "task": "the score of Alice", "limits": limits}
        run = (await served.ask("POST", "/v1/runs", asked)).json["run_id"]
        await until(served, run, "completed_partial", "stopped")
        fork = (await served.ask("POST", f"/v1/runs/{run}/fork", {"at": 1})).json["run_id"]
        await until(served, fork, "completed_partial", "stopped")
        assert (await served.ask("POST", f"/v1/runs/{run}/resume", {"limits": {"max_steps": 4}})).status == 202
        await until(served, run, "completed")
        records, _ = await store.read_recorded(run)
        budget = fold(one.event for one in records).config.budget
        assert (budget.max_steps, budget.max_tokens) == (4, 100_000)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"agent": "nobody", "task": "x"}, "agent_unknown"),
        ({"agent": "Not A Name", "task": "x"}, "invalid"),
        ({"agent": "helper", "task": ""}, "invalid"),
        ({"agent": "helper"}, "invalid"),
        ({"agent": "helper", "task": "x" * (256 * 1024 + 1)}, "too_large"),
        ({"agent": "helper", "task": "x", "limits": {"max_steps": 51}}, "invalid"),
        ({"agent": "helper", "task": "x", "limits": {"max_steps": 0}}, "invalid"),
        ({"agent": "helper", "task": "x", "limits": {"fast": 1}}, "invalid"),
        ({"agent": "helper", "task": "x", "labels": {"a b": "c"}}, "invalid"),
        ({"agent": "helper", "task": "x", "steps": [{"step_id": "a", "nonsense": 1}]}, "invalid"),
        ({"agent": "helper", "task": "x", "steps": [{"step_id": "a b"}]}, "invalid"),
        ({"agent": "helper", "task": "x", "context": {"nonsense": 1}}, "invalid"),
        ({"agent": "helper", "task": "x", "context": {"documents": [{"nonsense": 1}]}}, "invalid"),
        ({"agent": "helper", "task": "x", "attachments": [{"name": "a", "data": "?"}]}, "invalid"),
        ({"agent": "helper", "task": "x", "attachments": [{"name": "a", "data": "AAEC"}]}, "invalid"),
    ],
)
async def test_a_start_that_cannot_be_meant_makes_no_run(body: Json, problem: str) -> None:
    async with served_by(MemoryJournal()) as served:
        reply = await served.ask("POST", "/v1/runs", body)
        assert reply.problem == problem, reply.body
        assert (await served.get("/v1/runs"))["runs"] == []


def test_what_is_wrong_with_a_request_is_told_by_field_with_its_remedy() -> None:
    bad = {"task": 3, "stream": "x", "steps": 3, "labels": 3, "limits": {"max_steps": 1.5, "max_seconds": "x"}, "no": 1}
    with pytest.raises(Problem) as told:
        checked(Start, bad | {"context": {"x": 1}})
    faults: Any = told.value.fields["faults"]
    assert {(one["path"], one["message"]) for one in faults} == {
        ("agent", "missing; give it"),
        ("task", "give a string"),
        ("stream", "give true or false"),
        ("steps", "give an array"),
        ("labels", "give an object"),
        ("limits.max_steps", "give a whole number"),
        ("limits.max_seconds", "give a number"),
        ("context", "unknown field 'x'"),
        ("no", "unknown field; leave it out"),
    }


async def test_limits_tighten_and_attachments_come_along(store: JournalStore) -> None:
    async with served_by(store) as served:
        files = [{"name": "note.txt", "text": "a note"}, {"name": "b.txt", "data": "aGVsbG8="}]
        run = await started(
            served,
            "hello",
            limits={"max_steps": 3, "max_cost_usd": 0.5},
            attachments=files,
            context={"documents": [], "user_preferences": ["short"]},
        )
        shown = await until(served, run, "completed")
        first = (await served.get(f"/v1/runs/{run}/events?limit=1"))["events"][0]["event"]
        assert first["config"]["budget"]["max_steps"] == 3
        assert [one["text"] for one in first["task"]["attachments"]] == ["a note", "hello"]
        assert {one["trust"] for one in first["task"]["attachments"]} == {"untrusted"}
        assert shown["status"] == "completed"


async def test_a_start_can_be_followed_at_once(store: JournalStore) -> None:
    async with served_by(store) as served:
        body = json.dumps({"agent": "helper", "task": "the score of Alice", "stream": True}).encode()
        headers = {"Authorization": "Bearer sft_all", "Content-Type": "application/json"}
        async with served.client.post(f"{served.url}/v1/runs", data=body, headers=headers) as response:
            assert response.status == 200
            assert response.headers["Location"].startswith("/v1/runs/")
            text = await asyncio.wait_for(response.text(), LIMIT_S)
        assert text.startswith("retry: 1000\n\nid: 0\nevent: RunStarted\n")
        assert text.endswith("event: end\ndata: {}\n\n")


async def test_a_call_is_approved_exactly_as_it_was_shown(store: JournalStore) -> None:
    async with served_by(store) as served:
        run = await started(served, "send a mail to bob@example.org", "mailer")
        shown = await until(served, run, "paused")
        (question,) = shown["waiting"]
        assert (question["name"], question["about"], shown["standing"]) == ("send_mail", "approval", "approval")
        assert question["arguments"]["body"] == "hello"
        path = f"/v1/runs/{run}/calls/{question['call']}"
        why = await served.get(f"{path}/why")
        assert (why["name"], why["decision"], why["digest"]) == ("send_mail", "ask", question["digest"])
        changed = await served.ask("POST", f"{path}/approve", {"digest": "0" * 64})
        assert (changed.status, changed.problem) == (409, "changed")
        assert changed.json["question"] == question
        other = await served.ask("POST", f"{path}/settle", {"outcome": "done"})
        assert (other.status, other.problem) == (409, "other_question")
        unknown = await served.ask("POST", f"/v1/runs/{run}/calls/9.9/approve", {"digest": question["digest"]})
        assert unknown.status in (404, 409)
        key = {"Idempotency-Key": "yes"}
        yes = await served.ask("POST", f"{path}/approve", {"digest": question["digest"]}, who="approver", headers=key)
        assert (yes.status, yes.json["outcome"]) == (200, "applied"), yes.body
        assert yes.json["event"]["by"] == "approver"
        record = (await served.get(f"/v1/runs/{run}/events?since={yes.json['seq']}&limit=1"))["events"][0]
        assert record["event"] == yes.json["event"]
        again = await served.ask("POST", f"{path}/approve", {"digest": question["digest"]}, who="approver", headers=key)
        assert again.json == yes.json
        assert again.headers["Idempotency-Replayed"] == "true"
        reused = await served.ask("POST", f"{path}/deny", {"digest": question["digest"]}, who="approver", headers=key)
        assert (reused.status, reused.problem) == (422, "key_reused")
        word = await served.get(f"/v1/runs/{run}/words/{yes.json['number']}")
        assert (word["outcome"], word["seq"], word["word"]["by"]) == ("applied", yes.json["seq"], "approver")
        late = await served.ask("POST", f"{path}/deny", {"digest": question["digest"]})
        assert (late.status, late.problem) in ((409, "not_waiting"), (409, "ended"))
        assert (await until(served, run, "completed"))["answer"] == "It is done."


async def test_a_run_without_an_agent_is_answered_and_waits_for_whoever_started_it(store: JournalStore) -> None:
    like = agents()["mailer"]
    alone = Agent(like.model, tools=like.tools, config=like.config, journal=store)
    run = await alone.run("send a mail to bob@example.org")
    async with served_by(store) as served:
        (question,) = (await served.get(f"/v1/runs/{run.id}"))["waiting"]
        path = f"/v1/runs/{run.id}/calls/{question['call']}/approve"
        assert (await served.ask("POST", path, {"digest": question["digest"]})).status == 200
        shown = await served.get(f"/v1/runs/{run.id}")
        assert (shown["status"], shown["agent"], shown["waits_for"]) == ("ready", "", "agent")


async def test_the_next_turn_of_a_conversation_follows_and_a_fork_does_not(store: JournalStore) -> None:
    async with served_by(store) as served:
        chat = served.site.agents["helper"].chat("talk")
        first, second = await chat.send("hello"), await chat.send("hello again")
        turn = await served.get(f"/v1/runs/{second.id}")
        assert (turn["parent"], turn["follows"]) == (first.id, True)
        made = (await served.ask("POST", f"/v1/runs/{second.id}/fork", {"at": turn["events"] - 1})).json
        assert (made["parent"], made["follows"]) == (second.id, False)


async def test_a_call_is_refused_with_a_reason(store: JournalStore) -> None:
    async with served_by(store) as served:
        run = await started(served, "send a mail to bob@example.org", "mailer")
        (question,) = (await until(served, run, "paused"))["waiting"]
        path = f"/v1/runs/{run}/calls/{question['call']}/deny"
        no = await served.ask("POST", path, {"digest": question["digest"], "reason": "not today"})
        assert (no.status, no.json["event"]["by"]) == (200, "all")
        await until(served, run, "completed")
        assert "not today" in json.dumps(await served.get(f"/v1/runs/{run}/rows"))


async def test_a_doubt_is_settled(store: JournalStore) -> None:
    async with served_by(store) as served:
        run = await started(served, "pay 5")
        shown = await until(served, run, "paused")
        (question,) = shown["waiting"]
        assert (question["about"], shown["standing"], shown["questions"]) == ("in_doubt", "in_doubt", 1)
        assert [one["run_id"] for one in (await served.get("/v1/runs?waiting=1"))["runs"]] == [run]
        path = f"/v1/runs/{run}/calls/{question['call']}"
        other = await served.ask("POST", f"{path}/approve", {"digest": question["digest"]})
        assert other.problem == "other_question"
        done = await served.ask("POST", f"{path}/settle", {"outcome": "done", "result": "paid"})
        assert done.status == 200, done.body
        await until(served, run, "completed")


async def test_a_plan_is_shown_and_signed(store: JournalStore) -> None:
    async with served_by(store) as served:
        run = await started(served, "the scores", "planner", steps=PLAN)
        shown = await until(served, run, "paused")
        (question,) = shown["waiting"]
        assert (question["about"], question["version"]) == ("plan", 1)
        plan = await served.get(f"/v1/runs/{run}/plan")
        assert [one["id"] for one in plan["steps"]] == ["one"]
        assert (await served.get(f"/v1/runs/{run}/plan?version=1"))["version"] == 1
        assert (await served.ask("GET", f"/v1/runs/{run}/plan?version=7")).problem == "no_plan"
        assert (await served.ask("GET", f"/v1/runs/{run}/plan?at=0")).problem == "no_plan"
        changed = await served.ask("POST", f"/v1/runs/{run}/plan/sign", {"version": 2, "verdict": "approved"})
        assert (changed.status, changed.problem) == (409, "changed")
        assert changed.json["question"]["version"] == 1
        signed = await served.ask("POST", f"/v1/runs/{run}/plan/sign", {"version": 1, "verdict": "approved"})
        assert signed.status == 200, signed.body
        await until(served, run, "completed")


async def test_a_run_is_noted_cancelled_and_taken_up_again(store: JournalStore) -> None:
    async with served_by(store) as served:
        run = await started(served, "wait", who="starter")
        await until(served, run, "running")
        note = await served.ask("POST", f"/v1/runs/{run}/notes", {"text": "and be quick"}, who="starter")
        assert note.status in (200, 202), note.body
        foreign = await served.ask("POST", f"/v1/runs/{run}/cancel", {}, who="without-cancel")
        assert (foreign.status, foreign.problem) == (403, "forbidden")
        own = await served.ask("POST", f"/v1/runs/{run}/cancel", {"reason": "enough"}, who="starter")
        assert own.status in (200, 202), own.body
        await until(served, run, "cancelled")
        for path, body in (("cancel", {}), ("notes", {"text": "x"})):
            ended = await served.ask("POST", f"/v1/runs/{run}/{path}", body)
            assert (ended.status, ended.problem) == (409, "ended")
        again = await served.ask("POST", f"/v1/runs/{run}/resume", {"limits": {"max_steps": 5}})
        assert again.status == 202, again.body
        assert again.headers["Location"].startswith(f"/v1/runs/{run}/words/")
        await until(served, run, "running", "completed")
        await served.ask("POST", f"/v1/runs/{run}/cancel", {})
        done = await started(served, "hello")
        await until(served, done, "completed")
        nothing = await served.ask("POST", f"/v1/runs/{done}/resume", {})
        assert (nothing.status, nothing.json["status"]) == (200, "completed")


async def test_a_fork_goes_its_own_way_and_two_runs_are_compared(store: JournalStore) -> None:
    async with served_by(store) as served:
        run = await started(served, "the score of Alice", labels={"a": "b"})
        shown = await until(served, run, "completed")
        forked = await served.ask("POST", f"/v1/runs/{run}/fork", {"at": 2, "labels": {"c": "d"}})
        assert forked.status == 202, forked.body
        fork = str(forked.json["run_id"])
        assert (await until(served, fork, "completed"))["parent"] == run
        compared = await served.get(f"/v1/compare?a={run}&b={fork}")
        assert compared["shared"] == 2
        assert compared["a"]["run_id"] == run
        wrong = await served.ask("POST", f"/v1/runs/{run}/fork", {"at": shown["events"] + 1})
        assert wrong.problem == "invalid"
        nobody = await served.ask("POST", f"/v1/runs/{run}/fork", {"at": 1, "agent": "nobody"})
        assert nobody.problem == "agent_unknown"
        kept = await served.ask("DELETE", f"/v1/runs/{run}")
        assert (kept.status, kept.problem) == (409, "has_forks")
        assert (await served.ask("DELETE", f"/v1/runs/{fork}")).status == 204
        assert (await served.ask("GET", f"/v1/runs/{fork}")).status == 404
        assert (await served.ask("DELETE", f"/v1/runs/{run}")).status == 204


async def test_a_run_that_is_driven_is_not_deleted(store: JournalStore) -> None:
    async with served_by(store) as served:
        run = await started(served, "wait")
        await until(served, run, "running")
        kept = await served.ask("DELETE", f"/v1/runs/{run}")
        assert (kept.status, kept.problem) == (409, "driven")
        await served.ask("POST", f"/v1/runs/{run}/cancel", {})


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


async def test_blobs_are_given_only_to_who_sees_a_run_that_refers_to_them(store: JournalStore) -> None:
    async with served_by(store) as served:
        run = await started(served, "the report")
        await until(served, run, "completed")
        events = (await served.get(f"/v1/runs/{run}/events"))["events"]
        tools = events[0]["event"]["tools"]["$blob"]
        found = await served.ask("GET", f"/v1/runs/{run}/blobs/{tools}")
        assert (found.status, found.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
        assert found.headers["Content-Disposition"] == "attachment"
        assert found.headers["Content-Security-Policy"].startswith("sandbox")
        assert b"wait_for_ever" in found.body
        other = await started(served, "hello")
        await until(served, other, "completed")
        blobs = [one["event"]["result"]["blob"] for one in events if one["event"].get("result")]
        whole = await served.ask("GET", f"/v1/runs/{run}/blobs/{blobs[0]}")
        assert len(whole.body) >= 30_000
        for digest in (blobs[0], "0" * 64, "x", "../../etc"):
            assert (await served.ask("GET", f"/v1/runs/{other}/blobs/{digest}")).status == 404


@pytest.mark.parametrize("form", ["jsonl", "md", "html", "otlp"])
async def test_a_run_is_exported(store: JournalStore, form: str) -> None:
    async with served_by(store) as served:
        run = await started(served, "the score of Alice")
        await until(served, run, "completed")
        got = await served.ask("GET", f"/v1/runs/{run}/export?form={form}")
        assert got.status == 200
        assert got.headers["Content-Disposition"] == f'attachment; filename="{run}.{form.replace("otlp", "otlp.json")}"'
        assert (b"Alice: 50" in got.body) == (form != "otlp")  # spans hold no contents
        assert form != "otlp" or got.json["resourceSpans"]


async def test_the_server_tells_of_itself(store: JournalStore) -> None:
    async with served_by(store) as served:
        me = await served.get("/v1/me", "acme")
        assert (me["name"], me["tenant"], me["rights"]) == ("acme", "acme", list(RIGHTS))
        told = await served.get("/v1/agents")
        assert [one["name"] for one in told["agents"]] == ["helper", "mailer", "planner"]
        assert told["drives"] == 4
        assert {"name": "score", "effect": "read", "description": "The score of a student."} in told["agents"][0][
            "tools"
        ]
        assert (await served.get("/v1/agents", "narrow"))["agents"] == []
        run = await started(served, "the score of Alice")
        await until(served, run, "completed")
        for by, key in (("agent", "helper"), ("model", "test:function")):
            (row,) = (await served.get(f"/v1/usage?by={by}"))["rows"]
            assert (row["key"], row["runs"], row["requests"], row["calls"]) == (key, 1, 2, 1)
            assert row["input_tokens"] == 20
        metrics = await served.ask("GET", "/metrics", who="admin")
        assert b"surefoot_runs_driven 0\n" in metrics.body
        assert b"surefoot_lease_lost 0\n" in metrics.body
        assert (await served.ask("GET", "/readyz", who="")).json == {"status": "ok"}


async def test_queued_runs_are_limited_before_anything_is_written() -> None:
    async with served_by(MemoryJournal(), drive=0, limits=Limits(queued=2, burst=1_000)) as served:
        for _ in "12":
            await started(served, "hello")
        full = await served.ask("POST", "/v1/runs", {"agent": "helper", "task": "hello"})
        assert (full.status, full.problem) == (429, "too_many_runs")
        assert int(full.headers["Retry-After"]) >= 1
        assert len((await served.get("/v1/runs"))["runs"]) == 2


async def test_no_run_is_begun_by_a_server_that_leaves() -> None:
    async with served_by(MemoryJournal()) as served:
        served.site.leave()
        reply = await served.ask("POST", "/v1/runs", {"agent": "helper", "task": "hello"})
        assert (reply.status, reply.problem) == (503, "draining")
        assert "Retry-After" in reply.headers


async def test_a_hundred_starts_with_one_key_on_two_servers_make_one_run(tmp_path: Path) -> None:
    first, second = SqliteJournal(tmp_path / "journal.db"), SqliteJournal(tmp_path / "journal.db")
    async with served_by(first) as one, served_by(second) as two:
        body, key = {"agent": "helper", "task": "hello"}, {"Idempotency-Key": "once"}
        asked = [(one, two)[number % 2].ask("POST", "/v1/runs", body, headers=key) for number in range(100)]
        replies: list[Reply] = await asyncio.gather(*asked)
        assert {reply.status for reply in replies} == {202}, [one.body for one in replies if one.status != 202][:1]
        assert len({reply.json["run_id"] for reply in replies}) == 1
        assert len((await one.get("/v1/runs"))["runs"]) == 1
        await until(one, replies[0].json["run_id"], "completed")
    await first.aclose()
    await second.aclose()


async def test_a_damaged_journal_is_shown_up_to_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    store = SqliteJournal(path)
    async with served_by(store) as served:
        run = await started(served, "the score of Alice")
        await until(served, run, "completed")
        whole = (await served.get(f"/v1/runs/{run}/events"))["events"]
    await store.aclose()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE event SET body=replace(body, 'Alice', 'Alicf') WHERE seq=?", (len(whole) - 2,))
        number = db.execute("SELECT seq FROM event WHERE body LIKE '%Alicf%'").fetchall()
        if not number:
            db.execute("UPDATE event SET hash=zeroblob(32) WHERE seq=?", (len(whole) - 2,))
    db.close()
    store = SqliteJournal(path)
    async with served_by(store, drive=0) as served:
        page = await served.get(f"/v1/runs/{run}/events")
        assert [one["seq"] for one in page["events"]] == list(range(len(whole) - 2))
        assert page["damaged"]["at"] == len(whole) - 2
        rows = await served.get(f"/v1/runs/{run}/rows")
        assert rows["damaged"]["at"] == len(whole) - 2
        assert (await served.get(f"/v1/runs/{run}"))["damaged"] is not None
        verified = await served.get(f"/v1/runs/{run}/verify")
        assert verified["chain"] != "ok"
        word = await served.ask("POST", f"/v1/runs/{run}/cancel", {})
        assert (word.status, word.problem) == (409, "journal_damaged")
        frames = await served.frames(f"/v1/runs/{run}/events", until="damaged")
        assert json.loads(frames[-1]["data"])["at"] == len(whole) - 2
    await store.aclose()


def test_each_problem_has_an_address_that_may_answer_with_it() -> None:
    told = {name for one in ENDPOINTS for name in one.problem_names}
    everywhere = {"foreign_origin", "not_found", "no_such_method", "wrong_host", "header_too_large"}
    assert told | everywhere == set(KINDS)


async def test_no_token_is_ever_given_back(store: JournalStore) -> None:
    async with served_by(store) as served:
        secret = "sft_all"
        run = await started(served, "the score of Alice")
        await until(served, run, "completed")
        for form in ("jsonl", "md", "html", "otlp"):
            await served.ask("GET", f"/v1/runs/{run}/export?form={form}")
        for path in ("", "/events", "/rows", "/state", "/verify"):
            await served.ask("GET", f"/v1/runs/{run}{path}?token={secret[:3]}")
            await served.ask("GET", f"/v1/runs/{run}{path}")
        await served.ask("GET", "/v1/me", headers={"Authorization": f"Basic {secret}"})
        assert len(served.seen) > 10
        assert not [one for one in served.seen if secret.encode() in one.body or secret in str(one.headers)]
