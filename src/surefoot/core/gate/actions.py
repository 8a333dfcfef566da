"""What a word that means doing something stands for. Source: spec/guard.md, sections 4.3 and 5.2."""

from __future__ import annotations

import re
from collections.abc import Mapping

from surefoot.core.gate import lexicon
from surefoot.core.gate.late import Late
from surefoot.core.gate.stems import stem, stems
from surefoot.types.tools import Effect

EFFECTS: tuple[Effect, ...] = ("read", "delete", "transact", "communicate", "write")
"""The effects, in the order in which they are tried for one word."""

TRANSACT: frozenset[Effect] = frozenset({"transact"})

LIGHT = stems(lexicon.LIGHT_VERBS)
MONEY = stems(lexicon.MONEY_NOUNS)
PEOPLE = stems(lexicon.PEOPLE_NOUNS)

_SAID_MONEY = MONEY - stems(lexicon.NOT_MONEY_IN_WORDS)
_BY_NAME: Mapping[Effect, frozenset[str]] = {
    e: stems(lexicon.ACTION_WORDS[e]) | stems(lexicon.NAME_WORDS.get(e, "")) for e in EFFECTS
}
_BY_WORD: Mapping[Effect, frozenset[str]] = {e: stems(lexicon.ACTION_WORDS[e]) for e in EFFECTS}
_BY_NOUN: Mapping[Effect, frozenset[str]] = {e: stems(lexicon.ACTION_NOUNS[e]) for e in lexicon.ACTION_NOUNS}
_CHINESE: Mapping[Effect, Late] = {
    e: Late("|".join([*lexicon.CHINESE_ACTIONS[e].split(), *lexicon.CHINESE_PHRASES.get(e, ())])) for e in EFFECTS
}
_CHINESE_MONEY = Late("|".join(lexicon.CHINESE_MONEY.split()))
_PHRASES: Mapping[Effect, Late] = {
    e: Late(rf"\b(?:{'|'.join(p)})(?!\w)", re.IGNORECASE) for e, p in lexicon.PHRASES.items()
}
_SUM = Late(lexicon.CURRENCY_AMOUNT, re.IGNORECASE)
_ENGLISH = Late(r"[A-Za-z]+(?:['’][A-Za-z]+)?")
_CJK = Late(r"[\u3400-\u9fff]")
_SET_PHRASE = Late(r"\b(e)-(?=mail)|\bin\s+order\s+(?=to\b|that\b)", re.IGNORECASE)
_NEAR = 4
"""How many words after a light verb its noun is looked for."""


def of_word(word: str) -> frozenset[Effect]:
    """The effects that an English word of a sentence may stand for."""
    key = stem(word)
    return frozenset(effect for effect in EFFECTS if key in _BY_WORD[effect])


def of_noun(word: str) -> frozenset[Effect]:
    """The effects of a light verb with this noun: "make a reservation", "make payments"."""
    key = stem(word)
    found: set[Effect] = {effect for effect in EFFECTS if key in _BY_NOUN.get(effect, ())}
    if key in _SAID_MONEY:
        found.add("transact")
    return frozenset(found)


def of_name_word(word: str) -> Effect | None:
    """The one class to which a word of a tool's name belongs."""
    key = stem(word)
    for effect in EFFECTS:
        if key in _BY_NAME[effect] or (_CJK.search(word) and _CHINESE[effect].search(word)):
            return effect
    return None


def is_money_name(word: str) -> bool:
    """Whether a word of a tool's name is about money."""
    return stem(word) in MONEY or _CHINESE_MONEY.search(word) is not None


def speaks_of_money(text: str) -> bool:
    """Whether a text names money or a sum of it."""
    return (
        _SUM.search(text) is not None
        or _CHINESE_MONEY.search(text) is not None
        or not _SAID_MONEY.isdisjoint(stems(_words(text)))
    )


def effects_in(text: str, extra: Mapping[str, tuple[str, ...]] | None = None) -> frozenset[Effect]:
    """The effects that a text may ask for: a coarse filter, a word anywhere in it. Light verbs alone ask for nothing.

    `extra` gives more words for an effect; one that is not a single English word is searched for as it stands.
    """
    words = [stem(word) for word in _words(text)]
    said = frozenset(words)
    found: set[Effect] = {effect for effect in EFFECTS if not said.isdisjoint(_BY_WORD[effect])}
    found |= {effect for effect, pattern in _PHRASES.items() if pattern.search(text)}
    if _CJK.search(text):
        found |= {effect for effect, pattern in _CHINESE.items() if pattern.search(text)}
    for at, word in enumerate(words):
        if word in LIGHT:
            near = words[at + 1 : at + 1 + _NEAR]
            found |= {effect for effect, nouns in _BY_NOUN.items() if not nouns.isdisjoint(near)}
    for effect in EFFECTS:
        if extra and any(_stands(word, text, said) for word in extra.get(effect, ())):
            found.add(effect)
    if found & {"write", "communicate"} and speaks_of_money(text):
        found.add("transact")
    return frozenset(found)


def phrases_at(text: str, place: int) -> frozenset[Effect]:
    """The effects of the phrases that begin at a place: "get in touch", "let Ann know"."""
    return frozenset(effect for effect, pattern in _PHRASES.items() if pattern.match(text, place))


def _stands(word: str, text: str, said: frozenset[str]) -> bool:
    return stem(word) in said if _ENGLISH.fullmatch(word) else bool(word.strip()) and word.casefold() in text.casefold()


def _words(text: str) -> list[str]:
    return _ENGLISH.findall(_SET_PHRASE.sub(r"\1", text))
