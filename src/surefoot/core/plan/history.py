"""What has happened in a planned run, as one Markdown text for whoever thinks about it: most important first.

Folded from the journal each time, so that there is one truth. Over its limit, outputs of steps that succeeded shrink to
size, digest and fields, then these steps to a line each, the oldest first; then what else is told; failures last. What
tools and models wrote stands in frames. Source: spec/planning.md, section 9.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256

from surefoot.core.plan.dag import Planning, StepRecord
from surefoot.core.plan.framed import clipped, framed, named, trust_of_words
from surefoot.core.plan.reading import object_of
from surefoot.core.plan.statistics import statistics
from surefoot.core.plan.wording import guidance_text, strategy_words
from surefoot.core.state import State
from surefoot.core.text import json_text
from surefoot.core.told import attribute
from surefoot.types.dataclass import dataclass
from surefoot.types.plan import StepExecutionResult
from surefoot.types.plan_events import StepReflected
from surefoot.types.reflection import OverallReflectionGuidance
from surefoot.types.tools import Trust

_LONGEST_OUTPUT = 2_000
_LONGEST_ERROR = 1_000
_LONGEST_PARAMETERS = 1_000
_LONGEST_LINE = 160
_SHORT = 200
_LONGEST_ID = 64
"""Bytes of each."""

_MOST_FIELDS = 12
_MOST_REFUSALS = 20
_FIELD = re.compile(r"[A-Za-z0-9_-]{1,40}")
_BYTES_A_TOKEN = 4
_NOT_SHOWN = "\n\n({0} more entries are not shown)"


@dataclass(frozen=True, slots=True)
class _Entry:
    """One thing that is told: whole first, then shorter and shorter."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Section:
    title: str
    entries: tuple[_Entry, ...]


def history(state: State, planning: Planning, about: str = "", *, advice: bool = True) -> str:
    """The document, at most `history_max_tokens` long by estimate.

    `about` is the step of a step's reflection: its figures are told, and its failures are left to whoever asks. Without
    `advice` the newest guidance is left to them too.
    """
    done = _section("Succeeded steps", (_succeeded(state, planning, one) for one in _with(planning, "succeeded")))
    failed = _section("Failed steps", (_failed(state, planning, one) for one in _having_failed(planning, about)))
    others = (
        _section("Refused proposals", _refusals(state, planning)),
        _section("Changes of the plan", _edits(state, planning)),
    )
    left = ("skipped", "superseded", "in_doubt", "cancelled", "running", "waiting", "pending")
    rest = (
        _section("Other steps", (_line(one) for status in left for one in _with(planning, status))),
        _section("Guidance so far", _guidance(state, planning, advice=advice)),
    )
    figures = _Section("Statistics", (_Entry((statistics(state, planning, about),)),))
    return _fitted((figures, failed, *others, done, *rest), planning.config.history_max_tokens * _BYTES_A_TOKEN)


def _section(title: str, entries: Iterable[_Entry]) -> _Section:
    return _Section(title, tuple(entries))


def _with(planning: Planning, status: str) -> list[StepRecord]:
    return [one for name in planning.order if (one := planning.steps[name]).status == status]


def _having_failed(planning: Planning, about: str) -> list[StepRecord]:
    """The steps whose failures are told whole: those that have failed and not succeeded since."""
    records = (planning.steps[name] for name in planning.order if name != about)
    return [one for one in records if one.failures and one.status not in ("succeeded", "superseded")]


# ------------------------------------------------------------------ what is told


def title_of(record: StepRecord) -> str:
    """A step on one line: id, what it calls, how far it has come."""
    attempts = f", attempt {record.attempt}" if record.attempt > 1 else ""
    name, actor = record.step.step_id, attribute(record.step.tool_id or record.step.kind)
    return f"{named(name)} ({clipped(actor, _LONGEST_ID)}): {record.status}{attempts}"


def _failed(state: State, planning: Planning, record: StepRecord) -> _Entry:
    """Parameters, and each attempt with what was decided about it."""
    attempts = [_attempt(record, one) for one in record.failures]
    head = f"parameters: {clipped(json_text(record.step.parameters), _LONGEST_PARAMETERS)}"
    if record.step.kind != "tool":
        head = f"instruction: {clipped(record.step.instruction, _LONGEST_PARAMETERS)}"
    whole = "\n".join((head, *attempts))
    texts = [
        _of_step(state, planning, record, whole),
        _of_step(state, planning, record, clipped(attempts[-1], _SHORT)),
        f"- {title_of(record)}, {len(record.failures)} failures",
    ]
    return _Entry(tuple(texts))


def _attempt(record: StepRecord, one: StepExecutionResult) -> str:
    error = one.error
    told = f"{error.cls} {error.code}: {clipped(error.message, _LONGEST_ERROR)}" if error is not None else "failed"
    with_ = f" with {clipped(json_text(one.parameters), _LONGEST_PARAMETERS)}" if one.parameters else ""
    decided = next((after for after in record.reflected if after.attempt == one.attempt), None)
    return f"attempt {one.attempt}{with_}: {told}{_decision(decided)}"


