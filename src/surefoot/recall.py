"""What a reasoner remembers: a view of its journal, and the note that a new attempt gets of earlier ones.

A retry starts afresh, since old turns and old deliverables confuse the next try; what was done already must be known
all the same, so that it is not done twice. Source: spec/reasoners.md, sections 5 and 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from surefoot.core.parse.marks import DELIVERABLE, DELIVERABLE_END, TASK_DONE
from surefoot.core.parse.reply import parse
from surefoot.core.state.state import Call, State, Turn
from surefoot.core.text import json_text
from surefoot.core.view.observations import note_for, render_outcome, tagged
from surefoot.core.view.request import form_of
from surefoot.run import Run
from surefoot.types.attachments import Attachment
from surefoot.types.errors import UsageError
from surefoot.types.messages import ModelMessage
from surefoot.types.task import Task

EARLIER = "earlier attempt"
LONGEST_OUTCOME = 400
"""Characters of one result, and of one call's arguments, in the note on an earlier attempt."""


@dataclass(frozen=True, slots=True)
class ReasonerMemory:
    """What one attempt at an operator of a job has said and seen: a view of its journal.

    Roles are true: what the reasoner said is of role "assistant", with its own role ("solo", "thinker", "actor") as
    `name`; the task, results and reminders are of role "user" or "tool". A deliverable stands in its tags, whatever
    form it was written in. `run` is the run that it is of, None for a memory that no run made.
    """

    job: str = ""
    operator: str = "main"
    attempt: int = 1
    messages: tuple[ModelMessage, ...] = ()
    run: Run | None = None

    @classmethod
    def of(cls, state: State) -> ReasonerMemory:
        """The memory of a run. Raises `UsageError` for one without records."""
        task = state.task
        if task is None:
            raise UsageError("a run without records has no memory: run a task first")
        said = [message for turn in state.own_turns for message in _remembered(state, turn)]
        number = state.run_id.removeprefix(f"{run_id_of(task, 1)}.")
        attempt = int(number) if task.job and number != state.run_id and number.isdecimal() else 1
        return cls(task.job, task.operator, attempt, (ModelMessage("user", task.text), *said), Run.of(state))


def run_id_of(task: Task, attempt: int) -> str:
    """What an attempt at a task with a job is called, counted from 1."""
    first = f"{task.job}.{task.operator}"
    return first if attempt == 1 else f"{first}.{attempt}"


def delivered(message: ModelMessage) -> str | None:
    """The body of the deliverable that a message ends with; None where it holds none, or a call beside it."""
    if DELIVERABLE not in message.content:
        return None
    parsed = parse(message.content, dialect="tags", tool_calls=message.calls)
    if parsed.calls or parsed.errors:
        return None
    is_empty = parsed.error is not None and parsed.error.kind == "empty_final"
    return "" if is_empty else parsed.final


def _remembered(state: State, turn: Turn) -> list[ModelMessage]:
    """One reply as it was said, then what came back."""
    said = replace(turn.message, role="assistant", name=turn.role)
    final = turn.parsed.final
    if turn.outcome == "answer" and final is not None and delivered(said) is None:
        inside = final.replace(DELIVERABLE_END, DELIVERABLE_END.replace("/", "/\u200b"))
        said = replace(said, content=f"{DELIVERABLE}\n{inside}\n{DELIVERABLE_END}\n{TASK_DONE}", calls=())
    form = form_of(state, turn.role)
    outcomes = [(call, render_outcome(call, state.offered, form)) for call in turn.calls]
    if turn.message.calls:
        messages = [said, *(ModelMessage("tool", text, call_id=c.wire_id, name=c.name) for c, text in outcomes)]
    else:
        results = "\n\n".join(tagged(call, text) for call, text in outcomes)
        messages = [said, ModelMessage("user", results)] if results else [said]
    is_last_word = turn is state.turn and state.ending is not None  # then nobody was told anything behind it
    note = "" if is_last_word else note_for(state, turn, form)
    return [*messages, ModelMessage("user", note)] if note else messages


def note_on(attempts: Sequence[State]) -> Attachment:
    """What a new attempt is told of those before it, as material.

    How the last one ended, its last fault, and what all of them have done: calls with effects and their results.
    """
    run = Run.of(attempts[-1])
    reason = f" ({run.reason})" if run.reason else ""
    lines = [f"Attempt {len(attempts)} at this task ended as {run.status}{reason}."]
    if fault := _last_fault(attempts[-1]):
        lines.append(f"Its last fault: {fault}.")
    calls = (call for state in attempts for turn in state.turns for call in turn.calls)
    done: list[str] = []
    for call in filter(_has_effect, calls):
        is_known = call.result is not None and not call.result.is_error
        outcome = _cut(call.result.content) if call.result and is_known else "nobody knows whether it took effect"
        done.append(f"- {call.name}({_cut(json_text(call.arguments))}): {outcome}")
    lines += ["Done already, so do not repeat it:", *done] if done else ["Nothing has been changed so far."]
    return Attachment(EARLIER, "\n".join(lines))


def _last_fault(state: State) -> str:
    if state.failure is not None:
        return f"{state.failure.kind}: {state.failure.message}"
    for turn in reversed(state.turns):
        if (error := turn.parsed.error) is not None:
            return f"{error.kind}: {error.detail}" if error.detail else error.kind
    return ""


def _has_effect(call: Call) -> bool:
    """Whether a call has changed something, or may have."""
    spec = call.spec
    if spec is None or spec.effect == "read" or spec.finish or call.known or not call.attempts:
        return False
    return call.result is None or call.result.kind in ("ok", "in_doubt") or bool(spec.delegates)  # an agent has acted


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return f"{line[:LONGEST_OUTCOME]}…" if len(line) > LONGEST_OUTCOME else line
