"""Runs regular expressions on texts in a process of its own, which can be killed when they take too long.

Python's `re` cannot be interrupted from inside. This file is started by its path with nothing but the standard
library, and so imports nothing of ours. It reads one JSON object from standard input, `{"patterns": [...], "texts":
[...], "most": N}`, writes the line `ready`, and then a line for each pattern as soon as it is through: for each text a
list of [start, end, start of the value, end of the value], at most N in all.
"""

from __future__ import annotations

import json
import re
import sys


def matches(pattern: str, texts: list[str], most: int) -> list[list[tuple[int, int, int, int]]]:
    """The matches of a pattern in each text; the value is the group `value` if there is one. Empty ones are skipped."""
    compiled = re.compile(pattern)
    group = "value" if "value" in compiled.groupindex else 0
    rows: list[list[tuple[int, int, int, int]]] = []
    for text in texts:
        row: list[tuple[int, int, int, int]] = []
        for match in compiled.finditer(text):
            if most == 0:
                break
            if match.start(group) < match.end(group):
                row.append((*match.span(), *match.span(group)))
                most -= 1
        rows.append(row)
    return rows


def main() -> None:
    """Answer one question; see the head of this file."""
    asked = json.load(sys.stdin)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for pattern in asked["patterns"]:
        sys.stdout.write(json.dumps(matches(pattern, asked["texts"], asked["most"]), separators=(",", ":")) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
