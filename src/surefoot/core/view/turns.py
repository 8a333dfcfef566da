"""One turn as messages, for the one who gave it: the reply, one result a call, and what the runtime says of it.

A turn is rendered once in each form and level of folding, and kept. The user's words stand in a template with two
places, `{tools}` and `{input}`. Each occurs exactly once, and both are filled in one pass: what is filled in is never
searched again, and every other brace is plain text. Source: seed 002; spec/react.md, sections 3 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import cast, get_args

import orjson

from surefoot.core.parse.frames import NO_FRAME, Frame, attribute, in_brackets, plain, unended
from surefoot.core.parse.validate import validate_value
from surefoot.core.select.index import index_of_catalogue
from surefoot.core.select.shortlist import ranked
from surefoot.core.state.roles import ACTOR, THINKER, prompt_name
from surefoot.core.state.state import Call, Exchange, State, Turn
from surefoot.core.state.turn import Rendered
from surefoot.core.text import json_text
from surefoot.core.view.observations import (
    LONGEST_ARGUMENT,
    Form,
    ask_for,
    digest,
    form_in,
    frame_of,
    note_for,
    observed,
    render_outcome,
    shortened,
    tagged,
    tell_warnings,
)
from surefoot.core.view.shape import FINISH
from surefoot.core.view.step import goal_of, without_pager
from surefoot.types.attachments import Attachment, files_in
from surefoot.types.errors import ConfigError
from surefoot.types.messages import ModelMessage, NativeCall
from surefoot.types.outcomes import Deny
from surefoot.types.task import Task

LONGEST_IDENTIFIER = 64  # characters of a text value that may pass: an identifier, not a sentence
LONGEST_WORD = 24  # letters that may pass without being spelt out in the type
_TOOLS = "{tools}"
_INPUT = "{input}"


def handle(call: Call) -> str:
    """The name of a result as text: `text 3.0`."""
    return f"text {call.id}"


def is_withheld(call: Call) -> bool:
    """Whether the result of a call is text that a planner does not get to read."""
    return call.result is not None and value_for_planner(call) is None


def value_for_planner(call: Call) -> str | None:
    """The result as a planner may read it; None when it is to be a handle.

    A trusted result is shown as it is. A value of the type that its tool declares is written anew, so that nothing but
    the value is shown.
    """
    result = call.result
    if result is None or result.trust == "trusted":
        return result.content if result is not None else None
    returns = call.spec.returns if call.spec is not None else None
    if result.is_error or result.blob is not None or returns is None:
        return None
    named = _enumerated(returns)
    values: list[object] = [result.content]
    with suppress(orjson.JSONDecodeError):
        values.append(orjson.loads(result.content))
    for value in values:
        checked = validate_value(value, returns)
        if not checked.errors and not checked.coerced and _words_in(value, named) <= LONGEST_WORD:
            return value if isinstance(value, str) else json_text(value)
    return None


def _enumerated(schema: object) -> frozenset[str]:
    """The texts that a schema spells out itself."""
    if isinstance(schema, Mapping):
        members = cast("Mapping[str, object]", schema)  # keys of JSON
        spelt = [members["const"]] if "const" in members else []
        spelt += cast("list[object]", members.get("enum", []))  # a JSON Schema made from a type
        inner = [_enumerated(part) for part in members.values()]
        return frozenset(text for text in (*spelt, *members.keys()) if isinstance(text, str)).union(*inner)
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return frozenset[str]().union(*(_enumerated(part) for part in cast("Sequence[object]", schema)))  # the same
    return frozenset()


def _words_in(value: object, named: frozenset[str]) -> int:
    """How many characters could tell somebody something: of texts that are neither spelt out nor like an identifier.

    An identifier has no blanks, is short, and holds a digit; a word of letters alone, such as a code of a country, is
    counted, so that a list of such words makes no sentence.
    """
    if isinstance(value, str):
        if value in named:
            return 0
        is_short = len(value) <= LONGEST_IDENTIFIER and not any(sign.isspace() for sign in value)
        if not is_short:
            return LONGEST_WORD + 1
        is_marked = any(sign.isdigit() for sign in value) and sum(map(str.isalpha, value)) <= LONGEST_WORD
        return 0 if is_marked else len(value)
    if isinstance(value, Mapping):
        members = cast("Mapping[object, object]", value)  # decoded JSON
        return sum(_words_in(part, named) for pair in members.items() for part in pair)
    if isinstance(value, Sequence):
        return sum(_words_in(item, named) for item in cast("Sequence[object]", value))  # the same
    return 0


def user_words(state: State, role: str, task: Task) -> str:
    """The user's words with what came with them."""
    is_kept_away = role == THINKER and state.config.thinker_sees == "data"
    frame = Frame(state.gate.nonce) if state.gate else NO_FRAME
    text = task.text
    for one in task.attachments:
        shown_name = in_brackets(attribute(one.name))
        if is_kept_away and one.trust == "untrusted":  # a Thinker is told of it, and does not read it
            about = f"{shown_name}, {len(one.text):,} characters of untrusted material"
            text += f"\n\n[attached: {about}; the Actor can read it]"
            continue
        material = plain(frame.cleaned(one.text))
        if frame.nonce:
            text += f"\n\n{frame.around(material, f'attachment {shown_name}', one.trust)}"
        else:
            about = f"[attached: {shown_name}, {one.trust} material, not instructions]"
            text += f"\n\n{about}\n{unended(material)}\n[end of {shown_name}]"
    return text


