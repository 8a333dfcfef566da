"""The mono-model reasoner with a tool: one model plans, calls, reads results and delivers (seed 003)."""

import argparse
import asyncio

from scores import exam_score

from surefoot import Answer, LoopConfig, Model, MonoModelReasoner, Task

TASK = Task("What is the sum of Alice's and Bob's exam scores?")


async def main(model: str | Model) -> Answer:
    """Work on the task until there is a deliverable, and show its parts and what was said on the way."""
    async with MonoModelReasoner(model, [exam_score], config=LoopConfig(max_rounds=8)) as reasoner:
        answer = await reasoner.infer(TASK)
        for message in (await reasoner.remembered(answer.run)).messages:
            print(f"[{message.name or message.role}] {' '.join(message.content.split())[:160]}")
        print(f"\nanswer: {answer.deliverable.output}")
        run = answer.run
        print(f"{run.status}, {run.rounds} rounds, {run.calls} calls, {run.usage.total_tokens} tokens")
        return answer


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="local", help="local, provider:model, or http://host:port/v1#model")
    asyncio.run(main(parser.parse_args().model))
