"""Read the prompt templates and parts that ship with surefoot."""

from __future__ import annotations

from functools import cache
from pkgutil import get_data
from typing import cast


@cache
def template(name: str) -> str:
    """The text of `NAME.md`: `REASONER_MODE`, `ROLE_MODE`, or a part such as `thinking_states`."""
    return cast("bytes", get_data("surefoot.prompts", f"{name}.md")).decode()
