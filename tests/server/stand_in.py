"""A stand-in for the server: the page's files under the real headers, and an API of made-up runs. Not for users.

`python tests/server/stand_in.py [PORT] [--records N] [--token T]` serves until it is stopped; tests start it in a process of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import cast

from aiohttp import web
from stand_in_runs import DATA, NOW, ROOT, Json, Story, long_row, may_fit, summaries
from stand_in_tales import stories

from surefoot.server.door import ALWAYS

STATIC = ROOT / "src" / "surefoot" / "server" / "static"
HEADERS = {**ALWAYS, "Cache-Control": "no-store"}
MANY = 100_000
AGENTS = [json.loads(line) for line in (DATA / "agents.jsonl").read_text("utf-8").splitlines()]
ME = {"name": "ada", "rights": ["read", "start", "approve", "cancel", "admin"], "tenant": "", "version": "0.1.0"}
GOING = ("running", "queued", "paused", "ready", "interrupted")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class World:
    """All runs, and who listens."""

    def __init__(self, records: int, token: str) -> None:
        self.runs = {story.run_id: story for story in stories()}
        self.runs["ledger-2026"].records = records
        self.token = token
        self.many = True
        self.hostile = False
        self.words: list[Json] = []
        self.fault = 0
        self.change = 1
        self.turn = asyncio.Condition()
        self.streams: set[asyncio.Task[object]] = set()

    async def changed(self, story: Story) -> None:
        """Wake the streams."""
        async with self.turn:
            self.change += 1
            story.change = self.change
            self.turn.notify_all()


WORLD = web.AppKey("world", World)


def reply(value: object, status: int = 200, kind: str = "application/json", **headers: str) -> web.Response:
    """JSON, with lone surrogates as escapes."""
    return web.Response(text=json.dumps(value), status=status, content_type=kind, headers=headers)


def problem(name: str, status: int, detail: str = "", **headers: str) -> web.Response:
    """A problem by RFC 9457."""
    title = name.replace("_", " ").capitalize()
    body = {"type": f"/problems/{name}", "title": title, "status": status, "detail": detail}
    return reply(body, status, "application/problem+json", **headers)


@web.middleware
async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Token, faults that a test asked for, and headers."""
    world = request.app[WORLD]
    if request.path.startswith("/v1"):
        if world.token and request.headers.get("Authorization") != f"Bearer {world.token}":
            return problem("unauthorized", 401, "This token is not known here.")
        if world.fault == 1:
            cast("asyncio.Transport", request.transport).abort()
        if world.fault:
            name = "too_fast" if world.fault == 429 else "journal_down"
            return problem(name, world.fault, "Wait a little.", **{"Retry-After": "3"})
    try:
        answer = await handler(request)
    except LookupError:
        answer = problem("no_such_run", 404, "There is no such run here.")
    if not answer.prepared:
        answer.headers.update(HEADERS)
    return answer


async def page(_: web.Request) -> web.StreamResponse:
    """The one HTML file, for each address of a view."""
    return web.FileResponse(STATIC / "index.html")


def story_of(request: web.Request) -> Story:
    """The run of the address."""
    run_id = request.match_info["run"]
    held = request.app[WORLD].runs
    if run_id.startswith("batch-") and run_id not in held:
        one = next(summaries(int(run_id[6:]), int(run_id[6:]) + 1))
        given: Json = {name: one[name] for name in ("task", "agent", "status", "started_at", "labels")}
        held[run_id] = Story(run_id, **given, records=one["events"])
    return held[run_id]


async def me(_: web.Request) -> web.StreamResponse:
    return reply(ME)


async def agents(_: web.Request) -> web.StreamResponse:
    return reply({"agents": AGENTS, "drives": 16})


