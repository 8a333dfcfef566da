"""The clauses of the user's words, each with its verb and what that may do. Source: spec/guard.md, section 9."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from surefoot.core.gate.effects import (
    CHINESE_ACTIONS,
    TRANSACT,
    is_base_form,
    of_noun,
    of_word,
    phrases_at,
    speaks_of_money,
)
from surefoot.core.gate.forbids import SENTENCE_END, Span
from surefoot.core.text.look import normal_text
from surefoot.core.text.words import late, phrase, rows, stem, stems_of, word_set
from surefoot.types.guard import Clause
from surefoot.types.tools import Effect

_Begun = tuple[int, str, frozenset[Effect | None]]
"""Where a clause begins, its verb, and what that may do; None is to leave something as it is."""

MOST_CLAUSES = 400
"""Clauses of the words that are read; a value in what stands behind them has no slot."""

_TOKEN = late(
    r"[A-Za-z]+(?:['’][A-Za-z]+)?|\ufffc+|[,;:，；：\n]|{joints}|{cjk_keepers|}|"
    + "|".join(f"{{cjk_actions.{effect}|}}" for effect in CHINESE_ACTIONS)
)


def clauses_of(plain: str, masked: str, cut: Sequence[Span]) -> tuple[Clause, ...]:
    """The clauses of a text that says what to do, without what is `cut` out of it; values are `masked`.

    A sentence without a verb has none, unless it is an item of a list: then it has that of the sentence before.
    """
    found: list[Clause] = []
    left = sorted(cut, reverse=True)
    start, verb, effects = 0, "", frozenset[Effect | None]()
    for end in [*(m.end() for m in SENTENCE_END.finditer(masked)), len(masked)]:
        if masked[start:end].isspace():
            start = end
            continue
        begun = _clause_starts(masked, start, end)[:MOST_CLAUSES]
        if not begun and not late(r"[^\S\n]*(?:[-*•–]|\d{1,3}[.)])\s").match(masked, start):
            verb, effects = "", frozenset[Effect | None]()
        first = (start, *begun[0][1:]) if begun else (start, verb, effects)
        for (at, verb, effects), until in zip([first, *begun[1:]], [*(one[0] for one in begun[1:]), end], strict=True):
            while left and left[-1][1] <= at:
                left.pop()
            said = normal_text("".join(plain[a:b] for a, b in _without(at, until, left)))
            if said:
                money = TRANSACT if speaks_of_money(masked[at:until]) else frozenset[Effect]()
                found.append(Clause(said, verb, cast("frozenset[Effect]", (effects - {None}) | money)))  # None is out
        start = end
        if len(found) > MOST_CLAUSES:
            break
    return tuple(found[:MOST_CLAUSES])


def _without(start: int, end: int, cut: Sequence[Span]) -> Iterator[Span]:
    """The places between two that are not cut; of the cuts the last comes first, and none ends before."""
    for first, last in reversed(cut):
        if first >= end:
            break
        yield start, max(start, first)
        start = max(start, min(end, last))
    yield start, end


def _clause_starts(text: str, start: int, end: int) -> list[_Begun]:
    """Where the clauses of a sentence begin, with the verb of each and what it may do."""
    found: list[_Begun] = []
    before = last = ""
    joint, comma = start, start  # the joint with nothing but fillers behind it, -1: none; the last of all
    for m in _TOKEN.finditer(text, start, end):
        word = m[0].lower()
        if word in word_set("joint_words") or (not word[0].isalpha() and word[0] != "\ufffc"):
            joint = m.start() if joint < 0 else joint
            before, last, comma = last, ",", m.start()
            continue
        if not word.isascii() and word[0] != "\ufffc":
            effects = frozenset[Effect | None](
                effect for effect, pattern in CHINESE_ACTIONS.items() if pattern.match(text, m.start())
            )
            if not found or found[-1][0] < comma:
                found.append((comma, m[0], effects))
        elif effects := _done_by(text, m.start(), word, before, last):
            found.append((joint if joint >= 0 else m.start(), stem(word), effects))
        elif stem(word) in stems_of("keepers_behind") and not (last == "to" and before in word_set("before_lodging")):
            found.append((comma, stem(word), frozenset((None,))))
        if word not in word_set("clause_fillers"):
            joint = -1
        before, last = last, word
    return found


def _done_by(text: str, at: int, word: str, before: str, last: str) -> frozenset[Effect | None]:
    """What a word orders where it stands, None for to leave something alone; nothing if it is not a verb there."""
    if last in word_set("determiners") or (last in word_set("adjectives") and before in word_set("determiners")):
        return frozenset()
    is_ing = word.endswith("ing")
    if not is_ing and (last in word_set("sides.to") | word_set("sides.from") | word_set("sides.out")) and last != "to":
        return frozenset()
    if effects := phrases_at(text, at):
        return effects | of_word(word)
    if phrase("write_to").match(text, at):
        return frozenset(("write", "communicate"))
    behind = at + len(word)
    if stem(word) in stems_of("keepers"):  # "leave a note" is written
        return frozenset(("write", "communicate") if late(r"\s+{kept_nouns}").match(text, behind) else (None,))
    if late(r"-[^\W\d_]").match(text, behind):  # "check-up", "follow-up"
        return frozenset()
    if stem(last) in stems_of("light_verbs") and (effects := of_noun(word)):
        return effects
    if stem(last) in rows("actions") and is_base_form(last) and not is_ing:
        return frozenset()
    return of_word(word) if is_ing or is_base_form(word) else frozenset()
