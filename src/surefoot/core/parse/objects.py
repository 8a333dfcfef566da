"""JSON as models write it: read strictly first, then by a decoder that forgives how a value is written.

It never guesses what a value says. It takes comments, trailing commas, single or smart quotes as delimiters, bare keys,
Python literals, raw control signs in strings (kept), `{{…}}`, payloads between markers, brackets that are missing where
the form has ended, and Markdown's escapes in keys and names of calls. It changes nothing inside any other string, and
completes nothing that was cut off. Each repair is named, so that a caller can refuse it. Linear. Source: spec/react.md,
section 8.
"""

from __future__ import annotations

import math
import re
from string import punctuation
from typing import Literal

from surefoot.core.parse.scan import MOST_NESTED, NotJsonError, decode, merge_pairs, skip_blanks, too_deep
from surefoot.types.dataclass import dataclass
from surefoot.types.reply import ReplyWarning

Repair = Literal[
    "braces", "comment", "comma", "quotes", "key", "literal", "control", "bracket", "payload_quotes", "escape"
]

PAYLOAD_START = "__PAYLOAD_START__"
PAYLOAD_END = "__PAYLOAD_END__"
MOST_TOKENS = 50_000
MOST_COMMENT_CHARS = 10_000

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_WORD = re.compile(r"(?:[^\W\d]|\$)[\w$-]*+")
LITERALS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_NO_NUMBERS = frozenset({"NaN", "Infinity", "nan", "inf"})
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "'": "'"}
_CLOSERS = {'"': '"', "'": "'", "＂": "＂", **dict.fromkeys("“”„‟", "“”"), **dict.fromkeys("‘’‚", "‘’")}
_RUNS = {opener: re.compile(rf"[^\\{closers}]*+") for opener, closers in _CLOSERS.items()}
_RAW_CONTROL = re.compile(r"[\x00-\x1f]")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_PUNCTUATION = frozenset(punctuation)

WRAPPERS_OF_CALLS = ("tool_calls", "tool_call", "function_calls", "function_call")
_HOLD_CALLS = frozenset({*WRAPPERS_OF_CALLS, "function"})
_NAMES = frozenset({"name", "action"})


@dataclass(frozen=True, slots=True)
class Rules:
    """What may be forgiven in a value: `lossless` is rung 2.

    Missing brackets may be added right before one of `marks`, and at the end of the text if `at_end`. `is_call`: the
    value is a call or holds calls, and not the arguments of one, so that its `name` is a name.
    """

    lossless: bool = True
    marks: tuple[str, ...] = ()
    at_end: bool = False
    payloads: bool = False
    is_call: bool = False


LENIENT = Rules()


def mend(text: str, start: int, rules: Rules) -> tuple[object, int, frozenset[Repair]]:
    """The value that begins exactly at `start`, its end, and what had to be forgiven. Raises `NotJsonError`."""
    reader = _Reader(text, start, rules)
    try:
        value = reader.value(0)
    except RecursionError as error:
        raise too_deep(text, start) from error
    except NotJsonError:
        raise
    except ValueError as error:  # a key given twice, or a whole number of thousands of digits
        raise NotJsonError(start, str(error), resume=reader.at, refused=True) from error
    return value, reader.at, frozenset(reader.repairs)