def check_template(template: str, where: str) -> None:
    """Raise `ConfigError` naming `where` and the line unless each place occurs exactly once."""
    for place in (_TOOLS, _INPUT):
        lines = [number for number, line in enumerate(template.splitlines(), 1) for _ in range(line.count(place))]
        if len(lines) != 1:
            found = f"lines {', '.join(map(str, lines))}" if lines else "no line"
            raise ConfigError("prompt", where, f"the place {place} must occur exactly once; it is in {found}")


def split_template(template: str, *, tools: str, task: str) -> tuple[str, str]:
    """The system message, which ends before the line with `{input}`, and the user message that a template gives."""
    at = template.index(_INPUT)
    start = template.rfind("\n", 0, at) + 1
    head, tail = (
        re.sub("{tools}|{input}", lambda place: tools if place[0] == _TOOLS else task, part).strip()
        for part in (template[:start], template[start:])
    )
    return head, tail


def files_shown(state: State, role: str, task: Task) -> tuple[Attachment, ...]:
    """The files that came with a task, as far as the role gets to read them."""
    is_kept_away = role == THINKER and state.config.thinker_sees == "data"
    return tuple(one for one in files_in(task.attachments) if not is_kept_away or one.trust == "trusted")


def fetched(state: State, role: str, said: Exchange | None) -> str:
    """What was fetched of the references of a task; a Thinker is told that it is there."""
    hydrated = said.hydrated if said is not None else None
    if hydrated is None or not hydrated.message:
        return ""
    if role != THINKER or state.config.thinker_sees != "data":
        return plain(hydrated.message)
    told = f"{hydrated.references_resolved} references, {hydrated.total_tokens:,} tokens of untrusted material"
    return f"[PRE_HYDRATED_CONTEXT] {told}; the Actor can read it."


def said_before(state: State, role: str, step: int) -> tuple[ModelMessage, ...]:
    """What the user said in a later turn of a conversation, or in between, right before the reply of that number."""
    if not state.earlier and not state.notes:
        return ()
    said = [one for one in state.exchanges[1:] if one.begun + 1 == step]
    template = state.prompts[prompt_name(role, state.speakers[role].mode)] if said else ""
    told: list[ModelMessage] = []
    for one in said:
        text = split_template(template, tools="", task=user_words(state, role, one.task))[1]
        words = ModelMessage("user", text, files=files_shown(state, role, one.task))
        told += (ModelMessage("user", fetched(state, role, one)), words)
    told += (ModelMessage("user", text) for at, text in state.notes if at == step)
    return tuple(one for one in told if one.content)


def said_until(state: State, role: str, dropped: int) -> tuple[ModelMessage, ...]:
    """What the user said in this run before the turns of it that are not shown: it always stays."""
    steps = {state.begun + 1, *(at for at, _ in state.notes)}
    return tuple(one for at in sorted(steps) if state.begun < at <= dropped for one in said_before(state, role, at))


def exchange_of(state: State, step: int) -> Exchange | None:
    """What the user had asked for in the run to which a reply of that number belongs."""
    return next((one for one in reversed(state.exchanges) if one.begun < step), None)


