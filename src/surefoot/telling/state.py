"""How a run stands as of a record: what it has used of its budget, what is open, and what a person is asked.

A question has the lines that are shown everywhere. Source: spec/guard.md, section 4.9; spec/serving.md, section 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from surefoot.core.guard.judge import policy_call
from surefoot.core.loop.inbox import digest_of_call
from surefoot.core.loop.moves import next_moves, standing
from surefoot.core.plan.accept import PLAN, waiting
from surefoot.core.plan.child import open_calls, owner_of
from surefoot.core.plan.limits import turns_so_far
from surefoot.core.state.roles import ROLES, steps_so_far, window_of
from surefoot.core.state.state import State
from surefoot.core.state.turn import Call
from surefoot.telling.guard import question_lines
from surefoot.telling.plan import edit_line, step_line
from surefoot.telling.tale import Tale
from surefoot.telling.text import Line, Style, one_line, program_text, visible, visible_members
from surefoot.types.outcomes import ALLOWED, Ask, Cancelled
from surefoot.types.usage import Usage

About = Literal["approval", "in_doubt", "plan", "limit"]


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked about a call, a plan or a limit of progress; `digest` is what an answer binds to.

    A `call` "1.0/2.0" is one of the agent that call 1.0 has asked; a limit has the id of its step. `version` is that of
    the plan, else 0. Times are seconds since the epoch, `expires_at` None where a question waits for ever.
    """

    call: str
    name: str
    about: About
    digest: str
    version: int
    asked_at: float
    expires_at: float | None
    rule: str
    arguments: Mapping[str, object] | None
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        return "\n".join(" " * line.indent + line.text for line in self.lines)


_NONE: Mapping[str, Tale] = {}


def questions_of(tale: Tale, inner: Mapping[str, Tale] = _NONE, *, is_driven: bool = False) -> tuple[Question, ...]:
    """All that a person is asked. `inner` are the tales of the runs of agents that were asked, by the ids of the runs.

    Of an agent without a tale, a question has its call and reason alone, and no end of its time. While the run
    `is_driven`, what its driver has started is under way, not in doubt.
    """
    return tuple(
        _question(tale, call, inner)
        for call in waiting(tale.state)
        if not (is_driven and call.is_in_doubt and tale.began.get(call.id, 0.0) >= tale.taken_up)
    )


def _question(tale: Tale, call: Call, inner: Mapping[str, Tale]) -> Question:
    outer_id, _, inner_id = call.id.partition("/")
    if inner_id:
        outer = owner_of(tale.state, outer_id).state.call(outer_id)
        asked = inner.get(outer.inner.run_id) if outer is not None and outer.inner is not None else None
        if asked is not None and (own := next((c for c in waiting(asked.state) if c.id == inner_id), None)) is not None:
            return replace(_question(asked, own, inner), call=call.id)
    since = tale.asked.get(outer_id)
    at = tale.began.get(outer_id, tale.last_at) if since is None else since.at
    about = about_of(call)
    guard = tale.state.config.guard
    is_timed = about == "approval" and not inner_id and guard is not None and tale.state.gate is not None
    return Question(
        call.id,
        visible(call.name) if about != "plan" else "",
        about,
        digest_of_call(call),
        tale.state.planning.version if about == "plan" and tale.state.planning is not None else 0,
        at,
        at + guard.approval_timeout_s if is_timed and guard is not None else None,
        call.rule,
        visible_members(call.arguments) if about in ("approval", "in_doubt") else None,
        tuple(lines_of(tale, call)),
    )


def about_of(call: Call) -> About:
    """What a question is about."""
    if call.id.rpartition("/")[2] == PLAN:
        return "plan"
    if call.is_in_doubt:
        return "in_doubt"
    return "approval" if call.spec is not None else "limit"


def lines_of(tale: Tale, call: Call) -> list[Line]:
    """The question about a call that waits for a person, as it is shown everywhere; of a limit, what waits."""
    if call.id == PLAN:
        return plan_question(tale.state)
    lines = [Line(visible(program_text(call)), "head")]
    since = tale.asked.get(call.id)
    if call.is_in_doubt:
        return [*lines, Line("it was interrupted, and nobody knows whether it took effect", "warn")]
    if since is None or since.verdict is None:
        reason: str = getattr(call.decision, "reason", "") if "/" in call.id else ""
        return lines + [Line(visible(reason), "warn")] * bool(reason)
    verdict = since.verdict
    asked = policy_call(owner_of(since.before, call.id).state, call)
    reason = verdict.decision.reason if isinstance(verdict.decision, Ask) else ""
    values = asked.values if asked else ()
    return [*lines, Line(visible(reason), "warn"), *below(question_lines(call, verdict, since.asked_before, values))]


def plan_question(state: State) -> list[Line]:
    """A plan that waits for its signature: what it was made for, its steps, and its last edit."""
    planning = state.planning
    if planning is None:
        return []
    lines = [Line(f"plan v{planning.version} is to be signed before it runs", "head")]
    if planning.plan is not None and planning.plan.description:
        lines.append(Line(one_line(planning.plan.description), indent=2))
    lines += [Line(one_line(edit_line(edit)), "warn", 2) for edit in planning.edits[-1:]]
    for name in planning.live:
        record = planning.steps[name]
        told = step_line(record.step) + (f"  {record.status}" if planning.edits else "")
        lines.append(Line(visible(" ".join(told.splitlines())), indent=2))
    return lines


def below(told: Iterable[str], style: Style = "", indent: int = 2) -> list[Line]:
    """Texts as lines below another, with nothing hidden in them."""
    return [Line(visible(one), style, indent) for one in told]


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
        tuple(
            OpenCall(call.id, visible(call.name), visible_members(call.arguments), _status(call), call.attempts)
            for _, call in open_calls(state)
        ),
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
