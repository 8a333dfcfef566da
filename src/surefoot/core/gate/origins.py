"""Where a value of an argument comes from: the best that it can prove.

What text says never opens anything: a value is good only by the user's own words, by the developer's configuration, by
a field of a record that the user named, or by a person's yes. Source: spec/guard.md, section 4.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from surefoot.core.gate import lexicon
from surefoot.core.gate.anchored import agreed_amount
from surefoot.core.gate.forms import hides, holds, holds_token, is_chinese, normal_text, place_in
from surefoot.core.gate.index import sentence_around
from surefoot.core.gate.known import Known
from surefoot.core.gate.late import Late
from surefoot.core.gate.lookalike import is_twin
from surefoot.core.gate.roles import SENSITIVE, role_of
from surefoot.core.gate.values import dates_of, kind_of, norm_of
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.guard import Evidence, Origin, Role, ValueKind
from surefoot.types.tools import ToolSpec

GOOD: frozenset[Origin] = frozenset({"user", "config", "declared", "derived"})

_FUNCTION_WORDS = frozenset(lexicon.OPENERS.split())
_BEFORE_NAME = tuple(lexicon.CHINESE_BEFORE_NAME.split())
_AFTER_NAME = tuple(lexicon.CHINESE_AFTER_NAME.split())
_LABELS_A_SECRET = Late(lexicon.GIVEN_AFTER)

LEAST_UNQUOTED = 3
LEAST_UNLABELLED = 100
"""An object or a destination that is a smaller number needs a label in the words: "id 5"."""

LONGEST_RELATIVE_DAYS = 31


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value of a call's arguments: where it stands, what it is to the effect, and its normal form."""

    path: tuple[str | int, ...]
    value: object
    role: Role
    kind: ValueKind
    norm: str

    @classmethod
    def of(cls, path: tuple[str | int, ...], value: object, spec: ToolSpec) -> Leaf:
        """The leaf of a call of that tool, with its role, kind and normal form found."""
        kind = kind_of(value)
        return cls(path, value, role_of(path, value, spec, kind), kind, norm_of(value, kind))


def evidence_of(known: Known, spec: ToolSpec | None, leaf: Leaf) -> Evidence:
    """Where one leaf of a call comes from: the best that it can prove."""
    shown = str(leaf.value)  # all of it: what is judged, and shown to a person, is what the tool gets
    origin = _by_words(known, leaf) or _by_schema(spec, leaf)
    place = "/" + "/".join(str(part) for part in leaf.path)
    plain = Evidence(place, leaf.role, leaf.kind, shown, origin or "invented")
    if leaf.role in SENSITIVE and hides(shown):  # it reaches the tool as it is, and is not what it looks like
        return replace(plain, origin="invented", nearest=_nearest(known, leaf), note="it holds what does not show")
    if origin:
        return replace(plain, source_id=origin)
    found = _in_results(known, leaf)
    if found is not None and found.origin in GOOD:
        return replace(found, path=place)
    if leaf.role == "time" and _is_relative(known, leaf.value):
        return replace(plain, origin="derived", source_id="user")
    return replace(found or plain, path=place, nearest=_nearest(known, leaf))


def _by_words(known: Known, leaf: Leaf) -> Literal["user", ""]:
    is_good = (leaf.role, leaf.norm) in known.endorsed or is_of_user(known, leaf) or _is_moved(known, leaf)
    return "user" if is_good else ""


def _is_moved(known: Known, leaf: Leaf) -> bool:
    """Whether a path is a folder of the user's words with the name of a file that a person has said yes to."""
    folder, slash, name = leaf.norm.removeprefix("text:").rpartition("/")
    if (
        not slash
        or leaf.kind != "text"
        or ".." in folder
        or "." not in name
        or leaf.role not in ("object", "destination")
    ):
        return False
    names = (norm.rpartition(":")[2].rpartition("/")[2] for role, norm in known.endorsed if role == "object")
    return name in names and is_of_user(known, replace(leaf, norm=f"text:{folder}"))


def is_of_user(known: Known, leaf: Leaf) -> bool:
    """Whether the user's words hold the value, whole, as what it is."""
    words = known.words
    if leaf.norm in (words.locators if leaf.role == "secret" else words.norms):
        return True
    if leaf.role == "time" and (days := dates_of(str(leaf.value))):
        return any(_same_day(day, said) for day in days for said in words.anchor.dates)
    if leaf.kind == "number":
        exact = leaf.norm.removeprefix("number:")
        if leaf.role in ("object", "destination") and _is_small(exact):
            return False  # without a label it is any number; with one it is among the entities
        return exact in words.anchor.numbers
    if leaf.kind != "text":
        return leaf.kind == "date" and holds(words.anchor.text, leaf.norm.removeprefix("date:"))
    text = leaf.norm.removeprefix("text:")
    if leaf.role == "secret":
        return _is_given_secret(words.anchor.text, text)
    if len(text) < LEAST_UNQUOTED:
        return len(text) > 1 and is_chinese(text) and _stands_alone(words.anchor.text, text)
    said = words.plain if leaf.role == "destination" else words.anchor.text
    if leaf.role in ("content", "selector"):
        return holds(said, text)
    if _FUNCTION_WORDS.issuperset(text.split()):
        return False
    if holds_token(said, text):
        return True
    base, slash, name = text.rpartition("/")  # of a path, the folder and the name may be proved apart
    is_path = bool(slash) and len(name) >= LEAST_UNQUOTED and ".." not in text and name not in _FUNCTION_WORDS
    return is_path and holds_token(said, name) and ("." in name if not base else holds_token(said, base.strip("/.")))


