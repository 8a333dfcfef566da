"""The deliverable: the tagged end product of the two reasoners. Source: spec/reasoners.md, section 5."""

from __future__ import annotations

import re
from textwrap import dedent

from surefoot.types.dataclass import dataclass

DELIVERABLE = "<deliverable>"
DELIVERABLE_END = "</deliverable>"
TASK_DONE = "TASK_DONE"
_LOOK_BACK = 200
PARTS = ("task_objective", "task_context", "key_reasoning_points", "final_output")


@dataclass(frozen=True, slots=True)
class Deliverable:
    """The body and its four parts. Missing parts are empty; without any part tags the body is the final output."""

    body: str
    task_objective: str = ""
    task_context: str = ""
    key_reasoning_points: str = ""
    final_output: str = ""

    @property
    def output(self) -> str:
        """What the task was about; the rest is for those who want to follow it."""
        return self.final_output


def opens_at(text: str, at: int) -> bool:
    """Whether the tag at `at` stands where one may open: at a line start, or right after another tag."""
    begin = max(0, at - _LOOK_BACK)
    newline = text.rfind("\n", begin, at)
    before = text[max(begin, newline + 1) : at].rstrip()
    return before.endswith(">") or (not before and (newline >= 0 or begin == 0))


_LINE_END = re.compile(r"\r\n|\r|\n")


def body_of(text: str) -> str:
    """What stands between the tags, as an answer: common indentation and lines of only `TASK_DONE` removed, trimmed."""
    lines = [line for line in _LINE_END.split(text) if line.strip() != TASK_DONE]
    return dedent("\n".join(lines)).strip()


def parts_of(body: str) -> Deliverable:
    """The four parts of a body, in any order; a part goes up to its own closing tag, the last one to its last."""
    opened = sorted(
        (match.start(), name) for name in PARTS if (match := re.search(rf"(?m)^\s*<{name}>|(?<=>)<{name}>", body))
    )
    if not opened:
        return Deliverable(body, final_output=body)
    return Deliverable(body, **{name: _part(body, at, name, is_last=at == opened[-1][0]) for at, name in opened})


def _part(body: str, at: int, name: str, *, is_last: bool) -> str:
    start = body.index(f"<{name}>", at) + len(name) + 2
    end = body.rfind(f"</{name}>", start) if is_last else body.find(f"</{name}>", start)
    return body_of(body[start:end]) if end >= 0 else ""
