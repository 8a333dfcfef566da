"""What a tool does, as far as its declaration or its name says. Source: spec/guard.md, section 4.3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from surefoot.core.gate.actions import PEOPLE, is_money_name, of_name_word
from surefoot.core.gate.name_words import LINK_WORDS, RUN_WORDS
from surefoot.core.gate.roles import role_of_name
from surefoot.core.gate.stems import stem, stems, words_of_name
from surefoot.types.dataclass import dataclass
from surefoot.types.tools import Effect, ToolSpec

_LINKS = stems(LINK_WORDS)


@dataclass(frozen=True, slots=True)
class Guess:
    """The effect that the gate counts with; None is unknown.

    `own` is the class that the name says, before it was raised: the intent check takes either. `egress`: a read that
    carries its arguments out of the house.
    """

    effect: Effect | None
    own: Effect | None
    egress: bool

    def classes(self, *, to_somebody: bool) -> frozenset[Effect | None]:
        """What a call stands for: its own class, the raised one, and communicating for a write to somebody.

        What is not known to be anything may at least write.
        """
        found: set[Effect | None] = {self.effect, self.own}
        if self.effect is None:
            found.add("write")
        if to_somebody and (self.own == "write" or self.effect is None):
            found.add("communicate")
        return frozenset(found)


def guess(spec: ToolSpec, guess: Literal["own", "all", "none"] = "own") -> Guess:
    """The effect of a tool: declared, or guessed of its name. A pure function of both.

    An external tool's name never makes it a read, unless `guess` is "all". An undeclared tool whose effect was raised
    by its annotations keeps the raised one.
    """
    if spec.declared:
        return Guess(spec.effect, spec.effect, spec.egress or (spec.effect == "read" and _has_link(spec)))
    raised = spec.effect if spec.effect not in ("read", "write") else None
    own = None if guess == "none" else _class_of(bare_name(spec))
    if own == "read" and spec.is_foreign and guess != "all":
        own = None
    effect = raised or _raised(own, spec)
    return Guess(effect, own or raised, spec.egress or (own == "read" and _has_link(spec)))


def _has_link(spec: ToolSpec) -> bool:
    """Whether a parameter is called like a link, and not declared to be something else than a destination."""
    names = (name for name in _parameters(spec) if spec.roles.get(name, "destination") == "destination")
    return any(_has(name, _LINKS) for name in names)


_STRENGTH: tuple[Effect, ...] = ("delete", "transact", "communicate", "write")
_JOINTS = frozenset(("and", "or", "then"))
_RUNS = stems(RUN_WORDS)


def _class_of(name: str) -> Effect | None:
    """The strongest of what a name joins by "and", "or", "then"; of each part the first word that is in a class.

    Behind the first joint a plural says what it is about, and not what is done. What runs something given to it may do
    anything, and so is no read.
    """
    words = words_of_name(name)
    found: set[Effect] = set()
    is_new, is_first = True, True
    for word in words:
        if word in _JOINTS:
            is_new, is_first = True, False
        elif is_new and (is_first or not _is_plural(word)) and (effect := of_name_word(word)) is not None:
            found.add(effect)
            is_new = False
    for effect in _STRENGTH:
        if effect in found:
            return effect
    return "read" if found and _RUNS.isdisjoint(stems(words)) else None


def _is_plural(word: str) -> bool:
    return word.endswith("s") and stem(word) != word


def bare_name(spec: ToolSpec) -> str:
    """The name that a tool has on its server, without the server's own name before it."""
    return spec.name.removeprefix(f"{spec.server}__") if spec.server else spec.name


def _raised(own: Effect | None, spec: ToolSpec) -> Effect | None:
    words = words_of_name(bare_name(spec))
    if own in ("write", "communicate") and any(is_money_name(word) for word in words):
        return "transact"
    if own == "write" and any(stem(word) in PEOPLE for word in words):
        names = _parameters(spec)
        if any(spec.roles.get(name, role_of_name(name)) == "destination" for name in names):
            return "communicate"
    return own


def _has(name: str, words: frozenset[str]) -> bool:
    return not stems(words_of_name(name)).isdisjoint(words)


def _parameters(spec: ToolSpec) -> tuple[str, ...]:
    properties = spec.parameters.get("properties")
    return tuple(cast("Mapping[str, object]", properties)) if isinstance(properties, Mapping) else ()  # JSON: text keys
