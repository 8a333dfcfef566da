"""What each value of a call's arguments is to its effect, and the sums of money among them.

Source: spec/guard.md, section 4.3.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Literal, cast, get_args

from surefoot.core.text.json import as_object
from surefoot.core.text.numerals import number
from surefoot.core.text.values import kind_of, norm_of
from surefoot.core.text.words import late, rows, stem, stems_of, stems_of_name, word_set, words, words_of_name
from surefoot.types.dataclass import dataclass
from surefoot.types.inner import Sum
from surefoot.types.rules import Role, ValueKind
from surefoot.types.tools import ToolSpec

Path = tuple[str | int, ...]

SENSITIVE: frozenset[Role] = frozenset({"destination", "object", "amount", "secret"})
"""Roles whose values need a good origin in a call that changes something."""

_ROLES: frozenset[str] = frozenset(get_args(Role))
_MOST_REFERENCES = 8
_NOTHING: Mapping[str, object] = {}


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value of a call's arguments: where it stands, what it is to the effect, and its normal form."""

    path: Path
    value: object
    role: Role
    kind: ValueKind
    norm: str

    @property
    def name(self) -> str:
        """The last name on its path."""
        return name_of(self.path)


def name_of(path: Path) -> str:
    """The last name on a path: an element of a list is called like its list."""
    return next((part for part in reversed(path) if isinstance(part, str)), "")


def leaves_of(arguments: Mapping[str, object], spec: ToolSpec) -> list[Leaf]:
    """Every leaf of a call of that tool, in order."""
    found: list[Leaf] = []
    for path, value in leaves(arguments, spec):
        kind = kind_of(value)
        role = role_of(path, value, spec, kind)
        if role == "destination" and kind == "number":  # the number of an account
            kind = kind_of(str(value))
        found.append(Leaf(path, value, role, kind, norm_of(value, kind)))
    return found


def role_of(path: Path, value: object, spec: ToolSpec, kind: ValueKind | None = None) -> Role:
    """The role of a leaf by the first that applies: declared, its value's kind, a choice, its name, else its type.

    `kind` is what `kind_of` says of the value, where that is known already.
    """
    keys = [part for part in reversed(path) if isinstance(part, str)]  # the last key first, then those around it
    for key in keys:
        if (declared := spec.roles.get(key)) in _ROLES:
            return cast("Role", declared)  # checked to be one on the line before
    by_name: Role | None = next((role for key in keys if (role := role_of_name(key))), None)
    kind = kind or kind_of(value)
    if kind in ("email", "url", "account") and by_name not in ("content", "selector", "secret"):
        return "destination"
    if kind == "date" and by_name not in ("content", "secret"):
        return "time"
    is_own = not spec.server and spec.origin == "local"  # a foreign schema would make an option of whatever it lists
    told = _branches(schema_at(path, spec.parameters), spec.parameters) if is_own else []
    choices = [one for one in told if one.get("type") != "null"]
    is_choice = choices and all("enum" in one or "const" in one or one.get("type") == "boolean" for one in choices)
    if isinstance(value, bool) or is_choice:
        return "option"
    if isinstance(value, str) and value in word_set("names.currencies") and _is_of_pair(keys, spec):
        return "option"
    is_bound = kind == "number" and any(not stems_of("names.bound").isdisjoint(stems_of_name(key)) for key in keys)
    if by_name == "selector" and spec.effect != "read" and is_bound:  # in a read it only cuts the list
        return "amount"
    if isinstance(value, str) and by_name != "destination" and keys and _side_of_edit(keys[0]) and _edits(spec):
        return "content"
    is_count = kind == "number" and path[-1:] == tuple(keys[:1])  # in a list they would be ids
    if by_name == "destination" and is_count and word_set("names.heads").issuperset(words_of_name(keys[0])[-1:]):
        return "amount"
    if by_name is not None:
        return by_name
    return "amount" if isinstance(value, int | float) else "object"


def _edits(spec: ToolSpec) -> bool:
    """Whether a tool takes one text out of a file and puts another into it: it has both, and says which file."""
    if spec.declared and spec.effect != "write":
        return False
    names = _properties(spec.parameters, spec.parameters)
    has_file = any(stem(word) in stems_of("names.edited") for name in names for word in words_of_name(name)[-1:])
    return has_file and {"old", "new"} <= {_side_of_edit(name) for name in names}


