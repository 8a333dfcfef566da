"""The families whose calls stand between special tokens: deepseek_v3, deepseek_v31 and kimi_k2."""

from __future__ import annotations

import re

from surefoot.core.parse.arguments import arguments_at
from surefoot.core.parse.drafts import Draft, Found, Reading
from surefoot.core.parse.marks import FamilyName
from surefoot.core.parse.scan import MOST_CALLS, Seeker, skip_blanks
from surefoot.types.reply import Fault, ReplyWarning

_CALLS, _CALLS_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
_CALL, _CALL_END, _SEPARATOR = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"
_V3_NAME = re.compile(r"[^\n`{<]{0,200}")
_V3_HEAD = re.compile(r"\s*+function\s*+\Z")

_KIMI_CALLS, _KIMI_CALLS_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
_KIMI_CALL, _KIMI_CALL_END = "<|tool_call_begin|>", "<|tool_call_end|>"
_KIMI_ARGUMENTS = "<|tool_call_argument_begin|>"
_KIMI_ID = re.compile(r"(?:functions\.)?(?P<name>[^\s:]{1,200}+):[0-9]{1,9}")
_COUNTER = re.compile(r"[0-9]{1,9}")


def read_deepseek(text: str, start: int, reading: Reading, family: FamilyName) -> Found:
    """`NAME` and JSON behind a separator; in v3 `function` stands before it, and the JSON in a fence."""
    seek = Seeker(text)
    drafts: list[Draft] = []
    warnings: set[ReplyWarning] = set()
    end = start
    at = seek.find(_CALL, start)
    while at >= 0 and len(drafts) <= MOST_CALLS:
        body = at + len(_CALL)
        stop = seek.first((_CALL_END, _CALL, _CALLS_END), body)
        separator = seek.find(_SEPARATOR, body)
        if separator < 0 or 0 <= stop < separator:
            kind = "malformed_json" if stop >= 0 else "truncated"
            drafts.append(Draft(fault=Fault(kind, f"a call has no {_SEPARATOR}")))
            end = stop if stop >= 0 else len(text)
        else:
            name = text[body:separator].strip()[:200]
            arguments = separator + len(_SEPARATOR)
            if _V3_HEAD.match(text, body, separator) and (named := _V3_NAME.match(text, arguments)):
                name, arguments = named.group().strip(), named.end()
            read = arguments_at(text, arguments, (_CALL_END, _CALLS_END, _CALL), reading, name, seek=seek)
            drafts.append(read.draft(name))
            warnings |= read.warnings
            end = _past(text, read.end, (_CALL_END, _CALL, _CALLS_END), seek, warnings)
        at = seek.find(_CALL, end)
    if not drafts:
        drafts.append(Draft(fault=_no_call(text, start, _CALLS, _CALLS_END, _CALL)))
        return Found(family, tuple(drafts), text[:start], frozenset(warnings), frame=False)
    return Found(family, tuple(drafts), text[:start], frozenset(warnings), end=end)


def read_kimi(text: str, start: int, reading: Reading) -> Found:
    """`functions.NAME:N` and JSON; the id is kept as it is, since it must be sent back."""
    seek = Seeker(text)
    drafts: list[Draft] = []
    warnings: set[ReplyWarning] = set()
    end = start
    at = seek.find(_KIMI_CALL, start)
    while at >= 0 and len(drafts) <= MOST_CALLS:
        head = at + len(_KIMI_CALL)
        stop = seek.first((_KIMI_CALL_END, _KIMI_CALL, _KIMI_CALLS_END), head)
        begin = seek.find(_KIMI_ARGUMENTS, head)
        if begin < 0 or 0 <= stop < begin:
            kind = "malformed_json" if stop >= 0 else "truncated"
            drafts.append(Draft(fault=Fault(kind, f"a call has no {_KIMI_ARGUMENTS}")))
            end = stop if stop >= 0 else len(text)
        else:
            call_id = text[head:begin].strip()[:200]
            marks = (_KIMI_CALL_END, _KIMI_CALLS_END, _KIMI_CALL)
            name = _kimi_name(call_id, reading)
            read = arguments_at(text, begin + len(_KIMI_ARGUMENTS), marks, reading, name, seek=seek)
            draft = read.draft(name, call_id)
            drafts.append(_named(draft, call_id, reading) if draft.fault is None else draft)
            warnings |= read.warnings
            end = _past(text, read.end, (_KIMI_CALL_END, _KIMI_CALL, _KIMI_CALLS_END), seek, warnings)
        at = seek.find(_KIMI_CALL, end)
    if not drafts:
        drafts.append(Draft(fault=_no_call(text, start, _KIMI_CALLS, _KIMI_CALLS_END, _KIMI_CALL)))
        return Found("kimi_k2", tuple(drafts), text[:start], frozenset(warnings), frame=False)
    return Found("kimi_k2", tuple(drafts), text[:start], frozenset(warnings), end=end)


def _kimi_name(call_id: str, reading: Reading) -> str:
    """The name in an id; an id without a counter only if it is the exact name of an offered tool."""
    found = _KIMI_ID.fullmatch(call_id)
    if found is not None:
        return found["name"]
    bare = call_id.removeprefix("functions.")
    return bare if reading.offered.find(bare).tool is not None else ""


def _named(draft: Draft, call_id: str, reading: Reading) -> Draft:
    """The call with its name; of a bare counter, the name of the only tool whose schema fits."""
    if draft.name:
        return draft
    if _COUNTER.fullmatch(call_id):
        fitting = [t.name for t in reading.offered.tools if not reading.offered.check(t, draft.arguments).errors]
        if len(fitting) == 1:
            return Draft(fitting[0], draft.arguments, id=call_id)
    return Draft(id=call_id, fault=Fault("missing_name", f"the id {call_id[:60]!r} names no tool"))


def _past(text: str, at: int, marks: tuple[str, ...], seek: Seeker, warnings: set[ReplyWarning]) -> int:
    """Step over the end of a call, the first of `marks`, of which the others are beginnings; note what is amiss."""
    closing, *others = marks
    at = skip_blanks(text, at)
    if text.startswith(closing, at):
        return at + len(closing)
    close, other = seek.find(closing, at), seek.first(tuple(others), at)
    if close >= 0 and not 0 <= other < close:
        warnings.add("trailing_text")
        return close + len(closing)
    warnings.add("unclosed_tag")
    return at


def _no_call(text: str, start: int, opening: str, closing: str, call: str) -> Fault:
    """The fault of a section that holds no call."""
    inside = text[start + len(opening) : start + len(opening) + 10_000]
    body, closed, _ = inside.partition(closing)
    if not closed:
        return Fault("truncated", "the reply ends before its call does")
    if not body.strip():
        return Fault("empty", f"{opening} holds nothing")
    return Fault("malformed_json", f"a call does not begin with {call}")
