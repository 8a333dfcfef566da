"""A server without the extra `agui` says what to install, and serves all else."""

from __future__ import annotations

import sys

import pytest
from server_agents import agents
from server_world import serving

from surefoot import MemoryJournal

pytestmark = pytest.mark.anyio


async def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ag_ui.core", None)
    async with serving(MemoryJournal(), agents()) as served:
        said = [{"id": "u", "role": "user", "content": "hello"}]
        body = {"threadId": "t", "runId": "r", "messages": said}
        reply = await served.refused("501 not_installed", "POST", "/agui/helper", body)
        assert "pip install 'surefoot[agui]'" in reply.json["detail"]
        assert (await served.ask("POST", "/v1/runs", {"agent": "helper", "task": "hello"})).status == 202
