"""The app: the table of endpoints, and what is served without a token since it holds nothing of any run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route

from surefoot.journal import codec
from surefoot.server import about, follow, reads, say, shapes, starts
from surefoot.server.answers import JSON_TYPE, KINDS, Problem, dumped, own_version
from surefoot.server.api import Asked, Endpoint, Handle, Nothing, document, problem_of
from surefoot.server.auth import Right
from surefoot.server.door import Door, Names
from surefoot.server.protocols import openai, responses
from surefoot.server.site import Site
from surefoot.telling.plan import PlanView
from surefoot.telling.state import StateView
from surefoot.telling.why import Why
from surefoot.types.errors import extra_needed
from surefoot.types.ports import RunSummary

_RUN = "/v1/runs/{run_id}"
_CALL = f"{_RUN}/calls/{{call:path}}"
_STREAM = "text/event-stream"
Rights = Right | tuple[Right, ...]
_SAID = {200: shapes.Heard, 202: shapes.Heard}
_BEGUN = ("agent_unknown", "too_many_runs", "draining")
_WORD = ("ended", "journal_damaged")
_ANSWER = ("no_such_call", "not_waiting", "other_question", "changed", "expired", *_WORD)
_ANSWERED = ("no_such_run", *_ANSWER)
_ASKED = ("no_tools", "too_many_streams", *_BEGUN)
_AGUI = ("not_installed", "too_many_streams", *_BEGUN, *_ANSWERED)
_JOINED = ("no_such_run", "too_many_streams")
_ONE = "/openai/v1/responses/{response_id}"
_RESPONSE = {200: (responses.Told, _STREAM)}


def _get(
    path: str, handle: Handle, gives: object, *problems: str, query: type = Nothing, rights: Rights = "read"
) -> Endpoint:
    return Endpoint("GET", path, handle, _several(rights), {200: gives}, query, problems=problems)


def _post(path: str, handle: Handle, rights: Rights, body: type, gives: Mapping[int, object], *more: str) -> Endpoint:
    return Endpoint("POST", path, handle, _several(rights), gives, body=body, problems=more)


def _several(rights: Rights) -> tuple[Right, ...]:
    return (rights,) if isinstance(rights, str) else rights


async def agui(asked: Asked[None, shapes.RunAgent]) -> Response:
    """Run an agent for a front end of AG-UI, join a run, or answer what it asks."""
    try:  # its types are loaded by who asks first, beside the loop
        await asyncio.get_running_loop().run_in_executor(asked.site.desk, import_module, "ag_ui.core")
    except ModuleNotFoundError as error:
        raise Problem("not_installed", extra_needed("agui")) from error
    from surefoot.server.protocols.agui import serve  # noqa: PLC0415

    return await serve(asked)


ENDPOINTS = (
    _get("/v1/runs", reads.list_runs, shapes.Runs, query=shapes.Wanted),
    _get(_RUN, reads.show_run, shapes.Shown),
    _get(f"{_RUN}/events", follow.events, (shapes.Events, _STREAM), "too_many_streams", query=shapes.Stretch),
    _get(f"{_RUN}/rows", reads.list_rows, shapes.Rows, query=shapes.StretchOfRows),
    _get(f"{_RUN}/state", reads.show_state, StateView, query=shapes.Moment),
    _get(f"{_RUN}/plan", reads.show_plan, PlanView, "no_plan", query=shapes.PlanMoment),
    _get(f"{_CALL}/why", reads.show_why, Why, "no_such_call"),
    _get(f"{_RUN}/words/{{number}}", say.show_word, shapes.Posted, "no_such_word"),
    _get(f"{_RUN}/verify", reads.verify, shapes.Verified),
    _get(f"{_RUN}/blobs/{{digest}}", reads.show_blob, "text/plain", "no_such_blob", "journal_damaged"),
    _get(f"{_RUN}/export", reads.export_run, tuple(reads.EXPORT_TYPES.values()), query=shapes.Form),
    _get("/v1/compare", reads.compare_runs, shapes.Compared, "no_such_run", query=shapes.Two),
    _get("/v1/agents", about.agents, shapes.Agents),
    _get("/v1/usage", about.usage, shapes.Usages, query=shapes.By),
    _get("/v1/feed", follow.feed, _STREAM, "too_many_streams", query=shapes.Since),
    _get("/v1/me", about.me, shapes.Me, rights=()),
    _get("/metrics", about.metrics, "text/plain", rights="admin"),
    _post(
        "/v1/runs", starts.start, "start", shapes.Start, {202: RunSummary, 200: _STREAM}, *_BEGUN, "too_many_streams"
    ),
    _post(f"{_RUN}/fork", starts.fork, "start", shapes.Fork, {202: RunSummary}, *_BEGUN),
    _post(f"{_RUN}/resume", say.resume, "start", shapes.GoOn, {202: shapes.Heard, 200: RunSummary}, *_BEGUN, *_WORD),
    _post(f"{_RUN}/notes", say.note, "start", shapes.Said, _SAID, *_WORD),
    _post(f"{_RUN}/cancel", say.cancel, ("cancel", "start"), shapes.Ended, _SAID, *_WORD),
    _post(f"{_CALL}/approve", say.approve, "approve", shapes.Yes, _SAID, *_ANSWER),
    _post(f"{_CALL}/deny", say.deny, "approve", shapes.No, _SAID, *_ANSWER),
    _post(f"{_CALL}/settle", say.settle, "approve", shapes.Settled, _SAID, *_ANSWER),
    _post(f"{_RUN}/plan/sign", say.sign, "approve", shapes.Signature, _SAID, *_ANSWER),
    _get("/openai/v1/models", openai.models, openai.Models, rights=("read", "start")),
    _get("/openai/v1/models/{agent}", openai.model, openai.Model, "not_found", rights=("read", "start")),
    _post(
        "/openai/v1/chat/completions", openai.chat, "start", openai.Chat, {200: (openai.Completion, _STREAM)}, *_ASKED
    ),
    _post(
        "/openai/v1/responses", responses.create, ("start", "approve"), responses.Create, _RESPONSE, *_ASKED, *_ANSWERED
    ),
    _get(_ONE, responses.retrieve, _RESPONSE[200], *_JOINED, query=responses.Joined, rights=("read", "start")),
    _post(f"{_ONE}/cancel", responses.end, ("cancel", "start"), shapes.Ended, {200: responses.Told}, *_ANSWERED),
    _post("/agui/{agent}", agui, ("start", "read", "approve"), shapes.RunAgent, {200: _STREAM}, *_AGUI),
    Endpoint("DELETE", _RUN, about.delete, ("admin",), {204: None}, problems=("driven", "has_forks")),
)
"""Every address that takes a token, but `MCP`."""


async def _mcp(asked: Asked[None, None]) -> Response:
    if find_spec("mcp") is None:
        raise Problem("not_found", "/mcp needs the extra `mcp` of surefoot")
    from surefoot.server.protocols.mcp import Conversation  # noqa: PLC0415  # the SDK is slow to load

    return Conversation(asked)


MCP = Endpoint("POST", "/mcp", _mcp, ("read", "start"), {200: JSON_TYPE})
"""It describes itself in its own protocol."""


STATIC = Path(__file__).parent / "static"
_VIEWS = ("", "/plan", "/calls/{call:path}", "/at/{at}")
ADDRESSES = ("/", *(f"/runs/{{run_id}}{view}" for view in _VIEWS), "/compare/{a}/{b}")
"""The page's own addresses, each of which is the page."""
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".LICENSE": "text/plain; charset=utf-8",
}
_FRESH = {"Cache-Control": "no-cache"}


