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
from surefoot.core.parse.held_text import texts_of
from surefoot.core.parse.labels import DEFAULT_LABELS, label_pattern
from surefoot.core.parse.step_object import is_no_action
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
AMONG_WORDS = "it stands among other words"
_WITHOUT_MARK = _MARKERLESS | {"schema"}
_ENDS_OF_CALLS = ("}", "]", "`", ";", ")", ">")


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
        is_call = has_calls and not is_caller and not _is_quoted(parsed, message) and not _is_bare(parsed, message)
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
    if call.standing == "inside" or (call.standing == "last" and _may_be_talk(state, call)):
        return False
    if think.want == "reasoning":  # refused there by name, however it is written
        return True
    if think.want != "any":  # no tool is declared then, and words before a call are worth more than its refusal
        return call.standing == "alone"
    return not state.speakers[think.role].calls_natively or _was_asked(state, think.role) == "just now"


def _may_be_talk(state: State, call: TextCall) -> bool:
    """Whether a call that does more than read may be an example, a report or a refusal: words stand beside it.

    Words before a form with a mark are as usual as none, so there only what follows counts.
    """
    parsed = call.parsed or Parsed()
    specs = [state.tools.get(one.name) for one in parsed.calls]
    if not any(spec is not None and spec.effect != "read" for spec in specs):
        return False
    return parsed.format in _WITHOUT_MARK or call.is_followed


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
    """Where a call stood before: its text but for blanks, case and signs; or one of its calls with all its texts.

    Signs do not count, since a result may be JSON that holds the text with escapes, and quotation marks vary. But the
    tool's name has to stand there as in a call, so that plain words which say the same are no call.
    """
    if state.task is None:
        return ""
    inner = call.text[call.text.find("{") : call.text.rfind("}") + 1]
    whole = _bare(inner if call.tool in inner else _FENCE_LINE.sub("", call.text))
    calls = call.parsed.calls if call.parsed is not None else ()
    each = [[_bare(text) for text in texts_of(dict(one.arguments))] for one in calls]
    names = "|".join(re.escape(name) for name in dict.fromkeys((call.tool, *(one.name for one in calls))))
    as_call = re.compile(rf"""["'“”‘’;:：=>]\s*+(?:{names})(?!\w)|(?<!\w)(?:{names})\s*+[("'”’&]""", re.IGNORECASE)
    results = (one.result.content for turn in state.turns for one in turn.calls if one.result is not None)
    told = (guidance(state), *(one.message for one in (state.hydrated, *state.conventions) if one is not None))

    def holds(source: str) -> bool:
        bare = _bare(source) if as_call.search(source) is not None else ""
        return bool(bare) and (whole in bare or any(parts and all(one in bare for one in parts) for parts in each))

    if any(holds(source) for source in (*results, *told, *(one.text for one in state.task.attachments))):
        return "result"
    return "task" if holds(state.task.text) else ""


_FENCE_LINE = re.compile(r"^[ \t]*+(?:`{3,}|~{3,})[^\n]*+$", re.MULTILINE)
_ESCAPE = re.compile(r"\\[nrt]|&#?\w{1,8};")
_SIGNS = re.compile(r"[\W_]++")


def _bare(text: str) -> str:
    """The letters and digits of a text alone."""
    return _SIGNS.sub("", _ESCAPE.sub(" ", text)).casefold()


def _asked_about(call: TextCall, source: Source) -> Fault:
    """What the model is told of a call in its words that was not made."""
    if call.standing == "inside":
        why = AMONG_WORDS
    elif call.parsed is None:
        why = "it could not be read"
    elif source:
        why = "the same text stands in what you were given"
    elif call.standing == "last":
        why = "other words stand before it; if you mean the call, write nothing else"
    else:
        why = "it is written as text, where you have used the tool interface before"
    return Fault("text_call", why, call.tool)


def _answer(message: ModelMessage, parsed: Parsed, read: Callable[..., Parsed]) -> Parsed:
    """The words of a native reply as its answer, without the labels of a step and the thought before its answer."""
    if parsed.calls or parsed.errors:
        parsed = Parsed(content=visible(message.content).text, format="native")
    content = parsed.content or ""
    lines = content.split("\n")
    while lines and (_BARE_TAGS.fullmatch(lines[-1]) or not lines[-1].strip()):
        lines.pop()
    if any(map(str.strip, content.split("\n")[len(lines) :])):  # tags, not only blank lines
        content = "\n".join(lines)
        empty = None if content else Fault("empty", "nothing stands in the tag of a call")
        parsed = Parsed(content=content or None, error=empty, warnings=parsed.warnings, format="native")
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


_BARE_TAGS = re.compile(r"(?:\s*+</?(?:tool|function)_call>)++\s*+", re.IGNORECASE)


def _is_bare(parsed: Parsed, message: ModelMessage) -> bool:
    """Whether nothing readable follows the marker of a call, as where a refusal ends in `<tool_call>`."""
    behind = visible(message.content).text[len(parsed.content or "") :]
    is_named = any(one.name and not is_no_action(one.name) for one in (*parsed.calls, *parsed.errors))
    return bool(parsed.content) and not is_named and "{" not in behind and "(" not in behind


def _is_quoted(parsed: Parsed, message: ModelMessage) -> bool:
    """Whether what looks like a call of no offered tool is something that the model only writes about.

    A form without a marker counts only if it is all that the reply says, and none counts inside a code span.
    """
    before = (parsed.content or "").rstrip()
    if parsed.format in _MARKERLESS:
        return bool(before) or message.content.strip()[-1:] not in _ENDS_OF_CALLS
    return before.endswith("`")
