"""OAuth of a remote MCP server, with a real one: log in once, go on without a person, renew, and be turned away."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import pytest

from processes import COMMAND, LIMIT_S
from surefoot import Agent, UsageError
from surefoot.testing.models import ScriptedModel, calls
from surefoot.tools.mcp.config import McpServer
from surefoot.tools.mcp.login import Login, log_in

pytestmark = pytest.mark.anyio


@contextmanager
def serving(life_s: int = 3600) -> Generator[McpServer]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(__file__).parent / "mcp_oauth.py"
    process = subprocess.Popen([sys.executable, str(program), str(port), str(life_s)], stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + LIMIT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.05)
        yield McpServer("books", url=f"http://127.0.0.1:{port}/mcp", oauth=True)
    finally:
        process.kill()
        process.wait(timeout=LIMIT_S)


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


async def test_a_server_without_oauth_and_a_torn_login_say_so() -> None:
    with pytest.raises(UsageError, match='no "oauth": true'):
        await log_in(McpServer("books", url="http://127.0.0.1:9/mcp"), browser)
    server = McpServer("books", url="http://127.0.0.1:9/mcp", oauth=True)
    Login(server).path.parent.mkdir(parents=True)
    Login(server).path.write_text("{torn")
    with pytest.raises(UsageError, match="cannot be read"):
        await Login(server).get_tokens()
    with pytest.raises(UsageError, match="came to nothing"):
        await log_in(server, browser)


async def test_a_refused_login_is_told() -> None:
    def refuse(url: str) -> None:
        back = url.partition("redirect_uri=")[2].partition("&")[0]
        browser(f"{unquote(back)}?error=access_denied")

    with serving() as server:
        with pytest.raises(UsageError, match="refused: access_denied"):
            await log_in(server, refuse)
        assert not Login(server).path.exists()


def test_the_command_opens_a_browser_and_forgets_again(tmp_path: Path, state: Path) -> None:
    opener = tmp_path / "browser.py"
    opener.write_text("import sys, urllib.request\nurllib.request.urlopen(sys.argv[1], timeout=60).read()\n")
    env = {**os.environ, "BROWSER": f"{sys.executable} {opener} %s", "SUREFOOT_STATE": str(state)}

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        told = [*COMMAND, "mcp", *arguments]
        return subprocess.run(told, env=env, check=False, capture_output=True, text=True, timeout=LIMIT_S)

    with serving() as server:
        file = tmp_path / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {"books": {"url": server.url, "oauth": True}}}))
        assert "needs a login: surefoot mcp login" in command("list", str(file)).stderr
        done = command("login", str(file), "books")
        assert (done.returncode, done.stdout.strip()) == (0, "logged in to books"), done.stderr
        assert "books__add" in command("list", str(file)).stdout
        assert "forgotten" in command("login", str(file), "books", "--forget").stdout
        assert "unknown MCP server 'pens'" in command("login", str(file), "pens").stderr
