"""Walking over a reply from left to right, once: where signs stand, where fences begin and end, what it holds.

Rung 0 of the repair ladder too: strict JSON, and where it ends. The standard library's decoder does the work; what it
lets through and JSON does not (NaN, Infinity, a key given twice with different values) is refused here. Source:
spec/react.md, section 8.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterator

from surefoot.core.text.json import inner_of, same_json
from surefoot.types.dataclass import dataclass

FENCES = (
    r"(?P<inline>(?<!`)(?:`{3,}+[^`\n]++`{3,}+"
    r"|`(?:[^`\n<{\[]++|(?:(?<=\w`)|(?<=\w `))(?:[<{]|\[TOOL)[^`\n]++)`(?!`)))"
    r"|(?P<fence>(?<!`)`{3,}+(?=[^`\n]*+$)|^[ \t]*+~{3,}+(?=[^\n]*+$))"
)
"""The opening of a code fence (`fence`); or code on one line (`inline`).

That is a fence, or a span that holds no call or stands behind a word, such as "use". Compile with MULTILINE.
"""

FENCE = re.compile(FENCES, re.MULTILINE)

BLANKS = re.compile(r"[\s\ufeff]*+")

_OPENING = re.compile(r"(?P<run>`{3,}+|~{3,}+)[ \t]*+(?P<info>[^\n`]*+)(?:\n|\Z)")
_OPENING_OF_VALUE = re.compile(r"(?:`{3,}+|~{3,}+)[ \t]*+\w*+[ \t]*+(?=[{\[])")
_CLOSING = re.compile(r"^[ \t]*+(?P<run>`{3,}+|~{3,}+)[ \t\r]*+$", re.MULTILINE)


MOST_CALLS = 128
"""Calls that are taken from one reply; nobody means more, and each costs time. Readers stop once they have one more."""

MOST_BRACKETS = 200
"""Brackets in prose that are tried as the beginning of a JSON value and open none; after that, brackets are text."""


def skip_blanks(text: str, at: int) -> int:
    """The place of the first sign from `at` on that is neither white space nor a byte order mark."""
    found = BLANKS.match(text, at)
    return found.end() if found else at


def first_bracket(text: str, start: int, end: int) -> int:
    """Where the first bracket stands that may open a JSON value; -1 if there is none."""
    found = _BRACKET.search(text, start, end)
    return found.start() if found else -1


_BRACKET = re.compile(r"[{\[]")


EDGES = re.compile(r"\A\r?\n|\r?\n\Z")  # newlines around a value between tags that belong to the form: one on each side


class Seeker:
    """Where a string stands next. Asked from left to right, all answers together cost one pass over the text."""

    __slots__ = ("_known", "_pairs", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._known: dict[str, tuple[int, int]] = {}
        self._pairs: dict[str, dict[int, int]] = {}

    def find(self, needle: str, start: int) -> int:
        """The first place from `start` on, or -1."""
        asked, found = self._known.get(needle, (-1, -2))
        if asked < 0 or start < asked or (found != -1 and found < start):
            found = self._text.find(needle, start)
            self._known[needle] = (start, found)
        return found

    def first(self, needles: tuple[str, ...], start: int) -> int:
        """The first place of any of the strings from `start` on, or -1."""
        places = [place for needle in needles if (place := self.find(needle, start)) != -1]
        return min(places, default=-1)

    def before(self, needle: str, others: tuple[str, ...], start: int) -> int:
        """The first place of `needle` from `start` on, unless one of the `others` stands before it; or -1."""
        found = self.find(needle, start)
        return found if found >= 0 and not 0 <= self.first(others, start) < found else -1

    def paired(self, opened: int, opening: str, closing: str) -> int:
        """Where the tag at `opened` is closed, if the tags in between are pairs, as in a quoted call; or -1."""
        if opening not in self._pairs:
            pairs, waiting = self._pairs.setdefault(opening, {}), list[int]()
            for tag in re.finditer(f"{opening}|{closing}", self._text):
                if tag.group() == opening:
                    waiting.append(tag.start())
                elif waiting:
                    pairs[waiting.pop()] = tag.start()
        return self._pairs[opening].get(opened, -1)


@dataclass(frozen=True, slots=True)
class Fence:
    """A code fence: its first sign, its content (from `inner` up to `inner_end`), and where the text goes on."""

    start: int
    inner: int
    inner_end: int
    end: int
    info: str
    closed: bool

    def content(self, text: str) -> str:
        return text[self.inner : self.inner_end]


def inside_fence(text: str, at: int) -> int:
    """Where the content of a fence begins whose run stands at `at`, or a value on its line; `at` without a fence."""
    opening = _OPENING_OF_VALUE.match(text, at) or _OPENING.match(text, at)
    return opening.end() if opening else at


def fence_at(text: str, at: int) -> Fence | None:
    """The fence whose run of back-ticks or tildes begins at `at`. One that is never closed goes on to the end."""
    opening = _OPENING.match(text, at)
    if opening is None:
        return None
    run = opening["run"]
    for closing in _CLOSING.finditer(text, opening.end()):
        if closing["run"].startswith(run):
            inner_end = max(opening.end(), closing.start() - 1)
            return Fence(at, opening.end(), inner_end, closing.end(), opening["info"].strip(), closed=True)
    return Fence(at, opening.end(), len(text), len(text), opening["info"].strip(), closed=False)


def past_fence(text: str, opening: re.Match[str]) -> int:
    """Where the text goes on behind the fence that a pattern with `FENCES` in it has found."""
    if opening["inline"]:
        return opening.end()
    run, at = opening["fence"].strip(), opening.end()
    while (closing := _CLOSING.search(text, at)) is not None:
        at = closing.end()
        if closing["run"].startswith(run):
            return at
    return len(text)


def outside_fences(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str] | None:
    """The next match from `at` on of a pattern with `FENCES` in it; the fences themselves are stepped over."""
    while (found := pattern.search(text, at)) is not None and (found["fence"] or found["inline"]):
        at = past_fence(text, found)
    return found


def whole_fence(text: str) -> Fence | None:
    """The fence that is all of the text, if it is one. A missing last line is as good as one: stop sequences cut it."""
    fence = fence_at(text, skip_blanks(text, 0))
    return fence if fence is not None and not text[fence.end :].strip() else None


_ESCAPE = re.compile(
    r"\\(?:u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u(?P<four>[0-9a-fA-F]{4})|U(?P<eight>[0-9a-fA-F]{8})|x(?P<two>[0-9a-fA-F]{2})|(?P<sign>.))",
    re.DOTALL,
)
_SIGNS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "0": "\0", "\n": ""}


class HeldText:
    """A text that is asked again and again what it holds; its forms without escapes are made once, when needed."""

    def __init__(self, text: str) -> None:
        self._forms = [text]

    def holds(self, value: object) -> bool:
        """Whether every text in a decoded value stands here: as it is, or with escapes, which may be doubled once."""
        for piece in texts_of(value):
            for depth in range(_MOST_ESCAPED + 1):
                if depth == len(self._forms):
                    self._forms.append(unescaped(self._forms[-1]))
                if piece in self._forms[depth]:
                    break
            else:
                return False
        return True


_MOST_ESCAPED = 2


def texts_of(value: object) -> Iterator[str]:
    """All texts in a decoded value; keys are no arguments."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        waiting += inner_of(item)


