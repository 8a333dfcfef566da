"""Where a value of an argument comes from: the best that it can prove; and what a run learns of results and a yes.

What text says never opens anything: a value is good only by the user's own words, by the developer's configuration, by
a field of a record that the user named, or by a person's yes. Source: spec/guard.md, sections 4.6 and 4.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from surefoot.core.gate.effects import guess
from surefoot.core.gate.roles import SENSITIVE, Leaf, decimal_of, is_sensitive, leaves_of, schema_at
from surefoot.core.gate.slots import Use, has_labelled
from surefoot.core.gate.sources import Known, Source
from surefoot.core.text.look import found_at, hides, holds, holds_token, is_chinese, normal_text, place_in
from surefoot.core.text.records import Atom, index_of, sentence_around
from surefoot.core.text.words import dates_of, day_number, late, phrase, same_day, word_set, words
from surefoot.types.guard import Evidence
from surefoot.types.rules import Origin, Role
from surefoot.types.tools import Effect, ToolResult, ToolSpec

GOOD: frozenset[Origin] = frozenset({"user", "config", "declared", "derived"})

LEAST_UNQUOTED = 3
LEAST_UNLABELLED = 100
"""An object or a destination that is a smaller number needs a label in the words: "id 5", "ticket 5"."""

LONGEST_RELATIVE_DAYS = 31
MOST_SHOWN = 50

Shown = tuple[tuple[Role, str, str], ...]  # values for which a yes holds too: role, as shown, normal form

_FILE = late(r"(?<![\w./\\-])[\w./-]+\.\w+(?![\w/-])")
_ONE_BY_ONE: frozenset[Effect | None] = frozenset(("transact", "delete", None))
_SAME_EITHER_WAY: frozenset[Role] = frozenset({"content", "selector", "option"})
"""Roles to which it is the same whether running text holds a value; nobody looks but in what could not be checked."""


def evidence_of(known: Known, spec: ToolSpec, leaf: Leaf, use: Use | None = None) -> Evidence:
    """Where one leaf of a call comes from, at best; for a call with an effect (`use`) only where the words put it."""
    shown = str(leaf.value)  # all of it: what is judged, and shown to a person, is what the tool gets
    is_moved = "/" in leaf.norm and _is_moved(known, spec.name, leaf)
    is_endorsed = is_moved or (spec.name, leaf.role, leaf.norm) in known.endorsed
    is_said = not is_endorsed and is_of_user(known, leaf)
    vouching = known.own or known.words
    is_users = is_endorsed or (is_said and (use is None or vouching.is_placed(leaf, use)))
    told: Mapping[str, object] = schema_at(leaf.path[:1], spec.parameters) if leaf.path and not spec.is_foreign else {}
    choices = told.get("enum")
    is_choice = isinstance(choices, list) and leaf.value in cast("list[object]", choices)
    is_ours = is_choice or (len(leaf.path) == 1 and told.get("default") == leaf.value)  # a leaf is never null
    origin: Origin = "user" if is_users else "config" if is_ours else "invented"
    plain = Evidence("/" + "/".join(map(str, leaf.path)), leaf.role, leaf.kind, shown, origin)
    kind = "name" if leaf.kind == "text" else leaf.kind
    nearest = next((e.text for e in known.words.anchor.entities if e.kind == kind), "")  # for a person to compare
    if leaf.role in SENSITIVE and hides(shown):  # it reaches the tool as it is, and is not what it looks like
        return replace(plain, origin="invented", nearest=nearest, note="it holds what does not show")
    if origin != "invented":
        return replace(plain, source_id=origin)
    if is_said:
        return replace(plain, origin="untrusted", source_id="user", note="your words name it, but not for this")
    found = _in_results(known, leaf, plain, use)
    if found is not None and found.origin in GOOD:
        return found
    if leaf.role == "time" and "relative_date" in vouching.anchor.cues:
        days = [number for day in dates_of(shown) if (number := day_number(day))]
        starts = [number for day in known.days() if (number := day_number(day))]
        if any(abs(day - start) <= LONGEST_RELATIVE_DAYS for day in days for start in starts):
            return replace(plain, origin="derived", source_id="user")
    if known.own is not None and is_of_user(replace(known, own=None), leaf):
        return replace(plain, origin="relayed", source_id="user", note="it stands in a task that no person wrote")
    return replace(found or plain, nearest=nearest)


def _is_moved(known: Known, tool: str, leaf: Leaf) -> bool:
    """Whether a path is a folder of the user's words with the name of a file that a person has said yes to."""
    folder, _, name = leaf.norm.removeprefix("text:").rpartition("/")
    is_path = leaf.kind == "text" and ".." not in folder and "." in name
    if not is_path or leaf.role not in ("object", "destination"):
        return False
    names = (
        norm.rpartition(":")[2].rpartition("/")[2]
        for of, role, norm in known.endorsed
        if (of, role) == (tool, "object")
    )
    return name in names and is_of_user(known, replace(leaf, norm=f"text:{folder}"))


