"""Which stretches of a text are code: fenced blocks and code spans. Linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_MARKS = 30_000
"""Runs of back-ticks and the like that are looked at; a text is read no further than to the last of them."""

# Each way begins with a character of its own, which makes the search fast.
_MARK = re.compile(
    r"`(?:(?P<fence>`{2,}+(?=[^`\n]*+(?:\n|\Z)))|(?P<run>`*+))"
    r"|\n(?:(?P<blank>[ \t\r]*+(?=\n))|[ \t]*+(?P<tildes>~{3,}+))"
)
_HEAD = re.compile(r"[ \t]*+(?P<tildes>~{3,}+)")
_CLOSING = re.compile(r"\n[ \t]*+(?P<run>`{3,}+|~{3,}+)[ \t\r]*+(?=\n|\Z)")


@dataclass(frozen=True, slots=True)
class Code:
    """A stretch of code with its marks; `inner` to `inner_end` is what stands between them. A block has no inner."""

    start: int
    end: int
    inner: int = 0
    inner_end: int = 0


@dataclass(frozen=True, slots=True)
class CodeParts:
    """The code of a text, in order; `limit` is where it was read to, and `cut` that there is more."""

    parts: tuple[Code, ...]
    limit: int
    cut: bool


def code_parts(text: str) -> CodeParts:
    """Blocks between fences, and spans between two equal runs of back-ticks in one paragraph.

    A fence of back-ticks is one that nothing of its kind follows on its line; one that is never closed goes on to the
    end of the text.
    """
    marks: list[tuple[str, int, int]] = []
    mark = _HEAD.match(text) or _MARK.search(text)
    while mark is not None:
        if len(marks) == MOST_MARKS:
            return CodeParts(tuple(_paired(marks)), marks[-1][2], cut=True)
        kind, start, at = str(mark.lastgroup), mark.start(), mark.end()
        if kind in ("fence", "tildes"):
            run = mark["tildes"] or text[start:at]
            kind, at = "block", _past_block(text, run, at)
        marks.append((kind, start, at))
        mark = _MARK.search(text, at)
    return CodeParts(tuple(_paired(marks)), len(text), cut=False)


def _past_block(text: str, run: str, at: int) -> int:
    """Where the text goes on behind a block whose opening run ends at `at`."""
    while (closing := _CLOSING.search(text, at)) is not None:
        at = closing.end()
        if closing["run"].startswith(run):
            return at
    return len(text)


def _paired(marks: list[tuple[str, int, int]]) -> Iterator[Code]:
    """Marks as code. A run closes with the next one of its length before a blank line; without one it is text."""
    following: dict[int, int] = {}  # place in `marks` -> the next run of its length in the paragraph
    last: dict[int, int] = {}
    for place in range(len(marks) - 1, -1, -1):
        kind, start, end = marks[place]
        if kind == "run":
            if end - start in last:
                following[place] = last[end - start]
            last[end - start] = place
        else:
            last.clear()
    place = 0
    while place < len(marks):
        kind, start, end = marks[place]
        if kind == "block":
            yield Code(start, end)
        elif place in following:
            place = following[place]
            yield Code(start, marks[place][2], end, marks[place][1])
        place += 1
