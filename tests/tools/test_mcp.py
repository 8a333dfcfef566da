"""Tools of MCP servers, against a server that misbehaves and one in its place."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any  # Any: fields of a dataclass by name, and JSON

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from mcp_types import CallToolResult, TextContent, Tool

from cases import cases, rows
from surefoot import Agent
from surefoot.journal.side import MemorySide
from surefoot.runtime.offers import Offers
from surefoot.runtime.pins import Pins
from surefoot.testing.models import ScriptedModel
from surefoot.tools.mcp.config import McpServer
from surefoot.tools.mcp.link import Connection
from surefoot.tools.mcp.offers import offer_of, pin_of
from surefoot.tools.mcp.servers import McpServers, McpTool, code_in
from surefoot.types.config import LoopConfig
from surefoot.types.errors import UsageError
from surefoot.types.events import CallEnded
from surefoot.types.messages import ToolProgress
from surefoot.types.ports import ServiceKey, ToolCallContext
from surefoot.types.rules import Declared
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio

HOSTILE = Path(__file__).parent / "mcp_hostile.py"

Tools = Mapping[str, McpTool]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def server(log: Path) -> McpServer:
    return McpServer("h", command=sys.executable, args=(str(HOSTILE), str(log)), connect_timeout_s=20)


@asynccontextmanager
async def started(*servers: McpServer) -> AsyncGenerator[McpServers]:
    async with McpServers(servers, backoff_s=0.001) as made:
        yield made


async def tools_of(servers: McpServers) -> Tools:
    return {tool.spec.name: tool for tool in await servers.tools()}


@pytest.fixture
async def tools(server: McpServer) -> AsyncGenerator[Tools]:
    """The tools of the server as it starts."""
    async with started(server) as servers:
        yield await tools_of(servers)


def lines_of(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8").splitlines()


def calls_in(log: Path, name: str) -> int:
    return lines_of(log).count(f"tools/call {name}")


CONTEXT = ToolCallContext("run", "call", "key")


async def test_what_a_server_lists_is_made_fit_for_a_model(server: McpServer) -> None:
    async with started(server) as servers:
        tools = await tools_of(servers)
        (dropped,) = (listing.dropped for listing in (await servers.listings()).values())
    plain = [name for name in tools if not name.startswith("h__a_name")]
    assert plain[:5] == ["h__echo", "h__hidden", "h__files_read_all_b6df1b07", "h_____bcd6771e", "h__picky"]
    assert all(len(name) <= 64 and name.replace("_", "").replace("-", "").isalnum() for name in tools)
    assert dropped == (("echo", "the server lists another tool of this name"),)
    hidden = tools["h__hidden"].spec
    assert hidden.description.startswith("Reads a file. xxx")
    assert len(hidden.description) == 600
    assert hidden.parameters["properties"] == {"text": {"type": "string", "description": "A text."}}
    told = {name: {"type": "string", "description": "\U000e0041" + "x" * 700} for name in ("pattern", "enum", "query")}
    grep = Tool(name="grep", input_schema={"type": "object", "properties": told})
    offered = offer_of(McpServer("s", command="x"), grep)
    shown: Any = offered.spec.parameters["properties"]
    assert all(len(one["description"]) == 600 for one in shown.values())
    echo = tools["h__echo"].spec
    assert (echo.effect, echo.declared, echo.idempotent) == ("write", False, False)
    assert (echo.origin, echo.server) == ("remote", "h")


async def test_hints_may_only_tighten_and_a_declaration_stands(server: McpServer) -> None:
    declared = {"wipe": Declared("write", idempotent=True), "surf": Declared("read", roles={"url": "destination"})}
    async with started(server) as servers:
        tools = await tools_of(servers)
        assert tools["h__wipe"].spec.effect == "delete"
        assert (tools["h__surf"].spec.effect, tools["h__surf"].spec.egress) == ("write", True)
        pins = {name: tool.pin for name, tool in tools.items()}
    async with started(replace(server, tools=declared)) as servers:
        tools = await tools_of(servers)
        assert (tools["h__wipe"].spec.effect, tools["h__wipe"].spec.may_repeat) == ("write", True)
        surf = tools["h__surf"].spec
        assert (surf.effect, surf.egress, surf.declared, surf.roles) == ("read", False, True, {"url": "destination"})
        assert {name: tool.pin for name, tool in tools.items()} == pins


async def test_only_what_is_let_in_is_offered_and_a_declaration_for_nothing_is_told(server: McpServer) -> None:
    async with started(replace(server, include=("e*", "b*"), exclude=("boom",), tools={"eco": Declared()})) as servers:
        assert list(await tools_of(servers)) == ["h__echo"]
        (listing,) = (await servers.listings()).values()
        assert ("boom", "left out by include and exclude") in listing.dropped
        assert ("eco", "declared, but the server does not list it") in listing.dropped


async def test_results_are_untrusted_text(tools: Tools) -> None:
    for row in rows("tools/mcp_calls"):
        told = await tools[f"h__{row['name']}"].call(row.get("arguments", {}), CONTEXT)
        assert (told.content, told.kind) == (row["content"], row.get("kind", "ok"))
        assert (told.structured, told.infrastructure) == (row.get("structured", False), False)
        assert (told.trust, told.source) == ("untrusted", "mcp:h")
    files = (await tools["h__parts"].call({}, CONTEXT)).files  # only what is what it says, or else by its own bytes
    assert [(one.name, one.media_type, one.data) for one in files] == [("image", "image/png", b"\x89PNG\r\n\x1a\n")]
    huge = (await tools["h__huge"].call({"chars": 9_000_000}, CONTEXT)).content
    assert len(huge) < 4_000_100
    assert huge.endswith("[cut: the result had 9000000 characters]")


@cases("tools/mcp")
def test_the_code_of_a_failure_is_the_servers(structured: dict[str, object] | None, text: str, named: str) -> None:
    answer = CallToolResult(content=[TextContent(text=text)], structured_content=structured, is_error=True)
    assert code_in(answer) == named


class _Line:
    """Who watches a call: `begun` is set when its server says that it works on it."""

    cancelled = False

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.told: list[ToolProgress] = []

    def tell(self, signal: ToolProgress) -> None:
        self.told.append(signal)
        self.begun.set()

    async def service(self, key: ServiceKey) -> object:
        raise LookupError(key)


@pytest.fixture
async def hanging(tools: Tools) -> asyncio.Task[ToolResult]:
    """A call that is under way, and does not come back."""
    line = _Line()
    call = asyncio.ensure_future(tools["h__hang"].call({}, replace(CONTEXT, _line=line)))
    async with asyncio.timeout(20):
        await line.begun.wait()
    assert line.told == [ToolProgress("call", "begun", 1, 2)]
    return call


async def test_a_cancelled_call_is_told_the_server(tools: Tools, hanging: asyncio.Task[ToolResult], log: Path) -> None:
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging
    assert (await tools["h__echo"].call({"text": "on"}, CONTEXT)).content == "on"
    assert any(line.startswith("notifications/cancelled") for line in lines_of(log))


async def test_when_the_server_dies_all_calls_with_an_effect_are_in_doubt(
    tools: Tools, hanging: asyncio.Task[ToolResult], log: Path
) -> None:
    told = await tools["h__die"].call({}, CONTEXT)
    assert told.kind == (await hanging).kind == "in_doubt"
    assert "was lost. Whether the call took effect is not known" in told.content
    assert calls_in(log, "die") == 1
    assert (await tools["h__echo"].call({"text": "back"}, CONTEXT)).content == "back"  # on a new process


async def losing(request: web.Request) -> web.StreamResponse:
    """A server over HTTP that begins `pay` and then loses its connection, and turns `forbidden` away."""
    asked: dict[str, Any] = await request.json() if request.method == "POST" else {}
    match asked.get("method"), asked.get("params", {}).get("name"):
        case "initialize", _:
            told: Mapping[str, Any] = {"serverInfo": {"name": "l", "version": "1"}, "capabilities": {"tools": {}}}
            result: Mapping[str, Any] = {"protocolVersion": "2025-06-18", **told}
        case "tools/list", _:
            result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("pay", "forbidden")]}
        case "tools/call", "pay":
            begun = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await begun.prepare(request)
            await begun.write(b"id: 1\nretry: 1\ndata: \n\n")  # more is to be had under this id, with a GET
            await asyncio.sleep(0.2)
            return begun
        case method, name:
            return web.Response(status=403 if name else 202 if method else 405)
    return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "result": result}, headers={"Mcp-Session-Id": "one"})


async def test_a_call_is_in_doubt_by_how_its_own_request_has_fared() -> None:
    app = web.Application()
    app.router.add_route("*", "/mcp", losing)
    async with TestServer(app) as server, started(McpServer("l", url=str(server.make_url("/mcp")))) as servers:
        tools, lost = await tools_of(servers), "The connection to the MCP server l was lost"
        begun = asyncio.create_task(tools["l__pay"].call({}, CONTEXT))
        await asyncio.sleep(0.1)
        refused = await tools["l__forbidden"].call({}, CONTEXT)
        assert (refused.kind, refused.infrastructure, refused.content) == ("error", True, f"{lost} (HTTP status 403).")
        assert (await begun).kind == "in_doubt"
        assert (await tools["l__forbidden"].call({}, CONTEXT)).content == refused.content
        await server.close()
        unsent = await tools["l__pay"].call({}, CONTEXT)
        assert (unsent.kind, unsent.infrastructure, unsent.content) == ("error", True, f"{lost}.")


async def test_a_call_that_may_be_repeated_is_sent_once_more(server: McpServer, log: Path) -> None:
    async with started(replace(server, tools={"die": Declared("write", idempotent=True)})) as servers:
        told = await (await tools_of(servers))["h__die"].call({}, CONTEXT)
        assert (told.kind, told.infrastructure) == ("error", True)
        assert calls_in(log, "die") == 2


async def test_a_server_that_died_while_idle_is_started_again(tools: Tools) -> None:
    pid = int((await tools["h__pid"].call({}, CONTEXT)).content)
    os.kill(pid, 9)
    link = await tools["h__echo"].connection.ready()
    async with asyncio.timeout(20):
        while not link.is_lost:  # until its end was seen
            await asyncio.to_thread(os.getpid)
    told = await tools["h__echo"].call({"text": "back"}, CONTEXT)
    assert (told.content, told.kind) == ("back", "ok")


async def test_concurrent_runs_share_one_process(server: McpServer, log: Path) -> None:
    async with started(server) as servers:
        async with asyncio.TaskGroup() as group:
            found = [group.create_task(tools_of(servers)) for _ in range(8)]
        pids = await asyncio.gather(*(one.result()["h__pid"].call({}, CONTEXT) for one in found))
        assert len({told.content for told in pids}) == 1
    assert sum(line.startswith("initialize") for line in lines_of(log)) == 1


async def test_tools_that_appear_are_for_later_runs(server: McpServer) -> None:
    async with started(server) as servers:
        before = await servers.tools()
        assert await servers.tools() is before
        by_name = {tool.spec.name: tool for tool in before}
        assert (await by_name["h__grow"].call({}, CONTEXT)).content == "grow"
        after = await tools_of(servers)
        assert "h__late" not in by_name
        assert (await after["h__late"].call({}, CONTEXT)).content == "late"
        assert (await by_name["h__echo"].call({"text": "same"}, CONTEXT)).content == "same"
        await after["h__fewer"].call({}, CONTEXT)
        gone = await after["h__late"].call({}, CONTEXT)
        assert (gone.kind, gone.infrastructure) == ("error", False)
        assert "does not offer this tool any more" in gone.content


async def test_a_changed_tool_is_not_called_under_its_old_pin(server: McpServer, log: Path) -> None:
    async with started(server) as servers:
        tools = await tools_of(servers)
        await tools["h__change"].call({}, CONTEXT)
        told = await tools["h__echo"].call({"text": "no"}, CONTEXT)
        assert told.kind == "error"
        assert "has changed this tool since the run began" in told.content
        assert calls_in(log, "echo") == 0
        now = (await tools_of(servers))["h__echo"]
        assert now.pin != tools["h__echo"].pin
        assert (await now.call({"text": "yes"}, CONTEXT)).content == "yes"
        assert (await now.known_as(tools["h__echo"].spec).call({"text": "no"}, CONTEXT)).kind == "error"
        assert now.known_as(now.spec) is now


async def test_a_run_that_goes_on_cannot_call_a_tool_that_changed_since(server: McpServer) -> None:
    offers = Offers({}, LoopConfig(), server, Pins(MemorySide()), ())
    try:
        known = (await offers.now()).catalogue
        await (await offers.tools_of(known))["h__change"].call({}, CONTEXT)
        going_on = await offers.tools_of(known)
        assert (await going_on["h__echo"].call({"text": "x"}, CONTEXT)).kind == "error"
        assert (await going_on["h__pid"].call({}, CONTEXT)).kind == "ok"
        assert (await (await offers.now()).tools["h__echo"].call({"text": "x"}, CONTEXT)).kind == "ok"
    finally:
        for one in offers.used:
            await one.aclose()


async def test_a_pin_follows_what_a_model_reads_and_nothing_else(server: McpServer) -> None:
    async with started(server) as servers:
        spec = (await tools_of(servers))["h__number"].spec
    assert pin_of(spec) == pin_of(replace(spec, effect="read", verified=True, timeout_s=3, roles={"a": "object"}))
    changes: dict[str, Any] = {"description": "x", "parameters": {}, "output": None, "name": "x", "server": "x"}
    assert len({pin_of(spec), *(pin_of(replace(spec, **{key: value})) for key, value in changes.items())}) == 6


async def test_a_server_that_ends_when_asked_for_its_version_is_spoken_to_as_before(server: McpServer) -> None:
    async with started(replace(server, args=(*server.args, "strict"))) as servers:
        assert "h__echo" in await tools_of(servers)


async def test_a_server_that_cannot_start_says_why_without_secrets(server: McpServer) -> None:
    dead = replace(server, args=(*server.args, "dead"), env={"TOKEN": "hunter2"})
    async with started(dead) as servers:
        with pytest.raises(UsageError, match=r"MCP server h cannot be reached: .*no key: \*\*\*"):
            await servers.tools()
    async with started(replace(server, command="no-such-command-anywhere")) as servers:
        with pytest.raises(UsageError, match="No such file or directory: 'no-such-command-anywhere'"):
            await servers.tools()


async def test_an_optional_server_may_be_missing(server: McpServer, caplog: pytest.LogCaptureFixture) -> None:
    dead = replace(server, name="dead", args=(*server.args, "dead"), optional=True)
    async with started(server, dead) as servers:
        assert {tool.spec.server for tool in await servers.tools()} == {"h"}
        assert set(await servers.listings()) == {"h"}
    assert "the run begins without" in caplog.text


async def test_connecting_has_a_limit_and_a_call_keeps_its_own(server: McpServer) -> None:
    mute = replace(server, args=(*server.args, "mute"), connect_timeout_s=0.3)
    async with started(mute) as servers:
        with pytest.raises(UsageError, match=r"was not ready within 0\.3 s"):
            await servers.tools()
    async with started(server) as servers:
        echo = (await tools_of(servers))["h__echo"]
    connection = Connection(mute)
    told = await McpTool(echo.offer, connection).call({"text": "x"}, replace(CONTEXT, deadline_s=0.1))
    assert (told.kind, told.infrastructure) == ("error", True)
    assert told.content == "Not called: the MCP server h was not ready within 0.08 s"
    await connection.aclose()


async def test_closing_ends_the_process_and_a_later_need_starts_it_anew(server: McpServer) -> None:
    async with started(server) as servers:
        first = (await tools_of(servers))["h__pid"]
        pid = int((await first.call({}, CONTEXT)).content)
        await servers.aclose()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        again = int((await (await tools_of(servers))["h__pid"].call({}, CONTEXT)).content)
        assert again != pid


def test_a_program_that_closes_nothing_ends_all_the_same(server: McpServer) -> None:
    code = f"""
