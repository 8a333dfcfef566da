"""A run told in rows, record by record: what the terminal, the page and the exports draw.

A text of a model, a tool or a person is a part of its own, with nothing hidden in it; no row holds markup.
Source: spec/serving.md, section 8.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from surefoot.core.state.roles import ACTOR, SOLO, TAGGED
from surefoot.core.state.state import State
from surefoot.core.state.turn import Turn
from surefoot.core.state.window import READ_RESULT
from surefoot.core.text.urls import redacted
from surefoot.telling.calls import call_rows
from surefoot.telling.guard import intent_line, stage_lines, tree_lines
from surefoot.telling.plan import Told, plan_told, selection_line, step_told
from surefoot.telling.row import Pen, Row
from surefoot.telling.tale import Tale
from surefoot.telling.text import Said, Style, count, tokens, visible, without_password
from surefoot.types import events as e
from surefoot.types import plan_events as p
from surefoot.types.guard_events import JudgementMade, OfTree, PerceptionSanitised
from surefoot.types.messages import models_line
from surefoot.types.outcomes import Cancelled, Completed, Ending
from surefoot.types.ports import Recorded

_ACTION = re.compile(r"</?action>")

_OUTCOMES = {
    "cut": "the answer was cut by the length limit",
    "narrated": "the model wrote about a tool but called none, and was told so",
    "no_step": "the reply contains no step, and the model was reminded",
    "empty": "the reply is empty",
    "refused": "the model refused",
}


def rows_of(record: Recorded, before: Tale, after: Tale, *, is_whole: bool = False) -> tuple[Row, ...]:
    """The rows of one record; `after` is the tale `before` with it. In parts, a run has the rows that it has at once.

    With `is_whole` nothing is left out; else a part and what a row opens are cut (`ROW_CHARS`, `MOST_CHARS`).
    """
    event = record.event
    if not isinstance(event, e.InStep):
        return tuple(_Telling(record, before, after.state, is_whole=is_whole).rows(event))
    inner = _Telling(record, before, after.inner[event.step_id], is_whole=is_whole).rows(event.event)
    return tuple([replace(row, indent=row.indent + 2, step_id=event.step_id) for row in inner])


class _Telling:
    """What it takes to tell one record: the state of whoever it is about, after it, and when things began."""

    def __init__(self, record: Recorded, before: Tale, state: State, *, is_whole: bool) -> None:
        self._record, self._before, self._state, turn = record, before, state, state.turn
        place = (turn.step, turn.step_id) if turn is not None else (0, "")
        self._pen = Pen(record, *place, is_whole=is_whole)

    def rows(self, event: e.Event) -> list[Row]:
        match event:
            case e.RunStarted():
                return self._started(event)
            case e.RunResumed(by, speakers):
                who: tuple[Said, ...] = () if by == "resume" else (" by ", (by, "person"))  # nobody was named
                return [self._pen.row("head", "resumed", *who, _with(speakers), style="head", whole=True)]
            case e.RunForked(_, parent, forked_at, speakers):
                told = f"forked from {parent} at record {forked_at}{_with(speakers)}"
                return [self._pen.row("head", told, style="head", whole=True)]
            case e.DriverChanged(by):
                return [self._pen.row("head", (by, "person"), " drives it on from here", style="head")]
            case e.RunNoted(text, by):
                return [self._pen.row("word", (by, "person"), " adds: ", (text, "person"), style="head", whole=True)]
            case e.ToolsSelected():
                return self._selected(event)
            case e.ModelTraitLearnt(model, trait, value, evidence):
                told = f"* learnt about {without_password(model)}: {trait} is {value} ("
                return [self._pen.row("trait", told, (evidence, "tool"), ")", style="warn")]
            case e.ModelReplied():
                return self._replied(event)
            case e.ModelFailed(kind, message, attempts, role, instead=instead):
                tried = f"{whose(role)}no reply after {count(attempts, 'attempt')} ({kind})"
                then = f"; {without_password(instead.model)} goes on" if instead else ""
                style: Style = "warn" if instead else "bad"
                return [self._pen.row("failure", f"! {tried}: ", (message, "tool"), then, style=style, whole=True)]
            case e.IntentAnchored(anchor):
                intent = self._pen.row("select", (intent_line(anchor), "person"), style="dim", indent=2)
                return [intent, *self._stage(stage_lines(event))]
            case PerceptionSanitised() | JudgementMade():
                return self._stage(stage_lines(event))
            case OfTree():
                return self._stage(tree_lines(event))
            case e.ReferencesFound() | e.PreHydrationComplete() | e.ConventionsRead():
                return self._prefetch_rows(event)
            case e.StepLimitReached(attempts=attempts, reason=reason, action=action):
                told = (f"! {reason}  ({attempts}; {action})",)
                return [self._pen.row("limit", *told, style="warn", indent=2)]
            case p.OfStep():
                self._pen = replace(self._pen, step_id=event.step_id)
                return self._plan(step_told(event, self._state))
            case p.OfPlan() | e.ToolsShortlisted():
                given = event.message.content if isinstance(event, p.ProposalMade) else ""
                return [*self._plan(plan_told(event)), *self._page("", given)]
            case e.RunEnded(ending):
                return self._ended(ending) if event is self._record.event else []
            case e.InStep():
                return []  # its rows are those of its own event
            case _:
                took_s = self._record.at - self._before.began.get(event.call_id, self._record.at)
                return call_rows(self._pen, self._state, event, took_s)

    # ------------------------------------------------------------------ of the run

    def _started(self, event: e.RunStarted) -> list[Row]:
        number = sum(name != READ_RESULT for name in self._state.tools.names)
        models = {role: speaker.model for role, speaker in self._state.speakers.items()}
        tools = count(number, "tool") if number else "no tools"
        told = f"run {self._state.run_id} · {without_password(models_line(models))} · {tools}"
        told += f" · follows {event.follows}" if event.follows else ""
        task = redacted(event.task.text)
        files = event.task.attachments
        opens = self._pen.details("task", task, *(f"with {one.name}" for one in files), files=files)
        beside = f" · with {count(len(files), 'attachment')}" if files else ""
        return [
            self._pen.row("head", told, style="head", whole=True),
            self._pen.row("word", "task: ", (task, "person"), beside, opens=opens, folded=True),
        ]

    def _ended(self, ending: Ending) -> list[Row]:
        answer: str = getattr(ending, "answer", "") or getattr(ending, "detail", "")
        reason: str = ending.by if isinstance(ending, Cancelled) else getattr(ending, "reason", "")
        told = f"ended: {ending.kind.replace('_', ' ')}" + (f" ({reason})" if reason else "")
        style: Style = "good" if isinstance(ending, Completed) else "warn"
        opens = self._pen.details(told, answer) if answer else None
        return [self._pen.row("end", told, (f": {answer}" if answer else "", "model"), style=style, opens=opens)]

    def _selected(self, event: e.ToolsSelected) -> list[Row]:
        """How many tools are offered, and how many each stage of a profile dropped; folded, which."""
        if event.selection is not None:
            return [self._pen.row("select", (selection_line(event.reason, event.selection), "model"), style="dim")]
        offered = sum(name != READ_RESULT for name in event.visible)
        by_stage = ", ".join(f"{stage} {number}" for stage, number in event.counts.items())
        why = f" ({event.reason})" if event.reason else ""
        told = f"tools offered: {offered}{why}" + (f" · dropped: {by_stage}" if by_stage else "")
        more = (
            ", ".join(event.visible) or "none",
            *(f"- {name}  {stage}: {detail}" for name, stage, detail in event.dropped),
            *(f"+ {name}  first seen: pin {pin}" for name, pin in event.pinned.items()),
        )
        loud = [f"? {name}: {why}" for name, why in event.doubted.items()]
        loud += [f"! {warning}" for warning in event.warnings]
        return [
            self._pen.row("select", told, style="dim", whole=True),
            *(self._pen.row("select", (one, "tool"), style="dim", indent=2, folded=True) for one in more),
            *(self._pen.row("warning", (one, "tool"), style="warn", indent=2) for one in loud),
        ]

    def _prefetch_rows(self, event: e.ReferencesFound | e.PreHydrationComplete | e.ConventionsRead) -> list[Row]:
        told: list[str]
        match event:
            case e.ReferencesFound(calls=calls):
                told = [f"references to fetch: {len(calls)}"] if calls else []
            case e.PreHydrationComplete():
                counts = f"{event.references_resolved} of {event.references_found} references"
                told = [f"fetched before the first model call: {counts}, {event.total_tokens} tokens"]
                for one in event.items:
                    how = f"{one.tokens} tokens" if one.status == "resolved" else one.error
                    told.append(f"  {one.type} {one.value}  {one.status}: {how}")
            case e.ConventionsRead(directory, files, error=error, scope=scope):
                read = "; ".join(filter(None, (", ".join(path for path, *_ in files), error)))
                what = f"of {scope or directory}" if self._state.turn else "read before the first model call"
                told = [f"conventions {what}: {read}"] if read else []
            case _:
                assert_never(event)
        return [self._pen.row("prefetch", one, style="dim", indent=2) for one in told]

    def _page(self, mark: str, text: str) -> list[Row]:
        """What a model said to nobody, or none: told where all is told."""
        if not text.strip():
            return []
        opens = self._pen.details(mark.strip(), text)
        said: Said = (text.strip(), "model")
        return [self._pen.row("reasoning", mark, said, style="dim", indent=2, opens=opens, folded=True)]

    def _plan(self, told: Iterable[Told]) -> list[Row]:
        return [self._pen.row("plan", *said, style=style) for style, *said in told]

    def _stage(self, told: list[str]) -> list[Row]:
        """What a stage of the guard found, or came of a tree; that it failed stands out."""
        has_failed = any(line.startswith("!") for line in told)
        style: Style = "warn" if has_failed else "dim"
        return [self._pen.row("verdict", (line, "model"), style=style, indent=2) for line in told]

    # ------------------------------------------------------------------ replies

    def _replied(self, event: e.ModelReplied) -> list[Row]:
        turn, before = self._state.turn, self._before.last_at
        took_s = event.took_s or (self._record.at - before if before else None)
        took = f" · {took_s:.1f} s" if took_s is not None else ""
        role = "" if event.role == SOLO else f"{event.role} · "
        last = " · last word" if event.want == "answer" else ""
        used = f"{tokens(event.message.usage)} · {event.mode}{last}"
        told = f"step {event.step} · {role}record {self._record.seq}{took} · {used}"
        rows = [self._pen.row("reply", told, style="head", took_s=took_s, folded=True)]
        rows += self._page("(reasoning) ", event.message.reasoning)
        return rows if turn is None else [*rows, *self._reply_rows(turn), *self._trouble(turn)]

    def _reply_rows(self, turn: Turn) -> list[Row]:
        """What a model said; of one of two, that it spoke is told in any case, if it makes calls."""
        said, speaker = said_of(turn, is_tagged=self._state.reasoner in TAGGED), whose(turn.role)
        if not said and not (speaker and turn.calls):
            return []
        style: Style = "" if turn.outcome == "instruction" else "dim"
        told: list[Said] = [speaker if said else speaker.rstrip()]
        for text in said:
            told.append(" · " if len(told) > 1 else "")
            told.append((text, "model"))
        opens = self._pen.details(speaker.rstrip(": "), *said) if said else None
        return [self._pen.row("reply", *told, style=style, opens=opens)]

    def _trouble(self, turn: Turn) -> list[Row]:
        parsed, speaker, rows = turn.parsed, whose(turn.role), list[Row]()
        if parsed.warnings:
            mended = f"~ {', '.join(sorted(parsed.warnings))}"
            rows.append(self._pen.row("warning", mended, style="warn", indent=2, whole=True))
        if turn.outcome in _OUTCOMES:
            told = f"! {speaker}{_OUTCOMES[turn.outcome]}"
            rows.append(self._pen.row("warning", told, style="warn", indent=2, whole=True))
        for call in turn.calls:
            if call.fault:
                what: Said = (call.name or "a call", "model")
                told, pen = f": {call.fault.kind}: ", replace(self._pen, call_id=call.id)
                rows.append(pen.row("failure", "! ", what, told, (call.fault.detail, "model"), style="bad", indent=2))
        if turn.outcome == "fault" and not turn.calls and parsed.error:
            told = f"! {speaker}unreadable: {parsed.error.kind}: "
            rows.append(self._pen.row("failure", told, (parsed.error.detail, "model"), style="bad", indent=2))
        return rows


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


def whose(role: str) -> str:
    """Who speaks, where there is more than one."""
    return "" if role == SOLO else f"{visible(role).capitalize()}: "


def _with(speakers: Mapping[str, e.Speaker]) -> str:
    named = (("" if role == SOLO else f"{role} ") + without_password(one.model) for role, one in speakers.items())
    return f", with {visible(' · '.join(named))}" if speakers else ""
