"""A running step as a small run of its own: what its call is given, what it begins with, and what has come of it.

R3: `{{step.field}}` in the strings of a step's parameters. A string that is nothing but a reference becomes the value
with its type; an embedded one is written as text. A field that is missing or null fails the step; `{{?step.field}}` may
be null. A tool step begins with its one call, which no model spoke; any other step begins with what it is told, and
goes on as a linear plan of one step does (`core/loop/steps.py`). What belongs to the whole run goes along: the gate's
record, the time and the tokens used. Source: spec/planning.md, sections 2, 5 and 13.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, get_args

import orjson

from surefoot.core.parse.validate import Checked, Validator, validate_value
from surefoot.core.plan.forms import list_of, object_in, one_of
from surefoot.core.state.plans import Loops, PlanRecord
from surefoot.core.state.repeats import call_fingerprint, fingerprint
from surefoot.core.state.roles import SOLO
from surefoot.core.state.state import EMPTY, Call, Planning, State, Turn, subset
from surefoot.core.state.turn import changed
from surefoot.core.state.window import READ_RESULT, Fit
from surefoot.core.text import json_text
from surefoot.core.text.json import as_object
from surefoot.core.view.step import spoken_call
from surefoot.types.config import Budget, LoopConfig
from surefoot.types.dataclass import dataclass
from surefoot.types.events import CallEnded, Event, InStep
from surefoot.types.plan import NON_EMPTY, PlanConfig, PlanStep, StepError, StepErrorClass, StepExecutionResult
from surefoot.types.tools import Catalogue, ResultKind, ToolResult, ToolSpec

_REFERENCE = re.compile(r"\{\{\s*(\??)([A-Za-z0-9_-]+)((?:\.[^.{}\s]+)*)\s*\}\}")

Limit = TypeVar("Limit", int | None, float | None)
WHOLE = "output"  # the field that means the whole result, where it has no field of that name


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference: the step, the path into its result, and whether null will do."""

    step_id: str
    path: tuple[str, ...]
    is_optional: bool
    text: str


class UnresolvedError(Exception):
    """A reference to something that is not there."""


def references_in(value: object) -> tuple[Reference, ...]:
    """All references, keys of objects sorted, each as often as it occurs."""

    def walk(part: object) -> Iterator[Reference]:
        if isinstance(part, str):
            yield from (_of(match) for match in (_REFERENCE.finditer(part) if "{{" in part else ()))
        for _, member in sorted((as_object(part) or {}).items()):
            yield from walk(member)
        for item in list_of(part):
            yield from walk(item)

    return tuple(walk(value))


def _of(match: re.Match[str]) -> Reference:
    optional, step_id, path = match.groups()
    return Reference(step_id, tuple(path.split(".")[1:]), bool(optional), match.group())


def resolved(value: object, planning: Planning) -> object:
    """The value with every reference replaced by what its step has given. Raises `UnresolvedError`."""
    if isinstance(value, str):
        if "{{" not in value:
            return value
        if (whole := _REFERENCE.fullmatch(value)) is not None:
            return _looked_up(_of(whole), planning)

        def as_text(match: re.Match[str]) -> str:
            part = _looked_up(_of(match), planning)
            return part if isinstance(part, str) else "" if part is None else json_text(part)

        return _REFERENCE.sub(as_text, value)
    if (members := as_object(value)) is not None:
        return {key: resolved(part, planning) for key, part in members.items()}
    items = list_of(value)
    return [resolved(part, planning) for part in items] if isinstance(value, list | tuple) else value


def _looked_up(reference: Reference, planning: Planning) -> object:
    record = planning.steps.get(reference.step_id)
    value = record.value if record is not None and record.status == "succeeded" else None
    for at, field in enumerate(reference.path):
        members, items = as_object(value), list_of(value)
        inner = members.get(field) if members is not None else None
        if field.isdecimal() and len(field) <= 9 and int(field) < len(items):  # noqa: PLR2004  # more are no index
            inner = items[int(field)]
        if inner is None and field == WHOLE and at == 0 and not (members and field in members):
            continue
        value = inner
        if value is None:
            break
    if value is None and not reference.is_optional:
        raise UnresolvedError(
            f"{reference.text} is not there: the result of step {reference.step_id} has no such field"
        )
    return value


