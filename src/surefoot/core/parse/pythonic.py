"""The family pythonic: calls with keyword literals, in a list or one after the other, as all of the text.

Without the brackets of a list only calls of offered tools are meant: else every line of code would be one. What stands
between two marks is found in `tags`. Literals are read by code of our own, not the compiler's: in linear time and
bounded depth on any input, without warnings about odd escapes printed into somebody's program, and one bad argument
does not take the calls around it along. Source: spec/react.md, section 5.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from surefoot.core.parse.calls import Draft, Found, Reading
from surefoot.core.parse.objects import LITERALS, read
from surefoot.core.parse.scan import MOST_CALLS, MOST_NESTED, NotJsonError, skip_blanks
from surefoot.core.parse.toolset import without_escapes
from surefoot.core.text.json import as_list
from surefoot.types.dataclass import dataclass
from surefoot.types.reply import Fault

_MOST_SKIMS = 10  # broken calls whose end may be looked for by their brackets without being found; each costs time

_NAME = r"[^\W\d](?:[\w.-]|\\{1,2}_)*+"  # Markdown escapes an underscore, and JSON the escape
_LIST = re.compile(r"\s*+\[\s*+[^\W\d](?:[\w.]|\\_)*+\s*+\(")
_QUOTED = re.compile(rf"""\s*+\[\s*+["']\s*+{_NAME}\(""")
_KEY = re.compile(r"\s*+(?P<key>[^\W\d](?:\w|\\_)*+)\s*+=(?!=)\s*+")


@dataclass(frozen=True, slots=True)
class _Shape:
    """How calls stand side by side. `next`: the end of a broken call before another; `closes`: what ends the whole."""

    call: re.Pattern[str]
    between: re.Pattern[str]
    end: re.Pattern[str]
    next: re.Pattern[str]
    closes: str


_LISTED = _Shape(
    re.compile(rf"\s*+(?P<name>{_NAME})\s*+\("),
    re.compile(r"\s*+,"),
    re.compile(r"\s*+,?\s*+\]"),
    re.compile(rf"\)\s*+,(?=\s*+{_NAME}\s*+\()"),
    "]",
)
_IN_LINES = _Shape(
    re.compile(rf"\s*+(?P<name>{_NAME})\("),
    re.compile(r"[ \t\r]*+[;,\n][\s;,]*+"),
    re.compile(r"[\s;,]*+\Z"),
    re.compile(rf"\)[ \t\r]*+[;,\n](?=[\s;,]*+{_NAME}\()"),
    ");",
)
_IN_CODE = _Shape(  # in the same lines, which may print what the calls give
    re.compile(rf"\s*+(?:print\(\s*+)?(?P<name>{_NAME})\("),
    re.compile(r"(?:\s*+\))?[ \t\r]*+[;,\n][\s;,]*+"),
    re.compile(r"(?:\s*+\))?[\s;,]*+\Z"),
    re.compile(rf"\)(?:\s*+\))?[ \t\r]*+[;,\n](?=[\s;,]*+(?:print\(\s*+)?{_NAME}\()"),
    ");",
)


def read_bare_pythonic(text: str, reading: Reading) -> Found | None:
    """The calls, if all of the text is a list of them, or calls of offered tools one after the other, or quoted so."""
    if _LIST.match(text) is not None:
        calls = _Calls(text, reading, _LISTED)
        found = calls.read()
        prose = text[found.end :].strip() if found.end >= 0 else not calls.closed and not _is_cut(found)
        return None if prose else found
    return _quoted(text, reading) if _QUOTED.match(text) is not None else _in_lines(text, reading)


def read_code(text: str, reading: Reading) -> Found | None:
    """The calls, if all of the text is calls, printed or not, and one is of an offered tool; else it is an example."""
    if _LIST.match(text) is not None or _QUOTED.match(text) is not None:
        return read_bare_pythonic(text, reading)
    calls = _Calls(text, reading, _IN_CODE)
    found = calls.read()
    is_offered = any(reading.offered.find(draft.name).tool is not None for draft in found.drafts)
    return found if is_offered and not calls.prose and (found.end >= 0 or calls.closed or _is_cut(found)) else None


def read_list(text: str, reading: Reading, *, has_end: bool) -> Found:
    """What stands between two tokens: a list of calls, with or without its brackets."""
    return _Calls(text, reading, _LISTED, has_end=has_end).read()


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
    return None if text[value.end :].strip() else Found("pythonic", tuple(drafts), "", value.warnings, end=value.end)


def _is_cut(found: Found) -> bool:
    return any(draft.fault is not None and draft.fault.kind == "truncated" for draft in found.drafts)


class _Calls:
    """Reads calls; a broken one costs little of its neighbours. `prose`: something else stands among bare ones."""

    def __init__(self, text: str, reading: Reading, shape: _Shape, *, has_end: bool = False) -> None:
        self._text = text
        self._reading = reading
        self._shape = shape
        self.closed = has_end or text.rstrip()[-1:] in shape.closes
        self.prose = False
        self._framed = False
        self._is_open = False
        self._skims = _MOST_SKIMS

    def read(self) -> Found:
        text, shape = self._text, self._shape
        drafts: list[Draft] = []
        at = len(text) - len(text.lstrip())
        at += shape is _LISTED and text.startswith("[", at)
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
        key = ""
        try:
            for _ in reader.members(")"):  # up to behind the bracket that closes the call
                if (keyed := _KEY.match(text, reader.at)) is None:
                    raise NotJsonError(reader.at, "give every argument by name", at_end=reader.at >= len(text))  # noqa: TRY301  # as others are
                reader.at, key = keyed.end(), without_escapes(keyed["key"])
                value = reader.value()
                if key in arguments:
                    raise NotJsonError(reader.at, "it is given twice")  # noqa: TRY301  # as others are
                arguments[key] = value
        except NotJsonError as error:
            start, shape = call.end(), self._shape
            after = skim(text, start) if self._skims > 0 else -1
            if after >= 0 and (shape.end.match(text, after) or shape.between.match(text, after)):
                self._framed = True
            else:
                self._skims -= 1
                self._is_open = error.at_end
                self.prose = self.prose or not (_KEY.match(text, start) or start >= len(text))
                following = None if error.at_end else shape.next.search(text, max(start, error.position))
                after = following.start() + 1 if following else -1
            cut = not self.closed and (self._reading.cut or error.at_end) and after < 0
            told = f"{key}: {error.message}" if key else error.message
            return Draft(name, fault=Fault("truncated" if cut else "malformed_arguments", told, name)), after
        self._framed = True
        return Draft(name, arguments), reader.at


MOST_SKIMMED_CHARS = 20_000
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F_]++|0[oO][0-7_]++|0[bB][01_]++|(?:[0-9][0-9_]*+(?:\.[0-9_]*+)?|\.[0-9][0-9_]*+)(?:[eE][+-]?[0-9]++)?)"
)
_BASED = re.compile(r"[+-]?0[xXoObB]")
_WHOLE = re.compile(r"[+-]?(?:[0-9]++|0[xXoObB].*)")
_CONSTANT = re.compile(r"[^\W\d]\w*+")
_PREFIXED = re.compile(r"""(?P<prefix>[rRuU]?)(?P<quote>'''|\"""|'|")""")
_QUOTES = {"'": r"\n", '"': r"\n", "'''": "", '"""': ""}
"""Quotation marks, and what a text in them cannot hold beside its mark and a backslash."""
_RUNS = {quote: re.compile(rf"[^{quote[0]}\\{newline}]*+") for quote, newline in _QUOTES.items()}
_ESCAPES = {
    "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\n": "",
}  # fmt: skip
_CODE_ESCAPES = {"x": 2, "u": 4, "U": 8}  # hex digits behind an escape that gives the number of a character
_HEX = re.compile(r"[0-9a-fA-F]++")
_OCTAL = re.compile(r"[0-7]{1,3}")
_KEYWORDS = frozenset({"and", "or", "not", "in", "is", "if", "else", "for", "lambda", "await", "async"})
_SKIMMED = re.compile(
    r"""(?P<space>[ \t\r\n]++)|(?P<string>(?:[rRuUbBfF]{1,2})?(?:'(?:[^'\\\n]|\\.)*+'|"(?:[^"\\\n]|\\.)*+"))"""
    r"|(?P<atom>[\w.]++)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<other>[^\w\s'\"()\[\]{}])",
    re.DOTALL,
)
_CLOSES = {"(": ")", "[": "]", "{": "}"}


