"""surefoot in the agent-framework overhead bench: how a user would write each scenario, with the SQLite journal on."""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from _harness import SYSTEM, Adapter, main  # type: ignore[import-not-found]  # the bench's own module, beside this file

STEPS_TO_SPARE = 10


class A(Adapter):
    """One agent, shared by all runs. The bench's tools only compute, so they are declared as reads."""

    name = "surefoot"
    scenarios = frozenset({"s1", "s1s", "s2", "s3", "s4", "s5", "s6", "s7", "s8"})
    effect = os.environ.get("SUREFOOT_EFFECT", "read")

    def build(self, base_url, tools, max_steps, folder=None):
        from surefoot import Agent, Budget, LoopConfig, tool

        folder = folder or tempfile.mkdtemp(prefix="surefoot_bench_")
        return Agent(
            f"{base_url}#mock",
            tools=[tool(one, effect=self.effect) for one in tools],
            instructions=SYSTEM,
            config=LoopConfig(budget=Budget(max_steps=max_steps + STEPS_TO_SPARE)),
            journal=Path(folder) / "journal.db",
            max_concurrent_runs=10_000,  # the bench says how many run at once
        )

    async def run(self, agent, prompt, max_steps):
        return (await agent.run(prompt)).answer

    async def stream(self, agent, prompt):
        from surefoot.types.messages import TextDelta

        seen = 0

        def watch(item):
            nonlocal seen
            seen += isinstance(item, TextDelta)

        await agent.run(prompt, watch=watch, stream=True)
        return seen

    async def close(self, agent):
        await agent.aclose()

    async def durable_open(self, base_url, tool, max_steps, folder):
        return self.build(base_url, [tool], max_steps, folder)

    async def durable_run(self, agent, prompt, max_steps, run_id):
        return (await agent.run(prompt, run_id=run_id)).answer

    async def durable_close(self, agent):
        await agent.aclose()


if __name__ == "__main__":
    main(A)
