"""The runtimes: each takes the words, the tools and what carries calls out, and works until it is done."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import aiohttp
import orjson

from evals.bfcl.cases import Case
from evals.bfcl.proxy import LIMIT_S
from surefoot.agent import Agent
from surefoot.core.gate.effects import guess
from surefoot.models.names import resolve
from surefoot.types.config import Budget, LoopConfig
from surefoot.types.messages import CallMode
from surefoot.types.ports import ToolCallContext
from surefoot.types.tools import ToolResult, ToolSpec

MAX_STEPS = 6
DONE = "done"

CallTool = Callable[[str, Mapping[str, object]], str]
"""Carries out a call: name and arguments in, the result's text out."""

Runtime = Callable[[str, Case, CallTool], Awaitable[str]]
"""Base URL, case, and what carries calls out; gives how it ended, for a reader."""


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


async def surefoot(base_url: str, case: Case, call_tool: CallTool, *, mode: CallMode) -> str:
    """Our own, with a model that its user says is small; in mode "native" without that, as any server's model.

    The effect of a tool is what the gate guesses from its name, and a write where the name tells none.
    """
    specs = [ToolSpec(**one) for one in case.tools]
    tools = [_Declared(replace(spec, effect=guess(spec).effect or "write"), call_tool) for spec in specs]
    limits = LoopConfig(budget=Budget(max_steps=MAX_STEPS))
    model = resolve(f"{base_url}#model", traits="small") if mode == "schema" else resolve(f"{base_url}#model")
    agent = Agent(model, tools, call_mode=mode, config=limits)
    run = await agent.run(case.words)
    await agent.aclose()
    return f"{run.status} {run.reason}".strip()


async def bare(base_url: str, case: Case, call_tool: CallTool) -> str:
    """The server alone: one request, and the calls that it finds in the reply."""
    body = {
        "model": "model",
        "messages": [{"role": "user", "content": case.words}],
        "tools": [{"type": "function", "function": one} for one in case.tools],
    }
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=LIMIT_S)) as client,
        client.post(f"{base_url}/chat/completions", json=body) as reply,
    ):
        told = await reply.json()
    for call in told["choices"][0]["message"].get("tool_calls") or ():
        call_tool(call["function"]["name"], orjson.loads(call["function"]["arguments"] or "{}"))
    return "replied"


async def pydantic_ai(base_url: str, case: Case, call_tool: CallTool) -> str:
    """An `Agent` of pydantic-ai with its OpenAI model, as its pages show it."""
    root, tools = importlib.import_module("pydantic_ai"), importlib.import_module("pydantic_ai.tools")
    models = importlib.import_module("pydantic_ai.models.openai")
    providers = importlib.import_module("pydantic_ai.providers.openai")
    client = importlib.import_module("openai").AsyncOpenAI(
        base_url=base_url, api_key="none", timeout=LIMIT_S, max_retries=0
    )

    def made(one: Mapping[str, Any]) -> Any:  # Any: pydantic-ai's own types, which are not imported here
        def function(**arguments: object) -> str:
            return call_tool(one["name"], arguments)

        return tools.Tool.from_schema(function, one["name"], one["description"], one["parameters"])

    model = models.OpenAIChatModel("model", provider=providers.OpenAIProvider(openai_client=client))
    agent = root.Agent(model, tools=[made(one) for one in case.tools])
    limits = importlib.import_module("pydantic_ai.usage").UsageLimits(request_limit=MAX_STEPS)
    await agent.run(case.words, usage_limits=limits)
    return "completed"


async def smolagents(base_url: str, case: Case, call_tool: CallTool) -> str:
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
    agent = root.ToolCallingAgent([made(one) for one in case.tools], model, max_steps=MAX_STEPS, verbosity_level=-1)
    await asyncio.to_thread(agent.run, case.words)
    return "completed"


RUNTIMES: Mapping[str, Runtime] = {
    "surefoot-schema": partial(surefoot, mode="schema"),
    "bare": bare,
    "surefoot-native": partial(surefoot, mode="native"),
    "pydantic-ai": pydantic_ai,
    "smolagents": smolagents,
}
