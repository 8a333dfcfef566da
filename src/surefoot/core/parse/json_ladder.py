"""The repair ladder: from strict JSON down to what may be mended, each rung only where it is allowed.

Rung 0 is `json_strict`, rungs 1 and 2 are `json_lossless` (`{{…}}` is the part of rung 1 that needs a decoder;
fences, words before, objects as text and wrapper keys are unwrapped where the form is known), rung 3 is `json_repair`
behind all the conditions of spec/react.md, section 8. Nothing that was cut off is completed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from surefoot.core.parse.held_text import HeldText
from surefoot.core.parse.json_lossless import NEVER, PAYLOAD_START, Closing, Repair
from surefoot.core.parse.json_lossless import decode as decode_lossless
from surefoot.core.parse.json_strict import NotJsonError, as_object
from surefoot.core.parse.json_strict import decode as decode_strict

_STRICT_MAY: frozenset[Repair] = frozenset({"braces", "payload_quotes"})

MOST_MENDED_CHARS = 20_000
MOST_MENDED_BRACKETS = 64


@dataclass(frozen=True, slots=True)
class Rules:
    """What may be forgiven in a value: `lossless` is rung 2, `closing` says where brackets may be missing.

    `is_call`: the value is a call or holds calls, and not the arguments of one, so that its `name` is a name.
    """

    lossless: bool = True
    closing: Closing = NEVER
    payloads: bool = False
    is_call: bool = False


LENIENT = Rules()


@dataclass(frozen=True, slots=True)
class Value:
    """A decoded value and its end. `repaired`: strict JSON says something else, or nothing."""

    value: object
    end: int
    repaired: bool = False


def read(text: str, start: int, rules: Rules = LENIENT) -> Value:
    """The value that begins exactly at `start`, by rungs 0 to 2. Raises `NotJsonError`."""
    refused: NotJsonError | None = None
    try:
        value, end = decode_strict(text, start)
        if not rules.payloads or text.find(PAYLOAD_START, start, end) < 0:
            return Value(value, end)
    except NotJsonError as error:
        if error.refused:
            raise
        refused = error
    try:
        value, end, repairs = decode_lossless(
            text, start, rules.closing, payloads=rules.payloads, is_call=rules.is_call
        )
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


class Mending:
    """What may still be spent on rung 3 in one reply, in characters: it is slow, and a broken reply can be long."""

    __slots__ = ("_left",)

    def __init__(self, chars: int = MOST_MENDED_CHARS) -> None:
        self._left = chars

    def mend(self, text: str) -> dict[str, object] | None:
        """The one object that `json-repair` makes of the text; None if it makes something else or makes text up.

        The caller asks first whether this rung is allowed, and afterwards whether a tool's schema takes the result.
        """
        text = text.strip()
        if len(text) > self._left or not (text.startswith("{") and text.endswith("}")) or PAYLOAD_START in text:
            return None
        if text.count("{") + text.count("[") > MOST_MENDED_BRACKETS:
            return None
        self._left -= len(text)
        import json_repair  # noqa: PLC0415  # 25 ms of import, and most processes never get down to this rung

        try:
            made = json_repair.loads(text, skip_json_loads=True)
        except (ValueError, RecursionError, IndexError):
            return None
        mended = as_object(made)
        if mended is None or not HeldText(text).holds(mended) or _drops_a_key(mended, text):
            return None
        return dict(mended)


def _drops_a_key(made: Mapping[str, object], text: str) -> bool:
    """Whether the text seems to hold one of the keys more often than the object does: then one value was lost."""
    return any(
        len(re.findall(rf"""["']{re.escape(key)}["']\s*:""", text)) > count
        for key, count in Counter(_keys(made)).items()
    )


def _keys(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            members = cast("dict[str, object]", item)  # a JSON object
            yield from members
            waiting += members.values()
        elif isinstance(item, list):
            waiting += cast("list[object]", item)  # a JSON list
