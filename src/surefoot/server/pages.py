"""What is served without a token, since it holds nothing of any run: the files of the page, and problems."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response

from surefoot.server.problems import Problem, page_of

STATIC = Path(__file__).parent / "static"
ADDRESSES = (
    "/",
    "/runs/{run_id}",
    "/runs/{run_id}/plan",
    "/runs/{run_id}/calls/{call:path}",
    "/runs/{run_id}/at/{at}",
    "/compare/{a}/{b}",
)
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
        return Problem("not_found", "the page has no such file").response(request.url.path)
    return FileResponse(file, media_type=kind, headers=_FRESH)


async def problem(request: Request) -> Response:
    """`/problems/NAME`."""
    try:
        return page_of(request.path_params["name"])
    except Problem as unknown:
        return unknown.response(request.url.path)
