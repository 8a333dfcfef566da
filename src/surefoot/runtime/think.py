"""Ask a model for its next step, and read what it says."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, cast, get_args

import orjson

from surefoot.core.loop.read import answer_in, read_reply
from surefoot.core.loop.slices import request as request_of
from surefoot.core.parse.stream import DisplayFilter
from surefoot.core.state.roles import seconds_left
from surefoot.core.state.state import State, subset
from surefoot.core.state.turn import Outcome
from surefoot.core.text import at, clean
from surefoot.core.view.request import ANSWER_SCHEMA
from surefoot.core.view.shape import MAX_BRANCHES, name_schema, without_answer
from surefoot.core.view.step import is_before_calls, outcome_of, shown_words
from surefoot.runtime.ask import failed, reply_of
from surefoot.runtime.world import bring_files, cannot_take
from surefoot.types.errors import ModelError, ModelRefused, TraitRefused
from surefoot.types.events import Event, ModelReplied, ModelTraitLearnt
from surefoot.types.messages import (
    REREAD,
    Emit,
    FinishReason,
    ModelMessage,
    ModelRequest,
    ModelSignal,
    ReasoningDelta,
    Reset,
    Signal,
    TextDelta,
    TextHeld,
    Usage,
)
from surefoot.types.moves import Think
from surefoot.types.ports import Model
from surefoot.types.reply import Fault, Parsed

if TYPE_CHECKING:
    from surefoot.runtime.world import World


async def think(world: World, move: Think, state: State) -> Sequence[Event]:
    """One reply as an event; or what was learnt about the endpoint; or why there is no reply."""
    speaker, part = state.speakers[move.role], world.cast.part(state, move.role)
    has_limit = state.config.budget.max_seconds is not None
    deadline_s = seconds_left(state, last=move.want == "answer") if has_limit else None
    request = request_of(state, move, settings=part.settings, stream=world.stream, deadline_s=deadline_s)
    if state.task is not None and state.task.attachments and (untaken := cannot_take(state, move.role)):  # as learnt
        error = ModelRefused(untaken)
        error.attempts = 0
        return (failed(world, state, move.role, error, move.want),)
    if request.files:
        await bring_files(world.journal, request.files)
    display = _Display(world.tell, calls=bool(state.tools.tools)) if world.stream and world.watch else None
    since_s = time.monotonic()
    reply = _ask(part.model, request, display.emit if display else None)
    replied = await reply_of(reply, speaker.model, deadline_s)
    if isinstance(replied, ModelError):
        if isinstance(replied, TraitRefused) and not speaker.knows(replied.trait, replied.value):
            # a caller's own schema may be the reason, which says nothing of others
            trait = ANSWER_SCHEMA if replied.trait == "json_schema" and request.mode == "native" else replied.trait
            return (ModelTraitLearnt(speaker.model, trait, replied.value, replied.evidence),)
        event = failed(world, state, move.role, replied, move.want)
        if display and event.instead:
            display.emit(Reset(event.message))
        return (event,)
    message, requests = replied
    if (priced := part.settings.priced(message.usage)) is not message.usage:
        message = replace(message, usage=priced)
    took_s = round(time.monotonic() - since_s, 6)
    parsed = read_reply(state, move, message)
    if world.shape and (answer := answer_in(state, move, parsed)) and (told := world.shape.faults(answer)):
        parsed = without_answer(parsed, Fault("invalid_value", told))
    if move.want == "isolated" and "action_dropped" in parsed.warnings:
        _GATE_LOG.warning("calls in the reply to an isolated call were ignored")
    first_s = round(display.first_s - since_s, 6) if display and display.first_s else 0.0
    event = ModelReplied(
        move.step, message, parsed, speaker.mode, move.want, move.role, world.elapsed_s, requests, took_s, first_s
    )
    if display:
        display.finish(parsed, outcome_of(state, event))
    return (event,)


_GATE_LOG = logging.getLogger("surefoot.gate")
_FINISH_REASONS = frozenset(get_args(FinishReason))
_COSTS = (float, type(None))
_tokens = attrgetter("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cache_write_tokens")


async def _ask(model: Model, request: ModelRequest, emit: Emit | None) -> tuple[ModelMessage, int]:
    """The reply, and how many requests it took: out of many tools the name comes first (spec/react.md, section 8)."""
    if request.mode != "schema" or len(request.tools.tools) <= MAX_BRANCHES:
        return _writable(await model.send(request, emit)), 1
    branches = cast("list[dict[str, dict[str, object]]]", (request.schema or {})["anyOf"])  # as `step_schema` makes it
    first = _writable(await model.send(replace(request, schema=name_schema(request.schema or {}))))
    try:
        name = at(orjson.loads(first.content), "action")
    except orjson.JSONDecodeError:
        name = None
    held = [branch for branch in branches if branch["properties"]["action"] == {"const": name}]
    if not held:
        return first, 1  # cut off, or not held to the schema: the parser says what is wrong with it
    chosen = subset(request.tools, tuple(one for one in request.tools.names if one == name))
    schema = {**(request.schema or {}), "anyOf": held}
    try:
        second = _writable(await model.send(replace(request, tools=chosen, schema=schema), emit))
    except ModelError as error:
        error.usage += first.usage
        raise
    return replace(second, usage=first.usage + second.usage), 2


def _writable(message: ModelMessage) -> ModelMessage:
    """The reply as the journal can hold it. Seldom anything changes: our own wires deliver what is valid."""
    usage = message.usage
    text = "".join([message.content, message.reasoning, *[f"{c.id}{c.name}{c.arguments}" for c in message.calls]])
    is_known = message.finish_reason in _FINISH_REASONS
    told = _tokens(usage)
    is_whole = {*map(type, told)} == {int} and type(usage.cost_usd) in _COSTS
    if is_known and is_whole and clean(text) == text:
        return message
    calls = tuple(
        replace(
            call,
            id=clean(call.id),
            name=clean(call.name),
            arguments=clean(call.arguments) if isinstance(call.arguments, str) else call.arguments,
        )
        for call in message.calls
    )
    mended = replace(message, content=clean(message.content), reasoning=clean(message.reasoning), calls=calls)
    return replace(
        mended,
        mended=message.mended or mended != message,
        finish_reason=message.finish_reason if is_known else "unknown",
        usage=Usage(
            *map(int, told[:4]),
            cost_usd=None if usage.cost_usd is None else float(usage.cost_usd),
            estimated=bool(usage.estimated),
            cache_write_tokens=int(told[4]),
        ),
    )


class _Display:
    """What of a reply is shown: while it streams, what cannot become a call; in the end, exactly its visible words."""

    def __init__(self, tell: Callable[[Signal], None], *, calls: bool) -> None:
        self.first_s = 0.0
        """When the reply's first piece came, by `time.monotonic`; 0 before that."""
        self._filter = DisplayFilter(calls=calls)
        self._tell = tell
        self._shown: list[str] = []

    def emit(self, signal: ModelSignal) -> None:
        """Take a signal of the model, and pass on what may be shown now."""
        self.first_s = 0.0 if isinstance(signal, Reset) else self.first_s or time.monotonic()
        match signal:
            case TextDelta(text):
                visible, reasoning = self._filter.feed(text)
                if reasoning:
                    self._tell(ReasoningDelta(reasoning))
                if visible:
                    self._shown.append(visible)
                    self._tell(TextDelta(visible))
                elif not reasoning:
                    self._tell(TextHeld(len(text)))
            case Reset():
                self._filter.reset()
                self._shown.clear()
                self._tell(signal)
            case _:
                self._tell(signal)

    def finish(self, parsed: Parsed, outcome: Outcome) -> None:
        """The reply is whole and read: show what is left of its words, or all of them anew if others were shown."""
        shown = "".join(self._shown)
        words = shown_words(parsed, outcome)
        if is_before_calls(parsed, outcome):
            words = shown if words.startswith(shown) else ""
        if not words.startswith(shown):
            self._tell(Reset(REREAD))
            shown = ""
        if rest := words[len(shown) :]:
            self._tell(TextDelta(rest))
