"""The family pythonic: calls with keyword literals, in a list or one after the other, as all of the text.

Between its two tokens anything is meant as a call. Without them, and without the brackets of a list, only calls of
offered tools are: else every line of code would be one. Source: spec/react.md, section 5.
"""

from __future__ import annotations

import re

from surefoot.core.parse.calls import Draft, Found, Reading
from surefoot.core.parse.json_calls import read_python_tag
from surefoot.core.parse.json_strict import NotJsonError, as_list
from surefoot.core.parse.objects import read
from surefoot.core.parse.python_literals import LiteralReader, NotLiteralError, skim
from surefoot.core.parse.scan import MOST_CALLS, skip_blanks
from surefoot.core.parse.toolset import without_escapes
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.reply import Fault, ReplyWarning

START, END = "<|python_start|>", "<|python_end|>"

_MOST_SKIMS = 10
"""Broken calls whose end may be looked for by their brackets without being found; each costs time."""

_NAME = r"[^\W\d](?:[\w.-]|\\{1,2}_)*+"  # Markdown escapes an underscore, and JSON the escape
_LIST = re.compile(r"\s*+\[\s*+[^\W\d](?:[\w.]|\\_)*+\s*+\(")
_QUOTED = re.compile(rf"""\s*+\[\s*+["']\s*+{_NAME}\(""")
_KEY = re.compile(r"\s*+(?P<key>[^\W\d](?:\w|\\_)*+)\s*+=(?!=)\s*+")


@dataclass(frozen=True, slots=True)
class _Shape:
    """How calls stand side by side: how one begins, what stands between two, what behind the last.

    `next` finds the end of a broken call that another one follows; `closes` are the signs that end the whole.
    """

    call: re.Pattern[str]
    between: re.Pattern[str]
    end: re.Pattern[str]
    next: re.Pattern[str]
    closes: str
    is_list: bool


_LISTED = _Shape(
    re.compile(rf"\s*+(?P<name>{_NAME})\s*+\("),
    re.compile(r"\s*+,"),
    re.compile(r"\s*+,?\s*+\]"),
    re.compile(rf"\)\s*+,(?=\s*+{_NAME}\s*+\()"),
    "]",
    is_list=True,
)
_IN_LINES = _Shape(
    re.compile(rf"\s*+(?P<name>{_NAME})\("),
    re.compile(r"[ \t\r]*+[;,\n][\s;,]*+"),
    re.compile(r"[\s;,]*+\Z"),
    re.compile(rf"\)[ \t\r]*+[;,\n](?=[\s;,]*+{_NAME}\()"),
    ");",
    is_list=False,
)


def read_python_start(text: str, start: int, reading: Reading) -> Found:
    """The calls between `<|python_start|>` and `<|python_end|>`; the text around them is the content."""
    inside = start + len(START)
    closing = text.find(END, inside)
    inner = text[inside:closing] if closing >= 0 else text[inside:]
    after = text[closing + len(END) :] if closing >= 0 else ""
    end = closing + len(END) if closing >= 0 else len(text)
    if inner.lstrip().startswith("{"):
        found = read_python_tag(inner, -len("<|python_tag|>"), reading)
        found = replace(found, format="pythonic")
    elif inner.strip():
        found = _Calls(inner, reading, _LISTED, has_end=closing >= 0).read()
    else:
        kind = "empty" if closing >= 0 or not reading.cut else "truncated"
        found = Found("pythonic", (Draft(fault=Fault(kind, f"nothing follows {START}")),))
    warnings: set[ReplyWarning] = set(found.warnings)
    if closing < 0:
        warnings.add("unclosed_tag")
    return replace(found, content=text[:start] + after, warnings=frozenset(warnings), end=end)


def read_bare_pythonic(text: str, reading: Reading) -> Found | None:
    """The calls, if all of the text is a list of them, or calls of offered tools one after the other, or quoted so."""
    if _LIST.match(text) is not None:
        calls = _Calls(text, reading, _LISTED)
        found = calls.read()
        prose = text[found.end :].strip() if found.end >= 0 else not calls.closed and not _is_cut(found)
        return None if prose else found
    return _quoted(text, reading) if _QUOTED.match(text) is not None else _in_lines(text, reading)


def _in_lines(text: str, reading: Reading) -> Found | None:
    """The calls of offered tools that are all of the text: `f(a=1)`, `f(); g()`, or one a line."""
    first = _IN_LINES.call.match(text)
    if first is None or reading.offered.find(first["name"]).tool is None:
        return None
    calls = _Calls(text, reading, _IN_LINES)
    found = calls.read()
    if calls.prose or any(reading.offered.find(draft.name).tool is None for draft in found.drafts):
        return None
    return found if found.end >= 0 or calls.closed or _is_cut(found) else None


