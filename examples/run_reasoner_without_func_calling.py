"""Both reasoners on a task that needs no tool: one model alone, and a Thinker with an Actor (seed 003)."""

import argparse
import asyncio

from surefoot import Answer, DualModelReasoner, LoopConfig, Model, MonoModelReasoner, Task

TASK = Task("Which weighs more, a kilogram of feathers or 500 grams of iron? Say why in one sentence.")
CONFIG = LoopConfig(max_rounds=5)


async def main(model: str | Model) -> list[Answer]:
    """The same task for each of the two; the dual one has the same model in both roles."""
    answers: list[Answer] = []
    for reasoner in (MonoModelReasoner(model, config=CONFIG), DualModelReasoner(model, model, config=CONFIG)):
        async with reasoner:
            answer = await reasoner.infer(TASK)
            run = answer.run
            print(f"{type(reasoner).__name__}: {answer.deliverable.output}")
            print(f"  {run.status}, {run.rounds} rounds, {run.requests} requests, {run.usage.total_tokens} tokens\n")
            answers.append(answer)
    return answers


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="local", help="local, provider:model, or http://host:port/v1#model")
    asyncio.run(main(parser.parse_args().model))