@lru_cache(maxsize=4096)
def _side_of_edit(name: str) -> Literal["old", "new", ""]:
    """Which of the two texts of an edit a parameter is called."""
    first, *rest = words_of_name(name) or ("",)
    if not word_set("names.text").issuperset(rest):
        return ""
    return "old" if first in word_set("names.old") else "new" if first in word_set("names.new") else ""


def _is_of_pair(keys: Sequence[str], spec: ToolSpec) -> bool:
    """Whether a currency's code is one of a pair (from, to): what is counted in, not where it goes.

    A tool that writes or sends has none: people, channels and files are called so too.
    """
    if not keys or (spec.declared and spec.effect in ("write", "communicate")):
        return False
    return _is_paired(keys[0]) and sum(map(_is_paired, _properties(spec.parameters, spec.parameters))) > 1


def _is_paired(name: str) -> bool:
    """Whether a name is one side of a pair; a bare "to" and "from" are rather people."""
    said = words_of_name(name)
    named = [word for word in said if word not in ("currency", "code")]
    return bool(named) and stem(named[-1]) in stems_of("names.paired") and said not in (("to",), ("from",))


def is_id(name: str) -> bool:
    """Whether a field or parameter is called an id."""
    named = words_of_name(name)
    return bool(named) and stem(named[-1]) in stems_of("names.id")


@lru_cache(maxsize=4096)
def role_of_name(name: str) -> Role | None:
    """What a parameter's name says, the last word first; None if nothing. A name that ends in id is an object.

    In `invoice_number` the last word says nothing: what has a label is no amount. `ticket_number` may be how many.
    """
    if is_id(name):
        return "object"
    *before, last = words_of_name(name) or ("",)
    labels = stems_of("labels") - stems_of("names.quantity")
    is_label = last in ("number", "num", "nr", "no") and stem(" ".join(before[-1:])) in labels
    said = (rows("roles").get(stem(word)) for word in reversed(before if is_label else (*before, last)))
    told = cast("Role | None", next((roles[0] for roles in said if roles), None))  # rows are roles
    return told or ("object" if is_label else None)


def is_sensitive(role: Role, path: Path, spec: ToolSpec) -> bool:
    """Whether a leaf needs a good origin: by its role, or because the declaration lists its parameter."""
    return role in SENSITIVE or any(part in spec.sensitive for part in path)


def leaves(arguments: Mapping[str, object], spec: ToolSpec | None = None) -> tuple[tuple[Path, object], ...]:
    """Every value of the arguments that is neither a list nor a mapping, with its path, in order, but null and empty.

    A key inside a mapping that the tool's schema does not name is data as well, with the path of its mapping.
    """
    found: list[tuple[Path, object]] = []
    open_ones: list[tuple[Path, object]] = [((name,), arguments[name]) for name in reversed(tuple(arguments))]
    while open_ones:
        path, value = open_ones.pop()
        if isinstance(value, Mapping):
            entries = cast("Mapping[object, object]", value)  # JSON: the keys are text
            known = _properties(schema_at(path, spec.parameters), spec.parameters) if spec else _NOTHING
            for key in reversed(tuple(entries)):
                open_ones.append(((*path, str(key)), entries[key]))
                if str(key) not in known and str(key).strip():
                    open_ones.append((path, str(key)))
        elif isinstance(value, list | tuple):
            items = cast("Sequence[object]", value)
            open_ones += [((*path, at), items[at]) for at in reversed(range(len(items)))]
        elif value is not None and not (isinstance(value, str) and not value.strip()):
            found.append((path, value))
    return tuple(found)


def schema_at(path: Path, root: Mapping[str, object]) -> Mapping[str, object]:
    """The schema of the value at a path, references followed; empty where the schema says nothing of it."""
    here = root
    for part in path:
        if isinstance(part, str):
            here = as_object(_properties(here, root).get(part)) or {}
        else:
            here = next((as_object(s["items"]) or {} for s in _branches(here, root) if "items" in s), _NOTHING)
    return here


