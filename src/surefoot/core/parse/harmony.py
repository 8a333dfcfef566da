"""The family harmony: messages in channels. Analysis is reasoning, final is the answer, the rest may call."""

from __future__ import annotations

import re

from surefoot.core.parse.arguments import arguments_at
from surefoot.core.parse.drafts import Draft, Found, Reading
from surefoot.core.parse.scan import MOST_CALLS, Seeker
from surefoot.types.reply import Fault, ReplyWarning

_START, _CHANNEL, _MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
_ENDS = ("<|end|>", "<|call|>", "<|return|>", _START, _CHANNEL)
_RECIPIENT = re.compile(r"\bto=(?P<name>[^\s<|]{1,200}+)")
_CHANNEL_NAME = re.compile(r"<\|channel\|>\s*+(?P<name>[a-z]{1,40}+)")


def read_harmony(text: str, start: int, reading: Reading) -> Found:
    """All messages from `start` on. The content is the final channel, else what commentary says to nobody."""
    seek = Seeker(text)
    drafts: list[Draft] = []
    warnings: set[ReplyWarning] = set()
    finals: list[str] = []
    asides: list[str] = []
    end = start
    at = start
    while at >= 0 and len(drafts) <= MOST_CALLS:
        body = seek.find(_MESSAGE, at)
        if body < 0:
            if _recipient(text[at : at + 1000], reading):
                drafts.append(Draft(fault=Fault("truncated", f"the reply ends before {_MESSAGE}")))
            break
        head = text[max(at, body - 1000) : body]
        body += len(_MESSAGE)
        stop = seek.first(_ENDS, body)
        stop = len(text) if stop < 0 else stop
        channel = _CHANNEL_NAME.search(head)
        channel_name = channel["name"] if channel else "final"
        name = _recipient(head, reading)
        end = stop
        if channel_name == "analysis":
            pass
        elif name:
            read = arguments_at(text, body, _ENDS[:4], reading, name, seek=seek)
            drafts.append(read.draft(name))
            warnings |= read.warnings
            end = read.end
            if not text.startswith("<|call|>", end):
                warnings.add("unclosed_tag")
        elif channel_name == "final":
            finals.append(text[body:stop])
        else:
            asides.append(text[body:stop])
        at = seek.first((_START, _CHANNEL), end)
    before = text[:start]
    content = before + "".join(finals or asides)
    final = "".join(finals).strip() if finals and not drafts else None
    if drafts and finals:
        warnings.add("final_dropped")
    if not drafts and not content.strip() and not finals:
        fault = Fault("truncated" if reading.cut else "empty", "there is nothing but analysis")
        return Found("harmony", (), "", frozenset(warnings), error=fault)
    if not drafts and final is not None and not final:
        fault = Fault("empty_final", "the final channel holds nothing")
        return Found("harmony", (), content, frozenset(warnings), error=fault)
    return Found("harmony", tuple(drafts), content, frozenset(warnings), final, end=-1 if not drafts else end)


def _recipient(head: str, reading: Reading) -> str:
    """The function that a message goes to; "" if it goes to none."""
    found = _RECIPIENT.search(head)
    if found is None:
        return ""
    name = found["name"]
    if name.startswith("functions."):
        return name.removeprefix("functions.")
    return name if reading.offered.find(name).tool is not None else ""
