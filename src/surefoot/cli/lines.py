"""Lines for a person: texts made fit to stand in them, and how a run stands, what it used and what to do next.

Whatever a model or a tool wrote is made visible first: it could hide what is approved, or take over the terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len, set_cell_size

from surefoot.core.parse.marks import PARTS
from surefoot.core.plan.accept import PLAN
from surefoot.core.plan.child import open_calls
from surefoot.core.state.roles import SOLO
from surefoot.core.state.state import State
from surefoot.core.state.turn import Call
from surefoot.core.state.window import READ_RESULT
from surefoot.core.text.urls import redacted
from surefoot.run import Run
from surefoot.telling.text import Line, Style, count, cut, program_text, tokens, visible, without_password
from surefoot.types.messages import Usage
from surefoot.types.outcomes import ALLOWED, Completed

READY = "ready to resume"
"""How a run stands once a person has said what it waited for."""

_GAP = 2
_LEAST_CELLS = 4
_LEAST_COLUMN = 10
_COLUMNS = ("run", "status", "started", "records", "cost", "model", "task")
_LIMITS = {
    "steps": "--max-steps",
    "tokens": "--max-tokens",
    "cost": "--max-cost",
    "time": "--max-seconds",
    "round_limit": "--max-rounds",
    "replan_budget": "--max-replans",
    "llm_budget": "--max-steps",
    "token_budget": "--max-tokens",
    "cost_budget": "--max-cost",
}
_DELIVERING = ("mono", "dual")
"""The reasoners that go in rounds, to a deliverable."""


def in_columns(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Rows of cells under each other, in at most `width`; where that is not enough, the widest column gives way."""
    wide = [min(max(map(cell_len, column)), max(width, 1)) for column in zip(*rows, strict=True)]
    while sum(wide) + _GAP * sum(map(bool, wide)) > width + _GAP and max(wide) > _LEAST_CELLS:
        wide[wide.index(max(wide))] -= 1
    return [cut(_row(row, wide), max(width, 1)) for row in rows]


def _row(cells: Sequence[str], wide: Sequence[int]) -> str:
    shown = [set_cell_size(cut(cell, most), most) for cell, most in zip(cells, wide, strict=True) if most]
    return (" " * _GAP).join(shown).rstrip()


