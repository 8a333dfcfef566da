"""A long conversation on the embedded model, in a small window: what it sends, and whether it can be gone on with.

Each turn asks for the report of another hut, which a tool gives (1,100 characters). Then the conversation is forked in
the middle, killed for real within one turn more and resumed, and its runs are replayed.
`python benchmarks/conversation.py [--turns N] [--window N] [--model MODEL]`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from surefoot import Agent, Emit, LoopConfig, ModelMessage, ModelRequest, SqliteJournal, WrappedModel, tool
from surefoot.core.loop.replay import replay

CHAT = "huts"
FIRST = "My name is Wei and hut 1 is my favourite. How many beds has hut 1?"


@tool(effect="read")
async def hut_report(number: int) -> str:
    """The report of one hut."""
    told = "The path from the valley takes three hours, and the spring beside the door freezes in October. "
    return f"Hut {number} has {10 + number} beds. {told * 11}"[:1_100]


class Watched(WrappedModel):
    """Keeps the newest request, and what the largest one took with its reply."""

    last: ModelRequest | None = None
    most = 0
    requests = 0

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        """One reply."""
        reply = await super().send(request, emit)
        Watched.last, Watched.requests = request, Watched.requests + 1
        Watched.most = max(Watched.most, reply.usage.total_tokens)
        return reply


def agent_on(path: Path, model: str, window: int) -> Agent[str]:
    """An agent that keeps its runs in that file."""
    config = LoopConfig(context_tokens=window)
    return Agent(model, tools=[hut_report], config=config, journal=path, wrap_model=[Watched])


def ask(turn: int) -> str:
    """What the user says in a turn, from 1."""
    return FIRST if turn == 1 else f"And how many beds has hut {turn}?"


async def told(journal: Path, run_id: str) -> str:
    """How a run replays."""
    store = SqliteJournal(journal, read_only=True)
    records, wrong = await store.read_recorded(run_id)
    await store.aclose()
    differs = replay([one.event for one in records]).differs_at
    return wrong or ("alike" if differs is None else f"differs at record {differs}")


async def main() -> int:
    """Hold the conversation and print its figures."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--turns", type=int, default=30)
    options.add_argument("--window", type=int, default=8_000)
    options.add_argument("--model", default="local")
    options.add_argument("--one-more", metavar="JOURNAL", default="", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.one_more:  # the process that is killed
        await agent_on(Path(chosen.one_more), chosen.model, chosen.window).chat(CHAT).send(ask(chosen.turns + 1))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder, "runs.db")
        async with agent_on(journal, chosen.model, chosen.window) as agent:
            chat, right = agent.chat(CHAT), 0
            for turn in range(1, chosen.turns + 1):
                began = time.monotonic()
                run = await chat.send(ask(turn))
                right += str(10 + turn) in run.answer
                print(f"turn {turn}: {run.status} in {time.monotonic() - began:.0f} s: {run.answer[:60]!r}", flush=True)
            request = Watched.last
            is_seen = request is not None and any(FIRST in one.content for one in request.messages)
            print(f"{Watched.requests} requests, {right} of {chosen.turns} answers right")
            print(f"tokens of the largest request with its reply: {Watched.most} (window {chosen.window})")
            print(f"turn 1 in the last request of turn {chosen.turns}: {is_seen}")
            middle = f"{CHAT}-{chosen.turns // 2:04}"
            records, _ = await SqliteJournal(journal, read_only=True).read_recorded(middle)
            forked = await agent.fork(middle, len(records) - 2, new_id="forked")
            print(f"{middle} forked at record {len(records) - 2}: {forked.status}")
        last, store = f"{CHAT}-{chosen.turns + 1:04}", SqliteJournal(journal, read_only=True)
        how = ("--model", chosen.model, "--turns", str(chosen.turns), "--window", str(chosen.window))
        child = await asyncio.create_subprocess_exec(sys.executable, __file__, "--one-more", str(journal), *how)
        while last not in await store.beginning(last, 1):  # noqa: ASYNC110  # another process begins it
            await asyncio.sleep(0.2)
        await asyncio.sleep(2)
        child.kill()
        await child.wait()
        await store.aclose()
        async with agent_on(journal, chosen.model, chosen.window) as agent:
            run = await agent.chat(CHAT).resume()
            print(f"turn {chosen.turns + 1}, killed and resumed: {run.status}: {run.answer[:60]!r}")
        for run_id in (f"{CHAT}-0001", middle, f"{CHAT}-{chosen.turns:04}", last, "forked"):
            print(f"replay of {run_id}: {await told(journal, run_id)}")
    return 0 if is_seen and chosen.window >= Watched.most else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
