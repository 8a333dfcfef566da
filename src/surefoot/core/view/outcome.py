"""What a reply was, and the calls in it. Source: spec/react.md, sections 4, 7 and 9."""

from __future__ import annotations

import re
from collections.abc import Mapping

from surefoot.core.parse.marks import parts_of
from surefoot.core.state.state import Call, State
from surefoot.core.state.turn import Outcome
from surefoot.core.state.window import READ_RESULT
from surefoot.core.view.shape import FINISH
from surefoot.core.view.step import tools_now
from surefoot.types.events import ModelReplied
from surefoot.types.messages import ModelMessage, NativeCall
from surefoot.types.plan import PlanStep
from surefoot.types.reply import Parsed, ParsedCall

_WITH_CALLS = ("any", "reasoning")
"""What was asked for in a reply whose calls are answered, each by its id."""


def outcome_of(state: State, event: ModelReplied) -> Outcome:
    """What a reply was. Decided by what stands in it, never by `finish_reason` alone (spec/react.md, section 7.6)."""
    parsed, message = event.parsed, event.message
    if parsed.calls or parsed.errors:
        return "calls" if event.want in _WITH_CALLS else "fault"
    if parsed.instruction is not None:
        return "instruction"
    if message.finish_reason == "content_filter":
        return "refused"
    text = parsed.final if parsed.final is not None else None if parsed.error else parsed.content
    if text is not None and text.strip():
        if message.finish_reason == "length" and parsed.format != FINISH:  # a call that can be read is whole
            return "cut"
        is_plain = parsed.final is None and event.mode == "native" and event.want == "any"
        if not is_plain or state.calls_made or _ANNOUNCING.search(text) is None:
            return "answer"
        # it says that a tool is about to be called, which it names as a word of its own; a model is asked about its
        # words once in a run, and what it says then is its answer
        speaker = state.speakers[event.role]
        names = () if speaker.narrated or speaker.faults_running else state.offered.names
        is_named = any(re.search(rf"(?<![\w.-]){re.escape(n)}(?![\w-])", text) for n in names if n != READ_RESULT)
        return "narrated" if is_named else "answer"
    if parsed.error is None or parsed.error.kind == "empty":
        return "empty"
    return "no_step" if parsed.error.kind in ("no_step", "no_call") else "fault"


def shown_words(parsed: Parsed, outcome: Outcome) -> str:
    """The words of a reply that are shown to a person; a thought before calls is among them."""
    words = parsed.final if parsed.final is not None else parsed.content or ""
    words = words.strip() if outcome in ("answer", "cut", "calls", "instruction") else ""
    return parts_of(words).output.strip() if parsed.format == "tags" and parsed.final is not None else words


def is_thought(parsed: Parsed, outcome: Outcome) -> bool:
    """Whether the words of a reply are a thought before calls."""
    return outcome == "calls" and parsed.format in ("react", "schema")


_ANNOUNCING = re.compile(
    r"\b(?:i will|i'll|i’ll|i need to|i am going to|i'm going to|let me|let's|i should|calling|using|use)\b"
    r"|我将|我会|让我|我需要|调用|使用",
    re.IGNORECASE,
)


def calls_of(state: State, event: ModelReplied) -> tuple[tuple[Call, ...], Mapping[str, None]]:
    """The calls of a reply in document order, faulty ones among them, each with an id that is new in this run; and the
    new ids.
    """  # noqa: D205  # one sentence
    if event.want not in _WITH_CALLS:
        return (), {}
    ids: dict[str, None] = {}
    short = state.speakers[event.role].traits.get("id_shape") == "alnum9"

    def wire_id(received: str, position: int) -> str:
        minted = f"call_{event.step}_{position}"
        if short:
            minted = f"c{event.step % 10**5:05d}{position % 10**3:03d}"
        chosen = minted if not received or received in ids or received in state.wire_ids else received
        while chosen in ids or chosen in state.wire_ids:
            chosen += "_"
        ids[chosen] = None
        return chosen

    step = f"{state.scope}.{event.step}" if state.scope else str(event.step)
    found = [
        Call(f"{step}.{c.position}", wire_id(c.id, c.position), c.name, c.arguments, state.tools.get(c.name))
        for c in event.parsed.calls
    ]
    for e in event.parsed.errors:
        hidden = None if tools_now(state).get(e.name) else state.tools.get(e.name)  # refused by the gate, schema untold
        fault = None if hidden or event.want == "reasoning" else e.error  # what must not run is not repaired either
        call_id = f"{step}.{e.position}"
        found.append(Call(call_id, wire_id(e.id, e.position), e.name, {}, hidden, fault))
    if event.parsed.errors:
        found.sort(key=lambda call: call.position)
    return tuple(found), ids


def spoken_call(step: PlanStep, wire_id: str = "") -> tuple[ModelMessage, Parsed]:
    """The call of a tool step as a model would have made it."""
    message = ModelMessage("assistant", calls=(NativeCall(wire_id, step.tool_id, step.parameters),))
    return message, Parsed((ParsedCall(0, step.tool_id, step.parameters),), format="native")
