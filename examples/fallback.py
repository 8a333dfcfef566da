"""A model that goes on when the one before it fails: `python examples/fallback.py [MODEL]`, local by default.

Nobody answers at the first address, so the run goes on with the other model; the journal keeps why.
"""

import asyncio
import sys

from surefoot import Agent, ModelSettings, Run, tool
from surefoot.types.events import ModelFailed

GONE = "http://127.0.0.1:9/v1#gone"


@tool(effect="read")
def exam_score(name: str) -> int:
    """Exam score of one student."""
    return {"Alice": 90, "Bob": 81}[name]


async def main(model: str) -> None:
    """Ask one question of two models."""
    agent = Agent([GONE, model], [exam_score], settings=ModelSettings(attempts=1))
    async for event in agent.stream("What is Alice's exam score?"):
        if isinstance(event, ModelFailed) and event.instead:
            print(f"{event.kind}: {event.instead.model} goes on")
        elif isinstance(event, Run):
            print(f"{event.status}: {event.answer}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "local"))
