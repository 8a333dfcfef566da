"""Which tool resolves a reference, in which argument, and what is refused before any call.

Pure over the declarations of the tools. Source: spec/primitives.md, 3.1 and 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from surefoot.core.parse.schema import is_open, properties_of, required_of, types_of
from surefoot.core.parse.validate import validate
from surefoot.knowledge.prefetch.urls import LONGEST_REFERENCE, has_user_info, is_network_path, without_secrets
from surefoot.types.errors import ConfigError
from surefoot.types.prehydration import BUILT_IN_RESOLVERS, PreHydrationConfig, Reference, Resolver
from surefoot.types.tools import Catalogue, ToolSpec

NO_TOOL = "No resolution tool configured"

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
    kept: list[Reference] = []
    for ref in references:
        if not (why := refusal(ref, made)) and (spec := catalogue.get(made[ref.type].tool)):
            errors = validate({made[ref.type].argument: ref.value}, spec.parameters).errors
            why = f"refused: {'; '.join(f'{error.path}: {error.message}' for error in errors)}" if errors else ""
        kept.append(replace(ref, value=without_secrets(ref.value), refusal=why) if why else ref)
    return tuple(kept)


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


def _lookup(ref_type: str, resolver: Resolver, spec: ToolSpec | None, catalogue: Catalogue) -> Lookup:
    field = f"resolution_tools.{ref_type}"
    if spec is None:
        known = ", ".join(catalogue.names[:20]) or "none"
        raise ConfigError(field, resolver.tool, f"there is no such tool; there are: {known}")
    if spec.effect != "read":
        raise ConfigError(
            field, spec.name, f'its effect is "{spec.effect}"; only a tool with effect="read" may resolve references'
        )
    properties, schema = properties_of(spec.parameters), spec.parameters
    needed = [name for name in required_of(schema) if name not in spec.injected]

    def takes_text(name: str) -> bool:
        types = types_of(properties[name], schema)
        return not types or "string" in types

    def fits(name: str) -> bool:
        """Whether a text under that name is all that the tool needs."""
        if name in spec.injected or any(other != name for other in needed):
            return False
        return takes_text(name) if name in properties else is_open(schema)

    texts = [name for name in needed if name in properties and takes_text(name)]
    usual = (*(texts if len(texts) == 1 else ()), _USUAL_ARGUMENT.get(ref_type, _LAST_ARGUMENT), _LAST_ARGUMENT)
    for argument in usual if resolver.argument is None else (resolver.argument,):
        if fits(argument):
            return Lookup(spec.name, argument)
    wanted = f"{resolver.argument} as its text argument" if resolver.argument else "one argument for the value"
    raise ConfigError(
        field,
        spec.name,
        f"it cannot be called with {wanted} and nothing else; name the tool's text argument in Resolver",
    )
