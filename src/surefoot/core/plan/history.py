"""What has happened in a planned run, as one Markdown text for whoever thinks about it: most important first.

Folded from the journal each time, so that there is one truth. Over its limit, outputs of steps that succeeded shrink to
size, digest and fields, then these steps to a line each, the oldest first; then what else is told; failures last. Texts
that are not the user's, the developer's or our own stand between marks that name source and trust, with the run's nonce
in them, whether there is a gate or not. Source: spec/planning.md, section 9.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from typing import assert_never, get_args

from surefoot.core.parse.frames import Frame, key_of, nonce_of
from surefoot.core.plan.accept import MOST_FAULTS
from surefoot.core.plan.choose import EMPTY_SELECTION
from surefoot.core.plan.limits import turns_so_far
from surefoot.core.state.plans import BLOCKED, StepRecord, Tries
from surefoot.core.state.state import Planning, State
from surefoot.core.text import json_text
from surefoot.core.text.json import as_object
from surefoot.core.text.words import table
from surefoot.core.view.observations import attribute, plain
from surefoot.types import reflection
from surefoot.types.plan import Plan, StepExecutionResult, StepStatus
from surefoot.types.plan_events import ProposalRefused
from surefoot.types.reflection import ExecutionContext, OverallReflectionGuidance
from surefoot.types.tools import Trust

NEW = "Each further reflection has to bring a new cause, a new approach or a new fact."

_LONGEST_OUTPUT = 2_000
_LONGEST_ERROR = 1_000
_LONGEST_PARAMETERS = 1_000
_LONGEST_LINE = 160
_SHORT = 200
_LONGEST_ID = 64  # bytes of each
_MOST_FIELDS = 12
_MOST_REFUSALS = 20
_FIELD = re.compile(r"[A-Za-z0-9_-]{1,40}")
_BYTES_A_TOKEN = 4
_FAILED, _DONE = "Failed steps", "Succeeded steps"
_NOT_SHOWN = "\n\n({0} more entries are not shown)"
_LEFT = ("skipped", "superseded", "in_doubt", "cancelled", "running", "waiting", "pending")

_ROUNDS = ((11, "stop unless something new is known"), (6, "warning: many rounds, say what is new"), (4, "reconsider"))
_RETRIES = (
    (6, "escalate: trigger_overall_reflection"),
    (4, "warning: many retries, say what is new"),
    (3, "check whether a retry can help at all"),
)
"""From how many on, and what is said then; the highest first."""


_Entries = tuple[tuple[str, ...], ...]
"""What is told under a title. An entry is one thing: whole first, then shorter and shorter."""


def history(state: State, planning: Planning, about: str = "", *, advice: bool = True) -> str:
    """The document, at most `history_max_tokens` long by estimate.

    `about` is the step of a step's reflection: its figures are told, and its failures are left to whoever asks. Without
    `advice` the newest guidance is left to them too.
    """
    records = [planning.steps[name] for name in planning.order]
    # the failures of those that have not succeeded since are told whole
    failed = [one for one in records if one.failures and one.status not in ("succeeded", "superseded")]
    refused = [
        clipped(f"- {one.kind} {one.about}: {one.what} {one.detail}", _LONGEST_LINE)
        for one in planning.refusals[-_MOST_REFUSALS:]
    ]
    changes = [
        clipped(f"- v{one.base_version} to v{one.version}: {strategy_words(one.strategy)}", 2 * _LONGEST_LINE)
        for one in planning.edits
    ]
    advised = (one.reflection for one in reversed(planning.reflections if advice else planning.reflections[:-1]))
    guides = [guidance_text(OverallReflectionGuidance.of(one)) for one in advised]
    sections: dict[str, _Entries] = {
        "Statistics": ((statistics(state, planning, about),),),
        _FAILED: tuple(_failed(state, planning, r) for r in failed if r.step.step_id != about),
        "Refused proposals": _in_a_frame(state, planning, refused, "refused proposals"),
        "Changes of the plan": _in_a_frame(state, planning, changes, "changes of the plan"),
        _DONE: tuple(_succeeded(state, planning, r) for r in records if r.status == "succeeded"),
        "Other steps": tuple((f"- {title_of(r)}",) for status in _LEFT for r in records if r.status == status),
        "Guidance so far": tuple(
            tuple(framed(state, text, "a reflection", planning.words_trust, most) for most in (1_000, _SHORT))
            for text in guides
        ),
    }
    return _fit(sections, planning.config.history_max_tokens * _BYTES_A_TOKEN)


def title_of(record: StepRecord) -> str:
    """A step on one line: id, what it calls, how far it has come."""
    attempts = f", attempt {record.attempt}" if record.attempt > 1 else ""
    name, actor = record.step.step_id, attribute(record.step.tool_id or record.step.kind)
    return f"{safe_name(name)} ({clipped(actor, _LONGEST_ID)}): {record.status}{attempts}"


def fields_of(record: StepRecord) -> str:
    """The fields that references can name in a step's value; "" where it has none."""
    names = [one for one in as_object(record.value) or {} if _FIELD.fullmatch(one)]
    return f"; fields {', '.join(names[:_MOST_FIELDS])}" if names else ""


