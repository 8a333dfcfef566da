"""What each value of a call's arguments is to its effect. Source: spec/guard.md, section 4.3, "Role of a leaf"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast, get_args

from surefoot.core.gate import name_words
from surefoot.core.gate.stems import stem, stems, words_of_name
from surefoot.core.gate.values import kind_of
from surefoot.types.guard import Role, ValueKind
from surefoot.types.tools import ToolSpec

Path = tuple[str | int, ...]

SENSITIVE: frozenset[Role] = frozenset({"destination", "object", "amount", "secret"})
"""Roles whose values need a good origin in a call that changes something."""

_NO_DESTINATION: frozenset[Role | None] = frozenset({"content", "selector", "secret"})
_NO_TIME: frozenset[Role | None] = frozenset({"content", "secret"})
_ROLES: frozenset[str] = frozenset(get_args(Role))
_BY_WORD = {role: stems(words) for role, words in name_words.ROLE_WORDS.items()}
_IDS = stems("id ids uuid guid")
_BOUNDS = stems(name_words.BOUND_WORDS)
_CURRENCIES = frozenset(name_words.CURRENCIES.split())
_OLD, _NEW = frozenset(name_words.OLD_WORDS.split()), frozenset(name_words.NEW_WORDS.split())
_TEXTS = frozenset(name_words.TEXT_WORDS.split())
_EDITED = stems(name_words.EDITED_WORDS)
_PAIRED = stems(name_words.PAIRED_WORDS)
_MOST_REFERENCES = 8
_NOTHING: Mapping[str, object] = {}


def role_of(path: Path, value: object, spec: ToolSpec, kind: ValueKind | None = None) -> Role:
    """The role of a leaf by the first that applies: declared, its value's kind, a choice, its name, else its type.

    `kind` is what `kind_of` says of the value, where that is known already.
    """
    keys = [part for part in reversed(path) if isinstance(part, str)]  # the last key first, then those around it
    for key in keys:
        if (declared := spec.roles.get(key)) in _ROLES:
            return cast("Role", declared)  # checked to be one on the line before
    by_name = _by_names(keys)
    match kind or kind_of(value):
        case "email" | "url" | "account" if by_name not in _NO_DESTINATION:
            return "destination"
        case "date" if by_name not in _NO_TIME:
            return "time"
        case _:
            pass
    is_own = not spec.server and spec.origin == "local"  # a foreign schema would make an option of whatever it lists
    if isinstance(value, bool) or (is_own and _is_choice(schema_at(path, spec.parameters), spec.parameters)):
        return "option"
    if _is_currency(keys, value, spec):
        return "option"
    if by_name == "selector" and spec.effect != "read" and _is_bound(keys, value):
        return "amount"
    if isinstance(value, str) and by_name != "destination" and _is_of_edit(keys, spec):
        return "content"
    if by_name is not None:
        return by_name
    return "amount" if isinstance(value, int | float) else "object"


def _is_of_edit(keys: Sequence[str], spec: ToolSpec) -> bool:
    """Whether a text is what an edit takes out of a file or puts into it: the tool has both, and says which file."""
    if not keys or not _side_of_edit(keys[0]) or (spec.declared and spec.effect != "write"):
        return False
    names = _properties(spec.parameters, spec.parameters)
    sides = {name: side for name in names if (side := _side_of_edit(name))}
    has_file = any(not _EDITED.isdisjoint(stems(words_of_name(name)[-1:])) for name in names)
    return len(set(sides.values())) > 1 and has_file


def _side_of_edit(name: str) -> Literal["old", "new", ""]:
    """Which of the two texts of an edit a parameter is called."""
    first, *rest = words_of_name(name) or ("",)
    if rest and not set(rest) <= _TEXTS:
        return ""
    return "old" if first in _OLD else "new" if first in _NEW else ""


def _is_currency(keys: Sequence[str], value: object, spec: ToolSpec) -> bool:
    """Whether a value is a currency's code as one of a pair (from, to): what is counted in, not where it goes.

    The tool has to have both, and must not be one that writes or sends: people, channels and files are called so too.
    """
    if not isinstance(value, str) or value not in _CURRENCIES or not keys:
        return False
    if spec.declared and spec.effect in ("write", "communicate"):
        return False
    pairs = [name for name in _properties(spec.parameters, spec.parameters) if _is_paired(name)]
    return _is_paired(keys[0]) and len(pairs) > 1


def _is_paired(name: str) -> bool:
    """Whether a name is one side of a pair; a bare "to" and "from" are rather people."""
    said = words_of_name(name)
    words = [word for word in said if word not in ("currency", "code")]
    return bool(words) and stem(words[-1]) in _PAIRED and said not in (("to",), ("from",))


def _is_bound(keys: Sequence[str], value: object) -> bool:
    """Whether a number is a limit that a call with an effect sets; in a read it only cuts the list."""
    return kind_of(value) == "number" and any(not _BOUNDS.isdisjoint(stems(words_of_name(key))) for key in keys)


def is_id(name: str) -> bool:
    """Whether a field or parameter is called an id."""
    words = words_of_name(name)
    return bool(words) and stem(words[-1]) in _IDS


def role_of_name(name: str) -> Role | None:
    """What a parameter's name says, the last word first; None if nothing. A name that ends in id is an object."""
    if is_id(name):
        return "object"
    words = words_of_name(name)
    for word in reversed(words):
        for role in name_words.ROLE_WORDS:
            if stem(word) in _BY_WORD[role]:
                return role
    return None


