"""A run told in lines, event by event: pure. Who prints them, and how, is decided elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from rich.cells import cell_len

from surefoot.cli.lines import Line, Style, count, cut, tokens, visible, without_password, written
from surefoot.cli.plan_lines import plan_lines, step_lines
from surefoot.cli.plan_table import concerns_a_person, row_line, selection_line, settled_rows
from surefoot.cli.why import grounds_lines, intent_line, question_lines, stage_lines, tree_lines
from surefoot.core.guard.judge import asked_of
from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import next_moves
from surefoot.core.loop.phase import phase_of
from surefoot.core.state.pager import READ_RESULT
from surefoot.core.state.roles import ACTOR, SOLO, TAGGED
from surefoot.core.state.state import EMPTY, Call, State, Turn
from surefoot.knowledge.prefetch.urls import redacted
from surefoot.types.endings import Allow, Ask, Deny
from surefoot.types.events import (
    CallEnded,
    CallJudged,
    CallReused,
    CallStarted,
    ConventionsRead,
    DoubtSettled,
    Event,
    InStep,
    IntentAnchored,
    ModelFailed,
    ModelReplied,
    ModelTraitLearnt,
    PreHydrationComplete,
    ReferencesFound,
    RunEnded,
    RunForked,
    RunResumed,
    RunStarted,
    Speaker,
    StepLimitReached,
    ToolsSelected,
    ToolsShortlisted,
    ValuesEndorsed,
    models_line,
)
from surefoot.types.guard_events import GuardEvent, JudgementMade, OfTree, PerceptionSanitised, SpeculationEvent
from surefoot.types.messages import ToolProgress
from surefoot.types.moves import Think
from surefoot.types.plan_events import OfPlan, OfStep, ProposalMade, StepStarted
from surefoot.types.tools import ToolResult

_SHOWN_LINES = 20
_ACTION = re.compile(r"</?action>")

_SETTLED = {
    "done": "took effect",
    "not_done": "took no effect",
    "abandoned": "is given up",
    "unknown": "cannot be told",
}

_OUTCOMES = {
    "cut": "the answer was cut by the length limit",
    "narrated": "the model wrote about a tool but called none, and was told so",
    "no_step": "the reply holds no step, and the model was reminded",
    "empty": "the reply is empty",
    "refused": "the model refused",
}


class Teller:
    """Tells a run event by event. `width` is in cells; `detail`: all of it, with times and record numbers.

    `state` is the run as far as it was told; for a run that goes on, it begins with what happened before.
    """

    def __init__(self, state: State, *, width: int = 200, detail: bool = False) -> None:
        self.state = state
        self._width = width
        self._detail = detail
        self._began: dict[str, float] = {}
        self._inner: dict[str, State] = {}
        self._last_at = 0.0

    def tell(self, event: Event, at: float) -> list[Line]:
        """The lines of one event that happened at `at` (seconds since the epoch)."""
        before = self.state
        self.state = fold((event,), before)
        if before.planning is None or self._detail:
            lines = self._lines(event, before.seen, at)
        else:
            lines = self._of_plan(event, before, at)
        self._last_at = at
        return lines

    def _of_plan(self, event: Event, before: State, at: float) -> list[Line]:
        """A planned run, a line for each thing that happens: what goes on inside a step is not one, but a question."""
        if isinstance(event, StepStarted):
            self._began[event.step_id] = at
            return []
        lines = [] if isinstance(event, OfStep) else self._lines(event, before.seen, at)
        if isinstance(event, InStep) and not concerns_a_person(event.event):
            lines = []
        settled = settled_rows(before, self.state, event)
        took = [(row, at - self._began.get(row.step_id, at)) for row in settled]
        return lines + [replace(one, text=cut(one.text, self._width)) for one in (row_line(*each) for each in took)]

    def _lines(self, event: Event, seq: int, at: float) -> list[Line]:
        match event:
            case RunStarted():
                return [] if self._detail else [Line(_opening(self.state), "head")]
            case RunResumed(by, speakers):
                return [Line(f"taken up again by {visible(by)}{_with(speakers)}", "head")]
            case RunForked(_, parent, forked_at, speakers):
                return [Line(f"forked from {visible(parent)} at record {forked_at}{_with(speakers)}", "head")]
            case ToolsSelected():
                return self._selected(event)
            case ModelTraitLearnt(model, trait, value, evidence):
                return [self._one(f"* learnt about {without_password(model)}: {trait} is {value} ({evidence})", "warn")]
            case ModelReplied():
                return self._reply(event, seq, at)
            case ModelFailed(kind, message, attempts, role):
                tried = f"{_whose(role)}no reply after {count(attempts, 'attempt')} ({kind})"
                return [Line(f"! {tried}: {visible(message)}", "bad")]
            case CallJudged():
                return self._judged(event)
            case IntentAnchored(anchor):
                return [self._one(intent_line(anchor), "dim", 2), *self._stage(event)]
            case PerceptionSanitised() | JudgementMade() | OfTree():
                return self._stage(event)
            case ValuesEndorsed(call_id, values, by):
                told = f"{visible(by)} took {count(len(values), 'value')} of {self._what(call_id)} for the user's own"
                return [self._one(told, "dim", 2)]
            case CallReused(call_id, known):
                what = self._result(call_id, self._call(call_id).result)
                return [self._one(f"= {self._what(call_id)}  known from call {known}", "call", 2), *what]
            case CallStarted(call_id, attempt):
                self._began[call_id] = at
                again = f"  (attempt {attempt})" if attempt > 1 else ""
                return [self._one(f"→ {self._what(call_id)}{again}", "call", 2)]
            case CallEnded(call_id, result):
                return self._result(call_id, result, at - self._began.get(call_id, at))
            case DoubtSettled(call_id, outcome, by):
                told = _SETTLED[outcome]
                return [self._one(f"? {self._what(call_id)}  {told}, says {by}", "warn", 2)]
            case ReferencesFound(calls=calls):
                return [self._one(f"references to fetch: {len(calls)}", "dim", 2)] if calls else []
            case PreHydrationComplete():
                return self._fetched(event)
            case ConventionsRead(directory, files, error=error, scope=scope):
                told = "; ".join(filter(None, (", ".join(path for path, *_ in files), error)))
                what = f"of {scope or directory}" if self.state.turn else "read before the first model call"
                return [self._one(f"conventions {what}: {told}", "dim", 2)] if told else []
            case StepLimitReached(attempts=attempts, reason=reason, action=action):
                return [self._one(f"! {visible(reason)}  ({attempts}; {action})", "warn", 2)]
            case OfStep():
                return [self._one(text, style) for text, style in step_lines(event, self.state)]
            case OfPlan() | ToolsShortlisted():
                given = event.message.content if self._detail and isinstance(event, ProposalMade) else ""
                return [self._one(text, style) for text, style in plan_lines(event)] + self._text(given, "dim")
            case InStep():
                return self._inside(event, seq, at)
            case RunEnded():
                return []
            case _:
                assert_never(event)

    def _inside(self, event: InStep, seq: int, at: float) -> list[Line]:
        """What happened inside a running step, told as of a run of its own."""
        planning, before = self.state.planning, self._inner.get(event.step_id, EMPTY)
        child = planning.children.get(event.step_id) if planning is not None else None
        self._inner[event.step_id] = child if child is not None else fold((event.event,), before)
        inner = Teller(self._inner[event.step_id], width=self._width - 2, detail=self._detail)
        inner._began, inner._last_at = self._began, self._last_at  # calls have names that are new in the run
        return [replace(line, indent=line.indent + 2) for line in inner._lines(event.event, seq, at)]

    def _reply(self, event: ModelReplied, seq: int, at: float) -> list[Line]:
        lines: list[Line] = []
        parsed, usage = event.parsed, event.message.usage
        if self._detail:
            took = f" · {at - self._last_at:.1f} s" if self._last_at else ""
            role = "" if event.role == SOLO else f"{visible(event.role)} · "
            told = f"step {event.step} · {role}record {seq}{took} · {tokens(usage)} · {event.mode}"
            lines.append(Line(told + (" · last word" if event.want == "answer" else ""), "head"))
            lines += self._text(event.message.reasoning, "dim", "(reasoning) ")
        turn = self.state.turn
        if turn is None:
            return lines
        lines += self._words(turn)
        if parsed.warnings:
            lines.append(Line(f"~ {', '.join(sorted(parsed.warnings))}", "warn", 2))
        if turn.outcome in _OUTCOMES:
            lines.append(Line(f"! {_whose(turn.role)}{_OUTCOMES[turn.outcome]}", "warn", 2))
        for faulty in (call for call in turn.calls if call.fault):
            lines.append(self._one(f"! {faulty.name or 'a call'}: {_fault(faulty)}", "bad", 2))
        if turn.outcome == "fault" and not turn.calls and parsed.error:
            wrong = f"{_whose(turn.role)}unreadable: {parsed.error.kind}: {parsed.error.detail}"
            lines.append(self._one(f"! {wrong}", "bad", 2))
        return lines

    def _words(self, turn: Turn) -> list[Line]:
        """What was said: besides calls, or by one of two to the other."""
        said = said_of(turn, is_tagged=self.state.reasoner in TAGGED)
        style: Style = "" if turn.outcome == "instruction" else "dim"
        if self._detail:
            return [line for part in said for line in self._text(part, style)]
        if turn.role == SOLO:
            return [Line(visible(part), style) for part in said]
        return [self._one(f"{_whose(turn.role)}{' · '.join(said)}".rstrip(), style)] if said or turn.calls else []

    def _stage(self, event: IntentAnchored | GuardEvent | SpeculationEvent) -> list[Line]:
        """What a stage of the guard found, or came of a tree; that it failed stands out."""
        lines = tree_lines(event) if isinstance(event, OfTree) else stage_lines(event)
        has_failed = any(line.startswith("!") for line in lines)
        return [self._one(line, "warn" if has_failed else "dim", 2) for line in lines]

    def _judged(self, event: CallJudged) -> list[Line]:
        """The verdict; below it what it rests on, and of a question what a person has to look at."""
        verdict = self._verdict(event)
        call = self._call(event.call_id)
        asked = asked_of(self.state, call)
        if lines := question_lines(call, event, others=asked.values if asked else ()):
            return verdict + [Line(visible(line), "dim", 4) for line in lines]  # all of it: a person answers for it
        return verdict + [self._one(line, "dim", 4) for line in grounds_lines(event, every=self._detail)]

    def _verdict(self, event: CallJudged) -> list[Line]:
        rule = f" [{event.rule}]" if event.rule and event.rule != "person" else ""
        match event.decision:
            case Allow():
                return (
                    [self._one(f"✓ {self._what(event.call_id)}  allowed by {event.by}", "good", 2)] if event.by else []
                )
            case Ask(reason):
                return [self._one(f"? {self._what(event.call_id)}  waits for a person: {reason}{rule}", "warn", 2)]
            case Deny(reason):
                return [self._one(f"✗ {self._what(event.call_id)}  denied: {reason}{rule}", "bad", 2)]
            case _:
                assert_never(event.decision)

    def _result(self, call_id: str, result: ToolResult | None, took_s: float | None = None) -> list[Line]:
        if result is None:
            return []
        result = replace(result, content=_shown(call_id, result.content))
        style: Style = "bad" if result.is_error else "result"
        whose = f"{visible(self._call(call_id).name)}: " if len(self.state.calls) > 1 else ""
        kind = "" if result.kind in ("ok", "error") else f"{result.kind}: "
        more = f" ({took_s:.2f} s)" if took_s is not None and self._detail else ""
        size = f"  … {result.size:,} characters in all" if result.blob else ""
        if self._detail:
            return self._text(result.content.rstrip() + size + more, style, f"← {whose}{kind}", 2)
        rows = result.content.strip().splitlines() or ["(nothing)"]
        rest = f"  … {count(len(rows) - 1, 'more line')}" if len(rows) > 1 else size
        room = self._width - 2 - cell_len(rest)
        return [Line(cut(f"← {whose}{kind}{visible(rows[0])}", room) + rest, style, 2)]

    def _text(self, text: str, style: Style, mark: str = "", indent: int = 2) -> list[Line]:
        """All of a text, up to a page."""
        if not text.strip():
            return []
        rows = (mark + text.strip()).splitlines()
        shown = [
            Line(visible(row), style, indent if at == 0 else indent + 2) for at, row in enumerate(rows[:_SHOWN_LINES])
        ]
        if len(rows) > _SHOWN_LINES:
            shown.append(
                Line(f"… {count(len(rows) - _SHOWN_LINES, 'more line')} (--events has all)", "dim", indent + 2)
            )
        return shown

    def _selected(self, event: ToolsSelected) -> list[Line]:
        """How many tools are offered, and how many each stage of a profile dropped; with details, which."""
        if event.selection is not None:
            return [self._one(selection_line(event.reason, event.selection), "dim")]
        offered = sum(name != READ_RESULT for name in event.visible)
        by_stage = ", ".join(f"{visible(stage)} {number}" for stage, number in event.counts.items())
        why = f" ({visible(event.reason)})" if event.reason else ""
        lines = [Line(f"tools offered: {offered}{why}" + (f" · dropped: {by_stage}" if by_stage else ""), "dim")]
        if self._detail:
            lines.append(Line(visible(", ".join(event.visible)) or "none", "dim", 2))
            lines += [Line(visible(f"- {name}  {stage}: {detail}"), "dim", 2) for name, stage, detail in event.dropped]
            lines += [Line(visible(f"+ {name}  first seen: pin {pin}"), "dim", 2) for name, pin in event.pinned.items()]
        lines += [self._one(f"? {name}: {why}", "warn", 2) for name, why in event.doubted.items()]
        return lines + [self._one(f"! {warning}", "warn", 2) for warning in event.warnings]

    def _fetched(self, event: PreHydrationComplete) -> list[Line]:
        """What was fetched before the first model call."""
        counts = f"{event.references_resolved} of {event.references_found} references, {event.total_tokens} tokens"
        lines = [self._one(f"fetched before the first model call: {counts}", "dim", 2)]
        for item in event.items:
            how = f"{item.tokens} tokens" if item.status == "resolved" else item.error
            lines.append(self._one(f"  {item.type} {item.value}  {item.status}: {how}", "dim", 2))
        return lines

    def _one(self, text: str, style: Style, indent: int = 0) -> Line:
        whole = visible(text.replace("\n", " "))
        return Line(whole if self._detail else cut(whole, self._width - indent), style, indent)

    def _call(self, call_id: str) -> Call:
        return self.state.call(call_id) or Call(call_id, "", "?", {})

    def _what(self, call_id: str) -> str:
        call = self._call(call_id)
        told = _shown(call_id, written(call))
        return f"{told}  #{call_id}" if self._detail else told


def said_of(turn: Turn, *, is_tagged: bool) -> list[str]:
    """What a model said besides its calls, or to the other of two; the text of an answer is told at the end, once.

    `is_tagged`: whether it was asked to put what it does between tags, which are not shown.
    """
    parsed = turn.parsed
    is_report = turn.role == ACTOR and turn.outcome == "answer" and turn.want != "answer"
    said: list[str] = []
    if parsed.instruction is not None:
        given = parsed.instruction.input
        done = "the task is solved" if parsed.instruction.done else ""
        said = [parsed.instruction.text, f"input: {given}" if given else "", done]
    elif is_report and parsed.final is not None:
        said = [f"proposed deliverable: {parsed.final.strip()}"]
    elif is_report or turn.outcome == "calls":
        words = parsed.content or ""
        said = [(_ACTION.sub("", words) if is_tagged else words).strip()]
    return [part for part in said if part]


def under_way(state: State) -> str:
    """What a run is busy with, in a few words; of several models, which."""
    if running := _running(state):
        return f"running {', '.join(running)}"
    if state.planning is not None and state.planning.has_begun:
        return phase_of(state)
    if SOLO in state.speakers:
        return "thinking"
    asked = next((move.role for move in next_moves(state) if isinstance(move, Think)), "")
    return f"{_whose(asked)}thinking" if asked else "thinking"


def progress(state: State, told: ToolProgress) -> str:
    """How far a call is; its name only where several run."""
    call = state.call(told.call_id)
    name = f"{call.name}: " if call and len(_running(state)) > 1 else ""
    total = "" if told.total is None else f" of {told.total:g}"
    return f"{name}{told.text}" + ("" if told.done is None else f" {told.done:g}{total}")


def _shown(call_id: str, text: str) -> str:
    """A text of a call; what a task refers to may hold credentials, so those calls show none."""
    return redacted(text) if call_id.startswith("0.") else text


def _running(state: State) -> list[str]:
    return [visible(call.name) for call in state.calls if call.attempts and call.is_open]


def _whose(role: str) -> str:
    """Who speaks, where there is more than one."""
    return "" if role == SOLO else f"{visible(role).capitalize()}: "


def _opening(state: State) -> str:
    number = len([name for name in state.tools.names if name != READ_RESULT])
    model = without_password(models_line({role: speaker.model for role, speaker in state.speakers.items()}))
    return f"run {state.run_id} · {visible(model)} · {count(number, 'tool') if number else 'no tools'}"


def _with(speakers: Mapping[str, Speaker]) -> str:
    named = (("" if role == SOLO else f"{role} ") + without_password(one.model) for role, one in speakers.items())
    return f", with {visible(' · '.join(named))}" if speakers else ""


def _fault(call: Call) -> str:
    return f"{call.fault.kind}: {call.fault.detail}" if call.fault else ""
