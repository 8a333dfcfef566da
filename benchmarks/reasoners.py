"""What a model call costs with each reasoner, as a ratio to `react` in the same rounds.

A model in this process answers at once, so all that is measured is surefoot's own CPU: view, parse, gate, journal. Each
run makes `STEPS` calls of one read and then answers; the reasoners take turns, and the median of the rounds counts.
`python benchmarks/reasoners.py [--rounds N] [--runs N]`.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from surefoot import Agent, Budget, LoopConfig, tool
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.types.messages import ModelRequest

STEPS = 20
DONE = "<deliverable>\n<final_output>done</final_output>\n</deliverable>\nTASK_DONE"


@tool(effect="read")
async def look(n: int) -> int:
    """Look up a number."""
    return n * n


def stepping(request: ModelRequest) -> Scripted:
    """The next call, told from the request alone."""
    step = sum(1 for message in request.messages if message.role == "assistant")
    return calls(("look", {"n": step})) if step < STEPS else DONE


def instructing(request: ModelRequest) -> Scripted:
    """A Thinker that asks for each number in turn."""
    step = sum(1 for message in request.messages if message.role == "assistant")
    return f"<instruction>look up {step}</instruction>" if step < STEPS else "TASK_DONE"


def agents(folder: Path) -> dict[str, Agent]:
    """One agent for each reasoner, each with a journal on disk of its own."""
    config = LoopConfig(budget=Budget(max_steps=10 * STEPS), max_rounds=2 * STEPS, actor_steps=1)
    solo = FunctionModel(stepping, modes=("native",))
    pair = {"thinker": FunctionModel(instructing, modes=("text",)), "actor": FunctionModel(stepping, modes=("native",))}
    return {
        name: Agent(
            pair if name == "dual" else solo, [look], reasoner=name, config=config, journal=folder / f"{name}.db"
        )
        for name in ("react", "mono", "dual")
    }


async def cpu_per_call(agent: Agent, runs: int) -> float:
    """Microseconds of CPU a model call, over some runs one after the other."""
    before, requests = time.process_time(), 0
    for _ in range(runs):
        run = await agent.run("look up twenty numbers")
        if run.status != "completed":
            raise SystemExit(f"a run of the bench went wrong: {run}")
        requests += run.requests
    return (time.process_time() - before) / requests * 1e6


async def measured(rounds: int, runs: int) -> dict[str, list[float]]:
    """Every round of every reasoner; the first round warms up and is thrown away."""
    with tempfile.TemporaryDirectory(prefix="surefoot-bench-") as folder:
        contestants = agents(Path(folder))
        seen: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(rounds + 1):
            for name, agent in contestants.items():
                seen[name].append(await cpu_per_call(agent, runs))
        for agent in contestants.values():
            await agent.aclose()
        return {name: values[1:] for name, values in seen.items()}


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--runs", type=int, default=10)
    chosen = options.parse_args()
    seen = asyncio.run(measured(chosen.rounds, chosen.runs))
    floor = statistics.median(seen["react"])
    print("| reasoner | CPU a model call | ratio to react |\n|---|---:|---:|")
    for name, values in seen.items():
        middle = statistics.median(values)
        print(f"| {name} | {middle:.0f} µs | {middle / floor:.2f} |")


if __name__ == "__main__":
    main()
