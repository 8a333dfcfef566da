"""What makes two calls the same, whoever makes them."""

from __future__ import annotations

from hashlib import sha256

from surefoot.core.text import json_text


def fingerprint(actor: str, arguments: object) -> str:
    """SHA-256 of a tool and its resolved parameters, or of a kind of step and its instruction, as canonical JSON.

    Source: spec/planning.md, section 8.
    """
    return sha256(f"{actor}\0{json_text(arguments, sort_keys=True)}".encode("utf-8", "replace")).hexdigest()
