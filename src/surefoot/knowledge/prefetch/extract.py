"""What a task refers to: urls, files, issues, pull requests, and what the operator's patterns name.

Pure and linear in the text, but for the operator's patterns. The leftmost reference wins, at one place the longest, at
equal length a custom pattern; what is claimed is claimed once. Source: spec/primitives.md, 3.2 to 3.4.
"""

from __future__ import annotations

import asyncio
import re
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from surefoot.core.text.urls import MOST_SPANS, Found, Span, url_key, urls
from surefoot.knowledge.prefetch.paths import CJK, Code, existing, file_key, files
from surefoot.types.prehydration import PreHydrationConfig, Reference, ReferencePattern

MOST_MARKS = 30_000
"""Runs of back-ticks and the like that are looked at; a text is read no further than to the last of them."""
LIMIT_S = 0.25  # seconds that all custom patterns of a task have together; looked at after each match
_LONGEST_TAIL = 4_096

# Each way begins with a character of its own, which makes the search fast.
_MARK = re.compile(
    r"`(?:(?P<fence>`{2,}+(?=[^`\n]*+(?:\n|\Z)))|(?P<run>`*+))"
    r"|\n(?:(?P<blank>[ \t\r]*+(?=\n))|[ \t]*+(?P<tildes>~{3,}+))"
)
_HEAD = re.compile(r"[ \t]*+(?P<tildes>~{3,}+)")
_CLOSING = re.compile(r"\n[ \t]*+(?P<run>`{3,}+|~{3,}+)[ \t\r]*+(?=\n|\Z)")

ISSUE, PR = "issue", "pr"

_DIGITS = r"([0-9]{1,7}+)(?![A-Za-z0-9_]|\.[0-9])"
_BARE = re.compile(rf"#(?<![A-Za-z0-9_/#&.\-]#){_DIGITS}")
_GH = re.compile(rf"GH-(?<![A-Za-z0-9_/#&.\-]GH-){_DIGITS}")
_QUALIFIED = re.compile(rf"/(?<=[A-Za-z0-9]/)([A-Za-z0-9_.\-]{{1,100}}+)#{_DIGITS}")
_OWNER = re.compile(r"(?<![A-Za-z0-9_/#&.\-@:~+%])[A-Za-z0-9][A-Za-z0-9\-]{0,38}\Z")
_LONGEST_OWNER = 41
_PULL = re.compile(
    r"[pP](?<![A-Za-z0-9_][pP])(?:[rR]|[uU][lL][lL]\s{1,8}+[rR][eE][qQ][uU][eE][sS][tT])\s{0,8}+"
    rf"#{_DIGITS}"
)
_COLOUR = 6  # so many digits are a colour, unless a word says that they are an issue
_SAYS_ISSUE = re.compile(rf"(?<![^\W\d_{CJK}])(?:issues?|fix(?:es|ed|ing)?|(?:clos|resolv)(?:e|es|ed|ing))\Z")
_LONGEST_WORD = 24


@dataclass(frozen=True, slots=True)
class Extraction:
    """The references of a task in order of appearance, how many the caps cut, and whether text was left unread."""

    references: tuple[Reference, ...] = ()
    dropped: int = 0
    scan_truncated: bool = False


@dataclass(slots=True)
class CustomMatches:
    """What custom patterns matched, by text; those that were not through in time; `cut`: there was more."""

    by_text: tuple[list[Span], ...]
    late: list[ReferencePattern] = field(default_factory=list[ReferencePattern])
    cut: bool = False


@dataclass(frozen=True, slots=True)
class CodeParts:
    """The code of a text, in order; `limit` is where it was read to, and `cut` that there is more."""

    parts: tuple[Code, ...]
    limit: int
    cut: bool


async def references_in(
    texts: Sequence[str], config: PreHydrationConfig, *, exists: Callable[[str], bool] | None = None
) -> Extraction:
    """What `extract` finds, in a thread: long texts take up to some 200 ms a million characters.

    `exists` runs in that thread. With custom patterns, which have a time limit, the result can differ from one time to
    the next, and belongs into the journal.
    """
    return await asyncio.to_thread(extract, texts, config, exists=exists)


