"""Write the histories that `test_temporal_payloads.py` replays: of a short run, and of one that begins anew.

`PYTHONPATH=src:tests/engines python tests/engines/histories/make.py`, once a core decides otherwise on purpose.
"""

import asyncio
import json
import tempfile
from pathlib import Path

from dev_server import Server

from surefoot import Agent, MemoryJournal, tool
from surefoot.engines.temporal.payloads import workflow_id
from surefoot.engines.temporal.worker import Engine, connected
from surefoot.testing.models import ScriptedModel, calls

HERE = Path(__file__).parent


@tool(effect="read")
async def look(at: int) -> str:
    """Look it up."""
    return f"seen {at}"


@tool
async def pay(at: int) -> str:
    """Pay once."""
    return f"paid {at}"


async def make(server: Server, name: str, steps: int) -> None:
    """Drive a run that looks twice and pays at each step, and keep the history of each of its workflows."""
    store, told = MemoryJournal(), asyncio.Event()
    said = [calls(("look", {"at": at}), ("look", {"at": -at}), ("pay", {"at": at})) for at in range(steps)]
    agent = Agent(ScriptedModel([*said, "Done."]), tools=[look, pay], journal=store, name="clerk")
    client = await connected(store, server.address)
    working = asyncio.create_task(Engine(store, {"clerk": agent}, client, queue=name, most_events=60).run(told))
    await agent.start("go", run_id=name)
    handle = client.get_workflow_handle(workflow_id(name))
    while (await store.summary(name)).status != "completed":  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    await handle.result()
    described = await handle.describe()
    run_id: str | None = described.raw_description.workflow_execution_info.first_run_id
    number = 0
    while run_id:
        history = await client.get_workflow_handle(handle.id, run_id=run_id).fetch_history()
        text = json.dumps(history.to_json_dict(), separators=(",", ":"))
        (HERE / f"{name}-{number}.json").write_text(f"{text}\n", encoding="utf-8")
        ended, number = history.events[-1], number + 1
        run_id = ended.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
    told.set()
    await working


async def main() -> None:
    """Write all of them."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        await make(server, "short", 1)
        await make(server, "anew", 3)
        server.kill()


asyncio.run(main())
