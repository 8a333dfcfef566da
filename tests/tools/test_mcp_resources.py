"""What MCP servers hold beside tools: resources and prompts, and pictures in results."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from processes import free_port, listening
from surefoot import Agent, Attachment, Declared, McpServer, McpServers, ModelMessage, ToolCallContext, UsageError
from surefoot.testing.models import FunctionModel, ScriptedModel, calls
from surefoot.types.messages import ModelRequest
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio

PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=")
READER = "held__read_resource"


@pytest.fixture(scope="module")
def held() -> Iterator[McpServer]:
    port = free_port()
    with listening(Path(__file__).parent / "mcp_held.py", [port], str(port)):
        yield McpServer("held", url=f"http://127.0.0.1:{port}/mcp", resources=True)


async def read(servers: McpServers, uri: str) -> ToolResult:
    tools = {tool.spec.name: tool for tool in await servers.tools()}
    return await tools[READER].call({"uri": uri}, ToolCallContext("run", "call", "key"))


async def test_resources_and_prompts_are_there_for_a_task(held: McpServer) -> None:
    async with McpServers([held]) as servers:
        resources, prompts = await servers.contents("held")
        assert [one.uri for one in resources] == ["notes://monday", "pictures://dot.png", "raw://odd.bin"]
        assert [one.name for one in prompts] == ["where"]
        assert await servers.resource("held", "notes://monday") == (Attachment("monday", "The ladder is in the shed."),)
        (dot,) = await servers.resource("held", "pictures://dot.png")
        assert (dot.name, dot.media_type, dot.data, dot.trust) == ("dot.png", "image/png", PNG, "untrusted")
        asked = await servers.prompt("held", "where", {"thing": "ladder"})
        assert asked == (ModelMessage("user", "Where is the ladder?"),)
        for wrong, told in (
            (servers.resource("held", "raw://odd.bin"), "odd.bin"),
            (
                servers.resource("held", "notes://sunday"),
                "the MCP server held does not give the resource 'notes://sunday'",
            ),
            (servers.resource("other", "notes://monday"), "unknown MCP server 'other'; there are: held"),
            (servers.prompt("held", "where"), "the MCP server held does not give the prompt 'where'"),
        ):
            with pytest.raises(UsageError, match=told):
                await wrong


async def test_a_server_is_asked_though_another_is_down(held: McpServer) -> None:
    async with McpServers([McpServer("gone", command="no-such-command"), held], backoff_s=0.001) as servers:
        assert await servers.resource("held", "notes://monday") == (Attachment("monday", "The ladder is in the shed."),)
        with pytest.raises(UsageError, match="the MCP server gone cannot be asked for the resource 'x'"):
            await servers.resource("gone", "x")


async def test_a_model_lists_and_reads_resources_with_a_tool_that_only_reads(held: McpServer) -> None:
    async with McpServers([held]) as servers:
        listed = await read(servers, "")
        assert listed.content.splitlines()[0] == "notes://monday  monday  text/plain"
        told = await read(servers, "notes://monday")
        assert (told.content, told.trust, told.source) == ("The ladder is in the shed.", "untrusted", "mcp:held")
        (dot,) = (await read(servers, "pictures://dot.png")).files
        assert dot.data == PNG
        odd, gone = await read(servers, "raw://odd.bin"), await read(servers, "notes://sunday")
        assert (odd.kind, gone.kind) == ("error", "error")
        assert odd.content.startswith("Not read: odd.bin")
        (spec,) = (tool.spec for tool in await servers.tools() if tool.spec.name == READER)
        assert (spec.effect, spec.declared, spec.origin) == ("read", True, "remote")


async def test_the_tool_is_there_where_it_is_asked_for_and_a_declaration_counts(held: McpServer) -> None:
    plain, said = replace(held, resources=False), replace(held, tools={"read_resource": Declared("write")})
    async with McpServers([plain]) as servers:
        assert READER not in {tool.spec.name for tool in await servers.tools()}
    async with McpServers([said]) as servers:
        assert {tool.spec.name: tool.spec.effect for tool in await servers.tools()}[READER] == "write"


async def test_pictures_of_servers_reach_a_model_that_takes_them(held: McpServer) -> None:
    def reply(request: ModelRequest) -> ModelMessage | str:
        last = request.messages[-1]
        if len(request.messages) == 1:
            return calls(("held__draw", {}))
        return f"{[one.media_type for one in last.files]} {last.content}"

    async with Agent(FunctionModel(reply, traits={"images": "yes"}), mcp=held) as agent:
        run = await agent.run("Draw a dot.")
        assert run.answer.startswith("['image/png'] [image, image/png, ")
    async with Agent(ScriptedModel([calls((READER, {"uri": "notes://monday"})), "In the shed."]), mcp=held) as agent:
        assert (await agent.run("Where is the ladder?")).answer == "In the shed."
