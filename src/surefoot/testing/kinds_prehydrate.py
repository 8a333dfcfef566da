"""The conformance kind `symbiont_prehydrate`: references of a text, and the message made of their results."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import cast

from surefoot.knowledge.prefetch.extract import Extraction, references_in
from surefoot.knowledge.prefetch.hydrate import hydrated
from surefoot.knowledge.prefetch.resolvers import lookups, planned
from surefoot.types.errors import ConfigError
from surefoot.types.prehydration import PreHydrationConfig, Reference
from surefoot.types.tools import Catalogue, ToolResult, ToolSpec

Case = Mapping[str, object]

_INPUT: Mapping[str, object] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}


def symbiont_prehydrate(data: Case) -> dict[str, object]:
    """`extraction` and `adversarial` -> [[type, value], …] or the error; `hydration` -> the context.

    Cases of kind "property" describe a rule instead of a text, and are left out: they need a run.
    """
    results: dict[str, object] = {}
    for case in (*_cases(data, "extraction"), *_cases(data, "adversarial")):
        if case.get("kind") != "property":
            results[str(case["id"])] = _extracted(case)
    for case in _cases(data, "hydration"):
        results[str(case["id"])] = _hydrated(case)
    return results


def _extracted(case: Case) -> object:
    try:
        config = PreHydrationConfig.from_json(case.get("config", {}))
    except ConfigError as error:
        return {"config_error": str(error)}
    found = asyncio.run(references_in([str(case["input"])], config))
    return [[ref.type, ref.value] for ref in found.references]


def _hydrated(case: Case) -> object:
    config = PreHydrationConfig.from_json(case["config"])
    names = {resolver.tool for kind in config.resolution_tools if (resolver := config.resolver(kind))}
    catalogue = Catalogue(tuple(ToolSpec(name, "", _INPUT, effect="read") for name in sorted(names)))
    made = lookups(config, catalogue)
    references = tuple(Reference(*ref) for ref in cast("list[tuple[str, str]]", case["references"]))  # as the file says
    calls = planned(references, made)
    outcomes = {call.call_id: _result(row) for call, row in zip(calls, _cases(case, "results"), strict=False)}
    if case.get("reverse"):
        outcomes = dict(reversed(outcomes.items()))
    context = hydrated(Extraction(references), made, outcomes, config, run_id="conformance")
    return {
        "resolved": [
            {"ref": [each.ref.type, each.ref.value], "content": each.content, "tokens": each.tokens}
            for each in context.resolved
        ],
        "failed": [{"ref": [each.ref.type, each.ref.value], "error": each.error} for each in context.failed],
        "total_tokens": context.total_tokens,
        "message": context.message,
    }


def _result(row: Case) -> ToolResult:
    return ToolResult(str(row["content"]), kind="error" if row.get("is_error") else "ok")


def _cases(data: Case, name: str) -> list[Case]:
    return cast("list[Case]", data[name])  # the shape of the case files is their authors' promise
