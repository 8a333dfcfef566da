"""Calls between special tokens: harmony, deepseek_v3, deepseek_v31, kimi_k2 and deepseek_v32_dsml."""

from __future__ import annotations

import re
from collections.abc import Mapping

from surefoot.core.parse.calls import Draft, Found, Reading, arguments_at, past_closer, typed, whole_value
from surefoot.core.parse.marks import FamilyName
from surefoot.core.parse.objects import read
from surefoot.core.parse.scan import MOST_CALLS, NotJsonError, Seeker, skip_blanks
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


_DSML_END = "</｜DSML｜function_calls>"
_INVOKE, _INVOKE_END = "<｜DSML｜invoke", "</｜DSML｜invoke>"
_DSML_PARAMETER, _DSML_PARAMETER_END = "<｜DSML｜parameter", "</｜DSML｜parameter>"
_ATTRIBUTES = re.compile(r'(?P<key>[a-z]{1,20})="(?P<value>[^"<>]{0,200})"')
_HEAD = re.compile(r"[^<>]{0,600}+>")


def read_dsml(text: str, start: int, reading: Reading) -> Found:
    """All `invoke` elements from `start` on."""
    seek = Seeker(text)
    warnings: set[ReplyWarning] = set()
    drafts: list[Draft] = []
    end = start
    at = seek.find(_INVOKE, start)
    while at >= 0 and len(drafts) <= MOST_CALLS:
        draft, end = _invoke(text, at, seek, reading, warnings)
        drafts.append(draft)
        at = seek.find(_INVOKE, end)
    if not drafts:
        closed = seek.find(_DSML_END, start)
        between = text[start:closed].partition(">")[2].strip() if closed >= 0 else ""
        kind = "truncated" if closed < 0 else "malformed_json" if between else "empty"
        drafts.append(Draft(fault=Fault(kind, f"no {_INVOKE} element was found")))
        return Found("deepseek_v32_dsml", tuple(drafts), text[:start], frame=False)
    closing = skip_blanks(text, end)
    if text.startswith(_DSML_END, closing):
        end = closing + len(_DSML_END)
    else:
        warnings.add("unclosed_tag")
    return Found("deepseek_v32_dsml", tuple(drafts), text[:start], frozenset(warnings), end=end)


def _head(text: str, at: int) -> tuple[Mapping[str, str], int]:
    """The attributes of an element whose name ends at `at`, and where its content begins; (…, -1) if it has no end."""
    head = _HEAD.match(text, at)
    if head is None:
        return {}, -1
    return {found["key"]: found["value"] for found in _ATTRIBUTES.finditer(head.group())}, head.end()


def _invoke(text: str, start: int, seek: Seeker, reading: Reading, warnings: set[ReplyWarning]) -> tuple[Draft, int]:
    attributes, at = _head(text, start + len(_INVOKE))
    if at < 0:
        cut = seek.find(">", start) < 0
        told = Fault("truncated" if cut else "malformed_json", "an invoke element has no end to its head")
        return Draft(fault=told), len(text) if cut else start + len(_INVOKE)
    name = attributes.get("name", "")
    fault = None if name.strip() else Fault("missing_name", "an invoke element has no name")
    arguments: dict[str, object] = {}
    while text.startswith(_DSML_PARAMETER, inside := skip_blanks(text, at)):
        attributes, at = _head(text, inside + len(_DSML_PARAMETER))
        close = seek.find(_DSML_PARAMETER_END, at) if at >= 0 else -1
        if close < 0:
            return Draft(name, fault=Fault("truncated", "the reply ends inside a parameter", name)), len(text)
        key = attributes.get("name", "")
        given, is_text = text[at:close].strip(), attributes.get("string", "")
        if is_text == "true":
            arguments[key] = text[at:close]
        elif is_text != "false":
            arguments[key], told = typed(text[at:close], key, reading.offered.find(name).tool, reading.rules())
            warnings |= told
        else:
            try:
                value = read(given, 0, reading.rules(at_end=True))
                wrong = f"{key}: more than one value" if skip_blanks(given, value.end) < len(given) else ""
            except NotJsonError as error:
                wrong = f"{key}: {error.message} at character {error.position + 1}"
            else:
                if not wrong:
                    arguments[key] = value.value
                    warnings |= value.warnings
            fault = fault or (Fault("malformed_json", wrong, name) if wrong else None)
        at = close + len(_DSML_PARAMETER_END)
    end = skip_blanks(text, at)
    if text.startswith(_INVOKE_END, end):
        return Draft(name, _unwrapped(arguments, name, reading), fault), end + len(_INVOKE_END)
    if (close := seek.before(_INVOKE_END, (_INVOKE,), at)) >= 0:
        told = Fault("malformed_json", f"expected parameter elements, got {text[end:close][:60]!r}", name)
        return Draft(name, fault=fault or told), close + len(_INVOKE_END)
    warnings.add("unclosed_tag")
    is_open = seek.find(_INVOKE, at) < 0 and not text.startswith(_DSML_END, end)
    if is_open and (reading.cut or end < len(text)):
        fault = Fault("truncated", "the reply ends before the call does", name)
    return Draft(name, _unwrapped(arguments, name, reading), fault), at


def _unwrapped(arguments: Mapping[str, object], name: str, reading: Reading) -> Mapping[str, object]:
    """A lone `arguments` or `input` given as text is decoded, if the schema lacks it; settling takes it out."""
    if len(arguments) != 1 or reading.offered.find(name).tool is None:
        return arguments
    (key, value), *_ = arguments.items()
    if key not in ("arguments", "input") or not isinstance(value, str) or not value.lstrip().startswith("{"):
        return arguments
    decoded = whole_value(value)
    return arguments if decoded is None else {key: decoded.value}
