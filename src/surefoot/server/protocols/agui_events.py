"""A run as events of AG-UI: a pure mapping of its records, and of what is said meanwhile.

Source: spec/serving.md, section 7.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from ag_ui import core as ui

from surefoot.core.state.state import State
from surefoot.core.state.turn import Call
from surefoot.core.view.step import is_before_calls, shown_words
from surefoot.telling.calls import shown_call
from surefoot.telling.plan import nodes_of
from surefoot.telling.state import Question, state_of
from surefoot.telling.tale import NO_TALE, inner_event
from surefoot.telling.text import visible
from surefoot.types import events as e
from surefoot.types.messages import REREAD
from surefoot.types.outcomes import Ask, Cancelled, Deny, Failed, Stopped
from surefoot.types.ports import Recorded

Kind = Literal["text", "reasoning"]
Told = list[ui.BaseEvent]
Json = Mapping[str, Any]  # Any: JSON

_DECISIONS: Mapping[str, tuple[str, ...]] = {
    "approval": ("approve", "deny"),
    "limit": ("approve", "deny"),
    "in_doubt": ("done", "not_done", "abandoned"),
    "plan": ("approved", "rejected", "revise"),
}


class Frames:
    """One run, as far as it was told. What the client `has` of its messages already is not told again."""

    def __init__(self, thread_id: str, run_id: str, run: str, has: Iterable[ui.Message] = ()) -> None:
        self.tale = NO_TALE
        self._names: dict[str, Any] = {"thread_id": thread_id, "run_id": run_id}
        self._run = run
        self._told = _texts_of(has)
        self._open: tuple[Kind, str] | None = None
        self._live: dict[Kind, str] = {}
        self._again, self._is_deaf = 0, False
        self._last = ""
        self._steps: tuple[str, ...] = ()
        self._state: Json | None = None
        self._used = self.tale.state.usage

    def begin(self) -> Told:
        self._state, self._used = None, self.tale.state.usage
        started = ui.RunStartedEvent(**self._names, protocol_version=ui.PROTOCOL_VERSION)
        return [started, *(ui.StepStartedEvent(step_name=name) for name in self._steps)]

    def add(self, records: Sequence[Recorded]) -> Told:
        """What these records add, and how the run stands after them."""
        told: Told = []
        for record in records:
            self.tale = self.tale.plus(record)
            whole = record.event
            state = self.tale.inner[whole.step_id] if isinstance(whole, e.InStep) else self.tale.state
            planning, step = self.tale.state.planning, self.tale.state.running_step
            running = tuple(planning.children) if planning is not None else (step.step_id,) if step is not None else ()
            told += [ui.StepStartedEvent(step_name=name) for name in running if name not in self._steps]
            told += self._of(inner_event(record), state)
            if over := [name for name in self._steps if name not in running]:
                told += [*self._close(), *(ui.StepFinishedEvent(step_name=name) for name in over)]
            self._steps = running
        view, planning = state_of(self.tale), self.tale.state.planning
        steps = [
            {"id": one.id, "title": one.title, "status": one.status, "depends_on": list(one.depends_on)}
            for one in (nodes_of(self.tale.state, planning) if planning is not None else ())
        ]
        now: dict[str, Any] = {  # Any: JSON
            "plan": planning and {"version": planning.version, "steps": steps},
            "budget": {one.name: {"used": one.used, "limit": one.limit} for one in view.budget},
            "standing": {"status": view.status, "reason": view.reason, "waiting": [one.call for one in view.waiting]},
        }
        if self._state is None:
            told.append(ui.StateSnapshotEvent(snapshot=now))
        elif patch := _patch(self._state, now):
            told.append(ui.StateDeltaEvent.model_validate({"delta": patch}))
        self._state = now
        return told

    def hear(self, signals: Iterable[Json]) -> Told:
        """What is said right now. Of a plan, whose steps speak at once, words are told when they are on record."""
        told: Told = []
        for one in signals:
            match one["type"]:
                case "text" | "reasoning" as kind:
                    self._live[kind] = self._live.get(kind, "") + one["text"]
                    if self.tale.state.planning is None and not self._is_deaf:
                        told += self._more(kind, self._id(self.tale.state, 1), self._live[kind])
                case "gap":
                    self._is_deaf = True
                case "reset":
                    ident = self._id(self.tale.state, 1)
                    if {ident, f"{ident}:reasoning"} & self._told.keys():
                        told += [*self._close(), _custom("reset", {"messageId": ident, "reason": one["reason"]})]
                        self._again += 1
                    self._live, self._is_deaf = {}, False
                case what:
                    told.append(_custom(what, {name: value for name, value in one.items() if name != "type"}))
        return told

    def ask(self, questions: Sequence[Question]) -> Told:
        asks = [_interrupt(one, f"{self._run}:{self.tale.state.seen}", self._run) for one in questions]
        return self._finish(ui.RunFinishedInterruptOutcome(interrupts=asks))

    def end(self) -> Told:
        state = self.tale.state
        ending, view = state.ending, state_of(self.tale)
        told = self._settle()
        if view.answer.strip() and view.answer.strip() != self._last.strip():
            told += [*self._more("text", f"{self._run}:answer", view.answer), *self._close()]
        match ending:
            case Cancelled():
                return [*told, *self._finish(ui.RunFinishedCancelledOutcome())]
            case Stopped() | Failed():
                return [*told, *self.fail(view.reason, getattr(ending, "detail", "") or view.reason)]
            case None:
                return [*told, *self.fail("gone", "the run has been deleted")]
            case _:
                result = {"status": view.status, "reason": view.reason, "answer": view.answer}
                return [*told, *self._finish(ui.RunFinishedSuccessOutcome(), {"run_id": self._run, **result})]

    def fail(self, code: str, message: str) -> Told:
        return [*self._settle(), ui.RunErrorEvent(message=visible(message), code=code, usage=self._usage())]

    # ------------------------------------------------------------------ records

    def _of(self, event: e.Event, state: State) -> Told:
        match event:
            case e.ModelReplied():
                return self._replied(event, state)
            case e.ModelFailed():
                self._live, self._is_deaf = {}, False
                return self._close()
            case e.CallJudged(call_id, decision, rule, by):
                if (call := state.call(call_id)) is None:
                    return []
                reason = visible(decision.reason) if isinstance(decision, Ask | Deny) else ""
                verdict = {"decision": decision.kind, "rule": rule, "reason": reason, "by": visible(by)}
                about = {"toolCallId": f"{self._run}:{call_id}", **verdict}
                return [*self._call(call, state), _custom("verdict", about), *self._result(call)]
            case e.CallEnded(call_id) | e.CallReused(call_id) | e.DoubtSettled(call_id):
                call = state.call(call_id)
                return [] if call is None else [*self._call(call, state), *self._result(call)]
            case _:
                return []

    def _replied(self, event: e.ModelReplied, state: State) -> Told:
        turn = state.turn
        if turn is None:
            return []
        ident, words = self._id(state), shown_words(event.parsed, turn.outcome)
        told = self._more("reasoning", ident, visible(event.message.reasoning))
        if words and not is_before_calls(event.parsed, turn.outcome):
            self._last, known = visible(words), self._told.get(ident, "")
            if not self._last.startswith(known) and self._last.strip() != known.strip():  # what was shown was no answer
                told += [*self._close(), _custom("reset", {"messageId": ident, "reason": REREAD})]
                self._again += 1
                ident = self._id(state)
            told += self._more("text", ident, self._last)
        self._live, self._again, self._is_deaf = {}, 0, False
        return [*told, *self._close()]

    def _call(self, call: Call, state: State) -> Told:
        name = f"{self._run}:{call.id}"
        if name in self._told:
            return []
        arguments, _ = shown_call(call)
        self._told[name] = arguments
        parent = self._id(state) if state.turn is not None else None
        started = ui.ToolCallStartEvent(tool_call_id=name, tool_call_name=visible(call.name), parent_message_id=parent)
        given = ui.ToolCallArgsEvent(tool_call_id=name, delta=arguments)
        return [*self._close(), started, given, ui.ToolCallEndEvent(tool_call_id=name)]

    def _result(self, call: Call) -> Told:
        name = f"{self._run}:{call.id}"
        if call.result is None or f"{name}:result" in self._told:
            return []
        _, content = shown_call(call)
        self._told[f"{name}:result"] = content
        return [ui.ToolCallResultEvent(message_id=f"{name}:result", tool_call_id=name, content=content, role="tool")]

    # ------------------------------------------------------------------ messages

    def _id(self, state: State, ahead: int = 0) -> str:
        """The message of the newest reply, or of the one `ahead`; a new one each time that it was begun anew."""
        step = (state.turn.step if state.turn is not None else 0) + ahead
        again = f"~{self._again}" if self._again and not state.scope else ""
        return f"{self._run}:{state.scope}.{step}{again}" if state.scope else f"{self._run}:{step}{again}"

    def _more(self, kind: Kind, ident: str, whole: str) -> Told:
        """What of a message was not told yet; of one that was told otherwise, nothing."""
        name = ident if kind == "text" else f"{ident}:reasoning"
        known = self._told.get(name, "")
        if not whole.startswith(known) or whole == known:
            return []
        told: Told = []
        if self._open != (kind, name):
            told += self._close()
            self._open = kind, name
            if kind == "text":
                told.append(ui.TextMessageStartEvent(message_id=name, role="assistant"))
            else:
                told += [ui.ReasoningStartEvent(message_id=name), ui.ReasoningMessageStartEvent(message_id=name)]
        self._told[name] = whole
        content = ui.TextMessageContentEvent if kind == "text" else ui.ReasoningMessageContentEvent
        return [*told, content(message_id=name, delta=whole[len(known) :])]

    def _close(self) -> Told:
        opened, self._open = self._open, None
        match opened:
            case None:
                return []
            case "text", name:
                return [ui.TextMessageEndEvent(message_id=name)]
            case _, name:
                return [ui.ReasoningMessageEndEvent(message_id=name), ui.ReasoningEndEvent(message_id=name)]

    def _settle(self) -> Told:
        steps, self._steps = self._steps, ()
        return [*self._close(), *(ui.StepFinishedEvent(step_name=name) for name in steps)]

    def _finish(self, outcome: Any, result: object = None) -> Told:  # Any: one of the protocol's outcomes
        told = self._settle()
        return [*told, ui.RunFinishedEvent(**self._names, outcome=outcome, result=result, usage=self._usage())]

    def _usage(self) -> list[ui.TokenUsage]:
        """What the run has used since the stream began."""
        used = self.tale.state.usage.since(self._used)
        models = {one.model for one in self.tale.state.speakers.values()}
        return [
            ui.TokenUsage(
                model=visible(models.pop()) if len(models) == 1 else None,
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                total_tokens=used.input_tokens + used.output_tokens,
                cached_input_tokens=used.cached_tokens,
                reasoning_tokens=used.reasoning_tokens,
            )
        ]


def _texts_of(messages: Iterable[ui.Message]) -> dict[str, str]:
    """What a client has, by the ids under which it was told."""
    has: dict[str, str] = {}
    for one in messages:
        has[one.id] = one.content if isinstance(one.content, str) else ""
        if isinstance(one, ui.AssistantMessage):
            has |= {call.id: call.function.arguments for call in one.tool_calls or ()}
        elif isinstance(one, ui.ToolMessage):
            has[f"{one.tool_call_id}:result"] = ""
    return has


def _custom(name: str, value: object) -> ui.CustomEvent:
    return ui.CustomEvent(name=f"surefoot.{name}", value=value)


def _patch(old: Any, new: Any, path: str = "") -> list[dict[str, object]]:  # Any: JSON
    if old == new:
        return []
    pairs: list[tuple[str, Any, Any]]
    if _is_alike(old, new, dict) and old.keys() == new.keys():
        pairs = [(name.replace("~", "~0").replace("/", "~1"), old[name], new[name]) for name in old]
    elif _is_alike(old, new, list) and len(old) == len(new):
        pairs = [(str(at), *pair) for at, pair in enumerate(zip(old, new, strict=True))]
    else:
        return [{"op": "replace", "path": path, "value": new}]
    return [one for name, before, after in pairs for one in _patch(before, after, f"{path}/{name}")]


def _is_alike(old: object, new: object, kind: type) -> bool:
    return isinstance(old, kind) and isinstance(new, kind)


def _interrupt(question: Question, place: str, run: str) -> ui.Interrupt:
    """A question, and what an answer to it has to look like."""
    about, text = question.about, {"type": "string"}
    bound = {"version": {"const": question.version}} if about == "plan" else {"digest": {"const": question.digest}}
    more = {"reason": text, **({"result": text} if about == "in_doubt" else {})}
    until = question.expires_at
    return ui.Interrupt(
        id=f"{place}:{question.call}",
        reason=about,
        message=question.text,
        tool_call_id=f"{run}:{question.call.partition('/')[0]}" if about in ("approval", "in_doubt") else None,
        response_schema={
            "type": "object",
            "properties": {"decision": {"enum": list(_DECISIONS[about])}, **bound, **more},
            "required": ["decision", *bound],
            "additionalProperties": False,
        },
        expires_at=None if until is None else datetime.fromtimestamp(until, UTC).isoformat(),
        metadata={"digest": question.digest, "rule": question.rule, "name": question.name},
    )