async def runs(request: web.Request) -> web.StreamResponse:
    """A page of summaries: those told by hand, then many that are made as they are asked for."""
    world, asked = request.app[WORLD], request.query
    limit, start = min(int(asked.get("limit", 50)), 200), int(asked.get("cursor", 0))
    shown = [story for story in world.runs.values() if world.hostile or not story.run_id.startswith("x-")]
    told = [story.shown() for story in sorted(shown, key=lambda one: -one.started_at)]

    def fits(run: Json) -> bool:
        text = f"{run['task']}\n{run['answer']}\n{run['run_id']}\n{run['labels']}".lower()
        name, _, value = asked.get("label", "").partition(":")
        return (
            all(not asked.get(key) or run[key] == asked[key] for key in ("status", "agent", "parent"))
            and (not asked.get("waiting") or bool(run["questions"]))
            and (not name or run["labels"].get(name) == value)
            and asked.get("q", "").lower() in text
            and run["started_at"] >= float(asked.get("since") or 0) - (time.time() - NOW)
        )

    found: list[Json] = []
    at = start
    total = len(told) + (MANY if world.many and not asked.get("waiting") and not asked.get("parent") else 0)
    while at < total and len(found) < limit:
        n = at - len(told)
        at += 1
        if n >= 0 and not may_fit(n, asked):
            continue
        run = told[n] if n < 0 else next(summaries(n, n + 1))
        if fits(run):
            found.append(run)
        if at % 2000 == 0:
            await asyncio.sleep(0)
    body: Json = {"runs": found, "next": str(at) if at < total else None}
    return reply(body | ({"count": len(found)} if asked.get("count") else {}))


async def run(request: web.Request) -> web.StreamResponse:
    """One run with what waits."""
    story = story_of(request)
    return reply(story.shown() | {"waiting": story.waiting, "damaged": story.damaged})


def _rows(story: Story, since: int, limit: int) -> list[Json]:
    if story.rows:
        return story.rows[since : since + limit]
    return [long_row(n) for n in range(since, min(since + limit, story.total))]


async def rows(request: web.Request) -> web.StreamResponse:
    """Told rows, or those that hold a text."""
    story, asked = story_of(request), request.query
    since, text = int(asked.get("since", 0)), asked.get("q", "").lower()
    after = since + (5000 if text else min(int(asked.get("limit", 500)), 500))
    found = [row for row in _rows(story, since, after - since) if text in row["parts"][0]["text"].lower()]
    next_ = after if after < story.total else None
    return reply({"rows": found, "next": next_, "total": story.total, "status": story.status})


async def state(request: web.Request) -> web.StreamResponse:
    """As of a record."""
    story = story_of(request)
    return reply(story.state(min(int(request.query.get("at", story.total)), story.total)))


async def plan(request: web.Request) -> web.StreamResponse:
    """A plan as of a record, or a version of it."""
    story, asked = story_of(request), request.query
    if not story.plans:
        return problem("no_plan", 404, "This run has no plan.")
    version = int(asked.get("version", 0))
    held = story.plans[version - 1] if version else story.plan(int(asked.get("at", story.total)))
    return reply(held | {"versions": [one["version"] for one in story.plans]})


async def why(request: web.Request) -> web.StreamResponse:
    """The verdict about a call."""
    held = story_of(request).whys.get(request.match_info["call"])
    return reply(held) if held else problem("no_such_call", 404, "The gate has not judged such a call.")