def _by_names(keys: Sequence[str]) -> Role | None:
    for key in keys:
        if role := role_of_name(key):
            return role
    return None


def name_of(path: Path) -> str:
    """The last name on a path: an element of a list is called like its list."""
    return next((part for part in reversed(path) if isinstance(part, str)), "")


def is_sensitive(role: Role, path: Path, spec: ToolSpec) -> bool:
    """Whether a leaf needs a good origin: by its role, or because the declaration lists its parameter."""
    return role in SENSITIVE or any(part in spec.sensitive for part in path)


def leaves(arguments: Mapping[str, object], spec: ToolSpec | None = None) -> tuple[tuple[Path, object], ...]:
    """Every value of the arguments that is no list and no mapping, with its path, in order; null and empty left out.

    A key inside a mapping that the tool's schema does not name is data as well: it comes with the path of its mapping.
    Without a spec every key below the parameters counts as such.
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
            here = _mapping(_properties(here, root).get(part))
        else:
            here = next((_mapping(s["items"]) for s in _branches(here, root) if "items" in s), _NOTHING)
    return here


def is_named(path: Path, spec: ToolSpec) -> bool:
    """Whether the schema of a tool names the last key of a path; a place in a list needs no name."""
    last = path[-1]
    return isinstance(last, int) or last in _properties(schema_at(path[:-1], spec.parameters), spec.parameters)


def _properties(schema: Mapping[str, object], root: Mapping[str, object]) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for branch in _branches(schema, root):
        found |= _mapping(branch.get("properties"))
    return found


def _is_choice(schema: Mapping[str, object], root: Mapping[str, object]) -> bool:
    """Whether the schema lets only listed values pass: an enumeration, a constant, a truth value."""
    branches = [b for b in _branches(schema, root) if b.get("type") != "null"]
    return bool(branches) and all("enum" in b or "const" in b or b.get("type") == "boolean" for b in branches)


def _branches(schema: Mapping[str, object], root: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The schemas without alternatives of which one is made, references followed; circles are left at a depth."""
    found: list[Mapping[str, object]] = []
    open_ones = [(schema, 0)]
    while open_ones:
        here, depth = open_ones.pop()
        here = _resolved(here, root)
        parts = [part for key in ("anyOf", "oneOf", "allOf") for part in _list(here.get(key))]
        if parts and depth < _MOST_REFERENCES:
            open_ones += [(_mapping(part), depth + 1) for part in parts]
        if not parts or here.keys() & {"properties", "enum", "items"}:
            found.append(here)
    return found


def _resolved(schema: Mapping[str, object], root: Mapping[str, object]) -> Mapping[str, object]:
    for _ in range(_MOST_REFERENCES):
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        target: object = root
        for part in reference[2:].split("/"):
            target = _mapping(target).get(part)
        schema = _mapping(target)
    return schema


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}  # a JSON object has text keys


def _list(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()  # JSON
