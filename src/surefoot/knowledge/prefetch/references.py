"""What a task refers to: urls, files, issues, pull requests, and what the operator's patterns name.

Pure and linear in the text. The leftmost reference wins, at one place the longest, at equal length a custom pattern;
what is claimed is claimed once. Source: spec/primitives.md, 3.2 to 3.4.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from surefoot.knowledge.prefetch.code import Code, code_parts
from surefoot.knowledge.prefetch.files import existing, file_key, files
from surefoot.knowledge.prefetch.numbers import ISSUE, PR, issues, pulls
from surefoot.knowledge.prefetch.patterns import CustomMatches
from surefoot.knowledge.prefetch.spans import Span
from surefoot.knowledge.prefetch.urls import url_key, urls
from surefoot.types.prehydration import PathStyle, PreHydrationConfig, Reference

NOTHING_CUSTOM = CustomMatches()
_LONGEST_TAIL = 4_096


@dataclass(frozen=True, slots=True)
class Extraction:
    """The references of a task in order of appearance, how many the caps cut, and whether text was left unread."""

    references: tuple[Reference, ...] = ()
    dropped: int = 0
    scan_truncated: bool = False


def scanned(texts: Sequence[str], config: PreHydrationConfig) -> tuple[tuple[str, ...], bool]:
    """The part of the texts that is read, and whether that is less than all. No word is cut in two.

    Custom patterns are to be run on exactly these texts.
    """
    left = config.max_input_chars
    parts: list[str] = []
    for text in texts:
        part = text if len(text) <= left else _whole_words(text, left)
        parts.append(part)
        left -= len(part)
        if len(part) < len(text):
            return tuple(parts), True
    return tuple(parts), False


def extract(
    texts: Sequence[str],
    config: PreHydrationConfig,
    *,
    custom: CustomMatches = NOTHING_CUSTOM,
    exists: Callable[[str], bool] | None = None,
) -> Extraction:
    """What the user's messages refer to, each once; `texts` are their words, never results of tools.

    `custom` is what the custom patterns matched in `scanned(texts, config)`; a pattern that took too long comes as a
    reference with a refusal, after the caps. `exists` tells whether a path is in the workspace.
    """
    if config.max_references == 0:
        return Extraction()
    parts, truncated = scanned(texts, config)
    unique: dict[tuple[str, object], Span] = {}
    for index, text in enumerate(parts):
        spans, cut = _spans(text, config, custom, index, exists)
        truncated = truncated or cut
        for span in spans:
            unique.setdefault((span.type, span.key), span)
    kept, counts = list[Span](), Counter[str]()
    for span in unique.values():
        if config.max_per_type is not None and counts[span.type] >= config.max_per_type:
            continue
        counts[span.type] += 1
        if len(kept) < config.max_references:
            kept.append(span)
    late = tuple(Reference(ref_type, value, refusal=why) for ref_type, value, why in custom.failed)
    found = tuple(Reference(span.type, span.value, span.lines, span.column) for span in kept)
    return Extraction((*found, *late), len(unique) - len(kept), truncated or custom.cut)


def _spans(
    text: str, config: PreHydrationConfig, custom: CustomMatches, index: int, exists: Callable[[str], bool] | None
) -> tuple[Sequence[Span], bool]:
    """The references of one text, none over another, and whether a part of the text was not read."""
    code = code_parts(text)
    text = text[: code.limit]
    found = (urls(text), files(text, config.path_style, code.parts), issues(text), pulls(text))
    spans = [span for each in found for span in each.spans]
    spans = list(_outside_code(sorted(spans, key=_place), code.parts))
    spans += (span for span in _custom(custom, index, config.path_style) if span.end <= code.limit)
    claimed = _claimed(spans)
    cut = code.cut or any(each.cut for each in found)
    if exists is not None:
        bare = existing(text, config.path_style, _Free(claimed).is_free, exists)
        claimed, cut = _claimed([*claimed, *bare.spans]), cut or bare.cut
    return claimed, cut


def _place(span: Span) -> tuple[int, int, int]:
    return span.start, -span.end, span.rank


def _claimed(spans: Sequence[Span]) -> list[Span]:
    kept: list[Span] = []
    end = 0
    for span in sorted(spans, key=_place):
        if span.start >= end:
            kept.append(span)
            end = span.end
    return kept


def _outside_code(spans: Sequence[Span], code: Sequence[Code]) -> Iterator[Span]:
    """All but the issues and pull requests that stand in code. Both are in order."""
    starts = [part.start for part in code]
    for span in spans:
        if span.type in (ISSUE, PR):
            before = bisect_right(starts, span.start) - 1
            if before >= 0 and span.start < code[before].end:
                continue
        yield span


def _custom(custom: CustomMatches, index: int, style: PathStyle) -> list[Span]:
    """Custom matches of one text as spans; a value of a built-in type is the same as the built-in one."""
    if index >= len(custom.by_text):
        return []
    return [span._replace(key=_key(span, style)) for span in custom.by_text[index]]


def _key(span: Span, style: PathStyle) -> object:
    match span.type:
        case "url" if "://" in span.value:
            return url_key(span.value)
        case "file":
            return file_key(span.value, style)
        case _:
            return span.key


class _Free:
    """Which stretches no span has claimed."""

    def __init__(self, claimed: Sequence[Span]) -> None:
        self._starts = [span.start for span in claimed]
        self._ends = [span.end for span in claimed]

    def is_free(self, start: int, end: int) -> bool:
        """Whether nothing between `start` and `end` is claimed."""
        return bisect_right(self._ends, start) == bisect_left(self._starts, end)


def _whole_words(text: str, most: int) -> str:
    """The first `most` characters, less the word at their end if it goes on."""
    if most == 0 or text[most].isspace():
        return text[:most]
    at = most
    while at > max(0, most - _LONGEST_TAIL) and not text[at - 1].isspace():
        at -= 1
    return text[:at]
