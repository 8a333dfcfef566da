"""The peer of `engines.py`: the same runs by pydantic-ai as workflows of DBOS, with PostgreSQL behind them.

Started by it, in an environment of its own.
"""

# pyright: basic

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import time

from dbos import DBOS
from pydantic_ai import Agent
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

ALONE = 3
TASK = "Enter each item, one after another."


async def main() -> None:
    """Measure, in the words that `engines.py` waits for."""
    options = argparse.ArgumentParser()
    options.add_argument("url")
    options.add_argument("--steps", type=int)
    options.add_argument("--runs", type=int)
    chosen = options.parse_args()
    logging.disable()

    async def reply(messages, _info):
        done = sum(isinstance(part, ToolReturnPart) for one in messages for part in one.parts)
        if done < chosen.steps:
            return ModelResponse(parts=[ToolCallPart("enter", {"item": done})])
        return ModelResponse(parts=[TextPart("all entered")])

    agent = Agent(FunctionModel(reply), name="clerk", capabilities=[DBOSDurability()])

    @agent.tool_plain
    @DBOS.step()
    async def enter(item: int) -> str:
        """Enter one item."""
        return f"entered {item}"

    DBOS(config={"name": "clerk", "system_database_url": chosen.url, "run_admin_server": False})

    @DBOS.workflow()
    async def entered(task: str) -> str:
        return (await agent.run(task)).output

    DBOS.launch()

    async def start() -> None:
        assert await entered(TASK) == "all entered"

    await start()
    last = (await DBOS.list_workflows_async())[0]
    steps = await DBOS.list_workflow_steps_async(last.workflow_id)
    assert len(steps) == 2 * chosen.steps + 1, "each request and each call is a step of its own"
    begun = time.perf_counter()
    for _ in range(ALONE):
        await start()
    alone = (time.perf_counter() - begun) / ALONE / chosen.steps
    begun, spent = time.perf_counter(), time.process_time()
    print("ready", flush=True)
    sys.stdin.readline()
    await asyncio.gather(*(start() for _ in range(chosen.runs)))
    wall, cpu = time.perf_counter() - begun, time.process_time() - spent
    print("done", flush=True)
    sys.stdin.readline()
    made = chosen.runs * chosen.steps / 1e3
    print(json.dumps({"alone": alone * 1e3, "wall": wall / made, "cpu": cpu / made}), flush=True)
    DBOS.destroy()


asyncio.run(main())
