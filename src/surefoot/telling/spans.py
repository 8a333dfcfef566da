"""A run as spans of OpenTelemetry: of its records when it is over, or record by record while it goes on.

One span is the run, `invoke_agent`; in it lie one `chat` for each reply or failure of a model, one `execute_tool` for
each attempt at a call, and of a run that plans one `plan` with its steps. What takes no time is an event of the span
around it. A trace's id is the beginning of the SHA-256 of the run's genesis (`journal/codec.py`), a span's id that of
the run and a record, so the same records always give the same spans. A fork, and a run that follows another, begins
with its own first record; what it shares is told by the run that it came from, to which it has a link.

Nothing that a user, a model or a tool has written is in a span, unless `content` is asked for. Source:
spec/serving.md, section 10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from surefoot import telemetry_names as names
from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import next_moves, standing
from surefoot.core.state.roles import PLANNER, SOLO
from surefoot.core.state.state import EMPTY, State
from surefoot.core.state.summary import is_word
from surefoot.core.text import json_text
from surefoot.telling import span_records as parts
from surefoot.telling.span_records import Place, SpanEvent, SpanRecord, Value
from surefoot.types import events as e
from surefoot.types.guard_events import Asking
from surefoot.types.inner import CallPaused
from surefoot.types.messages import ModelMessage
from surefoot.types.outcomes import Completed, CompletedPartial, Failed, Stopped
from surefoot.types.plan_events import ProposalMade, StepStarted
from surefoot.types.ports import Recorded

_RUN, _PLAN = "run", "plan"


def spans_of(
    records: Sequence[Recorded], *, content: bool = False, under: Place | None = None
) -> tuple[SpanRecord, ...]:
    """The spans of a run, in the order in which they began; the first is the run itself.

    What is still open ends with the last record. `under` is the call whose run this is.
    """
    spans, told = Spans(content=content, under=under), dict[str, SpanRecord]()
    for record in records:
        if isinstance(record.event, e.RunStarted | e.RunForked):
            told.clear()
        told |= {one.span_id: one for one in spans.take(record)}
    told |= {one.span_id: one for one in spans.close()}
    return tuple(told.values())


class Spans:
    """The spans of one run, record by record. `open` goes on, by what it is of: "run", "plan", "step ID", "call ID"."""

    def __init__(self, *, content: bool = False, under: Place | None = None) -> None:
        self.state: State = EMPTY
        self.open: dict[str, SpanRecord] = {}
        self._content, self._under = content, under
        self._run_id = self._agent = ""
        self._at = self._driven = 0.0  # when the last record came, and the last that no person spoke
        self._is_word = False
        self._doubtful = set[str]()  # the calls that must not be repeated

    def take(self, record: Recorded) -> Sequence[SpanRecord]:
        """What of it begins, and what ends, with the record that comes next."""
        told = record.event
        step_id, event = (told.step_id, told.event) if isinstance(told, e.InStep) else ("", told)
        before, self.state = self.state, fold((told,), self.state)
        within = step_id or (before.running_step.step_id if before.running_step is not None else "")
        around = f"step {within}" if within else _RUN
        match event:
            case e.RunStarted() | e.RunForked():
                made = [self._run(event, record.at)]
            case e.RunResumed(by=by) | e.DriverChanged(by=by):
                calls = [key for key in self.open if key.startswith("call ")]
                made = [one for key in calls for one in self._over(key, self._driven)]
                waited = {"surefoot.paused.s": round(max(0.0, record.at - self._driven), 6), "surefoot.by": by}
                self._note(_RUN, SpanEvent("surefoot.paused", self._driven, waited))
            case _:
                made = self._of_event(event, record, around, step_id, before)
                if (mark := parts.mark_of(event, self._content)) is not None:
                    is_of_plan = mark[0].startswith("surefoot.plan")
                    self._note(_PLAN if is_of_plan else around, SpanEvent(mark[0], record.at, mark[1]))
                made += self._steps_over(record.at)
        self._at, self._is_word = record.at, is_word(told)
        self._driven = self._driven if self._is_word else record.at
        return made

    def close(self, at: float = 0.0) -> Sequence[SpanRecord]:
        """What is still open, as it ends when nobody drives the run any more: at the last record, or later."""
        return [one for key in reversed(tuple(self.open)) for one in self._over(key, max(at, self._at))]

    def _of_event(self, event: e.Event, record: Recorded, around: str, step_id: str, before: State) -> list[SpanRecord]:
        """What an event inside a run begins and ends. `before` is the run's state, to which it happens."""
        at = record.at
        match event:
            case e.ModelReplied(requests=0):  # somebody else has asked for it
                return []
            case e.ModelReplied() | e.ModelFailed():
                return [self._chat(event, record, around, _of(before, step_id))]
            case ProposalMade():
                span = self._span(self._at, record.seq, _RUN, names.PLAN, {})
                begun = [] if _PLAN in self.open else [self._open(_PLAN, span)]
                return [*begun, *([self._chat(event, record, _PLAN, before)] if event.by == "model" else [])]
            case StepStarted(name, attempt) if not step_id:
                given = {"surefoot.step.id": name, "surefoot.attempt": attempt}
                parent = _PLAN if _PLAN in self.open else _RUN
                return [self._open(f"step {name}", self._span(at, record.seq, parent, f"surefoot.step {name}", given))]
            case e.CallStarted(call_id, attempt):
                lost = self._over(f"call {call_id}", self._driven)  # an attempt that nobody has ended
                return [*lost, self._call(call_id, attempt, record, around, _of(self.state, step_id))]
            case e.CallEnded(call_id, result):
                given = {
                    names.ERROR_TYPE: "" if result.kind in ("ok", "in_doubt") else result.kind,
                    names.RESULT: parts.cut(result.content) if self._content else "",
                    "surefoot.in_doubt": result.kind == "in_doubt",
                    "surefoot.inner.run.id": event.inner.run_id if event.inner is not None else "",
                }
                return self._over(f"call {call_id}", at, given, result.content if result.is_error else "")
            case e.DoubtSettled(call_id):
                return self._over(f"call {call_id}", self._driven)
            case CallPaused(call_id, inner):
                return self._over(f"call {call_id}", at, {"surefoot.inner.run.id": inner.run_id})
            case _ if isinstance(asking := getattr(event, "asking", None), Asking) and asking.requests:
                return [self._chat(asking, record, around, before)]
            case _:
                return []

    def _steps_over(self, at: float) -> list[SpanRecord]:
        """The steps that do not run any more, whatever has ended them."""
        planning, plan, running = self.state.planning, self.state.plan, self.state.running_step
        running_ids = planning.children if planning is not None else {running.step_id} if running is not None else ()
        made: list[SpanRecord] = []
        for key in [key for key in self.open if key.startswith("step ") and key[5:] not in running_ids]:
            step = planning.steps.get(key[5:]) if planning is not None else None
            result = step.result if step is not None else plan.results.get(key[5:]) if plan is not None else None
            is_newest = result is not None and result.attempt == self.open[key].attributes["surefoot.attempt"]
            error = result.error if result is not None and is_newest else None
            given = {names.ERROR_TYPE: error.cls if error is not None else ""}
            made += self._over(key, at, given, error.message if error is not None else "")
        return made

    def _run(self, event: e.RunStarted | e.RunForked, at: float) -> SpanRecord:
        """The span that is the run. One that is forked or follows begins anew."""
        self.open.clear()
        self._run_id = event.run_id
        task, before = self.state.task, event.follows if isinstance(event, e.RunStarted) else event.parent
        self._agent = str(getattr(event, "agent", ""))  # a record of who serves has it
        given: dict[str, Value] = {
            names.CONVERSATION: (task.job if task is not None else "") or event.run_id,
            "surefoot.run.id": event.run_id,
            "surefoot.reasoner": self.state.reasoner,
        }
        if self._content and task is not None:
            asked = {"role": "user", "parts": [parts.text_part(task.text)]}
            instructions = [parts.text_part(self.state.instructions)] if self.state.instructions else []
            given |= {names.INPUT_MESSAGES: json_text([asked])}
            given |= {names.INSTRUCTIONS: json_text(instructions) if instructions else ""}
        span = self._span(at, 0, "", names.INVOKE_AGENT, given)
        trace_id, parent_id = self._under or (span.trace_id, "")
        links = (parts.place_of(before),) if before else ()
        return self._open(_RUN, replace(span, trace_id=trace_id, parent_id=parent_id, links=links))

    def _open(self, key: str, span: SpanRecord) -> SpanRecord:
        self.open[key] = span
        return span

    def _span(self, at: float, seq: int, parent: str, name: str, given: Mapping[str, Value]) -> SpanRecord:
        """A span inside of another one, which it cannot begin before."""
        around = self.open.get(parent) or self.open.get(_RUN)
        attributes, salt = dict(given), ""
        if name in (names.INVOKE_AGENT, names.PLAN):
            attributes |= {names.OPERATION: name, names.AGENT: self._agent}
            salt = _PLAN if name == names.PLAN else ""  # the record that begins a plan has a request of its own
            name = f"{name} {self._agent}".rstrip()
        return SpanRecord(
            around.trace_id if around is not None else parts.place_of(self._run_id)[0],
            parts.span_id(self._run_id, seq, salt),
            around.span_id if around is not None else "",
            name,
            "internal",
            max(at, around.start_s) if around is not None else at,
            None,
            parts.filled(attributes),
        )

    def _call(self, call_id: str, attempt: int, record: Recorded, around: str, own: State) -> SpanRecord:
        """The span of one attempt at a call, as it begins. `own` is the state that has the call."""
        call = own.call(call_id)
        name, spec = (call.name, call.spec) if call is not None else ("", None)
        given = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL: name,
            names.TOOL_TYPE: "extension" if spec is not None and spec.is_foreign else "function",
            names.CALL_ID: call_id,
            "surefoot.effect": spec.effect if spec is not None else "",
            "surefoot.attempt": attempt,
            names.ARGUMENTS: parts.cut(json_text(call.arguments)) if self._content and call is not None else "",
        }
        if spec is None or not (spec.may_repeat or spec.delegates):
            self._doubtful.add(f"call {call_id}")
        span = self._span(record.at, record.seq, around, f"{names.EXECUTE_TOOL} {name}", given)
        return self._open(f"call {call_id}", span)

    def _chat(
        self, event: e.ModelReplied | e.ModelFailed | ProposalMade | Asking, record: Recorded, around: str, own: State
    ) -> SpanRecord:
        """The span of a request, of which its end alone is on record. `own` is the state before that."""
        reply: ModelMessage | None = None
        took_s, message, model = 0.0, "", ""
        given: dict[str, Value]
        match event:
            case e.ModelReplied(message=reply, role=role, took_s=took_s, parsed=parsed):
                given = {"surefoot.step": event.step, "surefoot.fault": parsed.error.kind if parsed.error else ""}
                given |= {names.FIRST_CHUNK: event.first_s} if event.first_s else {}
            case e.ModelFailed(kind=kind, message=message, role=role):
                given = {names.ERROR_TYPE: kind, "surefoot.attempts": event.attempts, **parts.used(event.usage)}
            case ProposalMade(kind=kind, message=reply):
                role = PLANNER if PLANNER in own.speakers else SOLO
                given = {"surefoot.proposal": kind}
            case Asking(model=model, role=role, failure=message):
                given = {names.ERROR_TYPE: "_OTHER" if message else "", **parts.used(event.usage)}
            case _:
                assert_never(event)
        model = model or (own.speakers[role].model if role in own.speakers else role)
        provider, named = parts.model_named(model)
        if reply is not None:
            given |= {names.RESPONSE_MODEL: reply.model, names.FINISH_REASONS: (reply.finish_reason,)}
            given |= {"surefoot.attempts": reply.attempts, **parts.used(reply.usage)}
            given |= {names.OUTPUT_MESSAGES: parts.reply_json(reply)} if self._content else {}
        given |= {names.OPERATION: names.CHAT, names.PROVIDER: provider, names.REQUEST_MODEL: named}
        given["surefoot.role"] = role
        start_s = record.at - took_s if took_s else self._at  # else it was asked for once the record before was there
        span = self._span(start_s, record.seq, around, f"{names.CHAT} {named}", given)
        kind, shown = "internal" if provider == "local" else "client", parts.cut(message) if self._content else ""
        return replace(span, kind=kind, end_s=max(record.at, span.start_s), message=shown)

    def _over(
        self, key: str, at: float, given: Mapping[str, Value] | None = None, message: str = ""
    ) -> list[SpanRecord]:
        """The span of that key as it ends; none where it is not open. `given` are the last of its attributes.

        Without any, a call was broken off: whether it took effect nobody knows, unless it may be repeated.
        """
        span = self.open.pop(key, None)
        if span is None:
            return []
        planning = self.state.planning
        if key == _RUN:
            given, message = self._outcome()
        elif key == _PLAN and planning is not None:
            strategy = planning.edits[-1].strategy.type if planning.edits else ""
            given = {"surefoot.plan.version": planning.version, "surefoot.plan.strategy": strategy}
        elif given is None and key.startswith("call "):
            given = {"surefoot.in_doubt" if key in self._doubtful else "surefoot.interrupted": True}
        self._doubtful.discard(key)
        attributes = {**span.attributes, **parts.filled(given or {})}
        shown = parts.cut(message) if self._content else ""
        return [replace(span, end_s=max(at, span.start_s), attributes=attributes, message=shown)]

    def _note(self, key: str, event: SpanEvent) -> None:
        key = key if key in self.open else _RUN
        if (span := self.open.get(key)) is not None:
            self.open[key] = replace(span, events=(*span.events, event))

    def _outcome(self) -> tuple[Mapping[str, Value], str]:
        """How the run stands, as `Run` names it, and what it has used; and what it says of a failure."""
        state, ending = self.state, self.state.ending
        status = "ready" if self._is_word else "interrupted"
        if ending is not None:
            status = ending.kind
        elif standing(state) and not next_moves(state):
            status = "paused"
        reason = parts.code(getattr(ending, "reason", ""))
        answer = ending.answer if isinstance(ending, Completed | CompletedPartial | Stopped) else ""
        said = parts.reply_json(ModelMessage("assistant", answer)) if self._content and answer else ""
        given: dict[str, Value] = {
            "surefoot.run.status": status,
            "surefoot.run.reason": reason,
            "surefoot.run.requests": state.requests,
            "surefoot.run.calls": state.calls_made,
            **parts.used(state.usage),
            names.ERROR_TYPE: (reason or "_OTHER") if isinstance(ending, Failed) else "",
            names.OUTPUT_MESSAGES: said,
        }
        return given, ending.detail if isinstance(ending, Failed) else ""


def _of(state: State, step_id: str) -> State:
    return state.planning.children.get(step_id, state) if step_id and state.planning is not None else state
