"""The commands of docs/protocols.md run as they stand there."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import sys
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from server_agents import agents, reply
from server_world import LIMIT_S, Served, serving, token_of

from surefoot import Agent, MemoryJournal
from surefoot.testing.models import FunctionModel

pytestmark = pytest.mark.anyio

TEXT = (Path(__file__).parents[3] / "docs" / "protocols.md").read_text(encoding="utf-8")
SHELL = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
ASKS = [one for one in SHELL if "curl" in one]
PYTHON = {one.split()[1].rstrip(":"): one for one in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)}


async def said(command: Sequence[str], served: Served, folder: Path, given: str = "") -> str:
    """What a command says, which has to end well."""
    env = {
        **os.environ, "NO_PROXY": "*", "TOKEN": token_of("all"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }  # fmt: skip
    text = [one.replace("http://127.0.0.1:7319", served.url) for one in command]
    process = await asyncio.create_subprocess_exec(*text, env=env, cwd=folder, stdin=PIPE, stdout=PIPE)
    async with asyncio.timeout(4 * LIMIT_S):  # it loads a client
        told = (await process.communicate(given.encode()))[0].decode()
    assert process.returncode == 0
    return told


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page's commands need curl")
async def test_the_commands_on_the_page_work(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    clerk = Agent(FunctionModel(reply), name="clerk")
    async with serving(MemoryJournal(), {"clerk": clerk}) as served:
        told = await said(("sh", "-c", "set -e\n" + "".join(ASKS).replace("curl -s", "curl -sf")), served, tmp_path)
        runs = [one["run_id"] for one in (await served.get("/v1/runs"))["runs"]]
    assert len(ASKS) == 4
    assert '"id":"clerk"' in told
    assert told.count("Hello.") >= 3
    assert re.search(r'"taskId": *"', told)
    assert len(runs) == 4
    assert all(run in told for run in runs)


CLIENTS = [("mcp", "ask.py", "approve", "approve or deny? "), ("openai", "respond.py", "yes", "}? ")]


@pytest.mark.parametrize(("package", "name", "yes", "asked"), CLIENTS)
async def test_the_clients_on_the_page_ask_a_person(
    tmp_path: Path, package: str, name: str, yes: str, asked: str
) -> None:
    pytest.importorskip(package)
    clerk = replace(cast("Any", agents()["mailer"]), name="clerk")
    (command,) = [shlex.split(one) for one in SHELL if f"python {name}" in one]
    (tmp_path / name).write_text(PYTHON[name])
    command[-1] = "send a mail to bob@example.org"
    async with serving(MemoryJournal(), {"clerk": clerk}) as served:
        told = await said(command, served, tmp_path, f"{yes}\n")
    assert "bob@example.org" in told
    assert told.endswith(f"{asked}It is done.\n")
