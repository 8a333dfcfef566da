"""What the words of a reply mean where calls were to be made natively: a call all the same, a question, or the answer.

`core/parse/text_calls.py` says what stands in a text and where; here it is decided what that means in this run. Source:
spec/react.md, sections 5, 9 and 13.5; the table is in docs/how-it-works.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from surefoot.core.parse.deliverable import DELIVERABLE
from surefoot.core.parse.labels import DEFAULT_LABELS, label_pattern
from surefoot.core.parse.text_calls import TextCall, text_call
from surefoot.core.parse.visible import visible
from surefoot.core.running import guidance, tools_now
from surefoot.core.shape import shape_faults
from surefoot.core.state import State
from surefoot.types.messages import ModelMessage
from surefoot.types.moves import Think
from surefoot.types.reply import Fault, Parsed
from surefoot.types.tools import Catalogue

Source = Literal["", "result", "task"]
"""Where the text of a call stood before the model wrote it; "" where it is the model's own."""

_MARKERLESS = frozenset({"llama3_json", "pythonic", "fenced_json"})


def read_words(
    state: State, think: Think, message: ModelMessage, tools: Catalogue, read: Callable[..., Parsed]
) -> Parsed:
    """A native reply without a native call: a call all the same, what may be meant as one, or the answer.

    A call of an offered tool counts in any form if it is all that the reply says, or ends it in a block of its own. A
    page or file that holds such text must not act because the model quotes it: what stands in a result or in the task
    is a quotation, and one who has called natively in this run is asked before its text counts. What may be a call is
    never the answer; but words that only speak of one are, once the model was asked. Source: spec/react.md, sections 5,
    9 and 13.5; docs/how-it-works.md.
    """
    parsed = read(message.content, "native")
    if parsed.error is not None and not parsed.errors:
        return parsed
    has_calls = bool(parsed.calls or parsed.errors)
    words = parsed.content or "" if parsed.format == "harmony" and not has_calls else message.content
    schema = state.output_schema
    is_shaped = schema is not None and not shape_faults(words, schema)
    call = None
    if not is_shaped and DELIVERABLE not in words:
        call = text_call(words, tools if tools.tools else tools_now(state), read)
    if call is None:
        is_caller = state.speakers[think.role].calls_natively and think.want != "reasoning"
        is_call = has_calls and not is_caller and not _is_quoted(parsed, message)
        return parsed if is_call else _answer(message, parsed, read)
    made = called_or_asked(state, think, message, call, "native")
    if made is not None and (made.error is None or made.errors or think.want == "any"):
        return made
    return _answer(message, parsed, read)


def called_or_asked(
    state: State, think: Think, message: ModelMessage, call: TextCall | None, dialect: str
) -> Parsed | None:
    """The call that is meant, or what the model is told of it; None where there is none, or the words speak of one."""
    if call is None or (dialect != "native" and call.standing == "inside" and not call.is_announced):
        return None
    source = _quoted(state, call)
    if call.parsed is not None and not source and _counts(state, think, call):
        return replace(call.parsed, warnings=call.parsed.warnings | {"leaked"})
    if _only_speaks(state, think.role, call, source):
        return None
    return Parsed(content=visible(message.content).text, error=_asked_about(call, source), format=dialect)


def _counts(state: State, think: Think, call: TextCall) -> bool:
    """Whether a call in the model's own words is made: it stands for itself, and the model has no other way to call."""
    if call.standing == "inside":
        return False
    if think.want == "reasoning":  # refused there by name, however it is written
        return True
    if think.want != "any":  # no tool is declared then, and words before a call are worth more than its refusal
        return call.standing == "alone"
    return not state.speakers[think.role].calls_natively or _was_asked(state, think.role) == "just now"