def unescaped(text: str) -> str:
    """The text with the escapes of JSON and Python replaced by what they stand for."""

    def sign_of(escape: re.Match[str]) -> str:
        if escape["high"]:
            return chr(0x10000 + ((int(escape["high"], 16) - 0xD800) << 10) + int(escape["low"], 16) - 0xDC00)
        code = escape["four"] or escape["eight"] or escape["two"]
        if code:
            number = int(code, 16)
            return chr(number) if number <= 0x10FFFF else escape.group()  # noqa: PLR2004  # the last character
        return _SIGNS.get(escape["sign"], escape["sign"])

    return _ESCAPE.sub(sign_of, text) if "\\" in text else text


MOST_NESTED = 200
"""Levels of nesting. What is nested deeper is refused everywhere, since encoders and journals give up soon after."""


@dataclasses.dataclass(eq=False)
class NotJsonError(Exception):
    """No JSON value begins there. `position` is where it went wrong, `resume` from where on it pays to look again.

    `at_end`: the text ended before the value did. `payload`: a payload was opened and never closed. `refused`: it is
    well formed and still no value that may be used (NaN, a key given twice, …), so that no repair could help.
    """

    position: int
    message: str
    resume: int = -1
    at_end: bool = False
    payload: bool = False
    refused: bool = False

    def __post_init__(self) -> None:
        super().__init__(self.message)
        self.resume = self.position if self.resume < 0 else self.resume


