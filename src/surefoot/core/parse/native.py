"""Native calls: what a wire delivers beside the text. All of them count, in order; the text is commentary."""

from __future__ import annotations

from collections.abc import Sequence

from surefoot.core.parse.arguments import TRAILING, Arguments, arguments_at
from surefoot.core.parse.drafts import Draft, Found, Reading
from surefoot.core.parse.json_strict import NotJsonError, decode
from surefoot.types.messages import NativeCall
from surefoot.types.reply import Fault, ReplyWarning


def read_native(calls: Sequence[NativeCall], content: str, reading: Reading) -> Found:
    """The native calls of a reply."""
    warnings: set[ReplyWarning] = set()
    drafts = tuple(_draft(call, reading, warnings) for call in calls)
    return Found("native", drafts, content, frozenset(warnings))


def _draft(call: NativeCall, reading: Reading, warnings: set[ReplyWarning]) -> Draft:
    if not isinstance(call.arguments, str):
        return Draft(call.name, call.arguments, id=call.id)
    if call.arguments.strip() == "null":
        return Draft(call.name, {}, id=call.id)
    read = _plain(call.arguments) or _mended(call.arguments, call.name, reading)
    warnings |= read.warnings
    return read.draft(call.name, call.id)


def _plain(written: str) -> Arguments | None:
    """The arguments if they are what they should be: one JSON object."""
    if not written.startswith("{"):
        return None
    try:
        value, end = decode(written, 0)
    except NotJsonError:
        return None
    return Arguments(value) if end == len(written) and isinstance(value, dict) else None  # type: ignore[arg-type]  # a decoded object


def _mended(written: str, name: str, reading: Reading) -> Arguments:
    read = arguments_at(written, 0, (), reading, name, native=True)
    rest = written[read.end :].strip()
    if read.fault is None and rest:
        if rest.startswith(("{", "[")):
            fault = Fault("malformed_json", f"more than one value; the second begins at character {read.end + 1}", name)
            return Arguments(fault=fault, end=read.end)
        return Arguments(read.value, None, read.end, read.warnings | TRAILING)
    return read
