"""Calls between special tokens: harmony, deepseek_v3, deepseek_v31, kimi_k2, gemma; and those in `invoke` elements."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from surefoot.core.parse.calls import Draft, Found, Reading, arguments_at, arguments_of, past_closer, typed, whole_value
from surefoot.core.parse.marks import INVENTED, RESULT, FamilyName, gemma_family, invoke_family
from surefoot.core.parse.objects import read
from surefoot.core.parse.scan import EDGES, FENCES, MOST_CALLS, NotJsonError, Seeker, outside_fences, skip_blanks
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.reply import Fault, ReplyWarning

_START, _CHANNEL, _MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
_ENDS = ("<|end|>", "<|call|>", "<|return|>", _START, _CHANNEL)
_RECIPIENT = re.compile(r"\bto=(?P<name>[^\s<|]{1,200}+)")
_PEOPLE = frozenset({"assistant", "user", "all"})
_CHANNEL_NAME = re.compile(r"<\|channel\|>\s*+(?P<name>[a-z]{1,40}+)")


def read_harmony(text: str, start: int, reading: Reading) -> Found:
    """All messages from `start` on. The content is the final channel, else what commentary says to nobody."""
    seek = Seeker(text)
    drafts: list[Draft] = []
    warnings: set[ReplyWarning] = set()
    finals: list[str] = []
    asides: list[str] = []
    end = start
    at = start
    while at >= 0 and len(drafts) <= MOST_CALLS:
        body = seek.find(_MESSAGE, at)
        if body < 0:
            if _recipient(text[at : at + 1000]):
                drafts.append(Draft(fault=Fault("truncated", f"the reply ends before {_MESSAGE}")))
            break
        head = text[max(at, body - 1000) : body]
        body += len(_MESSAGE)
        stop = seek.first(_ENDS, body)
        stop = len(text) if stop < 0 else stop
        channel = _CHANNEL_NAME.search(head)
        channel_name = channel["name"] if channel else "final"
        name = _recipient(head)
        end = stop
        if channel_name == "analysis":
            pass
        elif name and (channel is None or channel_name != "final"):
            read = arguments_at(text, body, _ENDS[:4], reading, name, seek=seek)
            drafts.append(read.draft(name))
            warnings |= read.warnings
            end = read.end
            if not text.startswith("<|call|>", end):
                warnings.add("unclosed_tag")
        elif channel_name == "final":
            finals.append(text[body:stop])
        else:
            asides.append(text[body:stop])
        at = seek.first((_START, _CHANNEL), end)
    before = text[:start]
    content = before + "".join(finals or asides)
    final = "".join(finals).strip() if finals and not drafts else None
    if drafts and finals:
        warnings.add("final_dropped")
    if not drafts and not content.strip() and not finals:
        fault = Fault("truncated" if reading.cut else "empty", "there is nothing but analysis")
        return Found("harmony", (), "", frozenset(warnings), error=fault)
    if not drafts and final is not None and not final:
        fault = Fault("empty_final", "the final channel holds nothing")
        return Found("harmony", (), content, frozenset(warnings), error=fault)
    return Found("harmony", tuple(drafts), content, frozenset(warnings), final, end=-1 if not drafts else end)


def _recipient(head: str) -> str:
    """The function that a message goes to; "" if it goes to none."""
    found = _RECIPIENT.search(head)
    return "" if found is None or found["name"] in _PEOPLE else found["name"].removeprefix("functions.")


@dataclass(frozen=True, slots=True)
class _Section:
    calls: str
    calls_end: str
    call: str
    call_end: str
    separator: str


_DEEPSEEK = _Section(
    "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"
)
_KIMI = _Section(
    "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>",
    "<|tool_call_begin|>",
    "<|tool_call_end|>",
    "<|tool_call_argument_begin|>",
)
_V3_NAME = re.compile(r"[^\n`{<]{0,200}")
_V3_HEAD = re.compile(r"\s*+function\s*+\Z")

_KIMI_ID = re.compile(r"(?:functions\.)?(?P<name>[^\s:]{1,200}+):[0-9]{1,9}")
_COUNTER = re.compile(r"[0-9]{1,9}")


def read_section(text: str, start: int, reading: Reading, family: FamilyName) -> Found:
    """A name or an id, a separator, and JSON. In deepseek_v3 `function` stands before the name, and JSON in a fence."""
    form = _KIMI if family == "kimi_k2" else _DEEPSEEK
    seek, drafts, warnings = Seeker(text), list[Draft](), set[ReplyWarning]()
    end = start
    at = seek.find(form.call, start)
    while at >= 0 and len(drafts) <= MOST_CALLS:
        head = at + len(form.call)
        stop = seek.first((form.call_end, form.call, form.calls_end), head)
        separator = seek.find(form.separator, head)
        if separator < 0 or 0 <= stop < separator:
            kind = "malformed_json" if stop >= 0 else "truncated"
            drafts.append(Draft(fault=Fault(kind, f"a call has no {form.separator}")))
            end = stop if stop >= 0 else len(text)
        else:
            written, arguments = text[head:separator].strip()[:200], separator + len(form.separator)
            name, call_id = written, ""
            if form is _KIMI:  # the id is kept as it is, since it must be sent back
                call_id, bare = written, written.removeprefix("functions.")
                is_tool = reading.offered.find(bare).tool is not None  # without a counter, only its exact name counts
                name = counted["name"] if (counted := _KIMI_ID.fullmatch(written)) else bare if is_tool else ""
            elif _V3_HEAD.match(text, head, separator) and (named := _V3_NAME.match(text, arguments)):
                name, arguments = named.group().strip(), named.end()
            marks = (form.call_end, form.calls_end, form.call)
            read = arguments_at(text, arguments, marks, reading, name, seek=seek)
            draft = read.draft(name, call_id)
            if form is _KIMI and not name and draft.fault is None:
                # of a call whose id is a bare counter, the only tool whose schema fits is meant
                tools = reading.offered.tools if _COUNTER.fullmatch(call_id) is not None else ()
                fitting = [one.name for one in tools if not reading.offered.check(one, draft.arguments).errors]
                told = Fault("missing_name", f"the id {call_id[:60]!r} names no tool")
                draft = replace(draft, name=fitting[0]) if len(fitting) == 1 else Draft(id=call_id, fault=told)
            drafts.append(draft)
            warnings |= read.warnings
            end = past_closer(text, read.end, (form.call_end, form.call, form.calls_end), seek, warnings)
        at = seek.find(form.call, end)
    if drafts:
        return Found(family, tuple(drafts), text[:start], frozenset(warnings), end=end)
    inside = text[start + len(form.calls) : start + len(form.calls) + 10_000]
    body, closed, _ = inside.partition(form.calls_end)
    if not closed:
        fault = Fault("truncated", "the reply ends before its call does")
    elif not body.strip():
        fault = Fault("empty", f"{form.calls} holds nothing")
    else:
        fault = Fault("malformed_json", f"a call does not begin with {form.call}")
    return Found(family, (Draft(fault=fault),), text[:start], frame=False)


_GEMMA_ENDS = {"<|tool_call>": "<tool_call|>", "<start_function_call>": "<end_function_call>"}
_GEMMA_HEAD = re.compile(r"\s*+call:\s*+(?P<name>[\w.-]{1,200}+)\s*+")
_GEMMA_NEXT = re.compile(rf"(?P<call><\|tool_call>|<start_function_call>)|{INVENTED}|{FENCES}", re.MULTILINE)
_GEMMA_SIGN = re.compile(
    r"""(?P<quote><\|"\|>|<escape>)|"(?:[^"\\]|\\.)*+(?:"|\\?+\Z)|(?<!\w)'(?:[^'\\]|\\.)*+(?:'|\\?+\Z)"""
    r"|(?<=[{,])\s*+(?P<key>[^\s<>\"'{}\[\],:][^\n<>\"'{}\[\],:]{0,199}+)(?=:)|(?P<open>[{\[])|(?P<close>[}\]])"
    r"|(?P<end><tool_call\|>|<end_function_call>|<\|tool_call>|<start_function_call>)",
    re.DOTALL,
)


