"""Calls between tags: `<function_call>` with deliverables beside it, the families of `<tool_call>`, and Python.

The end of a JSON body is found by decoding. Where a value does not decode, its strings cannot be told, so the first
closing or opening tag behind it is the best evidence of where it ends: one bad call never drops its siblings. An open
payload has no such end; all the rest is in it. Nothing inside a deliverable or behind an invented result is a call.
Source: spec/reasoners.md, sections 3 and 5.
"""

from __future__ import annotations

import re

from surefoot.core.parse import marks, scan
from surefoot.core.parse.calls import Draft, Found, Reading, arguments_at, noted_if, past_closer, typed, values_at
from surefoot.core.parse.json_calls import PYTHON_TAG, read_python_tag
from surefoot.core.parse.pythonic import read_bare_pythonic, read_code, read_list
from surefoot.core.parse.toolset import takes_nothing
from surefoot.types.dataclass import replace
from surefoot.types.reply import Fault, FaultKind, ReplyWarning


class BodyReader:
    """Reads the bodies between two tags, one after the other. `payloads`: values may stand between payload markers."""

    def __init__(self, text: str, tag: tuple[str, str], reading: Reading, *, payloads: bool = False) -> None:
        self._text = text
        self._open, self._close = tag
        self._payloads = payloads
        self._reading = reading
        self._seek = scan.Seeker(text)
        self.warnings: set[ReplyWarning] = set()

    def read(self, at: int) -> tuple[tuple[Draft, ...], int]:
        """The calls of the tag that opens at `at`, and where the text goes on behind it."""
        text, opening, closing = self._text, self._open, self._close
        depth = 0
        while text.startswith(opening, at):
            at = scan.skip_blanks(text, at + len(opening))
            depth += 1
        if depth > 1:
            self.warnings.add("repaired_tags")
        if text.startswith(closing, at):
            return (Draft(fault=Fault("empty", f"{opening} holds nothing")),), at + len(closing)
        fenced = text.startswith(("```", "~~~"), at)
        at = scan.skip_blanks(text, scan.inside_fence(text, at))
        close, again = self._seek.find(closing, at), self._seek.find(opening, at)
        has_end = close >= 0 and not 0 <= again < close
        limit = close if has_end else again if again >= 0 else len(text)
        if text[at : at + 1] not in ("{", "[", '"'):
            bracket = scan.first_bracket(text, at, limit)
            if bracket < 0:
                cut = not has_end and (self._reading.cut or at >= len(text))
                told = f"expected a JSON object, got {text[at:limit][:60]!r}"
                draft = Draft(fault=Fault("truncated" if cut else "malformed_json", told))
                return (draft,), self._closed(limit, depth) if has_end else limit
            self.warnings.add("trailing_text")
            at = bracket
        ends = (closing, "```") if fenced else (closing,)
        rules = self._reading.rules(*ends, payloads=self._payloads, is_call=True)
        drafts, at, told = values_at(text, (at, limit), rules, _BETWEEN, self._reading, has_end=has_end)
        self.warnings |= told
        is_open = not has_end and drafts[-1].fault is not None
        return tuple(drafts), at if is_open else self._closed(at, depth)

    def _closed(self, at: int, depth: int) -> int:
        """Step over the end of the tag behind a value that ends at `at`; note what is amiss with it."""
        text, closing = self._text, self._close
        at = scan.skip_blanks(text, at)
        if text.startswith("```", at):
            at = scan.skip_blanks(text, at + 3)
        if not text.startswith(closing, at):
            if (close := self._seek.before(closing, (self._open,), at)) < 0:
                self.warnings.add("unclosed_tag")
                return at
            self.warnings.add("trailing_text" if text[at:close].strip("]}) \t\r\n") else "repaired_json")
            at = close
        at += len(closing)
        while text.startswith(closing, more := scan.skip_blanks(text, at)):  # as many as were opened belong here
            depth -= 1
            if depth < 1:
                self.warnings.add("repaired_tags")
            at = more + len(closing)
        return at


_BETWEEN = re.compile(r"[ \t\r\n,;\]\ufeff]*+(?=[{\[])")


