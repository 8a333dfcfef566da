"""The families that share `<tool_call>`: hermes (JSON), qwen3_xml (`<function=…>`), glm45 (`arg_key`)."""

from __future__ import annotations

import re

from surefoot.core.parse.arguments import arguments_at
from surefoot.core.parse.drafts import Draft, Found, Reading
from surefoot.core.parse.marks import FUNCTION, TOOL_CALL, TOOL_CALL_END, FamilyName, tool_call_family
from surefoot.core.parse.scan import FENCES, MOST_CALLS, Seeker, past_fence, skip_blanks
from surefoot.core.parse.tag_bodies import BodyReader, Tag
from surefoot.core.parse.text_values import typed
from surefoot.types.reply import Fault

_NEXT = re.compile(rf"(?P<mark>{TOOL_CALL}|{FUNCTION})|{FENCES}", re.MULTILINE)
_FUNCTION = re.compile(r"""<function=\s*+["']?(?P<name>[^<>\s"']{1,200}+)["']?\s*+>?""")
_PARAMETER = re.compile(r"""\s*+<parameter=\s*+["']?(?P<key>[^<>\s"']{1,200}+)["']?\s*+>""")
_GLM_NAME = re.compile(r"[^\s<>{}\[\]]{1,200}+")
_KEY, _KEY_END = "<arg_key>", "</arg_key>"
_VALUE, _VALUE_END = "<arg_value>", "</arg_value>"
_PARAMETER_OPEN, _PARAMETER_END, _FUNCTION_END = "<parameter=", "</parameter>", "</function>"


def read_tool_calls(text: str, start: int, reading: Reading) -> Found:
    """All calls of the three families from `start` on; the first one names the family of the reply."""
    return _ToolCalls(text, reading).read(start)


