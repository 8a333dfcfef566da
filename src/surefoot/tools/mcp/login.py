"""OAuth of remote MCP servers: a person logs in once in a browser, and runs use and renew what that gave.

The SDK speaks OAuth (discovery, registration, PKCE, renewal). Here is where tokens are kept, a file for each server
that only its owner may read, and the page on loopback to which the browser returns. A run never opens a browser.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qs, urlsplit

import orjson

from surefoot.tools.folders import state_folder
from surefoot.types.errors import UsageError

if TYPE_CHECKING:
    import httpx2
    from mcp.client.auth.oauth2 import OAuthContext
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

    from surefoot.tools.mcp.config import McpServer

LOGIN_S = 300.0  # how long a person has to log in

_EARLY_S = 30.0  # a token that ends within this time is renewed before it is used


class Login:
    """What a login at one server gave, in a file. The SDK's `TokenStorage`.

    `context` is the SDK's own, to which the file tells what it does not ask for: when a token ends, and where tokens
    are renewed. It would renew them at the server that is served by them, and give that what renews them.
    """

    def __init__(self, server: McpServer) -> None:
        self.context: OAuthContext | None = None
        self.path = state_folder("logins") / f"{sha256(server.url.encode()).hexdigest()[:24]}.json"

    async def get_tokens(self) -> OAuthToken | None:
        from mcp.shared.auth import OAuthMetadata, OAuthToken, ProtectedResourceMetadata  # noqa: PLC0415  # the extra `mcp` loads late

        kept, context = self._read(), self.context
        if "tokens" not in kept:
            return None
        if context is not None:
            ends_at, issuer, resource = kept.get("ends_at"), kept.get("issuer"), kept.get("resource")
            context.token_expiry_time = ends_at - _EARLY_S if isinstance(ends_at, int | float) else None
            context.oauth_metadata = OAuthMetadata.model_validate(issuer) if issuer else None
            known = ProtectedResourceMetadata.model_validate(resource) if resource else None
            context.protected_resource_metadata = known
        return OAuthToken.model_validate(kept["tokens"])

    async def set_tokens(self, tokens: OAuthToken) -> None:
        ends_at = None if tokens.expires_in is None else time.time() + tokens.expires_in
        context = self.context
        about = (context.oauth_metadata, context.protected_resource_metadata) if context else (None, None)
        given, issuer, resource = (one and one.model_dump(mode="json", exclude_none=True) for one in (tokens, *about))
        kept = {**self._read(), "tokens": given, "ends_at": ends_at}
        self._write({**kept, "issuer": issuer, "resource": resource})

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        from mcp.shared.auth import OAuthClientInformationFull  # noqa: PLC0415  # as above

        client = self._read().get("client")
        return None if client is None else OAuthClientInformationFull.model_validate(client)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._write({**self._read(), "client": client_info.model_dump(mode="json", exclude_none=True)})

    def forget(self) -> bool:
        """Log out here. Whether there was anything to forget."""
        was_there = self.path.exists()
        self.path.unlink(missing_ok=True)
        return was_there

    def _read(self) -> dict[str, object]:
        try:
            kept: object = orjson.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            told = f"the login in {self.path} cannot be read ({error}); remove the file and log in"
            raise UsageError(told) from error
        return cast("dict[str, object]", kept) if isinstance(kept, dict) else {}

    def _write(self, kept: Mapping[str, object]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = self.path.with_suffix(f".{os.getpid()}")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123  # with a mode
            file.write(orjson.dumps(kept))
        fresh.replace(self.path)


class Callback:
    """The page on loopback to which a browser returns after a login: `async with Callback(show) as callback`.

    Any page can send a browser there: only an answer with the `state` of this login counts. `show` gets the address
    that the browser is to open first.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self.show = show
        self.state = ""
        self._came: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> Callback:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/callback"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def result(self) -> AuthorizationCodeResult:
        """What the browser brought. Raises `UsageError` for a refusal, or when nobody logs in within `LOGIN_S`."""
        try:
            return await asyncio.wait_for(self._came, LOGIN_S)
        except TimeoutError as error:
            raise UsageError(f"nobody logged in within {LOGIN_S:g} s; try again") from error

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from mcp.shared.auth import AuthorizationCodeResult  # noqa: PLC0415  # the extra `mcp` loads late

        try:
            line = (await asyncio.wait_for(reader.readline(), 10)).decode("latin-1").split(" ")
            asked = urlsplit(line[1] if len(line) > 1 else "")
            given = {name: values[0] for name, values in parse_qs(asked.query).items()}
            told, status = "You can close this page and go back to the terminal.", "200 OK"
            is_ours = bool(self.state) and secrets.compare_digest(given.get("state", "").encode(), self.state.encode())
            if asked.path != "/callback" or not is_ours or not ("code" in given or "error" in given):
                told, status = "Nothing here.", "404 Not Found"
            elif self._came.done():
                pass
            elif "code" in given:
                result = AuthorizationCodeResult(code=given["code"], state=given.get("state"), iss=given.get("iss"))
                self._came.set_result(result)
            else:
                told = "The login was refused."
                self._came.set_exception(UsageError(f"the login was refused: {given['error']}"))
            head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
            writer.write(f"{head}Content-Length: {len(told)}\r\n\r\n{told}".encode())
            await writer.drain()
        except (TimeoutError, OSError, ValueError):  # not a browser
            pass
        finally:
            writer.close()


