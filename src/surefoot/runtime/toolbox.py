"""The tools of an agent: functions made into tools, and what they ask for by type found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from surefoot.core.pager import READ_RESULT, pager_spec
from surefoot.core.select.profile import canonical
from surefoot.tools.function import FunctionTool
from surefoot.tools.function import tool as as_tool
from surefoot.types.config import LoopConfig
from surefoot.types.errors import UsageError
from surefoot.types.plan import check_tool_name
from surefoot.types.ports import ServiceKey, Tool
from surefoot.types.tools import Catalogue

if TYPE_CHECKING:
    from surefoot.knowledge.bridge import KnowledgeBridge


def bound_tools(
    tools: Sequence[Tool | Callable[..., object]], services: Mapping[ServiceKey, object] = MappingProxyType({})
) -> dict[str, Tool]:
    """Tools by name, in NFC; functions become tools, and what a tool asks for by type is found. Raises `UsageError`."""
    found: dict[str, Tool] = {}
    for one in tools:
        is_tool = isinstance(one, FunctionTool) or hasattr(one, "spec")
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


def catalogue_of(tools: Mapping[str, Tool]) -> Catalogue:
    """The declarations of the tools, with the pager that any tool's long result may need."""
    specs = (s if (s := one.spec).name == name else replace(s, name=name) for name, one in tools.items())
    return Catalogue((*specs, pager_spec()) if tools else ())


def resolvers_of(config: LoopConfig, catalogue: Catalogue) -> frozenset[str]:
    """The tools that pre-hydration calls. Raises `ConfigError` for one that cannot resolve."""
    if config.pre_hydration is None:
        return frozenset()
    from surefoot.knowledge.prefetch.resolvers import lookups  # noqa: PLC0415  # its patterns take 40 ms to compile

    return frozenset(one.tool for one in lookups(config.pre_hydration, catalogue).values())


def known_of(config: LoopConfig) -> tuple[KnowledgeBridge | None, tuple[Tool, ...]]:
    """What is known of the workspace, and its tools; nothing of it is loaded where it was not asked for."""
    if config.conventions is None:
        return None, ()
    from surefoot.knowledge.bridge import KnowledgeBridge  # noqa: PLC0415  # sqlite3 loads when it is used
    from surefoot.knowledge.tools import knowledge_tools  # noqa: PLC0415  # as above

    bridge = KnowledgeBridge(config.conventions)
    return bridge, knowledge_tools(bridge)
