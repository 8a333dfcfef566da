"""`surefoot check --suggest`: a page of declarations, from what the schemas and names of tools say.

What is declared stands there plain, a guess with its reason; one that might let more pass than without it is a comment,
for a person to say. So a page that nobody has read opens nothing. Foreign names and texts are escaped, on one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from surefoot.core.gate.effects import bare_name, guess, is_called_directory, may_only_read
from surefoot.core.gate.roles import is_id, role_of, role_of_name
from surefoot.core.text.json import as_object, at, clean
from surefoot.core.text.words import stems_of, stems_of_name, words_of_name
from surefoot.telling.text import cut, one_line, visible
from surefoot.types.tools import ToolSpec

HEAD = """\
# What these tools are to the gate: for `--rules FILE`, or `rules_file`. Written from their names and schemas: read it
# before you use it. A line without a comment is declared already, a comment says why a line is a guess. A line that is
# commented out may let more pass without a question: uncomment it if you know that it is true.
"""
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN = ("egress", "private", "directory", "sensitive", "trusted_fields", "identity")
_DEEPEST = 4
_LONGEST = 100
_SAMPLES: Mapping[str, object] = {"integer": 1, "number": 1, "boolean": True}


def suggest(specs: Iterable[ToolSpec]) -> str:
    """The page for some tools, as TOML that `declared_of` reads."""
    return "\n".join([HEAD, *("\n".join([*_table(spec), ""]) for spec in specs if clean(spec.name) == spec.name)])


def _table(spec: ToolSpec) -> Iterator[str]:
    yield f"[tools.{_quoted(spec.name, may_be_bare=True)}]"
    if said := one_line(spec.description):
        yield f"# says of itself: {cut(said, _LONGEST)}"
    yield _effect(spec)
    for name in _PLAIN:
        if (value := getattr(spec, name)) or (value is False and name == "directory"):
            yield f"{name} = {json.dumps(value) if isinstance(value, bool) else _array(value)}"
    taken = guess(spec)
    if taken.egress and not spec.egress:
        yield "egress = true  # a guess: a parameter is called like a link, so a read may carry something out"
    yield from _believed(spec)
    roles = list(_roles(spec)) if guess(spec, "all").effect != "read" or taken.egress or spec.roles else []
    if roles:
        yield f"[tools.{_quoted(spec.name, may_be_bare=True)}.roles]"
        yield from roles


def _effect(spec: ToolSpec) -> str:
    """The effect; a guess counts where nothing is laxer for it: not a read, and of no foreign tool."""
    if spec.declared:
        return f'effect = "{spec.effect}"'
    taken, said = guess(spec), guess(spec, "all")
    if said.effect is None:
        return '# effect = "EFFECT"  # its name says nothing: read, write, communicate, transact or delete'
    named = (word for word in words_of_name(bare_name(spec)) if guess(ToolSpec(word, "", {}), "all").own == said.effect)
    why = (
        f"a guess: {_quoted(word)} in its name" if (word := next(named, "")) else "a guess: its name and its parameters"
    )
    if spec.is_foreign:
        return f'# effect = "{said.effect}"  # {why}; its server may do anything, and with this line nobody is asked'
    if said.effect == "read":
        return f'# effect = "read"  # {why}; only if it changes nothing'
    if taken.effect != taken.own or may_only_read(spec, taken):
        return f'# effect = "{said.effect}"  # {why}; in doubt, which without this line is a question'
    return f'effect = "{said.effect}"  # {why}'


def _believed(spec: ToolSpec) -> Iterator[str]:
    """What of the results might be believed; only a person can know that."""
    if guess(spec, "all").effect != "read":
        return
    last = {path: path.rpartition(".")[2] for path in _fields(spec.output or spec.returns)}
    if is_called_directory(spec):
        if spec.directory is None:
            now = "a guess: its name" if spec.is_foreign else "its name says so, which counts until you say false"
            yield f"# directory = true  # {now}; only if nobody else adds records"
        named = [n for n in last.values() if not stems_of_name(n).isdisjoint(stems_of("names.identity"))]
        if not spec.identity:
            why = "its schema" if named else "as usual"
            yield f"# identity = {_array(named or ['name'])}  # a guess: {why}; the fields that say whose record it is"
    if not spec.trusted_fields and (ids := [path for path, name in last.items() if is_id(name)]):
        yield f"# trusted_fields = {_array(ids)}  # a guess: ids; only if nobody else can choose them"


def _roles(spec: ToolSpec) -> Iterator[str]:
    """A line for each parameter. A guess is what the gate takes it for now; as a line it would hold for every value."""
    yield from (
        f'{_quoted(name, may_be_bare=True)} = "{role}"' for name, role in spec.roles.items() if clean(name) == name
    )
    for name, schema in _properties(spec.parameters).items():
        types = set(_types(schema))
        sample = _SAMPLES.get(types.pop(), "x") if len(types) == 1 else "x"
        why = "its name" if role_of_name(name) else "its type"
        if name not in spec.roles and clean(name) == name:
            yield f'# {_quoted(name, may_be_bare=True)} = "{role_of((name,), sample, spec)}"  # a guess: {why}'


def _types(schema: object, depth: int = 0) -> Iterator[str]:
    """The types of the values that a schema lets pass, of lists those inside; "any" for what is not so simple."""
    held = as_object(schema) or {}
    listed = held.get("anyOf") or held.get("oneOf")
    if depth > _DEEPEST or held.keys() & {"$ref", "allOf", "enum", "const"}:
        yield "any"
    elif isinstance(listed, list):
        for one in cast("list[object]", listed):
            yield from _types(one, depth + 1)
    elif held.get("type") == "array":
        yield from _types(held.get("items"), depth + 1)
    elif (told := held.get("type")) != "null":
        yield told if isinstance(told, str) else "any"


def _properties(schema: object) -> Mapping[str, object]:
    return as_object(at(schema, "properties")) or {}


def _fields(schema: object, at: str = "", depth: int = 0) -> Iterator[str]:
    """The paths of fields of results, as `trusted_fields` names them: `*` is a place in a list, but at the start."""
    held, inside = as_object(schema) or {}, _properties(schema)
    if depth > _DEEPEST:
        return
    for name, one in inside.items():
        yield from _fields(one, f"{at}.{name}" if at else name, depth + 1)
    if "items" in held:
        yield from _fields(held["items"], at and f"{at}.*", depth + 1)
    elif at and not inside:
        yield at


def _array(texts: Iterable[str]) -> str:
    return f"[{', '.join(_quoted(text) for text in texts if clean(text) == text)}]"


def _quoted(text: str, *, may_be_bare: bool = False) -> str:
    """A text as TOML writes it, with nothing hidden in it."""
    if may_be_bare and _BARE.fullmatch(text):
        return text
    return visible(json.dumps(text, ensure_ascii=False))