def _stands_alone(said: str, name: str) -> bool:
    """Whether a Chinese name of two characters is a whole one: what may stand beside a name stands on both sides."""
    at = said.find(name)
    while at >= 0:
        before, after = said[:at], said[at + len(name) :]
        is_begun = not is_chinese(before[-1:]) or before.endswith(_BEFORE_NAME)
        if is_begun and (not is_chinese(after[:1]) or after.startswith(_AFTER_NAME)):
            return True
        at = said.find(name, at + 1)
    return False


def _is_given_secret(said: str, text: str) -> bool:
    """Whether the words give a secret behind a label: "the password is X", "token X", "set it to X"."""
    at = said.find(text)
    while at >= 0:
        end = at + len(text)
        if holds_token(said[max(0, at - 2) : end + 2], text) and _LABELS_A_SECRET.search(said[max(0, at - 16) : at]):
            return True
        at = said.find(text, at + 1)
    return False


def _is_small(exact: str) -> bool:
    try:
        return abs(float(exact)) < LEAST_UNLABELLED
    except ValueError:
        return False


def _same_day(one: tuple[int, int, int], said: tuple[int, int, int]) -> bool:
    return one[:2] == said[:2] and (not said[2] or not one[2] or one[2] == said[2])


def _by_schema(spec: ToolSpec | None, leaf: Leaf) -> Literal["config", ""]:
    """Whether the developer's own schema gives the value, as its default or as one of an enumeration."""
    if spec is None or spec.server or spec.origin == "remote" or not leaf.path:
        return ""
    properties = spec.parameters.get("properties")
    about = cast("Mapping[str, object]", properties).get(str(leaf.path[0])) if isinstance(properties, Mapping) else None
    if not isinstance(about, Mapping):
        return ""
    told = cast("Mapping[str, object]", about)
    choices = told.get("enum")
    is_choice = isinstance(choices, list) and leaf.value in cast("list[object]", choices)
    is_default = "default" in told and len(leaf.path) == 1 and told["default"] == leaf.value
    return "config" if is_choice or is_default else ""


def _in_results(known: Known, leaf: Leaf) -> Evidence | None:
    """The leaf in the results of the run: in an anchored record, else a field, else running text; newest first."""
    found: Evidence | None = None
    shown = str(leaf.value)
    for number in known.fields.having(leaf.norm):
        source = known.sources[number]
        if found is not None and not source.may_open:
            continue
        atom, is_open = source.atom(leaf.norm)
        told = Evidence("", leaf.role, leaf.kind, shown, "untrusted", source.call_id, "atom", note=atom.field)
        if source.spec is not None and atom.field.removeprefix("*.") in source.spec.trusted_fields:
            return replace(told, origin="config")
        if is_open:
            return replace(told, origin="declared")
        found = found or told
    if found is not None:
        if leaf.role == "amount" and (agreed := agreed_amount(known, leaf.norm)):
            return replace(found, origin="declared", source_id=agreed[0].call_id, note=agreed[1].field)
        return found
    is_same = leaf.role in _SAME_EITHER_WAY and leaf.kind == "text"
    if is_same and not known.degraded:
        return None
    for source in reversed(known.sources):
        if is_same and source.call_id not in known.degraded:
            continue
        if source.index.says(leaf.norm):
            sentence = source.index.tokens.get(leaf.norm, "")
            return Evidence("", leaf.role, leaf.kind, shown, "untrusted", source.call_id, "prose", sentence=sentence)
    return None


def traced(known: Known, evidence: Evidence) -> Evidence:
    """The evidence with the newest result that holds its value, for the person who reads it.

    A decision is made without: where it is the same for it whether a result holds a value, nobody looks before.
    """
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


_SAME_EITHER_WAY: frozenset[Role] = frozenset({"content", "selector", "option"})
"""Roles to which it is the same whether running text holds a value or nothing does, so that nobody looks.

Only what could not be checked is looked through: a value from it is a question whatever its role is (section 3.3).
"""


def _is_relative(known: Known, value: object) -> bool:
    """Whether a date lies near a day that a relative date of the words may be counted from."""
    if "relative_date" not in known.words.anchor.cues:
        return False
    days = [number for day in dates_of(str(value)) if (number := _day_number(day))]
    starts = [number for day in known.days() if (number := _day_number(day))]
    return any(abs(day - start) <= LONGEST_RELATIVE_DAYS for day in days for start in starts)


def _day_number(day: tuple[int, int, int]) -> int:
    """The number of a day in the Gregorian calendar, so that days can be counted; 0 for one without a year."""
    month, of_month, year = day
    if not year:
        return 0
    shifted = year - (month <= 2)  # noqa: PLR2004  # the year begins in March, so that a leap day stands last
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + of_month
    return 365 * shifted + shifted // 4 - shifted // 100 + shifted // 400 + of_year


def twin_of(known: Known, leaf: Leaf) -> str:
    """The entity of the user's words that the value is drawn like without being it; "" when there is none."""
    shown = str(leaf.value)
    if shown.isascii() and all(e.text.isascii() for e in known.words.anchor.entities):
        return ""
    return next((e.text for e in known.words.anchor.entities if is_twin(shown, e.text)), "")


def _nearest(known: Known, leaf: Leaf) -> str:
    """The entity of the words that is of the value's kind, for the person to compare; "" when they named none."""
    kind = "name" if leaf.kind == "text" else leaf.kind
    return next((e.text for e in known.words.anchor.entities if e.kind == kind), "")
