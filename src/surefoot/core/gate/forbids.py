"""What a user's words forbid and limit: "don't send it to X", "only X", "at most 50 dollars".

A negation covers its clause: from it to the end of the sentence, or to a word that turns ("but", "instead"), or to a
comma or an "and" before another action word. What it covers asks for nothing; if it names somebody, that is a forbid,
and the clause proves no value. Source: spec/guard.md, section 5.1.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from surefoot.core.gate.effects import EFFECTS, TRANSACT, effects_in, of_noun, of_word, phrases_at, speaks_of_money
from surefoot.core.text.numerals import number
from surefoot.core.text.words import late, phrase, stem, stems_of, word_set, words
from surefoot.types.dataclass import dataclass
from surefoot.types.guard import Condition, ConstraintType, Entity, SecurityConstraint
from surefoot.types.tools import Effect

FORBID_PRIORITY = 1
LIMIT_PRIORITY = 3
MOST_RULES = 500
"""Signs of one kind of rule that are looked at, such as "do not"; of words with more, each effect is a question."""

SENTENCE_END = late(
    r"\.(?=\s|\Z)(?<!\bMr.)(?<!\bMrs.)(?<!\bDr.)(?<!\bMs.)(?<!\bSt.)(?<!\bno.)(?<!\bNo.)(?<!\b[A-Z].)"
    r"|[!?;。！？；]|\n(?<![:,]\n)\n*"
)
_NEGATION = late("{negations}", re.IGNORECASE)
_CHINESE_NEGATION = late("{cjk_negations}")
_CLAUSE_END = late("{clause_ends}", re.IGNORECASE)
_CHINESE_CLAUSE_END = late(r"[，,。；;！!？?\n]|{clause_ends}", re.IGNORECASE)
_EXCLUSION = late("{exclusions}", re.IGNORECASE)
_MUST_NOT_GET = late("{must_not_get}", re.IGNORECASE)
_NO_REQUEST = late("{no_requests}", re.IGNORECASE)
_LINK = late(r"{clause_links}(?=([A-Za-z]+))", re.IGNORECASE)
_JOINED = late(r"\b(?:n?or)\s+([A-Za-z]+)", re.IGNORECASE)
_ONLY = late("{only}", re.IGNORECASE)
_AT_MOST = late(r"(?:{at_most})\s*{sum}", re.IGNORECASE)
_MORE_THAN = late(r"(?:{more_than})\s*{sum}", re.IGNORECASE)
_PART_BEFORE = late(r"(?:{part_before})\s*\Z", re.IGNORECASE)
_WORD = late(r"[A-Za-z]+(?:['’][A-Za-z]+)?")
_LAST_WORD = late(r"([A-Za-z]+)['’\w]*\s*\Z")
_CAN_DESCRIBE = late(r"can|do|never|must|should|may|shall|will|won", re.IGNORECASE)

_SIGNS = (_NEGATION, _CHINESE_NEGATION, _EXCLUSION, _MUST_NOT_GET, _ONLY, _AT_MOST, _NO_REQUEST)

Span = tuple[int, int]
_Draft = tuple[ConstraintType, Span, Condition, int]
"""A constraint before it has its number: its type, where its words stand, when it applies, its priority."""


@dataclass(frozen=True, slots=True)
class Named:
    """A thing that the words name, and where in them it stands."""

    entity: Entity
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Rules:
    """What the words forbid and limit. `negated` are the places that ask for nothing, `cut` what proves no value."""

    constraints: tuple[SecurityConstraint, ...]
    negated: tuple[Span, ...]
    cut: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class _Clause:
    """What a negation, which ends at `after`, covers. `is_order` is false where it only tells of something."""

    start: int
    after: int
    end: int
    effects: tuple[Effect | None, ...]
    is_order: bool


@dataclass(frozen=True, slots=True)
class _Words:
    """The words, with the places where things are named, where sentences end, and where rules may begin."""

    text: str
    things: Sequence[Named]
    starts: Sequence[int]
    ends: Sequence[int]
    signs: Mapping[re.Pattern[str], Sequence[re.Match[str]]]

    def targets(self, start: int, end: int) -> tuple[str, ...]:
        """What is named between two places, each once."""
        inside = self.things[bisect_left(self.starts, start) : bisect_left(self.starts, end)]
        return tuple(dict.fromkeys(thing.entity.text for thing in inside))

    def sentence(self, place: int) -> Span:
        """Where the sentence begins and ends in which a place is."""
        at = bisect_left(self.ends, place)
        return (self.ends[at - 1] + 1 if at else 0), self.ends[at]


def read_rules(text: str, things: Sequence[Named], plain: str, *, is_whole: bool = True) -> Rules:
    """What a text orders not to do. Values, quotes and files of `plain` are masked in `text`; `things` it names.

    What is not read may forbid anything: where it is not the whole, or holds too many rules, each effect is a question.
    """
    ends = [m.start() for m in SENTENCE_END.finditer(text)] + [len(text)]
    signs = {pattern: tuple(islice(pattern.finditer(text), MOST_RULES)) for pattern in _SIGNS}
    said = _Words(text, things, [thing.start for thing in things], ends, signs)
    drafts: list[_Draft] = []
    negated: list[Span] = []
    cut: list[Span] = []
    for clause in sorted([*_clauses(said), *_chinese_clauses(said)], key=lambda one: one.start):
        span = (clause.start, clause.end)
        if over := _MORE_THAN.search(text, *span):
            drafts += _limit(text, over, clause.end)
            continue
        negated.append(span)
        if not clause.is_order:
            continue
        if excepted := phrase("exceptions").search(text, *span):
            allowed, first = said.targets(excepted.end(), clause.end), clause.effects[0]
            if allowed and first is not None:
                drafts.append(("allow", span, Condition(effect=first, allowed_targets=allowed), LIMIT_PRIORITY))
            continue
        cut.append(span)
        if targets := said.targets(clause.after, clause.end):
            effects = clause.effects
            if "communicate" not in effects and _writes_to(said, clause.after, clause.end):
                effects = (*effects, "communicate")
            drafts += _forbid(span, effects, targets)
    asked_beside: dict[Span, frozenset[Effect]] = {}  # of several in one sentence, what the first stands beside
    for start, end, targets in _excluded(said, negated):
        cut.append((start, end))
        whole = said.sentence(start)
        if whole not in asked_beside:
            asked_beside[whole] = effects_in(text[whole[0] : start]) | effects_in(text[end : whole[1]])
        asked = asked_beside[whole]
        drafts += _forbid((start, end), _ordered(asked - {"read"}) or (None,), targets)
    negated = sorted({*negated, *cut})
    drafts += _only(said, negated)
    for m in signs[_AT_MOST]:
        drafts += _limit(text, m, ends[bisect_left(ends, m.end())])
    constraints = tuple(
        SecurityConstraint(
            f"words-{n}", kind, f"the user's words: {' '.join(plain[slice(*span)].split())[:200]}", condition, priority
        )
        for n, (kind, span, condition, priority) in enumerate(drafts, 1)
    )
    if not is_whole or any(len(found) == MOST_RULES for found in signs.values()):
        unread = "your words are too long to be read whole, and what was not read may forbid it"
        constraints += tuple(
            SecurityConstraint(f"unread-{one}", "require_confirmation", unread, Condition(effect=one), FORBID_PRIORITY)
            for one in EFFECTS
            if one != "read"
        )
    unasked = sorted([*negated, *(m.span() for m in signs[_NO_REQUEST])])
    return Rules(constraints, tuple(unasked), tuple(sorted(cut)))


def _forbid(span: Span, effects: Sequence[Effect | None], targets: tuple[str, ...]) -> list[_Draft]:
    return [("forbid", span, Condition(effect=e, forbidden_targets=targets), FORBID_PRIORITY) for e in effects]


def _excluded(said: _Words, negated: Sequence[Span]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """What is left out of what is asked for: "all but not Ann", "instead of X", "leave X out", "X must not get it"."""
    text, starts, last = said.text, said.starts, 0
    told = bytearray(len(text))
    for first, until in negated:
        told[first:until] = b"\1" * (until - first)
    for m in said.signs[_EXCLUSION]:
        start, end = said.sentence(m.end())
        near = max(start, m.start() - 400)
        if m.start() < last or 1 in told[slice(*m.span())] or phrase("reversed_before").search(text, near, m.start()):
            continue
        if m[0][:3].lower() == "not" and not m[0].lower().startswith("nothing"):
            at = bisect_left(starts, m.end())
            if at == len(starts) or text[m.end() : starts[at]].strip(" \"'“「`"):
                continue  # "not" alone leaves out only what stands right behind it
        stop = _CHINESE_CLAUSE_END if phrase("exclusion_ends").match(m[0]) else _CLAUSE_END
        found = stop.search(text, m.end(), end)
        last = _end_of_clause(text, m.end(), found.start() if found else end)
        if targets := said.targets(m.end(), last):
            yield m.start(), last, targets
    for m in said.signs[_MUST_NOT_GET]:
        at = bisect_left(starts, m.start()) - 1
        thing = said.things[at] if at >= 0 else None
        if thing is not None and thing.end <= m.start() and not text[thing.end : m.start()].strip(" \"'”」`"):
            yield thing.start, thing.end, (thing.entity.text,)


def _writes_to(said: _Words, start: int, end: int) -> bool:
    """Whether what is ordered between two places may be a message: "write (a line) to Ann", "to my colleague Ann".

    What is written to a file or a page is none. This is wide, and only for what is not to be done.
    """
    starts = said.starts
    for m in phrase("write_to").finditer(said.text, start, end):
        at = bisect_left(starts, m.end())
        if at == len(starts) or starts[at] >= end:
            continue
        named = {thing.entity.kind for thing in said.things[at : bisect_right(starts, starts[at])]}
        is_near = len(said.text[m.end() : starts[at]].split()) <= 3  # noqa: PLR2004  # "to my colleague Ann"
        if is_near and named <= {"email", "phone", "name", "quoted"}:  # in quotes may stand a file, too
            return True
    return False


def _clauses(said: _Words) -> Iterator[_Clause]:
    text = said.text
    found = said.signs[_NEGATION]
    for m, following in zip(found, [*found[1:], None], strict=False):
        before = _LAST_WORD.search(text, max(0, m.start() - 24), m.start())
        prior = before[1].lower() if before else ""
        if prior in word_set("asked_by"):
            continue
        limit = said.ends[bisect_left(said.ends, m.end())]
        if following is not None:
            limit = min(limit, following.start())
        negates = _negates(text, m.end(), limit)
        if negates is None:
            continue
        effects, at, needs_not, is_wanted = negates
        is_told = prior in word_set("described_by") and _CAN_DESCRIBE.match(m[0]) is not None and not is_wanted
        end = _end_of_clause(text, at, limit)
        effects = effects.union(*(of_word(joined[1]) for joined in _JOINED.finditer(text[at:end])))
        if effects & {"write", "communicate"} and speaks_of_money(text[m.end() : end]):
            effects |= TRANSACT
        yield _Clause(m.start(), m.end(), end, _ordered(effects) or (None,), not (is_told or needs_not))


def _negates(text: str, start: int, end: int) -> tuple[frozenset[Effect], int, bool, bool] | None:
    """What the negation before `start` negates; None if no action word follows.

    Effects (none: whatever is done), the end of that word, whether it is only needless, whether "want" stands there.
    """
    is_light = needs_not = is_wanted = False
    following = list(islice(_WORD.finditer(text, start, end), 12))
    for m, then in zip(following, [*following[1:], None], strict=False):
        word = m[0].lower()
        if stem(word) in stems_of("not_negated"):
            return None
        if word in word_set("needless") and (then is not None and then[0].lower() == "to"):
            needs_not = True
        elif effects := phrases_at(text, m.start()):
            return effects | of_word(word), m.end(), needs_not, is_wanted
        elif is_light and (effects := of_noun(word)):
            return effects, m.end(), needs_not, is_wanted
        elif word in word_set("negation_fillers"):
            is_light = is_light or stem(word) in stems_of("light_verbs")
            is_wanted = is_wanted or word in ("want", "wish")
        elif stem(word) in stems_of("whatever_action"):
            return frozenset(), m.end(), needs_not, is_wanted
        else:
            effects = of_word(word)
            return (effects, m.end(), needs_not, is_wanted) if effects else None
    return None


def _end_of_clause(text: str, start: int, limit: int) -> int:
    """Where the clause of a negation ends whose action word ends at `start`; what it excepts belongs to it."""
    end = _CLAUSE_END.search(text, start, limit)
    excepted = phrase("exceptions").search(text, start, limit)
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


def _chinese_clauses(said: _Words) -> Iterator[_Clause]:
    text, last = said.text, 0
    for m in said.signs[_CHINESE_NEGATION]:
        if m.start() < last:
            continue
        end = _CHINESE_CLAUSE_END.search(text, m.end())
        last = end.start() if end else len(text)
        if not text.startswith(words("cjk_not_negated"), m.end()) and (effects := effects_in(text[m.end() : last])):
            yield _Clause(m.start(), m.end(), last, _ordered(effects), m[0] not in words("cjk_needless"))


def _only(said: _Words, negated: Sequence[Span]) -> Iterator[_Draft]:
    """What is the only target: "pay only X", "only send it to X", "只发给 X"."""
    text, ends = said.text, said.ends
    for m in said.signs[_ONLY]:
        prior = bisect_right(negated, (m.start(), len(text))) - 1
        if prior >= 0 and m.start() < negated[prior][1]:
            continue
        at = bisect_right(ends, m.start())
        begin = max(ends[at - 1] + 1 if at else 0, m.start() - 80)
        stop = _CHINESE_CLAUSE_END if m[0][0] in "只仅唯" else _CLAUSE_END
        until = min(ends[at], m.end() + 1_000)
        end = stop.search(text, m.end(), until)
        last = _end_of_clause(text, m.end(), end.start() if end else until)
        after = _acts(text, m.end(), min(last, m.end() + 40))
        before = _acts(text, begin, m.start())
        is_next = bool(after) and not text[m.end() : after[0][0]].strip()  # "only send", not "only the mail"
        acts = after[:1] if is_next or not before else before[-1:]
        if not acts or not (effects := acts[0][1] - {"read"}):
            continue
        where = min(acts[0][0], m.start())
        if targets := said.targets(where, last):
            if speaks_of_money(text[begin:last]) and effects & {"write", "communicate"}:
                effects |= TRANSACT
            condition = Condition(effect=_ordered(effects)[0], allowed_targets=targets)
            yield "allow", (where, last), condition, LIMIT_PRIORITY


def _acts(text: str, start: int, end: int) -> list[tuple[int, frozenset[Effect]]]:
    """The action words between two places, with where they stand."""
    found = [(m.start(), effects) for m in _WORD.finditer(text, start, end) if (effects := of_word(m[0]))]
    if not found and not text[start:end].isascii() and (effects := effects_in(text[start:end])):
        found.append((start, effects))
    return found


def _limit(text: str, m: re.Match[str], end: int) -> list[_Draft]:
    """The limit that a sum sets; one for a part, and a number of things, set none.

    Without a currency it bounds every amount. Where it may be no money at all, what passes it is a question.
    """
    currency, before = m["sign"] or m["unit"], text[max(0, m.start() - 96) : m.start()]
    is_money = bool(currency or phrase("in_all").match(text, m.end()))
    may_be_things = not phrase("ends_sum").match(text, m.end()) or phrase("counts_things", is_last=True).search(before)
    if not is_money and may_be_things:
        return []
    if _PART_BEFORE.search(before[-48:]) or phrase("per_part").search(text, m.end(), min(end, m.end() + 200)):
        return []
    condition = Condition(effect="transact", max_amount=float(number(m["sum"])), currency=currency)
    is_money = is_money or phrase("spends", is_last=True).search(before) is not None
    return [("forbid" if is_money else "require_confirmation", m.span(), condition, LIMIT_PRIORITY)]
