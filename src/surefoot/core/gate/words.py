"""The user's words, read before any other text: what they ask for, what they name, what they forbid.

No model and no planner: the same words give the same anchor, in time linear in their length. Source: spec/guard.md,
sections 3.2, 4.6 and 5.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from hashlib import sha256

from surefoot.core.gate import lexicon
from surefoot.core.gate.actions import effects_in
from surefoot.core.gate.cues import cues
from surefoot.core.gate.entities import Named, masked, named
from surefoot.core.gate.forbids import rules
from surefoot.core.gate.forms import normal_text
from surefoot.core.gate.late import Late
from surefoot.core.gate.stems import stem, stems
from surefoot.core.gate.values import dates_of, numbers_of
from surefoot.types.guard import ConstraintSet, Entity, IntentAnchor
from surefoot.types.tools import Effect

__all__ = ["read_words", "stem"]

_WORD = Late(r"[^\W\d_]{2,}")
_MESSAGE_TO = Late(lexicon.MESSAGE_TO, re.IGNORECASE)
_TO_PLACE = Late(lexicon.TO_PLACE, re.IGNORECASE)
_AFTER_ADDRESS = Late(lexicon.AFTER_ADDRESS, re.IGNORECASE)
_ALWAYS: frozenset[Effect] = frozenset({"read"})
_COMMUNICATE: frozenset[Effect] = frozenset({"communicate"})
_NO_EXTRA: Mapping[str, tuple[str, ...]] = {}


def read_words(text: str, extra: Mapping[str, tuple[str, ...]] = _NO_EXTRA) -> IntentAnchor:
    """The anchor that the words alone give. `extra` adds words to effects; other keys of it mean nothing.

    Entities come in the order of the words, each once; texts are NFKC, without format characters. Where the words
    forbid something, that clause asks for nothing and proves no value: it is missing in `text`, `stems`, `numbers` and
    `dates`, and the parts around it are joined by a line break, so that no span crosses it.
    """
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    plain = _plain(text)
    things = named(plain)
    bare = masked(plain, things_hidden := [t for t in things if t.entity.kind not in ("name", "id")])
    ruled = rules(bare, things, plain)
    people = [t for t in things_hidden if t.entity.kind in ("email", "phone")]
    places = [t for t in things_hidden if t.entity.kind not in ("email", "phone", "quoted")]
    to_places = [*places, *(m.span() for m in _TO_PLACE.finditer(bare))]
    said = masked(masked(plain, people), to_places, "|")  # what is written to a place is no message
    asked = effects_in(masked(said, ruled.negated, " "), extra)
    if _asks_to_write_to(masked(bare, ruled.negated, "|"), things):
        asked |= _COMMUNICATE
    kept = _without(plain, ruled.cut)
    entities = [t.entity for t in things if not _is_inside(t.start, ruled.cut)]
    return IntentAnchor(
        words_sha256=digest,
        effects_asked=asked | _ALWAYS,
        entities=_each_once(entities),
        cues=cues(masked(bare, ruled.negated, " ")),
        dates=tuple(dict.fromkeys(day for part in kept for day in dates_of(part))),
        numbers=frozenset(number for part in kept for number in numbers_of(part)),
        stems=stems(word for part in kept for word in _WORD.findall(part.casefold())),
        text="\n".join(part for part in map(normal_text, kept) if part),
        constraints=ConstraintSet(ruled.constraints),
    )


def unnegated(text: str) -> str:
    """The words in normal form without what they negate: what is left may ask for something."""
    plain = _plain(text)
    things = named(plain)
    ruled = rules(masked(plain, [t for t in things if t.entity.kind not in ("name", "id")]), things, plain)
    return normal_text(masked(plain, ruled.negated, "|"))


def _asks_to_write_to(text: str, things: Sequence[Named]) -> bool:
    """Whether a message to an address is asked for: "write (a line) to ann@x.org", and nothing between or joined to it.

    What is written down for or about an address is no message to it; whatever else it may be is a question.
    """
    ends: dict[int, set[int]] = {}
    for thing in things:
        ends.setdefault(thing.start, set()).add(thing.end)
    addresses = {thing.start: thing.end for thing in things if thing.entity.kind == "email"}
    return any(
        ends.get(at) == {addresses.get(at)} and _AFTER_ADDRESS.match(text, addresses[at]) is not None
        for at in (m.end() for m in _MESSAGE_TO.finditer(text))
    )


def _plain(text: str) -> str:
    """NFKC without format characters, so that places in it can be told."""
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")


def _without(text: str, cut: tuple[tuple[int, int], ...]) -> list[str]:
    """The parts of a text around what is cut out of it."""
    parts: list[str] = []
    at = 0
    for start, end in cut:
        parts.append(text[at:start])
        at = max(at, end)
    return [*parts, text[at:]]


def _is_inside(at: int, spans: tuple[tuple[int, int], ...]) -> bool:
    """Whether a place is in one of some spans, that are in order and do not overlap."""
    before = bisect_right(spans, at, key=lambda span: span[0]) - 1
    return before >= 0 and at < spans[before][1]


def _each_once(entities: list[Entity]) -> tuple[Entity, ...]:
    return tuple({(entity.kind, entity.norm): entity for entity in reversed(entities)}.values())[::-1]