class _Reader:
    """One pass over one value. `at` is the place of the next sign."""

    __slots__ = ("_is_call", "_rules", "_text", "_tokens", "at", "repairs")

    def __init__(self, text: str, start: int, rules: Rules) -> None:
        self._text = text
        self._rules = rules
        self._is_call = rules.is_call
        self._tokens = 0
        self.at = start
        self.repairs: set[Repair] = set()

    def value(self, depth: int) -> object:
        text, at = self._text, self.at
        self._tokens += 1
        if self._tokens > MOST_TOKENS:
            raise NotJsonError(at, "too long to be mended", resume=len(text))
        sign = text[at : at + 1]
        if sign == "{":
            return self._object(depth)
        if sign == "[":
            self._enter(depth)
            items: list[object] = []
            self._blanks()
            while not self._ends("]", may_close=bool(items)):
                items.append(self.value(depth + 1))
                self._blanks()
                if not self._comma("]"):
                    break
            return items
        if self._rules.payloads and text.startswith(PAYLOAD_START, at + (sign in _CLOSERS)):
            quoted = sign in _CLOSERS
            start = at + quoted + len(PAYLOAD_START)
            end = text.find(PAYLOAD_END, start)
            if end < 0:
                raise NotJsonError(at, "a payload is never closed", resume=len(text), at_end=True, payload=True)
            self.at = end + len(PAYLOAD_END)
            if quoted:
                if text[self.at : self.at + 1] not in _CLOSERS[sign] or self.at >= len(text):
                    raise self._unexpected()
                self.at += 1
                self.repairs.add("payload_quotes")
            return text[start:end]
        if sign in _CLOSERS:
            return self._string()
        if number := _NUMBER.match(text, at):
            self.at = number.end()
            digits = number.group()
            if digits.lstrip("-").isdigit():
                return int(digits)
            if math.isinf(made := float(digits)):
                raise NotJsonError(at, f"the number {digits[:60]} is too large", refused=True)
            return made
        if (word := _WORD.match(text, at)) and word.group() in LITERALS:
            self.at = word.end()
            if word.group()[0].isupper():
                self.repairs.add("literal")
            return LITERALS[word.group()]
        if word and word.group() in _NO_NUMBERS:
            raise NotJsonError(at, f"{word.group()} is no JSON number", refused=True)
        raise self._unexpected()

    def _object(self, depth: int) -> object:
        self._enter(depth)
        self._blanks()
        if self._text.startswith("{", self.at):
            inner_at = self.at
            inner = self._object(depth + 1)  # `{{…}}`, as a template shows it that was never filled in
            self._blanks()
            if self._text.startswith(",", self.at):  # several objects in braces, each to be read by itself
                raise NotJsonError(self.at, "unexpected ','", resume=inner_at)
            self._expect("}")
            self.repairs.add("braces")
            return inner
        is_call = self._is_call
        pairs: list[tuple[str, object]] = []
        while not self._ends("}", may_close=bool(pairs)):
            text = self._text
            if self.at < len(text) and text[self.at] in _CLOSERS:
                key = self._string(is_name=True)
            else:
                word = _WORD.match(text, self.at)
                if word is None or word.group().startswith(PAYLOAD_START):  # payloads are values only
                    raise self._unexpected()
                self.at = word.end()
                self.repairs.add("key")
                key = word.group()
            self._blanks()
            self._expect(":")
            self._blanks()
            if is_call and key in _NAMES and self._text[self.at : self.at + 1] in _CLOSERS:
                pairs.append((key, self._string(is_name=True)))
            else:  # what the arguments of a call hold is never a name
                self._is_call = is_call and key in _HOLD_CALLS
                pairs.append((key, self.value(depth + 1)))
                self._is_call = is_call
            self._blanks()
            if not self._comma("}"):
                break
        return merge_pairs(pairs)

    def _enter(self, depth: int) -> None:
        if depth >= MOST_NESTED:
            raise too_deep(self._text, self.at)
        self.at += 1

    def _ends(self, bracket: str, *, may_close: bool) -> bool:
        """Whether the list or object ends here, after its opening bracket or a comma."""
        if self._text.startswith(bracket, self.at):
            self.at += 1
            if may_close:  # a comma stood before it
                self.repairs.add("comma")
            return True
        return False

    def _comma(self, bracket: str) -> bool:
        """Whether another member follows; steps over the comma or the closing bracket."""
        sign = self._text[self.at : self.at + 1]
        if sign == ",":
            self.at += 1
            self._blanks()
            return True
        if sign == bracket:
            self.at += 1
            return False
        if (self._rules.at_end and not sign) or self._text.startswith(self._rules.marks, self.at):
            self.repairs.add("bracket")
            return False
        raise self._unexpected()

    def _string(self, *, is_name: bool = False) -> str:
        """The text in quotes. In a name a backslash before punctuation is Markdown's, not part of it."""
        text, opening = self._text, self.at
        opener = text[opening]
        closers, run = _CLOSERS[opener], _RUNS[opener]
        at = opening + 1
        parts: list[str] = []
        while True:
            match = run.match(text, at)
            assert match is not None  # noqa: S101  # an empty run matches everywhere
            parts.append(match.group())
            at = match.end()
            if at >= len(text):
                raise NotJsonError(opening, "a string is open at the end", resume=len(text), at_end=True)
            if text[at] in closers:
                break
            sign, at = self._escape(at, is_name=is_name)
            parts.append(sign)
        self.at = at + 1
        if opener != '"':
            self.repairs.add("quotes")
        made = "".join(parts)
        if _RAW_CONTROL.search(text, opening, at):
            self.repairs.add("control")
        return made

    def _escape(self, at: int, *, is_name: bool) -> tuple[str, int]:
        """The sign that the escape at `at` stands for, and where the string goes on."""
        text = self._text
        sign = text[at + 1 : at + 2]
        if not sign:
            raise NotJsonError(at, "the text ends inside a string", resume=len(text), at_end=True)
        if sign in _ESCAPES:
            if sign == "'":
                self.repairs.add("quotes")
            return _ESCAPES[sign], at + 2
        if sign in _CLOSERS:
            return sign, at + 2
        if is_name and sign in _PUNCTUATION:
            self.repairs.add("escape")
            return sign, at + 2
        digits = _HEX.match(text, at + 2) if sign == "u" else None
        if digits is None:
            raise NotJsonError(
                at, f"unexpected {text[at : at + 2]!r} in a string", at_end=sign == "u" and at + 6 > len(text)
            )
        code = int(digits.group(), 16)
        if not 0xD800 <= code <= 0xDFFF:  # noqa: PLR2004  # the range of surrogates
            return chr(code), at + 6
        low = _HEX.match(text, at + 8) if text.startswith("\\u", at + 6) else None
        if low is None or not (code < 0xDC00 <= int(low.group(), 16) <= 0xDFFF):  # noqa: PLR2004  # the same
            raise NotJsonError(at, "half of a \\u pair stands alone")
        return chr(0x10000 + ((code - 0xD800) << 10) + int(low.group(), 16) - 0xDC00), at + 12

    def _expect(self, sign: str) -> None:
        if not self._text.startswith(sign, self.at):
            raise self._unexpected()
        self.at += 1

    def _blanks(self) -> None:
        text = self._text
        while True:
            self.at = skip_blanks(text, self.at)
            if text.startswith(("//", "#"), self.at):
                self._comment("\n")
            elif text.startswith("/*", self.at):
                self._comment("*/")
            else:
                return

    def _comment(self, ending: str) -> None:
        text, start = self._text, self.at
        end = text.find(ending, start, start + MOST_COMMENT_CHARS)
        if end < 0:
            raise NotJsonError(start, "a comment is not closed", at_end=start + MOST_COMMENT_CHARS > len(text))
        self.at = end + len(ending)
        self.repairs.add("comment")

    def _unexpected(self) -> NotJsonError:
        text, at = self._text, self.at
        if at >= len(text):
            return NotJsonError(at, "the text ends inside the value", resume=len(text), at_end=True)
        return NotJsonError(at, f"unexpected {text[at]!r}")