def value_of(result: ToolResult) -> object:
    """What references see of a result: a JSON object or list as such, everything else as its text.

    A result of which the journal keeps a part alone has no value: half a document would look like a whole one.
    """
    if result.blob is not None:
        return None
    text = result.content.strip()
    if not (result.structured or text[:1] in ("{", "[")):
        return result.content
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return result.content


def checked(tools: Catalogue, tool_id: str, arguments: Mapping[str, object]) -> Checked:
    """The arguments as the tool takes them, with lossless coercions made; or what is wrong with them."""
    spec = tools.get(tool_id)
    if spec is None:
        return Checked(arguments)
    return tools.derived(f"validator:{tool_id}", lambda _: Validator(spec.parameters)).check(arguments)


def arguments_of(tools: Catalogue, planning: Planning, tool_id: str, parameters: Mapping[str, object]) -> Checked:
    """The arguments that a call has now. Raises `UnresolvedError`."""
    return checked(tools, tool_id, as_object(resolved(parameters, planning)) or {})


def fingerprint_of(step: PlanStep, parameters: Mapping[str, object], spec: ToolSpec | None) -> str:
    """The fingerprint of a step, once its parameters are resolved; `spec` is its tool."""
    if step.kind == "tool":
        return call_fingerprint(step.tool_id, parameters, spec)
    return fingerprint(step.kind, step.instruction)


WORDS = "step_words"  # the template of a step of words, where calls are no field of a request
MOST_VALUE_CHARS = 1_000_000  # characters of a tool step's result that are kept as a value for later steps
_WIRE_ID = "call_1_0"
_BY_KIND: Mapping[ResultKind, tuple[StepErrorClass, str]] = {
    "timeout": ("timeout", "timeout"),
    "unknown_tool": ("tool", "not_found"),
    "denied": ("denied", "denied"),
}
_EMPTY_VALUES: tuple[object, ...] = ("", None, [], {})


def child_of(state: State, planning: Planning, step: PlanStep, attempt: int, arguments: Mapping[str, object]) -> State:
    """The state with which a step begins its attempt. `arguments` are the resolved parameters of a tool step."""
    record = planning.steps.get(step.step_id)
    barred = frozenset[str]()
    if step.kind == "agent" and record is not None:  # calls that failed, and those whose effect is done (section 8)
        barred = planning.failed_calls | planning.made_before(record)
    child = changed(
        EMPTY,
        run_id=state.run_id,
        task=state.task,
        speakers={
            role: changed(one, rounds=0, fit=Fit(stretch=one.fit.stretch, limit=one.fit.limit))  # it has no turns yet
            for role, one in state.speakers.items()
        },
        tools=state.tools,
        redeclared=state.redeclared,
        is_foreign=state.is_foreign,
        prompts=state.prompts,
        instructions=state.instructions,
        scope=f"{step.step_id}.{attempt}",
        known=state.known,
        usage=state.usage,
        elapsed_s=state.elapsed_s,
        found=state.found,
        hydrated=state.hydrated,
        conventions=state.conventions,
        gate=state.gate,
        outer=state.outer,
        notes=tuple((1, text) for text in state.notes_of_run),
        barred=barred,
        heads={},
    )
    if step.kind == "tool":
        step = replace(step, parameters=arguments)
        spec = state.tools.get(step.tool_id)
        if spec is not None and step.timeout_s is not None:
            spec = replace(spec, timeout_s=step.timeout_s)
        call = Call(child.scope, _WIRE_ID, step.tool_id, step.parameters, spec)
        message, parsed = spoken_call(step, _WIRE_ID)
        turn = Turn(1, message, parsed, "native", "any", SOLO, "calls", (call,), step_id=step.step_id)
        plan = PlanRecord((step,), step)
        return changed(child, offered=state.offered, config=planning.loops.tool, plan=plan, turn=turn, calls_made=1)
    records = [planning.steps[name] for name in step.dependencies or planning.live if name in planning.steps]
    if not step.dependencies:
        records = [one for one in records if not planning.is_outdated(one)]
    inputs = {one.step.step_id: one.result for one in records if one.status == "succeeded" and one.result is not None}
    # of the first plan its own trust, of what came later that of all that was read by now
    is_first = planning.plan is not None and step in planning.original
    trust = planning.plan.trust if planning.plan is not None and is_first else planning.words_trust
    others = tuple(planning.steps[name].step for name in planning.live if name != step.step_id)
    plan = PlanRecord((*others, step), step, inputs, trust=trust, done=record.effects if record is not None else ())
    offered = (*(planning.selected or ()), *((READ_RESULT,) if state.offered.get(READ_RESULT) else ()))
    return in_words(
        changed(child, offered=subset(state.tools, offered), config=loop_of(planning.loops, step), plan=plan)
    )


