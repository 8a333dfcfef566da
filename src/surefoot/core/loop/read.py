"""Reading a reply for a reasoner: which dialect, and what in it counts.

Source: spec/react.md, sections 5, 7 and 13.5; spec/reasoners.md, sections 3 and 5.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Literal

import orjson

from surefoot.core.loop.slices import fit_of
from surefoot.core.parse.marks import DEFAULT_LABELS, DELIVERABLE, PARTS, TASK_DONE, body_of, label_pattern, parts_of
from surefoot.core.parse.reply import parse, read_instruction
from surefoot.core.parse.scan import texts_of
from surefoot.core.parse.steps import is_no_action
from surefoot.core.parse.stream import visible
from surefoot.core.parse.text_calls import AMONG_WORDS, TextCall, text_call
from surefoot.core.state.roles import ACTOR, THINKER
from surefoot.core.state.state import State
from surefoot.core.text.json import as_object
from surefoot.core.view.observations import Form, form_in
from surefoot.core.view.request import held_to, must_deliver, offered_now
from surefoot.core.view.shape import finished, shape_faults, without_answer
from surefoot.core.view.step import branch_of_words, guidance, tools_now
from surefoot.types.messages import ModelMessage
from surefoot.types.moves import Think
from surefoot.types.reply import Fault, Parsed, ReplyWarning
from surefoot.types.tools import Catalogue

Source = Literal["", "result", "task"]
"""Where the text of a call stood before the model wrote it; "" where it is the model's own."""

_MARKERLESS = frozenset({"llama3_json", "pythonic", "fenced_json"})
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
    parsed = read(message.content, dialect="native")
    if parsed.error is not None and not parsed.errors:
        return parsed
    has_calls = bool(parsed.calls or parsed.errors)
    words = parsed.content or "" if parsed.format == "harmony" and not has_calls else message.content
    schema = state.output_schema if state.config.output_schema is not None else None
    is_shaped = schema is not None and not shape_faults(words, schema)
    call = None
    if not is_shaped and DELIVERABLE not in words:
        call = text_call(words, tools if tools.tools else tools_now(state), read)
    if call is None:
        is_caller = state.speakers[think.role].calls_natively and think.want != "reasoning"
        if not has_calls or is_caller:
            return _answer(message, parsed, read)
        # a model may only write about what looks like a call of no offered tool: a form without a marker counts only if
        # it is all that the reply says, and none counts inside a code span
        before = (parsed.content or "").rstrip()
        is_quoted = before.endswith("`")
        if parsed.format in _MARKERLESS:
            is_quoted = bool(before) or message.content.strip()[-1:] not in _ENDS_OF_CALLS
        # nor is it one where nothing readable follows the marker, as where a refusal ends in `<tool_call>`
        behind = visible(message.content).text[len(parsed.content or "") :]
        is_named = any(one.name and not is_no_action(one.name) for one in (*parsed.calls, *parsed.errors))
        is_bare = bool(parsed.content) and not is_named and "{" not in behind and "(" not in behind
        return _answer(message, parsed, read) if is_quoted or is_bare else parsed
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
    return Parsed(content=visible(message.content).text, error=Fault("text_call", why, call.tool), format=dialect)


def _counts(state: State, think: Think, call: TextCall) -> bool:
    """Whether a call in the model's own words is made: it stands for itself, and the model has no other way to call."""
    if call.standing == "inside":
        return False
    if call.standing == "last":
        # words stand beside it: one that does more than read may be an example, a report or a refusal. Words before
        # a form with a mark are as usual as none, so there only what follows counts
        parsed = call.parsed or Parsed()
        specs = [state.tools.get(one.name) for one in parsed.calls]
        does_more = any(spec is not None and spec.effect != "read" for spec in specs)
        if does_more and (parsed.format in _WITHOUT_MARK or call.is_followed):
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
    if call.standing != "alone" and source == "result":
        return True
    made = (one for turn in state.own_turns for one in turn.calls if one.name == call.tool)
    if call.standing == "inside" and any(one.result is not None for one in made):
        return True
    return bool(_was_asked(state, role) or speaker.narrated or speaker.faults_running)


