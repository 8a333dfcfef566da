"""Prompt templates with two places: `{tools}` and `{input}`.

Each occurs exactly once, and both are filled in one pass: what is filled in is never searched again, and every other
brace is plain text. What stands before the line with `{input}` is the system message, the rest the user message.
Source: seed 002 and spec/react.md, section 3.
"""

from __future__ import annotations

from surefoot.types.errors import ConfigError

TOOLS = "{tools}"
INPUT = "{input}"


def check_template(template: str, where: str) -> None:
    """Raise `ConfigError` naming `where` and the line unless each place occurs exactly once."""
    for place in (TOOLS, INPUT):
        lines = [number for number, line in enumerate(template.splitlines(), 1) for _ in range(line.count(place))]
        if len(lines) != 1:
            found = f"lines {', '.join(map(str, lines))}" if lines else "no line"
            raise ConfigError("prompt", where, f"the place {place} must occur exactly once; it is in {found}")


def split_template(template: str, *, tools: str, task: str) -> tuple[str, str]:
    """The system and the user message that a template gives."""
    at = template.index(INPUT)
    start = template.rfind("\n", 0, at) + 1
    head, tail = template[:start], template[start:]
    return _fill(head, tools, task).strip(), _fill(tail, tools, task).strip()


def _fill(text: str, tools: str, task: str) -> str:
    parts: list[str] = []
    rest = text
    while True:
        place = min((p for p in (TOOLS, INPUT) if p in rest), key=rest.index, default=None)
        if place is None:
            return "".join((*parts, rest))
        before, _, rest = rest.partition(place)
        parts += (before, tools if place == TOOLS else task)