import asyncio
from surefoot.tools.mcp.config import McpServer
from surefoot.tools.mcp.servers import McpServers
from surefoot.types.ports import ToolCallContext

async def main():
    servers = McpServers([McpServer("h", command={server.command!r}, args={server.args!r})])
    tools = {{tool.spec.name: tool for tool in await servers.tools()}}
    print((await tools["h__pid"].call({{}}, ToolCallContext("r", "c", "k"))).content)

asyncio.run(main())
"""
    command = [sys.executable, "-W", "error", "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stderr == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(ended.stdout), 0)


def test_an_agent_uses_the_tools_of_a_server(server: McpServer) -> None:
    replies = ['Action: h__echo\nAction Input: {"text": "from afar"}', "Final Answer: done"]
    model = ScriptedModel([*replies, *replies], modes=("text",))
    agent = Agent(model, mcp=server)
    for _ in range(2):  # each in an event loop of its own
        seen: list[object] = []
        assert agent.run_sync("Say it.", watch=seen.append).answer == "done"
        (told,) = (event.result for event in seen if isinstance(event, CallEnded))
        assert (told.content, told.trust, told.source) == ("from afar", "untrusted", "mcp:h")


def test_a_call_out_of_time_is_cancelled_and_in_doubt_unless_it_may_repeat(server: McpServer, log: Path) -> None:
    limited = replace(server, timeout_s=0.3)
    for tools, status in (({}, "paused"), ({"hang": Declared("read")}, "completed")):
        model = ScriptedModel(["Action: h__hang\nAction Input: {}", "Final Answer: done"], modes=("text",))
        run = Agent(model, mcp=replace(limited, tools=tools)).run_sync("Wait.")
        assert run.status == status
    assert sum(line.startswith("notifications/cancelled") for line in lines_of(log)) == 2
