"""Function calling by hand: ask, carry out the calls of the reply, hand the results back (seed 003).

The tool gets a service that the model never sees. A reasoner does all of this by itself, round by round.
"""

import argparse
import asyncio
from dataclasses import dataclass

from surefoot import Model, ModelMessage, ModelService, tool

SYSTEM = "You answer questions about exam scores. Look every score up; never guess one."
QUESTION = ModelMessage("user", "What is Bob's exam score?")
MOST_ROUNDS = 4


@dataclass(frozen=True)
class ScoreBook:
    """A service: found by its type, filled in by surefoot, unknown to the model."""

    scores: dict[str, int]


@tool(effect="read")
async def exam_score(name: str, book: ScoreBook) -> int:
    """Exam score of one student.

    Args:
        name: The student's first name.
        book: Where the scores are; filled in by surefoot.
    """
    return book.scores[name]


async def main(model: str | Model) -> str:
    """Ask for a score, and carry out what the model asks for until it answers."""
    book = ScoreBook({"Alice": 90, "Bob": 81})
    async with ModelService(model, services={ScoreBook: book}) as service:
        conversation = [QUESTION]
        reply = await service.generate(SYSTEM, conversation, [exam_score])
        for _ in range(MOST_ROUNDS):
            results = await service.call_function([exam_score], reply)
            if results is None:
                break
            for result in results:
                print(f"{result.func_name}({dict(result.func_args)}) {result.status}: {result.output}")
            # the question once more under the results: small models lose sight of it
            conversation += [reply, *service.result_messages(reply, results), QUESTION]
            reply = await service.generate(SYSTEM, conversation, [exam_score])
        print(f"model: {reply.content}")
        return reply.content


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="local", help="local, provider:model, or http://host:port/v1#model")
    asyncio.run(main(parser.parse_args().model))