def extract(
    texts: Sequence[str],
    config: PreHydrationConfig,
    *,
    exists: Callable[[str], bool] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Extraction:
    """What the user's messages refer to, each once; `texts` are their words, never results of tools.

    A custom pattern that took too long comes as a reference with a refusal, after the caps. `exists` tells whether a
    path is in the workspace.
    """
    if config.max_references == 0:
        return Extraction()
    parts, truncated, most = list[str](), False, config.max_input_chars
    for text in texts:  # their first characters; no word is cut in two
        at = min(most, len(text))
        if at < len(text) and at and not text[at].isspace():
            least = max(0, at - _LONGEST_TAIL)
            while at > least and not text[at - 1].isspace():
                at -= 1
        parts.append(text[:at])
        most -= at
        if truncated := at < len(text):
            break
    custom = custom_matches(config.custom_patterns, parts, clock)
    unique: dict[tuple[str, object], Span] = {}
    for text, own in zip(parts, custom.by_text, strict=True):
        spans, cut = _spans(text, config, own, exists)
        truncated = truncated or cut
        for span in spans:
            unique.setdefault((span.type, span.key), span)
    kept, counts = list[Span](), Counter[str]()
    for span in unique.values():
        if config.max_per_type is None or counts[span.type] < config.max_per_type:
            counts[span.type] += 1
            kept += [span] if len(kept) < config.max_references else []
    why = f"Custom patterns took longer than {LIMIT_S * 1000:.0f} ms"
    late = tuple(Reference(pattern.ref_type, pattern.pattern, refusal=why) for pattern in custom.late)
    found = tuple(Reference(span.type, span.value, span.lines, span.column) for span in kept)
    return Extraction((*found, *late), len(unique) - len(kept), truncated or custom.cut)


def custom_matches(
    patterns: Sequence[ReferencePattern], texts: Sequence[str], clock: Callable[[], float]
) -> CustomMatches:
    """The matches of each pattern in each text; of a pattern with a group `value` the value is that group.

    Patterns run in their order; those that were through when the time was over count, all others are late. One match
    cannot be interrupted: `ReferencePattern` refuses what may take for ever, and what still takes long is up to the
    operator who wrote it.
    """
    until = clock() + LIMIT_S
    matches = CustomMatches(tuple([] for _ in texts))
    for rank, pattern in enumerate(patterns):
        compiled = re.compile(pattern.pattern)
        group = "value" if "value" in compiled.groupindex else 0
        found: list[tuple[int, Span]] = []
        for index, text in enumerate(texts):
            for match in compiled.finditer(text):
                if clock() > until or len(found) == MOST_SPANS:
                    break
                if value := match[group]:
                    found.append((index, Span(*match.span(), pattern.ref_type, value, value, rank)))
        if clock() > until:
            matches.late.extend(patterns[rank:])
            break
        matches.cut |= len(found) == MOST_SPANS
        for index, span in found:
            matches.by_text[index].append(span)
    return matches


def _spans(
    text: str, config: PreHydrationConfig, custom: Sequence[Span], exists: Callable[[str], bool] | None
) -> tuple[Sequence[Span], bool]:
    """The references of one text, none over another, and whether a part of the text was not read."""
    code = code_parts(text)
    text = text[: code.limit]
    found = (urls(text), files(text, config.path_style, code.parts), issues(text), pulls(text))
    starts = [part.start for part in code.parts]
    spans: list[Span] = []
    for span in (span for each in found for span in each.spans):
        before = bisect_right(starts, span.start) - 1 if span.type in (ISSUE, PR) else -1
        if before < 0 or span.start >= code.parts[before].end:  # of what stands in code, issues and pulls do not count
            spans.append(span)
    for span in custom:
        if span.end <= code.limit:  # a value of a built-in type is the same as the built-in one
            key = span.key
            if span.type == "url" and "://" in span.value:
                key = url_key(span.value)
            elif span.type == "file":
                key = file_key(span.value, config.path_style)
            spans.append(span._replace(key=key))
    claimed = _claimed(spans)
    cut = code.cut or any(each.cut for each in found)
    if exists is not None:
        starts, ends = [span.start for span in claimed], [span.end for span in claimed]

        def is_free(start: int, end: int) -> bool:
            return bisect_right(ends, start) == bisect_left(starts, end)

        bare = existing(text, config.path_style, is_free, exists)
        claimed, cut = _claimed([*claimed, *bare.spans]), cut or bare.cut
    return claimed, cut


def _claimed(spans: Sequence[Span]) -> list[Span]:
    """The spans that lie over no other, the leftmost first, then the longest, then by rank."""
    kept: list[Span] = []
    end = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end, span.rank)):
        if span.start >= end:
            kept.append(span)
            end = span.end
    return kept


def issues(text: str) -> Found:
    """`#7`, `GH-7` and `owner/repo#7`, in order of kind and then of place."""
    spans: list[Span] = []
    for match in chain(_BARE.finditer(text), _GH.finditer(text), _QUALIFIED.finditer(text)):
        start, end = match.span()
        repository = ""
        if match.re is _QUALIFIED:
            owner = _OWNER.search(text[max(0, start - _LONGEST_OWNER) : start])
            if owner is None:
                continue
            start -= len(owner[0])
            repository = f"{owner[0]}/{match[1]}".casefold()
        elif match.re is _BARE and len(match[1]) == _COLOUR:
            before = text[max(0, start - _LONGEST_WORD) : start].rstrip(" \t\r\n:([\uff1a\uff08")
            if not before[-1:].isalpha() or not _SAYS_ISSUE.search(before.lower()):  # a text may be all colours
                continue
        if len(spans) == MOST_SPANS:
            return Found(spans, cut=True)
        spans.append(Span(start, end, ISSUE, text[start:end], (repository, int(match[match.re.groups]))))
    return Found(spans)


def pulls(text: str) -> Found:
    """`PR #7` and `pull request #7`, in order."""
    found = [
        Span(*match.span(), PR, match[0], ("", int(match[1]))) for match in islice(_PULL.finditer(text), MOST_SPANS + 1)
    ]
    return Found(found[:MOST_SPANS], cut=len(found) > MOST_SPANS)


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
        if kind in ("fence", "tildes"):  # the text goes on behind the block that it opens
            kind, run = "block", mark["tildes"] or text[start:at]
            while (closing := _CLOSING.search(text, at)) is not None:
                at = closing.end()
                if closing["run"].startswith(run):
                    break
            else:
                at = len(text)
        marks.append((kind, start, at))
        mark = _MARK.search(text, at)
    return CodeParts(tuple(_paired(marks)), len(text), cut=False)


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
