"""The family deepseek_v32_dsml: `invoke` with `parameter` elements, each marked as text or as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping

from surefoot.core.parse.drafts import Draft, Found, Reading
from surefoot.core.parse.json_ladder import read
from surefoot.core.parse.json_strict import NotJsonError
from surefoot.core.parse.scan import MOST_CALLS, Seeker, skip_blanks
from surefoot.core.parse.text_values import typed
from surefoot.types.reply import Fault, ReplyWarning

_CALLS_END = "</｜DSML｜function_calls>"
_INVOKE, _INVOKE_END = "<｜DSML｜invoke", "</｜DSML｜invoke>"
_PARAMETER, _PARAMETER_END = "<｜DSML｜parameter", "</｜DSML｜parameter>"
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
        closed = seek.find(_CALLS_END, start)
        between = text[start:closed].partition(">")[2].strip() if closed >= 0 else ""
        kind = "truncated" if closed < 0 else "malformed_json" if between else "empty"
        drafts.append(Draft(fault=Fault(kind, f"no {_INVOKE} element was found")))
        return Found("deepseek_v32_dsml", tuple(drafts), text[:start], frame=False)
    closing = skip_blanks(text, end)
    if text.startswith(_CALLS_END, closing):
        end = closing + len(_CALLS_END)
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
    while text.startswith(_PARAMETER, inside := skip_blanks(text, at)):
        attributes, at = _head(text, inside + len(_PARAMETER))
        close = seek.find(_PARAMETER_END, at) if at >= 0 else -1
        if close < 0:
            return Draft(name, fault=Fault("truncated", "the reply ends inside a parameter", name)), len(text)
        key = attributes.get("name", "")
        made = _value(text[at:close], attributes, name, reading, warnings)
        if isinstance(made, Fault):
            fault = fault or made
        else:
            arguments[key] = made[0]
        at = close + len(_PARAMETER_END)
    end = skip_blanks(text, at)
    if text.startswith(_INVOKE_END, end):
        return Draft(name, _unwrapped(arguments, name, reading), fault), end + len(_INVOKE_END)
    close, following = seek.find(_INVOKE_END, at), seek.find(_INVOKE, at)
    if close >= 0 and not 0 <= following < close:
        told = Fault("malformed_json", f"expected parameter elements, got {text[end:close][:60]!r}", name)
        return Draft(name, fault=fault or told), close + len(_INVOKE_END)
    warnings.add("unclosed_tag")
    is_open = following < 0 and not text.startswith(_CALLS_END, end)
    if is_open and (reading.cut or end < len(text)):
        fault = Fault("truncated", "the reply ends before the call does", name)
    return Draft(name, _unwrapped(arguments, name, reading), fault), at


def _value(
    text: str, attributes: Mapping[str, str], name: str, reading: Reading, warnings: set[ReplyWarning]
) -> tuple[object] | Fault:
    """The value of a parameter, in a tuple of its own, or what is wrong with it."""
    key, is_string = attributes.get("name", ""), attributes.get("string", "")
    if is_string == "true":
        return (text,)
    if is_string != "false":
        made, repaired = typed(text, key, reading.offered.find(name).tool, reading.rules())
        if repaired:
            warnings.add("repaired_json")
        return (made,)
    stripped = text.strip()
    try:
        value = read(stripped, 0, reading.rules(at_end=True))
    except NotJsonError as error:
        return Fault("malformed_json", f"{key}: {error.message} at character {error.position + 1}", name)
    if skip_blanks(stripped, value.end) < len(stripped):
        return Fault("malformed_json", f"{key}: more than one value", name)
    if value.repaired:
        warnings.add("repaired_json")
    return (value.value,)


def _unwrapped(arguments: Mapping[str, object], name: str, reading: Reading) -> Mapping[str, object]:
    """A lone `arguments` or `input` given as text is decoded, if the schema lacks it; settling takes it out."""
    if len(arguments) != 1 or reading.offered.find(name).tool is None:
        return arguments
    (key, value), *_ = arguments.items()
    if key not in ("arguments", "input") or not isinstance(value, str) or not value.lstrip().startswith("{"):
        return arguments
    try:
        decoded = read(value.strip(), 0)
    except NotJsonError:
        return arguments
    return {key: decoded.value} if decoded.end == len(value.strip()) else arguments