def in_words(child: State) -> State:
    """A step's state as it is spoken to: a step of words alone is told of no tools, and held to no form.

    A small model that reads of a form of calls, and of no tool, takes its inputs for data that it does not have.
    """
    if not child.current_step_is_reasoning or child.output_schema is not None:
        return child
    speakers = {
        role: one if one.mode == "native" else changed(one, mode="text") for role, one in child.speakers.items()
    }
    return changed(child, speakers=speakers, prompts={**child.prompts, "text": child.prompts[WORDS]})


def loops_of(config: LoopConfig, plan: PlanConfig) -> Loops:
    """How the steps of a plan are run, made once for a run."""

    def least(one: Limit, other: Limit) -> Limit:
        return min((each for each in (one, other) if each is not None), default=one)

    budget = replace(
        config.budget,
        max_tokens=least(config.budget.max_tokens, plan.max_tokens),
        max_cost_usd=least(config.budget.max_cost_usd, plan.max_cost_usd),
        max_seconds=least(config.budget.max_seconds, plan.deadline_s),
    )
    limits = Budget(max_steps=budget.max_steps, max_seconds=budget.max_seconds, reserve=0.0)
    answer = replace(config, budget=limits, plan=None, pre_hydration=None)
    chars = max(config.tool_result_chars, MOST_VALUE_CHARS)
    words = replace(answer, output_schema=None)
    return Loops(replace(words, tool_result_chars=chars, tool_timeout_s=plan.step_timeout_s), words, answer, budget)


def loop_of(loops: Loops, step: PlanStep) -> LoopConfig:
    """How a step is run."""
    if step.kind in ("tool", "response"):
        return loops.tool if step.kind == "tool" else loops.answer
    loop = loops.words
    return loop if step.max_steps is None else replace(loop, budget=replace(loop.budget, max_steps=step.max_steps))


def with_whole(child: State, state: State) -> State:
    """A child with what belongs to the run as the run has it now."""
    if child.gate is state.gate and child.usage is state.usage and child.elapsed_s == state.elapsed_s:
        return child
    return changed(child, gate=state.gate, usage=state.usage, elapsed_s=max(child.elapsed_s, state.elapsed_s))


def in_step(child: State, event: Event) -> InStep:
    """An event of a running step's own state, as the run has it on record."""
    step_id, _, attempt = child.scope.rpartition(".")
    return InStep(step_id, int(attempt), event)  # pyright: ignore[reportArgumentType]  # what a step can ask for is of a step


def outcome_of(child: State, step: PlanStep, attempt: int) -> StepExecutionResult | None:
    """What has come of a step; None while it goes on."""
    if step.kind == "tool":
        call = child.calls[0]
        given = call.result
        if given is None:
            return None
        error = error_of(call, given) if given.is_error else unfulfilled(call, given, step)
        made = StepExecutionResult(step.step_id, "tool", given.content, error, (call.id,), given.trust, attempt)
        return replace(made, tool_id=call.name, parameters=call.arguments, call_id=call.id)
    result = child.plan.results.get(step.step_id) if child.plan is not None else None
    if result is not None:
        return replace(result, kind=step.kind, attempt=attempt)
    if child.ending is None:
        return None
    reason = getattr(child.ending, "reason", child.ending.kind)
    told = getattr(child.ending, "detail", "") or f"its loop ended: {reason}"
    return StepExecutionResult(step.step_id, step.kind, "", StepError("limit", reason, told), attempt=attempt)


