"""Python literals, read without evaluating anything: what a keyword argument of a pythonic call may hold.

Own code and not the compiler's, for three reasons: linear time and bounded depth on any input, no warnings about odd
escapes printed into somebody's program, and one bad argument does not take the calls around it along.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_NESTED = 100
MOST_SKIMMED_CHARS = 20_000

_BLANKS = re.compile(r"[ \t\r\n]*+")
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F_]++|0[oO][0-7_]++|0[bB][01_]++|(?:[0-9][0-9_]*+(?:\.[0-9_]*+)?|\.[0-9][0-9_]*+)(?:[eE][+-]?[0-9]++)?)"
)
_BASED = re.compile(r"[+-]?0[xXoObB]")
_WHOLE = re.compile(r"[+-]?(?:[0-9]++|0[xXoObB].*)")
_NAME = re.compile(r"[^\W\d]\w*+")
_PREFIXED = re.compile(r"""(?P<prefix>[rRuU]?)(?P<quote>'''|\"""|'|")""")
_RUNS = {"'": re.compile(r"[^'\\\n]*+"), '"': re.compile(r'[^"\\\n]*+')}
_CONSTANTS = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}
_ESCAPES = {
    "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\n": "",
}  # fmt: skip
_CODE_ESCAPES = {
    "x": re.compile(r"[0-9a-fA-F]{2}"),
    "u": re.compile(r"[0-9a-fA-F]{4}"),
    "U": re.compile(r"[0-9a-fA-F]{8}"),
}
_OCTAL = re.compile(r"[0-7]{1,3}")
_KEYWORDS = frozenset({"and", "or", "not", "in", "is", "if", "else", "for", "lambda", "await", "async"})
_SKIMMED = re.compile(
    r"""(?P<space>[ \t\r\n]++)|(?P<string>(?:[rRuUbBfF]{1,2})?(?:'(?:[^'\\\n]|\\.)*+'|"(?:[^"\\\n]|\\.)*+"))"""
    r"|(?P<atom>[\w.]++)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<other>[^\w\s'\"()\[\]{}])",
    re.DOTALL,
)
_CLOSES = {"(": ")", "[": "]", "{": "}"}


class NotLiteralError(Exception):
    """No literal stands there. `at_end`: the text ended inside of it."""

    def __init__(self, at: int, message: str, *, at_end: bool = False) -> None:
        super().__init__(message)
        self.at = at
        self.message = message
        self.at_end = at_end


@dataclass(slots=True)
class LiteralReader:
    """Reads literals from a text, one after the other; `at` is the place of the next sign."""

    text: str
    at: int = 0

    def blanks(self) -> None:
        """Step over white space."""
        found = _BLANKS.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def value(self, depth: int = 0) -> object:
        """The literal at this place. Raises `NotLiteralError`."""
        text, at = self.text, self.at
        if depth > MOST_NESTED:
            raise NotLiteralError(at, "nested too deeply")
        sign = text[at : at + 1]
        if sign == "{":
            self.at += 1
            members: dict[str, object] = {}
            for _ in self.members("}"):
                if not _PREFIXED.match(self.text, self.at):
                    raise self.unexpected()
                key = self._string()
                self.blanks()
                if not self.text.startswith(":", self.at):
                    raise self.unexpected()
                self.at += 1
                self.blanks()
                value = self.value(depth + 1)
                if key in members and members[key] != value:
                    raise NotLiteralError(self.at, f"the key {key[:60]!r} is given twice")
                members[key] = value
            return members
        if sign in ("[", "("):
            self.at += 1
            items: list[object] = []
            end = self.at
            for _ in self.members("]" if sign == "[" else ")"):
                items.append(self.value(depth + 1))
                end = self.at
            is_in_brackets = sign == "(" and len(items) == 1 and "," not in text[end : self.at]  # and no tuple
            return items[0] if is_in_brackets else items
        if _PREFIXED.match(text, at):
            made = self._string()
            self.blanks()
            if text[self.at : self.at + 1] in ("'", '"'):
                raise NotLiteralError(self.at, "two texts stand side by side")
            return made
        if number := _NUMBER.match(text, at):
            self.at = number.end()
            digits = number.group().replace("_", "")
            try:
                made = int(digits, 0 if _BASED.match(digits) else 10) if _WHOLE.fullmatch(digits) else float(digits)
            except ValueError as error:
                raise NotLiteralError(at, f"{number.group()[:60]} is no number") from error
            if isinstance(made, float) and not math.isfinite(made):
                raise NotLiteralError(at, f"the number {number.group()[:60]} is too large")
            return made
        name = _NAME.match(text, at)
        if name and name.group() in _CONSTANTS:
            self.at = name.end()
            return _CONSTANTS[name.group()]
        raise self.unexpected()

    def unexpected(self) -> NotLiteralError:
        """What to say about the sign at this place."""
        if self.at >= len(self.text):
            return NotLiteralError(self.at, "the text ends there", at_end=True)
        return NotLiteralError(self.at, f"unexpected {self.text[self.at : self.at + 20]!r}")

    def members(self, bracket: str) -> Iterator[None]:
        """Stop at each member in turn, for the caller to read it; at the end step over the closing bracket."""
        while True:
            self.blanks()
            if self.text.startswith(bracket, self.at):
                self.at += 1
                return
            yield
            self.blanks()
            if self.text.startswith(",", self.at):
                self.at += 1
            elif not self.text.startswith(bracket, self.at):
                raise self.unexpected()

    def _string(self) -> str:
        text = self.text
        opening = _PREFIXED.match(text, self.at)
        if opening is None:
            raise self.unexpected()
        quote, raw = opening["quote"], opening["prefix"] in ("r", "R")
        at = opening.end()
        if len(quote) > 1:
            end = text.find(quote, at)
            while end > at and text[end - 1] == "\\" and not raw:
                end = text.find(quote, end + 1)
            if end < 0:
                raise NotLiteralError(at, "a text is open at the end", at_end=True)
            self.at = end + len(quote)
            inner = text[at:end]
            if raw or "\\" not in inner:
                return inner
            parts: list[str] = []
            at = 0
            while (backslash := inner.find("\\", at)) >= 0:
                part, end = _escape(inner, backslash)
                parts += [inner[at:backslash], part]
                at = end
            return "".join([*parts, inner[at:]])
        run = _RUNS[quote]
        parts: list[str] = []
        while True:
            plain = run.match(text, at)
            if plain is not None:
                parts.append(plain.group())
                at = plain.end()
            if at >= len(text):
                raise NotLiteralError(opening.start(), "a text is open at the end", at_end=True)
            if text[at] == "\n":
                raise NotLiteralError(at, "a line ends inside a text")
            if text[at] == quote:
                self.at = at + 1
                return "".join(parts)
            part, at = (text[at : at + 2], at + 2) if raw else _escape(text, at)
            parts.append(part)


def _escape(text: str, at: int) -> tuple[str, int]:
    """The sign that the escape at `at` stands for, and where the text goes on. An unknown one stays as it is."""
    sign = text[at + 1 : at + 2]
    if sign in _ESCAPES:
        return _ESCAPES[sign], at + 2
    if octal := _OCTAL.match(text, at + 1):
        return chr(int(octal.group(), 8)), octal.end()
    digits = _CODE_ESCAPES[sign].match(text, at + 2) if sign in _CODE_ESCAPES else None
    if sign in _CODE_ESCAPES:
        code = int(digits.group(), 16) if digits else -1
        if digits is None or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:  # noqa: PLR2004  # no character has that number
            raise NotLiteralError(at, "an escape names no character")
        return chr(code), digits.end()
    return text[at : at + 2], at + 2


def skim(text: str, at: int) -> int:
    """The end of the bracket that was opened before `at`, if all up to there reads like an expression; else -1.

    An expression of more than `MOST_SKIMMED_CHARS` is given up.
    """
    limit = at + MOST_SKIMMED_CHARS
    expected = [")"]
    after_atom = ""
    while expected:
        token = _SKIMMED.match(text, at, limit)
        if token is None:
            return -1
        at = token.end()
        kind = token.lastgroup
        if kind == "space":
            continue
        if kind in ("string", "atom"):
            if token.group() in _KEYWORDS:
                after_atom = ""
                continue
            if after_atom and not (kind == after_atom == "string"):
                return -1
            after_atom = kind
        elif kind == "open":
            if token.group() == "{" and after_atom:
                return -1
            expected.append(_CLOSES[token.group()])
            after_atom = ""
        elif kind == "close":
            if token.group() != expected.pop():
                return -1
            after_atom = "atom"
        else:
            after_atom = ""
    return at
