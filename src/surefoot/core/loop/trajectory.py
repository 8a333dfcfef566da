"""The shapes of calls that went well, to be taken again in a later run: never a value.

A shape is kept only of a completed run that needed nobody: no question, no standing rule, no word of a person; and of
that only of steps in which nothing was refused or degraded, and of calls of which every sensitive value was the user's
or the configuration's. In a later run its values are looked for anew among the user's words; one that is not there
exactly once gives no branch. A branch out of memory is judged as every other.
Source: spec/guard.md, section 3.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import cast

from surefoot.core.gate.effects import guess
from surefoot.core.gate.intent import read_words
from surefoot.core.gate.record import GateRecord
from surefoot.core.gate.roles import is_sensitive
from surefoot.core.guard.branches import offered, step_now
from surefoot.core.loop.fold import PROBE
from surefoot.core.state.state import Call, State
from surefoot.core.text.json import json_text, pin_of
from surefoot.core.text.look import normal_text
from surefoot.core.text.values import norm_of, numbers_of
from surefoot.core.text.words import late
from surefoot.types.events import CallJudged, DoubtSettled, Event, InStep, ValuesEndorsed
from surefoot.types.guard import HypothesisBranch, IntentAnchor, VerifiedPath
from surefoot.types.guard_events import BranchRejected, HypothesesMade
from surefoot.types.outcomes import Allow, Ask, Completed
from surefoot.types.plan_events import PlanSigned
from surefoot.types.rules import Origin, Role
from surefoot.types.tools import Catalogue, ToolSpec

MOST_PATHS = 1_000
SCHEMA, NUMBER = "schema", "number"
"""By what a value is found anew: in the tool's own schema, as the only number of the words, or as an entity's kind."""

_BELOW_ZERO = late(r"(?<![a-z0-9_.])[-\u2212\u2013](?:[$€£¥]\s?)?\d[\d,'.]*")
"""A number with a sign before it, in words of normal form; they give the numbers themselves without."""

Roles = Mapping[str, tuple[Role, Origin, str]]


def learnt(state: State, events: Sequence[Event], today: str) -> tuple[tuple[VerifiedPath, ...], frozenset[str]]:
    """The paths that a run has verified, and the keys of those that failed in it. Costs O(events)."""
    gate = state.gate
    events = [event.event if isinstance(event, InStep) else event for event in events]
    trees = {e.tree.tree_id: e.tree for e in events if isinstance(e, HypothesesMade)}
    out = [e for e in events if isinstance(e, BranchRejected) and e.tree_id in trees]
    tried = ((branch, e.branch_id) for e in out for branch in trees[e.tree_id].branches)
    failed = frozenset(branch.path for branch, rejected in tried if branch.branch_id == rejected and branch.path)
    if gate is None or not isinstance(state.ending, Completed) or any(map(_has_needed_somebody, events)):
        return (), failed
    judged: dict[str, list[CallJudged]] = {}
    for event in events:
        if isinstance(event, CallJudged):
            judged.setdefault(event.call_id, []).append(event)
    steps: dict[str, list[Call]] = {}
    for turn in state.own_turns:
        steps.setdefault(turn.step_id, []).extend(turn.calls)
    found = [
        VerifiedPath(key_of_path(state, gate, step_id, call.spec, roles), call.name, pin_of(call.spec), roles, 1, today)
        for step_id, calls in steps.items()
        if not any(
            call.fault is not None
            or call.id in gate.known.degraded
            or any(said.decision != Allow() or said.by or said.grounds.would_be for said in judged.get(call.id, []))
            for call in calls
        )
        for call in calls
        if (roles := _roles(gate, call, judged.get(call.id, []))) is not None and call.spec is not None
    ]
    return tuple({path.key: path for path in found if path.key not in failed}.values()), failed


def _has_needed_somebody(event: Event) -> bool:
    """Whether a person was asked, or would have been, or has spoken; or a standing rule did in a person's place."""
    match event:
        case CallJudged(decision=Ask()) | ValuesEndorsed() | PlanSigned():
            return True
        case CallJudged(decision=decision, by=by, grounds=grounds):
            is_lifted = decision == Allow() and bool(grounds.also)  # rules have asked, and it is allowed all the same
            return bool(by) or grounds.would_be.startswith("ask") or (is_lifted and not grounds.would_be)
        case DoubtSettled(by=by):
            return by != PROBE
        case _:
            return False


def _roles(gate: GateRecord, call: Call, said: Sequence[CallJudged]) -> Roles | None:
    """What a call that went well took its values from; None where a sensitive one is not the user's."""
    spec, result = call.spec, call.result
    if spec is None or result is None or result.is_error or len(said) != 1 or spec.finish:
        return None
    roles: dict[str, tuple[Role, Origin, str]] = {}
    for one in said[0].grounds.evidence:
        name = one.path.removeprefix("/")
        is_own = one.origin in ("user", "config")
        if "/" in name or (is_sensitive(one.role, (name,), spec) and not is_own):
            return None
        via = SCHEMA if one.origin == "config" else ""
        if one.origin == "user":
            anchor, value, norm = gate.known.words.anchor, normal_text(one.value), norm_of(one.value)
            same = (e.kind for e in anchor.entities if normal_text(e.text) == value or e.norm == norm)
            is_number = one.kind == "number" and norm_of(one.value, "number").removeprefix("number:") in anchor.numbers
            via = next(same, "") or (NUMBER if is_number else "")
        roles[name] = (one.role, one.origin, via)
    return roles


