"""The conformance kind `symbiont_conventions`: calls of `recall_knowledge` against stores that the cases describe."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from surefoot.knowledge.bridge import KnowledgeBridge
from surefoot.knowledge.tools import knowledge_tools
from surefoot.types.knowledge import ROOT, ConventionsConfig, Knowledge, KnowledgeType
from surefoot.types.ports import ToolCallContext

Case = Mapping[str, object]

_MARK = " conventions"


def symbiont_conventions(data: Case) -> dict[str, object]:
    """Cases -> `{"output": text}` or `{"error": text}`, each with a workspace and a store of its own.

    The cases were made for a search by text, so their queries tell the place: "rust conventions src/api" is the scope
    src/api for rust, "rust conventions " the root, "rust conventions" the language alone; all else is plain knowledge.
    """
    return asyncio.run(_results(cast("list[Case]", data["vectors"])))  # the shape of the file is its authors' promise


async def _results(cases: list[Case]) -> dict[str, object]:
    return {str(case["id"]): await _result(case) for case in cases}


async def _result(case: Case) -> dict[str, str]:
    arguments = cast("Case", case["arguments"])
    with TemporaryDirectory() as folder:
        path = Path(folder, "knowledge.db")
        bridge = KnowledgeBridge(ConventionsConfig(folder, store=str(path)))
        try:
            await bridge.add(_entries(cast("Mapping[str, list[Case]]", case["store"])))
            if case.get("errors"):  # a search that fails: its file is none of ours any more
                await bridge.aclose()
                await asyncio.to_thread(path.write_bytes, b"no store")
            recall = knowledge_tools(bridge)[0]
            result = await recall.call(arguments, ToolCallContext("run", "1.0", "key"))
        finally:
            await bridge.aclose()
    return {"error" if result.is_error else "output": result.content}


def _entries(store: Mapping[str, list[Case]]) -> list[Knowledge]:
    return [replace(_entry(item), **_placed(query)) for query, items in store.items() for item in items]


def _entry(item: Case) -> Knowledge:
    kind = cast("KnowledgeType", item.get("type", "Fact"))
    return Knowledge(str(item["content"]), type=kind, confidence=cast("float", item.get("confidence", 0.8)))


def _placed(query: str) -> dict[str, str]:
    language, mark, place = query.partition(_MARK)
    if not mark or (place and not place.startswith(" ")):
        return {}
    return {"language": language, "scope": "" if not place else place[1:] or ROOT}
