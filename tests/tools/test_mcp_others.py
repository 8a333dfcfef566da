"""MCP servers that others wrote, over standard streams and streamable HTTP."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

import pytest

from processes import free_port, listening, told_until
from surefoot.tools.mcp.config import McpServer
from surefoot.tools.mcp.servers import McpServers, McpTool
from surefoot.types.ports import ToolCallContext
from surefoot.types.tools import ToolResult

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PACKAGES = ("@modelcontextprotocol/server-everything@2026.8.31", "@modelcontextprotocol/server-filesystem@2026.8.31")


@pytest.fixture(scope="session")
def node() -> str:
    found = shutil.which("node")
    if found is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed, so servers of others that need them cannot be started")
    return found


@pytest.fixture(scope="session")
def installed(node: str) -> Path:  # noqa: ARG001  # it skips
    """The folder of their packages, in the user's cache, so that they are fetched once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "surefoot" / "test-npm-2026.8.31"
    if not cache.exists():
        cache.parent.mkdir(parents=True, exist_ok=True)
        fresh = tempfile.mkdtemp(dir=cache.parent)
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", fresh, *PACKAGES]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        with contextlib.suppress(OSError):  # somebody else was faster
            Path(fresh).rename(cache)
    return cache / "node_modules" / "@modelcontextprotocol"


async def tools_of(servers: McpServers) -> Mapping[str, McpTool]:
    return {tool.spec.name: tool for tool in await servers.tools()}


async def called(tool: McpTool, /, **arguments: object) -> ToolResult:
    return await tool.call(arguments, ToolCallContext("run", "call", "key"))


async def test_everything(node: str, installed: Path) -> None:
    server = McpServer("all", command=node, args=(str(installed / "server-everything" / "dist" / "index.js"), "stdio"))
    async with McpServers([server]) as servers:
        tools = await tools_of(servers)
        assert (await called(tools["all__echo"], message="你好")).content == "Echo: 你好"
        assert (await called(tools["all__get-sum"], a=2, b=3)).content == "The sum of 2 and 3 is 5."
        assert "[image, image/png, 4033 bytes]" in (await called(tools["all__get-tiny-image"])).content
        weather = await called(tools["all__get-structured-content"], location="Chicago")
        assert weather.structured
        assert weather.content.startswith('{"temperature":')
        refused = await called(tools["all__get-sum"], a="two")
        assert refused.kind == "error"
        slow = asyncio.ensure_future(called(tools["all__trigger-long-running-operation"], duration=60, steps=60))
        both = await asyncio.gather(*(called(tools["all__echo"], message=str(n)) for n in range(20)))
        assert [told.content for told in both] == [f"Echo: {n}" for n in range(20)]
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        resources, prompts = await servers.contents("all")
        assert await servers.resource("all", resources[0].uri)
        assert (await servers.prompt("all", prompts[0].name))[0].content
        secret = await called(tools["all__get-env"])
        assert "SUREFOOT_TRAITS_FILE" in os.environ
        assert "SUREFOOT_TRAITS_FILE" not in secret.content  # it gets nothing of our environment that it need not have


async def test_filesystem(node: str, installed: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("inside", encoding="utf-8")
    (tmp_path / "b.txt").write_text("outside", encoding="utf-8")
    index = str(installed / "server-filesystem" / "dist" / "index.js")
    server = McpServer("files", command=node, args=(index, str(tmp_path / "in")), exclude=("read_file",))
    async with McpServers([server]) as servers:
        tools = await tools_of(servers)
        assert "files__read_file" not in tools
        assert tools["files__edit_file"].spec.effect == "delete"  # by its own hint
        assert tools["files__read_text_file"].spec.effect == "write"  # its hint that it only reads is not believed
        told = await called(tools["files__read_text_file"], path=str(tmp_path / "in" / "a.txt"))
        assert (told.content, told.structured) == ('{"content":"inside"}', True)
        denied = await called(tools["files__read_text_file"], path=str(tmp_path / "b.txt"))
        assert (denied.kind, "outside" in denied.content.replace("outside allowed", "")) == ("error", False)
        await called(tools["files__write_file"], path=str(tmp_path / "in" / "c.txt"), content="new")
        assert (tmp_path / "in" / "c.txt").read_text(encoding="utf-8") == "new"


async def test_time() -> None:
    server = McpServer("time", command=sys.executable, args=("-m", "mcp_server_time", "--local-timezone", "UTC"))
    async with McpServers([server]) as servers:
        tools = await tools_of(servers)
        zones = {"source_timezone": "Asia/Tokyo", "target_timezone": "Asia/Shanghai"}
        told = await called(tools["time__convert_time"], time="12:00", **zones)
        assert "11:00:00+08:00" in told.content
        wrong = await called(tools["time__get_current_time"], timezone="Nowhere/At_All")
        assert wrong.kind == "error"


@pytest.fixture
def port() -> int:
    return free_port()


@contextlib.contextmanager
def running(command: Sequence[str], says: str, port: int) -> Generator[None]:
    """A server while the context lasts, once it has said on standard error that it listens."""
    environment = {**os.environ, "PORT": str(port)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            told_until(says, process, process.stderr)
            yield
        finally:
            process.kill()


async def test_everything_over_http_and_after_it_was_started_again(node: str, installed: Path, port: int) -> None:
    command = (node, str(installed / "server-everything" / "dist" / "index.js"), "streamableHttp")
    async with McpServers([McpServer("all", url=f"http://127.0.0.1:{port}/mcp")], backoff_s=0.001) as servers:
        with running(command, "listening", port):
            echo = (await tools_of(servers))["all__echo"]
            assert (await called(echo, message="one")).content == "Echo: one"
        down = await called(echo, message="two")
        assert (down.kind, down.infrastructure) == ("error", True)
        assert (await tools_of(servers))["all__echo"] is echo  # offered as it was
        with running(command, "listening", port):
            assert (await called(echo, message="three")).content == "Echo: three"
    assert "127.0.0.1" not in echo.pin


async def test_a_session_that_the_server_forgot_is_opened_anew(node: str, installed: Path, port: int) -> None:
    command = (node, str(installed / "server-everything" / "dist" / "index.js"), "streamableHttp")
    async with McpServers([McpServer("all", url=f"http://127.0.0.1:{port}/mcp")], backoff_s=0.001) as servers:
        with running(command, "listening", port):
            echo = (await tools_of(servers))["all__echo"]
        with running(command, "listening", port):
            told = [await called(echo, message="on") for _ in range(2)]
            assert told[-1].content == "Echo: on", told


async def test_our_own_over_http(port: int) -> None:
    server = McpServer("web", url=f"http://127.0.0.1:{port}/mcp", headers={"Authorization": "Bearer hunter2"})
    async with McpServers([server]) as servers:
        with listening(Path(__file__).parent / "mcp_http.py", [port], str(port)):
            tools = await tools_of(servers)
            assert (await called(tools["web__add"], a=2, b=3)).content == '{"result":5}'
            assert (await called(tools["web__who"])).content == '{"result":"Bearer hunter2"}'
            assert "web__late" not in tools
            await called(tools["web__grow"])
            async with asyncio.timeout(20):  # it is told on a stream of its own, so a moment later
                while "web__late" not in (now := await tools_of(servers)):
                    await asyncio.to_thread(os.getpid)
            assert (await called(now["web__late"])).content == '{"result":"late"}'
            await servers.aclose()