def is_of_user(known: Known, leaf: Leaf) -> bool:
    """Whether the user's own words hold the value, whole, as what it is."""
    said = known.own or known.words
    if leaf.norm in (said.locators if leaf.role == "secret" else said.norms):
        return True
    if leaf.role == "time" and (days := dates_of(str(leaf.value))):
        return any(same_day(day, other) for day in days for other in said.anchor.dates)
    if leaf.kind == "number":
        exact = leaf.norm.removeprefix("number:")
        value = decimal_of(exact) if leaf.role in ("object", "destination") else None
        if value is not None and abs(value) < LEAST_UNLABELLED:
            return has_labelled(said.anchor.text, exact)  # without a label it is any number
        return exact in said.anchor.numbers
    if leaf.kind != "text":
        return leaf.kind == "date" and holds(said.anchor.text, leaf.norm.removeprefix("date:"))
    text = leaf.norm.removeprefix("text:")
    if leaf.role == "secret":
        return any(  # behind a label: "the password is X", "token X", "set it to X"
            holds_token(said.anchor.text[max(0, start - 2) : start + len(text) + 2], text)
            and late("{given_after}").search(said.anchor.text[max(0, start - 16) : start])
            for start in found_at(said.anchor.text, text)
        )
    if len(text) < LEAST_UNQUOTED:
        return len(text) > 1 and is_chinese(text) and _stands_alone(said.anchor.text, text)
    where = said.plain if leaf.role == "destination" else said.anchor.text
    if leaf.role in ("content", "selector"):
        return holds(where, text)
    is_day = leaf.role == "time" and phrase("relative_dates").search(text)  # "Friday" names nothing else
    if not is_day and word_set("openers").issuperset(text.split()):
        return False
    if holds_token(where, text):
        return True
    base, slash, name = text.rpartition("/")  # of a path, the folder and the name may be proved apart
    is_path = slash and len(name) >= LEAST_UNQUOTED and ".." not in text and name not in word_set("openers")
    if not is_path or not holds_token(where, name):
        return False
    return bool(base) and holds_token(where, base.strip("/."))  # "/notes.txt" is another file than "notes.txt"


def _stands_alone(said: str, name: str) -> bool:
    """Whether a Chinese name of two characters is a whole one: what may stand beside a name stands on both sides."""
    for start in found_at(said, name):
        before, after = said[:start], said[start + len(name) :]
        is_begun = not is_chinese(before[-1:]) or before.endswith(words("before_name"))
        if is_begun and (not is_chinese(after[:1]) or after.startswith(words("after_name"))):
            return True
    return False


def _in_results(known: Known, leaf: Leaf, plain: Evidence, use: Use | None) -> Evidence | None:
    """The leaf in the results of the run: in an anchored record, else a field, else running text; newest first."""
    found: Evidence | None = None
    plain = replace(plain, origin="untrusted")
    for number in known.fields.having(leaf.norm):
        source = known.sources[number]
        if found is not None and not (source.opened or source.spec.trusted_fields):
            continue  # no field of it is good
        atom, is_open = source.atom(leaf.norm)
        told = replace(plain, source_id=source.call_id, form="atom", note=atom.field)
        is_trusted = atom.field.removeprefix("*.") in source.spec.trusted_fields
        if is_trusted and leaf.role != "object":
            return replace(told, origin="config")
        vouching = known.own or known.words
        if is_open and (use is None or source.voucher(vouching, leaf, use)):  # the thing that the words name
            return replace(told, origin="declared")
        if found is None or (is_trusted and found.origin != "config"):
            found = replace(told, origin="config") if is_trusted else told
    if found is not None:
        return found
    is_same = leaf.role in _SAME_EITHER_WAY and leaf.kind == "text"
    for source in reversed(known.sources) if not is_same or known.degraded else ():
        if (not is_same or source.call_id in known.degraded) and source.index.says(leaf.norm):
            sentence = source.index.tokens.get(leaf.norm, "")
            return replace(plain, source_id=source.call_id, form="prose", sentence=sentence)
    return None


def traced(known: Known, evidence: Evidence) -> Evidence:
    """The evidence with the newest result that holds its value, for the person who reads it; no decision needs it."""
    text = normal_text(evidence.value)
    if evidence.source_id or not text:
        return evidence
    for source in reversed(known.sources):
        found = replace(evidence, origin="untrusted", source_id=source.call_id)
        if (at := place_in(source.index.text, text)) >= 0:
            sentence = sentence_around(source.index.text, at, at + len(text))
            return replace(found, form="prose", sentence=sentence)
        if any(holds(norm.partition(":")[2], text) for norm in source.index.atoms):
            return replace(found, form="atom")
    return evidence


