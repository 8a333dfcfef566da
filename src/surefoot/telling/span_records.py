"""Spans as values, and what of events and texts becomes a part of one: attributes, and what takes no time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Literal

from surefoot import telemetry_names as names
from surefoot.core.text import clean, json_text
from surefoot.types import events as e
from surefoot.types import plan_events as p
from surefoot.types.dataclass import dataclass
from surefoot.types.inner import CallPaused
from surefoot.types.messages import ModelMessage, Usage
from surefoot.types.outcomes import Allow

Value = str | int | float | bool | tuple[str, ...]
Attributes = Mapping[str, Value]
Place = tuple[str, str]
"""A trace and a span in it, by their ids in hex."""

MOST_BYTES = 4096
"""Of a text that is shown: a span is no place for whole documents."""

_CODE = re.compile(r"[a-z][a-z0-9_.:-]{0,63}")


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """What happened in a span at a moment, in seconds since the epoch."""

    name: str
    at: float
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """One span. Ids are hex, times seconds since the epoch; `end_s` is None while it goes on.

    `parent_id` is "" for the first of a trace. `links` are other runs. With an `error.type` what it tells of went
    wrong; `message` says how, where content is shown.
    """

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: Literal["internal", "client"]
    start_s: float
    end_s: float | None
    attributes: Attributes
    events: tuple[SpanEvent, ...] = ()
    links: tuple[Place, ...] = ()
    message: str = ""

    @property
    def failed(self) -> bool:
        return names.ERROR_TYPE in self.attributes


def place_of(run_id: str) -> Place:
    """The trace of a run, and the span in it that is the run."""
    return sha256(sha256(run_id.encode()).digest()).hexdigest()[:32], span_id(run_id, 0)


def span_id(run_id: str, seq: int, more: str = "") -> str:
    """The id of the span that a record begins; `more` tells a second one apart."""
    return sha256(f"{run_id}\0{seq}{more}".encode()).hexdigest()[:16]


def nanoseconds(at: float) -> int:
    """A time as OTLP has it. Microseconds are all that a clock of seconds since the epoch can tell."""
    return round(at * 1e6) * 1000


def filled(given: Mapping[str, Value]) -> dict[str, Value]:
    """Those attributes that say something, as text that can be sent."""
    told = ((name, clean(value) if isinstance(value, str) else value) for name, value in given.items())
    return {name: value for name, value in told if value not in ("", ()) and value is not False}


def used(usage: Usage) -> dict[str, Value]:
    """What requests have used; the parts that not every server tells only where they are told."""
    parts = {names.CACHE_READ_TOKENS: usage.cached_tokens, names.CACHE_WRITE_TOKENS: usage.cache_write_tokens}
    parts[names.REASONING_TOKENS] = usage.reasoning_tokens
    cost: dict[str, Value] = {} if usage.cost_usd is None else {"surefoot.cost_usd": usage.cost_usd}
    given = {names.INPUT_TOKENS: usage.input_tokens, names.OUTPUT_TOKENS: usage.output_tokens}
    return {**given, **{name: tokens for name, tokens in parts.items() if tokens}, **cost}


def code(reason: str) -> str:
    """A reason that is one of our own words, and not a sentence that somebody wrote."""
    return reason if _CODE.fullmatch(reason) else ""


def model_named(model: str) -> tuple[str, str]:
    """The provider, as the conventions call it, and the model. Of an address, which may hold a key, only the model."""
    if "://" in model:
        return "openai", model.rpartition("#")[2] if "#" in model else "default"
    provider, _, name = model.partition(":")
    return names.PROVIDERS.get(provider, provider), name or provider


def cut(text: str) -> str:
    """The beginning of a text that is too long for a span."""
    data = clean(text).encode()
    return data.decode() if len(data) <= MOST_BYTES else data[:MOST_BYTES].decode(errors="ignore") + "…"


def text_part(text: str) -> Mapping[str, str]:
    """A text as the conventions write it."""
    return {"type": "text", "content": cut(text)}


def reply_json(message: ModelMessage) -> str:
    """A reply as the conventions write it, as JSON."""
    calls = [
        {
            "type": "tool_call",
            "id": call.id,
            "name": call.name,
            "arguments": cut(call.arguments if isinstance(call.arguments, str) else json_text(call.arguments)),
        }
        for call in message.calls
    ]
    thoughts = [{"type": "reasoning", "content": cut(message.reasoning)}] if message.reasoning else []
    words = [text_part(message.content)] if message.content else []
    parts = [*thoughts, *words, *calls]
    return json_text([{"role": "assistant", "parts": parts, "finish_reason": message.finish_reason}])


def mark_of(event: e.Event, content: bool) -> tuple[str, Attributes] | None:
    """What takes no time, by the name of its event; None for what is not told. Words of people only with `content`."""
    name: str
    told: Mapping[str, Value]
    match event:
        case e.CallJudged(call_id, decision, rule, by):
            reason = "" if isinstance(decision, Allow) else decision.reason
            name, told = "judged", {"call": call_id, "rule": rule, "verdict": decision.kind, "by": by, "reason": reason}
        case e.CallReused(call_id):
            name, told = "reused", {"call": call_id}
        case e.ValuesEndorsed(call_id, by=by):
            name, told = "endorsed", {"call": call_id, "by": by}
        case e.DoubtSettled(call_id, outcome, by):
            name, told = "settled", {"call": call_id, "verdict": outcome, "by": by}
        case CallPaused(call_id, by=by):
            name, told = "waiting", {"call": call_id, "by": by}
        case e.StepLimitReached(step_id, attempts, reason, kind, action=action):
            name, told = "limit", {"step.id": step_id, "kind": kind, "attempt": attempts, "reason": reason}
            told = {**told, "action": str(action)}
        case p.ReasoningStepViolated(step_id, attempt, reason):
            name, told = "violated", {"step.id": step_id, "attempt": attempt, "reason": reason}
        case p.StepSkipped(step_id, reason, by):
            name, told = "skipped", {"step.id": step_id, "by": by, "reason": reason}
        case p.PlanMade(plan):
            name, told = "plan.made", {"plan.version": plan.version}
        case p.PlanEdited(version=version, strategy=strategy, by=by):
            name, told = "plan.edited", {"plan.version": version, "plan.strategy": strategy.type, "by": by}
        case p.PlanSigned(version, decision, by, note):
            name, told = "plan.signed", {"plan.version": version, "verdict": decision, "by": by, "reason": note}
        case p.ProposalRefused(kind, what, detail):
            name, told = "plan.refused", {"proposal": kind, "rule": what, "reason": detail}
        case p.StepReflected(step_id, attempt, decision):
            name, told = "plan.reflected", {"step.id": step_id, "attempt": attempt, "verdict": decision}
        case p.Escalated(step_id):
            name, told = "plan.escalated", {"step.id": step_id}
        case p.RunReflected(decision, reason=reason):
            name, told = "plan.rethought", {"verdict": decision, "reason": reason}
        case p.RunEvaluated(evaluation):
            name, told = "plan.evaluated", {"by": evaluation.name, "passed": evaluation.passed}
        case _:
            return None
    told = {f"surefoot.{key}": value for key, value in told.items() if content or key != "reason"}
    return f"surefoot.{name}", filled(told)
