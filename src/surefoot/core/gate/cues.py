"""Turns of phrase that choose between asking and refusing. Source: spec/guard.md, section 5.3."""

from __future__ import annotations

import re

from surefoot.core.gate import lexicon
from surefoot.core.gate.late import Late
from surefoot.types.guard import Cue

_SENTENCE = Late(r"[^.!?;\n。！？；]+(?:[.](?!\s|\Z)[^.!?;\n。！？；]*)*")
_VERB = Late(lexicon.ADOPTION_VERB, re.IGNORECASE)
_NOUN = Late(lexicon.ADOPTION_NOUN, re.IGNORECASE)
_PLACE = Late(lexicon.ADOPTION_PLACE, re.IGNORECASE)
_NO_ADOPTION = Late(lexicon.NO_ADOPTION, re.IGNORECASE)
_NEGATION = Late(rf"{lexicon.NEGATIONS}|{lexicon.CHINESE_NEGATIONS}", re.IGNORECASE)
_DELEGATION = tuple(Late(pattern, re.IGNORECASE) for pattern in lexicon.DELEGATION)
_SET = Late(rf"\b(?:{'|'.join(lexicon.SET_WORDS.split())})\b|{'|'.join(lexicon.CHINESE_SET.split())}", re.IGNORECASE)
_RELATIVE_DATE = Late(lexicon.RELATIVE_DATES, re.IGNORECASE)


def cues(text: str) -> frozenset[Cue]:
    """The cues of the user's words. Values, quotes and files are masked in `text`, negated clauses are blank."""
    found: set[Cue] = set()
    if any(_adopts(m[0]) for m in _SENTENCE.finditer(text)):
        found.add("adoption")
    if any(pattern.search(text) for pattern in _DELEGATION):
        found.add("delegation")
    if _SET.search(text):
        found.add("set")
    if _RELATIVE_DATE.search(text):
        found.add("relative_date")
    return frozenset(found)


def _adopts(sentence: str) -> bool:
    """Whether a sentence orders to do what stands elsewhere, and says where."""
    if _NO_ADOPTION.search(sentence) or _NEGATION.search(sentence):
        return False
    verb = _VERB.search(sentence)
    return verb is not None and _NOUN.search(sentence) is not None and _PLACE.search(sentence) is not None