def app_of(site: Site, names: Names) -> Door:
    """The app of a server, behind its door."""
    routes = [
        *(Route(one.path, one.serve, methods=[one.method]) for one in (*ENDPOINTS, MCP)),
        Route("/healthz", about.healthz),
        Route("/readyz", about.readyz),
        Route("/openapi.json", openapi),
        Route("/problems/{name}", problem),
        Route("/static/{path:path}", static),
        *(Route(address, page) for address in ADDRESSES),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _unrouted, Problem: _refused})
    app.router.redirect_slashes = False
    app.state.site = site
    return Door(app, names, site.limits.header)


def prepare() -> None:
    """Make what first requests would have to wait for, in any thread."""
    codec.warm()
    for one in ENDPOINTS:
        one.prepare()


async def page(_request: Request) -> Response:
    """The page. It holds nothing of a run: its script asks for that, with a token."""
    if not (index := STATIC / "index.html").is_file():
        return HTMLResponse("<!doctype html><title>surefoot</title><p>The page is not installed; see /openapi.json")
    return FileResponse(index, media_type=_TYPES[".html"], headers=_FRESH)


async def static(request: Request) -> Response:
    """A file of the page."""
    path = request.path_params["path"]
    file = (STATIC / path).resolve()
    kind = _TYPES.get(file.suffix)
    if kind is None or not file.is_relative_to(STATIC) or not file.is_file():
        raise Problem("not_found", "the page has no such file")
    return FileResponse(file, media_type=kind, headers=_FRESH)


async def problem(request: Request) -> Response:
    """`/problems/NAME`."""
    name = request.path_params["name"]
    if (kind := KINDS.get(name)) is None:
        raise Problem("not_found", f"unknown problem {name!r}")
    title, remedy = escape(f"{kind.title} ({kind.status})"), escape(kind.remedy)
    return HTMLResponse(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        f"<main><h1>{title}</h1><p><code>{escape(name)}</code></p><p>{remedy}</p></main></html>"
    )


async def openapi(_request: Request) -> Response:
    """`/openapi.json`."""
    return Response(_document(), media_type=JSON_TYPE)


@cache
def _document() -> bytes:
    return dumped(document(ENDPOINTS, own_version()))


async def _refused(request: Request, error: Exception) -> Response:
    return problem_of(error).response(request.url.path)


async def _unrouted(request: Request, error: Exception) -> Response:
    is_found = isinstance(error, HTTPException) and error.status_code == KINDS["no_such_method"].status
    response = Problem("no_such_method" if is_found else "not_found").response(request.url.path)
    if isinstance(error, HTTPException):
        response.headers.update(error.headers or {})
    return response
