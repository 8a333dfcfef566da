"""The commands of docs/protocols.md run as they stand there."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from pathlib import Path

import pytest
from server_agents import reply
from server_world import LIMIT_S, serving, token_of

from surefoot import Agent, MemoryJournal
from surefoot.testing.models import FunctionModel

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[3] / "docs" / "protocols.md"
ASKS = [one for one in re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL) if "curl" in one]


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page's commands need curl")
async def test_the_commands_on_the_page_work() -> None:
    pytest.importorskip("mcp")
    clerk = Agent(FunctionModel(reply), name="clerk")
    async with serving(MemoryJournal(), {"clerk": clerk}) as served, asyncio.timeout(LIMIT_S):
        script = "set -e\n" + "".join(ASKS).replace("http://127.0.0.1:7319", served.url)
        env = {**os.environ, "TOKEN": token_of("all")}
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", script.replace("curl -s", "curl -sf"), env=env, stdout=asyncio.subprocess.PIPE
        )
        told = (await process.communicate())[0].decode()
        assert process.returncode == 0
        runs = [one["run_id"] for one in (await served.get("/v1/runs"))["runs"]]
    assert len(ASKS) == 2
    assert '"id":"clerk"' in told
    assert told.count("Hello.") == 2
    assert len(runs) == 2
    assert all(run in told for run in runs)