async def word(request: web.Request) -> web.StreamResponse:
    """A person speaks: the question is answered, and the run goes on a little."""
    world, story, body, name = request.app[WORLD], story_of(request), await request.json(), request.match_info["word"]
    world.words.append({"run": story.run_id, "word": name, "body": body})
    if name == "cancel":
        story.status = "cancelled"
    elif name == "notes":
        story.say("word", body["text"], "person")
    else:
        about = "plan" if name == "sign" else request.match_info["call"]
        asked = next((one for one in story.waiting if one["call"] == about), None)
        if asked is None:
            return problem("not_waiting", 409, "Somebody has answered already.")
        if body.get("digest", asked["digest"]) != asked["digest"]:
            return problem("changed", 409, "The question has changed.")
        story.waiting.remove(asked)
        decision, said, style = ("deny", "refused", "bad") if name == "deny" else ("allow", name, "good")
        if held := story.whys.get(about):
            held["later"].append({"decision": decision, "by": "you", "at": story.total})
        reason = f": {body['reason']}" if body.get("reason") else ""
        story.say("verdict", f"{said} · by you{reason}", "person", style, call=about)
        story.status, story.standing = "running", ""
    await world.changed(story)
    return reply({"number": len(world.words), "outcome": "applied", "seq": story.total - 1, "event": {"type": name}})


async def begin(request: web.Request) -> web.StreamResponse:
    """A new run, or a fork of one."""
    world, body = request.app[WORLD], await request.json()
    if "run" in request.match_info:
        old = story_of(request)
        given: Json = {"agent": old.agent, "parent": old.run_id, "status": "running", "labels": old.labels}
        story = Story(f"{old.run_id}-f{len(world.runs)}", old.task, **given, started_at=time.time())
        story.rows, story.step = [dict(row) for row in old.rows[: body["at"]]], old.step
        story.say("head", f"forked from {old.run_id} at record {body['at']}", style="head")
    elif body["agent"] not in [one["name"] for one in AGENTS]:
        return problem("agent_unknown", 422, f"No agent {body['agent']!r} is served here.")
    else:
        given = {"agent": body["agent"], "status": "queued", "labels": body.get("labels", {})}
        story = Story(f"run-{len(world.runs)}", body["task"], **given, started_at=time.time())
        story.say("head", f"run {story.run_id}", style="head")
    world.runs[story.run_id] = story
    await world.changed(story)
    return reply(story.summary(), 202, Location=f"/v1/runs/{story.run_id}")


def side(story: Story, step: int) -> Json | None:
    """A reply of a run, and its calls, as two runs are compared."""
    mine = [row for row in story.rows if row["step"] == step]
    if not mine:
        return None
    kinds = ("reply", "call", "verdict", "result", "reasoning")
    texts = {kind: [row["parts"][0]["text"] for row in mine if row["kind"] == kind] for kind in kinds}
    calls = [
        {"key": text.split("(")[0], "text": text, **{kind: "".join(texts[kind][n : n + 1]) for kind in kinds[2:4]}}
        for n, text in enumerate(texts["call"])
    ]
    said = " ".join(texts["reply"] or texts["reasoning"][:1])
    return {"seq": mine[0]["seq"], "model": "anthropic/claude-sonnet", "reply": said, "calls": calls}


async def compare(request: web.Request) -> web.StreamResponse:
    """Two runs, step by step."""
    held = request.app[WORLD].runs
    a, b = held[request.query["a"]], held[request.query["b"]]
    alike = [x["parts"] == y["parts"] for x, y in zip(a.rows, b.rows, strict=False)]
    shared = [*alike, False].index(False)
    first = a.rows[shared]["step"] if shared < len(a.rows) else a.step
    pairs: list[Json] = []
    for step in range(max(first, 1), max(a.step, b.step) + 1):
        left, right = side(a, step), side(b, step)
        differs = [name for name in ("reply", "calls") if not (left and right and left[name] == right[name])]
        pairs.append({"step": step, "a": left, "b": right, "differs": differs})
    return reply({"a": a.summary(), "b": b.summary(), "shared": shared, "pairs": pairs})