class _ToolCalls:
    def __init__(self, text: str, reading: Reading) -> None:
        self._text = text
        self._reading = reading
        self._seek = Seeker(text)
        self._bodies = BodyReader(text, Tag(TOOL_CALL, TOOL_CALL_END), reading)
        self._warnings = self._bodies.warnings
        self._framed = False

    def read(self, start: int) -> Found:
        text = self._text
        drafts: list[Draft] = []
        family: FamilyName | None = None
        end = start
        step = _NEXT.search(text, start)
        while step is not None and len(drafts) <= MOST_CALLS:
            if step["mark"]:
                kind = self._family(step)
                if kind is not None:
                    family = family or kind
                    found, end = self._one(kind, step.start())
                    drafts += found
                at = max(end, step.end())
            else:
                at = past_fence(text, step)
            step = _NEXT.search(text, at)
        family = family or "hermes"
        frame = family != "glm45" or self._framed
        return Found(family, tuple(drafts), text[:start], frozenset(self._warnings), end=end, frame=frame)

    def _family(self, step: re.Match[str]) -> FamilyName | None:
        if step["mark"] == FUNCTION:
            return "qwen3_xml" if _FUNCTION.match(self._text, step.start()) else None
        return tool_call_family(self._text, step.start(), self._seek)

    def _one(self, kind: FamilyName, at: int) -> tuple[tuple[Draft, ...], int]:
        if kind == "hermes":
            body = self._bodies.read(at)
            return body.drafts, body.end
        inside = at
        opened = 0
        while self._text.startswith(TOOL_CALL, inside):
            inside = skip_blanks(self._text, inside + len(TOOL_CALL))
            opened += 1
        if opened > 1:
            self._warnings.add("repaired_tags")
        draft, end = self._function(inside) if kind == "qwen3_xml" else self._glm(inside)
        return (draft,), self._past_end(end, opened, kind)

    def _past_end(self, end: int, opened: int, kind: FamilyName) -> int:
        text = self._text
        for _ in range(opened):
            at = skip_blanks(text, end)
            if text.startswith(TOOL_CALL_END, at):
                end = at + len(TOOL_CALL_END)
            elif kind == "qwen3_xml":
                self._warnings.add("unclosed_tag")
        return end

    def _function(self, at: int) -> tuple[Draft, int]:
        """`<function=NAME>` with its parameters; missing closers are tolerated where nothing else can be missing."""
        text, reading = self._text, self._reading
        opening = _FUNCTION.match(text, at)
        if opening is None:
            return Draft(fault=Fault("missing_name", "a function has no name")), at + len(FUNCTION)
        name = opening["name"]
        at = opening.end()
        inside = skip_blanks(text, at)
        if text.startswith("{", inside):
            read = arguments_at(text, inside, (_FUNCTION_END,), reading, name, seek=self._seek)
            self._warnings |= read.warnings
            return read.draft(name), self._past_function(read.end)
        arguments: dict[str, object] = {}
        fault: Fault | None = None
        tool = reading.offered.find(name).tool
        while (parameter := _PARAMETER.match(text, at)) is not None:
            value, at, closed = self._parameter(parameter.end())
            key = parameter["key"]
            if not closed:
                return Draft(name, fault=Fault("truncated", f"the reply ends in the parameter {key[:60]}", name)), at
            made, repaired = typed(value, key, tool, reading.rules())
            if repaired:
                self._warnings.add("repaired_json")
            if key in arguments and arguments[key] != made:
                fault = fault or Fault("malformed_arguments", f"{key[:60]} is given twice", name)
            arguments[key] = made
        end = self._past_function(at)
        if end == at and self._is_open(at):
            return Draft(name, fault=Fault("truncated", "the reply ends before the call does", name)), at
        return Draft(name, arguments, fault), end

    def _is_open(self, at: int) -> bool:
        """Whether more of a call without a closer may be missing than the closer: it was cut, or ends inside a tag."""
        text = self._text
        rest = skip_blanks(text, at)
        if text.startswith((FUNCTION, TOOL_CALL, TOOL_CALL_END), rest):
            return False
        if rest >= len(text):
            return self._reading.cut or not text[:at].endswith(">")
        return self._reading.cut or text.startswith("<", rest)

    def _parameter(self, start: int) -> tuple[str, int, bool]:
        """The text of a parameter, where it ends, and whether anything closes it."""
        text, seek = self._text, self._seek
        close = seek.find(_PARAMETER_END, start)
        following = seek.first((_PARAMETER_OPEN, FUNCTION), start)
        if close >= 0 and not 0 <= following < close:
            return _without_newlines(text[start:close]), close + len(_PARAMETER_END), True
        end = seek.first((_PARAMETER_OPEN, _FUNCTION_END, TOOL_CALL_END, FUNCTION), start)
        if end < 0:
            return "", len(text), False
        return _without_newlines(text[start:end]), end, True

    def _past_function(self, at: int) -> int:
        text = self._text
        end = skip_blanks(text, at)
        if text.startswith(_FUNCTION_END, end):
            return end + len(_FUNCTION_END)
        close = self._seek.find(_FUNCTION_END, at)
        following = self._seek.first((FUNCTION, TOOL_CALL, TOOL_CALL_END), at)
        if close >= 0 and not 0 <= following < close:  # words between the parameters and the end
            self._warnings.add("trailing_text")
            return close + len(_FUNCTION_END)
        self._warnings.add("unclosed_tag")
        return at

    def _glm(self, at: int) -> tuple[Draft, int]:
        """`NAME` with pairs of keys and values. Only its closing tag tells that such a call is complete."""
        text, seek, reading = self._text, self._seek, self._reading
        named = _GLM_NAME.match(text, at)
        name = named.group() if named else ""
        at = skip_blanks(text, named.end() if named else at)
        tool = reading.offered.find(name).tool
        arguments: dict[str, object] = {}
        while text.startswith(_KEY, at):
            key_end = seek.find(_KEY_END, at)
            value = skip_blanks(text, key_end + len(_KEY_END)) if key_end >= 0 else len(text)
            value_end = seek.find(_VALUE_END, value) if text.startswith(_VALUE, value) else -1
            if value_end < 0:
                break
            key = text[at + len(_KEY) : key_end].strip()
            made, repaired = typed(text[value + len(_VALUE) : value_end], key, tool, reading.rules())
            if repaired:
                self._warnings.add("repaired_json")
            arguments[key] = made
            at = skip_blanks(text, value_end + len(_VALUE_END))
        if text.startswith(TOOL_CALL_END, at):
            self._framed = True
            return Draft(name, arguments), at
        close, again = seek.find(TOOL_CALL_END, at), seek.find(TOOL_CALL, at)
        if close >= 0 and not 0 <= again < close:
            self._framed = True
            told = f"expected {_KEY} and {_VALUE} pairs, got {text[at:close][:60]!r}"
            return Draft(name, fault=Fault("malformed_arguments", told, name)), close
        told = Fault("truncated", f"{TOOL_CALL} is never closed", name)
        return Draft(name, fault=told), again if again >= 0 else len(text)


def _without_newlines(value: str) -> str:
    """The value without the one newline on each side that belongs to the form."""
    value = value.removeprefix("\r\n") if value.startswith("\r\n") else value.removeprefix("\n")
    return value.removesuffix("\r\n") if value.endswith("\r\n") else value.removesuffix("\n")