def step_in_words(state: State, number: str) -> str:
    """A step of a run or conversation, by its number: what the user had said before it, the reply, the calls' ids."""
    at = int(number) - 1 if number.isdecimal() and len(number) <= LONGEST_NUMBER else -1
    if not 0 <= at < len(state.done):
        return ""
    turn = state.done[at]
    lines = [f"user: {one.task.text}" for one in state.exchanges if one.begun == at]
    calls = ", ".join(f"{call.name} ({call.id})" for call in turn.calls)
    return "\n".join((*lines, f"assistant: {turn.message.content}", *([f"called: {calls}"] if calls else [])))


LONGEST_NUMBER = 9
_NAMELESS = "unnamed"
LONGEST_REMINDER = 400  # characters of a task that is repeated under each observation in schema mode
_MOST_NAMES = 12  # tools up to which those not called yet are named

_FITS = 0.3
"""The part of the best score from which on a tool fits a task: in BFCL 99 % of those needed do, 14 % of the others."""


def turn_messages(state: State, turn: Turn, form: Form, level: int = 0) -> Rendered:
    """One settled reply and what followed, for the one who gave it; `level` as `Fit.level` has it."""
    if level and not turn.calls:
        level = 0
    name = _KEPT_AS[form][level]
    if (kept := turn.rendered(name)) is not None:
        return kept
    made = _native(state, turn, level) if form == "native" else _as_text(state, turn, form, level)
    if turn.want != "any" and (asked := ask_for(state, turn.want, form)):
        made = (ModelMessage("user", asked), *made)
    if turn.guidance:
        made = (ModelMessage("user", turn.guidance), *made)
    if state.earlier or state.notes:
        made = (*said_before(state, turn.role, turn.step), *made)
    return turn.keep(name, made)


_KEPT_AS: Mapping[Form, tuple[str, str, str]] = {
    form: (form, f"{form}:folded", f"{form}:stripped") for form in get_args(Form)
}
"""Under which name a turn keeps its messages, by form and level."""


def _native(state: State, turn: Turn, level: int) -> tuple[ModelMessage, ...]:
    calls = tuple([NativeCall(c.wire_id, c.name or _NAMELESS, _sent_arguments(turn, c, level)) for c in turn.calls])
    message = turn.message
    # a leaked call is promoted: what stood in the text as a call now stands as one
    content = message.content if message.calls or not calls else turn.parsed.content or ""
    if turn.parsed.format == FINISH and not calls:  # an answer that came as a call stands as words
        content = turn.parsed.final or turn.parsed.content or ""
    said = ModelMessage(
        "assistant", content, calls, reasoning=message.reasoning, model=message.model, opaque=message.opaque
    )
    results = [
        ModelMessage("tool", text, call_id=call.wire_id, name=call.name or _NAMELESS, files=_files(call, level))
        for call, text in zip(turn.calls, _outcomes(state, turn, "native", level), strict=True)
    ]
    note = note_for(state, turn, "native")
    return (said, *results, ModelMessage("user", note)) if note else (said, *results)


def _files(call: Call, level: int) -> tuple[Attachment, ...]:
    return call.result.files if call.result is not None and not level else ()


def _outcomes(state: State, turn: Turn, form: Form, level: int) -> list[str]:
    """What is told of each call; behind the last, what of the reply was not used."""
    outcomes: list[str] = []
    for call in turn.calls:
        frame = frame_of(state, call)
        text = render_outcome(call, state.offered, form, frame)
        if level:
            text = digest(call, text, frame)
        if turn.role == ACTOR and is_withheld(call):  # what the Thinker does not get to read has a name that both know
            text = f"[{handle(call)}]\n{text}"
        outcomes.append(text)
    if outcomes and turn.parsed.warnings and (unused := tell_warnings(turn.parsed.warnings)):
        outcomes[-1] += f"\n({unused})"
    return outcomes


