"""What a step of a very long run costs, and what it costs to take the run up again.

A model in this process answers at once with one call of one read, without a window, so the history only grows; each
request is also written as the body of the OpenAI wire, which joins what was encoded before. The journal is a SQLite
file. Printed are the CPU of a step early on and at later places, with and without that body, and the CPU of `resume`.
`python benchmarks/long_run.py [--steps N] [--rounds N]`.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from surefoot import Agent, Budget, LoopConfig, tool
from surefoot.models.openai_chat import OpenAIChat
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.types.messages import ModelRequest

PLACES = (100, 1_000, 5_000)
AROUND = 50


@tool(effect="read")
async def look(n: int) -> str:
    """Look up a number."""
    return f"the number {n} stands on page {n * 7} of the book"


class Watched:
    """A model that calls `look` for each number in turn, and notes the CPU between its replies."""

    def __init__(self, steps: int, *, has_body: bool) -> None:
        self.own: list[float] = []
        self.body: list[float] = []
        self._steps = steps
        self._writer = OpenAIChat("bench") if has_body else None
        self._left_at = 0.0

    def reply(self, request: ModelRequest) -> Scripted:
        """The next call; what passed since the last reply is surefoot's own."""
        came_at = time.process_time()
        if self._left_at:
            self.own.append(came_at - self._left_at)
        if self._writer is not None:
            self._writer.body(request)
            self.body.append(time.process_time() - came_at)
        number = len(self.own)
        self._left_at = time.process_time()
        return calls(("look", {"n": number})) if number < self._steps else "done"


def around(seen: list[float], place: int) -> float:
    """The median of what was seen about that place, in microseconds."""
    return statistics.median(seen[max(0, place - AROUND) : place + AROUND]) * 1e6


async def long_run(steps: int, folder: Path, *, has_body: bool) -> tuple[Watched, float]:
    """One run of so many steps, and the CPU seconds of taking it up again."""
    watched = Watched(steps, has_body=has_body)
    config = LoopConfig(budget=Budget(max_steps=steps))
    agent = Agent(FunctionModel(watched.reply, modes=("native",)), [look], config=config, journal=folder / "long.db")
    run = await agent.run("look up every number", run_id="long")
    before = time.process_time()
    run = await agent.resume(run.id)
    resuming = time.process_time() - before
    await agent.aclose()
    return watched, resuming


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--steps", type=int, default=PLACES[-1])
    options.add_argument("--rounds", type=int, default=1)
    chosen = options.parse_args()
    places = [place for place in PLACES if place <= chosen.steps]
    for _ in range(chosen.rounds):
        for has_body in (False, True):
            with tempfile.TemporaryDirectory(prefix="surefoot-bench-") as folder:
                watched, resuming = asyncio.run(long_run(chosen.steps, Path(folder), has_body=has_body))
            figures = [
                (around(watched.own, place), around(watched.body, place) if has_body else 0.0) for place in places
            ]
            print(f"\n{'with' if has_body else 'without'} the body; resume {resuming:.2f} s of CPU")
            print("| step | own cost | body | together, against the first |\n|---:|---:|---:|---:|")
            for place, (own, body) in zip(places, figures, strict=True):
                print(f"| {place:,} | {own:.0f} µs | {body:.0f} µs | {(own + body) / sum(figures[0]):.2f} |")


if __name__ == "__main__":
    main()
