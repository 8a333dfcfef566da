"""How a run stands as of a record: what it has used of its budget, what is open, and what a person is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from surefoot.core.loop.moves import next_moves, standing
from surefoot.core.plan.child import open_calls
from surefoot.core.plan.limits import turns_so_far
from surefoot.core.state.roles import ROLES, steps_so_far, window_of
from surefoot.core.state.state import State
from surefoot.core.state.turn import Call
from surefoot.telling.question import Question, questions_of
from surefoot.telling.tale import Tale
from surefoot.telling.text import visible, visible_members
from surefoot.types.outcomes import ALLOWED, Ask, Cancelled
from surefoot.types.usage import Usage

CallStatus = Literal["pending", "ready", "approval", "running", "in_doubt", "paused"]
LimitName = Literal["steps", "requests", "calls", "replans", "tokens", "cost", "seconds"]


@dataclass(frozen=True, slots=True)
class Used:
    """How much of a limit was used; None of `limit` where there is none."""

    name: LimitName
    used: float
    limit: float | None


@dataclass(frozen=True, slots=True)
class Context:
    """How many tokens the newest request of the model that leads took, by estimate where its `window` is known."""

    used: int
    window: int | None


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call without a result yet. `paused`: it asked an agent, and that agent is waiting for a person."""

    id: str
    name: str
    arguments: Mapping[str, object]
    status: CallStatus
    attempts: int


@dataclass(frozen=True, slots=True)
class StateView:
    """A run as of record `at` of `total`. `status` is the ending's kind, "paused" or "running", whoever drives it."""

    at: int
    total: int
    status: str
    reason: str
    answer: str
    step: int
    elapsed_s: float
    usage: Usage
    budget: tuple[Used, ...]
    context: Context | None
    open: tuple[OpenCall, ...]
    plan: int
    waiting: tuple[Question, ...]


_NONE: Mapping[str, Tale] = MappingProxyType({})


def state_of(tale: Tale, total: int = 0, inner: Mapping[str, Tale] = _NONE) -> StateView:
    """How a run stands. `total` counts its records; `inner` are the tales of agents, as `questions_of` takes them."""
    state, ending = tale.state, tale.state.ending
    status, answer = "running", ""
    if ending is not None:
        status, answer = ending.kind, getattr(ending, "answer", "")
        reason: str = ending.by if isinstance(ending, Cancelled) else getattr(ending, "reason", "")
    elif reason := "" if next_moves(state) else standing(state):
        status = "paused"
    return StateView(
        state.seen,
        total or state.seen,
        status,
        visible(reason),
        visible(answer),
        state.turn.step if state.turn is not None else 0,
        state.elapsed_s,
        state.usage,
        tuple(_budget(state)),
        _context(state),
        tuple(map(_open, (call for _, call in open_calls(state)))),
        state.planning.version if state.planning is not None else 0,
        questions_of(tale, inner),
    )


def _budget(state: State) -> list[Used]:
    budget, planning, usage = state.config.budget, state.planning, state.usage
    cost = usage.cost_usd or 0.0
    if planning is None:
        return [
            Used("steps", steps_so_far(state), budget.max_steps),
            Used("tokens", usage.total_tokens, budget.max_tokens),
            Used("cost", cost, budget.max_cost_usd),
            Used("seconds", state.elapsed_s, budget.max_seconds),
        ]
    config = planning.config
    return [
        Used("requests", turns_so_far(state, planning), config.max_llm_calls),
        Used("calls", planning.stats.tool_calls, config.max_tool_calls),
        Used("replans", planning.stats.replans, config.max_replans),
        Used("tokens", usage.total_tokens, _least(config.max_tokens, budget.max_tokens)),
        Used("cost", cost, _least(config.max_cost_usd, budget.max_cost_usd)),
        Used("seconds", state.elapsed_s, _least(config.deadline_s, budget.max_seconds)),
    ]


def _least(*limits: float | None) -> float | None:
    return min((one for one in limits if one is not None), default=None)


def _context(state: State) -> Context | None:
    role = ROLES[state.reasoner][0]
    speaker, turn = state.speakers.get(role), state.turn
    if speaker is not None and speaker.fit.request:
        return Context(round(speaker.fit.request * speaker.fit.stretch), window_of(state, role))
    used = turn.message.usage.input_tokens if turn is not None else 0
    return Context(used, None) if used else None


def _open(call: Call) -> OpenCall:
    return OpenCall(call.id, visible(call.name), visible_members(call.arguments), _status(call), call.attempts)


def _status(call: Call) -> CallStatus:
    if isinstance(call.decision, Ask):
        return "approval"
    if call.is_in_doubt:
        return "in_doubt"
    if call.asks:
        return "paused"
    if not call.is_waiting:
        return "running"
    return "ready" if call.decision == ALLOWED else "pending"