def _failed(state: State, planning: Planning, record: StepRecord) -> tuple[str, ...]:
    attempts: list[str] = []
    for one in record.failures:
        error = one.error
        told = f"{error.cls} {error.code}: {clipped(error.message, _LONGEST_ERROR)}" if error is not None else "failed"
        with_ = f" with {clipped(json_text(one.parameters), _LONGEST_PARAMETERS)}" if one.parameters else ""
        after = next((after for after in record.reflected if after.attempt == one.attempt), None)
        if after is not None:
            thought = after.reflection
            told += f" -> {after.decision} ({thought.suggested_action.type if thought is not None else after.why})"
            if thought is not None and thought.root_cause:
                told += f", because {clipped(thought.root_cause, _SHORT)}"
        attempts.append(f"attempt {one.attempt}{with_}: {told}")
    head = f"parameters: {clipped(json_text(record.step.parameters), _LONGEST_PARAMETERS)}"
    if record.step.kind != "tool":
        head = f"instruction: {clipped(record.step.instruction, _LONGEST_PARAMETERS)}"
    return (
        _of_step(state, planning, record, "\n".join((head, *attempts))),
        _of_step(state, planning, record, clipped(attempts[-1], _SHORT)),
        f"- {title_of(record)}, {len(record.failures)} failures",
    )


def _succeeded(state: State, planning: Planning, record: StepRecord) -> tuple[str, ...]:
    result, line = record.result, f"- {title_of(record)}"
    if result is None:
        return (line,)
    made = result.parameters if record.step.kind == "tool" else {"instruction": record.step.instruction}
    head = f"parameters: {clipped(json_text(made), _LONGEST_PARAMETERS)}"
    whole = _of_step(state, planning, record, f"{head}\noutput: {clipped(result.output, _LONGEST_OUTPUT)}")
    digest = sha256(result.output.encode("utf-8", "replace")).hexdigest()[:12]
    short = f"{line}; {len(result.output)} characters, digest {digest}{fields_of(record)}"
    return (whole, short + (f"; call {result.call_id}" if result.call_id else ""), line)


def _of_step(state: State, planning: Planning, record: StepRecord, text: str) -> str:
    """A step's line, and in a frame what was told of it."""
    read = record.result.trust if record.result is not None and record.result.is_success else "untrusted"
    trust: Trust = "untrusted" if "untrusted" in (read, planning.words_trust) else "trusted"
    most, source = _LONGEST_OUTPUT + 2 * _LONGEST_PARAMETERS, f"step {safe_name(record.step.step_id)}"
    return f"- {title_of(record)}{fields_of(record)}\n{framed(state, text, source, trust, most)}"


def _in_a_frame(state: State, planning: Planning, lines: list[str], source: str) -> tuple[tuple[str, ...], ...]:
    """The lines as one entry, and the newest of them."""
    most, trust = 2 * _LONGEST_LINE * len(lines) + _SHORT, planning.words_trust
    texts = ("\n".join(some) for some in (lines, lines[-3:]))
    return (tuple(framed(state, text, source, trust, most) for text in texts),) if lines else ()


def framed(state: State, text: str, source: str, trust: Trust, most: int) -> str:
    """A text as data that cannot end its frame, the first `most` bytes of it."""
    gate = state.gate
    masks = gate.masks.get(key_of(text), ()) if gate is not None and gate.masks else ()
    frame = Frame(nonce_of(state.run_id), masks)
    return frame.around(clipped(plain(frame.cleaned(text)), most), attribute(frame.cleaned(source)), trust)


