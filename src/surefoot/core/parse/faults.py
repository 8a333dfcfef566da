"""What the model is told about a reply that could not be used: short, where it went wrong, and the form once.

Source: spec/react.md, section 9. Names and text from the reply are quoted and cut at 60 characters.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from difflib import get_close_matches

from surefoot.core.parse.marks import DEFAULT_LABELS, Labels
from surefoot.core.parse.toolset import offered_of, signature
from surefoot.types.reply import Fault, FaultKind, ReplyWarning
from surefoot.types.tools import Catalogue, ToolSpec

MOST_NAMES = 20
MOST_QUOTED_CHARS = 60
MOST_SCHEMA_CHARS = 1_200

_NEARNESS = 0.5


def tell(
    fault: Fault, tools: Catalogue | Sequence[ToolSpec] = (), mode: str = "native", labels: Labels = DEFAULT_LABELS
) -> str:
    """The message for one fault. `mode`: "native", "schema", "text" (or "react"), "tags", "thinker"."""
    offered = offered_of(tools)
    tool = offered.find(fault.tool).tool
    head, *rest = _MESSAGES[fault.kind]
    head = head.format(of=f" of {quoted(fault.tool)}" if fault.tool else "", tool=quoted(fault.tool))
    if fault.kind in _WITH_PARAMETERS and tool is not None:
        rest.insert(0, f"Its parameters: {signature(tool)}.")
    elif fault.kind == "invalid_arguments" and tool is not None:
        schema = json.dumps(tool.parameters, ensure_ascii=False, default=str)
        rest = [f"Expected: {schema[:MOST_SCHEMA_CHARS]}{'…' if len(schema) > MOST_SCHEMA_CHARS else ''}"]
    elif fault.kind == "unknown_tool":
        by_cut = {tool.name[:MOST_QUOTED_CHARS]: tool.name for tool in offered.tools}
        close = get_close_matches(fault.tool[:MOST_QUOTED_CHARS], list(by_cut), n=1, cutoff=_NEARNESS)
        rest = [f"The nearest name is {by_cut[name]}." for name in close if by_cut[name]]
    parts = [f"{head}: {fault.detail}." if fault.detail and fault.kind not in _WITHOUT_DETAIL else f"{head}.", *rest]
    if fault.kind in _WITH_FORM:
        parts.append(form(mode, labels))
    if fault.kind in _WITH_NAMES and offered.tools:
        names = [tool.name[:MOST_QUOTED_CHARS] for tool in offered.tools]
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        parts.append(f"Tools: {', '.join(names[:MOST_NAMES])}{more}.")
    return " ".join(parts)


def form(mode: str, labels: Labels = DEFAULT_LABELS) -> str:
    """The form that a step has in a mode, shown once."""
    match mode:
        case "native":
            return "Call a tool through the tool interface, with one JSON object of arguments, or answer in plain text."
        case "schema":
            return (
                'Write one JSON object: {"thought": "…", "action": "TOOL", "action_input": {…}}, or with "action": '
                f'"{labels.answer[0]}" and the answer as "action_input".'
            )
        case "tags":
            return (
                'Write <function_call>{"name": "TOOL", "call_objective": "why", "args": {…}}</function_call>, or the '
                "answer in <deliverable>…</deliverable> when the task is solved."
            )
        case "thinker":
            return (
                "Write <instruction>one thing that the Actor is to do</instruction> and <input>what it needs</input>, "
                "or TASK_DONE alone on a line when the task is solved."
            )
        case _:
            return (
                f"Write\n{labels.action[0]}: TOOL\n{labels.input[0]}: {{…}}\nor, when you know the answer,\n"
                f"{labels.answer[0]}: the answer"
            )


def tell_warnings(warnings: Collection[ReplyWarning]) -> str:
    """One line about what was not used of a reply; "" when all of it was."""
    told = [words for warning, words in _UNUSED.items() if warning in warnings]
    return f"Part of your reply was not used: {'; '.join(told)}." if told else ""


_UNUSED: dict[ReplyWarning, str] = {
    "hallucinated_observation": "you wrote an observation yourself, and all behind it was dropped",
    "hallucinated_result_removed": "you wrote a result yourself, and all behind it was dropped",
    "extra_actions_dropped": "only the first action was taken, or of very many calls the first",
    "action_dropped": "the action after the answer was dropped",
    "final_dropped": "an answer beside a call does not count; answer after the results",
}


def quoted(text: str) -> str:
    """Text from a reply, in quotes, on one line, cut."""
    line = " ".join(text[: MOST_QUOTED_CHARS + 1].split())
    return f'"{line[:MOST_QUOTED_CHARS]}…"' if len(text) > MOST_QUOTED_CHARS else f'"{line}"'


_MESSAGES: dict[FaultKind, tuple[str, ...]] = {
    "no_step": ("Neither an action nor a final answer was found",),
    "no_call": ("Neither a call nor an answer in its form was found",),
    "empty": ("The reply was empty",),
    "empty_final": ("The final answer was empty", "Give the answer behind its label."),
    "missing_action": ("The input has no action", "Name the action before its input."),
    "missing_action_input": ("The action{of} lacks its input; nothing was run",),
    "missing_name": ("A call names no tool", "Give the tool's name."),
    "malformed_json": ("The JSON{of} could not be read, and nothing was run", "Send plain JSON."),
    "malformed_arguments": (
        "The arguments{of} could not be read, and nothing was run",
        "Use literals, each with its name.",
    ),
    "args_not_object": ("The input{of} binds to no parameter; nothing was run", "Send a JSON object."),
    "invalid_arguments": ("The arguments{of} were refused, and nothing was run",),
    "unknown_tool": ("Unknown tool {tool}; nothing was run",),
    "truncated": (
        "The reply was cut off before the call{of} was complete; nothing was run",
        "Write a shorter call, or do it in parts.",
    ),
    "calls_not_allowed": ("No call may be made here; nothing was run", "Give your reason in words."),
    "invalid_output": ("The output does not have the shape that was asked for", "Give it again, whole."),
    "invalid_value": ("The output has the right shape, but not the values that are needed", "Give it again, whole."),
    "text_call": (
        "What looks like a call{of} stands in the words of your reply, and nothing was run",
        'A call may also be {"name": "TOOL", "arguments": {…}} and nothing else.',
        "If you mean none, give your answer without announcing one.",
    ),
}
"""What was wrong, and what to do."""

_WITH_PARAMETERS: frozenset[FaultKind] = frozenset({"missing_action_input", "args_not_object", "text_call"})
_WITHOUT_DETAIL: frozenset[FaultKind] = frozenset({"no_step", "empty", "unknown_tool"})
_WITH_FORM: frozenset[FaultKind] = frozenset(
    {"no_step", "no_call", "empty", "missing_action", "missing_name", "text_call"}
)
_WITH_NAMES: frozenset[FaultKind] = frozenset({"no_step", "no_call", "missing_action", "missing_name", "unknown_tool"})
