"""A log, a redaction and a cache around a model and its tools: `python examples/wrappers.py [MODEL]`."""

import asyncio
import json
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import replace

from surefoot import (
    Agent,
    Emit,
    ModelMessage,
    ModelRequest,
    Tool,
    ToolCallContext,
    ToolResult,
    WrappedModel,
    WrappedTool,
    tool,
)


class Timed(WrappedModel):
    """Prints how long each reply takes."""

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        """One reply."""
        started = time.monotonic()
        reply = await super().send(request, emit)
        print(f"{self.name}: {reply.usage.total_tokens} tokens in {time.monotonic() - started:.1f} s")
        return reply


class Redacted(WrappedTool):
    """No model ever reads a phone number."""

    async def call(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:
        """The result without numbers."""
        result = await super().call(arguments, context)
        return replace(result, content=re.sub(r"\+?\d[\d ]{6,}\d", "[phone]", result.content))


class Cached(WrappedTool):
    """What was read once is not read again, in any run of the agent."""

    def __init__(self, inner: Tool) -> None:
        super().__init__(inner)
        self.known: dict[str, ToolResult] = {}

    async def call(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:
        """The result, or the one that is known."""
        if self.spec.effect != "read":
            return await super().call(arguments, context)
        key = json.dumps(arguments, sort_keys=True, default=str)
        if key not in self.known:
            self.known[key] = await super().call(arguments, context)
        return self.known[key]


@tool(effect="read")
def contact(name: str) -> str:
    """Where somebody lives, and how to reach them."""
    print(f"looking up {name}")
    return f"{name} lives in Rome, phone +39 06 1234567"


async def main(model: str) -> None:
    """Ask twice; the second time nothing is looked up."""
    agent = Agent(model, [contact], wrap_model=[Timed], wrap_tools=[Cached, Redacted])
    for _ in range(2):
        run = await agent.run("Look up the contact of Ann. In which city does she live?")
        print(run.answer)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "local"))
