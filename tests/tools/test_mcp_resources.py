"""What MCP servers hold beside tools: resources and prompts, and pictures in results."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from mcp_held import PNG

from surefoot import Agent, Attachment, Declared, McpServer, McpServers, ModelMessage, ToolCallContext, UsageError
from surefoot.testing.models import FunctionModel, ScriptedModel, calls
from surefoot.types.messages import ModelRequest
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio

HELD = McpServer("held", command=sys.executable, args=(str(Path(__file__).parent / "mcp_held.py"),), resources=True)
READER = "held__read_resource"


async def read(servers: McpServers, uri: str) -> ToolResult:
    tools = {tool.spec.name: tool for tool in await servers.tools()}
    return await tools[READER].call({"uri": uri}, ToolCallContext("run", "call", "key"))


async def test_resources_and_prompts_are_there_for_a_task() -> None:
    async with McpServers([HELD]) as servers:
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


async def test_a_server_is_asked_though_another_is_down() -> None:
    async with McpServers([McpServer("gone", command="no-such-command"), HELD]) as servers:
        assert await servers.resource("held", "notes://monday") == (Attachment("monday", "The ladder is in the shed."),)
        with pytest.raises(UsageError, match="the MCP server gone cannot be asked for the resource 'x'"):
            await servers.resource("gone", "x")


async def test_a_model_lists_and_reads_resources_with_a_tool_that_only_reads() -> None:
    async with McpServers([HELD]) as servers:
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


async def test_the_tool_is_there_where_it_is_asked_for_and_a_declaration_counts() -> None:
    plain = replace(HELD, resources=False)
    said = McpServer(
        "held", command=HELD.command, args=HELD.args, resources=True, tools={"read_resource": Declared("write")}
    )
    async with McpServers([plain]) as servers:
        assert READER not in {tool.spec.name for tool in await servers.tools()}
    async with McpServers([said]) as servers:
        assert {tool.spec.name: tool.spec.effect for tool in await servers.tools()}[READER] == "write"


async def test_pictures_of_servers_reach_a_model_that_takes_them() -> None:
    def reply(request: ModelRequest) -> ModelMessage | str:
        last = request.messages[-1]
        if len(request.messages) == 1:
            return calls(("held__draw", {}))
        return f"{[one.media_type for one in last.files]} {last.content}"

    async with Agent(FunctionModel(reply, traits={"images": "yes"}), mcp=HELD) as agent:
        run = await agent.run("Draw a dot.")
        assert run.answer.startswith("['image/png'] [image, image/png, ")
    async with Agent(ScriptedModel([calls((READER, {"uri": "notes://monday"})), "In the shed."]), mcp=HELD) as agent:
        assert (await agent.run("Where is the ladder?")).answer == "In the shed."
