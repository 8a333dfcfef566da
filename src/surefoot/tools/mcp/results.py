"""The answer of an MCP server as a result that a model reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import orjson

from surefoot.core.text import clean, json_text
from surefoot.tools.call import code_of
from surefoot.tools.mcp.offers import shown
from surefoot.types.tools import ResultKind, ToolResult

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

MOST_RESULT_CHARS = 4_000_000
"""Characters of a result that are kept at all; the rest is cut off, and the text says so."""


def result(server: str, text: str, kind: ResultKind = "ok", *, infrastructure: bool = False) -> ToolResult:
    """A result of a server: untrusted, and the source names it, whatever it says."""
    text = clean(text)
    if len(text) > MOST_RESULT_CHARS:
        text = f"{text[:MOST_RESULT_CHARS]}\n[cut: the result had {len(text)} characters]"
    return ToolResult(text, kind, source=f"mcp:{server}", trust="untrusted", infrastructure=infrastructure)


def told(answer: CallToolResult, *, structured: bool) -> str:
    """The text of an answer: its structured content as JSON if it is to be, else its parts one after the other."""
    if structured:
        return json_text(answer.structured_content)
    return "\n".join(map(_block, answer.content)) or (
        "(the tool gave no content)" if answer.structured_content is None else json_text(answer.structured_content)
    )


def code_in(answer: CallToolResult) -> str:
    """Class and code of a failure, by which a plan tells whether it is the same again; "" where the server gives none.

    It is looked for as `code`, at the top or under `error`, in the structured content or in a text that is JSON. Codes
    that JSON-RPC reserves are the protocol's, and too coarse to tell two failures apart.
    """
    held: object = answer.structured_content
    if held is None:
        try:
            held = orjson.loads(told(answer, structured=False))
        except orjson.JSONDecodeError:
            return ""
    for level in (held, cast("Mapping[str, object]", held).get("error") if isinstance(held, Mapping) else None):
        code = cast("Mapping[str, object]", level).get("code") if isinstance(level, Mapping) else None
        if isinstance(code, str) and _CODE.fullmatch(code):
            return f"tool:{code}"
        if isinstance(code, int) and not isinstance(code, bool) and code not in RESERVED:
            return code_of(code) if code in _FAILED_HTTP else f"tool:{code}"
    return ""


_CODE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
RESERVED = range(-32768, -31999)
"""The codes that JSON-RPC keeps for itself."""

_FAILED_HTTP = range(400, 600)


def _block(block: ContentBlock) -> str:
    """Text as it is, also that of a text resource below a line about it; of all else one line: kind and size."""
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return f"[{block.type}, {_of(block.mime_type)}, {_bytes(block.data)}]"
        case "resource_link":
            size = "" if block.size is None else f", {block.size} bytes"
            return f"[link to a resource: {shown(block.uri, 500)}, {_of(block.mime_type)}{size}]"
        case "resource":
            held = block.resource
            about = f"[resource {shown(held.uri, 500)}, {_of(held.mime_type)}"
            text = getattr(held, "text", None)
            if isinstance(text, str):
                return f"{about}, {len(text)} characters]\n{text}"
            return f"{about}, {_bytes(str(getattr(held, 'blob', '')))}]"


def _of(mime_type: str | None) -> str:
    return shown(mime_type or "unknown type", 100)


def _bytes(base64: str) -> str:
    """The size of what a base64 text holds."""
    return f"{len(base64.rstrip('=')) * 3 // 4} bytes"
