"""The tools of an agent for a run that begins or goes on: its own, and those of its MCP servers as they are now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from surefoot.core.gate.rules import check_cedar
from surefoot.runtime.pins import NOTHING_PINNED, Pins
from surefoot.runtime.selection import selection
from surefoot.runtime.toolbox import catalogue_of, resolvers_of
from surefoot.types.config import LoopConfig
from surefoot.types.errors import UsageError
from surefoot.types.events import Event
from surefoot.types.plan import check_tool_name
from surefoot.types.ports import Tool, ToolCallContext
from surefoot.types.tools import Catalogue, Effect, ToolResult, ToolSpec

if TYPE_CHECKING:
    from surefoot.tools.mcp.config import McpGiven
    from surefoot.tools.mcp.servers import McpServers
    from surefoot.tools.mcp.tool import McpTool


@dataclass(frozen=True, slots=True)
class Offered:
    """What a run may use. Made once for all runs that find the same tools."""

    tools: Mapping[str, Tool]
    catalogue: Catalogue
    selected: Sequence[Event]


class Offers:
    """The tools of one agent, and what judges them.

    Raises `UsageError` for servers, resolvers, Cedar policies or a profile that cannot be meant.
    """

    def __init__(
        self,
        own: Mapping[str, Tool],
        config: LoopConfig,
        mcp: McpGiven | Sequence[McpGiven] | McpServers | None,
        pins: Pins | None = None,
    ) -> None:
        if config.guard is not None and config.guard.cedar:
            check_cedar(config.guard.cedar)
        self._own = own
        self._config = config
        self._pins = pins or Pins(None)
        self._pinned = NOTHING_PINNED
        self._servers = None if mcp is None else _servers(mcp)
        self._of: tuple[McpTool, ...] = ()
        self._made = None if self._servers else self._offered(())

    async def now(self) -> Offered:
        """The tools as they are now. Connects to servers that are not connected; raises as `McpServers.tools` does.

        Where the gate is on, the pins of foreign tools are asked each time, and first sights recorded.
        """
        served = await self._servers.tools() if self._servers else ()
        guard, pinned = self._config.guard, NOTHING_PINNED
        if guard is not None and guard.mode != "off":
            pinned = self._pins.check((tool.spec for tool in (*self._own.values(), *served)), guard.pins)
        if self._made is None or served is not self._of or pinned != self._pinned:
            self._of, self._pinned = served, pinned
            self._made = self._offered(served)
        return self._made

    async def tools_of(self, known: Catalogue) -> Mapping[str, Tool]:
        """The tools for a run that goes on; one that has changed since it began refuses to be called.

        Of the developer's own the parameters count: a call was judged, and approved, by what they were then.
        """
        now = await self.now()
        specs = ((tool, known.get(tool.spec.name)) for tool in self._of)
        own = ((name, tool, known.get(name)) for name, tool in self._own.items())
        return {
            **now.tools,
            **{name: _Changed(spec) for name, tool, spec in own if spec and spec.parameters != tool.spec.parameters},
            **{spec.name: tool.known_as(spec) for tool, spec in specs if spec is not None},
        }

    async def effects_of(self, known: Catalogue) -> Mapping[str, Effect]:
        """The effects that are stricter now than a run knows them. Where one is laxer, the known one counts on."""
        await self.now()
        specs = [
            tool.spec for tool in (*self._own.values(), *self._of)
        ]  # hidden ones too, which the run may still know
        return {spec.name: spec.effect for spec in specs if (was := known.get(spec.name)) and _is_stricter(spec, was)}

    async def aclose(self) -> None:
        """End the connections to MCP servers; `now` opens them again."""
        if self._servers is not None:
            await self._servers.aclose()

    def _offered(self, served: Sequence[Tool]) -> Offered:
        tools = {**self._own, **{tool.spec.name: tool for tool in served}}
        if len(tools) < len(self._own) + len(served):
            twice = next(tool.spec.name for tool in served if tool.spec.name in self._own)
            raise UsageError(f"a tool and a tool of an MCP server are both called {twice!r}; rename one of them")
        for name in tools:
            check_tool_name(name)
        tools = {name: tool for name, tool in tools.items() if name not in self._pinned.hidden}
        catalogue = catalogue_of(tools)
        resolvers_of(self._config, catalogue)  # raises for one that cannot resolve
        return Offered(tools, catalogue, selection(catalogue, self._config, self._pinned))


@dataclass(frozen=True, slots=True)
class _Changed:
    """An own tool as a run knows it, that takes other arguments by now."""

    spec: ToolSpec

    async def call(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:  # noqa: ARG002  # as `Tool` has it
        """Never calls it."""
        told = f"Not called: {self.spec.name} takes other arguments than when this run began. Begin the task anew."
        return ToolResult(told, "error", source=self.spec.name, trust="trusted")

    async def probe(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult | None:  # noqa: ARG002  # as above
        """What it would say is of other arguments."""
        raise LookupError(f"{self.spec.name} has changed, and cannot tell whether an interrupted call took effect")


def _is_stricter(now: ToolSpec, was: ToolSpec) -> bool:
    """Whether a tool may do what it could not: one that sends, pays or deletes does no less than another of these."""
    return now.effect != was.effect and (was.effect == "read" or now.effect not in ("read", "write"))


def _servers(mcp: McpGiven | Sequence[McpGiven] | McpServers) -> McpServers:
    from surefoot.tools.mcp.config import servers_of  # noqa: PLC0415  # pydantic loads when it is used
    from surefoot.tools.mcp.servers import McpServers  # noqa: PLC0415  # as above

    return mcp if isinstance(mcp, McpServers) else McpServers(servers_of(mcp))