def as_meant(value: object, path: Path, spec: ToolSpec, *, follows: bool = True) -> object:
    """A value of a call as it is meant: texts in NFC, 900.0 as 900, and what is left out as the schema's default.

    `follows`: also where the default stands behind a reference.
    """
    match value:
        case str():
            return unicodedata.normalize("NFC", value)
        case float() if value.is_integer():
            return int(value)
        case Mapping():
            held = as_object(cast("object", value)) or {}
            here = schema_at(path, spec.parameters)
            schemas = [one for one in _branches(here, spec.parameters) if "properties" in one] if follows else [here]
            named = as_object(schemas[0].get("properties")) if len(schemas) == 1 else None  # of several nobody knows
            tellings = {key: as_object(one) or {} for key, one in (named or {}).items()}
            usual = {key: told["default"] for key, told in tellings.items() if "default" in told}
            return {key: as_meant(one, (*path, key), spec, follows=follows) for key, one in {**usual, **held}.items()}
        case list() | tuple():
            parts = cast("Sequence[object]", value)
            return [as_meant(one, (*path, at), spec, follows=follows) for at, one in enumerate(parts)]
        case _:
            return value


def is_named(path: Path, spec: ToolSpec) -> bool:
    """Whether the schema of a tool names the last key of a path; a place in a list needs no name."""
    last = path[-1]
    return isinstance(last, int) or last in _properties(schema_at(path[:-1], spec.parameters), spec.parameters)


def _properties(schema: Mapping[str, object], root: Mapping[str, object]) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for branch in _branches(schema, root):
        found |= as_object(branch.get("properties")) or {}
    return found


def _branches(schema: Mapping[str, object], root: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The schemas without alternatives of which one is made, references followed; circles are left at a depth."""
    found: list[Mapping[str, object]] = []
    open_ones = [(schema, 0)]
    while open_ones:
        here, depth = open_ones.pop()
        for _ in range(_MOST_REFERENCES):
            reference = here.get("$ref")
            if not isinstance(reference, str) or not reference.startswith("#/"):
                break
            here = root
            for part in reference[2:].split("/"):
                here = as_object(here.get(part)) or {}
        listed = (here.get(key) for key in ("anyOf", "oneOf", "allOf"))
        parts = [part for one in listed if isinstance(one, list | tuple) for part in cast("Sequence[object]", one)]
        if parts and depth < _MOST_REFERENCES:
            open_ones += [(as_object(part) or {}, depth + 1) for part in parts]
        if not parts or here.keys() & {"properties", "enum", "items"}:
            found.append(here)
    return found


_CURRENCY = late(r"[^\W\d_]+|[$€£¥₹]")


def sums_of(values: Iterable[tuple[str, Role, object]]) -> tuple[Sum, ...]:
    """The sums of money among the named values of a call. A quantity, a count and a share are none."""
    given = [(stems_of_name(name), role, str(value)) for name, role, value in values]
    named = frozenset(one for said, _, text in given if "currency" in said for one in currencies_in(text) or {text})
    amounts = [(said, text) for said, role, text in given if role == "amount"]
    counts, prices = stems_of("names.quantity"), stems_of("names.price")
    often = [decimal_of(text) for said, text in amounts if not said.isdisjoint(counts)]
    times = max((Decimal(1), *(one for one in often if one is not None)))
    return tuple(
        Sum(decimal_of(text), currencies_in(text) or named, Decimal(1) if said.isdisjoint(prices) else times)
        for said, text in amounts
        if said.isdisjoint(counts)
    )


def currencies_in(text: str) -> frozenset[str]:
    """The currencies, by their codes of ISO 4217, that a text names; the sign of one may stand for several."""
    found: set[str] = set()
    for word in _CURRENCY.findall(text):
        is_code = word.upper() in word_set("names.currencies")
        found.update((word.upper(),) if is_code else words(f"currency.{word.lower().removesuffix('s')}"))
    return frozenset(found)


def decimal_of(text: str) -> Decimal | None:
    """The exact value of a number; None for what is none, or has no end."""
    try:
        value = Decimal(number(text))
    except InvalidOperation:
        return None
    return value if value.is_finite() else None
