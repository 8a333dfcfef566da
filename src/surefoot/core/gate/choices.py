"""What a call chooses beside its values: who gets a power, how far it reaches, where something is said or takes place.

Such a choice is short and often looks harmless (`public=True`, `type="owner"`, `topic="..."`). It needs a word of the
user's, unless it is what the tool does anyway. Source: spec/guard.md, section 9, rows 5 and 9.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from functools import cache
from typing import cast

from surefoot.core.gate.effects import bare_name
from surefoot.core.gate.roles import Leaf, schema_at
from surefoot.core.gate.sources import Known
from surefoot.core.text.look import holds, normal_text
from surefoot.core.text.words import entries, late, pattern, stems, stems_of, stems_of_name, table
from surefoot.types.tools import Effect, ToolSpec

LONGEST_CHOICE = 60
"""Characters of a text that is a choice and not a text of its own."""

_TITLED = late("{gives_title}")
_PLACE_GIVEN_OVER = late("{gives_place_over}")
_GAP = late(r"\{[^{}]*\}|<[^<>]*>|\[[^\[\]]*\]")
_WORD = late(r"[^\W\d_]+")


@cache
def _powers() -> tuple[tuple[frozenset[str], re.Pattern[str], re.Pattern[str]], ...]:
    """What parameters that give a power are called, with the words for it, and those for the opposite."""
    names = cast("Mapping[str, object]", table("lexicon.en")["powers"])
    return tuple(
        (
            stems_of(f"powers.{name}.names"),
            re.compile(pattern(f"powers.{name}.on") or r"\Z\A."),
            re.compile(pattern(f"powers.{name}.off") or r"\Z\A."),
        )
        for name in names
    )


def doubt_of(known: Known, spec: ToolSpec, leaf: Leaf, leaves: Sequence[Leaf], reach: Set[Effect | None]) -> str:
    """Why a person has to look at what a leaf chooses; "" where it is the words' own choice, or none.

    `reach` is what the call does beyond the house: it goes to people, pays or deletes.
    """
    if (spec.name, leaf.role, leaf.norm) in known.endorsed:
        return ""
    named, text = stems_of_name(leaf.name), normal_text(str(leaf.value))
    default = schema_at(leaf.path, spec.parameters).get("default")
    if isinstance(leaf.value, bool):
        said = _said_beside(known, leaf, leaves)
        for names, on, off in _powers():
            if not names.isdisjoint(named):
                ours, theirs = (on, off) if leaf.value else (off, on)
                if ours.search(said):
                    return ""
                is_usual = leaf.value == (default or False) and not theirs.search(said)
                return "" if is_usual else "your words do not say so"
        return ""
    if not isinstance(leaf.value, str) or len(text) > LONGEST_CHOICE or leaf.value == default or _is_said(known, text):
        return ""
    is_power = any(not names.isdisjoint(named) for names, _, _ in _powers())
    if leaf.role == "option":
        return "your words do not say so" if is_power else ""
    if reach and not named.isdisjoint(stems_of("names.placing")):
        if _is_kept(known, leaf, leaves) or (reach == {"communicate"} and _is_looked_up(known, leaf)):
            return ""
        return "your words do not say where or about what"
    is_title = leaf.role == "content" and not named.isdisjoint(stems_of("names.titled"))
    if (
        is_title
        and not stems_of("names.making").isdisjoint(stems_of_name(bare_name(spec)))
        and _gives_another_title(known, text)
    ):
        return "your words give another title"
    return ""


def _is_said(known: Known, text: str) -> bool:
    """Whether the words say a choice: the whole of it, all words of it, or what it stands for ("rw": to edit)."""
    anchor = known.words.anchor
    if holds(anchor.text, text) or ((said := stems(_WORD.findall(text))) and said <= anchor.stems):
        return True
    meant = "|".join(entries(f"choices.{text}")) if text.isidentifier() else ""
    return bool(meant) and re.search(rf"(?<![a-z])(?:{meant})", anchor.text) is not None


def _said_beside(known: Known, leaf: Leaf, leaves: Sequence[Leaf]) -> str:
    """The clauses of the words that name a value of the call; all words, where none does."""
    others = [normal_text(str(one.value)) for one in leaves if one is not leaf and one.kind == "text"]
    anchor = known.words.anchor
    here = [c.text for c in anchor.clauses if any(holds(c.text, text) for text in others if len(text) > 1)]
    return "\n".join(here) or anchor.text


def _is_kept(known: Known, leaf: Leaf, leaves: Sequence[Leaf]) -> bool:
    """Whether what a call acts on has that value already."""
    acted_on = {one.norm for one in leaves if one.role == "object"}
    for source in known.sources:
        for number in source.index.atoms.get(leaf.norm, ()):
            if any(atom.norm in acted_on for atom in source.index.records[number].atoms):
                return True
    return False


def _is_looked_up(known: Known, leaf: Leaf) -> bool:
    """Whether a place comes from a result, and the words have it taken from one: "the location is its address"."""
    is_read = any(leaf.norm in s.index.atoms or s.index.says(leaf.norm) for s in known.sources)
    return is_read and _PLACE_GIVEN_OVER.search(known.words.anchor.text) is not None


def _gives_another_title(known: Known, text: str) -> bool:
    """Whether the words give a title that this one is not; one with a gap ("Dinner at {place}") leaves that open."""
    anchor = known.words.anchor
    quoted = [normal_text(e.text) for e in anchor.entities if e.kind == "quoted"]
    if any(_GAP.search(one) and _fills(text, _GAP.split(one)) for one in quoted):
        return False
    return bool(quoted) or _TITLED.search(anchor.text) is not None


def _fills(text: str, parts: Sequence[str]) -> bool:
    """Whether a text has the parts of another in their order, from its beginning to its end."""
    at = 0
    for part in parts:
        at = text.find(part, at) + len(part) if part in text[at:] else len(text) + 1
    return text.startswith(parts[0]) and text.endswith(parts[-1]) and at <= len(text)
