"""How a run stands, what it used, and what a person can do next: lines, from the state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len, set_cell_size

from surefoot.cli.lines import Line, Style, count, cut, tokens, visible, without_password, written
from surefoot.core.parse.deliverable import PARTS
from surefoot.core.plan.accept import PLAN
from surefoot.core.state.pager import READ_RESULT
from surefoot.core.state.roles import SOLO
from surefoot.core.state.state import Call, State
from surefoot.knowledge.prefetch.urls import redacted
from surefoot.run import Run
from surefoot.types.endings import Completed

READY = "ready to resume"
"""How a run stands once a person has said what it waited for."""

_COLUMNS = ("run", "status", "started", "records", "model", "task")
_LEAST_CELLS = 10
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


def header(state: State, run: Run, started_at: str, events: int) -> list[Line]:
    """What `show` says before the steps."""
    lines = [Line(f"run {visible(state.run_id)} · {status_line(run)}", "head")]
    if state.task:
        lines += [Line(f"task: {visible(redacted(state.task.text))}")]
        lines += [
            Line(f"with: {visible(one.name)} ({len(one.text):,} characters)", "dim") for one in state.task.attachments
        ]
    lines += _speakers(state, run)
    names = [name for name in state.tools.names if name != READ_RESULT]
    lines.append(Line(f"tools: {', '.join(names) or 'none'}", "dim"))
    lines.append(Line(f"started: {started_at} · {count(events, 'record')}", "dim"))
    for role, speaker in state.speakers.items():
        if speaker.traits:
            whose = "" if role == SOLO else f" of the {visible(role)}"
            traits = ", ".join(f"{name}={value}" for name, value in sorted(speaker.traits.items()))
            lines.append(Line(f"traits{whose}: {visible(traits)}", "dim"))
    return lines


def _speakers(state: State, run: Run) -> list[Line]:
    """The models, how they are spoken to, and under which reasoner; of several, also what each has used."""
    rounds = f" · {count(run.rounds, 'round')}" if state.reasoner in _DELIVERING else ""
    reasoner = f"reasoner {state.reasoner}{rounds}"
    if (solo := state.speakers.get(SOLO)) is not None:
        return [Line(f"model: {visible(without_password(solo.model))} · mode {solo.mode} · {reasoner}", "dim")]
    lines = [Line(reasoner, "dim")]
    for role, speaker in state.speakers.items():
        used = f"{count(speaker.replies, 'reply', 'replies')} · {tokens(speaker.usage)}"
        model = visible(without_password(speaker.model))
        lines.append(Line(f"{visible(role)}: {model} · mode {speaker.mode} · {used}", "dim"))
    return lines


def outcome(run: Run, reasoner: str) -> str:
    """What the task was about: of a deliverable its final output, else the whole answer."""
    return (run.deliverable.output if reasoner in _DELIVERING else "") or run.answer


def status_line(run: Run) -> str:
    """How a run stands, and what it used."""
    reason = f" ({visible(run.reason)})" if run.reason else ""
    used = [count(run.requests, "request"), tokens(run.usage), f"{run.elapsed_s:.1f} s"]
    if run.usage.cost_usd is not None:
        used.append(f"${run.usage.cost_usd:.4f}")
    status = READY if run.status == "ready" else run.status.replace("_", " ")
    return f"{status}{reason} · {' · '.join(used)}"


def closing(run: Run, hint: str = "") -> list[Line]:
    """The last words about a run: how it stands, why, and what a person can do next. `hint` ends each command."""
    style: Style = "good" if run.status == "completed" else "bad" if run.status == "failed" else "warn"
    lines = [Line(f"{status_line(run)} · run {visible(run.id)}", style)]
    if run.detail:
        lines.append(Line(visible(run.detail), style))
    return lines + [Line(text, indent=2) for text in _next_steps(run, hint)]


def listing(rows: Sequence[Sequence[str]], width: int) -> list[Line]:
    """Runs under each other, in `width` cells. What one would type again is never cut; the rest shares what is left."""
    table = [_COLUMNS, *rows]
    whole = [max(cell_len(row[at]) for row in table) for at in range(len(_COLUMNS) - 2)]
    room = max(width - sum(whole) - 2 * (len(_COLUMNS) - 1), 2 * _LEAST_CELLS)
    model = min(max(cell_len(row[-2]) for row in table), max(room // 3, _LEAST_CELLS))
    widths = (*whole, model, room - model)
    lines: list[Line] = []
    for row in table:
        cells = [set_cell_size(cut(cell, cells), cells) for cell, cells in zip(row, widths, strict=True)]
        lines.append(Line("  ".join(cells).rstrip(), "head" if row is _COLUMNS else ""))
    return lines


def _next_steps(run: Run, hint: str) -> list[str]:
    resume = f"surefoot resume {run.id}{hint}"
    match run.status:
        case "paused" | "interrupted" | "ready":
            return [*(step for one in run.waiting for step in _asked(run, one, hint)), resume]
        case "failed":
            return [f"{resume}  (when that is mended)"]
        case "completed_partial" | "stopped" if run.reason in _LIMITS:
            return [f"{resume} {_LIMITS[run.reason]} MORE"]
        case _:
            return []


def _asked(run: Run, one: Call, hint: str) -> list[str]:
    """What a person can say about a call, or a plan, that waits for them."""
    approve = f"surefoot approve {run.id} {one.id} --by NAME{hint}"
    if one.id == PLAN:
        return [f'{approve}  (or --deny, or --deny --note "what else")']
    if not one.attempts:
        return [f"{approve}  (or --refuse): {_shown(one)}"]
    return [
        f"{_shown(one)} was interrupted, and nobody knows whether it took effect. Look, and say so:",
        f"surefoot settle {run.id} {one.id} --done|--not-done --by NAME{hint}",
        f"or give it up: surefoot approve {run.id} {one.id} --outcome abandon --by NAME{hint}",
    ]


def ending_lines(state: State) -> list[Line]:
    """What a run ended with."""
    ending = state.ending
    if ending is None:
        return []
    answer = getattr(ending, "answer", "")
    lines = [Line(f"ended: {ending.kind.replace('_', ' ')}", "good" if isinstance(ending, Completed) else "warn")]
    return [*lines, *(Line(visible(row), indent=2) for row in answer.splitlines())]


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


def _shown(call: Call) -> str:
    """All of a call, however long: a person answers for what stands at its end, too."""
    return visible(written(call).replace("\n", " "))
