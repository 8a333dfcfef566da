"""What the two of a dual run see of each other.

The Actor sees the Thinker's instructions, its own turns and raw results. The Thinker sees its own turns, and what the
Actor did as data: of an untrusted result only what is free of free text, else a handle that it can pass on. What is
told of a turn depends only on what came before it, so it never changes. Source: spec/reasoners.md, sections 7 and 8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from surefoot.core.guard.branches import words_request
from surefoot.core.loop.speakers import proposal_of
from surefoot.core.parse.frames import attribute, plain
from surefoot.core.parse.reply import instruction_schema
from surefoot.core.parse.schema import properties_of
from surefoot.core.state.roles import ACTOR, SOLO, THINKER, window_of
from surefoot.core.state.state import Call, State, Turn, subset
from surefoot.core.state.turn import Rendered, changed
from surefoot.core.state.window import Fit, limit_in
from surefoot.core.text import json_text
from surefoot.core.view.observations import folded_text, frame_of, render_result
from surefoot.core.view.request import LOOK_FIRST, Show, composed, fit_for, fitting, form_of, own_turns
from surefoot.core.view.step import isolated_request, without_pager
from surefoot.core.view.turns import (
    LONGEST_REMINDER,
    exchange_of,
    handle,
    said_before,
    turn_messages,
    value_for_planner,
)
from surefoot.types.events import ModelFailed, Want
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.moves import Think

LONGEST_RAW = 2_000  # characters of an untrusted result that a Thinker is shown with `thinker_sees="all"`

_PROPOSAL = (
    "The Actor proposes this as the deliverable. If it solves the task, write TASK_DONE alone on a line, and it stands "
    "as it is; else give the next instruction."
)
_NO_REPORT = "The Actor gave no report."


def actor_turns(state: State) -> Show:
    """What the Actor is shown of the turns."""
    turns, form = tuple(state.turns), form_of(state, ACTOR)

    def show(at: int, level: int) -> Rendered:
        turn = turns[at]
        if turn.role == ACTOR:
            return turn_messages(state, turn, form, level)
        if (kept := turn.rendered("instruction")) is not None:
            return kept
        told, text = turn.parsed.instruction, ""
        if told is not None and told.done and not told.text:
            text = "The Thinker says that the task is solved."
        elif told is not None:
            given = f"\n<input>\n{plain(told.input)}\n</input>" if told.input else ""
            text = f"<instruction>\n{plain(told.text)}\n</instruction>{given}"
        instructed = (ModelMessage("user", text),) if text else ()
        return turn.keep("instruction", (*said_before(state, ACTOR, turn.step), *instructed))

    return show


def thinker_turns(state: State) -> Show:
    """What the Thinker is shown of the turns."""
    turns, form = tuple(state.turns), form_of(state, THINKER)

    def show(at: int, level: int) -> Rendered:
        turn = turns[at]
        if turn.role == THINKER:
            return turn_messages(state, turn, form)
        is_last = at + 1 == len(turns) or turns[at + 1].role == THINKER
        kept_as = f"report:{form}:{state.config.thinker_sees}:{is_last}:{level > 0}"
        if (kept := turn.rendered(kept_as)) is not None:
            return kept
        said = (one.parsed.instruction for one in turns[:at])  # by the Thinker
        known = [one.task.text for one in state.exchanges]
        known += (text for one in said if one is not None for text in (one.text, one.input))
        results = (call.result for one in turns[: at + 1] for call in one.calls)
        has_read = any(part.trust == "untrusted" for one in state.exchanges for part in one.task.attachments)
        has_read = has_read or any(one is not None and one.trust != "trusted" for one in results)
        text = _reported(state, turn, known, has_read=has_read, is_last=is_last, is_folded=level > 0)
        if text and is_last and form == "schema":
            # what a small model loses sight of: the calls so far, and the question
            task = exchange_of(state, turn.step)
            own = turns[task.begun if task is not None else 0 : at + 1]
            calls = (call for one in own for call in one.calls if call.result is not None and not call.known)
            named = [f"{call.name}({', '.join(_shown_arguments(call, known).values())})" for call in calls]
            text += f"\nCalls so far: {plain(', '.join(named)) or 'none'}."
            if task is not None and task.task.text and len(task.task.text) <= LONGEST_REMINDER:
                text += f"\nQuestion: {task.task.text}"
            text += "\nIf the results hold every value that it asks for, choose TASK_DONE now."
        reported = (ModelMessage("user", text),) if text else ()
        return turn.keep(kept_as, (*said_before(state, THINKER, turn.step), *reported))

    return show


def _reported(state: State, turn: Turn, known: Sequence[str], *, has_read: bool, is_last: bool, is_folded: bool) -> str:
    """One reply of the Actor, for the Thinker: its results, then its words."""
    parts = [_result(state, call, known, is_folded=is_folded) for call in turn.calls if call.result is not None]
    words = ""
    if turn.calls:  # the words around its calls stay its own
        words = proposal_of(turn)
    elif turn.outcome in ("answer", "cut", "narrated"):
        words = turn.parsed.final if turn.parsed.final is not None else turn.parsed.content or ""
        words = words.replace("<action>", "").replace("</action>", "").strip()
    if words:
        trust = "data" if has_read else "trusted"
        said = _folded(words, len(words), "", plain(words)) if is_folded else plain(words)
        parts.append(f'<actor_report trust="{trust}">\n{said}\n</actor_report>')
    elif is_last and not parts:
        parts.append(_NO_REPORT)
    if proposal_of(turn):
        parts.append(_PROPOSAL)
    if turn.progress_note:
        parts.append(turn.progress_note)
    return "\n".join(parts)


def _folded(text: str, size: int, again: str, whole: str) -> str:
    """The beginning of an old text, if that is shorter."""
    short = folded_text(text, size, again)
    return short if len(short) < len(whole) else whole


def _result(state: State, call: Call, known: Sequence[str], *, is_folded: bool) -> str:
    result = call.result
    assert result is not None  # noqa: S101  # asked only then
    status = "FAILED" if result.is_error else "SUCCEEDED"
    trust = "trusted" if result.trust == "trusted" else "data"
    told = ", ".join(f"{name}={value}" for name, value in _shown_arguments(call, known).items())
    arguments = f'arguments="{attribute(told)}" ' if told else ""
    head = f'call="{call.id}" name="{attribute(call.name)}" {arguments}status="{status}"'
    error = f' error="{result.kind}"' if result.is_error else ""
    source = f'source="{_source(call)}" trust="{trust}" size="{result.size}"'
    again = f"the Actor can read call {call.known or call.id} again"
    if (value := value_for_planner(call)) is not None:
        whole = render_result(replace(result, content=value), call.known or call.id)
        value = _folded(value, max(result.size, len(value)), again, whole) if is_folded else whole
    else:
        line = f"[{handle(call)}: {result.size:,} characters from {_source(call)}]"
        if state.config.thinker_sees == "data":
            value = line
        else:
            frame = frame_of(state, call)
            source, cut = result.source or call.name, result.content[:LONGEST_RAW]
            raw = frame.render(cut, source, result.trust, is_error=result.is_error)
            value = f"{line}\n{_folded(frame.cleaned(result.content), result.size, again, raw) if is_folded else raw}"
    return f"<function_call_result {head}{error} {source}>\n{value}\n</function_call_result>"


_SOURCE = re.compile(r"(?:https?://)?[\w.:-]{1,64}")


def _source(call: Call) -> str:
    """Where a result comes from, without room for words: the tool, a name, or the host of an address."""
    found = _SOURCE.match(call.result.source) if call.result is not None else None
    return attribute(found.group()) if found is not None else attribute(call.name)


def _shown_arguments(call: Call, known: Sequence[str]) -> dict[str, str]:
    """The arguments, as far as the Actor has not made them up: numbers, and words of the user's or the Thinker's."""
    declared = properties_of(call.spec.parameters if call.spec is not None else {})
    shown: dict[str, str] = {}
    for name, value in call.arguments.items():
        is_said = value is None or isinstance(value, int | float)
        if isinstance(value, str):
            is_said = bool(value) and any(value in text for text in known)
        if name in declared and is_said:
            shown[name] = json_text(value)
    return shown


_SHOWN: Mapping[str, Callable[[State], Show]] = {SOLO: own_turns, THINKER: thinker_turns, ACTOR: actor_turns}


def request(state: State, think: Think, **sent: Any) -> ModelRequest:
    """The next request of a role: its own turns as its own, all else as told. `sent`: its settings and limits."""
    if think.want == "isolated":
        return replace(isolated_request(state) if state.current_step_is_reasoning else words_request(state), **sent)
    schema = _instructions(state) if think.role == THINKER else None
    return composed(state, think, _SHOWN[think.role](state), fit_of(state, think.role, think.want), schema, **sent)


def fit_of(state: State, role: str, want: Want) -> Fit:
    """How much of the turns a role is shown in its next request; the same for the same state."""
    if window_of(state, role) is None:
        return state.speakers[role].fit
    return fit_for(state, Think(state.steps + 1, role, want), _SHOWN[role](state), droppable(state, role))


def fit_overflown(state: State, event: ModelFailed) -> Fit:
    """What is shown after an overflow: less by a known window, else a quarter less of the turns, oldest first."""
    speaker = state.speakers[event.role]
    named = [limit for limit in (speaker.fit.limit, limit_in(event.message)) if limit]
    fit = replace(speaker.fit, limit=min(named, default=None))
    if (window := window_of(_with_fit(state, event.role, fit), event.role)) is None:
        dropped = fit.dropped + max(1, (state.steps - fit.dropped) // 4)  # so that two tries make real room
        return replace(fit, dropped=max(fit.dropped, min(droppable(state, event.role), dropped)), counted=0, turns=0)
    before = _with_fit(state, event.role, replace(fit, limit=speaker.fit.limit or 10**12))
    sent = fit_of(before, event.role, event.want).request
    return replace(fit, stretch=max(fit.stretch, window / sent))


def _with_fit(state: State, role: str, fit: Fit) -> State:
    return changed(state, speakers={**state.speakers, role: changed(state.speakers[role], fit=fit)})


def droppable(state: State, role: str) -> int:
    """How many of the oldest turns a role may do without: never the newest, and not what the Actor is to do now."""
    turns, newest = state.turns, state.steps - 1
    if role != ACTOR:
        return newest
    return next((at for at in range(newest, -1, -1) if turns[at].parsed.instruction is not None), newest)


def _instructions(state: State) -> Mapping[str, object]:
    """The schema of what the Thinker may say next."""
    speaker = state.speakers[THINKER]
    may_end = speaker.replies > 0 or speaker.traits.get(LOOK_FIRST) != "yes"
    able = fitting(state, ACTOR, without_pager(state.offered))
    idle = _idle_tools(state) if speaker.mode == "schema" else frozenset[str]()
    if may_end and idle:
        able = subset(able, tuple(name for name in able.names if name not in idle))
    return instruction_schema(able, may_end=may_end)


MOST_IDLE = 2


def _idle_tools(state: State) -> frozenset[str]:
    """The tools that the Thinker has named in vain: twice since something new was found out, or for what was known.

    A small model would go on naming them, with names that it makes up.
    """
    named: list[str] = []
    is_known = False
    for turn in reversed(state.own_turns):
        if any(c.result is not None and not c.result.is_error and not c.known for c in turn.calls):
            break
        is_known = is_known or any(call.known and not call.is_told_once for call in turn.calls)
        if turn.parsed.instruction is not None:
            named.append(turn.parsed.instruction.tool)
    return frozenset(named) - {""} if is_known or len(named) >= MOST_IDLE else frozenset()
