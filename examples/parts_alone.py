"""What a run does before its first request, and what a plan asks its model, each alone: `parts_alone.py [MODEL]`."""

import asyncio
import sys

from surefoot import (
    PreHydrationConfig,
    PreHydrationEngine,
    Resolver,
    ToolProfile,
    apply_profile,
    select_relevant_tools,
    tool,
)
from surefoot.types.ports import Tool


@tool(effect="read")
async def web_get(url: str) -> str:
    """Fetch the text of a web page."""
    return f"The page at {url} says that the bridge is open."


@tool(effect="read")
async def exchange_rate(currency: str) -> float:
    """Exchange rate of a currency to the euro."""
    return {"USD": 0.9}.get(currency, 1.0)


@tool
async def web_post(url: str, text: str) -> str:
    """Post a text to a web page."""
    return f"posted to {url}: {text}"


async def main(model: str) -> None:
    """Filter tools, fetch what a text refers to, and let a model choose tools for a task."""
    tools: list[Tool] = [web_get, exchange_rate, web_post]
    visible = apply_profile([one.spec for one in tools], ToolProfile(exclude=["*_post"])).visible
    print("visible:", ", ".join(visible))
    engine = PreHydrationEngine(tools, PreHydrationConfig(resolution_tools={"url": Resolver("web_get", "url")}))
    print((await engine.hydrate("Is the bridge open? See https://example.org/bridge.")).resolved[0].content)
    chosen = await select_relevant_tools("How many euros are 20 US dollars?", tools, model=model)
    print("chosen:", ", ".join(chosen.selected_tool_ids))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "local"))
