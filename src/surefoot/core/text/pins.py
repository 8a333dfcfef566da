"""What a tool is pinned by: whoever looked at it looked at exactly this. Source: spec/guard.md, section 4.4."""

from __future__ import annotations

from hashlib import sha256

from surefoot.core.text import json_text
from surefoot.types.tools import ToolSpec


def pin_of(spec: ToolSpec) -> str:
    """SHA-256 (hex) of server, name, description, input and output schema, as a model sees them.

    Pure. What the developer declares is no part of it: declaring a tool changes no pin.
    """
    pinned = [spec.server, spec.name, spec.description, spec.parameters, spec.output]
    return sha256(json_text(pinned, sort_keys=True).encode(errors="replace")).hexdigest()
