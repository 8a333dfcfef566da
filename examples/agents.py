"""One agent asks two others, and a person answers what these ask: `python examples/agents.py [MODEL]`."""

import asyncio
import sys

from surefoot import Agent, Inside, tool
from surefoot.types.events import CallStarted

STOCK = {"bolts": 120, "nuts": 3}
ORDERED: list[str] = []


@tool(effect="read")
def in_stock(part: str) -> str:
    """How many pieces of a part are in stock."""
    return f"{STOCK.get(part, 0)} {part}"


@tool(effect="transact", approval="always")
def order(part: str, pieces: int) -> str:
    """Order more pieces of a part."""
    ORDERED.append(f"{pieces} {part}")
    return f"ordered {pieces} {part}"


def watch(item: object) -> None:
    """Print each call, also those of the agents that are asked."""
    depth = 0
    while isinstance(item, Inside):
        depth, item = depth + 1, item.item
    if isinstance(item, CallStarted):
        print(f"{'  ' * depth}call {item.call_id}")


async def main(model: str) -> None:
    """Run it, and allow what waits for a person."""
    store = Agent(model, tools=[in_stock], instructions="You know the stock.")
    buyer = Agent(model, tools=[order], instructions="You order parts.")
    desk = Agent(
        model,
        tools=[
            store.as_tool("store", "Answers questions about the stock, such as how many nuts there are."),
            buyer.as_tool("buyer", "Orders parts. Say which part and how many pieces."),
        ],
    )
    run = await desk.run("Ask the store how many nuts there are. Then have the buyer order 50 nuts.", watch=watch)
    while run.status == "paused":
        for question in run.waiting:
            print(f"{question.id} waits: {question.name} {dict(question.arguments)}")
            await desk.approve(run.id, question.id, by="the author of this example")
        run = await desk.resume(run.id, watch=watch)
    print(f"{run.status}: {run.answer}\nordered: {ORDERED}; {run.requests} requests, {run.usage.total_tokens} tokens")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "local"))