def _was_asked(state: State, role: str) -> Literal["", "before", "just now"]:
    own = [turn.parsed.error for turn in state.own_turns if turn.role == role]
    asked = [error is not None and error.kind == "text_call" for error in own]
    return "just now" if asked[-1:] == [True] else "before" if any(asked) else ""


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
    tasks = [one.task for one in state.exchanges]
    attached = (one.text for task in tasks for one in task.attachments)
    told = (guidance(state), *(one.message for one in (state.hydrated, *state.conventions) if one is not None))

    def holds(source: str) -> bool:
        bare = _bare(source) if as_call.search(source) is not None else ""
        return bool(bare) and (whole in bare or any(parts and all(one in bare for one in parts) for parts in each))

    if any(holds(source) for source in (*results, *told, *attached)):
        return "result"
    return "task" if any(holds(task.text) for task in tasks) else ""


_FENCE_LINE = re.compile(r"^[ \t]*+(?:`{3,}|~{3,})[^\n]*+$", re.MULTILINE)
_ESCAPE = re.compile(r"\\[nrt]|&#?\w{1,8};")
_SIGNS = re.compile(r"[\W_]++")


def _bare(text: str) -> str:
    return _SIGNS.sub("", _ESCAPE.sub(" ", text)).casefold()


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
    step = read(content, dialect="react")
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


_DIALECTS: dict[Form, str] = {"native": "native", "schema": "schema", "text": "react", "tags": "tags"}
_NOTHING = frozenset({"none", "null", "nil", "n/a", "undefined", "无"})
"""What a model that is held to a form puts where it has nothing to say, even when it knows the answer."""


def read_step(state: State, think: Think, message: ModelMessage) -> Parsed:
    """The reply as calls, an answer or a fault. Where no call is allowed, one is told and is none that could run."""
    if think.want == "isolated":
        return read_isolated(message)
    form = form_in(state, state.speakers[think.role].mode)
    tools = offered_now(state, think, fit_of(state, think.role, think.want))
    # a tool that the profile hides is read like any other: the gate refuses it by name
    if think.want == "reasoning" or (tools.tools and len(tools_now(state).tools) < len(state.tools.tools)):
        tools = state.tools
    others = tools
    if form == "native" and state.config.output_schema is not None:
        tools = held_to(state, think, tools)[1]
    read = partial(parse, tools=tools, finish_reason=message.finish_reason, repair=state.config.repair)
    if form == "native" and not message.calls:
        parsed = read_words(state, think, message, tools, read)
    else:
        parsed = read(message.content, dialect=_DIALECTS[form], tool_calls=message.calls)
    if tools is not others:
        parsed = finished(parsed, message)
    if form != "native" and think.want == "any" and parsed.error is not None and parsed.error.kind == "no_step":
        call = text_call(message.content, tools, read)
        parsed = called_or_asked(state, think, message, call, _DIALECTS[form]) or parsed
    if form == "schema" and parsed.final is not None:
        is_word = any(map(str.isalnum, parsed.final)) and parsed.final.strip().casefold() not in _NOTHING
        if not is_word:
            return replace(parsed, final=None, error=Fault("empty_final", "the answer is not given in words"))
    if think.want == "reasoning":  # its calls are told as they are, and words need no form
        has_no_step = parsed.error is not None and parsed.error.kind in ("no_step", "no_call")
        is_broken = form == "schema" and message.content.lstrip().startswith("{")
        if parsed.calls or parsed.errors or not has_no_step or is_broken:
            return parsed
        return replace(parsed, error=None, content=parsed.content or message.content)
    if think.want != "any" and (parsed.calls or parsed.errors):
        told = "no tool can be called any more; nothing was run"
        return replace(parsed, calls=(), errors=(), error=Fault("calls_not_allowed", told))
    return parsed


