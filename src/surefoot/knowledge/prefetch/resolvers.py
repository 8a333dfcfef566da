"""Which tool resolves a reference, in which argument, and what is refused before any call.

Pure over the declarations of the tools. Source: spec/primitives.md, 3.1 and 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from surefoot.core.parse.schema import is_open, properties_of, required_of, types_of
from surefoot.core.parse.validate import validate
from surefoot.knowledge.prefetch.files import is_network_path
from surefoot.knowledge.prefetch.spans import LONGEST_REFERENCE
from surefoot.knowledge.prefetch.urls import has_user_info, without_secrets
from surefoot.types.decisions import Ask, Deny
from surefoot.types.errors import ConfigError
from surefoot.types.prehydration import (
    BUILT_IN_RESOLVERS,
    NEEDS_APPROVAL,
    TIMED_OUT,
    PreHydrationConfig,
    Reference,
    Resolver,
)
from surefoot.types.tools import Catalogue, ToolSpec

NO_TOOL = "No resolution tool configured"
NO_RESULT = "Resolution returned no correlated result"
NOT_TEXT = "not text"
EXHAUSTED = "Token budget exhausted"

_BIDIRECTIONAL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_USUAL_ARGUMENT = {"url": "url", "file": "path"}
_LAST_ARGUMENT = "input"


@dataclass(frozen=True, slots=True)
class Lookup:
    """How one reference type is resolved: a call of `tool` with the value in `argument`."""

    tool: str
    argument: str


Lookups = Mapping[str, Lookup]
"""Reference type -> how it is resolved."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that resolves the reference at `place`; it goes the way of every other call, with origin `prefetch`."""

    call_id: str
    place: int
    ref: Reference
    tool: str
    arguments: Mapping[str, object]


def lookups(config: PreHydrationConfig, catalogue: Catalogue) -> Lookups:
    """How each type is resolved with these tools; to be asked once, before a run starts.

    Raises `ConfigError` for a tool that is unknown, that may change something, or that has no argument for the value.
    """
    by_default = dict(config.resolution_tools) == dict(BUILT_IN_RESOLVERS)
    made: dict[str, Lookup] = {}
    for ref_type in config.resolution_tools:
        resolver = config.resolver(ref_type)
        if resolver is None:
            continue
        spec = catalogue.get(resolver.tool)
        if spec is None and by_default:
            continue
        made[ref_type] = _lookup(ref_type, resolver, spec, catalogue)
    return made


def refusal(ref: Reference, made: Lookups) -> str:
    """Why a reference is not resolved, before any call; "" when it is to be."""
    if ref.refusal:
        return ref.refusal
    if ref.type not in made:
        return NO_TOOL
    if len(ref.value) > LONGEST_REFERENCE:
        return f"refused: longer than {LONGEST_REFERENCE} characters"
    if _BIDIRECTIONAL.search(ref.value):
        return "refused: bidirectional control characters"
    if ref.type == "url" and has_user_info(ref.value):
        return "refused: user name or password in the url"
    if ref.type == "file" and is_network_path(ref.value):
        return "refused: a path on another machine"
    return ""


def examined(references: Sequence[Reference], made: Lookups, catalogue: Catalogue) -> tuple[Reference, ...]:
    """The references as they are kept: one that is refused, also by its tool's schema, says why, not its secrets."""
    return tuple(
        replace(ref, value=without_secrets(ref.value), refusal=why)
        if (why := refusal(ref, made) or _fault(ref, made[ref.type], catalogue))
        else ref
        for ref in references
    )


def _fault(ref: Reference, lookup: Lookup, catalogue: Catalogue) -> str:
    spec = catalogue.get(lookup.tool)
    errors = validate({lookup.argument: ref.value}, spec.parameters).errors if spec else ()
    return f"refused: {'; '.join(f'{error.path}: {error.message}' for error in errors)}" if errors else ""


def planned(references: Sequence[Reference], made: Lookups, *, prefix: str = "prehydrate_") -> tuple[PlannedCall, ...]:
    """The calls that resolve references, in their order; those that are refused have none.

    A call is named by the place of its reference, from 0. Names must be unique in a run, so a later message of the
    user takes another prefix.
    """
    return tuple(
        PlannedCall(f"{prefix}{at}", at, ref, made[ref.type].tool, {made[ref.type].argument: ref.value})
        for at, ref in enumerate(references)
        if not refusal(ref, made)
    )


def told(decision: Ask | Deny) -> str:
    """What the gate's word means for a reference: pre-hydration never waits for a person."""
    match decision:
        case Ask():
            return NEEDS_APPROVAL
        case Deny(reason) if reason in (TIMED_OUT, NEEDS_APPROVAL):
            return reason
        case Deny(reason):
            return f"denied by policy: {reason}"


def _lookup(ref_type: str, resolver: Resolver, spec: ToolSpec | None, catalogue: Catalogue) -> Lookup:
    field = f"resolution_tools.{ref_type}"
    if spec is None:
        known = ", ".join(catalogue.names[:20]) or "none"
        raise ConfigError(field, resolver.tool, f"there is no such tool; there are: {known}")
    if spec.effect != "read":
        raise ConfigError(
            field, spec.name, f'its effect is "{spec.effect}"; only a tool with effect="read" may resolve references'
        )
    for argument in _candidates(ref_type, resolver, spec):
        if _fits(spec, argument):
            return Lookup(spec.name, argument)
    wanted = f"{resolver.argument} as its text argument" if resolver.argument else "one argument for the value"
    raise ConfigError(
        field,
        spec.name,
        f"it cannot be called with {wanted} and nothing else; name the tool's text argument in Resolver",
    )


def _candidates(ref_type: str, resolver: Resolver, spec: ToolSpec) -> tuple[str, ...]:
    """The arguments that may take the value, the best first."""
    if resolver.argument is not None:
        return (resolver.argument,)
    properties = properties_of(spec.parameters)
    texts = [name for name in _needed(spec) if name in properties and _takes_text(spec, name)]
    usual = [_USUAL_ARGUMENT[ref_type]] if ref_type in _USUAL_ARGUMENT else []
    return (*(texts if len(texts) == 1 else ()), *usual, _LAST_ARGUMENT)


def _needed(spec: ToolSpec) -> tuple[str, ...]:
    return tuple(name for name in required_of(spec.parameters) if name not in spec.injected)


def _takes_text(spec: ToolSpec, name: str) -> bool:
    types = types_of(properties_of(spec.parameters)[name], spec.parameters)
    return not types or "string" in types


def _fits(spec: ToolSpec, argument: str) -> bool:
    """Whether a text under that name is all that the tool needs."""
    if argument in spec.injected or any(name != argument for name in _needed(spec)):
        return False
    if argument in properties_of(spec.parameters):
        return _takes_text(spec, argument)
    return is_open(spec.parameters)
