"""Is a tool verified? By the operator's mark, by a digest that still holds, or by its own word where that counts.

Source: spec/primitives.md, section 1.3.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256

from surefoot.core.select.registration import canonical
from surefoot.core.text import json_text
from surefoot.types.profile import ToolProfile, TrustDescription
from surefoot.types.tools import ToolSpec

CLAIM = "[verified]"
"""What a description says when its author holds the tool for verified."""

CHANGED = "the tool has changed since it was pinned"
UNTRUSTED = "its description claims [verified], which does not count for its origin"
UNVERIFIED = "nothing verifies the tool"


def digest_of_tool(tool: ToolSpec) -> str:
    """What pins a tool: "sha256:" and the SHA-256 in hex over its name (in NFC), description and parameters."""
    told = json_text([canonical(tool.name), tool.description, dict(tool.parameters)], sort_keys=True)
    return f"sha256:{sha256(told.encode('utf-8', 'surrogatepass')).hexdigest()}"


def unverified(tools: Sequence[ToolSpec], profile: ToolProfile, verified: Collection[str]) -> dict[str, str]:
    """Of registered tools those that are not verified, by name, and why: one of the sentences above.

    `verified`: names marked besides the tools that are declared so. A digest of the profile that no longer holds
    outweighs a mark and a claim: what was looked at is not what is here now.
    """
    marked = frozenset(map(canonical, verified))
    digests = {canonical(name): digest for name, digest in profile.digests.items()}
    believed = _ORIGINS[profile.trust_description]
    doubts: dict[str, str] = {}
    for tool in tools:
        if tool.name in digests:
            if digests[tool.name] != digest_of_tool(tool):
                doubts[tool.name] = CHANGED
        elif tool.verified or tool.name in marked:
            continue
        elif CLAIM not in tool.description:
            doubts[tool.name] = UNVERIFIED
        elif tool.origin not in believed:
            doubts[tool.name] = UNTRUSTED
    return doubts


_ORIGINS: Mapping[TrustDescription, tuple[str, ...]] = {"local": ("local",), "all": ("local", "remote"), "none": ()}