def read_gemma(text: str, start: int, reading: Reading) -> Found:
    """Calls as `call:NAME{key:value}`: keys are bare, and texts stand between two equal tokens, without escapes.

    The texts of a call that does not decode cannot be told, so it ends where the first token behind its name ends or
    opens a call. Source: the chat templates of Gemma 4 and FunctionGemma.
    """
    seek, drafts, warnings = Seeker(text), list[Draft](), set[ReplyWarning]()
    at = end = start
    while at >= 0 and len(drafts) <= MOST_CALLS:
        opener = next(one for one in _GEMMA_ENDS if text.startswith(one, at))
        marks = (_GEMMA_ENDS[opener], *_GEMMA_ENDS)
        head = _GEMMA_HEAD.match(text, at + len(opener))
        name, begin = (head["name"], head.end()) if head is not None else ("", at + len(opener))
        written, end = _gemma_json(text, begin, seek)
        has_end = text.startswith(marks[0], skip_blanks(text, end))
        try:
            value = read(written or ("{}" if has_end else ""), 0, reading.rules(at_end=has_end))
        except NotJsonError as error:
            stop = seek.first(marks, begin)
            kind = "truncated" if stop < 0 and error.at_end else "malformed_json"
            drafts.append(Draft(name, fault=Fault(kind, error.message, name)))
            end = len(text) if stop < 0 else stop + len(marks[0]) * text.startswith(marks[0], stop)
        else:
            made = arguments_of(value.value, name)
            drafts.append(made.draft(name))
            warnings |= made.warnings | value.warnings
            end = past_closer(text, end, marks, seek, warnings)
        at = end
        while (step := outside_fences(_GEMMA_NEXT, text, at)) is not None and step["call"]:
            if step.start() == skip_blanks(text, end) or gemma_family(text, step.start(), seek):
                break  # behind words only what looks like a call is one
            at = step.end()
        at = step.start() if step is not None and step["call"] else -1
    return Found("gemma", tuple(drafts), text[:start], frozenset(warnings), end=end)