def found_in_tags(text: str, reading: Reading) -> Found | None:
    """The calls of the tags dialect, else its deliverable; None if the text holds neither."""
    if not any(sign in text for sign in (marks.FUNCTION_CALL, marks.DELIVERABLE, marks.RESULT)):
        return None
    walk = marks.Walk(text)
    bodies = BodyReader(text, (marks.FUNCTION_CALL, marks.FUNCTION_CALL_END), reading, payloads=True)
    drafts: list[Draft] = []
    deliverable: tuple[int, int] | None = None
    first = end = -1
    is_open = False
    at = 0
    while len(drafts) <= scan.MOST_CALLS and (step := walk.following(at)) is not None:
        at = walk.end
        if step["marker"] == marks.FUNCTION_CALL and marks.function_call_family(text, step.start(), walk.seek):
            found, end = bodies.read(step.start())
            drafts += found
            first = step.start() if first < 0 else first
            at = max(at, end)
        elif step["deliverable"] and marks.opens_at(text, step.start()):
            at = marks.past_deliverable(text, step.start(), walk.seek)
            if is_open := at == step.end():
                break
            deliverable = deliverable or (step.start(), at)
        elif step["result"]:
            bodies.warnings.add("hallucinated_result_removed")
            end = end if end >= 0 else step.start()
            break
    warnings = frozenset(bodies.warnings)
    if drafts:
        warnings |= noted_if(deliverable is not None, "final_dropped")
        return Found("tags", tuple(drafts), text[:first], warnings, end=end)
    if is_open:
        told = f"{marks.DELIVERABLE} is never closed: {marks.DELIVERABLE_END} is missing"
        fault = Fault("truncated" if reading.cut else "no_call", told)
        return Found("tags", (), text, warnings, error=fault)
    if deliverable is not None:
        start, end = deliverable
        body = marks.body_of(text[start + len(marks.DELIVERABLE) : end - len(marks.DELIVERABLE_END)])
        if not body:
            told = Fault("empty_final", f"{marks.DELIVERABLE} holds nothing")
            return Found("tags", (), text, warnings, error=told)
        return Found("tags", (), text[:start], warnings, final=body, end=end)
    if warnings:  # only an invented result, with nothing before it that could be run
        told = Fault("no_call", "a result was written that only the runtime may write")
        return Found("tags", (), text[:end], warnings, error=told, end=end)
    return None


_NEXT = re.compile(rf"(?P<mark>{marks.TOOL_CALL}|{marks.FUNCTION})|{scan.FENCES}", re.MULTILINE)
_FUNCTION = re.compile(r"""<function=\s*+["']?(?P<name>[^<>\s"']{1,200}+)["']?\s*+>?""")
_PARAMETER = re.compile(r"""\s*+<parameter=\s*+["']?(?P<key>[^<>\s"']{1,200}+)["']?\s*+>""")
_GLM_NAME = re.compile(r"[^\s<>{}\[\]]{1,200}+")
_KEY, _KEY_END = "<arg_key>", "</arg_key>"
_VALUE, _VALUE_END = "<arg_value>", "</arg_value>"
_AFTER_CALL = (marks.FUNCTION, marks.TOOL_CALL, marks.TOOL_CALL_END)
_END_OF_FUNCTION = ("</function>", *_AFTER_CALL)
_PARAMETER_OPEN, _PARAMETER_END, _FUNCTION_END = "<parameter=", "</parameter>", "</function>"


def read_tool_calls(text: str, start: int, reading: Reading) -> Found:
    """All calls of the three families from `start` on; the first one names the family of the reply."""
    calls = _ToolCalls(text, reading)
    drafts: list[Draft] = []
    family: marks.FamilyName | None = None
    at = end = start
    while len(drafts) <= scan.MOST_CALLS and (step := scan.outside_fences(_NEXT, text, at)) is not None:
        family_of = marks.tool_call_family if step["mark"] == marks.TOOL_CALL else marks.function_family
        kind = family_of(text, step.start(), calls.seek)
        if kind is not None:
            family = family or kind
            found, end = calls.of(kind, step.start())
            drafts += found
        at = max(end, step.end())
    family = family or "hermes"
    frame = family != "glm45" or calls.is_framed
    return Found(family, tuple(drafts), text[:start], frozenset(calls.warnings), end=end, frame=frame)