def clipped(text: str, most: int) -> str:
    """A text cut to so many bytes, with a line that says so."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= most:
        return text
    return f"{raw[:most].decode('utf-8', 'ignore')} … [cut: {len(text)} characters in all]"


def _fit(sections: Mapping[str, _Entries], most: int) -> str:
    figures, *told = sections.values()
    done, failed = sections[_DONE], sections[_FAILED]
    levels = {id(entry): 0 for entries in (figures, *told) for entry in entries}
    size = _size(_render(sections, levels))
    others = tuple(entry for entries in told if entries not in (failed, done) for entry in entries)
    steps = [(done, 1), (done, 2), (others, 1), (failed, 1), (failed, 2)]
    for entries, level in steps:
        for entry in entries:
            if size <= most:
                return _render(sections, levels)
            if level < len(entry):
                size -= _size(entry[levels[id(entry)]]) - _size(entry[level])
                levels[id(entry)] = level
    dropped = 0
    for entries in reversed(told):
        for entry in entries:
            made = _render(sections, levels) if size <= most else ""
            more = _NOT_SHOWN.format(dropped) if dropped else ""
            if made and _size(made + more) <= most:
                return made + more
            size -= _size(entry[levels.pop(id(entry))])
            dropped += 1
    made = _render(sections, levels) + _NOT_SHOWN.format(dropped)
    return made if _size(made) <= most else made.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def _render(sections: Mapping[str, _Entries], levels: Mapping[int, int]) -> str:
    parts: list[str] = []
    for title, entries in sections.items():
        if shown := [one[levels[id(one)]] for one in entries if id(one) in levels]:
            parts.append("\n".join((f"## {title}", *shown)))
    return "\n\n".join(parts)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def statistics(state: State, planning: Planning, about: str = "") -> str:
    """The engine's own figures with one line of advice, for a step's reflection those of that step too."""
    stats, config, budget, round_ = planning.stats, planning.config, planning.loops.budget, current_round(planning)
    counts = Counter(record.status for record in planning.steps.values())
    by_status = ", ".join(f"{counts[one]} {one}" for one in get_args(StepStatus) if counts[one])
    record = planning.steps.get(about)
    retries = record.transient + sum(one.decision == "retry" for one in record.reflected) if record is not None else 0
    mine = f", of this step {retries}" if about else ""
    rows = (
        ("tool calls", stats.tool_calls, config.max_tool_calls),
        ("model calls", turns_so_far(state, planning), config.max_llm_calls),
        ("tokens", state.usage.total_tokens, budget.max_tokens),
        ("seconds", state.elapsed_s, budget.max_seconds),
    )
    used = [f"{name} {count:.0f}" + (f" of {most:.0f}" if most is not None else "") for name, count, most in rows]
    if budget.max_cost_usd is not None:
        used.append(f"US dollars {state.usage.cost_usd or 0.0:.2f} of {budget.max_cost_usd:.2f}")
    lines = [
        f"- round {round_}, step retries {stats.step_retries}{mine}, replans {stats.replans}",
        f"- steps: {by_status or 'none'}; completed {planning.completion_percent} %",
        f"- {', '.join(used)}",
    ]
    if config.max_replans is not None:
        lines.append(f"- replans left: {max(0, config.max_replans - stats.replans)}")
    tables = ((_ROUNDS, round_), (_RETRIES, retries))
    advice = [next((text for least, text in table if count >= least), "") for table, count in tables]
    return "\n".join([*lines, f"- advice: {'; '.join(filter(None, advice)) or 'none'}. {NEW}"])


def current_round(planning: Planning) -> int:
    """The overall reflection that is being made, or the last one; 0 before the first."""
    is_next = planning.phase == "running" and planning.escalation is not None and planning.tries == Tries()
    return planning.stats.rounds + is_next


def execution_context(state: State, planning: Planning) -> ExecutionContext:
    """How far a run is, as an evaluator sees it: what came of its steps, and what is left of the budget."""
    config, stats = planning.config, planning.stats
    results: list[StepExecutionResult] = []
    for name in planning.order:
        record = planning.steps[name]
        results += record.failures
        if record.status == "succeeded" and record.result is not None:
            results.append(record.result)
    deadline_s = planning.loops.budget.max_seconds
    left: dict[str, float | None] = {
        "llm_calls": None if config.max_llm_calls is None else config.max_llm_calls - turns_so_far(state, planning),
        "tool_calls": None if config.max_tool_calls is None else config.max_tool_calls - stats.tool_calls,
        "seconds": None if deadline_s is None else max(0.0, deadline_s - state.elapsed_s),
    }
    plan, selected, effects = planning.plan or Plan(()), planning.selected or (), frozenset(planning.completed_effects)
    answered = tuple(sorted(planning.answered))
    return ExecutionContext(plan, tuple(results), selected, stats, left, planning.failed_calls, effects, answered)


_WITH_FAULTS = frozenset({"invalid_plan", "invalid_strategy"})
_NAME = re.compile(r"[A-Za-z0-9_./-]{1,64}")

NO_GUIDANCE = "No overall reflection has been made."


def safe_name(name: str) -> str:
    """A name that a model may have made up, where it reads as a name; anything else could be a sentence."""
    return name if _NAME.fullmatch(name) else "(a name that is not shown)"


def refusal_words(refused: ProposalRefused) -> str:
    """Why the last proposal was refused, and what to do about it."""
    said: str = table("faults")["proposal"].get(refused.what, safe_name(refused.what))
    said = said.format(", ".join(safe_name(one) for one in refused.detail.split(",")))
    if refused.detail == EMPTY_SELECTION:
        said = "no tools are chosen: choose at least one"
    faults = refused.detail.split(";") if refused.what in _WITH_FAULTS and refused.detail else []
    lines = [f"- {fault_words(one)}" for one in faults[: MOST_FAULTS + 1]]
    return "\n".join((f"Your last reply was refused: {said}", *lines))


def fault_words(fault: str) -> str:
    """One fault in words."""
    code, *places = fault.split(":", 2)
    shown = [*(safe_name(one) for one in places), "", ""]
    known: str | None = table("faults")["plan"].get(code)
    return safe_name(code) if known is None else known.format(*shown)


def cause_words(cause: reflection.Cause) -> str:
    """Why a round of overall reflection began."""
    actor, cls, code = cause
    if cause == BLOCKED:
        return "nothing can go on, although steps are open"
    if actor == "evaluation":
        return f"the evaluation {safe_name(cls)} was not passed"
    return f"{safe_name(actor)} failed with {cls}{f' {code}' if _NAME.fullmatch(code) else ''}"


def guidance_text(guidance: reflection.OverallReflectionGuidance | None) -> str:
    """Guidance in its order; a fixed line where there was no overall reflection."""
    if guidance is None:
        return NO_GUIDANCE
    parts = (
        ("Root causes", guidance.root_causes),
        ("Incorrect assumptions", guidance.incorrect_assumptions),
        ("Alternative approaches", guidance.alternative_approaches),
        ("Lessons learned", guidance.lessons_learned),
    )
    lines = [f"{title}: {'; '.join(texts) or 'none'}" for title, texts in parts]
    strategy = guidance.replanning_strategy
    return "\n".join((*lines, f"Strategy: {strategy_words(strategy) if strategy is not None else 'none'}"))


def strategy_words(strategy: reflection.ReplanningStrategy) -> str:
    """A strategy on one line."""
    match strategy:
        case reflection.FullReplan():
            return strategy.type
        case reflection.ReplanFromStep(step_id, reason):
            words = f"{strategy.type} {step_id}"
        case reflection.SkipSteps(step_ids, reason):
            words = f"{strategy.type} {', '.join(step_ids)}"
        case reflection.AddRemediationSteps(suggestions):
            return f"{strategy.type}: {'; '.join(suggestion_words(one) for one in suggestions)}"
        case reflection.AdjustDependencies(adjustments):
            parts = (
                f"{one.step_id}"
                + (f" depends on {', '.join(one.depends_on) or 'nothing'}" if one.depends_on is not None else "")
                + (f" parameters {json_text(one.parameters)}" if one.parameters is not None else "")
                for one in adjustments
            )
            return f"{strategy.type}: {'; '.join(parts)}"
        case _:
            assert_never(strategy)
    return f"{words}: {reason}" if reason else words


def suggestion_words(suggestion: reflection.RemediationStep | str) -> str:
    """A suggestion on one line."""
    if isinstance(suggestion, str):
        return suggestion
    step = suggestion.step
    at = f" before {suggestion.insert_before}" if suggestion.insert_before else ""
    at = at or (f" after {suggestion.insert_after}" if suggestion.insert_after else "")
    return f"{step.step_id} {step.tool_id or step.instruction}{at}"
