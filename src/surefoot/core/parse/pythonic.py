"""The family pythonic: a list of calls with keyword literals, as all of the text or between its two tokens."""

from __future__ import annotations

import re
from dataclasses import replace

from surefoot.core.parse.bare_json import read_python_tag
from surefoot.core.parse.drafts import Draft, Found, Reading
from surefoot.core.parse.python_literals import LiteralReader, NotLiteralError, skim
from surefoot.core.parse.scan import MOST_CALLS
from surefoot.types.reply import Fault, ReplyWarning

START, END = "<|python_start|>", "<|python_end|>"

_LIST = re.compile(r"\s*+\[\s*+[^\W\d][\w.]*+\s*+\(")
_CALL = re.compile(r"\s*+(?P<name>[^\W\d][\w.-]*+)\s*+\(")
_KEY = re.compile(r"\s*+(?P<key>[^\W\d]\w*+)\s*+=(?!=)\s*+")
_NEXT = re.compile(r"\)\s*+,(?=\s*+[^\W\d][\w.-]*+\s*+\()")
_LIST_END = re.compile(r"\s*+,?\s*+\]")
_COMMA = re.compile(r"\s*+,")


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
        found = _Calls(inner, reading, has_end=closing >= 0).read()
    else:
        kind = "empty" if closing >= 0 or not reading.cut else "truncated"
        found = Found("pythonic", (Draft(fault=Fault(kind, f"nothing follows {START}")),))
    warnings: set[ReplyWarning] = set(found.warnings)
    if closing < 0:
        warnings.add("unclosed_tag")
    return replace(found, content=text[:start] + after, warnings=frozenset(warnings), end=end)


def read_bare_pythonic(text: str, reading: Reading) -> Found | None:
    """The calls, if all of the text is a list of them."""
    if _LIST.match(text) is None:
        return None
    calls = _Calls(text, reading, has_end=False)
    found = calls.read()
    prose = text[found.end :].strip() if found.end >= 0 else not calls.closed and not _is_cut(found)
    return None if prose else found


def _is_cut(found: Found) -> bool:
    return any(draft.fault is not None and draft.fault.kind == "truncated" for draft in found.drafts)


class _Calls:
    """Reads a list of calls; one that is broken costs as little of its neighbours as can be."""

    def __init__(self, text: str, reading: Reading, *, has_end: bool) -> None:
        self._text = text
        self._reading = reading
        self.closed = has_end or text.rstrip().endswith("]")
        self._framed = False

    def read(self) -> Found:
        text = self._text
        drafts: list[Draft] = []
        at = len(text) - len(text.lstrip())
        at += text.startswith("[", at)
        end = -1
        while True:
            call = _CALL.match(text, at)
            if call is None:
                drafts.append(self._stray(at))
                break
            draft, at = self._call(call)
            drafts.append(draft)
            if at < 0 or len(drafts) >= MOST_CALLS:
                break
            if closing := _LIST_END.match(text, at):
                end = closing.end()
                break
            comma = _COMMA.match(text, at)
            if comma is None:
                if text[at:].strip():
                    drafts.append(self._stray(at))
                elif not self.closed:
                    end = len(text)
                break
            at = comma.end()
        return Found("pythonic", tuple(drafts), "", end=end, frame=self._framed)

    def _stray(self, at: int) -> Draft:
        cut = not self.closed and (self._reading.cut or not self._text[at:].strip())
        told = f"expected a call, got {self._text[at : at + 60]!r}"
        return Draft(fault=Fault("truncated" if cut else "malformed_arguments", told))

    def _call(self, call: re.Match[str]) -> tuple[Draft, int]:
        """One call, and where the list goes on; -1 if that cannot be told."""
        text, name = self._text, call["name"]
        reader = LiteralReader(text, call.end())
        arguments: dict[str, object] = {}
        key = ""
        try:
            while not self._ends(reader):
                key = self._key(reader)
                value = reader.value()
                self._separated(reader, is_twice=key in arguments)
                arguments[key] = value
        except NotLiteralError as error:
            return self._faulty(name, key, error, call.end())
        self._framed = True
        return Draft(name, arguments), reader.at

    def _ends(self, reader: LiteralReader) -> bool:
        """Step over the bracket that closes a call, if it stands here."""
        reader.blanks()
        ends = self._text.startswith(")", reader.at)
        reader.at += ends
        return ends

    def _key(self, reader: LiteralReader) -> str:
        keyed = _KEY.match(self._text, reader.at)
        if keyed is None:
            raise NotLiteralError(reader.at, "give every argument by name", at_end=reader.at >= len(self._text))
        reader.at = keyed.end()
        return keyed["key"]

    def _separated(self, reader: LiteralReader, *, is_twice: bool) -> None:
        """Step over the comma behind an argument."""
        if is_twice:
            raise NotLiteralError(reader.at, "it is given twice")
        reader.blanks()
        if self._text.startswith(",", reader.at):
            reader.at += 1
        elif not self._text.startswith(")", reader.at):
            raise reader.unexpected()

    def _faulty(self, name: str, key: str, error: NotLiteralError, start: int) -> tuple[Draft, int]:
        text = self._text
        after = skim(text, start)
        if after >= 0 and (_LIST_END.match(text, after) or _COMMA.match(text, after)):
            self._framed = True
        else:
            following = _NEXT.search(text, start)
            after = following.start() + 1 if following else -1
        cut = not self.closed and (self._reading.cut or error.at_end) and after < 0
        told = f"{key}: {error.message}" if key else error.message
        return Draft(name, fault=Fault("truncated" if cut else "malformed_arguments", told, name)), after
