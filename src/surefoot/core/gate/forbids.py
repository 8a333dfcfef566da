"""What a user's words forbid and limit: "don't send it to X", "only X", "at most 50 dollars".

A negation covers its clause: from it to the end of the sentence, or to a word that turns ("but", "instead"), or to a
comma or an "and" before another action word. What it covers asks for nothing; if it names somebody, that is a forbid,
and the clause proves no value. Source: spec/guard.md, section 5.1.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from surefoot.core.gate import lexicon
from surefoot.core.gate.actions import (
    EFFECTS,
    LIGHT,
    TRANSACT,
    effects_in,
    of_noun,
    of_word,
    phrases_at,
    speaks_of_money,
)
from surefoot.core.gate.entities import Named
from surefoot.core.gate.forms import number
from surefoot.core.gate.late import Late
from surefoot.core.gate.stems import stem, stems
from surefoot.types.dataclass import dataclass
from surefoot.types.guard import Condition, ConstraintType, EntityKind, SecurityConstraint
from surefoot.types.tools import Effect

FORBID_PRIORITY = 1
LIMIT_PRIORITY = 3
_MOST_FILLERS = 12
_MOST_ONLY_WORDS = 8
_MOST_BEFORE_NAME = 3
"""Words between "write to" and a name: "to my colleague Ann"."""

_SENTENCE_END = Late(
    r"(?<!\bMr)(?<!\bMrs)(?<!\bDr)(?<!\bMs)(?<!\bSt)(?<!\bno)(?<!\bNo)(?<!\b[A-Z])\.(?=\s|\Z)|[!?;。！？；]|(?<![:,])\n"
)
_NEGATION = Late(lexicon.NEGATIONS, re.IGNORECASE)
_CHINESE_NEGATION = Late(lexicon.CHINESE_NEGATIONS)
_CLAUSE_END = Late(lexicon.CLAUSE_ENDS, re.IGNORECASE)
_CHINESE_CLAUSE_END = Late(rf"[，,。；;！!？?\n]|{lexicon.CLAUSE_ENDS}", re.IGNORECASE)
_EXCLUSION = Late(lexicon.EXCLUSIONS, re.IGNORECASE)
_REVERSED = Late(lexicon.REVERSED_BEFORE, re.IGNORECASE)
_MUST_NOT_GET = Late(lexicon.MUST_NOT_GET, re.IGNORECASE)
_ENDS_AT_COMMA = Late(lexicon.EXCLUSION_ENDS, re.IGNORECASE)
_NO_REQUEST = Late(lexicon.NO_REQUESTS, re.IGNORECASE)
_LINK = Late(rf"{lexicon.CLAUSE_LINKS}(?=([A-Za-z]+))", re.IGNORECASE)
_EXCEPTION = Late(lexicon.EXCEPTIONS, re.IGNORECASE)
_ONLY = Late(lexicon.ONLY, re.IGNORECASE)
_AT_MOST = Late(lexicon.AT_MOST + lexicon.SUM, re.IGNORECASE)
_MORE_THAN = Late(lexicon.MORE_THAN + lexicon.SUM, re.IGNORECASE)
_PER_PART = Late(lexicon.PER_PART, re.IGNORECASE)
_PART_BEFORE = Late(lexicon.PART_BEFORE, re.IGNORECASE)
_WORD = Late(r"[A-Za-z]+(?:['’][A-Za-z]+)?")
_LAST_WORD = Late(r"([A-Za-z]+)['’\w]*\s*\Z")
_CAN_DESCRIBE = Late(r"can|do|never|must|should|may|shall|will|won", re.IGNORECASE)

_FILLERS = frozenset(lexicon.NEGATION_FILLERS.split())
_WRITE_TO = Late(lexicon.WRITE_TO, re.IGNORECASE)
_NOT_NEGATED = stems(lexicon.NOT_NEGATED)
_DESCRIBED_BY = frozenset(lexicon.DESCRIBED_BY.split())
_ASKED_BY = frozenset(lexicon.ASKED_BY.split())
_NEEDLESS = frozenset(lexicon.NEEDLESS.split())
_WHATEVER = stems(lexicon.WHATEVER_ACTION)


_Draft = tuple[ConstraintType, tuple[int, int], Condition, int]
"""A constraint before it has its number: its type, where its words stand, when it applies, its priority."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the words forbid and limit.

    `negated` are the places that ask for nothing, `cut` those of them that prove no value, as start and end.
    """

    constraints: tuple[SecurityConstraint, ...]
    negated: tuple[tuple[int, int], ...]
    cut: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class _Clause:
    """What a negation covers; `after` is where it ends itself.

    `is_order` is false where it only tells of something, or says what need not be.
    """

    start: int
    after: int
    end: int
    effects: tuple[Effect | None, ...]
    is_order: bool


def rules(text: str, things: Sequence[Named], plain: str) -> Rules:
    """What a text orders not to do. Values, quotes and files of `plain` are masked in `text`; `things` it names."""
    ends = [m.start() for m in _SENTENCE_END.finditer(text)] + [len(text)]
    starts = [thing.start for thing in things]
    drafts: list[_Draft] = []
    negated: list[tuple[int, int]] = []
    cut: list[tuple[int, int]] = []
    for clause in sorted([*_clauses(text, ends), *_chinese_clauses(text)], key=lambda one: one.start):
        said = (clause.start, clause.end)
        if over := _MORE_THAN.search(text, clause.start, clause.end):
            drafts += _limit(text, over, clause.end)
            continue
        negated.append((clause.start, clause.end))
        if not clause.is_order:
            continue
        if excepted := _EXCEPTION.search(text, clause.start, clause.end):
            allowed = _texts(things, starts, excepted.end(), clause.end)
            first = clause.effects[0]
            if allowed and first is not None:
                drafts.append(("allow", said, Condition(effect=first, allowed_targets=allowed), LIMIT_PRIORITY))
            continue
        cut.append((clause.start, clause.end))
        if targets := _texts(things, starts, clause.after, clause.end):
            effects = clause.effects
            if "communicate" not in effects and _writes_to(text, things, starts, clause.after, clause.end):
                effects = (*effects, "communicate")
            for effect in effects:
                condition = Condition(effect=effect, forbidden_targets=targets)
                drafts.append(("forbid", said, condition, FORBID_PRIORITY))
    for start, end, targets in _excluded(text, ends, things, starts, negated):
        cut.append((start, end))
        whole = _sentence(ends, start)
        asked = effects_in(text[whole[0] : start]) | effects_in(text[end : whole[1]])
        for effect in _ordered(asked - {"read"}) or (None,):
            condition = Condition(effect=effect, forbidden_targets=targets)
            drafts.append(("forbid", (start, end), condition, FORBID_PRIORITY))
    negated = sorted({*negated, *cut})
    cut.sort()
    drafts += _only(text, ends, things, starts, negated)
    for m in _AT_MOST.finditer(text):
        drafts += _limit(text, m, ends[bisect_left(ends, m.end())])
    return Rules(
        tuple(
            SecurityConstraint(f"words-{n}", kind, f"the user's words: {_said(plain, said)}", condition, priority)
            for n, (kind, said, condition, priority) in enumerate(drafts, 1)
        ),
        tuple(sorted([*negated, *(m.span() for m in _NO_REQUEST.finditer(text))])),
        tuple(cut),
    )


def _said(plain: str, span: tuple[int, int]) -> str:
    """Words as a person reads them: on one line, at most 200 characters."""
    return " ".join(plain[span[0] : span[1]].split())[:200]


def _sentence(ends: Sequence[int], place: int) -> tuple[int, int]:
    """Where the sentence begins and ends in which a place is."""
    at = bisect_left(ends, place)
    return (ends[at - 1] + 1 if at else 0), ends[at]


def _excluded(
    text: str,
    ends: Sequence[int],
    things: Sequence[Named],
    starts: Sequence[int],
    negated: Sequence[tuple[int, int]],
) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """What is left out of what is asked for: "all but not Ann", "instead of X", "leave X out", "X must not get it"."""
    last = 0
    for m in _EXCLUSION.finditer(text):
        start, end = _sentence(ends, m.end())
        is_told = any(first < m.end() and m.start() < until for first, until in negated)
        if m.start() < last or is_told or _REVERSED.search(text, start, m.start()):
            continue
        if m[0][:3].lower() == "not" and not m[0].lower().startswith("nothing"):
            at = bisect_left(starts, m.end())
            if at == len(starts) or text[m.end() : starts[at]].strip(" \"'“「`"):
                continue  # "not" alone leaves out only what stands right behind it
        stop = _CHINESE_CLAUSE_END if _ENDS_AT_COMMA.match(m[0]) else _CLAUSE_END
        found = stop.search(text, m.end(), end)
        last = _end_of_clause(text, m.end(), found.start() if found else end)
        if targets := _texts(things, starts, m.end(), last):
            yield m.start(), last, targets
    for m in _MUST_NOT_GET.finditer(text):
        at = bisect_left(starts, m.start()) - 1
        if at >= 0 and things[at].end <= m.start() and not text[things[at].end : m.start()].strip(" \"'”」`"):
            yield things[at].start, things[at].end, (things[at].entity.text,)


def _writes_to(text: str, things: Sequence[Named], starts: Sequence[int], start: int, end: int) -> bool:
    """Whether what is ordered between two places may be a message: "write (a line) to Ann", "to my colleague Ann".

    What is written to a file or a page is none. This is wide, and only for what is not to be done.
    """
    for m in _WRITE_TO.finditer(text, start, end):
        at = bisect_left(starts, m.end())
        if at == len(starts) or starts[at] >= end or len(text[m.end() : starts[at]].split()) > _MOST_BEFORE_NAME:
            continue
        kinds: list[EntityKind] = [thing.entity.kind for thing in things[at : bisect_right(starts, starts[at])]]
        if lexicon.WRITTEN_TO.issuperset(kinds):  # what stands in quotes may be called a file, too
            return True
    return False


def _texts(things: Sequence[Named], starts: Sequence[int], start: int, end: int) -> tuple[str, ...]:
    """What is named between two places, each once."""
    inside = things[bisect_left(starts, start) : bisect_left(starts, end)]
    return tuple(dict.fromkeys(thing.entity.text for thing in inside))


def _clauses(text: str, ends: Sequence[int]) -> Iterator[_Clause]:
    found = list(_NEGATION.finditer(text))
    for m, following in zip(found, [*found[1:], None], strict=False):
        before = _LAST_WORD.search(text, max(0, m.start() - 24), m.start())
        prior = before[1].lower() if before else ""
        if prior in _ASKED_BY:
            continue
        limit = ends[bisect_left(ends, m.end())]
        if following is not None:
            limit = min(limit, following.start())
        negates = _negates(text, m.end(), limit)
        if negates is None:
            continue
        effects, at, needs_not, is_wanted = negates
        is_told = prior in _DESCRIBED_BY and _CAN_DESCRIBE.match(m[0]) is not None and not is_wanted
        end = _end_of_clause(text, at, limit)
        effects |= _joined(text, at, end)
        if effects & {"write", "communicate"} and speaks_of_money(text[m.end() : end]):
            effects |= TRANSACT
        ordered = _ordered(effects) or (None,)
        yield _Clause(m.start(), m.end(), end, ordered, not (is_told or needs_not))


def _negates(text: str, start: int, end: int) -> tuple[frozenset[Effect], int, bool, bool] | None:
    """What the negation before `start` negates; None if no action word follows.

    Effects (none: whatever is done), the end of that word, whether it is only needless, whether "want" stands there.
    """
    is_light = needs_not = is_wanted = False
    words = [m for m, _ in zip(_WORD.finditer(text, start, end), range(_MOST_FILLERS), strict=False)]
    for m, then in zip(words, [*words[1:], None], strict=False):
        word = m[0].lower()
        if stem(word) in _NOT_NEGATED:
            return None
        if word in _NEEDLESS and (then is not None and then[0].lower() == "to"):
            needs_not = True
        elif effects := phrases_at(text, m.start()):
            return effects | of_word(word), m.end(), needs_not, is_wanted
        elif is_light and (effects := of_noun(word)):
            return effects, m.end(), needs_not, is_wanted
        elif word in _FILLERS:
            is_light = is_light or stem(word) in LIGHT
            is_wanted = is_wanted or word in ("want", "wish")
        elif stem(word) in _WHATEVER:
            return frozenset(), m.end(), needs_not, is_wanted
        elif effects := of_word(word):
            return effects, m.end(), needs_not, is_wanted
        else:
            return None
    return None


def _end_of_clause(text: str, start: int, limit: int) -> int:
    """Where the clause of a negation ends whose action word ends at `start`; what it excepts belongs to it."""
    end = _CLAUSE_END.search(text, start, limit)
    excepted = _EXCEPTION.search(text, start, limit)
    if excepted is not None and (end is None or excepted.start() <= end.start()):
        start = excepted.end()
        end = _CLAUSE_END.search(text, start, limit)
    last = end.start() if end else limit
    for m in _LINK.finditer(text, start, last):
        if not m[1].lower().endswith("s") and of_word(m[1]):
            return m.start()
    return last


def _ordered(effects: frozenset[Effect]) -> tuple[Effect, ...]:
    return tuple(effect for effect in EFFECTS if effect in effects)


def _joined(text: str, start: int, end: int) -> frozenset[Effect]:
    """The effects of action words that "or" joins to the first."""
    found: set[Effect] = set()
    for m in re.finditer(r"\b(?:n?or)\s+([A-Za-z]+)", text[start:end], re.IGNORECASE):
        found |= of_word(m[1])
    return frozenset(found)


def _chinese_clauses(text: str) -> Iterator[_Clause]:
    turned = lexicon.CHINESE_NOT_NEGATED.split()
    last = 0
    for m in _CHINESE_NEGATION.finditer(text):
        if m.start() < last:
            continue
        end = _CHINESE_CLAUSE_END.search(text, m.end())
        last = end.start() if end else len(text)
        if text.startswith(tuple(turned), m.end()):
            continue
        effects = effects_in(text[m.end() : last])
        if effects:
            yield _Clause(m.start(), m.end(), last, _ordered(effects), m[0] not in lexicon.CHINESE_NEEDLESS.split())


def _only(
    text: str,
    ends: Sequence[int],
    things: Sequence[Named],
    starts: Sequence[int],
    negated: Sequence[tuple[int, int]],
) -> Iterator[_Draft]:
    """What is the only target: "pay only X", "only send it to X", "只发给 X"."""
    for m in _ONLY.finditer(text):
        prior = bisect_right(negated, (m.start(), len(text))) - 1
        if prior >= 0 and m.start() < negated[prior][1]:
            continue
        at = bisect_right(ends, m.start())
        begin = max(ends[at - 1] + 1 if at else 0, m.start() - 80)
        stop = _CHINESE_CLAUSE_END if m[0][0] in "只仅唯" else _CLAUSE_END
        end = stop.search(text, m.end(), ends[at])
        last = _end_of_clause(text, m.end(), end.start() if end else ends[at])
        after = _acts(text, m.end(), min(last, m.end() + 40))
        before = _acts(text, begin, m.start())
        is_next = bool(after) and not text[m.end() : after[0][0]].strip()  # "only send", not "only the mail"
        acts = after[:1] if is_next or not before else before[-1:]
        if not acts or not (effects := acts[0][1] - {"read"}):
            continue
        where = acts[0][0]
        if targets := _texts(things, starts, min(where, m.start()), last):
            if speaks_of_money(text[begin:last]) and effects & {"write", "communicate"}:
                effects |= TRANSACT
            first = _ordered(effects)[0]
            said = (min(where, m.start()), last)
            yield "allow", said, Condition(effect=first, allowed_targets=targets), LIMIT_PRIORITY


def _acts(text: str, start: int, end: int) -> list[tuple[int, frozenset[Effect]]]:
    """The action words between two places, with where they stand."""
    words = _WORD.finditer(text, start, end)
    found = [(m.start(), effects) for m in words if (effects := of_word(m[0]))]
    if not found and not text[start:end].isascii() and (effects := effects_in(text[start:end])):
        found.append((start, effects))
    return found


def _limit(text: str, m: re.Match[str], end: int) -> list[_Draft]:
    """The limit that a sum of money sets; a plain number, or a sum for a part, sets none."""
    currency = m["sign"] or m["unit"]
    if (
        not currency
        or _PER_PART.search(text, m.end(), end)
        or _PART_BEFORE.search(text[max(0, m.start() - 48) : m.start()])
    ):
        return []
    amount = float(number(m["sum"]))
    condition = Condition(effect="transact", max_amount=amount, currency=currency)
    return [("forbid", m.span(), condition, LIMIT_PRIORITY)]