def _gemma_json(text: str, start: int, seek: Seeker) -> tuple[str, int]:
    """The object that opens at `start` as JSON, and where it ends: with its bracket, the call or the text."""
    if not text.startswith("{", start):
        return "", start
    parts, at, depth = list[str](), start, 0
    while (sign := _GEMMA_SIGN.search(text, at)) is not None and not sign["end"]:
        parts.append(text[at : sign.start()])
        at, written = sign.end(), sign.group()
        if quote := sign["quote"]:
            if (closing := seek.find(quote, at)) < 0:
                return "".join((*parts, '"')), len(text)
            at, written = closing + len(quote), json.dumps(text[at:closing])
        elif key := sign["key"]:
            written = json.dumps(key.rstrip())
        parts.append(written)
        depth += bool(sign["open"]) - bool(sign["close"])
        if not depth:
            return "".join(parts), at
    end = sign.start() if sign is not None else len(text)
    return "".join((*parts, text[at:end])), end


class _Elements(NamedTuple):
    """How a family writes the elements of a call, and what ends all of them."""

    family: FamilyName
    invoke: str
    invoke_end: str
    parameter: str
    parameter_end: str
    ends: tuple[str, ...]


DSML = _Elements(
    "deepseek_v32_dsml",
    *("<｜DSML｜invoke", "</｜DSML｜invoke>", "<｜DSML｜parameter", "</｜DSML｜parameter>"),
    ("</｜DSML｜function_calls>",),
)
INVOKE = _Elements(
    "invoke", "<invoke", "</invoke>", "<parameter", "</parameter>", ("</function_calls>", "</minimax:tool_call>")
)
_ATTRIBUTES = re.compile(r"""([a-z]{1,20})=(?:"([^"<>]{0,200})"|'([^'<>]{0,200})')""")
_HEAD = re.compile(r"[^<>]{0,600}+>")
_NEXT = re.compile(rf"(?P<invoke><invoke)|{RESULT}|<function_results|{FENCES}", re.MULTILINE)


def read_invokes(text: str, start: int, reading: Reading, form: _Elements) -> Found:
    """All `invoke` elements from `start` on."""
    return _Invokes(text, reading, form).read(start)


def _head(text: str, at: int) -> tuple[Mapping[str, str], int]:
    """The attributes of an element whose name ends at `at`, and where its content begins; (…, -1) if it has no end."""
    head = _HEAD.match(text, at)
    if head is None:
        return {}, -1
    return {key: first or second for key, first, second in _ATTRIBUTES.findall(head.group())}, head.end()


