"""Which records of a result the user's words anchor: the only one that they name, as long as its name is one thing's.

A record is named in a field that says what it is; a text that anybody may have written about it names nothing. Records
of several results that bear one name are the same thing only as far as nothing in them contradicts it. Source:
spec/guard.md, section 4.6.
"""

from __future__ import annotations

from surefoot.core.gate import name_words
from surefoot.core.gate.forms import holds
from surefoot.core.gate.index import Atom, Record, ValueIndex
from surefoot.core.gate.known import LEAST_NAMING, Known, Source, Words
from surefoot.core.gate.roles import is_id, role_of_name
from surefoot.core.gate.stems import stems, words_of_name

LEAST_BEGINNING = 4
LEAST_WHOLE = 6
_TELLING = stems(name_words.TELLING_FIELDS)
_ADDRESSES = ("email:", "url:", "digits:")


def named_in(words: Words, index: ValueIndex) -> tuple[tuple[int, frozenset[str]], ...]:
    """The records that the words name, each with the names by which they do."""
    found = ((number, names_of(words, record)) for number, record in enumerate(index.records))
    return tuple((number, names) for number, names in found if names)


def names_of(words: Words, record: Record) -> frozenset[str]:
    """The names of the words that a record bears.

    One of its short fields is a name, or is mainly one and begins with it, or stands whole in the words.
    """
    found: set[str] = set()
    for atom in record.atoms:
        if atom.is_text and len(atom.text) >= LEAST_NAMING and (names := _names(words, atom.norm)):
            found.update(() if _tells(atom.field) else names)
    return frozenset(found)


def _names(words: Words, norm: str) -> list[str]:
    """The names of the words that a field's value stands for."""
    if norm in words.norms:
        return [norm]
    if not norm.startswith("text:"):
        return []
    text = norm[5:]
    found = [f"text:{name}" for name in words.names if len(name) >= LEAST_BEGINNING and _begins(text, name)]
    if len(text) >= LEAST_WHOLE and " " in text and holds(words.anchor.text, text):
        found.append(norm)
    return found


def _tells(field: str) -> bool:
    """Whether a field is for running text about a thing, and not for what the thing is called."""
    words = words_of_name(_last(field))
    return bool(words) and not _TELLING.isdisjoint(stems(words))


def _last(field: str) -> str:
    """The name of a field without those around it; an element of a list has that of its list."""
    return field.removesuffix(".*").rpartition(".")[2]


def _begins(text: str, name: str) -> bool:
    """Whether a text begins with a name that is at least half of its words: "Ann Lee", not "Ann, pay this at once"."""
    if not text.startswith(name) or text[len(name) : len(name) + 1].isalnum():
        return False
    return len(text.split()) <= 2 * len(name.split())


def opened_by(source: Source, doubled: frozenset[str]) -> frozenset[int]:
    """The records of a result that are anchored, where some names stand for several things.

    Exactly one named record is; of two or more, even with equal values, none. A result that is one record is anchored
    too if all arguments of its fetch were good and one of them says where it is.
    """
    opened = {number for number, names in source.named if names - doubled} if len(source.named) == 1 else set[int]()
    if source.index.is_one and source.is_located and source.index.records:
        opened.add(0)
    return frozenset(opened)


def is_another(one: Record, other: Record, *, is_one_tool: bool) -> bool:
    """Whether two records that bear one name cannot be the same thing: other addresses, or another id, path or file.

    What one tool gives twice under the same id is the same thing, which may have changed in between.
    """
    if one == other:
        return False
    ours, theirs = _values(one), _values(other)
    common = ours.keys() & theirs.keys()
    if is_one_tool and any(is_id(name) and ours[name] == theirs[name] for name in common):
        return False
    if any(role_of_name(name) == "object" and ours[name].isdisjoint(theirs[name]) for name in common):
        return True
    here, there = _addresses(one), _addresses(other)
    return bool(here) and bool(there) and here != there


def _values(record: Record) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for atom in record.atoms:
        found.setdefault(_last(atom.field), set()).add(atom.norm)
    return found


def _addresses(record: Record) -> set[str]:
    return {atom.norm for atom in record.atoms if atom.norm.startswith(_ADDRESSES)}


def agreed_amount(known: Known, norm: str) -> tuple[Source, Atom] | None:
    """Where an amount stands in the records of one name, if all of them that were read say the same one.

    So much is what the user pays for that each time. It opens an amount, and never where it goes.
    """
    for number in known.fields.having(norm):
        source = known.sources[number]
        for at, names in source.named:
            for atom in source.index.records[at].atoms:
                field = _last(atom.field)
                if atom.norm == norm and role_of_name(field) == "amount" and _all_say(known, names, field, norm):
                    return source, atom
    return None


def _all_say(known: Known, names: frozenset[str], field: str, norm: str) -> bool:
    """Whether each record that bears one of the names and has the field has that value there."""
    alike = (one.index.records[at] for one in known.sources for at, others in one.named if names & others)
    return all(atom.norm == norm for record in alike for atom in record.atoms if _last(atom.field) == field)
