"""Which stretches of a text are issues and pull requests. Source: spec/primitives.md, 3.2; linear in the text."""

from __future__ import annotations

import re

from surefoot.knowledge.prefetch.spans import MOST_SPANS, Found, Span

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
_COLOUR = 6
"""So many digits are a colour, unless a word says that they are an issue."""
_SAYS_ISSUE = (
    *("issue", "issues", "fix", "fixes", "fixed", "fixing", "close", "closes", "closed", "closing"),
    *("resolve", "resolves", "resolved", "resolving"),
)
_LONGEST_WORD = 24


def issues(text: str) -> Found:
    """`#7`, `GH-7` and `owner/repo#7`, in order of kind and then of place."""
    spans: list[Span] = []
    for match in _BARE.finditer(text):
        if len(match[1]) == _COLOUR and not _said(text, match.start()):
            continue
        if len(spans) == MOST_SPANS:
            return Found(spans, cut=True)
        spans.append(Span(match.start(), match.end(), ISSUE, match.group(), ("", int(match[1]))))
    for match in _GH.finditer(text):
        if len(spans) == MOST_SPANS:
            return Found(spans, cut=True)
        spans.append(Span(match.start(), match.end(), ISSUE, match.group(), ("", int(match[1]))))
    for match in _QUALIFIED.finditer(text):
        if (owner := _owner(text, match.start())) is None:
            continue
        if len(spans) == MOST_SPANS:
            return Found(spans, cut=True)
        repository = f"{owner}/{match[1]}"
        start = match.start() - len(owner)
        spans.append(Span(start, match.end(), ISSUE, text[start : match.end()], (repository.casefold(), int(match[2]))))
    return Found(spans)


def pulls(text: str) -> Found:
    """`PR #7` and `pull request #7`, in order."""
    spans: list[Span] = []
    for match in _PULL.finditer(text):
        if len(spans) == MOST_SPANS:
            return Found(spans, cut=True)
        spans.append(Span(match.start(), match.end(), PR, match.group(), ("", int(match[1]))))
    return Found(spans)


def _said(text: str, at: int) -> bool:
    before = text[max(0, at - _LONGEST_WORD) : at].rstrip(" \t\r\n:([")
    if not before[-1:].isalpha() or not (before := before.lower()).endswith(_SAYS_ISSUE):  # a text may be all colours
        return False
    word = max((word for word in _SAYS_ISSUE if before.endswith(word)), key=len)
    return not before[: -len(word)][-1:].isalpha()


def _owner(text: str, at: int) -> str | None:
    found = _OWNER.search(text[max(0, at - _LONGEST_OWNER) : at])
    return found.group() if found else None
