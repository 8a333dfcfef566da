"""Tables of words that ship with surefoot: TOML files in `surefoot/data`, constants like those in the code."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any


@cache
def table(name: str) -> dict[str, Any]:
    """What `NAME.toml` holds, read at the first use. The file decides the types; nobody may change the value."""
    import tomllib  # noqa: PLC0415  # a run that looks nothing up does not pay for the parser

    return tomllib.loads((files("surefoot") / "data" / f"{name}.toml").read_text(encoding="utf-8"))