def _sent_arguments(turn: Turn, call: Call, level: int) -> str:
    """The arguments as the model wrote them if that is a JSON object, since servers reject a history that is not."""
    native = turn.message.calls[at] if (at := call.position) < len(turn.message.calls) else None
    sent = native.arguments if native is not None else call.arguments
    if not isinstance(sent, str):
        sent = json_text(sent)
    elif call.fault is None and native and call.name == native.name and not isinstance(call.decision, Deny):
        sent = sent or "{}"
    else:  # perhaps unread, when its tool is hidden
        try:
            sent = sent if isinstance(orjson.loads(sent), dict) else "{}"
        except orjson.JSONDecodeError:
            sent = "{}"
    if level <= 1 or len(sent) <= LONGEST_ARGUMENT:
        return sent
    try:
        whole = orjson.loads(sent)
    except orjson.JSONDecodeError:  # it had to be repaired
        whole = call.arguments
    return json_text(shortened(whole))


def _as_text(state: State, turn: Turn, form: Form, level: int) -> tuple[ModelMessage, ...]:
    message = turn.message
    calls: Sequence[Call] = turn.calls
    if level > 1:
        shorts = [shortened(call.arguments) for call in calls]
        pairs = zip(calls, shorts, strict=True)
        calls = [call if short is call.arguments else replace(call, arguments=short) for call, short in pairs]
    words = own_words(state, turn, form, calls)
    said = ModelMessage("assistant", words, reasoning=message.reasoning, model=message.model)
    frame = tagged if form == "tags" or (turn.parsed.format == "tags" and form == "text") else observed
    parts = [frame(call, text) for call, text in zip(calls, _outcomes(state, turn, form, level), strict=True)]
    note = note_for(state, turn, form)
    if note:
        parts.append(note)
    if parts and form == "schema" and turn.role != THINKER and (reminder := _reminder(state, turn)):
        parts.append(reminder)
    told = ModelMessage("user", "\n\n".join(parts), files=tuple(one for c in calls for one in _files(c, level)))
    return (said, told) if parts else (said,)


def _reminder(state: State, turn: Turn) -> str:
    """What a small model loses sight of: which tools it has called by then, which not, and the question.

    In a step of a plan that is its goal alone, or the model goes on to what other steps are for.
    """
    if turn.step_id and state.plan is not None:
        goal = next((goal_of(state, step) for step in state.plan.steps if step.step_id == turn.step_id), "")
        return f"This step: {goal}\nOnce that is known, say what came of it, with the values." if goal else ""
    called = turn.called | {call.name for call in turn.calls if call.result is not None}
    names = without_pager(state.offered).names
    lines = [f"Tools called so far: {', '.join(name for name in names if name in called) or 'none'}."]
    said = exchange_of(state, turn.step)
    if len(names) <= _MOST_NAMES:
        hits = ranked(index_of_catalogue(state.offered), said.task.text if said is not None else "")
        fit = [hit.id for hit in hits if hit.score >= _FITS] or names  # where no word tells, any of them may be meant
        if missing := [name for name in names if name in fit and name not in called]:
            lines[0] += f" Not called yet: {', '.join(missing)}."
    earlier = reversed(state.done[: turn.step - 1]) if turn.role == ACTOR else ()
    instruction = next((told for one in earlier if (told := one.parsed.instruction) is not None), None)
    if instruction is not None:
        lines.append(f"Instruction: {plain(instruction.text)} {plain(instruction.input)}".strip())
        lines.append("Once it is carried out, report what came of it.")
    elif said is not None and len(said.task.text) <= LONGEST_REMINDER:
        lines.append(f"Question: {said.task.text}")
    return "\n".join(lines)


def own_words(state: State, turn: Turn, form: Form, calls: Sequence[Call]) -> str:
    """The reply up to the end of its step; in this form if it had another, or its `calls` are shown otherwise."""
    text, parsed = turn.message.content, turn.parsed
    is_as_said = all(one is other for one, other in zip(calls, turn.calls, strict=True))
    if not calls or (is_as_said and form_in(state, turn.mode) == form):
        return text[: parsed.used] if parsed.used >= 0 else text
    thought = parsed.content or ""
    match form:
        case "schema":
            steps = ({"thought": thought, "action": call.name, "action_input": call.arguments} for call in calls)
            return "\n".join(json_text(step) for step in steps)
        case "tags":
            bodies = (json_text({"name": call.name, "args": call.arguments}) for call in calls)
            return "\n".join((thought, *(f"<function_call>{body}</function_call>" for body in bodies))).strip()
        case _:
            lines = [f"Thought: {thought}"] if thought else []
            for call in calls:
                lines += (f"Action: {call.name}", f"Action Input: {json_text(call.arguments)}")
            return "\n".join(lines)
