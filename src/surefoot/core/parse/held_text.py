"""Did the reply hold this text? The check behind the promise that no argument says what the model did not write.

Source: spec/react.md, section 13.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

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
        return all(self._holds(piece) for piece in texts_of(value))

    def _holds(self, piece: str) -> bool:
        for depth in range(_MOST_ESCAPED + 1):
            if depth == len(self._forms):
                self._forms.append(unescaped(self._forms[-1]))
            if piece in self._forms[depth]:
                return True
        return False


_MOST_ESCAPED = 2


def texts_of(value: object) -> Iterator[str]:
    """All texts in a decoded value; keys are no arguments."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            waiting += cast("dict[str, object]", item).values()  # a JSON object
        elif isinstance(item, list):
            waiting += cast("list[object]", item)  # a JSON list


def unescaped(text: str) -> str:
    """The text with the escapes of JSON and Python replaced by what they stand for."""
    return _ESCAPE.sub(_sign_of, text) if "\\" in text else text


def _sign_of(escape: re.Match[str]) -> str:
    if escape["high"]:
        return chr(0x10000 + ((int(escape["high"], 16) - 0xD800) << 10) + int(escape["low"], 16) - 0xDC00)
    code = escape["four"] or escape["eight"] or escape["two"]
    if code:
        number = int(code, 16)
        return chr(number) if number <= 0x10FFFF else escape.group()  # noqa: PLR2004  # the last character
    return _SIGNS.get(escape["sign"], escape["sign"])
