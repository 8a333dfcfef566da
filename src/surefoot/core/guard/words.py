"""A person's words about what a run waits for."""

from __future__ import annotations

from hashlib import sha256

from surefoot.core.state.turn import Call
from surefoot.core.text import json_text


def digest_of_call(call: Call) -> str:
    """What a word about a call binds to: the gate's digest, else SHA-256 (hex) of its id, tool and arguments."""
    told = json_text([call.id, call.name, call.arguments], sort_keys=True)
    return call.digest or sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