def auth_of(server: McpServer, callback: Callback | None = None) -> httpx2.Auth | None:
    """What authorises requests to a server with `"oauth": true`; None for any other.

    With a `callback` a person may log in. Without one, a login that is missing or was withdrawn is an error that says
    how to log in.
    """
    if not server.oauth:
        return None
    from mcp.client.auth import OAuthClientProvider  # noqa: PLC0415  # the extra `mcp` loads late
    from mcp.shared.auth import OAuthClientMetadata  # noqa: PLC0415  # as above

    async def redirect(url: str) -> None:
        if callback is None:
            raise UsageError(f"it needs a login: surefoot mcp login FILE.json {server.name}")
        callback.state = parse_qs(urlsplit(url).query).get("state", [""])[0]
        await asyncio.to_thread(callback.show, url)  # some browsers hold up whoever opens them

    async def came() -> AuthorizationCodeResult:
        assert callback is not None  # noqa: S101  # `redirect` was asked before
        return await callback.result()

    about = {
        "client_name": "surefoot",
        "redirect_uris": [callback.url if callback is not None else "http://127.0.0.1/callback"],
        "token_endpoint_auth_method": "none",
    }
    login = Login(server)
    auth = OAuthClientProvider(server.url, OAuthClientMetadata.model_validate(about), login, redirect, came)
    login.context = auth.context
    return auth


async def log_in(server: McpServer, show: Callable[[str], None]) -> None:
    """Have a person log in at a server; `show` gets the address that a browser is to open.

    An earlier login is forgotten first. Raises `UsageError` where it comes to nothing.
    """
    import httpx2  # noqa: PLC0415  # the extra `mcp` loads late
    from mcp.client import Client  # noqa: PLC0415  # as above
    from mcp.client.auth import OAuthFlowError  # noqa: PLC0415  # as above
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415  # as above

    if not server.oauth:
        told = 'has no "oauth": true in its file, so there is nothing to log in to'
        raise UsageError(f"the MCP server {server.name} {told}")
    logging.getLogger("mcp").addHandler(logging.NullHandler())  # what goes wrong is told once, in one line
    login = Login(server)
    login.forget()
    async with Callback(show) as callback:
        auth = auth_of(server, callback)
        try:
            async with (
                httpx2.AsyncClient(headers=dict(server.headers), timeout=server.connect_timeout_s, auth=auth) as client,
                Client(streamable_http_client(server.url, http_client=client)),
            ):
                pass
        except BaseException as error:
            login.forget()
            while isinstance(error, BaseExceptionGroup):
                error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
            if isinstance(error, OAuthFlowError | httpx2.HTTPError | UsageError):
                raise UsageError(f"could not log in to {server.name}: {error}") from error
            raise
    if not login.path.exists():
        raise UsageError(f'{server.name} did not ask for a login; leave "oauth" out of its file')
