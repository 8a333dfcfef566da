"""From drafts to calls: names resolved, arguments unwrapped and validated; what fails becomes a fault in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from surefoot.core.parse.drafts import Draft, Reading
from surefoot.core.parse.offered import unwrapped
from surefoot.core.parse.schema import type_name
from surefoot.types.reply import Fault, FaultyCall, ParsedCall, ReplyWarning

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
    if draft.fault is not None:
        return FaultyCall(position, draft.fault, draft.name, draft.id)
    offered = reading.offered
    named = offered.find(draft.name)
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
    checked = offered.check(tool, unwrapped(arguments, tool))
    if checked.errors:
        told = "; ".join(map(str, checked.errors))
        fault = Fault("invalid_arguments", f"{told}. Sent: {_cut(arguments)}", tool.name)
        return FaultyCall(position, fault, named.name, draft.id)
    return ParsedCall(
        position, named.name, checked.value, draft.id, draft.objective, checked.coerced, draft.repaired_from
    )


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
