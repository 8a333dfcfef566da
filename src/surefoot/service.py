"""The model service: one request and its reply, and the calls of one reply carried out.

Both are what a run does, without the run's loop: a request learns what its endpoint cannot take as a run does, and the
calls of a reply go through the same table of moves, the same gate and the same hands, on a journal. Source: seed 003,
2.1, and spec/reasoners.md, sections 1 and 3.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast

from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import standing
from surefoot.core.loop.read import read_reply
from surefoot.core.state.roles import SOLO, mode_for
from surefoot.core.state.state import Call, State
from surefoot.core.state.turn import MOST_TRAITS
from surefoot.core.text import clean, json_text
from surefoot.core.view.observations import attribute, plain, tagged, tell
from surefoot.core.view.request import declarations
from surefoot.core.view.shape import step_in_tags, step_schema
from surefoot.journal.memory import MemoryJournal, store_of
from surefoot.models.names import resolve
from surefoot.prompts.load import template
from surefoot.run import new_run_id, stream_of
from surefoot.runtime.ask import reply_of
from surefoot.runtime.background import Held
from surefoot.runtime.cast import cast_of
from surefoot.runtime.drive import drive
from surefoot.runtime.hands import LiveHands
from surefoot.runtime.offers import bound_tools
from surefoot.runtime.services import RunServices, checked_services, services_of
from surefoot.types.config import LoopConfig, checked_config
from surefoot.types.errors import ModelError, TraitRefused, UsageError
from surefoot.types.events import CallEnded, CallStarted, Event, ModelReplied, ModelTraitLearnt, RunStarted, Speaker
from surefoot.types.messages import CallMode, Emit, ModelMessage, ModelRequest, ModelSettings, ModelSignal, Signal
from surefoot.types.moves import Think
from surefoot.types.ports import JournalStore, Model, ServiceKey, Tool, ToolCallContext
from surefoot.types.reply import FunctionCallResult
from surefoot.types.settings import of_type
from surefoot.types.task import Task
from surefoot.types.tools import Catalogue, ToolResult

ONCE = "once"
_TASK = "Carry out the calls of one reply."
_RESULT_TAG = "<function_call_result"
_UNKNOWN = "it was broken off, and nobody knows whether it took effect; find that out before you call it again"
_SETTINGS = ModelSettings()
_CONFIG = LoopConfig()
_NO_SERVICES: Mapping[ServiceKey, object] = MappingProxyType({})

Functions = Sequence[Tool | Callable[..., object]]
"""Tools as a developer hands them over."""


class ModelService(Held):
    """A model to ask once, whose tagged or native calls can be carried out. It keeps no conversation.

    `model` is `provider:model` or any `Model`; timeouts, retry and the circuit breaker are in what the name resolves
    to. `services` is what tools ask for by type, as for `Agent`. `journal` keeps what `call_function` does: a
    `JournalStore`, a path for SQLite, or None for memory that is given up with each batch. `call_mode` "auto" hands
    over tools natively where model and endpoint can, else as text.
    """

    def __init__(
        self,
        model: str | Model,
        *,
        services: Mapping[ServiceKey, object] = _NO_SERVICES,
        settings: ModelSettings = _SETTINGS,
        journal: JournalStore | str | Path | None = None,
        config: LoopConfig = _CONFIG,
        call_mode: CallMode | Literal["auto"] = "auto",
    ) -> None:
        """Raises `UsageError` for what cannot work; nothing is sent or opened yet."""
        if (guard := checked_config(config).guard) is not None and guard.mode != "off":
            told = "a guard judges by a user's words, and a model service has no task"
            raise UsageError(f"{told}: give the guard to an `Agent`")
        resolved = resolve(model, settings=settings) if isinstance(model, str) else model
        self.settings = cast("ModelSettings", of_type(ModelSettings)("settings", settings))
        self.config = config
        self._cast = cast_of(ONCE, {SOLO: (resolved,)}, {SOLO: settings}, call_mode)
        self._services = services_of(checked_services(services))
        self._store = store_of(journal) if journal is not None else None
        self._used = (self.model,) if self._store is None else (self._store, self.model)
        self._learnt: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"ModelService({self.model.name!r})"

    @property
    def model(self) -> Model:
        return self._cast.parts[SOLO].model

    async def generate(
        self,
        sys_prompt: str,
        messages: Sequence[ModelMessage],
        tools: Functions | None = None,
        *,
        settings: ModelSettings | None = None,
        context: ToolCallContext | None = None,
    ) -> ModelMessage:
        """One request, one reply; no tool is run.

        With `tools`, the reply may ask for calls: natively (`calls`), or as tagged text where the model has no native
        calls; a step that it was held to by a schema is given as tagged text too. `settings` replace those of the
        service; the time that `context` has left bounds the request. Raises `ValueError` without messages,
        `UsageError` for tools that cannot be used, and `ModelError` and its kinds.
        """
        return await self._reply(self._draft(sys_prompt, messages, tools, settings, context), None)

    def stream(
        self,
        sys_prompt: str,
        messages: Sequence[ModelMessage],
        tools: Functions | None = None,
        *,
        settings: ModelSettings | None = None,
        context: ToolCallContext | None = None,
    ) -> AsyncGenerator[ModelSignal | ModelMessage]:
        """Pieces of the reply as they arrive, raw; the complete message, which `generate` would give, comes last.

        Nothing is sent before the first item is asked for. Closing the iterator (`contextlib.aclosing`) closes the
        request. Raises as `generate` does.
        """
        asked = replace(self._draft(sys_prompt, messages, tools, settings, context), stream=True)
        return stream_of(lambda emit: self._reply(asked, emit))

    async def call_function(
        self, tools: Functions, model_response_text: str | ModelMessage, *, context: ToolCallContext | None = None
    ) -> list[FunctionCallResult] | None:
        """Carry out the calls of a reply: one result for each, read or not, in the order of the reply; None without.

        A text is read in the tags dialect, or as calls in Python; of a whole reply its native calls count too. Calls
        are injected, validated, judged and run as in a run, reads side by side; one that fails stops no other. The
        batch is a run in the journal, named before the ":" of each `call_id`; a `context` says of which job and
        operator it is. Raises nothing that a reply or a tool does: `UsageError` for unusable tools, `JournalError`.
        """
        bound = bound_tools(tools, self._services)
        is_text = isinstance(model_response_text, str)
        reply = ModelMessage("assistant", model_response_text) if is_text else model_response_text
        reply = replace(reply, content=clean(reply.content))
        run_id = new_run_id()
        task = Task(_TASK, job=context.job or context.run_id, operator=context.operator) if context else Task(_TASK)
        speakers = {SOLO: Speaker(self.model.name, "text")}
        catalogue = Catalogue(tuple(one.spec for one in bound.values()))
        started = RunStarted(run_id, task, speakers, catalogue, {}, reasoner=ONCE, config=self.config)
        state = fold((started,))
        parsed = read_reply(state, Think(1), reply)
        if not parsed.calls and not parsed.errors:
            return None
        replied = ModelReplied(1, reply, parsed, "text", requests=0)
        times = _Times()
        state = await self._carried_out(state, started, replied, bound, times)
        objectives = {call.position: call.objective for call in parsed.calls}
        return [_result(state, call, objectives.get(call.position, ""), times) for call in state.calls]

    @staticmethod
    def result_messages(reply: ModelMessage, results: Sequence[FunctionCallResult]) -> tuple[ModelMessage, ...]:
        """What goes to the model behind its reply: an answer to each native call, or all in one message of the user.

        Results are data: nothing in them can act as a call, a tag or a control token.
        """
        if reply.calls:
            by_position = {result.position: result for result in results}
            return tuple(
                ModelMessage("tool", plain(by_position[at].output), call_id=call.id, name=call.name)
                for at, call in enumerate(reply.calls)
                if at in by_position
            )
        told = "\n\n".join(map(_tagged, results))
        return (ModelMessage("user", told),) if told else ()

    def _draft(
        self,
        sys_prompt: str,
        messages: Sequence[ModelMessage],
        tools: Functions | None,
        settings: ModelSettings | None,
        context: ToolCallContext | None,
    ) -> ModelRequest:
        """The request as it is meant, before it is fitted to what is known of the endpoint."""
        if not messages or isinstance(messages, str):
            raise ValueError("messages are empty or a text: give a list of them, such as [ModelMessage('user', '…')]")
        specs = tuple(one.spec for one in bound_tools(tools or (), self._services).values())
        return ModelRequest(
            sys_prompt,
            tuple(messages),
            tools=Catalogue(specs),
            settings=settings or self.settings,
            deadline_s=context.deadline_s if context else None,
        )

    async def _reply(self, asked: ModelRequest, emit: Emit | None) -> ModelMessage:
        reply = await reply_of(self._learning(asked, emit), self.model.name, asked.deadline_s)
        if isinstance(reply, ModelError):
            raise reply
        return reply

    async def _learning(self, asked: ModelRequest, emit: Emit | None, left: int = MOST_TRAITS) -> ModelMessage:
        """The reply. What the endpoint refuses is learnt, and left out of the next try (spec/react.md, section 2)."""
        request = self._fit(asked)
        try:
            message = await self.model.send(request, emit)
        except TraitRefused as refused:
            if request.traits.get(refused.trait) == refused.value or not left:
                raise  # it was left out already: nothing more can be learnt
            self._learnt[refused.trait] = refused.value
            self._cast.learn(ModelTraitLearnt(self.model.name, refused.trait, refused.value, refused.evidence))
            return await self._learning(asked, emit, left - 1)
        content = message.content or ""  # an adapter may be anybody's code
        content = step_in_tags(content) if request.mode == "schema" else content
        return replace(message, content=content, usage=request.settings.priced(message.usage))

    def _fit(self, asked: ModelRequest) -> ModelRequest:
        """The request with what is known of the endpoint: tools on the wire, or in the text with the form of a call."""
        speaker = self._cast.parts[SOLO].known_speaker()
        traits = {**speaker.traits, **self._learnt}
        mode = mode_for(speaker.call_mode, traits)
        if mode == "native":
            return replace(asked, mode="native", traits=traits)
        request = replace(asked, mode="text", tools=Catalogue(), messages=in_words(asked.messages), traits=traits)
        if not asked.tools.tools:
            return request
        described = template(f"tools_{mode}").replace("{tools}", declarations(asked.tools))
        request = replace(request, system=f"{asked.system}\n\n{described}".strip())
        if mode == "text":
            return replace(request, stop=(_RESULT_TAG,))
        return replace(request, mode="schema", tools=asked.tools, schema=step_schema(asked.tools))

    async def _carried_out(
        self, state: State, started: RunStarted, replied: ModelReplied, tools: Mapping[str, Tool], times: _Times
    ) -> State:
        """Drive the run to its end. A call in doubt is left at that: nobody can be asked, and the others go on."""
        store = self._store or MemoryJournal()
        journal = await store.open(started.run_id, create=True)
        try:
            await journal.append((started, replied))
            async with RunServices(self._services) as services:
                hands = LiveHands(self._cast, tools, journal, services, times.watch)
                state = await drive(journal, hands, fold((replied,), state))
                while standing(state) == "in_doubt":
                    unknown = ToolResult(_UNKNOWN, "in_doubt", source="surefoot", trust="trusted")
                    begun = (call.id for call in state.calls if call.is_open and call.attempts)
                    settled = tuple(CallEnded(call_id, unknown, state.elapsed_s) for call_id in begun)
                    await journal.append(settled)
                    hands.announced(settled)
                    state = await drive(journal, hands, fold(settled, state))
        finally:
            await journal.release()
        return state


@dataclass(slots=True)
class _Times:
    """How long each call took, from its announcement to its end."""

    begun: dict[str, float] = field(default_factory=dict[str, float])
    took_ms: dict[str, float] = field(default_factory=dict[str, float])

    def watch(self, event: Event | Signal) -> None:
        match event:
            case CallStarted(call_id):
                self.begun[call_id] = time.monotonic()
            case CallEnded(call_id) if call_id in self.begun:
                self.took_ms[call_id] = round((time.monotonic() - self.begun[call_id]) * 1000, 3)
            case _:
                pass


def _result(state: State, call: Call, objective: str, times: _Times) -> FunctionCallResult:
    call_id = f"{state.run_id}:{call.id}"
    if call.fault is not None:
        told = tell(call.fault, state.offered, "tags")
        failed = FunctionCallResult.failed(call.position, call.fault.kind, told)
        return replace(failed, func_name=call.name or call.fault.tool, call_id=call_id)
    waits = f"not run: it waits for a person to allow it; see `surefoot show {state.run_id}`"
    result = call.result or ToolResult(waits, "denied", source="gate", trust="trusted")
    return FunctionCallResult(
        call.name,
        call.arguments,
        objective,
        result.content,
        "FAILED" if result.is_error else "SUCCEEDED",
        call_id,
        call.position,
        result.kind if result.is_error else "",
        times.took_ms.get(call.id, 0.0),
        result.source or call.name,
        result.trust,
        result.blob is not None,
        result.blob or "",
    )


def _tagged(result: FunctionCallResult) -> str:
    kind = "error" if result.status == "FAILED" else "ok"
    shown = ToolResult(result.output, kind, source=result.source, trust=result.trust)
    call = Call(f"1.{result.position}", "", result.func_name, result.func_args, result=shown)
    return tagged(call, plain(result.output))


def in_words(messages: Sequence[ModelMessage]) -> tuple[ModelMessage, ...]:
    """A conversation for a model without native calls: what was called natively, and the answers, as tagged text."""
    told: list[ModelMessage] = []
    answers = 0
    for message in messages:
        if message.role == "tool":
            answers += 1
            # whether it had failed is not known any more
            opened = f'{_RESULT_TAG} call="{answers}" name="{attribute(message.name)}" trust="data">'
            text = f"{opened}\n{plain(message.content)}\n</function_call_result>"
            if answers > 1:
                told[-1] = replace(told[-1], content=f"{told[-1].content}\n\n{text}")
            else:
                told.append(ModelMessage("user", text))
            continue
        answers = 0
        if not message.calls:
            told.append(message)
            continue
        sent = (
            (c.name, c.arguments if isinstance(c.arguments, str) else json_text(c.arguments)) for c in message.calls
        )
        bodies = (f'{{"name": {json_text(name)}, "args": {arguments or "{}"}}}' for name, arguments in sent)
        words = "\n".join((message.content, *(f"<function_call>{body}</function_call>" for body in bodies)))
        told.append(replace(message, content=words.strip(), calls=()))
    return tuple(told)
