"""Read the prompt templates and parts that ship with surefoot."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def template(name: str) -> str:
    """The text of `NAME.md`: `REASONER_MODE`, `ROLE_MODE`, or a part such as `thinking_states`."""
    return (files("surefoot.prompts") / f"{name}.md").read_text(encoding="utf-8")
