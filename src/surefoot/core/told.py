"""What a model reads as the outcome of a call: results as data, in the form of the mode.

Results are never parsed for calls, labels or answers, and must not look like them either: control tokens, call tags and
step labels in them are broken by a zero-width space in the view, while the journal keeps them as they were. Source:
spec/react.md, section 4, and spec/reasoners.md, section 3.
"""

from __future__ import annotations

import re

from surefoot.core.notes import Form
from surefoot.core.pager import READ_RESULT
from surefoot.core.parse.faults import tell
from surefoot.core.parse.labels import DEFAULT_LABELS, label_pattern
from surefoot.core.parse.visible import REASONING_TAGS
from surefoot.core.state import Call
from surefoot.core.text import json_text
from surefoot.types.tools import Catalogue, ToolResult

_TAGS = (
    "tool_call|tool_response|function_call|function_call_result|deliverable|instruction|input|actor_report|arg_key|"
    "arg_value|invoke|" + "|".join(REASONING_TAGS)
)
_CONTROL = re.compile(
    rf"<(?=[|｜]|/?(?:s|eos|bos|pad|unk)>|/?(?:start|end)_of_turn>|/?(?:{_TAGS})[\s>/]|/?(?:function|parameter)[=>])"
    r"|\[(?=/?(?:INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\])",
    re.IGNORECASE,
)
_LABEL = label_pattern(DEFAULT_LABELS)
_BREAK = "\u200b"
_REUSED = "(You have made this call already and it is not run again. Its result was the following; use it.)\n"


def told(call: Call, offered: Catalogue, form: Form) -> str:
    """The outcome of one call, as text."""
    if call.fault is not None:
        return tell(call.fault, offered, form)
    if call.result is None:  # a fork, or a cancelled run, can leave a call that nobody will run any more
        return "cancelled: not run"
    return (_REUSED if call.known else "") + shown(call.result, call.known or call.id)


def shown(result: ToolResult, call_id: str) -> str:
    """A result as data; what is cut says how to read on."""
    text = plain(result.content)
    if result.is_error and not text.startswith(result.kind):
        text = f"{result.kind}: {text}"
    if result.blob is None:
        return text
    read = len(result.content)
    return (
        f'{text}\n[cut: {read} of {result.size} characters; {READ_RESULT}(call_id="{call_id}", start={read}) goes on]'
    )


def plain(text: str) -> str:
    """The text with nothing in it that could act as a control token, a call or a label."""
    if "<" in text or "[" in text:
        text = _CONTROL.sub(lambda match: match.group() + _BREAK, text)
    if ":" in text or "：" in text:
        text = _LABEL.sub(_unlabelled, text)
    return text


def _unlabelled(match: re.Match[str]) -> str:
    """A label with a break before its colon; a code fence as it is."""
    return match.group() if match["fence"] else f"{match.group()[:-1]}{_BREAK}{match.group()[-1]}"


def attribute(text: str) -> str:
    """A text as the value of an attribute: it cannot end it, and stands on one line."""
    return plain(" ".join(text.split())).replace('"', "'").replace("<", "‹").replace(">", "›")


def observed(call: Call, text: str) -> str:
    """An observation that names the call it is of: a small model takes a bare value for whatever it looks for."""
    if call.fault is not None or not call.name:
        return f"Observation: {text}"
    arguments = ", ".join(f"{name}={plain(json_text(value))}" for name, value in call.arguments.items())
    return f"Observation: {call.name}({arguments}) gave\n{text}"


def tagged(call: Call, text: str) -> str:
    """The answer to a tagged call."""
    status = "SUCCEEDED" if call.result is not None and not call.result.is_error else "FAILED"
    source = call.result.source if call.result else "surefoot"
    trust = "trusted" if call.result and call.result.trust == "trusted" else "data"
    return (
        f'<function_call_result call="{call.position + 1}" name="{attribute(call.name)}" status="{status}" '
        f'source="{attribute(source)}" trust="{trust}">\n{text}\n</function_call_result>'
    )