def listing(rows: Sequence[Sequence[str]], width: int) -> list[Line]:
    """Runs under each other, in `width` cells. What one would type again is never cut; the rest shares what is left."""
    table = [_COLUMNS, *rows]
    *whole, model, _ = (max(map(cell_len, column)) * any(column[1:]) for column in zip(*table, strict=True))
    room = max(width - sum(whole) - _GAP * (sum(map(bool, whole)) + 1), 2 * _LEAST_COLUMN)
    model = min(model, max(room // 3, _LEAST_COLUMN))
    wide = (*whole, model, room - model)
    return [Line(_row(row, wide), "head" if row is _COLUMNS else "") for row in table]


def header(state: State, run: Run, started_at: str, events: int) -> list[Line]:
    """What `show` says before the steps: of several models, also what each has used."""
    lines = [Line(f"run {visible(state.run_id)} · {status_line(run)}", "head")]
    if state.earlier:
        lines.append(Line(f"follows: {visible(state.earlier[-1].run_id)}"))
    if state.task:
        lines.append(Line(f"task: {visible(redacted(state.task.text))}"))
        for one in state.task.attachments:
            size = one.text[1:-1] if one.digest else f"{len(one.text):,} characters"
            lines.append(Line(f"with: {visible(one.name)} ({visible(size)})", "dim"))
    rounds = f" · {count(run.rounds, 'round')}" if state.reasoner in _DELIVERING else ""
    if (solo := state.speakers.get(SOLO)) is not None:
        model = f"{visible(without_password(solo.model))} · mode {solo.mode}"
        lines.append(Line(f"model: {model} · reasoner {state.reasoner}{rounds}", "dim"))
    else:
        lines.append(Line(f"reasoner {state.reasoner}{rounds}", "dim"))
        for role, one in state.speakers.items():
            used = f"{count(one.replies, 'reply', 'replies')} · {tokens(one.usage)}"
            model = visible(without_password(one.model))
            lines.append(Line(f"{visible(role)}: {model} · mode {one.mode} · {used}", "dim"))
    names = [name for name in state.tools.names if name != READ_RESULT]
    lines.append(Line(f"tools: {visible(', '.join(names)) or 'none'}", "dim"))
    lines.append(Line(f"started: {started_at} · {count(events, 'record')}", "dim"))
    for role, speaker in state.speakers.items():
        if speaker.traits:
            whose = "" if role == SOLO else f" of the {visible(role)}"
            traits = ", ".join(f"{name}={value}" for name, value in sorted(speaker.traits.items()))
            lines.append(Line(f"traits{whose}: {visible(traits)}", "dim"))
    return lines


def outcome(run: Run, reasoner: str) -> str:
    """What the task was about: of a deliverable its final output, else the whole answer."""
    return (run.deliverable.output if reasoner in _DELIVERING else "") or run.answer


def dollars(usage: Usage) -> str:
    """What it cost; "" where that is not known."""
    return "" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"


def status_line(run: Run) -> str:
    """How a run stands, and what it used."""
    reason = f" ({visible(run.reason)})" if run.reason else ""
    used = [count(run.requests, "request"), tokens(run.usage), f"{run.elapsed_s:.1f} s"]
    used += [dollars(run.usage)] * (run.usage.cost_usd is not None)
    status = READY if run.status == "ready" else run.status.replace("_", " ")
    return f"{status}{reason} · {' · '.join(used)}"


def closing(run: Run, hint: str = "", *, is_kept: bool = True) -> list[Line]:
    """The last words about a run: how it stands, why, and what a person can do next. `hint` ends each command.

    `is_kept`: what it was started with is known here, so `surefoot resume` needs no more.
    """
    style: Style = "good" if run.status == "completed" else "bad" if run.status == "failed" else "warn"
    lines = [Line(f"{status_line(run)} · run {visible(run.id)}", style)]
    if run.detail:
        lines.append(Line(visible(run.detail), style))
    resume, steps = f"surefoot resume {run.id}{hint}", list[str]()
    match run.status:
        case "paused" | "interrupted" | "ready":
            steps = [*(step for asked in run.questions for step in _answers(run, asked, hint)), resume]
        case "running":
            follow, cancel = (f"surefoot {command} {run.id}{hint}" for command in ("show --follow", "cancel --by NAME"))
            steps = [f"{follow}  (a server, a worker or another command drives it)", cancel]
        case "failed":
            steps = [f"{resume}  (once that is fixed)"]
        case "completed_partial" | "stopped" if run.reason in _LIMITS:
            steps = [f"{resume} {_LIMITS[run.reason]} MORE"]
        case _:
            pass
    if steps and steps[-1].startswith(resume) and not is_kept:
        told = f"name its tools with --tools, or agent.resume_sync({run.id!r})"
        steps.append(f"how it was started is not on file: {told}")
    return lines + [Line(text, indent=2) for text in steps]


def _answers(run: Run, asked: Sequence[Call], hint: str) -> list[str]:
    """What can be said about calls, or a plan, that wait. All of a call is shown: its end counts, too."""
    one = asked[0]
    approve = f"surefoot approve {run.id} {one.id} --by NAME{hint}"
    if len(asked) > 1:
        rows = [f"  {at}. {visible(program_text(call).replace(chr(10), ' '))}" for at, call in enumerate(asked, 1)]
        return [f"{approve}  (or --refuse): {len(asked)} calls, asked as one question", *rows]
    if one.id == PLAN:
        return [f'{approve}  (or --deny, or --deny --note "what else")']
    call = visible(program_text(one).replace("\n", " "))
    if not one.attempts:
        return [f"{approve}  (or --refuse): {call}"]
    return [
        f"{call} was interrupted, and it is unknown whether it took effect. Find out, then say which:",
        f"surefoot settle {run.id} {one.id} --done|--not-done --by NAME{hint}",
        f"or give it up: surefoot approve {run.id} {one.id} --outcome abandon --by NAME{hint}",
    ]


def ending_lines(state: State) -> list[Line]:
    """What a run ended with; of one that has not ended, the calls that are allowed and run as soon as it is resumed."""
    if (ending := state.ending) is None:
        calls = [call for _, call in open_calls(state) if call.decision == ALLOWED and not call.attempts]
        return [Line(f"on resume: {visible(program_text(call))}", "warn") for call in calls]
    answer: str = getattr(ending, "answer", "")
    head = Line(f"ended: {ending.kind.replace('_', ' ')}", "good" if isinstance(ending, Completed) else "warn")
    return [head, *(Line(visible(row), indent=2) for row in answer.splitlines())]


def as_plain(run: Run, reasoner: str) -> Mapping[str, object]:
    """A run for machines. `deliverable` is there when the answer has parts; `answer` is all of it."""
    parts = run.deliverable
    has_parts = reasoner in _DELIVERING and parts.output != parts.body
    return {
        "id": run.id,
        "status": run.status,
        "answer": run.answer,
        **({"deliverable": {name: getattr(parts, name) for name in PARTS}} if has_parts else {}),
        "reason": run.reason,
        "detail": run.detail,
        "requests": run.requests,
        "elapsed_s": run.elapsed_s,
        "reasoner": reasoner,
        "rounds": run.rounds,
        "model": without_password(run.model),
        "models": {role: without_password(model) for role, model in run.models.items()},
        "usage": run.usage,
        "waiting": [{"id": one.id, "tool": one.name, "arguments": one.arguments} for one in run.waiting],
    }