def _only_speaks(state: State, role: str, call: TextCall, source: Source) -> bool:
    """Whether the words are the answer although a call stands in them.

    They quote what was read, or speak of a tool that was called; or they hold a call among words, and the model was
    asked already. A call that is all of the reply is none of these, even where the task holds it too.
    """
    speaker = state.speakers[role]
    if call.is_announced or (call.standing != "inside" and not source):
        return False
    if call.standing == "alone" and source == "task":
        return False
    if call.standing != "alone" and (
        source == "result" or (call.standing == "inside" and _was_called(state, call.tool))
    ):
        return True
    return bool(_was_asked(state, role) or speaker.narrated or speaker.faults_running)


def _was_asked(state: State, role: str) -> Literal["", "before", "just now"]:
    """Whether the role was asked about a call in its words."""
    own = [turn.parsed.error for turn in state.turns if turn.role == role]
    asked = [error is not None and error.kind == "text_call" for error in own]
    return "just now" if asked[-1:] == [True] else "before" if any(asked) else ""


def _was_called(state: State, tool: str) -> bool:
    return any(call.name == tool and call.result is not None for turn in state.turns for call in turn.calls)


def _quoted(state: State, call: TextCall) -> Source:
    """Where the text of a call stood before, but for blanks, case and code marks."""
    inner = call.text[call.text.find("{") : call.text.rfind("}") + 1]
    text = _bare(inner if call.tool in inner else _FENCE_LINE.sub("", call.text))
    if not text or state.task is None:
        return ""
    same = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(text)}")
    results = (one.result.content for turn in state.turns for one in turn.calls if one.result is not None)
    told = (guidance(state), *(one.message for one in (state.hydrated, *state.conventions) if one is not None))
    if any(same.search(_bare(source)) for source in (*results, *told, *(one.text for one in state.task.attachments))):
        return "result"
    return "task" if same.search(_bare(state.task.text)) else ""


_FENCE_LINE = re.compile(r"^\s*+(?:`{3,}|~{3,})[^\n]*+$", re.MULTILINE)
_UNSEEN = re.compile(r"[`\\\u200b-\u200f\u2060\ufeff]++")
_LOOSE = re.compile(r" (?=[^\w ])|(?<=[^\w ]) ")


def _bare(text: str) -> str:
    return _LOOSE.sub("", " ".join(_UNSEEN.sub("", text).split())).casefold()


def _asked_about(call: TextCall, source: Source) -> Fault:
    """What the model is told of a call in its words that was not made."""
    if call.parsed is None:
        why = "it could not be read"
    elif call.standing == "inside":
        why = "it stands among other words"
    elif source:
        why = "the same text stands in what you were given"
    else:
        why = "it is written as text, where you have used the tool interface before"
    return Fault("text_call", why, call.tool)


def _answer(message: ModelMessage, parsed: Parsed, read: Callable[..., Parsed]) -> Parsed:
    """The words of a native reply as its answer, without the labels of a step and the thought before its answer."""
    if parsed.calls or parsed.errors:
        parsed = Parsed(content=visible(message.content).text, format="native")
    content = parsed.content or ""
    if DELIVERABLE in content or _ANSWER.search(content) is None:
        return parsed
    step = read(content, "react")
    if step.format != "react" or (step.final is None and (step.error is None or step.error.kind != "empty_final")):
        return parsed
    first = _LABEL.search(content)
    is_first = first is None or not content[: first.start()].strip()
    if step.final is None:
        return replace(step, format="native") if is_first else parsed
    thought = step.content or ""
    is_report = "\n\n" in thought.strip() and not (is_first and first is not None and first["thought"])
    answer = f"{thought.rstrip()}\n\n{step.final}" if is_report else step.final  # of a report only the label goes
    return replace(parsed, content=answer, used=-1)


_ANSWER = re.compile("answer|答案", re.IGNORECASE)
_LABEL = label_pattern(DEFAULT_LABELS)


def _is_quoted(parsed: Parsed, message: ModelMessage) -> bool:
    """Whether what looks like a call of no offered tool is something that the model only writes about.

    A form without a marker counts only if it is all that the reply says, and none counts inside a code span.
    """
    before = (parsed.content or "").rstrip()
    if parsed.format in _MARKERLESS:
        return bool(before) or message.content.strip()[-1:] not in ("}", "]", "`", ";", ")", ">")
    return before.endswith("`")
