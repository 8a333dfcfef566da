"""Conformance cases of the tool profile: profile and tools -> what is visible, what dropped, what warned of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast

from surefoot.core.select.profile import apply, canonical
from surefoot.types.errors import ConfigError
from surefoot.types.profile import ToolProfile
from surefoot.types.tools import ToolSpec

Case = Mapping[str, object]


def symbiont_tool_profile(data: Case) -> dict[str, object]:
    """Results by case id. The tools of `vectors` are local, those of `adversarial` remote.

    Tools are registered under their names in NFC; the results tell each by the name that its case gives it.
    """
    origins: tuple[tuple[str, Literal["local", "remote"]], ...] = (("vectors", "local"), ("adversarial", "remote"))
    return {
        str(case["id"]): _got(case, origin)
        for group, origin in origins
        for case in cast("Sequence[Case]", data.get(group, ()))  # the shape of the files is their authors' promise
    }


def _got(case: Case, origin: Literal["local", "remote"]) -> dict[str, object]:
    rows = cast("Sequence[Case]", case["tools"])  # the same
    tools = [
        ToolSpec(str(row["name"]), str(row.get("description") or ""), {"type": "object"}, effect="read", origin=origin)
        for row in rows
    ]
    try:
        report = apply(tools, ToolProfile.from_json(case.get("profile", {})))
    except ConfigError as error:
        return {"config_error": str(error)}
    given = {canonical(tool.name): tool.name for tool in reversed(tools)}  # of two equal names, the first is registered
    return {
        "visible": [given[name] for name in report.visible],
        "dropped": [name if stage == "registration" else given[name] for name, stage, _detail in report.dropped],
        "warnings": list(report.warnings),
    }