def _decision(after: StepReflected | None) -> str:
    if after is None:
        return ""
    action = after.reflection.suggested_action.type if after.reflection is not None else after.why
    cause = after.reflection.root_cause if after.reflection is not None else ""
    return f" -> {after.decision} ({action})" + (f", because {clipped(cause, _SHORT)}" if cause else "")


def _succeeded(state: State, planning: Planning, record: StepRecord) -> _Entry:
    result = record.result
    line = f"- {title_of(record)}"
    if result is None:
        return _Entry((line,))
    made = result.parameters if record.step.kind == "tool" else {"instruction": record.step.instruction}
    head = f"parameters: {clipped(json_text(made), _LONGEST_PARAMETERS)}"
    whole = _of_step(state, planning, record, f"{head}\noutput: {clipped(result.output, _LONGEST_OUTPUT)}")
    digest = f"{line}; {len(result.output)} characters, digest {_digest(result.output)}{fields_of(record)}"
    return _Entry((whole, digest + (f"; call {result.call_id}" if result.call_id else ""), line))


def _of_step(state: State, planning: Planning, record: StepRecord, text: str) -> str:
    """A step's line, and in a frame what was told of it."""
    read = record.result.trust if record.result is not None and record.result.is_success else "untrusted"
    trust: Trust = "untrusted" if "untrusted" in (read, trust_of_words(planning)) else "trusted"
    most = _LONGEST_OUTPUT + 2 * _LONGEST_PARAMETERS
    source = f"step {named(record.step.step_id)}"
    return f"- {title_of(record)}{fields_of(record)}\n{framed(state, text, source, trust, most)}"


def fields_of(record: StepRecord) -> str:
    """The fields that references can name in a step's value; "" where it has none."""
    names = [one for one in object_of(record.value) or {} if _FIELD.fullmatch(one)]
    return f"; fields {', '.join(names[:_MOST_FIELDS])}" if names else ""


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def _line(record: StepRecord) -> _Entry:
    return _Entry((f"- {title_of(record)}",))


def _refusals(state: State, planning: Planning) -> Iterable[_Entry]:
    """The newest refusals; their details are what models wrote."""
    lines = [
        clipped(f"- {one.kind} {one.about}: {one.what} {one.detail}", _LONGEST_LINE)
        for one in planning.refusals[-_MOST_REFUSALS:]
    ]
    return _in_a_frame(state, planning, lines, "refused proposals")


def _edits(state: State, planning: Planning) -> Iterable[_Entry]:
    lines = [
        clipped(f"- v{one.base_version} to v{one.version}: {strategy_words(one.strategy)}", 2 * _LONGEST_LINE)
        for one in planning.edits
    ]
    return _in_a_frame(state, planning, lines, "changes of the plan")


def _guidance(state: State, planning: Planning, *, advice: bool) -> Iterable[_Entry]:
    """What each overall reflection has advised, the newest first."""
    for one in reversed(planning.reflections if advice else planning.reflections[:-1]):
        text = guidance_text(OverallReflectionGuidance.of(one.reflection))
        yield _Entry(
            tuple(framed(state, text, "a reflection", trust_of_words(planning), most) for most in (1_000, _SHORT))
        )


def _in_a_frame(state: State, planning: Planning, lines: list[str], source: str) -> Iterable[_Entry]:
    if not lines:
        return
    trust = trust_of_words(planning)
    short = lines[-3:]
    most = 2 * _LONGEST_LINE * len(lines) + _SHORT
    yield _Entry(tuple(framed(state, "\n".join(some), source, trust, most) for some in (lines, short)))


# ------------------------------------------------------------------ the limit


def _fitted(sections: tuple[_Section, ...], most: int) -> str:
    """The sections within so many bytes."""
    figures, failed, *_, done, _rest, _guided = sections
    levels = {id(entry): 0 for section in sections for entry in section.entries}
    size = _size(_written(sections, levels))
    others = [entry for section in sections if section not in (figures, failed, done) for entry in section.entries]
    steps = [(done.entries, 1), (done.entries, 2), (tuple(others), 1), (failed.entries, 1), (failed.entries, 2)]
    for entries, level in steps:
        for entry in entries:
            if size <= most:
                return _written(sections, levels)
            if level < len(entry.texts):
                size -= _size(entry.texts[levels[id(entry)]]) - _size(entry.texts[level])
                levels[id(entry)] = level
    dropped = 0
    for section in reversed(sections[1:]):
        for entry in section.entries:
            made = _written(sections, levels) if size <= most else ""
            more = _NOT_SHOWN.format(dropped) if dropped else ""
            if made and _size(made + more) <= most:
                return made + more
            size -= _size(entry.texts[levels.pop(id(entry))])
            dropped += 1
    made = _written(sections, levels) + _NOT_SHOWN.format(dropped)
    return made if _size(made) <= most else made.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def _written(sections: tuple[_Section, ...], levels: Mapping[int, int]) -> str:
    parts: list[str] = []
    for section in sections:
        shown = [one.texts[levels[id(one)]] for one in section.entries if id(one) in levels]
        if shown:
            parts.append("\n".join((f"## {section.title}", *shown)))
    return "\n\n".join(parts)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
