"""What a tool of an MCP server is called here: `SERVER__TOOL`, always.

Always, and not only where two servers clash: with a prefix on clash, adding a server would rename the tools of another
one, under which journals, profiles, rules and pins know them. The prefix also says to model and person whose tool it
is, and as a server's name holds no `__`, it says so without doubt.

A wire takes 1 to 64 of `A-Z a-z 0-9 _ -`. A name that does not fit is made to fit, and ends in a piece of the digest
of the server's own name: the same name always gives the same one, and no two give one.
"""

from __future__ import annotations

import re
from hashlib import sha256

LONGEST_NAME = 64
SEPARATOR = "__"

_DIGEST_CHARS = 8
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")


def name_of(server: str, tool: str) -> str:
    """The name here of a server's tool. Pure; `server` is a name that `McpServer` accepts."""
    plain = f"{server}{SEPARATOR}{_UNFIT.sub('_', tool)}"
    if tool and plain.endswith(tool) and len(plain) <= LONGEST_NAME:
        return plain
    digest = sha256(tool.encode(errors="replace")).hexdigest()[:_DIGEST_CHARS]
    return f"{plain[: LONGEST_NAME - _DIGEST_CHARS - 1]}_{digest}"