class _ToolCalls:
    def __init__(self, text: str, reading: Reading) -> None:
        self._text = text
        self._reading = reading
        self.seek = scan.Seeker(text)
        self._bodies = BodyReader(text, (marks.TOOL_CALL, marks.TOOL_CALL_END), reading)
        self.warnings = self._bodies.warnings
        self.is_framed = False

    def of(self, kind: marks.FamilyName, at: int) -> tuple[tuple[Draft, ...], int]:
        """The calls of the tag of that family that opens at `at`, and where the text goes on."""
        if kind == "hermes":
            return self._bodies.read(at)
        text, opened = self._text, 0
        while text.startswith(marks.TOOL_CALL, at):
            at = scan.skip_blanks(text, at + len(marks.TOOL_CALL))
            opened += 1
        if opened > 1:
            self.warnings.add("repaired_tags")
        draft, end = self._function(at, is_wrapped=opened > 0) if kind == "qwen3_xml" else self._glm(at)
        for _ in range(opened):
            if text.startswith(marks.TOOL_CALL_END, close := scan.skip_blanks(text, end)):
                end = close + len(marks.TOOL_CALL_END)
            elif kind == "qwen3_xml":
                self.warnings.add("unclosed_tag")
        return (draft,), end

    def _function(self, at: int, *, is_wrapped: bool) -> tuple[Draft, int]:
        """`<function=NAME>` with its parameters; missing closers are tolerated where nothing else can be missing."""
        text, reading = self._text, self._reading
        opening = _FUNCTION.match(text, at)
        if opening is None:
            return Draft(fault=Fault("missing_name", "a function has no name")), at + len(marks.FUNCTION)
        name = opening["name"]
        at = opening.end()
        inside = scan.skip_blanks(text, at)
        if text.startswith("{", inside):
            read = arguments_at(text, inside, (_FUNCTION_END,), reading, name, seek=self.seek)
            self.warnings |= read.warnings
            return read.draft(name), past_closer(text, read.end, _END_OF_FUNCTION, self.seek, self.warnings)
        arguments: dict[str, object] = {}
        fault: Fault | None = None
        tool = reading.offered.find(name).tool
        while (parameter := _PARAMETER.match(text, at)) is not None:
            start, key = parameter.end(), parameter["key"]
            end = self.seek.before(_PARAMETER_END, (_PARAMETER_OPEN,), start)
            if end < 0 and self.seek.before(marks.FUNCTION, (_PARAMETER_OPEN,), start) >= 0:
                end = self.seek.paired(scan.skip_blanks(text, at), _PARAMETER_OPEN, _PARAMETER_END)
            if end >= 0:
                at = end + len(_PARAMETER_END)
            else:
                end = at = self.seek.first((_PARAMETER_OPEN, _FUNCTION_END, marks.TOOL_CALL_END, marks.FUNCTION), start)
            if end < 0:
                told = Fault("truncated", f"the reply ends in the parameter {key[:60]}", name)
                return Draft(name, fault=told), len(text)
            made, told = typed(scan.EDGES.sub("", text[start:end]), key, tool, reading.rules())
            self.warnings |= told
            if key in arguments and arguments[key] != made:
                fault = fault or Fault("malformed_arguments", f"{key[:60]} is given twice", name)
            arguments[key] = made
        end = past_closer(text, at, _END_OF_FUNCTION, self.seek, self.warnings)
        rest = scan.skip_blanks(text, at)
        is_whole = is_wrapped and rest >= len(text) and not reading.cut and takes_nothing(tool)
        if not arguments and not is_whole and not text.startswith(_END_OF_FUNCTION, rest):
            kind: FaultKind = "truncated" if rest >= len(text) else "malformed_arguments"
            return Draft(name, fault=Fault(kind, f"expected parameters, got {text[rest : rest + 60]!r}", name)), end
        # more than the closer may be missing if it was cut, or ends inside a tag
        is_open = text.startswith("<", rest) if rest < len(text) else not text.endswith(">", 0, at)
        if end == at and not text.startswith(_AFTER_CALL, rest) and (reading.cut or is_open):
            return Draft(name, fault=Fault("truncated", "the reply ends before the call does", name)), at
        return Draft(name, arguments, fault), end

    def _glm(self, at: int) -> tuple[Draft, int]:
        """`NAME` with pairs of keys and values. Only its closing tag tells that such a call is complete."""
        text, seek, reading = self._text, self.seek, self._reading
        named = _GLM_NAME.match(text, at)
        name = named.group() if named else ""
        at = scan.skip_blanks(text, named.end() if named else at)
        tool = reading.offered.find(name).tool
        arguments: dict[str, object] = {}
        while text.startswith(_KEY, at):
            key_end = seek.find(_KEY_END, at)
            value = scan.skip_blanks(text, key_end + len(_KEY_END)) if key_end >= 0 else len(text)
            inside = value + len(_VALUE)
            value_end = seek.find(_VALUE_END, inside) if text.startswith(_VALUE, value) else -1
            if text.find(_VALUE, inside, max(value_end, inside)) >= 0:
                value_end = seek.paired(value, _VALUE, _VALUE_END)
            if value_end < 0:
                break
            key = text[at + len(_KEY) : key_end].strip()
            arguments[key], told = typed(text[inside:value_end], key, tool, reading.rules())
            self.warnings |= told
            at = scan.skip_blanks(text, value_end + len(_VALUE_END))
        if text.startswith(marks.TOOL_CALL_END, at):
            self.is_framed = True
            return Draft(name, arguments), at
        if (close := seek.before(marks.TOOL_CALL_END, (marks.TOOL_CALL,), at)) >= 0:
            self.is_framed = True
            told = f"expected {_KEY} and {_VALUE} pairs, got {text[at:close][:60]!r}"
            return Draft(name, fault=Fault("malformed_arguments", told, name)), close
        told = Fault("truncated", f"{marks.TOOL_CALL} is never closed", name)
        again = seek.find(marks.TOOL_CALL, at)
        return Draft(name, fault=told), again if again >= 0 else len(text)