class LiteralReader:
    """Reads literals from a text, one after the other; `at` is the place of the next sign."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at

    def blanks(self) -> None:
        self.at = skip_blanks(self.text, self.at)

    def value(self, depth: int = 0) -> object:
        """The literal at this place. Raises `NotJsonError`."""
        text, at = self.text, self.at
        if depth > MOST_NESTED:
            raise NotJsonError(at, "nested too deeply")
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
                    raise NotJsonError(self.at, f"the key {key[:60]!r} is given twice")
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
                raise NotJsonError(self.at, "two texts stand side by side")
            return made
        if number := _NUMBER.match(text, at):
            self.at = number.end()
            digits = number.group().replace("_", "")
            try:
                made = int(digits, 0 if _BASED.match(digits) else 10) if _WHOLE.fullmatch(digits) else float(digits)
            except ValueError as error:
                raise NotJsonError(at, f"{number.group()[:60]} is no number") from error
            if isinstance(made, float) and not math.isfinite(made):
                raise NotJsonError(at, f"the number {number.group()[:60]} is too large")
            return made
        name = _CONSTANT.match(text, at)
        if name and name.group() in LITERALS:
            self.at = name.end()
            return LITERALS[name.group()]
        raise self.unexpected()

    def unexpected(self) -> NotJsonError:
        """What to say about the sign at this place."""
        if self.at >= len(self.text):
            return NotJsonError(self.at, "the text ends there", at_end=True)
        return NotJsonError(self.at, f"unexpected {self.text[self.at : self.at + 20]!r}")

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
        at, run = opening.end(), _RUNS[quote]
        parts: list[str] = []
        while True:
            plain = run.match(text, at)
            assert plain is not None  # noqa: S101  # an empty run matches everywhere
            at = plain.end()
            if at >= len(text):
                raise NotJsonError(opening.start(), "a text is open at the end", at_end=True)
            parts.append(plain.group())
            if text.startswith(quote, at):
                self.at = at + len(quote)
                return "".join(parts)
            if text[at] == "\n":
                raise NotJsonError(at, "a line ends inside a text")
            if text[at] != "\\":  # one quotation mark, where it takes three
                part, at = text[at], at + 1
            else:
                part, at = (text[at : at + 2], at + 2) if raw else _escape(text, at)
            parts.append(part)


def _escape(text: str, at: int) -> tuple[str, int]:
    """The sign that the escape at `at` stands for, and where the text goes on. An unknown one stays as it is."""
    sign = text[at + 1 : at + 2]
    if sign in _ESCAPES:
        return _ESCAPES[sign], at + 2
    if octal := _OCTAL.match(text, at + 1):
        return chr(int(octal.group(), 8)), octal.end()
    if sign in _CODE_ESCAPES:
        end = at + 2 + _CODE_ESCAPES[sign]
        code = int(text[at + 2 : end], 16) if _HEX.fullmatch(text, at + 2, end) and end <= len(text) else -1
        if not 0 <= code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:  # noqa: PLR2004  # no character has that number
            raise NotJsonError(at, "an escape names no character")
        return chr(code), end
    return text[at : at + 2], at + 2


def skim(text: str, at: int) -> int:
    """The end of the bracket opened before `at`, if all in it reads like an expression, not too long; else -1."""
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