async def stream(request: web.Request) -> web.StreamResponse:
    """`/feed`, or the records of a run."""
    world = request.app[WORLD]
    answer = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
    with contextlib.suppress(ConnectionResetError):
        await answer.prepare(request)
    task = cast("asyncio.Task[object]", asyncio.current_task())
    world.streams.add(task)
    last = int(request.headers.get("Last-Event-ID", world.change))
    story = story_of(request) if "run" in request.match_info else None
    if story is not None and "Last-Event-ID" not in request.headers:
        last = -1
    try:
        while True:
            if story is None:
                fresh = sorted((one for one in world.runs.values() if one.change > last), key=lambda one: one.change)
                frames = [(one.change, "summary", one.summary()) for one in fresh]
            else:
                told = [{"seq": row["seq"], "at": row["at"], "hash": ""} for row in _rows(story, last + 1, 500)]
                kind = "ModelReplied"
                frames = [(one["seq"], kind, {**one, "event": {"type": kind}}) for one in told]
            for number, event, data in frames:
                last = int(number)
                await answer.write(f"id: {number}\nevent: {event}\ndata: {json.dumps(data)}\n\n".encode())
            if story is not None and story.status not in GOING:
                await answer.write(b"event: end\ndata: {}\n\n")
                break
            if not frames:
                async with world.turn:
                    await asyncio.wait_for(world.turn.wait(), 15)
    except (TimeoutError, ConnectionResetError, asyncio.CancelledError):
        pass
    finally:
        world.streams.discard(task)
    return answer


async def export(request: web.Request) -> web.StreamResponse:
    text = "\n".join(json.dumps(row) for row in story_of(request).rows)
    return web.Response(text=text, content_type="application/jsonl")


async def resume(request: web.Request) -> web.StreamResponse:
    return reply(story_of(request).summary(), 202)


async def steer(request: web.Request) -> web.StreamResponse:
    """What a test asks for: a fault (1: no answer), streams cut, rows that come, an empty list; gives the words so far."""
    world, asked = request.app[WORLD], request.query
    world.fault = int(asked.get("fault", world.fault))
    world.hostile = world.hostile or "hostile" in asked
    if "empty" in asked:
        world.runs, world.many = {}, False
    if "cut" in asked:
        for task in list(world.streams):
            task.cancel()
    if "grow" in asked:
        story = world.runs[asked["grow"]]
        for _ in range(int(asked.get("n", 1))):
            story.think(f"The build is green; I look again, as record {story.total} says", took=0.1)
            await world.changed(story)
    if "delete" in asked:
        del world.runs[asked["delete"]]
    return reply(world.words)


def app(records: int = 35_000, token: str = "") -> web.Application:
    """The whole stand-in."""
    made = web.Application(middlewares=[guarded])
    made[WORLD] = World(records, token)
    get, post, one = web.get, web.post, "/v1/runs/{run}"
    made.add_routes([
        get("/v1/me", me), get("/v1/agents", agents), get("/v1/runs", runs), post("/v1/runs", begin), get("/v1/feed", stream), get("/v1/compare", compare),
        get(one, run), get(one + "/rows", rows), get(one + "/state", state), get(one + "/plan", plan), get(one + "/events", stream),
        get(one + "/export", export), get(one + "/calls/{call}/why", why), post(one + "/fork", begin), post(one + "/resume", resume), post(one + "/calls/{call}/{word:approve|deny|settle}", word),
        post(one + "/plan/{word:sign}", word), post(one + "/{word:notes|cancel}", word), get("/steer", steer), web.static("/static", STATIC),
        *(get(address, page) for address in ("/", "/runs/{rest:.*}", "/compare/{rest:.*}")),
    ])  # fmt: skip
    return made


async def serve(port: int, records: int, token: str) -> None:
    """Serve until the process is stopped; says the port on standard output."""
    runner = web.AppRunner(app(records, token), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    address = cast("tuple[str, int]", runner.addresses[0])
    sys.stdout.write(f"{address[1]}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    options = dict(zip(sys.argv[2::2], sys.argv[3::2], strict=True))
    port, records = int(sys.argv[1]) if len(sys.argv) > 1 else 0, int(options.get("--records", 35_000))
    asyncio.run(serve(port, records, options.get("--token", "")))