def read_isolated(message: ModelMessage) -> Parsed:
    """The words of a reply to an isolated call, in whatever form; calls in it are left out and told in a warning."""
    parsed = parse(message.content, tool_calls=message.calls, finish_reason=message.finish_reason)
    words = parsed.final if parsed.final is not None else parsed.content
    has_calls = bool(parsed.calls or parsed.errors)
    error = None if words and words.strip() else Fault("empty", "the reply holds no words")
    warnings: frozenset[ReplyWarning] = frozenset({"action_dropped"} if has_calls else ())
    return Parsed(content=words, error=error, warnings=warnings, format=parsed.format)


def read_delivering(state: State, think: Think, message: ModelMessage) -> Parsed:
    """A step whose answer is a deliverable, in any form; plain words are one only where none is required."""
    parsed = read_step(state, think, message)
    form = form_in(state, state.speakers[think.role].mode)
    required = must_deliver(state, think)
    if form == "schema" and parsed.final is not None:
        body, parts = None, None
        with suppress(orjson.JSONDecodeError):  # the parts of a deliverable may come as JSON
            parts = as_object(orjson.loads(parsed.final))
        if parts and set(parts) <= set(PARTS):
            texts = {name: one if isinstance(one, str) else orjson.dumps(one).decode() for name, one in parts.items()}
            body = "\n".join(f"<{name}>{texts[name]}</{name}>" for name in PARTS if name in texts)
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
    """The reply, unless it answers in another shape than was asked for."""
    answer = answer_in(state, think, parsed)
    told = shape_faults(answer, state.output_schema or {}) if answer else ""
    return without_answer(parsed, Fault("invalid_output", told)) if told else parsed


def answer_in(state: State, think: Think, parsed: Parsed) -> str:
    """The answer of a reply, where a shape was asked for; "" for no answer. Reports before the end have no shape."""
    if state.config.output_schema is None or state.output_schema is None:
        return ""
    if branch_of_words(state) == "reasoning" and think.want in ("reasoning", "isolated"):
        return ""
    if parsed.calls or parsed.errors or parsed.error or parsed.instruction:
        return ""
    if think.role == ACTOR and think.want != "answer" and parsed.final is None:
        return ""
    answer = parsed.final if parsed.final is not None else parsed.content or ""
    return answer if answer.strip() else ""


def read_reply(state: State, think: Think, message: ModelMessage) -> Parsed:
    """What the run's reasoner reads a reply as: calls, an answer, a deliverable, an instruction, or a fault."""
    match state.reasoner:
        case "dual":
            parsed = _read_of_two(state, think, message)
        case "mono":
            parsed = shaped(state, think, read_delivering(state, think, message))
        case "once":
            parsed = read_step(state, think, message)
        case _:
            parsed = read_step(state, think, message)
            parsed = parsed if state.config.output_schema is None else shaped(state, think, parsed)
    if message.mended:
        parsed = replace(parsed, warnings=parsed.warnings | {"invalid_text_replaced"})
    return parsed


def _read_of_two(state: State, think: Think, message: ModelMessage) -> Parsed:
    """A Thinker's reply as an instruction; an Actor's as calls, a report or a deliverable."""
    if think.role == THINKER:
        return read_instruction(message.content, calls=message.calls, finish_reason=message.finish_reason)
    parsed = read_delivering(state, think, message)
    if think.want != "answer" and not parsed.calls and not parsed.errors:
        # what the Actor said without a call and before the deliverable is asked for stands as its report
        error = parsed.error
        is_plain = (
            error is not None and error.kind == "no_call" and "hallucinated_result_removed" not in parsed.warnings
        )
        if parsed.format == "schema" and parsed.final is not None:
            parsed = replace(parsed, content=parsed.final, final=None)
        elif is_plain and DELIVERABLE not in (parsed.content or ""):
            parsed = replace(parsed, error=None)
    return shaped(state, think, parsed)
