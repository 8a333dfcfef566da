"""From drafts to calls: names resolved, arguments unwrapped and validated; what fails becomes a fault in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from surefoot.core.parse.drafts import Draft, Reading
from surefoot.core.parse.offered import unwrapped, without_escapes
from surefoot.core.parse.schema import properties_of, type_name
from surefoot.types.reply import Fault, FaultKind, FaultyCall, ParsedCall, ReplyWarning
from surefoot.types.tools import ToolSpec

_OF_ARGUMENTS: frozenset[FaultKind] = frozenset({"malformed_json", "malformed_arguments", "args_not_object"})
"""What is wrong with arguments matters only where there is such a tool."""

Settled = tuple[tuple[ParsedCall, ...], tuple[FaultyCall, ...], frozenset[ReplyWarning]]


def settle(drafts: Sequence[Draft], reading: Reading) -> Settled:
    """The good calls and the faulty ones, each with its position in the reply, and what to note."""
    calls: list[ParsedCall] = []
    faulty: list[FaultyCall] = []
    warnings: set[ReplyWarning] = set()
    for position, draft in enumerate(drafts):
        made = _settled(position, draft, reading, warnings)
        if isinstance(made, ParsedCall):
            calls.append(made)
        else:
            faulty.append(made)
    return tuple(calls), tuple(faulty), frozenset(warnings)


def _settled(position: int, draft: Draft, reading: Reading, warnings: set[ReplyWarning]) -> ParsedCall | FaultyCall:
    offered = reading.offered
    named = offered.find(draft.name)
    if draft.fault is not None and (named.known or not named.name or draft.fault.kind not in _OF_ARGUMENTS):
        return FaultyCall(position, draft.fault, draft.name, draft.id)
    if not named.name:
        return FaultyCall(position, Fault("missing_name", "a call has no usable name"), draft.name, draft.id)
    if not named.known:
        fault = Fault("unknown_tool", f"there is no tool {draft.name[:60]!r}", draft.name[:200])
        return FaultyCall(position, fault, draft.name, draft.id)
    if named.corrected:
        warnings.add("name_corrected")
    arguments, tool = draft.arguments, named.tool
    if tool is None:
        return ParsedCall(position, named.name, arguments, draft.id, draft.objective)
    injected = reading.injected.get(tool.name)
    if injected and not injected.isdisjoint(arguments):
        arguments = {key: value for key, value in arguments.items() if key not in injected}
        warnings.add("injected_argument_ignored")
    checked = offered.check(tool, _with_plain_keys(unwrapped(arguments, tool), tool))
    if checked.errors:
        told = "; ".join(map(str, checked.errors))
        fault = Fault("invalid_arguments", f"{told}. Sent: {_cut(arguments)}", tool.name)
        return FaultyCall(position, fault, named.name, draft.id)
    return ParsedCall(position, named.name, checked.value, draft.id, draft.objective, checked.coerced)


def _with_plain_keys(arguments: Mapping[str, object], tool: ToolSpec) -> Mapping[str, object]:
    """The arguments with a key that Markdown has escaped as the schema spells it."""
    if not any("\\" in key for key in arguments):
        return arguments
    spelled = {key: without_escapes(key) for key in arguments}
    known = properties_of(tool.parameters).keys() - arguments.keys()
    return {plain if (plain := spelled[key]) in known else key: value for key, value in arguments.items()}


_MOST_SHOWN = 300


def _cut(arguments: Mapping[str, object]) -> str:
    """What was sent, cut."""
    parts: list[str] = []
    room = _MOST_SHOWN
    for key, value in arguments.items():
        shown = repr(value) if isinstance(value, str | int | float | None) else f"({type_name(value)})"
        parts.append(f"{key[:60]}={shown[:80]}")
        room -= len(parts[-1])
        if room <= 0:
            return f"{', '.join(parts)[:_MOST_SHOWN]}…"
    return ", ".join(parts) or "nothing"
