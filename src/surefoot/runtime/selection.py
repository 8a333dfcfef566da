"""Which tools a run is offered: its profile applied to its catalogue. Source: spec/primitives.md, 1.5 and 1.6."""

from __future__ import annotations

from surefoot.core.pager import READ_RESULT
from surefoot.core.select.profile import apply
from surefoot.types.config import LoopConfig
from surefoot.types.events import Event, ToolsSelected
from surefoot.types.tools import Catalogue

MOST_DROPS = 100
"""Dropped tools that the event names; the counts tell of all."""
MOST_WARNINGS = 100


def selection(catalogue: Catalogue, config: LoopConfig) -> tuple[Event, ...]:
    """The event that says what is visible; none for a run without a profile.

    The pager is surefoot's own and stays wherever anything is visible. Raises `ConfigError` as `apply` does.
    """
    if config.tool_profile is None:
        return ()
    own = tuple(tool for tool in catalogue.tools if tool.name == READ_RESULT)
    offered = tuple(tool for tool in catalogue.tools if tool.name != READ_RESULT)
    report = apply(offered, config.tool_profile, verified={tool.name for tool in offered if tool.verified})
    visible = (*report.visible, *(tool.name for tool in own if report.visible))
    counts: dict[str, int] = {**report.counts}
    dropped, warnings = report.dropped[:MOST_DROPS], report.warnings[:MOST_WARNINGS]
    return (ToolsSelected(visible, "profile", counts, warnings, dropped),)
