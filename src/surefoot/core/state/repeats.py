"""What an identical call gets: the result that is known, or a run of its own.

A result answers an identical call as long as no call with an effect has ended since, whatever came of that. What a call
with an effect gave answers the next one once; asked for again, it runs.
Source: docs/decisions/02-what-an-identical-call-gets.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import takewhile

from surefoot.core.parse.json_strict import as_list, as_object
from surefoot.core.parse.schema import Schema, resolve
from surefoot.core.state.lookup import Lookup
from surefoot.core.state.state import Call, Known, State
from surefoot.core.state.turn import changed
from surefoot.core.text import json_text
from surefoot.types.tools import ToolResult, ToolSpec

_EXACT = 2**53
"""Below it a whole number is the same as an integer and as a float."""


def fingerprint(actor: str, arguments: object) -> str:
    """SHA-256 of a tool and its resolved parameters, or of a kind of step and its instruction, as canonical JSON.

    Source: spec/planning.md, section 8.
    """
    return sha256(f"{actor}\0{json_text(arguments, sort_keys=True)}".encode("utf-8", "replace")).hexdigest()


def call_fingerprint(name: str, arguments: Mapping[str, object], spec: ToolSpec | None) -> str:
    """The fingerprint of a call. What it leaves out counts as said where the tool's schema names a default.

    Else a call that has had its effect would be another one as soon as a model restates what holds anyway. It is made
    anew in each fold and stands in no journal.
    """
    return fingerprint(name, arguments if spec is None else _whole(arguments, spec.parameters, spec.parameters))


def _whole(value: object, schema: Schema, root: Schema) -> object:
    """A value with the defaults of its schema in place of what it leaves out, and 1.0 as 1, in all that it holds."""
    node = resolve(schema, root) or schema
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    members, items = as_object(value), as_list(value)
    if members is not None:
        known = {name: as_object(part) or {} for name, part in (as_object(node.get("properties")) or {}).items()}
        left = {name: part["default"] for name, part in known.items() if name not in members and "default" in part}
        return {name: _whole(one, known.get(name, {}), root) for name, one in {**members, **left}.items()}
    return value if items is None else [_whole(one, as_object(node.get("items")) or {}, root) for one in items]


NOTHING_KNOWN = Lookup[str, Known]()


def known_after(known: Lookup[str, Known], call: Call) -> Lookup[str, Known]:
    """What is still known after a call has ended. One with an effect may have changed whatever was known before.

    A failure may be tried again once; when it comes back word for word, it is known too.
    """
    result, spec = call.result, call.spec
    if spec is None or result is None:
        return known
    kept = NOTHING_KNOWN if call.has_effect else known
    if spec.polling or (result.infrastructure and result.kind != "in_doubt"):
        return kept
    if not result.is_error or (result.kind == "in_doubt" and not spec.may_repeat):
        return kept.plus({call.key: Known(call.id, result, spec.may_repeat)})
    before = known.get(call.key)
    answers = before is not None and before.result.content == result.content
    return kept.plus({call.key: Known(call.id, result, may_repeat=True, answers=answers)})


def result_of(state: State, call_id: str, known_id: str) -> ToolResult | None:
    """What a call is answered with: the result of another, which in a plan may be one of another step."""
    call, other = state.call(call_id), state.call(known_id)
    if other is not None or call is None:
        return other.result if other is not None else None
    known = state.known.get(call.key)
    return known.result if known is not None and known.call_id == known_id else None


def having_told(state: State, call_id: str) -> State:
    """The state once a call was answered with what is known; what has an effect runs when it is asked for again."""
    call = state.call(call_id)
    known = state.known.get(call.key) if call is not None and call.is_told_once else None
    if call is None or known is None:
        return state
    return changed(state, known=state.known.plus({call.key: replace(known, answers=False)}))


def answered_by(state: State, call: Call) -> str:
    """The call whose result answers this one, "" for none: one of the same reply, even if it failed, or a known one.

    A step of a plan that is one call with an effect was ordered as it stands, and always runs.
    """
    if call.spec is None or call.spec.polling:
        return ""
    twin, key = "", call.key
    for other in state.calls[: call.position]:
        if other.result is not None and other.key == key:
            twin = other.known or other.id
        elif other.result is not None and other.has_effect and other.attempts:
            twin = ""
    step, known = state.running_step, state.known.get(key)
    if twin or known is None or not known.answers:
        return twin
    return "" if step is not None and step.kind == "tool" and call.has_effect else known.call_id


def is_unsure(state: State, still_open: Sequence[Call], call: Call) -> bool:
    """Whether a call before it in the reply, still open, may answer it, or change what it would be answered with."""
    before = list(takewhile(lambda one: one.id != call.id, still_open))
    alike = [one for one in before if one.name == call.name and one.arguments == call.arguments]
    if alike and any(one.key == call.key for one in alike):  # as JSON, where 1 and true differ
        return True
    return any(one.has_effect for one in before) and bool(answered_by(state, call))


def is_made_beside(state: State, call_id: str, steps: Mapping[str, State]) -> bool:
    """Whether another step of a plan is making the very call that one of its agents asks for, and has not ended."""
    call, step = state.call(call_id), state.running_step
    if call is None or not call.has_effect or step is None or step.kind == "tool":
        return False
    begun = (one for child in steps.values() if child.scope != state.scope for one in child.calls if one.attempts)
    return any(one.is_open and one.key == call.key for one in begun)
