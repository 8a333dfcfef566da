"""The repair ladder: from strict JSON down to what may be mended, each rung only where it is allowed.

Rung 0 is `json_strict`, rungs 1 and 2 are `json_lossless` (`{{…}}` is the part of rung 1 that needs a decoder;
fences, words before, objects as text and wrapper keys are unwrapped where the form is known). No rung guesses, and
nothing that was cut off is completed. Source: spec/react.md, section 8.
"""

from __future__ import annotations

from surefoot.core.parse.json_lossless import NEVER, PAYLOAD_START, Closing, Repair
from surefoot.core.parse.json_lossless import decode as decode_lossless
from surefoot.core.parse.json_strict import NotJsonError
from surefoot.core.parse.json_strict import decode as decode_strict
from surefoot.types.dataclass import dataclass

_STRICT_MAY: frozenset[Repair] = frozenset({"braces", "payload_quotes"})


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