_STRICT_MAY: frozenset[Repair] = frozenset({"braces", "payload_quotes"})


@dataclass(frozen=True, slots=True)
class Value:
    """A decoded value and its end. `repaired`: strict JSON says something else, or nothing."""

    value: object
    end: int
    repaired: bool = False

    @property
    def warnings(self) -> frozenset[ReplyWarning]:
        return REPAIRED if self.repaired else NO_WARNINGS


REPAIRED: frozenset[ReplyWarning] = frozenset({"repaired_json"})
NO_WARNINGS: frozenset[ReplyWarning] = frozenset()


def read(text: str, start: int, rules: Rules = LENIENT) -> Value:
    """The value that begins exactly at `start`, by rungs 0 to 2. Raises `NotJsonError`."""
    refused: NotJsonError | None = None
    try:
        value, end = decode(text, start)
        if not rules.payloads or text.find(PAYLOAD_START, start, end) < 0:
            return Value(value, end)
    except NotJsonError as error:
        if error.refused:
            raise
        refused = error
    try:
        value, end, repairs = mend(text, start, rules)
    except NotJsonError as error:
        if refused is not None and not rules.lossless and not error.payload:
            raise refused from error
        raise
    if refused is not None and not rules.lossless and not repairs <= _STRICT_MAY:
        raise refused
    return Value(value, end, repaired=bool(repairs))


def value_end(text: str, start: int) -> tuple[int, int]:
    """The end of the value at `start`, or -1, and where to look further."""
    try:
        end = read(text, start, Rules(is_call=True)).end
    except NotJsonError as error:
        return -1, max(start + 1, error.resume)
    return end, end
