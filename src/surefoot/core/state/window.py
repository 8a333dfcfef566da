"""How much of a model's window a request takes, as far as that can be told before it is sent.

A text of n bytes counts as n / 4 tokens, rounded up (spec/primitives.md, 3.8). Where a server has counted more than
that for the last request, the estimate is stretched by as much; what it counts less is left as a margin. A result that
was cut or folded can be read on, or again, with the tool `READ_RESULT`.
"""

from __future__ import annotations

import re

from surefoot.core.text import json_text, object_schema
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.messages import ModelMessage, Usage
from surefoot.types.tools import Catalogue, ToolSpec

READ_RESULT = "read_result"  # the tool that reads on in a result that was cut or folded
TRAIT = "context_tokens"  # trait: how many tokens a request and its reply may have together
_BYTES_A_TOKEN = 4
_FRAME = 4  # tokens of a message beside its texts: its role, and where it begins and ends
_FOR_THE_REPLY = 1 / 8
_HIGH, _LOW = 0.85, 0.55
"""Shares of the rest: over the high one old results are folded until the low one, so that a prompt cache lives on."""

_MOST_STRETCH = 4.0
_LEAST_LIMIT = 256
_LIMIT = re.compile(
    r"(?:context length is|context size \(|context window of|tokens allowed \(|>) ?(\d[\d,]*)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Fit:
    """What a role still sees of its turns so that a request fits, in turns from the oldest on.

    The first `dropped` are not shown, up to `stripped` the calls' long arguments are folded and up to `folded` the
    results. `turns` are the tokens of the first `counted` turns as they are shown in `form`, `request` those of the
    whole request; both before they are stretched. `limit` is what an overflow said of the window.
    """

    form: str = ""
    counted: int = 0
    turns: int = 0
    request: int = 0
    folded: int = 0
    stripped: int = 0
    dropped: int = 0
    stretch: float = 1.0
    limit: int | None = None

    def level(self, at: int) -> int:
        """How a turn is shown: 0 whole, 1 its results folded, 2 its long arguments too."""
        return 0 if at >= self.folded else 1 if at >= self.stripped else 2


NO_FIT = Fit()


def text_tokens(text: str) -> int:
    """The tokens of a text."""
    return -(-_bytes(text) // _BYTES_A_TOKEN)


def message_tokens(message: ModelMessage) -> int:
    """The tokens of a message, with its calls, its files and what only its model can read."""
    size = _bytes(message.content)
    for call in message.calls:
        arguments = call.arguments if isinstance(call.arguments, str) else json_text(call.arguments)
        size += _bytes(call.id) + _bytes(call.name) + _bytes(arguments)
    if message.call_id:
        size += _bytes(message.call_id)
    if message.opaque:
        size += sum(_bytes(json_text(one)) for one in message.opaque)
    if message.files:
        size += sum(_BYTES_A_TOKEN * one.tokens for one in message.files)
    return _FRAME - (-size // _BYTES_A_TOKEN)


def catalogue_tokens(tools: Catalogue) -> int:
    """The tokens of declarations that travel natively; counted once a catalogue."""

    def count(all_: Catalogue) -> int:
        declared = (json_text([tool.name, tool.description, tool.parameters]) for tool in all_.tools)
        return sum(text_tokens(one) + _FRAME for one in declared)

    return tools.derived("tokens", count)


def marks(window: int, stretch: float) -> tuple[int, int]:
    """Over how many estimated tokens a request is folded, and until how many."""
    room = window * (1 - _FOR_THE_REPLY) / stretch
    return int(room * _LOW), int(room * _HIGH)


def stretched(fit: Fit, usage: Usage, requests: int, attempts: int) -> Fit:
    """Stretched by what the server counted more than was estimated, where it says that of one request alone."""
    if not fit.request or usage.estimated or usage.input_tokens <= 0 or attempts > 1:
        return fit
    stretch = min(_MOST_STRETCH, max(1.0, usage.input_tokens / max(1, requests) / fit.request))
    return fit if stretch == fit.stretch else replace(fit, stretch=stretch)


def limit_in(complaint: str) -> int | None:
    """The window that a server names when it complains of an overflow."""
    found = _LIMIT.search(complaint)
    limit = int(found[1].replace(",", "")) if found else 0
    return limit if limit >= _LEAST_LIMIT else None


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def pager_spec() -> ToolSpec:
    """The declaration of `READ_RESULT`."""
    return ToolSpec(
        READ_RESULT,
        "Read on in a result that was cut, or read one again that was folded.",
        object_schema(
            {
                "call_id": {"type": "string", "description": "the call whose result it is"},
                "start": {"type": "integer", "minimum": 0, "description": "the first character to read"},
            }
        ),
        effect="read",
        idempotent=True,
    )
