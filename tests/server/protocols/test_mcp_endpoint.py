"""MCP over HTTP, by the client of the SDK in both versions of the protocol: agents are tools, and runs resources."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from server_agents import agents
from server_world import LIMIT_S, Served, endings, serving, task_of

from surefoot import MemoryJournal
from surefoot.server.site import Limits
from surefoot.types.outcomes import Cancelled

pytest.importorskip("mcp")
from mcp import MCPError
from mcp.types import INVALID_PARAMS, TextResourceContents
from mcp_client import client_of, text_of

pytestmark = pytest.mark.anyio

Json = Any
MODES = ("legacy", "2026-07-28")
CALL: Json = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
TAKES = {"Accept": "application/json, text/event-stream"}


@pytest.mark.parametrize("mode", MODES)
async def test_an_agent_is_a_tool_and_a_call_of_it_a_run(mode: str, store: MemoryJournal, served: Served) -> None:
    async with client_of(served, mode) as client:
        tools = {one.name: one for one in (await client.list_tools()).tools}
        assert set(tools) == RIGHTS["starter"]
        hints = tools["run_helper"].annotations
        assert hints is not None
        assert (hints.destructive_hint, hints.open_world_hint, hints.idempotent_hint) == (True, True, False)
        assert (tools["run_status"].annotations or hints).read_only_hint is True
        given = {"task": "the score of Alice", "labels": {"team": "travel"}}
        result = await client.call_tool("run_helper", given)
        assert (text_of(result), result.is_error) == ("It is done.", False)
        run = result.structured_content["run_id"]
        shown = await served.get(f"/v1/runs/{run}")
        assert (shown["status"], shown["labels"]) == ("completed", {"team": "travel"})
        assert (await task_of(store, run)).author == "model"
        assert text_of(await client.call_tool("run_status", {"run_id": run})) == "completed"
        assert text_of(await client.call_tool("run_answer", {"run_id": run})) == "It is done."
        can = client.server_capabilities  # of the older version alone, whose clients ask for nothing else
        assert (can.resources is None) == (can.tools is None)
        assert (await client.list_resources()).resources == []
        with pytest.raises(MCPError, match="no_such_run: unknown run none") as told:
            await client.read_resource("surefoot://runs/none")
        assert told.value.code == INVALID_PARAMS
        (template,) = (await client.list_resource_templates()).resource_templates
        uri = template.uri_template.replace("{run_id}", run)
        (content,) = (await client.read_resource(uri)).contents
        assert isinstance(content, TextResourceContents)
        assert content.mime_type == "text/markdown"
        assert content.text.startswith(f"# Run {run}")
        assert "Alice: 50" in content.text


@pytest.mark.parametrize("mode", MODES)
async def test_a_question_is_answered_by_a_person_elsewhere(mode: str, served: Served) -> None:
    async with client_of(served, mode) as client:
        result = await client.call_tool("run_mailer", {"task": "send a mail to bob@example.org"})
        run = result.structured_content["run_id"]
        link = f"{served.url}/runs/{run}"
        assert not result.is_error
        later = f"Ask run_status for run {run} later."
        assert text_of(result) == f"The run waits for a person's decision: {link}\n\n{later}"
        status = text_of(await client.call_tool("run_status", {"run_id": run}))
        assert status.startswith("paused")
        assert "bob@example.org" in status
        assert status.endswith(f"A person answers at {link}")
        (question,) = (await served.get(f"/v1/runs/{run}"))["waiting"]
        path = f"/v1/runs/{run}/calls/{question['call']}/approve"
        assert (await served.ask("POST", path, {"digest": question["digest"]})).status == 200
        async with asyncio.timeout(LIMIT_S):
            told = ""
            while told != "It is done.":
                told = text_of(await client.call_tool("run_answer", {"run_id": run}))


@pytest.mark.parametrize("mode", MODES)
async def test_a_long_run_is_named_and_can_be_cancelled(mode: str) -> None:
    store = MemoryJournal()
    limits = Limits(requests_s=10_000, burst=10_000, call_s=0.05)
    async with serving(store, agents(), limits=limits) as served, client_of(served, mode) as client:
        result = await client.call_tool("run_helper", {"task": "wait"})
        run = result.structured_content["run_id"]
        assert result.structured_content["status"] in ("queued", "running")
        assert text_of(result).endswith(f"Ask run_status for run {run} later.")
        await client.call_tool("run_cancel", {"run_id": run})
        await served.until(run, "cancelled")
        again = await client.call_tool("run_cancel", {"run_id": run})
        assert again.is_error
        assert text_of(again).startswith("ended: ")
        last = await client.call_tool("run_answer", {"run_id": run})
        assert last.is_error
        assert text_of(last).startswith("The run ended as cancelled")
        assert await endings(store, run) == [Cancelled("all via mcp")]


RIGHTS = {
    "reader": {"run_status", "run_answer"},
    "starter": {"run_helper", "run_mailer", "run_planner", "run_status", "run_answer", "run_cancel"},
    "canceller": {"run_status", "run_answer", "run_cancel"},
    "narrow": {"run_status", "run_answer", "run_cancel"},
}


@pytest.mark.parametrize("who", RIGHTS)
async def test_a_token_has_the_tools_of_its_rights_and_no_others(who: str, served: Served) -> None:
    async with client_of(served) as client:
        done = await client.call_tool("run_helper", {"task": "hello"})
    run = done.structured_content["run_id"]
    async with client_of(served, who=who) as client:
        assert {one.name for one in (await client.list_tools()).tools} == RIGHTS[who]
        for name, given in (("run_helper", {"task": "hello"}), ("run_cancel", {"run_id": run})):
            if name not in RIGHTS[who]:
                refused = await client.call_tool(name, given)
                assert refused.is_error
                assert text_of(refused).startswith("forbidden: ")
        if who == "starter":  # the run is another's
            assert text_of(await client.call_tool("run_cancel", {"run_id": run})).startswith("forbidden: ")
        if who == "narrow":
            assert text_of(await client.call_tool("run_answer", {"run_id": run})).startswith("no_such_run: ")
            with pytest.raises(MCPError):
                await client.read_resource(f"surefoot://runs/{run}")
    assert len((await served.get("/v1/runs"))["runs"]) == 1


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("run_helper", {}, "invalid: task: "),
        ("run_helper", {"task": ""}, "invalid: task: "),
        ("run_helper", {"task": "x", "author": "person"}, "invalid: author: "),
        ("run_helper", {"task": "x", "labels": {"surefoot.tenant": "acme"}}, "invalid: labels: "),
        ("run_helper", {"task": "x" * 300_000}, "too_large: "),
        ("run_nobody", {"task": "x"}, "forbidden: "),
        ("run_status", {"run_id": "none"}, "no_such_run: "),
    ],
)
async def test_what_cannot_be_done_is_told_to_the_model(name: str, given: Json, told: str) -> None:
    async with serving(MemoryJournal(), agents(), drive=0) as served, client_of(served) as client:
        result = await client.call_tool(name, given)
        assert result.is_error
        assert text_of(result).startswith(told)
        assert (await served.get("/v1/runs"))["runs"] == []


async def test_the_same_door_stands_before_it() -> None:
    limits = Limits(requests_s=10_000, burst=10_000, body=1_000)
    async with serving(MemoryJournal(), agents(), drive=0, limits=limits) as served:
        assert (await served.ask("POST", "/mcp", CALL, headers=TAKES)).status == 200
        await served.refused("401 unauthorized", "POST", "/mcp", CALL, who="", headers=TAKES)
        await served.refused("403 forbidden", "POST", "/mcp", CALL, who="admin", headers=TAKES)
        evil, plain = TAKES | {"Origin": "https://evil.example"}, TAKES | {"Content-Type": "text/plain"}
        await served.refused("403 foreign_origin", "POST", "/mcp", CALL, headers=evil)
        await served.refused("421 wrong_host", "POST", "/mcp", CALL, headers={**TAKES, "Host": "evil.example"})
        await served.refused("415 not_json", "POST", "/mcp", data=b"{}", headers=plain)
        await served.refused("413 too_large", "POST", "/mcp", data=b" " * 1_001, headers=TAKES)
        assert (await served.ask("GET", "/mcp", headers=TAKES)).status == 405
