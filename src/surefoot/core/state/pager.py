"""The tool that reads on in a result that was cut or folded."""

from __future__ import annotations

from surefoot.types.tools import ToolSpec

READ_RESULT = "read_result"


def pager_spec() -> ToolSpec:
    """The declaration of that tool."""
    return ToolSpec(
        READ_RESULT,
        "Read on in a result that was cut, or read one again that was folded.",
        {
            "type": "object",
            "properties": {
                "call_id": {"type": "string", "description": "the call whose result it is"},
                "start": {"type": "integer", "minimum": 0, "description": "the first character to read"},
            },
            "required": ["call_id", "start"],
            "additionalProperties": False,
        },
        effect="read",
        idempotent=True,
    )
