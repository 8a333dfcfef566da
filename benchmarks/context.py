"""What a long run sends and costs, with and without a window to stay in.

A run of 200 steps reads pages of 4 KB, each twentieth 40 KB, against a model in this process; so the CPU is surefoot's
own: view, parse, gate, journal. Near the end the model asks for a fact of the fifth step again. Tokens are bytes / 4.
`python benchmarks/context.py [--window N] [--rounds N]`.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from surefoot import Agent, Budget, LoopConfig, tool
from surefoot.core.state.window import catalogue_tokens, message_tokens, text_tokens
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.types.messages import ModelRequest

STEPS = 200
ASKED_AGAIN = 195
EARLY, FACT = 5, "the password of the vault is amber-5151"
AROUND = 5


@tool(effect="read")
async def page(n: int) -> str:
    """Read a page."""
    text = f"Page {n}. " + (f"On this page {FACT}. " if n == EARLY else "")
    size = 40_000 if n % 20 == 0 else 4_000
    return text.rjust(size // 2, "-") + "".join(f" line {i} of page {n}" for i in range(size // 40))


@dataclass(slots=True)
class Reader:
    """A model that reads page after page, and keeps the CPU time at which it was asked."""

    asked_at: list[float]
    found: bool = False

    def reply(self, request: ModelRequest) -> Scripted:
        """The next page; at one step the early one again."""
        self.asked_at.append(time.process_time())
        step = len(self.asked_at)
        if step == ASKED_AGAIN + 1:
            self.found = FACT in request.messages[-1].content
        if step > STEPS:
            return "I have read it all."
        if step == ASKED_AGAIN:
            return calls(("read_result", {"call_id": f"{EARLY}.0", "start": 0}))
        return calls(("page", {"n": step}))

    def cpu_around(self, step: int) -> float:
        """Milliseconds of CPU of the middle one of the steps around this one."""
        spent = [b - a for a, b in zip(self.asked_at, self.asked_at[1:], strict=False)]
        return statistics.median(spent[step - AROUND : step + AROUND]) * 1e3


def tokens_of(request: ModelRequest) -> int:
    """The whole request, declarations too."""
    said = text_tokens(request.system) + sum(map(message_tokens, request.messages))
    return said + catalogue_tokens(request.tools)


@dataclass(frozen=True, slots=True)
class Seen:
    """One run: the largest request and all of them in tokens, CPU in ms a step, and whether the fact was read again."""

    largest: int
    total: int
    early_ms: float
    late_ms: float
    found: bool


async def one_run(window: int | None, folder: Path) -> Seen:
    """A run against a journal on disk."""
    reader = Reader([])
    model = FunctionModel(reader.reply, modes=("native",))
    config = LoopConfig(budget=Budget(max_steps=2 * STEPS), context_tokens=window)
    agent = Agent(model, [page], config=config, journal=folder / f"{time.monotonic_ns()}.db")
    run = await agent.run("Read all pages.")
    await agent.aclose()
    if run.status != "completed" or run.requests != STEPS + 1:
        raise SystemExit(f"a run of the bench went wrong: {run}")
    sizes = [tokens_of(request) for request in model.requests]
    return Seen(max(sizes), sum(sizes), reader.cpu_around(10), reader.cpu_around(190), reader.found)


async def measured(window: int | None, rounds: int) -> Seen:
    """The middle of the rounds; the first warms up and is thrown away."""
    with tempfile.TemporaryDirectory(prefix="surefoot-bench-") as folder:
        runs = [await one_run(window, Path(folder)) for _ in range(rounds + 1)][1:]
    early, late = (statistics.median(getattr(run, name) for run in runs) for name in ("early_ms", "late_ms"))
    return Seen(runs[0].largest, runs[0].total, early, late, all(run.found for run in runs))


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--window", type=int, default=32_000)
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args()
    print("| window | largest request | tokens sent | CPU ms/step @10 | @190 | ratio | step 5 read again at 195 |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for window in (None, chosen.window):
        seen = asyncio.run(measured(window, chosen.rounds))
        name = f"{window:,}" if window else "none"
        times = f"{seen.early_ms:.2f} | {seen.late_ms:.2f} | {seen.late_ms / seen.early_ms:.2f}"
        print(f"| {name} | {seen.largest:,} | {seen.total:,} | {times} | {'yes' if seen.found else 'no'} |")


if __name__ == "__main__":
    main()
