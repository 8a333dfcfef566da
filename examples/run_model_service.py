"""The model service: one request and its reply, whole or piece by piece (seed 003)."""

import argparse
import asyncio
import sys
from contextlib import aclosing

from surefoot import Model, ModelMessage, ModelService, TextDelta


async def main(model: str | Model) -> None:
    """Ask a question, then a second one that builds on the answer, this time as a stream."""
    async with ModelService(model) as service:
        conversation = [ModelMessage("user", "Name one river that flows through Paris. Answer in one short sentence.")]
        reply = await service.generate("You are a geographer.", conversation)
        print(f"model: {reply.content}")
        print(f"tokens: {reply.usage.input_tokens} in, {reply.usage.output_tokens} out\n")

        conversation += [reply, ModelMessage("user", "And into which sea does it flow? One short sentence.")]
        async with aclosing(service.stream("You are a geographer.", conversation)) as pieces:
            async for piece in pieces:
                if isinstance(piece, TextDelta):
                    sys.stdout.write(piece.text)
                    sys.stdout.flush()
                elif isinstance(piece, ModelMessage):
                    print(f"\ntokens: {piece.usage.input_tokens} in, {piece.usage.output_tokens} out")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="local", help="local, provider:model, or http://host:port/v1#model")
    asyncio.run(main(parser.parse_args().model))