class _RefusedError(ValueError):
    """Well-formed, but nothing that may be taken for a value."""


def decode(text: str, start: int) -> tuple[object, int]:
    """The JSON value that begins exactly at `start`, and its end. Raises `NotJsonError`."""
    try:
        value, end = _raw_decode(_DECODER, text, start)
    except RecursionError as error:
        raise too_deep(text, start) from error
    except ValueError as error:  # refused by a hook below, or a whole number of thousands of digits
        try:
            end = _raw_decode(_ANY, text, start)[1]
        except (NotJsonError, RecursionError):
            end = len(text)
        raise NotJsonError(start, str(error), resume=end, refused=True) from error
    if end - start > 2 * MOST_NESTED and nested_deeper_than(value, MOST_NESTED):
        raise too_deep(text, start)
    if text.find("\\u", start, end) >= 0:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise NotJsonError(start, "half of a \\u pair stands alone", resume=end, refused=True) from error
    return value, end


def _raw_decode(decoder: json.JSONDecoder, text: str, start: int) -> tuple[object, int]:
    """What the decoder makes of the text, in ever larger windows, since it counts all lines before an error."""
    size = _FIRST_WINDOW
    while True:
        window = text[start : start + size]
        is_all = start + size >= len(text)
        try:
            value, end = decoder.raw_decode(window)
            if is_all or end < size:
                return value, start + end
        except json.JSONDecodeError as error:
            is_open = error.msg.startswith("Unterminated string") or error.pos + _NEAR_END >= size
            if is_all or not is_open:
                place, end = start + error.pos, start + len(window)
                if error.msg.startswith("Unterminated string"):
                    raise NotJsonError(place, "a string is open at the end", resume=end, at_end=True) from error
                if place >= end or (error.msg.startswith("Invalid \\") and place + 6 > end):
                    raise NotJsonError(end, "the text ends inside the value", at_end=True) from error
                raise NotJsonError(place, f"unexpected {error.doc[error.pos]!r}") from error
        size *= _WINDOW_GROWTH


_FIRST_WINDOW = 2_000
_WINDOW_GROWTH = 8
_NEAR_END = 16


def too_deep(text: str, start: int) -> NotJsonError:
    """The refusal of a value that is nested too deeply; nothing behind it is read either."""
    return NotJsonError(start, f"nested more than {MOST_NESTED} levels deep", resume=len(text), refused=True)


def merge_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The object of these members. Raises `ValueError` for a key that comes twice with different values."""
    made = dict(pairs)
    if len(made) != len(pairs):
        for key, value in pairs:
            if not same_json(made[key], value):
                raise _RefusedError(f'the key "{key[:60]}" is given twice with different values')
    return made


def nested_deeper_than(value: object, most: int) -> bool:
    """Whether lists and objects stand in each other in more than `most` levels. Does not recurse."""
    level = [value]
    for _ in range(most):
        level = [inner for item in level for inner in inner_of(item)]
        if not level:
            return False
    return True


def _constant(name: str) -> object:
    raise _RefusedError(f"{name} is no JSON number")


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise _RefusedError(f"the number {digits[:60]} is too large")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=merge_pairs, parse_constant=_constant, parse_float=_float)
_ANY = json.JSONDecoder(parse_int=str, parse_float=str)
