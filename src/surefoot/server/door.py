"""The door: every request is looked at before anything else sees it. Source: spec/serving.md, section 3.

A page of another site can make a browser send requests here, and can have its own name lead to this address. So the
host has to be one of ours, the origin our own or an allowed one, and a body has to be JSON, which no form can send.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from re import compile as pattern

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surefoot.server.answers import Problem

LOG = logging.getLogger("surefoot.server")

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types lit-html"
)
ALWAYS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_NOBODY = "-"
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_EVERYWHERE = ("0.0.0.0", "[::]")  # noqa: S104  # to know such an address when it is given
_HOST = pattern(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(?::\d{1,5})?")
_SHOWN = "Location, Link, Retry-After, Idempotency-Replayed, X-Surefoot-Run, Mcp-Session-Id"


@dataclass(frozen=True, slots=True)
class Names:
    """How a server may be called, and which other pages may speak to it."""

    hosts: Collection[str]
    origins: Collection[str] = ()
    every_own: bool = False

    @classmethod
    def of(cls, bound: str, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> Names:
        """Those of a server that listens at `bound`; where that is everywhere, each address that leads here counts."""
        own = f"[{bound}]" if ":" in bound else bound.lower()
        names = frozenset((own, *_LOOPBACK, *(host.lower() for host in hosts)))
        return cls(names, frozenset(origin.rstrip("/").lower() for origin in origins), own in _EVERYWHERE)

    def knows(self, host: str, arrived_at: str) -> bool:
        """Whether that is a name of this server; `arrived_at` is the address that a connection came to."""
        match = _HOST.fullmatch(host.lower())
        literal = f"[{arrived_at}]" if ":" in arrived_at else arrived_at
        return match is not None and (match[1] in self.hosts or (self.every_own and match[1] == literal))


class Door:
    """The app behind its door: what may not pass is answered here; all answers get their headers and a line of log."""

    def __init__(self, app: ASGIApp, names: Names, most_header: int) -> None:
        self._app = app
        self._names = names
        self._most_header = most_header

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. The log has no path as it came, only the template of its route."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers, began, status = Headers(scope=scope), time.monotonic(), 0
        scope["state"]["token"] = _NOBODY
        allowed = (origin := headers.get("origin", "").lower()) in self._names.origins and bool(origin)

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                out = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in ALWAYS.items():
                    out.setdefault(name, value)
                if allowed:
                    out["Access-Control-Allow-Origin"] = headers["origin"]
                    out["Access-Control-Expose-Headers"] = _SHOWN
                out.add_vary_header("Origin")
            await send(message)

        try:
            self._look(scope, headers, is_allowed=allowed)
        except Problem as problem:
            await problem.response(scope["path"])(scope, receive, send_with_headers)
        else:
            is_asked = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
            await (_preflight if is_asked and allowed else self._app)(scope, receive, send_with_headers)
        route = getattr(scope.get("route"), "path", "-")
        took_ms = (time.monotonic() - began) * 1000
        LOG.info("%s %s %d %.1f ms %s", scope["method"], route, status, took_ms, scope["state"]["token"])

    def _look(self, scope: Scope, headers: Headers, *, is_allowed: bool) -> None:
        if sum(len(name) + len(value) for name, value in headers.raw) > self._most_header:  # h11 looks at pieces alone
            raise Problem("header_too_large", f"the header may have {self._most_header:,} bytes")
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._names.knows(host, (scope.get("server") or ("",))[0]):
            raise Problem("wrong_host", "the request names a host that this server does not answer for")
        is_own = origin is not None and origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())
        if origin is not None and not is_own and not is_allowed:
            raise Problem("foreign_origin", "the request came from a page of another origin")
        is_visit = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
        is_link = is_visit and scope["method"] in ("GET", "HEAD")  # from a mail, say: the page alone shows nothing
        if headers.get("sec-fetch-site") == "cross-site" and not (is_allowed or is_link):
            raise Problem("foreign_origin", "the request came from another site")
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if (has_body or kind) and scope["method"] not in ("GET", "HEAD") and kind != "application/json":
            raise Problem("not_json", "a body must be application/json")


async def _preflight(scope: Scope, receive: Receive, send: Send) -> None:
    given = {  # what a client may send is its own affair: nothing here depends on cookies
        "Access-Control-Allow-Methods": "GET, POST, DELETE",
        "Access-Control-Allow-Headers": Headers(scope=scope).get("access-control-request-headers", ""),
        "Access-Control-Max-Age": "600",
    }
    await Response(status_code=204, headers=given)(scope, receive, send)
