"""Reading a reply for a reasoner: which dialect, and what in it counts.

Source: spec/react.md, sections 5, 7 and 13.5; spec/reasoners.md, sections 3 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import orjson

from surefoot.core.notes import Form
from surefoot.core.parse.deliverable import DELIVERABLE, PARTS, TASK_DONE, body_of, parts_of
from surefoot.core.parse.reply import parse
from surefoot.core.parse.text_calls import text_call
from surefoot.core.reasoners.shown import fit_of
from surefoot.core.reasoners.words import called_or_asked, read_words
from surefoot.core.roles import ACTOR
from surefoot.core.running import tools_now
from surefoot.core.shape import shape_faults
from surefoot.core.state import State
from surefoot.core.view import form_of, must_deliver, offered_now
from surefoot.types.messages import ModelMessage, NativeCall
from surefoot.types.moves import Think
from surefoot.types.reply import Fault, Parsed, ReplyWarning
from surefoot.types.tools import Catalogue

_DIALECTS: dict[Form, str] = {"native": "native", "schema": "schema", "text": "react", "tags": "tags"}
_NOTHING = frozenset({"none", "null", "nil", "n/a", "undefined", "无"})
"""What a model that is held to a form puts where it has nothing to say, even when it knows the answer."""


def read_step(state: State, think: Think, message: ModelMessage) -> Parsed:
    """The reply as calls, an answer or a fault. Where no call is allowed, one is told and is none that could run."""
    form = form_of(state, think.role)
    tools, read = _reader(state, think, message)
    if form == "native" and not message.calls:
        parsed = read_words(state, think, message, tools, read)
    else:
        parsed = read(message.content, _DIALECTS[form], message.calls)
    if form != "native" and think.want == "any" and parsed.error is not None and parsed.error.kind == "no_step":
        parsed = (
            called_or_asked(state, think, message, text_call(message.content, tools, read), _DIALECTS[form]) or parsed
        )
    if form == "schema" and parsed.final is not None and _says_nothing(parsed.final):
        return replace(parsed, final=None, error=Fault("empty_final", "the answer is not given in words"))
    if think.want == "reasoning":
        return _worded(parsed, message, form)
    if think.want != "any" and (parsed.calls or parsed.errors):
        told = "no tool can be called any more; nothing was run"
        return replace(parsed, calls=(), errors=(), error=Fault("calls_not_allowed", told))
    return parsed


def _worded(parsed: Parsed, message: ModelMessage, form: Form) -> Parsed:
    """A reply in a step without tools: its calls are told as they are, and words need no form."""
    has_no_step = parsed.error is not None and parsed.error.kind in ("no_step", "no_call")
    is_broken = form == "schema" and message.content.lstrip().startswith("{")
    if parsed.calls or parsed.errors or not has_no_step or is_broken:
        return parsed
    return replace(parsed, error=None, content=parsed.content or message.content)


def read_isolated(message: ModelMessage) -> Parsed:
    """The words of a reply to an isolated call, in whatever form; calls in it are left out and told in a warning."""
    parsed = parse(message.content, tool_calls=message.calls, finish_reason=message.finish_reason)
    words = parsed.final if parsed.final is not None else parsed.content
    has_calls = bool(parsed.calls or parsed.errors)
    error = None if words and words.strip() else Fault("empty", "the reply holds no words")
    warnings: frozenset[ReplyWarning] = frozenset({"action_dropped"} if has_calls else ())
    return Parsed(content=words, error=error, warnings=warnings, format=parsed.format)


def _says_nothing(final: str) -> bool:
    """Whether an answer is only a word for nothing, or has no letter and no digit."""
    return final.strip().casefold() in _NOTHING or not any(sign.isalnum() for sign in final)


def read_delivering(state: State, think: Think, message: ModelMessage) -> Parsed:
    """A step whose answer is a deliverable, in any form; plain words are one only where none is required."""
    parsed = read_step(state, think, message)
    form = form_of(state, think.role)
    required = must_deliver(state, think)
    if form == "schema" and parsed.final is not None:
        body = _delivered(parsed.final)
        if required and body is None:
            return replace(parsed, final=None, error=Fault("no_call", "the answer lacks the parts of a deliverable"))
        parsed = replace(parsed, final=parsed.final if body is None else body)
    if parsed.final is not None and required and not parts_of(parsed.final).output:
        return replace(parsed, final=None, error=Fault("empty_final", "the final output is empty"))
    if form == "schema":
        return parsed
    if parsed.calls or parsed.errors:
        beside = form == "native" and bool(message.calls) and DELIVERABLE in message.content
        return replace(parsed, warnings=parsed.warnings | {"final_dropped"}) if beside else parsed
    if form != "native" or parsed.error is not None:
        return parsed
    tagged = parse(message.content, dialect="tags", finish_reason=message.finish_reason)
    is_begun = tagged.error is not None and tagged.error.detail.startswith(DELIVERABLE)
    if tagged.final is not None and required and not parts_of(tagged.final).output:
        return replace(tagged, final=None, error=Fault("empty_final", "the final output is empty"))
    if tagged.final is not None or is_begun:
        return replace(tagged, calls=(), errors=())
    words = parsed.content or ""
    if TASK_DONE in words:
        words = body_of(words)
        parsed = replace(parsed, content=words or parsed.content)
    if required or not words.strip():
        return replace(parsed, error=Fault("no_call", "the answer stands in no deliverable"))
    return parsed


def shaped(state: State, think: Think, parsed: Parsed) -> Parsed:
    """The reply, unless it answers in another shape than was asked for. Reports before the end have no shape."""
    schema = state.output_schema
    if schema is None or parsed.calls or parsed.errors or parsed.error or parsed.instruction:
        return parsed
    if think.role == ACTOR and think.want != "answer" and parsed.final is None:
        return parsed
    answer = parsed.final if parsed.final is not None else parsed.content or ""
    if not answer.strip() or not (told := shape_faults(answer, schema)):
        return parsed
    return replace(parsed, final=None, content=answer, error=Fault("invalid_output", told))


def _reader(state: State, think: Think, message: ModelMessage) -> tuple[Catalogue, Callable[..., Parsed]]:
    """The tools whose calls count in a reply, and what reads a text of it: (text, dialect, native calls)."""
    offered = offered_now(state, think, fit_of(state, think))
    # a tool that the profile hides is read like any other: the gate refuses it by name
    is_hiding = bool(offered.tools) and len(tools_now(state).tools) < len(state.tools.tools)
    tools = state.tools if is_hiding or think.want == "reasoning" else offered

    def read(text: str, dialect: str, calls: Sequence[NativeCall] = ()) -> Parsed:
        return parse(
            text,
            tools,
            dialect=dialect,
            tool_calls=calls,
            finish_reason=message.finish_reason,
            repair=state.config.repair,
            on_conflict=state.config.on_conflict,
            injected=tools.injected,
        )

    return tools, read


def _delivered(final: str) -> str | None:
    """The body of a deliverable whose parts came as JSON; None for other words."""
    try:
        parts: object = orjson.loads(final)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(parts, dict) or not parts or not set(cast("dict[str, object]", parts)) <= set(PARTS):
        return None
    said = cast("dict[str, object]", parts)  # keys are those of a deliverable
    return "\n".join(f"<{name}>{_as_text(said[name])}</{name}>" for name in PARTS if name in said)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
