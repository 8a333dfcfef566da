"""The questions that a person is asked, as data and as the lines that are shown everywhere.

Source: spec/guard.md, section 4.9; spec/serving.md, section 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from surefoot.core.guard.judge import asked_of
from surefoot.core.loop.inbox import digest_of_call
from surefoot.core.plan.accept import PLAN, waiting
from surefoot.core.plan.child import owner_of
from surefoot.core.state.state import State
from surefoot.core.state.turn import Call
from surefoot.telling.guard import question_lines
from surefoot.telling.plan import edit_line, step_line
from surefoot.telling.tale import Tale
from surefoot.telling.text import Line, Style, one_line, visible, visible_members, written
from surefoot.types.outcomes import Ask

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
        """Its lines as one text."""
        return "\n".join(" " * line.indent + line.text for line in self.lines)


_NONE: Mapping[str, Tale] = MappingProxyType({})


def questions_of(tale: Tale, inner: Mapping[str, Tale] = _NONE, *, is_driven: bool = False) -> tuple[Question, ...]:
    """All that a person is asked. `inner` are the tales of the runs of agents that were asked, by the ids of the runs.

    Of an agent without a tale, a question has its call and reason alone, and no end of its time. While the run
    `is_driven`, what its driver has started is under way, not in doubt.
    """
    asked = (call for call in waiting(tale.state) if not (is_driven and call.is_in_doubt and _is_new(tale, call)))
    return tuple(_question(tale, call, inner) for call in asked)


def _is_new(tale: Tale, call: Call) -> bool:
    """Whether a call was last started by whoever drives the run."""
    return tale.began.get(call.id, 0.0) >= tale.taken_up


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
    lines = [Line(visible(written(call)), "head")]
    since = tale.asked.get(call.id)
    if call.is_in_doubt:
        return [*lines, Line("it was interrupted, and nobody knows whether it took effect", "warn")]
    if since is None or since.verdict is None:
        reason: str = getattr(call.decision, "reason", "") if "/" in call.id else ""
        return lines + [Line(visible(reason), "warn")] * bool(reason)
    verdict = since.verdict
    asked = asked_of(owner_of(since.before, call.id).state, call)
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
