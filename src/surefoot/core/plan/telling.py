"""What is told of a planned run without asking a model: what is done, what is not, and why it is over."""

from __future__ import annotations

from surefoot.core.plan.child import is_outdated
from surefoot.core.plan.dag import Planning, StepRecord
from surefoot.core.state import State

_LONGEST = 300
"""Characters of one result."""


def _has_acted(record: StepRecord) -> bool:
    """Whether a step that was taken out of the plan had an effect before: that stays."""
    return record.status == "superseded" and bool(record.done_calls)


def answer_without(_state: State, planning: Planning, reason: str) -> str:
    """The results so far and what is left of the plan, as a text; "" where nothing was done."""
    records = [planning.steps[name] for name in planning.order]
    done = [one for one in records if one.result is not None and (one.status == "succeeded" or _has_acted(one))]
    if not done:
        return ""
    lines = ["Done:"]
    for one in done:
        if is_outdated(planning, one):
            continue
        output = " ".join((one.result.output if one.result else "").split())
        cut = f"{output[:_LONGEST]}…" if len(output) > _LONGEST else output
        lines.append(f"- {one.step.title}: {cut}")
    left = [one for one in records if one.status not in ("succeeded", "skipped", "superseded")]
    if left:
        lines.append("Not done:")
    for one in left:
        error = one.result.error if one.result is not None else None
        why = f" ({error.cls}: {error.code})" if error is not None else ""
        lines.append(f"- {one.step.title}: {one.status}{why}")
    if reason:
        lines.append(f"The run is over because of: {reason}")
    return "\n".join(lines)
