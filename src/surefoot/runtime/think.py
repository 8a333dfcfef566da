"""Ask a model for its next step, and read what it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from surefoot.core.budget import seconds_left
from surefoot.core.parse.stream import DisplayFilter
from surefoot.core.reasoners.table import REASONERS
from surefoot.core.state import State, subset
from surefoot.core.step_schema import ANSWER, MAX_BRANCHES, name_schema, step_schema
from surefoot.core.text import clean
from surefoot.types.errors import ModelError, TraitRefused
from surefoot.types.events import Event, ModelFailed, ModelReplied, ModelTraitLearnt
from surefoot.types.messages import Emit, ModelMessage, ModelRequest, ModelSignal, ReasoningDelta, Reset, TextDelta
from surefoot.types.moves import Think

if TYPE_CHECKING:
    from surefoot.runtime.hands import LiveHands


async def think(hands: LiveHands, move: Think, state: State) -> Sequence[Event]:
    """One reply as an event; or what was learnt about the endpoint; or why there is no reply."""
    reasoner = REASONERS[state.reasoner]
    request = replace(
        reasoner.view(state, move),
        settings=hands.settings,
        stream=hands.stream,
        deadline_s=seconds_left(state, last=move.want == "answer"),
    )
    emit = _shown(request, hands.watch) if hands.stream and hands.watch else None
    try:
        if request.mode == "schema" and len(request.tools.tools) > MAX_BRANCHES:
            message = await _in_two(hands, request, emit)
        else:
            message = await hands.model.send(request, emit)
    except TraitRefused as refused:
        if state.traits.get(refused.trait) == refused.value:  # it was left out already: nothing more can be learnt
            return (ModelFailed("bad_request", str(refused), role=move.role, elapsed_s=hands.elapsed_s),)
        return (ModelTraitLearnt(state.model, refused.trait, refused.value, refused.evidence),)
    except ModelError as error:
        return (ModelFailed(error.kind, str(error), error.attempts, move.role, error.usage, elapsed_s=hands.elapsed_s),)
    message = _writable(message)
    parsed = reasoner.read(state, move, message)
    return (ModelReplied(move.step, message, parsed, state.mode, move.want, move.role, hands.elapsed_s),)


def _writable(message: ModelMessage) -> ModelMessage:
    """The reply, with what no journal could hold replaced. Seldom anything is: wires deliver valid text."""
    texts = (message.content, message.reasoning, *(f"{c.id}{c.name}{c.arguments}" for c in message.calls))
    if all(clean(text) is text for text in texts):
        return message
    calls = tuple(
        replace(
            call,
            id=clean(call.id),
            name=clean(call.name),
            arguments=clean(call.arguments) if isinstance(call.arguments, str) else {},
        )
        for call in message.calls
    )
    return replace(message, content=clean(message.content), reasoning=clean(message.reasoning), calls=calls)


async def _in_two(hands: LiveHands, request: ModelRequest, emit: Emit | None) -> ModelMessage:
    """A step out of many tools: first the name, then the whole step with that one tool (spec/react.md, section 8)."""
    first = await hands.model.send(replace(request, schema=name_schema(request.tools)))
    try:
        name = orjson.loads(first.content).get("action", "")
    except (orjson.JSONDecodeError, AttributeError):
        return first  # cut off, or not held to the schema: the parser says what is wrong with it
    chosen = subset(request.tools, () if name == ANSWER else (name,))
    schema = step_schema(chosen, answer=name == ANSWER)
    second = await hands.model.send(replace(request, tools=chosen, schema=schema), emit)
    return replace(second, usage=first.usage + second.usage, attempts=first.attempts + second.attempts - 1)


def _shown(request: ModelRequest, watch: Emit) -> Emit:
    """In text modes a filter holds back what may still become a label or a call; native replies pass as they are."""
    if request.mode == "native":
        return watch
    display = DisplayFilter()

    def emit(signal: ModelSignal) -> None:
        match signal:
            case TextDelta(text):
                visible, reasoning = display.feed(text)
                if reasoning:
                    watch(ReasoningDelta(reasoning))
                if visible:
                    watch(TextDelta(visible))
            case Reset():
                display.reset()
                watch(signal)
            case _:
                watch(signal)

    return emit
