"""OAuth of a remote MCP server, with a real one: log in once, go on without a person, renew, and be turned away."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import unquote

import pytest
from mcp.client.auth import OAuthClientProvider

from processes import LIMIT_S, command, free_port, listening
from surefoot import Agent, UsageError
from surefoot.testing.models import ScriptedModel, calls
from surefoot.tools.mcp.config import McpServer
from surefoot.tools.mcp.login import Login, auth_of, log_in
from surefoot.types.errors import ConfigError

pytestmark = pytest.mark.anyio


@contextmanager
def serving(life_s: int = 3600, *, is_apart: bool = False) -> Generator[McpServer]:
    port, *others = (free_port() for _ in range(1 + is_apart))
    given = (str(port), str(life_s), *map(str, others))
    with listening(Path(__file__).parent / "mcp_oauth.py", [port, *others], *given):
        yield McpServer("books", url=f"http://127.0.0.1:{port}/mcp", oauth=True)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SUREFOOT_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def browser(url: str) -> None:
    """A browser that follows where it is sent, and so logs in."""
    urllib.request.urlopen(url, timeout=LIMIT_S).read()


async def sum_by(server: McpServer) -> str:
    model = ScriptedModel([calls(("books__add", {"a": 2, "b": 3})), "done"])
    async with Agent(model, mcp=server) as agent:
        await agent.run("Add 2 and 3")
    return model.requests[-1].messages[-1].content


async def test_a_person_logs_in_once_and_runs_go_on_without_one(state: Path) -> None:
    with serving() as server:
        with pytest.raises(UsageError, match=r"needs a login: surefoot mcp login FILE\.json books"):
            await sum_by(server)
        await log_in(server, browser)
        (kept,) = (state / "logins").iterdir()
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert "5" in await sum_by(server)
        assert Login(server).forget()
        with pytest.raises(UsageError, match="needs a login"):
            await sum_by(server)


async def test_a_login_that_has_ended_is_renewed() -> None:
    with serving(life_s=20) as server:  # less than what is renewed early
        await log_in(server, browser)
        first = (await Login(server).get_client_info(), Login(server).path.read_bytes())
        assert "5" in await sum_by(server)
        assert Login(server).path.read_bytes() != first[1]
        assert await Login(server).get_client_info() == first[0]


async def test_a_login_is_renewed_where_it_was_made() -> None:
    with serving(life_s=20, is_apart=True) as server:
        await log_in(server, browser)
        assert "5" in await sum_by(server)
        assert "5" in await sum_by(server)


async def test_two_who_renew_a_login_at_once_both_go_on() -> None:
    with serving(life_s=20) as server:
        await log_in(server, browser)
        assert all("5" in one for one in await asyncio.gather(sum_by(server), sum_by(server)))


async def test_when_a_kept_token_ends_is_known() -> None:
    with serving() as server:
        await log_in(server, browser)
        auth = auth_of(server)
        assert isinstance(auth, OAuthClientProvider)
        assert await auth.context.storage.get_tokens()
        assert auth.context.token_expiry_time == pytest.approx(time.time() + 3600 - 30, abs=LIMIT_S)


async def test_only_the_answer_to_this_login_counts() -> None:
    def troubled(url: str) -> None:
        back = unquote(url.partition("redirect_uri=")[2].partition("&")[0])
        for other in ("?code=stolen&state=another", "?error=access_denied", "?code=stolen"):
            with pytest.raises(HTTPError):
                browser(f"{back}{other}")
        browser(url)

    with serving() as server:
        await log_in(server, troubled)
        assert "5" in await sum_by(server)


def test_a_login_goes_over_the_network_encrypted() -> None:
    with pytest.raises(ConfigError, match="https"):
        McpServer("books", url="http://books.example/mcp", oauth=True)


async def test_a_server_without_oauth_and_a_torn_login_say_so() -> None:
    with pytest.raises(UsageError, match='no "oauth": true'):
        await log_in(McpServer("books", url="http://127.0.0.1:9/mcp"), browser)
    server = McpServer("books", url="http://127.0.0.1:9/mcp", oauth=True)
    Login(server).path.parent.mkdir(parents=True)
    Login(server).path.write_text("{torn")
    with pytest.raises(UsageError, match="cannot be read"):
        await Login(server).get_tokens()
    with pytest.raises(UsageError, match="could not log in"):
        await log_in(server, browser)


async def test_a_refused_login_is_told() -> None:
    def refuse(url: str) -> None:
        back = url.partition("redirect_uri=")[2].partition("&")[0]
        state = url.partition("state=")[2].partition("&")[0]
        browser(f"{unquote(back)}?error=access_denied&state={state}")

    with serving() as server:
        with pytest.raises(UsageError, match="refused: access_denied"):
            await log_in(server, refuse)
        assert not Login(server).path.exists()


REFUSES = """
import sys, urllib.request
from urllib.parse import parse_qs, urlsplit
asked = parse_qs(urlsplit(sys.argv[1]).query)
told = "?error=access_denied&state=" + asked["state"][0]
urllib.request.urlopen(asked["redirect_uri"][0] + told, timeout=60).read()
"""


def test_the_command_opens_a_browser_and_forgets_again(tmp_path: Path, state: Path) -> None:
    opener = tmp_path / "browser.py"
    opener.write_text("import sys, urllib.request\nurllib.request.urlopen(sys.argv[1], timeout=60).read()\n")
    env = {**os.environ, "BROWSER": f"{sys.executable} {opener} %s", "SUREFOOT_STATE": str(state)}

    def mcp(*arguments: str) -> tuple[str, str]:
        return command("mcp", *arguments, environment=env).communicate(timeout=LIMIT_S)

    with serving() as server:
        file = tmp_path / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {"books": {"url": server.url, "oauth": True}}}))
        assert "needs a login: surefoot mcp login" in mcp("list", str(file))[1]
        out, err = mcp("login", str(file), "books")
        assert out.strip() == "logged in to books", err
        assert "books__add" in mcp("list", str(file))[0]
        assert "forgotten" in mcp("login", str(file), "books", "--forget")[0]
        assert "unknown MCP server 'pens'" in mcp("login", str(file), "pens")[1]
        opener.write_text(REFUSES)
        _, err = mcp("login", str(file), "books")
        assert "the login was refused: access_denied" in err
        assert "Traceback" not in err
