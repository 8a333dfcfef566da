"""The tools `recall_knowledge` and `store_knowledge`.

What a model stores is unverified: any run can find it, marked, but it is not a convention until a person verifies it.
Source: spec/primitives.md, 4.1; seed 001, tool call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

from surefoot.core.parse.validate import Validator, validate
from surefoot.core.text import object_schema
from surefoot.knowledge.bridge import KnowledgeBridge
from surefoot.knowledge.store import LONGEST_LANGUAGE, LONGEST_PART
from surefoot.types.errors import ConfigError
from surefoot.types.knowledge import (
    KNOWLEDGE_TYPES,
    LEAST_LIMIT,
    MOST_LIMIT,
    ROOT,
    Knowledge,
    KnowledgeError,
    KnowledgeType,
)
from surefoot.types.ports import Tool, ToolCallContext
from surefoot.types.tools import ToolResult, ToolSpec


def _text(description: str, **limits: object) -> dict[str, object]:
    return {"type": "string", **limits, "description": description}


_DIRECTORY = _text("Directory of the workspace that it is about.")
_PART = {"minLength": 1, "maxLength": LONGEST_PART}

RECALL = ToolSpec(
    "recall_knowledge",
    "Search what is known. With scope conventions: the rules that hold in a directory, nearest first.",
    object_schema(
        {
            "query": _text(
                "Words to search for. With scope conventions: a programming language, or a topic.", minLength=1
            ),
            "limit": {"type": "integer", "minimum": LEAST_LIMIT, "maximum": MOST_LIMIT, "default": 5},
            "directory": _DIRECTORY,
            "scope": _text("Ask for the conventions of the directory.", enum=["conventions"]),
        },
        *("limit", "directory", "scope"),
    ),
    effect="read",
)
STORE = ToolSpec(
    "store_knowledge",
    "Keep a fact for later runs. It counts as unverified until a person has looked at it.",
    object_schema(
        {
            "subject": _text("What the fact is about.", **_PART),
            "predicate": _text("What is said of the subject.", **_PART),
            "object": _text("The rest of the sentence.", **_PART),
            "confidence": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.8},
            "directory": _DIRECTORY,
            "language": _text("Programming language that it is about.", maxLength=LONGEST_LANGUAGE),
            "scope": _text("The fact is a convention.", enum=["conventions"]),
            "type": {"type": "string", "enum": list(KNOWLEDGE_TYPES), "default": "Fact"},
        },
        *("confidence", "directory", "language", "scope", "type"),
    ),
    effect="write",
    idempotent=True,  # what is there already is not stored twice
)


@dataclass(frozen=True)  # not slotted: the compiled schema is kept beside it
class KnowledgeTool:
    """A `Tool` that asks a bridge. A failure is a result for the model to read."""

    spec: ToolSpec
    bridge: KnowledgeBridge

    @cached_property
    def validator(self) -> Validator:
        return Validator(self.spec.parameters)

    async def call(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:
        """Run once; arguments are checked again, since anybody may call."""
        checked = self.validator.check(arguments)
        if checked.errors:
            why = "; ".join(f"{error.path}: {error.message}" for error in checked.errors)
            return ToolResult(f"Invalid arguments: {why}", "error")
        try:
            if self.spec is RECALL:
                return await recalled(self.bridge, checked.value)
            source = {"source": "model", "run_id": context.run_id, "call_id": context.call_id}
            entry = replace(entry_from(checked.value), **source)
            (stored,) = await self.bridge.add([entry], by="")
            return ToolResult(f"Stored fact: {entry.content} (id: {stored.id})")
        except ConfigError as error:
            return ToolResult(f"Invalid arguments: {error}", "error")
        except KnowledgeError as error:
            failed = "Knowledge search failed" if self.spec is RECALL else "Knowledge could not be stored"
            return ToolResult(f"{failed}: {error}", "error")

    async def probe(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult | None:  # noqa: ARG002  # as `Tool` has it
        """Not asked: both tools may be called again."""
        return None


def knowledge_tools(bridge: KnowledgeBridge) -> tuple[Tool, ...]:
    """The tools of a bridge; without a store there is nothing to store in."""
    recall = KnowledgeTool(RECALL, bridge)
    return (recall, KnowledgeTool(STORE, bridge)) if bridge.store is not None else (recall,)


def entry_from(arguments: Mapping[str, object]) -> Knowledge:
    """The entry that arguments of `store_knowledge` describe. Raises `ConfigError`.

    A directory makes it a convention of that directory; the scope "conventions" without one, of the whole workspace.
    """
    checked = validate(arguments, STORE.parameters)
    for error in checked.errors:
        raise ConfigError(error.path, arguments.get(error.path), error.message)
    given = cast("Mapping[str, str]", checked.value)  # by the schema all are text but one, which is read below
    return Knowledge(
        given["subject"],
        given["predicate"],
        given["object"],
        type=cast("KnowledgeType", given.get("type", "Fact")),  # one of the enumeration
        confidence=float(given.get("confidence", 0.8)),
        scope=given.get("directory") or (ROOT if "directory" in given or "scope" in given else ""),
        language=given.get("language", ""),
    )


async def recalled(bridge: KnowledgeBridge, arguments: Mapping[str, object]) -> ToolResult:
    """What is known, as a model reads it. `arguments` fit the schema of `RECALL`. Raises `KnowledgeError`."""
    query, limit = str(arguments["query"]), cast("int", arguments.get("limit", 5))  # by the schema
    directory, notes = arguments.get("directory"), list[str]()
    if "scope" in arguments:
        found = await bridge.retrieve_scoped_conventions(str(directory or ROOT), query, limit)
        if found.errors and not found.items:
            return ToolResult(f"Knowledge search failed: {'; '.join(found.errors)}", "error")
        entries, what = found.items, "conventions"
        lines = [_line(entry, f"from {entry.origin}") for entry in entries]
        notes += [f"({found.more} more not shown)"] if found.more else []
        notes += [f"(incomplete, there may be others: {error})" for error in found.errors]
    else:
        entries, what = await bridge.recall(query, limit), "knowledge"
        lines = [_line(entry, "" if entry.verified else "unverified") for entry in entries]
        unused = '(directory was not used: it goes with the scope "conventions")'
        notes += [unused] if directory is not None else []
    # They can be trusted only if a person vouches for every entry; files vouch for nothing.
    is_trusted = bool(entries) and all(entry.verified for entry in entries)
    told = "\n".join((*(lines or [f"No relevant {what} found."]), *notes))
    return ToolResult(told, trust="trusted" if is_trusted else "untrusted")


def _line(entry: Knowledge, mark: str) -> str:
    """An entry as a model reads it. Further lines of its text are indented, so that none passes for an entry."""
    marks = [entry.type, f"confidence={entry.confidence:.2f}", *([mark] if mark else [])]
    return f"- [{', '.join(marks)}] " + "\n  ".join(entry.content.splitlines())
