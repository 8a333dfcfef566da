"""Which tools a run is offered: those given, those of servers, and what a profile or a selection leaves of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast, get_args

from surefoot.core.gate.effects import lookalikes
from surefoot.core.gate.rules import check_cedar
from surefoot.core.guard.resume import guard_of
from surefoot.core.select.profile import apply, canonical
from surefoot.core.state.state import State
from surefoot.core.state.window import READ_RESULT, pager_spec
from surefoot.core.text.words import fits
from surefoot.runtime.pins import NOTHING_PINNED, Pinned, Pins
from surefoot.tools.function import FunctionTool, ToolWrapper, wrapped_in
from surefoot.tools.function import tool as as_tool
from surefoot.types.config import LoopConfig
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.events import Event, ToolsSelected
from surefoot.types.guard import GuardConfig
from surefoot.types.plan import check_tool_name
from surefoot.types.ports import ServiceKey, Tool, ToolCallContext
from surefoot.types.rules import Declared, as_declared
from surefoot.types.selection import Dropped, ProfileStage
from surefoot.types.tools import Catalogue, Effect, ToolResult, ToolSpec

if TYPE_CHECKING:
    from surefoot.knowledge.bridge import KnowledgeBridge
    from surefoot.tools.mcp.config import McpGiven
    from surefoot.tools.mcp.servers import McpServers, McpTool


_EFFECTS: tuple[Effect, ...] = get_args(Effect)
_UNDECLARED: Mapping[str, Declared] = {}


def bound_tools(
    tools: Sequence[Tool | Callable[..., object]], services: Mapping[ServiceKey, object] = MappingProxyType({})
) -> dict[str, Tool]:
    """Tools by name, in NFC; functions become tools, and what a tool asks for by type is found. Raises `UsageError`."""
    found: dict[str, Tool] = {}
    for one in tools:
        is_tool = isinstance(one, FunctionTool) or hasattr(one, "spec")
        if not is_tool and not callable(given := cast("object", one)):  # misuse is told
            how = "give functions or tools, such as [look_up]; servers go in mcp=[…], and an agent is agent.as_tool(…)"
            raise ConfigError("tools", "", f"{type(given).__name__} is neither a function nor a tool; {how}")
        made = cast("Tool", one) if is_tool else as_tool(cast("Callable[..., object]", one))
        if isinstance(made, FunctionTool):
            made = cast("FunctionTool[..., object]", made).bound(services.keys())  # of whatever function
        name = canonical(made.spec.name)
        if name in found:
            raise UsageError(f"two tools are called {name!r}; give one of them another name with @tool(name=…)")
        check_tool_name(name)
        if name == READ_RESULT:
            raise UsageError(f"a tool cannot be called {READ_RESULT!r}: surefoot pages through long results under it")
        found[name] = made
    return found


def catalogue_of(tools: Mapping[str, Tool], declared: Mapping[str, Declared] = _UNDECLARED) -> Catalogue:
    """The declarations of the tools, with the pager that any tool's long result may need.

    What a configuration says of a tool counts before what its code does.
    """
    named = [s if (s := one.spec).name == name else replace(s, name=name) for name, one in tools.items()]
    for spec in named:
        if not spec.server and (unknown := _lacking(spec, (*spec.roles, *spec.sensitive))):
            known = ", ".join(sorted(_names_in(spec.parameters) or ()))
            told = f"tool {spec.name!r} has no such parameter, only {known}"
            raise ConfigError("roles" if unknown in spec.roles else "sensitive", unknown, told)
    return Catalogue((*(as_declared(s, declared) for s in named), pager_spec()) if named else ())


def _lacking(spec: ToolSpec, names: Iterable[str]) -> str:
    """The first of these names that no parameter of a tool has, at any depth; "" where all are there, or any may be."""
    known = _names_in(spec.parameters)
    return "" if known is None else next((name for name in names if name not in known), "")


def _names_in(schema: object) -> set[str] | None:
    """The names of all properties in a schema; None where something in it may have any."""
    if not isinstance(schema, Mapping) or not schema.keys() & _SAYS:
        return set() if schema is False else None
    held = cast("Mapping[str, Any]", schema)  # Any: a schema of whatever make
    types = {held["type"]} if isinstance(held.get("type"), str) else {*held.get("type", ())}
    own: Mapping[str, object] = held.get("properties", {})
    is_open = "patternProperties" in held or held.get("additionalProperties", False) is not False
    if is_open or ("object" in types and not own) or ("array" in types and "items" not in held):
        return None
    parts = [*own.values(), *(held[key] for key in ("items",) if key in held)]
    parts += [one for key in ("anyOf", "oneOf", "allOf") for one in held.get(key, ())]
    parts += [one for key in ("$defs", "definitions") for one in held.get(key, {}).values()]
    found = [_names_in(one) for one in parts]
    return None if None in found else {*own}.union(*(one for one in found if one))


_SAYS = frozenset({"type", "properties", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"})


def _misnamed(guard: GuardConfig, catalogue: Catalogue) -> tuple[str, ...]:
    """What the rules of a person say of tools and parameters that are not here: a slip of the pen guards nothing."""
    told: list[str] = []
    for name, one in guard.declared.items():
        if (spec := catalogue.get(name)) is None:
            told.append(f"the rules declare {name!r}, but no tool here is called that")
        elif unknown := _lacking(spec, (*one.roles, *one.sensitive)):
            told.append(f"the rules declare a parameter {unknown!r} of {name!r}, which it does not have")
    about = [(rule.id, rule.when.tool, rule.when.value) for rule in guard.rules]
    about += [(rule.id, rule.tool, value) for rule in guard.standing for value in rule.when or (None,)]
    for name, tool, value in about:
        meant = [spec for spec in catalogue.tools if tool is None or fits(tool, spec.name)]
        if not meant:
            told.append(f"rule {name!r} is about {tool!r}, but no tool here is called that")
        elif value is not None and value.arg and all(_lacking(spec, (value.arg,)) for spec in meant):
            told.append(f"rule {name!r} is about a parameter {value.arg!r}, which no tool that it names has")
    return tuple(dict.fromkeys(told))


def resolvers_of(config: LoopConfig, catalogue: Catalogue) -> frozenset[str]:
    """The tools that pre-hydration calls. Raises `ConfigError` for one that cannot resolve."""
    if config.pre_hydration is None:
        return frozenset()
    from surefoot.knowledge.prefetch.hydrate import lookups  # noqa: PLC0415  # its patterns take 40 ms to compile

    return frozenset(one.tool for one in lookups(config.pre_hydration, catalogue).values())


def known_of(config: LoopConfig) -> tuple[KnowledgeBridge | None, tuple[Tool, ...]]:
    """What is known of the workspace, and its tools; nothing of it is loaded where it was not asked for."""
    if config.conventions is None:
        return None, ()
    from surefoot.knowledge.bridge import KnowledgeBridge  # noqa: PLC0415  # sqlite3 loads when it is used
    from surefoot.knowledge.tools import knowledge_tools  # noqa: PLC0415  # as above

    bridge = KnowledgeBridge(config.conventions)
    return bridge, knowledge_tools(bridge)


MOST_DROPS = 100
"""Dropped tools that the event names; the counts tell of all."""
MOST_WARNINGS = 100

Selected = tuple[()] | tuple[ToolsSelected]


def selection(catalogue: Catalogue, config: LoopConfig, pinned: Pinned = NOTHING_PINNED) -> Selected:
    """The event that says what is visible; none for a run whose profile and gate have nothing to say about it.

    The pager is surefoot's own and stays wherever anything is visible. Where the gate is on, what looks like the
    developer's own tool is hidden, and `pinned` is what the pins have said. Raises `ConfigError` as `apply` does.
    """
    event: tuple[ToolsSelected, ...] = ()
    if config.tool_profile is not None:
        own = tuple(tool for tool in catalogue.tools if tool.name == READ_RESULT)
        offered = tuple(tool for tool in catalogue.tools if tool.name != READ_RESULT)
        verified = {tool.name for tool in offered if tool.verified}
        report = apply(offered, config.tool_profile, verified=verified, resolvers=resolvers_of(config, catalogue))
        visible = (*report.visible, *(tool.name for tool in own if report.visible))
        warnings = report.warnings[:MOST_WARNINGS]
        if (unnamed := len(report.dropped) - MOST_DROPS) > 0:
            warnings += (f"{unnamed} more tools were dropped than are named here; the counts tell of all",)
        counts: dict[str, int] = {**report.counts}
        event = (ToolsSelected(visible, "profile", counts, warnings, report.dropped[:MOST_DROPS]),)
    if config.guard is None or config.guard.mode == "off":
        return event
    (told,) = event or (ToolsSelected(catalogue.names, "guard"),)
    misnamed = _misnamed(config.guard, catalogue)
    hidden, doubted = lookalikes([spec for name in told.visible if (spec := catalogue.get(name))])
    if not (event or hidden or doubted or misnamed or pinned != NOTHING_PINNED):
        return ()
    stages: dict[ProfileStage, Mapping[str, str]] = {"pin": pinned.hidden, "lookalike": hidden}
    dropped: tuple[Dropped, ...] = tuple((name, at, why) for at, found in stages.items() for name, why in found.items())
    warnings = (*misnamed, *(f"{name} is hidden: {why}" for name, _, why in dropped), *told.warnings)
    judged = replace(
        told,
        visible=tuple(name for name in told.visible if name not in hidden),
        counts={**told.counts, **{at: len(found) for at, found in stages.items() if found}},
        warnings=warnings[:MOST_WARNINGS],
        dropped=(*dropped, *told.dropped)[:MOST_DROPS],
        doubted=doubted,
        pinned=pinned.first,
    )
    return (judged,)


def selected_anew(state: State, config: LoopConfig | None) -> tuple[Event, ...]:
    """The event for a run that is taken up; a configuration that is given without a profile lifts the one before.

    Raises `ConfigError`, as `selection` does, also for a tool that cannot resolve references.
    """
    if config is not None:
        resolvers_of(config, state.tools)
    selected = selection(state.tools, replace(config or state.config, guard=guard_of(state, config)))
    if selected or state.offered.names == state.tools.names:
        return selected
    return (ToolsSelected(state.tools.names, "profile"),)


@dataclass(frozen=True, slots=True)
class Offered:
    """What a run may use, of which `served` are the tools of servers. Made once for all that find the same tools."""

    served: Sequence[McpTool]
    pinned: Pinned
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
        pins: Pins,
        wrappers: Sequence[ToolWrapper],
    ) -> None:
        if config.guard is not None and config.guard.cedar:
            check_cedar(config.guard.cedar)
        self._own = {name: wrapped_in(tool, wrappers) for name, tool in own.items()}
        self._wrappers = wrappers
        self._config = config
        self._declared = config.guard.declared if config.guard is not None else _UNDECLARED
        self._pins = pins
        self._servers = None if mcp is None else _servers(mcp)
        self._offered = None if self._servers else self._made_of((), NOTHING_PINNED)

    async def now(self) -> Offered:
        """The tools as they are now. Connects to servers that are not connected; raises as `McpServers.tools` does.

        Where the gate is on, the pins of foreign tools are asked each time, and first sights recorded.
        """
        served = await self._servers.tools() if self._servers else ()
        guard, pinned = self._config.guard, NOTHING_PINNED
        if guard is not None and guard.mode != "off":
            pinned = await self._pins.check((tool.spec for tool in (*self._own.values(), *served)), guard.pins)
        offered = self._offered  # read once: an event loop on another thread has connections, and so tools, of its own
        if offered is None or served is not offered.served or pinned != offered.pinned:
            offered = self._offered = self._made_of(served, pinned)
        return offered

    async def tools_of(self, known: Catalogue) -> Mapping[str, Tool]:
        """The tools for a run that goes on; one that has changed since it began refuses to be called.

        Of the developer's own the parameters count: a call was judged, and approved, by what they were then.
        """
        now = await self.now()
        specs = ((tool, known.get(tool.spec.name)) for tool in now.served)
        own = ((name, tool, known.get(name)) for name, tool in self._own.items())
        return {
            **now.tools,
            **{name: _Changed(spec) for name, tool, spec in own if spec and spec.parameters != tool.spec.parameters},
            **{spec.name: wrapped_in(tool.known_as(spec), self._wrappers) for tool, spec in specs if spec is not None},
        }

    async def effects_of(self, known: Catalogue) -> Mapping[str, Effect]:
        """The effects that are stricter now than a run knows them. Where one is laxer, the known one counts on."""
        served = {tool.spec.name: tool for tool in (await self.now()).served}
        tools = {**self._own, **served}  # hidden ones too, which the run may know
        specs = catalogue_of(tools, self._declared).tools
        # Whether a tool may do what it could not: one that sends, pays or deletes does no less than another of these.
        return {
            spec.name: spec.effect
            for spec in specs
            if (was := known.get(spec.name))
            and spec.effect != was.effect
            and (was.effect == "read" or spec.effect not in ("read", "write"))
        }

    @property
    def used(self) -> tuple[McpServers, ...]:
        """The MCP servers, if any; `now` connects to them."""
        return (self._servers,) if self._servers is not None else ()

    @property
    def effect(self) -> Effect:
        """The strongest effect of its own tools; of servers, whose tools are not known yet, at least a write."""
        known: set[Effect] = {tool.spec.effect for tool in self._own.values()}
        known.add("write" if self._servers else "read")
        return max(known, key=_EFFECTS.index)

    def _made_of(self, served: Sequence[McpTool], pinned: Pinned) -> Offered:
        tools = {**self._own, **{tool.spec.name: wrapped_in(tool, self._wrappers) for tool in served}}
        if len(tools) < len(self._own) + len(served):
            twice = next(tool.spec.name for tool in served if tool.spec.name in self._own)
            raise UsageError(f"a tool and a tool of an MCP server are both called {twice!r}; rename one of them")
        for name in tools:
            check_tool_name(name)
        tools = {name: tool for name, tool in tools.items() if name not in pinned.hidden}
        catalogue = catalogue_of(tools, self._declared)
        resolvers_of(self._config, catalogue)  # raises for one that cannot resolve
        return Offered(served, pinned, tools, catalogue, selection(catalogue, self._config, pinned))


@dataclass(frozen=True, slots=True)
class _Changed:
    """An own tool as a run knows it, that takes other arguments by now."""

    spec: ToolSpec

    async def call(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:  # noqa: ARG002  # as `Tool` has it
        told = f"Not called: {self.spec.name} takes other arguments than when this run began. Begin the task anew."
        return ToolResult(told, "error", source=self.spec.name, trust="trusted")

    async def probe(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult | None:  # noqa: ARG002  # as above
        raise LookupError(f"{self.spec.name} has changed, and cannot tell whether an interrupted call took effect")


def _servers(mcp: McpGiven | Sequence[McpGiven] | McpServers) -> McpServers:
    from surefoot.tools.mcp.config import servers_of  # noqa: PLC0415  # pydantic loads when it is used
    from surefoot.tools.mcp.servers import McpServers  # noqa: PLC0415  # as above

    return mcp if isinstance(mcp, McpServers) else McpServers(servers_of(mcp))
