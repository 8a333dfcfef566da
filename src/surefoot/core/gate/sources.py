"""What the gate learns in a run: a result becomes a source of values, a person's yes makes values the user's.

Source: spec/guard.md, sections 4.6 and 4.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from surefoot.core.gate.anchored import is_another, named_in, opened_by
from surefoot.core.gate.effects import guess
from surefoot.core.gate.forms import holds
from surefoot.core.gate.index import Atom, index_of
from surefoot.core.gate.known import Known, Source
from surefoot.core.gate.late import Late
from surefoot.core.gate.origins import GOOD, Leaf, evidence_of
from surefoot.core.gate.roles import is_sensitive, leaves
from surefoot.core.gate.sinks import is_located
from surefoot.types.guard import Role
from surefoot.types.tools import Effect, ToolResult, ToolSpec

Shown = tuple[tuple[Role, str, str], ...]
"""Values for which a yes holds too: role, as shown, normal form."""

MOST_SHOWN = 50

_ONE_BY_ONE: frozenset[Effect | None] = frozenset(("transact", "delete", None))


def having_read(
    known: Known, call_id: str, spec: ToolSpec, arguments: Mapping[str, object], result: ToolResult
) -> Known:
    """What is known after a call has given its result.

    Of a result that was cut, what is on record counts, as running text: nothing of it is ever anchored.
    """
    found = index_of(result.content, structured=result.structured)
    located = not result.is_error and is_located(known, spec, arguments)
    named = () if result.is_error else named_in(known.words, found)
    source = Source(call_id, spec.name, found, spec, named, is_located=located)
    doubled = known.doubled | _doubled_by(known, source)
    earlier = known.sources
    if doubled != known.doubled:
        earlier = tuple(replace(one, opened=opened_by(one, doubled)) for one in earlier)
    sources = (*earlier, replace(source, opened=opened_by(source, doubled)))
    return replace(known, sources=sources, doubled=doubled, fields=known.fields.with_result(len(earlier), found.atoms))


def _doubled_by(known: Known, source: Source) -> frozenset[str]:
    """The names that stand for more than one thing, now that this result is there.

    What an own tool gives back of what it has just made or sent is no second thing.
    """
    if not source.named or _is_echo(known, source):
        return frozenset()
    found: set[str] = set()
    for one in (*known.sources, source):
        if one.named and not _is_echo(known, one):
            found |= {
                name
                for number, names in one.named
                for other, others in source.named
                for name in names & others
                if is_another(
                    one.index.records[number], source.index.records[other], is_one_tool=one.name == source.name
                )
            }
    return frozenset(found)


def _is_echo(known: Known, source: Source) -> bool:
    spec = source.spec
    return spec is not None and not spec.is_foreign and guess(spec, known.config.guess).effect not in ("read", None)


def endorsed_by(
    known: Known, spec: ToolSpec, arguments: Mapping[str, object], shown: Shown = ()
) -> tuple[tuple[Role, str], ...]:
    """The values that a person's yes to a call makes the user's, for their roles.

    These are its sensitive leaves, its contents as a whole, and the set that was `shown` with the question. A yes to
    delete something endorses nothing, and no secret ever is.
    """
    if guess(spec, known.config.guess).effect == "delete":
        return ()
    found: dict[tuple[Role, str], None] = {}
    for path, value in leaves(arguments, spec):
        leaf = Leaf.of(path, value, spec)
        if leaf.role == "secret" or not (leaf.role == "content" or is_sensitive(leaf.role, path, spec)):
            continue
        found[leaf.role, leaf.norm] = None
    return tuple(dict.fromkeys((*found, *((role, norm) for role, _, norm in shown))))


def set_of(known: Known, spec: ToolSpec, arguments: Mapping[str, object]) -> Shown:
    """What else a yes to a call is for, where the words speak of a set ("all", "each"): to be shown with the question.

    That is every value of the field that a destination or object came from. No set is paid or deleted with one yes,
    nor given to a tool of which nobody knows what it does; more values than a person reads are no set either.
    """
    effect = guess(spec, known.config.guess)
    if "set" not in known.words.anchor.cues or not effect.classes(to_somebody=False).isdisjoint(_ONE_BY_ONE):
        return ()
    found: dict[tuple[Role, str], str] = {}
    ours: set[tuple[Role, str]] = set()
    for path, value in leaves(arguments, spec):
        leaf = Leaf.of(path, value, spec)
        ours.add((leaf.role, leaf.norm))
        if leaf.role in ("destination", "object"):
            found.update({(leaf.role, atom.norm): atom.text for atom in _beside(known, spec, leaf)})
    shown: Shown = tuple((role, text, norm) for (role, norm), text in found.items() if (role, norm) not in ours)
    return shown if len(shown) <= MOST_SHOWN else ()


def _beside(known: Known, spec: ToolSpec, leaf: Leaf) -> tuple[Atom, ...]:
    """The values of the field that a leaf came from: same tool, same field."""
    evidence = evidence_of(known, spec, leaf)
    if evidence.origin in GOOD and evidence.origin != "declared":
        return ()
    number = next(iter(known.fields.having(leaf.norm)), None)
    if number is None:
        return _files_beside(known, leaf)
    source = known.sources[number]
    field = source.atom(leaf.norm)[0].field
    same_tool = (one for one in known.sources if one.name == source.name)
    return tuple(a for one in same_tool for record in one.index.records for a in record.atoms if a.field == field)


def _files_beside(known: Known, leaf: Leaf) -> tuple[Atom, ...]:
    """The files of the kind that the words name, beside a file in running text: "move all .txt files"."""
    kind = leaf.norm.rpartition(".")[2]
    if not kind.isalnum() or not holds(known.words.anchor.text, kind):
        return ()
    source = next((one for one in reversed(known.sources) if one.index.says(leaf.norm)), None)
    names = (m[0] for m in _FILE.finditer(source.index.text)) if source else ()
    return tuple(Atom("", name, f"text:{name}", is_text=True) for name in names if name.endswith(f".{kind}"))


_FILE = Late(r"(?<![\w./\\-])[\w./-]+\.\w+(?![\w/-])")
