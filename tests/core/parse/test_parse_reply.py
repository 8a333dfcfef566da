"""What replies are read as: one table, whose rows say why. Source: spec/react.md, sections 5 to 8."""

from collections.abc import Mapping
from typing import Any

from tools_for_parsing import TOOLS, calls, kind

from cases import cases
from surefoot.core.parse.reply import parse


@cases("parse/reply")
def test_a_reply_is_read_as_told(text: str, given: Mapping[str, Any], read: Mapping[str, object]) -> None:
    """`given` are the options of `parse`, `read` all that the row says of the outcome."""
    options: dict[str, Any] = {"tools": TOOLS, **given}
    parsed = parse(text, **options)
    told: dict[str, object] = {
        "calls": tuple(calls(parsed)),
        "fault": kind(parsed),
        "faults": tuple((faulty.position, faulty.error.kind) for faulty in parsed.errors),
        "warnings": set(parsed.warnings),
        "step": text[: parsed.used],
        "final": parsed.final,
        "content": parsed.content,
    }
    assert {name: told[name] for name in read} == read