_PYTHON_TOKENS = {"<|python_start|>": "<|python_end|>", "<|tool_call_start|>": "<|tool_call_end|>"}
_PYTHON_MARKS = {**_PYTHON_TOKENS, "<function_calls>": "</function_calls>", marks.TOOL_CODE: "```"}


def read_python_blocks(text: str, start: int, reading: Reading) -> Found | None:
    """The Python calls between the two marks that open at `start`, and in blocks like that; None if it is an example.

    Between tokens (Llama, LFM2) anything is meant as a call, and the text around them is the content. Between tags
    (Olmo) and in a fence (Gemma 3) all has to be calls, one of an offered tool; another block has to follow at once.
    """
    opener = next(one for one in _PYTHON_MARKS if text.startswith(one, start))
    closer, is_token = _PYTHON_MARKS[opener], opener in _PYTHON_TOKENS
    drafts, said, warnings = list[Draft](), [text[:start]], set[ReplyWarning]()
    end, at, frame = start, start, False
    while at >= 0 and len(drafts) <= scan.MOST_CALLS:
        body = at + len(opener)
        close, again = text.find(closer, body), text.find(opener, body)
        if fence := scan.fence_at(text, at):
            body, close, goes_on, closed = fence.inner, fence.inner_end, fence.end, fence.closed
        elif closed := close >= 0 and not 0 <= again < close:
            goes_on = close + len(closer)
        else:
            close = goes_on = again if again >= 0 else len(text)
        inner = text[body:close]
        if not is_token:
            found = read_code(inner, reading)
        elif inner.lstrip().startswith(("{", "[{")):
            found = read_python_tag(inner, -len(PYTHON_TAG), reading)
        elif inner.strip():
            found = read_list(inner, reading, has_end=closed)
        else:
            kind = "empty" if closed or not reading.cut else "truncated"
            found = Found("pythonic", (Draft(fault=Fault(kind, f"nothing follows {opener}")),))
        if found is None:
            break
        drafts += found.drafts
        warnings |= found.warnings | noted_if(not closed, "unclosed_tag")
        end, frame = goes_on, frame or found.frame
        at = text.find(opener, end) if is_token else scan.skip_blanks(text, end)
        said.append(text[end : at if at >= 0 else None] if is_token else "")
        at = at if text.startswith(opener, at) else -1
    if not drafts:
        return None
    return Found("pythonic", tuple(drafts), "".join(said), frozenset(warnings), end=end, frame=frame)


def read_python_tagged(text: str, start: int, reading: Reading) -> Found:
    """What stands behind `<|python_tag|>`: calls as Python, in a list or of offered tools, else objects."""
    body = start + len(PYTHON_TAG)
    if (found := read_bare_pythonic(text[body:], reading)) is None:
        return read_python_tag(text, start, reading)
    return replace(found, content=text[:start], end=body + found.end if found.end >= 0 else -1)
