"""What the gate learns in a run: a result becomes a source of values, a person's yes makes values the user's.

Source: spec/guard.md, sections 4.6 and 4.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from surefoot.core.gate.effects import guess
from surefoot.core.gate.index import index_of
from surefoot.core.gate.known import Known, Source, opened_by
from surefoot.core.gate.origins import GOOD, Leaf, evidence_of
from surefoot.core.gate.roles import is_sensitive, leaves, role_of
from surefoot.core.gate.sinks import is_located
from surefoot.types.guard import Role
from surefoot.types.tools import ToolResult, ToolSpec


def having_read(
    known: Known, call_id: str, spec: ToolSpec, arguments: Mapping[str, object], result: ToolResult
) -> Known:
    """What is known after a call has given its result.

    Of a result that was cut, what is on record counts, as running text: nothing of it is ever anchored.
    """
    found = index_of(result.content, structured=result.structured)
    located = not result.is_error and is_located(known, spec, arguments)
    opened, is_named = (
        (frozenset[int](), False) if result.is_error else opened_by(known.words, found, is_located=located)
    )
    return replace(known, sources=(*known.sources, Source(call_id, spec.name, found, spec, opened, is_named)))


def endorsed_by(known: Known, spec: ToolSpec, arguments: Mapping[str, object]) -> tuple[tuple[Role, str], ...]:
    """The values that a person's yes to a call makes the user's, for their roles.

    These are its sensitive leaves and its contents as a whole. Where the words speak of a set ("all", "each"), a yes to
    one destination or object is one to all values of the field that it came from, as they were shown. A yes to delete
    something endorses nothing, and no secret ever is.
    """
    if guess(spec, known.config.guess).effect == "delete":
        return ()
    found: dict[tuple[Role, str], None] = {}
    for path, value in leaves(arguments, spec):
        leaf = Leaf.of(path, value, role_of(path, value, spec))
        if leaf.role == "secret" or not (leaf.role == "content" or is_sensitive(leaf.role, path, spec)):
            continue
        found[leaf.role, leaf.norm] = None
        if "set" in known.words.anchor.cues and leaf.role in ("destination", "object"):
            found.update(((leaf.role, norm), None) for norm in set_of(known, spec, leaf))
    return tuple(found)


def set_of(known: Known, spec: ToolSpec, leaf: Leaf) -> tuple[str, ...]:
    """The values of the field that a leaf came from: same tool, same field, in the newest result that holds it."""
    evidence = evidence_of(known, spec, leaf)
    if evidence.origin in GOOD and evidence.origin != "declared":
        return ()
    for source in reversed(known.sources):
        hit = source.atom(leaf.norm)
        if hit is not None:
            field = hit[0].field
            found = (
                a.norm
                for s in known.sources
                if s.name == source.name
                for r in s.index.records
                for a in r.atoms
                if a.field == field
            )
            return tuple(dict.fromkeys(found))
    return ()
