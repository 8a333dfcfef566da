"""Read the prompt templates that ship with surefoot."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

MODES = ("native", "schema", "text")


@cache
def templates(reasoner: str) -> dict[str, str]:
    """The template of a reasoner for each call mode."""
    folder = files("surefoot.prompts")
    return {mode: (folder / f"{reasoner}_{mode}.md").read_text(encoding="utf-8") for mode in MODES}
