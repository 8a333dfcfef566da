"""The dual-model reasoner with a tool: the Thinker plans and instructs, the Actor calls and delivers (seed 003)."""

import argparse
import asyncio

from scores import exam_score

from surefoot import Answer, DualModelReasoner, LoopConfig, Model, Task

TASK = Task("What is the sum of Alice's and Bob's exam scores?")


async def main(thinker: str | Model, actor: str | Model) -> Answer:
    """Work on the task until the Actor has delivered, and show what the two told each other."""
    async with DualModelReasoner(thinker, actor, [exam_score], config=LoopConfig(max_rounds=8)) as reasoner:
        answer = await reasoner.infer(TASK)
        for message in (await reasoner.remembered(answer.run)).messages:
            print(f"[{message.name or message.role}] {' '.join(message.content.split())[:160]}")
        print(f"\nanswer: {answer.deliverable.output}")
        run = answer.run
        print(f"{run.status}, {run.rounds} rounds, {run.requests} requests, {run.calls} calls, {run.model}")
        return answer


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="local", help="local, provider:model, or http://host:port/v1#model")
    parser.add_argument("--actor", default="", help="another model for the Actor; without it --model plays both")
    given = parser.parse_args()
    asyncio.run(main(given.model, given.actor or given.model))