def error_of(call: Call, result: ToolResult) -> StepError:
    """Class and code of a call's failure, as its tool or its kind has it."""
    cls, code = _BY_KIND.get(result.kind, ("tool", "error"))
    if result.kind == "denied":
        code = call.rule or code
    elif result.error:
        named, _, code = result.error.partition(":")
        cls = one_of(named, get_args(StepErrorClass)) or "tool"
    elif result.infrastructure and result.kind == "error":
        cls, code = "transient", "infrastructure"
    return StepError(cls, code, result.content, result.retry_after_s)


def unfulfilled(call: Call, result: ToolResult, step: PlanStep) -> StepError | None:
    """What a result lacks of what was promised; the call itself has worked."""
    value = value_of(result)
    may_be_empty = call.spec is not None and call.spec.empty_ok
    if step.postcondition == NON_EMPTY and not may_be_empty and value in _EMPTY_VALUES:
        return StepError("postcondition", "empty", "the result is empty")
    if isinstance(step.postcondition, Mapping) and (errors := validate_value(value, step.postcondition).errors):
        return StepError("postcondition", "shape", "; ".join(map(str, errors)))
    return None


def step_value(result: StepExecutionResult, child: State) -> object:
    """What references see of a step that has succeeded."""
    if result.kind == "tool":
        given = child.calls[0].result
        return value_of(given) if given is not None else None
    fields = object_in(result.output) if result.kind == "agent" else None
    return {"output": result.output} if fields is None else {"output": result.output, "fields": fields}


@dataclass(frozen=True, slots=True)
class Owner:
    """A state with calls: the run, or one of its running steps (`step_id` ""  for the run)."""

    state: State
    step_id: str = ""
    attempt: int = 0

    def wrap(self, events: Sequence[Event]) -> tuple[Event, ...]:
        """Events of this state as the run has them on record."""
        return tuple(in_step(self.state, event) if self.step_id else event for event in events)


def owners(state: State) -> Iterator[Owner]:
    """The run, and its running steps in the order in which they began."""
    yield Owner(state)
    if state.planning is not None:
        for name, child in state.planning.children.items():
            yield Owner(with_whole(child, state), name, int(child.scope.rpartition(".")[2]))


def open_calls(state: State) -> Iterator[tuple[Owner, Call]]:
    """The calls of which nobody knows yet what they give, with whose they are."""
    for owner in owners(state):
        yield from ((owner, call) for call in owner.state.calls if call.is_open)


def owner_of(state: State, call_id: str) -> Owner:
    """Whose call that is, or whose limit about which a person is asked; the run's where no step has one of that id."""
    for one in owners(state):
        is_asked = any(limit.step_id == call_id for limit in one.state.asked)
        if one.step_id and (is_asked or one.state.call(call_id) is not None):
            return one
    return Owner(state)


def give_up(call: Call, elapsed_s: float) -> CallEnded:
    """An open call is cancelled where it had not begun or may be repeated; else nobody knows what it has done.

    The run of an agent knows that of its own calls, and is cancelled with it.
    """
    if call.spec is not None and call.spec.delegates and call.attempts:
        told = f"cancelled: {call.name} had begun; its run has what it did"
        return CallEnded(call.id, ToolResult(told, "cancelled", source="surefoot"), elapsed_s)
    if call.is_waiting or (call.spec is not None and call.spec.may_repeat):
        told = ToolResult("cancelled: not run", "cancelled", source="surefoot", trust="trusted", infrastructure=True)
    else:
        unknown = "broken off, and nobody knows whether it took effect; find that out before you call it again"
        told = ToolResult(unknown, "in_doubt", source="surefoot", trust="trusted")
    return CallEnded(call.id, told, elapsed_s)