def _quoted(text: str, reading: Reading) -> Found | None:
    """The calls of offered tools in a list of texts that is all of the text: `["f(a=1)", "g()"]`."""
    try:
        value = read(text, skip_blanks(text, 0), reading.rules(at_end=True))
    except NotJsonError:
        return None
    drafts: list[Draft] = []
    for item in as_list(value.value) or [None]:
        found = _in_lines(item, reading) if isinstance(item, str) else None
        if found is None:
            return None
        drafts += found.drafts
    rest = text[value.end :].strip()
    return None if rest else Found("pythonic", tuple(drafts), "", value.warnings, end=value.end)


def _is_cut(found: Found) -> bool:
    return any(draft.fault is not None and draft.fault.kind == "truncated" for draft in found.drafts)


class _Calls:
    """Reads calls; one that is broken costs as little of its neighbours as can be.

    `prose`: in calls without brackets around them something else stands, so that they are only talked about.
    """

    def __init__(self, text: str, reading: Reading, shape: _Shape, *, has_end: bool = False) -> None:
        self._text = text
        self._reading = reading
        self._shape = shape
        self.closed = has_end or text.rstrip()[-1:] in shape.closes
        self.prose = False
        self._framed = False
        self._key = ""
        self._is_open = False
        self._skims = _MOST_SKIMS

    def read(self) -> Found:
        text = self._text
        drafts: list[Draft] = []
        shape = self._shape
        at = len(text) - len(text.lstrip())
        at += shape.is_list and text.startswith("[", at)
        end = -1
        while True:
            call = shape.call.match(text, at)
            if call is None:
                drafts.append(self._stray(at))
                break
            draft, at = self._call(call)
            drafts.append(draft)
            if at < 0 or len(drafts) > MOST_CALLS:
                end = len(text) if self._is_open else -1
                break
            if closing := shape.end.match(text, at):
                end = closing.end()
                break
            comma = shape.between.match(text, at)
            if comma is None:
                if text[at:].strip():
                    drafts.append(self._stray(at))
                elif not self.closed:
                    end = len(text)
                break
            at = comma.end()
        return Found("pythonic", tuple(drafts), "", end=end, frame=self._framed)

    def _stray(self, at: int) -> Draft:
        self.prose = True
        cut = not self.closed and (self._reading.cut or not self._text[at:].strip())
        told = f"expected a call, got {self._text[at : at + 60]!r}"
        return Draft(fault=Fault("truncated" if cut else "malformed_arguments", told))

    def _call(self, call: re.Match[str]) -> tuple[Draft, int]:
        """One call, and where the list goes on; -1 if that cannot be told."""
        text, name = self._text, call["name"]
        reader = LiteralReader(text, call.end())
        arguments: dict[str, object] = {}
        self._key = ""
        try:
            self._arguments(reader, arguments)
        except NotLiteralError as error:
            start, shape = call.end(), self._shape
            after = skim(text, start) if self._skims > 0 else -1
            if after >= 0 and (shape.end.match(text, after) or shape.between.match(text, after)):
                self._framed = True
            else:
                self._skims -= 1
                self._is_open = error.at_end
                self.prose = self.prose or not (_KEY.match(text, start) or start >= len(text))
                following = None if error.at_end else shape.next.search(text, max(start, error.at))
                after = following.start() + 1 if following else -1
            cut = not self.closed and (self._reading.cut or error.at_end) and after < 0
            told = f"{self._key}: {error.message}" if self._key else error.message
            return Draft(name, fault=Fault("truncated" if cut else "malformed_arguments", told, name)), after
        self._framed = True
        return Draft(name, arguments), reader.at

    def _arguments(self, reader: LiteralReader, arguments: dict[str, object]) -> None:
        """Read up to behind the bracket that closes the call; `_key` is the argument that is being read."""
        text = self._text
        for _ in reader.members(")"):
            if (keyed := _KEY.match(text, reader.at)) is None:
                raise NotLiteralError(reader.at, "give every argument by name", at_end=reader.at >= len(text))
            reader.at, self._key = keyed.end(), without_escapes(keyed["key"])
            value = reader.value()
            if self._key in arguments:
                raise NotLiteralError(reader.at, "it is given twice")
            arguments[self._key] = value
