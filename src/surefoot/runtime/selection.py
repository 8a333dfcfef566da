"""Which tools a run is offered: its profile applied to its catalogue. Source: spec/primitives.md, 1.5 and 1.6."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from surefoot.core.gate.effects import lookalikes
from surefoot.core.guard import guard_of
from surefoot.core.pager import READ_RESULT
from surefoot.core.select.profile import apply
from surefoot.core.state import State
from surefoot.runtime.pins import NOTHING_PINNED, Pinned
from surefoot.runtime.toolbox import resolvers_of
from surefoot.types.config import LoopConfig
from surefoot.types.events import Event, ToolsSelected
from surefoot.types.profile import Dropped, ProfileStage
from surefoot.types.tools import Catalogue

MOST_DROPS = 100
"""Dropped tools that the event names; the counts tell of all."""
MOST_WARNINGS = 100

Selected = tuple[()] | tuple[ToolsSelected]


def selection(catalogue: Catalogue, config: LoopConfig, pinned: Pinned = NOTHING_PINNED) -> Selected:
    """The event that says what is visible; none for a run whose profile and gate have nothing to say about it.

    The pager is surefoot's own and stays wherever anything is visible. Where the gate is on, what looks like the
    developer's own tool is hidden, and `pinned` is what the pins have said. Raises `ConfigError` as `apply` does.
    """
    event = _profiled(catalogue, config)
    if config.guard is None or config.guard.mode == "off":
        return event
    (told,) = event or (ToolsSelected(catalogue.names, "guard"),)
    hidden, doubted = lookalikes([spec for name in told.visible if (spec := catalogue.get(name))])
    if not (event or hidden or doubted or pinned != NOTHING_PINNED):
        return ()
    stages: dict[ProfileStage, Mapping[str, str]] = {"pin": pinned.hidden, "lookalike": hidden}
    dropped: tuple[Dropped, ...] = tuple((name, at, why) for at, found in stages.items() for name, why in found.items())
    return (
        replace(
            told,
            visible=tuple(name for name in told.visible if name not in hidden),
            counts={**told.counts, **{at: len(found) for at, found in stages.items() if found}},
            warnings=(*(f"{name} is hidden: {why}" for name, _, why in dropped), *told.warnings)[:MOST_WARNINGS],
            dropped=(*dropped, *told.dropped)[:MOST_DROPS],
            doubted=doubted,
            pinned=pinned.first,
        ),
    )


def _profiled(catalogue: Catalogue, config: LoopConfig) -> Selected:
    if config.tool_profile is None:
        return ()
    own = tuple(tool for tool in catalogue.tools if tool.name == READ_RESULT)
    offered = tuple(tool for tool in catalogue.tools if tool.name != READ_RESULT)
    verified = {tool.name for tool in offered if tool.verified}
    report = apply(offered, config.tool_profile, verified=verified, resolvers=resolvers_of(config, catalogue))
    visible = (*report.visible, *(tool.name for tool in own if report.visible))
    warnings = report.warnings[:MOST_WARNINGS]
    if (unnamed := len(report.dropped) - MOST_DROPS) > 0:
        warnings += (f"{unnamed} more tools were dropped than are named here; the counts tell of all",)
    counts: dict[str, int] = {**report.counts}
    return (ToolsSelected(visible, "profile", counts, warnings, report.dropped[:MOST_DROPS]),)


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