class _Invokes:
    """Reads the elements of a reply, one after the other."""

    def __init__(self, text: str, reading: Reading, form: _Elements) -> None:
        self._text, self._reading, self._form = text, reading, form
        self._seek = Seeker(text)
        self._warnings: set[ReplyWarning] = set()

    def read(self, start: int) -> Found:
        text, seek, form = self._text, self._seek, self._form
        drafts: list[Draft] = []
        end = start
        at = seek.find(form.invoke, start)
        while at >= 0 and len(drafts) <= MOST_CALLS:
            draft, end = self._invoke(at)
            drafts.append(draft)
            at = self._next(end)
        if not drafts:
            closed = seek.first(form.ends, start)
            between = text[start:closed].partition(">")[2].strip() if closed >= 0 else ""
            kind = "truncated" if closed < 0 else "malformed_json" if between else "empty"
            drafts.append(Draft(fault=Fault(kind, f"no {form.invoke} element was found")))
            return Found(form.family, tuple(drafts), text[:start], frame=False)
        closing = skip_blanks(text, end)
        if closer := next((one for one in form.ends if text.startswith(one, closing)), ""):
            end = closing + len(closer)
        elif not text.startswith(INVOKE.invoke, start):  # which needs nothing around it
            self._warnings.add("unclosed_tag")
        return Found(form.family, tuple(drafts), text[:start], frozenset(self._warnings), end=end)

    def _next(self, at: int) -> int:
        """Where the next element opens, or -1. Plain tags may stand in a fence, in a result or in words about them."""
        text, form, behind = self._text, self._form, at
        if form is DSML:
            return self._seek.find(form.invoke, at)
        while (step := outside_fences(_NEXT, text, at)) is not None and step["invoke"]:
            if not text[behind : step.start()].strip() or invoke_family(text, step.start(), self._seek):
                return step.start()
            at = step.end()
        return -1

    def _invoke(self, start: int) -> tuple[Draft, int]:
        """The call of the element that opens at `start`, and where the text goes on behind it."""
        text, seek, form, reading = self._text, self._seek, self._form, self._reading
        attributes, at = _head(text, start + len(form.invoke))
        if at < 0:
            cut = seek.find(">", start) < 0
            told = Fault("truncated" if cut else "malformed_json", "an invoke element has no end to its head")
            return Draft(fault=told), len(text) if cut else start + len(form.invoke)
        name = attributes.get("name", "")
        fault = None if name.strip() else Fault("missing_name", "an invoke element has no name")
        arguments: dict[str, object] = {}
        while text.startswith(form.parameter, skip_blanks(text, at)):
            key, value, wrong, at = self._parameter(skip_blanks(text, at), name)
            if at < 0:
                return Draft(name, fault=Fault("truncated", "the reply ends inside a parameter", name)), len(text)
            if not wrong and (not key or arguments.get(key, value) != value):
                told = f"{key[:60]} is given twice" if key else "a parameter has no name"
                fault = fault or Fault("malformed_arguments", told, name)
            fault = fault or (Fault("malformed_json", wrong, name) if wrong else None)
            if not wrong:
                arguments[key] = value
        end = skip_blanks(text, at)
        if text.startswith(form.invoke_end, end):
            return Draft(name, _unwrapped(arguments, name, reading), fault), end + len(form.invoke_end)
        if (close := seek.before(form.invoke_end, (form.invoke,), at)) >= 0:
            told = Fault("malformed_json", f"expected parameter elements, got {text[end:close][:60]!r}", name)
            return Draft(name, fault=fault or told), close + len(form.invoke_end)
        self._warnings.add("unclosed_tag")
        is_open = seek.find(form.invoke, at) < 0 and not text.startswith(form.ends, end)
        if is_open and (reading.cut or end < len(text)):
            fault = Fault("truncated", "the reply ends before the call does", name)
        return Draft(name, _unwrapped(arguments, name, reading), fault), at

    def _parameter(self, opened: int, name: str) -> tuple[str, object, str, int]:
        """A parameter: its name, its value, what is wrong with that, and where the text goes on (-1: it has no end).

        The value of one that tells no type has that of the tool's schema. A closer of plain tags may be missing.
        """
        text, seek, form, reading = self._text, self._seek, self._form, self._reading
        attributes, start = _head(text, opened + len(form.parameter))
        if start < 0:
            return "", None, "", -1
        others = () if form is DSML else (form.parameter, form.invoke)
        end = seek.before(form.parameter_end, others, start)
        if end < 0 and others and seek.before(form.invoke, (form.parameter,), start) >= 0:  # it may quote a call
            end = seek.paired(opened, form.parameter, form.parameter_end)
        goes_on = end + len(form.parameter_end) if end >= 0 else -1
        if end < 0 and others:
            end = goes_on = seek.first((*others, form.invoke_end), start)
        if end < 0:
            return "", None, "", -1
        key, is_text, written = attributes.get("name", ""), attributes.get("string", ""), text[start:end]
        if is_text == "true":
            return key, written, "", goes_on
        if is_text != "false":
            written = EDGES.sub("", written) if others else written
            value, told = typed(written, key, reading.offered.find(name).tool, reading.rules())
            self._warnings |= told
            return key, value, "", goes_on
        given = written.strip()
        try:
            found = read(given, 0, reading.rules(at_end=True))
        except NotJsonError as error:
            return key, None, f"{key}: {error.message} at character {error.position + 1}", goes_on
        self._warnings |= found.warnings
        wrong = f"{key}: more than one value" if skip_blanks(given, found.end) < len(given) else ""
        return key, found.value, wrong, goes_on


def _unwrapped(arguments: Mapping[str, object], name: str, reading: Reading) -> Mapping[str, object]:
    """A lone `arguments` or `input` given as text is decoded, if the schema lacks it; settling takes it out."""
    if len(arguments) != 1 or reading.offered.find(name).tool is None:
        return arguments
    (key, value), *_ = arguments.items()
    if key not in ("arguments", "input") or not isinstance(value, str) or not value.lstrip().startswith("{"):
        return arguments
    decoded = whole_value(value)
    return arguments if decoded is None else {key: decoded.value}
