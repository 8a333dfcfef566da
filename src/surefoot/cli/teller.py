"""A run told in lines, event by event: pure. Who prints them, and how, is decided elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from rich.cells import cell_len

from surefoot.cli.lines import Line, Style, brief_parameters, count, cut, tokens, visible, without_password, written
from surefoot.cli.plan_table import edit_line, row_line, selection_line, settled_row, signed_line, step_line
from surefoot.cli.why import grounds_lines, intent_line, question_lines, stage_lines, tree_lines
from surefoot.core.guard.judge import asked_of
from surefoot.core.loop.fold import fold
from surefoot.core.plan.edits import needs_planning
from surefoot.core.state.pager import READ_RESULT
from surefoot.core.state.roles import ACTOR, SOLO, TAGGED
from surefoot.core.state.state import EMPTY, State
from surefoot.core.state.turn import Call, Turn
from surefoot.core.text.urls import redacted
from surefoot.types import events as e
from surefoot.types import plan_events as p
from surefoot.types.guard_events import JudgementMade, OfTree, PerceptionSanitised
from surefoot.types.messages import models_line
from surefoot.types.outcomes import Allow, Ask, Deny
from surefoot.types.plan import PlanStep
from surefoot.types.tools import ToolResult

_SHOWN_LINES = 20
_ACTION = re.compile(r"</?action>")

_SETTLED = {
    "done": "took effect",
    "not_done": "took no effect",
    "abandoned": "is given up",
    "unknown": "cannot be determined",
}

_OUTCOMES = {
    "cut": "the answer was cut by the length limit",
    "narrated": "the model wrote about a tool but called none, and was told so",
    "no_step": "the reply contains no step, and the model was reminded",
    "empty": "the reply is empty",
    "refused": "the model refused",
}

Told = list[tuple[str, Style]]
_CallStopped = e.CallEnded | e.CallPaused


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

    def tell(self, event: e.Event, at: float) -> list[Line]:
        """The lines of one event that happened at `at` (seconds since the epoch).

        Of a planned run, without details, a step is told by its row once it has come to something; what goes on inside
        it is told only where it concerns a person.
        """
        before, lines = self.state, list[Line]()
        self.state = fold((event,), before)
        is_brief = before.planning is not None and not self._detail
        is_inside = isinstance(event, p.OfStep) or (isinstance(event, e.InStep) and not _concerns_a_person(event.event))
        if is_brief and isinstance(event, p.StepStarted):
            self._began[event.step_id] = at
        if not is_brief or not is_inside:
            lines = self._lines(event, before.seen, at)
        if is_brief and (row := settled_row(before, self.state, event)) is not None:
            line = row_line(row, at - self._began.get(row.step_id, at))
            lines.append(replace(line, text=cut(line.text, self._width)))
        self._last_at = at
        return lines

    def _lines(self, event: e.Event, seq: int, at: float) -> list[Line]:
        match event:
            case e.RunStarted(follows=follows):
                number = sum(name != READ_RESULT for name in self.state.tools.names)
                models = {role: speaker.model for role, speaker in self.state.speakers.items()}
                tools = count(number, "tool") if number else "no tools"
                told = f"run {self.state.run_id} · {visible(without_password(models_line(models)))} · {tools}"
                told += f" · follows {visible(follows)}" if follows else ""
                return [] if self._detail else [Line(told, "head")]
            case e.RunResumed(by, speakers):
                return [Line(f"resumed by {visible(by)}{_with(speakers)}", "head")]
            case e.RunForked(_, parent, forked_at, speakers):
                return [Line(f"forked from {visible(parent)} at record {forked_at}{_with(speakers)}", "head")]
            case e.ToolsSelected():
                return self._selected(event)
            case e.ModelTraitLearnt(model, trait, value, evidence):
                return [self._one(f"* learnt about {without_password(model)}: {trait} is {value} ({evidence})", "warn")]
            case e.ModelReplied():
                return self._reply(event, seq, at)
            case e.ModelFailed(kind, message, attempts, role, instead=instead):
                tried = f"{whose(role)}no reply after {count(attempts, 'attempt')} ({kind})"
                then = f"; {visible(without_password(instead.model))} goes on" if instead else ""
                return [Line(f"! {tried}: {visible(message)}{then}", "warn" if instead else "bad")]
            case e.CallJudged():
                return self._judged(event)
            case e.IntentAnchored(anchor):
                return [self._one(intent_line(anchor), "dim", 2), *self._stage(stage_lines(event))]
            case PerceptionSanitised() | JudgementMade():
                return self._stage(stage_lines(event))
            case OfTree():
                return self._stage(tree_lines(event))
            case e.ReferencesFound(calls=calls):
                return [self._one(f"references to fetch: {len(calls)}", "dim", 2)] if calls else []
            case e.PreHydrationComplete():
                counts = f"{event.references_resolved} of {event.references_found} references"
                told = f"fetched before the first model call: {counts}, {event.total_tokens} tokens"
                items = [
                    (one, f"{one.tokens} tokens" if one.status == "resolved" else one.error) for one in event.items
                ]
                rows = [f"  {one.type} {one.value}  {one.status}: {how}" for one, how in items]
                return [self._one(text, "dim", 2) for text in (told, *rows)]
            case e.ConventionsRead(directory, files, error=error, scope=scope):
                told = "; ".join(filter(None, (", ".join(path for path, *_ in files), error)))
                what = f"of {scope or directory}" if self.state.turn else "read before the first model call"
                return [self._one(f"conventions {what}: {told}", "dim", 2)] if told else []
            case e.StepLimitReached(attempts=attempts, reason=reason, action=action):
                return [self._one(f"! {visible(reason)}  ({attempts}; {action})", "warn", 2)]
            case p.OfStep():
                return [self._one(text, style) for text, style in _step_lines(event, self.state)]
            case p.OfPlan() | e.ToolsShortlisted():
                given = event.message.content if self._detail and isinstance(event, p.ProposalMade) else ""
                return [self._one(text, style) for text, style in _plan_lines(event)] + self._text(given, "dim")
            case e.InStep():
                return self._inside(event, seq, at)
            case e.RunEnded():
                return []
            case _:
                return self._call_lines(event, at)

    def _call_lines(
        self, event: e.ValuesEndorsed | e.CallReused | e.CallStarted | _CallStopped | e.DoubtSettled, at: float
    ) -> list[Line]:
        call = self._call(event.call_id)
        what = self._what(call)
        match event:
            case e.ValuesEndorsed(_, values, by):
                taken = f"{visible(by)} accepted {count(len(values), 'value')} of {what} as the user's own"
                return [self._one(taken, "dim", 2)]
            case e.CallReused(_, known):
                return [self._one(f"= {what}  known from call {known}", "call", 2), *self._result(call, call.result)]
            case e.CallStarted(_, attempt):
                self._began[call.id] = at
                again = f"  (attempt {attempt})" if attempt > 1 else ""
                return [self._one(f"→ {what}{again}", "call", 2)]
            case e.CallEnded(_, result):
                return self._result(call, result, at - self._began.get(call.id, at))
            case e.CallPaused(_, inner, by=by):
                told = f"waits for a person in run {inner.run_id}" if inner.waiting else "can go on"
                after = f", since {visible(by)} has answered" if by else ""
                return [self._one(f"? {visible(call.name)}  {told}{after}", "warn", 2)]
            case e.DoubtSettled(_, outcome, by):
                return [self._one(f"? {what}  {_SETTLED[outcome]}, says {by}", "warn", 2)]
            case _:
                assert_never(event)

    def _inside(self, event: e.InStep, seq: int, at: float) -> list[Line]:
        """What happened inside a running step, told as of a run of its own."""
        planning, before = self.state.planning, self._inner.get(event.step_id, EMPTY)
        child = planning.children.get(event.step_id) if planning is not None else None
        self._inner[event.step_id] = child if child is not None else fold((event.event,), before)
        inner = Teller(self._inner[event.step_id], width=self._width - 2, detail=self._detail)
        inner._began, inner._last_at = self._began, self._last_at  # calls have names that are new in the run
        return [replace(line, indent=line.indent + 2) for line in inner._lines(event.event, seq, at)]

    def _reply(self, event: e.ModelReplied, seq: int, at: float) -> list[Line]:
        lines: list[Line] = []
        parsed, turn = event.parsed, self.state.turn
        if self._detail:
            took = f" · {at - self._last_at:.1f} s" if self._last_at else ""
            role = "" if event.role == SOLO else f"{visible(event.role)} · "
            told = f"step {event.step} · {role}record {seq}{took} · {tokens(event.message.usage)} · {event.mode}"
            lines.append(Line(told + (" · last word" if event.want == "answer" else ""), "head"))
            lines += self._text(event.message.reasoning, "dim", "(reasoning) ")
        if turn is None:
            return lines
        said, speaker = said_of(turn, is_tagged=self.state.reasoner in TAGGED), whose(turn.role)
        style: Style = "" if turn.outcome == "instruction" else "dim"
        if self._detail:
            lines += [line for part in said for line in self._text(part, style)]
        elif turn.role == SOLO:
            lines += [Line(visible(part), style) for part in said]
        elif said or turn.calls:
            lines.append(self._one(f"{speaker}{' · '.join(said)}".rstrip(), style))
        if parsed.warnings:
            lines.append(Line(f"~ {', '.join(sorted(parsed.warnings))}", "warn", 2))
        if turn.outcome in _OUTCOMES:
            lines.append(Line(f"! {speaker}{_OUTCOMES[turn.outcome]}", "warn", 2))
        for call in turn.calls:
            if call.fault:
                lines.append(self._one(f"! {call.name or 'a call'}: {call.fault.kind}: {call.fault.detail}", "bad", 2))
        if turn.outcome == "fault" and not turn.calls and parsed.error:
            lines.append(self._one(f"! {speaker}unreadable: {parsed.error.kind}: {parsed.error.detail}", "bad", 2))
        return lines

    def _stage(self, told: list[str]) -> list[Line]:
        """What a stage of the guard found, or came of a tree; that it failed stands out."""
        has_failed = any(line.startswith("!") for line in told)
        return [self._one(line, "warn" if has_failed else "dim", 2) for line in told]

    def _judged(self, event: e.CallJudged) -> list[Line]:
        """The verdict; below it what it rests on, and of a question what a person has to look at."""
        call = self._call(event.call_id)
        what, rule = self._what(call), f" [{event.rule}]" if event.rule and event.rule != "person" else ""
        match event.decision:
            case Allow():
                lines = [self._one(f"✓ {what}  allowed by {event.by}", "good", 2)] if event.by else []
            case Ask(reason):
                lines = [self._one(f"? {what}  waits for a person: {reason}{rule}", "warn", 2)]
            case Deny(reason):
                lines = [self._one(f"✗ {what}  denied: {reason}{rule}", "bad", 2)]
            case _:
                assert_never(event.decision)
        asked = asked_of(self.state, call)
        if question := question_lines(call, event, others=asked.values if asked else ()):
            return lines + [Line(visible(line), "dim", 4) for line in question]  # all of it: a person answers for it
        return lines + [self._one(line, "dim", 4) for line in grounds_lines(event, every=self._detail)]

    def _result(self, call: Call, result: ToolResult | None, took_s: float | None = None) -> list[Line]:
        if result is None:
            return []
        content = _shown(call.id, result.content)
        style: Style = "bad" if result.is_error else "result"
        name = f"{visible(call.name)}: " if len(self.state.calls) > 1 else ""
        kind = "" if result.kind in ("ok", "error") else f"{result.kind}: "
        size = f"  … {result.size:,} characters in all" if result.blob else ""
        if self._detail:
            took = "" if took_s is None else f" ({took_s:.2f} s)"
            return self._text(content.rstrip() + size + took, style, f"← {name}{kind}", 2)
        rows = content.strip().splitlines() or ["(nothing)"]
        rest = f"  … {count(len(rows) - 1, 'more line')}" if len(rows) > 1 else size
        room = self._width - 2 - cell_len(rest)
        return [Line(cut(f"← {name}{kind}{visible(rows[0])}", room) + rest, style, 2)]

    def _text(self, text: str, style: Style, mark: str = "", indent: int = 2) -> list[Line]:
        """All of a text, up to a page."""
        if not text.strip():
            return []
        rows = (mark + text.strip()).splitlines()
        shown = [Line(visible(row), style, indent if row is rows[0] else indent + 2) for row in rows[:_SHOWN_LINES]]
        if left := rows[_SHOWN_LINES:]:
            shown.append(Line(f"… {count(len(left), 'more line')} (--events has all)", "dim", indent + 2))
        return shown

    def _selected(self, event: e.ToolsSelected) -> list[Line]:
        """How many tools are offered, and how many each stage of a profile dropped; with details, which."""
        if event.selection is not None:
            return [self._one(selection_line(event.reason, event.selection), "dim")]
        offered = sum(name != READ_RESULT for name in event.visible)
        by_stage = ", ".join(f"{visible(stage)} {number}" for stage, number in event.counts.items())
        why = f" ({visible(event.reason)})" if event.reason else ""
        lines = [Line(f"tools offered: {offered}{why}" + (f" · dropped: {by_stage}" if by_stage else ""), "dim")]
        if self._detail:
            dropped = (f"- {name}  {stage}: {detail}" for name, stage, detail in event.dropped)
            pinned = (f"+ {name}  first seen: pin {pin}" for name, pin in event.pinned.items())
            told = (", ".join(event.visible) or "none", *dropped, *pinned)
            lines += [Line(visible(text), "dim", 2) for text in told]
        lines += [self._one(f"? {name}: {why}", "warn", 2) for name, why in event.doubted.items()]
        return lines + [self._one(f"! {warning}", "warn", 2) for warning in event.warnings]

    def _one(self, text: str, style: Style, indent: int = 0) -> Line:
        whole = visible(text.replace("\n", " "))
        return Line(whole if self._detail else cut(whole, self._width - indent), style, indent)

    def _call(self, call_id: str) -> Call:
        return self.state.call(call_id) or Call(call_id, "", "?", {})

    def _what(self, call: Call) -> str:
        return _shown(call.id, written(call)) + (f"  #{call.id}" if self._detail else "")


def _plan_lines(event: p.PlanEvent | e.ToolsShortlisted) -> Told:
    match event:
        case p.ProposalMade(by=by):
            return [] if by == "model" else [("a plan was given", "dim")]
        case e.ToolsShortlisted(names):
            return [(f"{count(len(names), 'tool')} to choose from", "dim")]
        case p.ProposalRefused(kind, what, detail):
            return [(f"! {kind} refused: {what} {detail}".rstrip(), "warn")]
        case p.PlanMade(plan):
            what = f": {plan.description}" if plan.description else ""
            head = f"plan v{plan.version} of {count(len(plan.steps), 'step')}{what}"
            return [(head, "head"), *((f"  {step_line(step)}", "dim") for step in plan.steps)]
        case p.PlanEdited():
            return [(f"plan {edit_line(event)}", "head")]
        case p.PlanSigned():
            return [(signed_line(event), "head")]
        case p.StepReflected(step_id, _, decision, reflection, tool_id, parameters, instruction, why):
            cause = f": {reflection.root_cause}" if reflection is not None and reflection.root_cause else ""
            if decision == "escalate":
                return [(f"~ step {step_id}: the whole run is to be reconsidered ({why}){cause}", "warn")]
            again = f"{tool_id} {brief_parameters(parameters)}" if parameters is not None else instruction
            return [(f"~ step {step_id} is tried again: {again.strip()}{cause}", "warn")]
        case p.Escalated(step_id, cause):
            return [(f"! {step_id or 'the run'} is to be reconsidered: {' '.join(filter(None, cause))}", "warn")]
        case p.RunReflected(decision, _, reflection, _, reason, strategy, percent):
            done = f"{reflection.completion_percent} % done, by the engine's count {percent} %"
            if decision == "stop" or strategy is None:
                return [(f"~ stop: {reason} ({done})", "warn")]
            first = " after another selection" if needs_planning(strategy) else ""
            return [(f"~ replan: {strategy.type}{first} ({done})", "warn")]
        case p.RunEvaluated(evaluation):
            return [] if evaluation.passed else [(f"! {evaluation.name}: {evaluation.note}", "warn")]
        case _:
            assert_never(event)


def _step_lines(event: p.StepEvent, state: State) -> Told:
    """Of a step that went well its words are told, since later steps rest on them."""
    steps = state.plan.steps if state.plan is not None else ()
    if state.planning is not None:
        steps = tuple(record.step for record in state.planning.steps.values())
    steps = steps or (PlanStep(event.step_id, tool_id="?"),)
    step = next((one for one in steps if one.step_id == event.step_id), steps[0])
    is_last = step is steps[-1]  # what it said is the answer, which is told at the end, once
    match event:
        case p.StepStarted():
            goal = f": {step.instruction}" if step.instruction else ""
            return [(f"step {step.step_id} ({step.kind}) {step.step_name}".rstrip() + goal, "head")]
        case p.StepEnded(error=error, output=output):
            if error is not None:
                return [(f"✗ step {step.step_id} failed: {error.code}: {error.message}", "bad")]
            return [(f"= {output}", "")] if output and not is_last else []
        case p.StepSkipped(_, reason, by):
            return [(f"step {step.step_id} skipped by {by}: {reason}", "dim")]
        case p.ReasoningStepCompleted(_, output, tries, isolated, sources, trust):
            how = f"{count(tries, 'try', 'tries')}{', with fresh messages' if isolated else ''}"
            rests = f"; rests on {', '.join(sources)} ({trust})" if sources else ""
            lines: Told = [] if is_last else [(f"= {output}", "")]
            return [*lines, (f"✓ step {step.step_id} completed without tools after {how}{rests}", "dim")]
        case p.ReasoningStepViolated(_, attempt, reason, _, tools, after_untrusted):
            called = f"{count(len(tools), 'call')} refused: {', '.join(dict.fromkeys(tools))}" if tools else reason
            seen = "; untrusted text was in view" if after_untrusted and tools else ""
            return [(f"! step {step.step_id} has no tools: try {attempt} does not count ({called}){seen}", "warn")]
        case _:
            assert_never(event)


def _concerns_a_person(event: e.StepInner) -> bool:
    """Whether what happens inside a step is a question, a word about one, or a model that fails."""
    match event:
        case e.CallJudged(decision=decision, by=by):
            return bool(by) or isinstance(decision, Ask)
        case e.CallPaused() | e.ModelFailed() | e.DoubtSettled() | e.ModelTraitLearnt() | p.ReasoningStepViolated():
            return True
        case _:
            return isinstance(event, e.StepLimitReached)


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


def _shown(call_id: str, text: str) -> str:
    """A text of a call; what a task refers to may hold credentials, so those calls show none."""
    return redacted(text) if call_id.startswith("0.") else text


def whose(role: str) -> str:
    """Who speaks, where there is more than one."""
    return "" if role == SOLO else f"{visible(role).capitalize()}: "


def _with(speakers: Mapping[str, e.Speaker]) -> str:
    named = (("" if role == SOLO else f"{role} ") + without_password(one.model) for role, one in speakers.items())
    return f", with {visible(' · '.join(named))}" if speakers else ""