def key_of_path(state: State, gate: GateRecord, step_id: str, spec: ToolSpec, roles: Roles) -> str:
    """What a path is found by: the kind of step without its values, the effect, the roles; whose, its file says."""
    step = next((one for one in state.plan.steps if one.step_id == step_id), None) if state.plan is not None else None
    words = step.instruction or step.title if step is not None else state.task.text if state.task is not None else ""
    effect = guess(spec, gate.known.config.guess).effect or ""
    for entity in read_words(words).entities:  # the same task on other things, and other numbers, has the same shape
        words = words.replace(entity.text, " ")
    shape = sorted(read_words("".join(c for c in words if not c.isdigit())).stems)
    parts = [shape, effect, sorted((name, role) for name, (role, _, _) in roles.items())]
    return sha256(json_text(parts).encode("utf-8", "surrogatepass")).hexdigest()


def recalled(state: State, paths: Iterable[VerifiedPath]) -> tuple[HypothesisBranch, ...]:
    """The branches that memory adds for the running step, with the values of this run. `paths` are of `unchanged`."""
    gate = state.gate
    if gate is None:
        return ()
    step_id, tools = step_now(state), offered(state)
    found: list[HypothesisBranch] = []
    for path in sorted(paths, key=lambda one: (-one.uses, one.key)):
        spec = tools.get(path.tool_name)
        if spec is None:
            continue
        of_step = step_id if state.running_step is not None else ""
        if path.key != key_of_path(state, gate, of_step, spec, path.roles):
            continue
        arguments = _bound(gate.known.words.anchor, spec, path.roles)
        if arguments is not None:
            why = f"went well in {path.uses} runs"
            made = HypothesisBranch("", step_id, path.tool_name, (arguments,), why, necessity_score=1.0)
            found.append(replace(made, source="trajectory_memory", path=path.key))
    return tuple(found)


def _bound(anchor: IntentAnchor, spec: ToolSpec, roles: Roles) -> Mapping[str, object] | None:
    """The values of this run for a shape; None where one that is needed is not there, or not there once."""
    properties = cast("Mapping[str, Mapping[str, object]]", spec.parameters.get("properties") or {})  # a JSON Schema
    needed = cast("Sequence[str]", spec.parameters.get("required") or ())
    taken: set[str] = set()
    bound: dict[str, object] = {}
    for name, (_, origin, via) in roles.items():
        schema = properties.get(name)
        value = _value(anchor, schema, origin, via) if schema is not None else None
        if value is None or via in taken:
            if name in needed:
                return None
            continue
        if via != SCHEMA:
            taken.add(via)
        bound[name] = value
    return bound if all(name in bound for name in needed) else None


def _value(anchor: IntentAnchor, schema: Mapping[str, object], origin: Origin, via: str) -> object | None:
    if origin == "config" and via == SCHEMA:
        choices = cast("Sequence[object]", schema.get("enum") or ())
        only = choices[0] if len(choices) == 1 else schema.get("const")
        return schema.get("default", only)
    if origin != "user" or not via:
        return None
    if via != NUMBER:
        named = {e.norm: e.text for e in anchor.entities if e.kind == via}
        return next(iter(named.values())) if len(named) == 1 else None
    # the only number, with its sign; none where the same stands there with a sign and without
    is_below_zero = _BELOW_ZERO.search(anchor.text) is not None
    if len(anchor.numbers) != 1 or (is_below_zero and numbers_of(_BELOW_ZERO.sub(" ", anchor.text))):
        return None
    number = float(next(iter(anchor.numbers))) * (-1 if is_below_zero else 1)
    return int(number) if number.is_integer() else number


def merge_paths(
    paths: Mapping[str, VerifiedPath], new: Iterable[VerifiedPath], failed: frozenset[str], most: int = MOST_PATHS
) -> Mapping[str, VerifiedPath]:
    """Memory after a run: what failed is out, what was verified counts once more, the least used make room.

    A tool that is not what it was begins anew.
    """
    after = {key: path for key, path in paths.items() if key not in failed}
    for path in new:
        before = after.get(path.key)
        is_same = before is not None and before.pin == path.pin and before.tool_name == path.tool_name
        after[path.key] = replace(path, uses=before.uses + 1) if before is not None and is_same else path
    best = sorted(after.values(), key=lambda one: (one.uses, one.last_ok, one.key), reverse=True)[:most]
    return {path.key: path for path in best}


def unchanged(paths: Mapping[str, VerifiedPath], tools: Catalogue) -> Mapping[str, VerifiedPath]:
    """The paths without those whose tool is here and is not what it was pinned as."""
    pins = {spec.name: pin_of(spec) for spec in tools.tools}
    return {key: path for key, path in paths.items() if pins.get(path.tool_name, path.pin) == path.pin}
