"""An MCP server that asks for a login, and lets everybody in: `python mcp_oauth.py PORT [SECONDS [LOGIN_PORT]]`.

SECONDS is a token's life. With LOGIN_PORT people log in there, and get no token from the server itself.
"""

# ruff: noqa: ARG002  # as the SDK has it

import asyncio
import secrets
import sys
import time

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

PORT, LIFE_S = int(sys.argv[1]), int((*sys.argv, "3600")[2])
LOGIN_PORT = int(sys.argv[3]) if len(sys.argv) > 3 else PORT
HERE = f"http://127.0.0.1:{PORT}"


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Keeps all in memory."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = secrets.token_urlsafe()
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id or "",
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._token(authorization_code.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self.refresh[refresh_token.token]
        return self._token(refresh_token.client_id, scopes, None)

    async def load_access_token(self, token: str) -> AccessToken | None:
        known = self.access.get(token)
        return known if known is not None and (known.expires_at or 0) > time.time() else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)

    def _token(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(), secrets.token_urlsafe()
        ends_at = int(time.time()) + LIFE_S
        self.access[access] = AccessToken(
            token=access, client_id=client_id, scopes=scopes, expires_at=ends_at, resource=resource
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=LIFE_S)


server = MCPServer(
    "oauth",
    auth_server_provider=Provider(),
    auth=AuthSettings(
        issuer_url=AnyHttpUrl(f"http://127.0.0.1:{LOGIN_PORT}"),
        resource_server_url=AnyHttpUrl(f"{HERE}/mcp"),
        client_registration_options=ClientRegistrationOptions(enabled=True),
    ),
)


@server.tool()
def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


async def apart() -> None:
    """Serve, and have people log in at another port."""
    app = server.streamable_http_app(host="127.0.0.1")

    async def without_login(scope: Scope, receive: Receive, send: Send) -> None:
        is_login = scope["type"] == "http" and scope["path"] in {"/token", "/authorize", "/register"}
        await (Response("not here", 404) if is_login else app)(scope, receive, send)

    await asyncio.gather(
        uvicorn.Server(uvicorn.Config(without_login, port=PORT)).serve(),
        uvicorn.Server(uvicorn.Config(app, port=LOGIN_PORT, lifespan="off")).serve(),
    )


if __name__ == "__main__":
    if LOGIN_PORT == PORT:
        server.run("streamable-http", host="127.0.0.1", port=PORT)
    else:
        asyncio.run(apart())
