"""What is on record, told: lists, runs, their records, rows, states, plans and verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from starlette.responses import Response, StreamingResponse

from surefoot.core.loop.replay import replay
from surefoot.journal.codec import encode
from surefoot.server.answers import JSON_TYPE, STARTED_BY, Problem, answer, dumped, own_version, run_json
from surefoot.server.api import Asked
from surefoot.server.shapes import Form, Moment, PlanMoment, Stretch, StretchOfRows, Two, Wanted
from surefoot.server.sse import record_json
from surefoot.server.tales import Reading
from surefoot.telling.compare import compare
from surefoot.telling.export import export, otlp
from surefoot.telling.plan import plan_of
from surefoot.telling.rows import rows_of
from surefoot.telling.spans import spans_of
from surefoot.telling.state import state_of
from surefoot.telling.tale import asked_run
from surefoot.telling.text import visible
from surefoot.telling.why import why
from surefoot.types.attachments import Attachment
from surefoot.types.errors import JournalCorrupt, JournalError, RunUnknown, UsageError
from surefoot.types.events import Event, InStep, RunStarted
from surefoot.types.ports import NO_RECORDS, RunFilter, RunSummary

T = TypeVar("T")

MOST_COUNTED = 10_000
EXPORT_TYPES = {"jsonl": "application/jsonl", "md": "text/markdown", "html": "text/html", "otlp": JSON_TYPE}
_STILL = ("interrupted", "ready", "queued")
"""How runs stand that whoever serves their agent takes up."""
_PIECE_CHARS = 64 * 1024
_BLOB_HEADERS = {
    "Content-Disposition": "attachment",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cache-Control": "private, no-store",
}


async def run_of(asked: Asked[Any, Any], run_id: str = "") -> RunSummary:
    """The run that a request is about. Raises `Problem` where there is none, or none for this token."""
    run_id = run_id or str(asked.request.path_params.get("run_id", ""))
    store, token = asked.site.store, asked.token
    try:
        run = seen = await store.summary(run_id)
        while seen.outer and not token.sees(seen):  # the run of an agent is the business of whoever sees the outer one
            seen = await store.summary(seen.outer)
    except RunUnknown:
        run = seen = NO_RECORDS
    if not run.events or not token.sees(seen):
        raise Problem("no_such_run", f"unknown run {visible(run_id)}")
    return run


def check_reads(asked: Asked[Any, Any], run: RunSummary) -> None:
    """Raise `Problem` where the token may not see what happens in a run: it takes a right, or to have started it."""
    token = asked.token
    if "read" not in token.rights and run.labels.get(STARTED_BY) != token.name:
        raise Problem("forbidden", "reading a run that another token started needs the right `read`")


async def list_runs(asked: Asked[Wanted, None]) -> Response:
    """List runs, newest first."""
    wanted, token, store = asked.query, asked.token, asked.site.store
    labels = (one if "=" in one else one.replace(":", "=", 1) for one in wanted.label)
    filter_ = RunFilter(
        status=wanted.status,
        agent=wanted.agent,
        labels=(*labels, *token.only_labels),
        q=wanted.q,
        waiting=wanted.waiting,
        since=wanted.since,
        until=wanted.until,
        parent=wanted.parent,
        agents=token.only_agents,
    )
    page = await store.list(filter_, wanted.cursor, wanted.limit)
    told: dict[str, object] = {"runs": [run_json(run) for run in page.runs], "next": page.next or None}
    if wanted.count:
        counted = await store.count(filter_, MOST_COUNTED + 1)
        told["count"] = counted if counted <= MOST_COUNTED else f"{MOST_COUNTED}+"
    headers = dict[str, str]()
    if page.next:
        url = asked.request.url.include_query_params(cursor=page.next)
        headers["Link"] = f'<{url.path}?{url.query}>; rel="next"'
    return answer(told, headers=headers)


async def show_run(asked: Asked[None, None]) -> Response:
    """Show a run, and what it asks."""
    run, site = await run_of(asked), asked.site
    reading = Reading(site.store, run.run_id)
    waiting = await site.library.waiting(run, reading, run.events)
    waits_for = "agent" if run.status in _STILL and run.agent not in site.agents else ""
    return answer({**run_json(run), "waiting": waiting, "damaged": reading.damaged, "waits_for": waits_for})


async def list_events(asked: Asked[Stretch, None]) -> Response:
    """Give records of a run."""
    run, part = await run_of(asked), asked.query
    reading = Reading(asked.site.store, run.run_id, part.since)
    pieces: list[bytes] = []
    async for piece in reading.pieces(part.since + part.limit):
        pieces += [record_json(record) for record in piece]
    next_ = _next(reading, run)
    head = b'{"events":[%b],"next":%b,' % (b",".join(pieces), dumped(next_))
    rest = dumped({"total": run.events, "damaged": reading.damaged})[1:]
    return Response(head + rest, media_type=JSON_TYPE, headers={"Cache-Control": "no-store"})


async def list_rows(asked: Asked[StretchOfRows, None]) -> Response:
    """Tell records of a run; with `q` all from `since` on are searched, until `limit` rows are found."""
    run, part = await run_of(asked), asked.query
    reading = Reading(asked.site.store, run.run_id)
    before = await asked.site.library.tale(reading, min(part.since, run.events))
    until, sought = None if part.q else part.since + part.limit, part.q.casefold()
    rows: list[object] = []
    async for piece in reading.pieces(until):
        for record in piece:
            after = before.plus(record)
            told = rows_of(record, before, after)
            rows += [row for row in told if sought in row.text.casefold()] if sought else told
            before = after
        if sought and len(rows) >= part.limit:
            break
    told = {"rows": rows, "next": _next(reading, run), "total": run.events, "status": run.status}
    return answer({**told, "damaged": reading.damaged})


async def show_state(asked: Asked[Moment, None]) -> Response:
    """Show a run as of a record."""
    run, site = await run_of(asked), asked.site
    tale = await site.library.tale(Reading(site.store, run.run_id), _until(asked.query.at, run))
    view = state_of(tale, run.events, await site.library.inner(tale))
    return answer(replace(view, status=run.status) if view.at == run.events else view)


async def show_plan(asked: Asked[PlanMoment, None]) -> Response:
    """Show the plan of a run; a version of it as it was when it was made."""
    run, site = await run_of(asked), asked.site
    tale = await site.library.tale(Reading(site.store, run.run_id), _until(asked.query.at, run))
    if (version := asked.query.version) is not None:
        if (made_at := dict(tale.versions).get(version)) is None:
            raise Problem("no_plan", f"the plan of this run has had no version {version}")
        tale = await site.library.tale(Reading(site.store, run.run_id), made_at + 1)
    plan = plan_of(tale, is_driven=run.status == "running" and asked.query.at is None)
    if plan is None:
        raise Problem("no_plan", f"run {visible(run.run_id)} has no plan here")
    return answer(plan)


async def show_why(asked: Asked[None, None]) -> Response:
    """Say why a call was judged as it was; "CALL/ITS-CALL" is one of the agent that CALL has asked."""
    run, site, call_id = await run_of(asked), asked.site, asked.part("call")
    run_id = run.run_id
    while "/" in call_id:
        outer_id, _, call_id = call_id.partition("/")
        run_id = asked_run(await Reading(site.store, run_id).all(), outer_id)
        if not run_id:
            raise Problem("no_such_call", f"call {visible(outer_id)} did not call an agent")
    records = await Reading(site.store, run_id).all()
    try:
        return answer(replace(await at_desk(asked, lambda: why(records, call_id)), run_id=run_id))
    except UsageError as error:
        raise Problem("no_such_call", visible(str(error))) from error


async def verify(asked: Asked[None, None]) -> Response:
    """Prove the records of a run by their chain, and replay it."""
    run = await run_of(asked)
    reading = Reading(asked.site.store, run.run_id)
    records = await reading.all()
    if reading.wrong:
        return answer({"records": len(records), "chain": visible(reading.wrong), "replay": None})
    done = await at_desk(asked, lambda: replay([record.event for record in records]))
    differs = {"at": done.differs_at, "recorded": _short(done.expected), "replayed": _short(done.got)}
    return answer({"records": len(records), "chain": "ok", "replay": "ok" if done.differs_at is None else differs})


async def export_run(asked: Asked[Form, None]) -> Response:
    """Give a run as a file."""
    run, form = await run_of(asked), asked.query.form
    records = await Reading(asked.site.store, run.run_id).all()
    if form == "otlp":
        who = {"service.name": "surefoot", "service.version": own_version()}
        pieces = iter([dumped(otlp(await at_desk(asked, lambda: spans_of(records)), who)).decode()])
    else:
        pieces = export(records, form)

    async def body() -> AsyncGenerator[bytes]:
        while piece := await at_desk(asked, lambda: _some(pieces)):
            yield piece

    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in run.run_id)
    end = "otlp.json" if form == "otlp" else form
    headers = {"Content-Disposition": f'attachment; filename="{name}.{end}"', "Cache-Control": "no-store"}
    return StreamingResponse(body(), media_type=EXPORT_TYPES[form], headers=headers)


async def compare_runs(asked: Asked[Two, None]) -> Response:
    """Put two runs side by side."""
    a, b = await run_of(asked, asked.query.a), await run_of(asked, asked.query.b)
    first, second = [await Reading(asked.site.store, one.run_id).all() for one in (a, b)]
    found = await at_desk(asked, lambda: compare(first, second))
    return answer({"a": run_json(a), "b": run_json(b), "shared": found.shared, "pairs": found.pairs})


async def show_blob(asked: Asked[Any, None]) -> Response:
    """Give bytes that a run refers to: as text to be saved, so that no browser ever shows them as a page."""
    run, digest = await run_of(asked), asked.part("digest")
    async for piece in Reading(asked.site.store, run.run_id).pieces():
        for record in piece:
            if (found := blobs_of(record.event).get(digest)) is not None:
                try:
                    data = found or await asked.site.store.get_blob(digest)
                except JournalCorrupt:
                    raise
                except JournalError as error:
                    raise Problem("no_such_blob", "the bytes of that digest are gone") from error
                return Response(data, media_type="text/plain", headers=_BLOB_HEADERS)
    raise Problem("no_such_blob", "this run refers to no bytes of that digest")


def blobs_of(event: Event) -> Mapping[str, bytes]:
    """What a record refers to, by digest; the bytes where they are at hand, else b"".

    Its texts do not count: they may hold any digest.
    """
    inner = event.event if isinstance(event, InStep) else event
    result = getattr(inner, "result", None)
    files: tuple[object, ...] = getattr(result, "files", ())
    found = {getattr(result, "blob", None) or "": b""}
    if isinstance(inner, RunStarted):
        files = inner.task.attachments
        found |= dict([encode(inner)[1] or ("", b"")])
    return found | {one.digest: b"" for one in files if isinstance(one, Attachment)}


async def at_desk(asked: Asked[Any, Any], work: Callable[[], T]) -> T:
    """What long work gives, done beside the loop, one piece after the other."""
    return await asyncio.get_running_loop().run_in_executor(asked.site.desk, work)


def _some(pieces: Iterator[str]) -> bytes:
    """The next pieces of an export, as many as go out at once; b"" when there are none."""
    found, chars = list[str](), 0
    for piece in pieces:
        found.append(piece)
        chars += len(piece)
        if chars >= _PIECE_CHARS:
            break
    return "".join(found).encode("utf-8", "replace")


def _short(event: Event | None) -> str:
    return "" if event is None else visible(encode(event)[0].decode("utf-8", "replace"))[:2_000]


def _until(at: int | None, run: RunSummary) -> int:
    return run.events if at is None else min(at, run.events)


def _next(reading: Reading, run: RunSummary) -> int | None:
    return reading.place if reading.place < run.events and not reading.wrong else None
