"""The operator's own patterns, run within a time limit that holds whatever they do. Source: spec/primitives.md, 3.3."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import orjson

from surefoot.core.text import clean
from surefoot.knowledge.prefetch.spans import MOST_SPANS, Span
from surefoot.types.patterns import ReferencePattern

LIMIT_S = 0.25
"""Seconds that all custom patterns of a task have together, counted from when the child has read them."""
START_S = 10.0
"""Seconds that the child may take to start; a busy machine is not the pattern's fault."""

_CHILD = Path(__file__).with_name("pattern_child.py")
_LONGEST_LINE = 64 * 1024 * 1024

Row = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class CustomMatches:
    """What custom patterns matched, by text; (type, pattern, why) of those that failed; `cut`: there was more."""

    by_text: tuple[tuple[Span, ...], ...] = ()
    failed: tuple[tuple[str, str, str], ...] = ()
    cut: bool = False


async def custom_matches(
    patterns: Sequence[ReferencePattern], texts: Sequence[str], *, limit_s: float = LIMIT_S
) -> CustomMatches:
    """The matches of each pattern in each text. Never raises for what a pattern does; a slow one is killed.

    Patterns run in their order; those that were through when the time was over count, all others are failed. `texts`
    must be what `scanned` gives. Costs the start of a process, some 30 ms, and nothing without patterns.
    """
    if not patterns:
        return CustomMatches()
    texts = [clean(text) for text in texts]
    rows, why = await _asked([pattern.pattern for pattern in patterns], texts, limit_s)
    spans: list[list[Span]] = [[] for _ in texts]
    for rank, (pattern, by_text) in enumerate(zip(patterns, rows, strict=False)):
        for text, found, mine in zip(texts, by_text, spans, strict=True):
            for start, end, first, last in found:
                value = text[first:last]
                mine.append(Span(start, end, pattern.ref_type, value, value, rank))
    return CustomMatches(
        tuple(map(tuple, spans)),
        tuple((pattern.ref_type, pattern.pattern, why) for pattern in patterns[len(rows) :]),
        cut=any(sum(map(len, by_text)) >= MOST_SPANS for by_text in rows),
    )


async def _asked(patterns: list[str], texts: list[str], limit_s: float) -> tuple[list[list[list[Row]]], str]:
    """The rows of each pattern that was through, and why the others are not."""
    rows: list[list[list[Row]]] = []
    try:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(_CHILD)), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=_LONGEST_LINE
        )
    except OSError as error:
        return rows, f"Custom patterns could not be run: {error}"
    late = f"did not start within {START_S:g} s"
    try:
        async with asyncio.timeout(START_S):
            await _tell(child, orjson.dumps({"patterns": patterns, "texts": texts, "most": MOST_SPANS}))
            ready = await _line(child)
        late = f"took longer than {limit_s * 1000:.0f} ms"
        if ready:
            async with asyncio.timeout(limit_s):
                while len(rows) < len(patterns) and (line := await _line(child)):
                    rows.append(cast("list[list[list[Row]]]", orjson.loads(line)))  # type: ignore[arg-type]  # ours
    except TimeoutError:
        return rows, f"Custom patterns {late}"
    except (OSError, ValueError) as error:
        return rows, f"Custom patterns could not be run: {error}"
    finally:
        await _end(child)
    return rows, "Custom patterns could not be run: their process ended"


async def _tell(child: Process, question: bytes) -> None:
    if child.stdin is not None:
        child.stdin.write(question)
        await child.stdin.drain()
        child.stdin.close()


async def _line(child: Process) -> bytes:
    return b"" if child.stdout is None else await child.stdout.readline()


async def _end(child: Process) -> None:
    if child.returncode is None:
        with suppress(ProcessLookupError):
            child.kill()
    await child.wait()
