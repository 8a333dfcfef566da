"""The runtimes: each takes the tools and what carries calls out, and what the user says turn by turn."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import aiohttp
import orjson

from evals.bfcl.cases import MULTI_TURN, CallTool, Case
from evals.bfcl.proxy import LIMIT_S
from surefoot.agent import Agent
from surefoot.core.gate.effects import guess
from surefoot.core.view.shape import MAX_BRANCHES
from surefoot.models.names import resolve
from surefoot.types.config import Budget, LoopConfig
from surefoot.types.messages import CallMode
from surefoot.types.ports import ToolCallContext
from surefoot.types.tools import ToolResult, ToolSpec

Say = Callable[[str], Awaitable[str]]
"""Says what the user says next, and works until that is done; gives how it ended, for a reader."""

Runtime = Callable[[str, Case, CallTool], AbstractAsyncContextManager[Say]]
"""Base URL, case, and what carries calls out; gives a conversation."""


def max_steps(case: Case) -> int:
    """Steps that a runtime may take in one turn: most often a request is one."""
    return 10 if case.category == MULTI_TURN else 6


@dataclass(frozen=True, slots=True)
class _Declared:
    """A tool of a case, as surefoot holds it."""

    spec: ToolSpec
    call_tool: CallTool

    async def call(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:
        """Carry it out."""
        del context
        return ToolResult(self.call_tool(self.spec.name, arguments))

    async def probe(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult | None:
        """Nobody asks: no tool of a case has a probe."""
        del arguments, context


@asynccontextmanager
async def surefoot(base_url: str, case: Case, call_tool: CallTool, *, mode: CallMode) -> AsyncGenerator[Say]:
    """Our own, with a model that its user says is small; in mode "native" without that, as any server's model.

    The effect of a tool is what the gate guesses from its name, and a write where the name tells none.
    """
    specs = [ToolSpec(**one) for one in case.tools]
    tools = [_Declared(replace(spec, effect=guess(spec).effect or "write"), call_tool) for spec in specs]
    a_step = 2 if mode == "schema" and len(specs) > MAX_BRANCHES else 1  # requests: the name first, then the arguments
    limits = LoopConfig(budget=Budget(max_steps=a_step * max_steps(case)))
    model = resolve(f"{base_url}#model", traits="small") if mode == "schema" else resolve(f"{base_url}#model")
    agent = Agent(model, tools, call_mode=mode, config=limits)
    chat = agent.chat()

    async def say(words: str) -> str:
        run = await chat.send(words)
        return f"{run.status} {run.reason}".strip()

    yield say
    await agent.aclose()


@asynccontextmanager
async def bare(base_url: str, case: Case, call_tool: CallTool) -> AsyncGenerator[Say]:
    """The server alone and the calls that it finds in its replies: one reply, or in several turns until it has none."""
    messages: list[dict[str, Any]] = []  # Any: JSON of the wire
    body = {
        "model": "model",
        "messages": messages,
        "tools": [{"type": "function", "function": one} for one in case.tools],
    }
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=LIMIT_S)) as client:

        async def say(words: str) -> str:
            messages.append({"role": "user", "content": words})
            for _ in range(max_steps(case)):
                async with client.post(f"{base_url}/chat/completions", json=body) as reply:
                    message = (await reply.json())["choices"][0]["message"]
                messages.append(message)
                calls = message.get("tool_calls") or ()
                for call in calls:
                    function = call["function"]
                    result = call_tool(function["name"], orjson.loads(function["arguments"] or "{}"))
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
                if not calls or case.category != MULTI_TURN:
                    return "replied"
            return "stopped"

        yield say


@asynccontextmanager
async def pydantic_ai(base_url: str, case: Case, call_tool: CallTool) -> AsyncGenerator[Say]:
    """An `Agent` of pydantic-ai with its OpenAI model, as its pages show it."""
    root, tools = importlib.import_module("pydantic_ai"), importlib.import_module("pydantic_ai.tools")
    models = importlib.import_module("pydantic_ai.models.openai")
    providers = importlib.import_module("pydantic_ai.providers.openai")
    client = importlib.import_module("openai").AsyncOpenAI(
        base_url=base_url, api_key="none", timeout=LIMIT_S, max_retries=0
    )

    def made(one: Mapping[str, Any]) -> Any:  # Any: pydantic-ai's own types, which are not imported here
        async def function(**arguments: object) -> str:  # in a thread the calls of a reply would lose their order
            return call_tool(one["name"], arguments)

        return tools.Tool.from_schema(function, one["name"], one["description"], one["parameters"])

    model = models.OpenAIChatModel("model", provider=providers.OpenAIProvider(openai_client=client))
    agent = root.Agent(model, tools=[made(one) for one in case.tools])
    limits = importlib.import_module("pydantic_ai.usage").UsageLimits(request_limit=max_steps(case))
    said: list[Any] = []  # Any: messages of pydantic-ai

    async def say(words: str) -> str:
        result = await agent.run(words, message_history=said, usage_limits=limits)
        said[:] = result.all_messages()
        return "completed"

    yield say


@asynccontextmanager
async def smolagents(base_url: str, case: Case, call_tool: CallTool) -> AsyncGenerator[Say]:
    """A `ToolCallingAgent` of smolagents with its OpenAI model."""
    root = importlib.import_module("smolagents")

    def made(one: Mapping[str, Any]) -> Any:  # Any: a class of smolagents, which is not imported here
        def forward(_self: object, **arguments: object) -> str:
            return call_tool(one["name"], arguments)

        required = one["parameters"].get("required", ())
        inputs = {
            name: {"description": "", **schema, **({} if name in required else {"nullable": True})}
            for name, schema in one["parameters"]["properties"].items()
        }
        members = {
            **{key: one[key] for key in ("name", "description")},
            "inputs": inputs,
            "output_type": "string",
            "forward": forward,
            "skip_forward_signature_validation": True,
        }
        return type(one["name"], (root.Tool,), members)()

    model = root.OpenAIServerModel(
        "model", api_base=base_url, api_key="none", client_kwargs={"timeout": LIMIT_S, "max_retries": 0}
    )
    tools = [made(one) for one in case.tools]
    # with more than one thread the calls of a reply would lose their order
    agent = root.ToolCallingAgent(tools, model, max_steps=max_steps(case), verbosity_level=-1, max_tool_threads=1)

    async def say(words: str) -> str:
        await asyncio.to_thread(agent.run, words, reset=False)
        return "completed"

    yield say


RUNTIMES: Mapping[str, Runtime] = {
    "surefoot-schema": partial(surefoot, mode="schema"),
    "bare": bare,
    "surefoot-native": partial(surefoot, mode="native"),
    "pydantic-ai": pydantic_ai,
    "smolagents": smolagents,
}