def having_read(
    known: Known, call_id: str, spec: ToolSpec, arguments: Mapping[str, object], result: ToolResult
) -> Known:
    """What is known after a call has given its result. One that was cut is running text: nothing of it is anchored.

    The words say where it is if all arguments of the fetch are good, and one of them names what the user named. What an
    agent answers, a model has written: running text too, unless the developer has declared what it gives.
    """
    located = ""
    is_prose = bool(spec.delegates) and not (spec.trusted_fields or spec.directory)
    for leaf in leaves_of(arguments, spec) if not (result.is_error or is_prose) else ():
        if evidence_of(known, spec, leaf).origin not in GOOD:
            located = ""
            break
        if leaf.role in ("object", "destination") and leaf.norm in known.words.locators and is_of_user(known, leaf):
            located = located or leaf.norm
    index = index_of(result.content, structured=result.structured and not is_prose)
    return known.with_source(Source(call_id, spec.name, index, spec, located=located), is_error=result.is_error)


def listed_in(spec: ToolSpec, arguments: Mapping[str, object], asked_about: Iterable[Evidence]) -> Shown:
    """The sensitive leaves of a call among those that a question about it lists, one row each."""
    paths = {one.path for one in asked_about}
    return tuple(
        (leaf.role, str(leaf.value), leaf.norm)
        for leaf in leaves_of(arguments, spec)
        if "/" + "/".join(map(str, leaf.path)) in paths and is_sensitive(leaf.role, leaf.path, spec)
    )


def endorsed_by(
    known: Known, spec: ToolSpec, arguments: Mapping[str, object], shown: Shown
) -> tuple[tuple[Role, str], ...]:
    """The values that a yes to a call makes the user's in calls of that tool: those `shown`, and whole contents.

    A yes to delete something endorses nothing, and no secret ever is.
    """
    if guess(spec, known.config.guess).effect == "delete":
        return ()
    given = leaves_of(arguments, spec)
    found: Iterable[tuple[Role, str]] = ((leaf.role, leaf.norm) for leaf in given if leaf.role == "content")
    listed: Iterable[tuple[Role, str]] = ((role, norm) for role, _, norm in shown if role != "secret")
    return tuple(dict.fromkeys((*found, *listed)))


def set_of(known: Known, spec: ToolSpec, arguments: Mapping[str, object]) -> Shown:
    """What else a yes to a call is for, where the words speak of a set ("all", "each"): to be shown with the question.

    That is every value of the field that a destination or object came from, if a person can read so many. One yes
    never covers a set of payments or deletions, or a set given to a tool whose effect is unknown.
    """
    effect = guess(spec, known.config.guess)
    if "set" not in known.words.anchor.cues or not effect.classes(to_somebody=False).isdisjoint(_ONE_BY_ONE):
        return ()
    given = leaves_of(arguments, spec)
    ours = {(leaf.role, leaf.norm) for leaf in given}
    found: dict[tuple[Role, str], str] = {}
    for leaf in given:
        if leaf.role in ("destination", "object"):
            found.update({(leaf.role, atom.norm): atom.text for atom in _beside(known, spec, leaf)})
    shown: Shown = tuple((role, text, norm) for (role, norm), text in found.items() if (role, norm) not in ours)
    return shown if len(shown) <= MOST_SHOWN else ()


def _beside(known: Known, spec: ToolSpec, leaf: Leaf) -> tuple[Atom, ...]:
    """The values of the field that a leaf came from, of the same tool.

    Of a file in running text those are the files of the kind that the words name: "move all .txt files".
    """
    evidence = evidence_of(known, spec, leaf)
    if evidence.origin in GOOD and evidence.origin != "declared":
        return ()
    number = next(known.fields.having(leaf.norm), None)
    if number is not None:
        source = known.sources[number]
        field = source.atom(leaf.norm)[0].field
        same_tool = (one for one in known.sources if one.name == source.name)
        return tuple(a for one in same_tool for record in one.index.records for a in record.atoms if a.field == field)
    kind = leaf.norm.rpartition(".")[2]
    if not kind.isalnum() or not holds(known.words.anchor.text, kind):
        return ()
    says = next((one for one in reversed(known.sources) if one.index.says(leaf.norm)), None)
    names = (m[0] for m in _FILE.finditer(says.index.text)) if says else ()
    return tuple(Atom("", name, f"text:{name}", is_text=True) for name in names if name.endswith(f".{kind}"))
