"""What a model reads between its replies: what its calls gave, as data in the form of the mode, and what it is told.

Results are never parsed for calls, labels or answers, and must not look like them either: control tokens, call tags and
step labels in them are broken by a zero-width space in the view, while the journal keeps them as they were. All of it
stands at the end of what a role sees, and is not rewritten later. Source: spec/react.md, sections 4, 7, 9 and 10;
spec/reasoners.md, sections 3, 5, 7 and 8.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, cast

from surefoot.core.parse.frames import NO_FRAME, Frame, attribute, key_of, plain
from surefoot.core.parse.marks import DEFAULT_LABELS
from surefoot.core.parse.toolset import offered_of, signature
from surefoot.core.state.roles import TAGGED, THINKER
from surefoot.core.state.state import Call, State, Turn
from surefoot.core.state.window import READ_RESULT
from surefoot.core.text import json_text
from surefoot.core.text.words import nearest, table
from surefoot.core.view.shape import OTHER_SHAPE
from surefoot.types.events import Want
from surefoot.types.messages import CallMode
from surefoot.types.reply import Fault, FaultKind, ReplyWarning
from surefoot.types.tools import Catalogue, ToolResult, ToolSpec

Form = Literal["native", "schema", "text", "tags"]
"""How steps are written: a call mode, where text is the labels of ReAct or the tags of the two other reasoners."""

_LAST_WORD = (
    "The limit of this run is reached and no tool can be called any more. "
    "Give the best final answer from what is known so far, and say what is missing."
)
_DELIVER = "No tool can be called any more. Deliver now, from what is known so far; say what is missing."
_DELIVERABLE_FORM = (
    " Write\n<deliverable>\n<task_objective>what was asked</task_objective>\n"
    "<task_context>what the reader must know</task_context>\n"
    "<key_reasoning_points>how the result came about</key_reasoning_points>\n"
    "<final_output>the result itself</final_output>\n</deliverable>\nTASK_DONE"
)
_REPORT = "No tool can be called in this reply. Report in words what you did and what came of it."
_CONTINUE = "Your answer was cut off by the length limit. Go on exactly where it stopped, without repeating anything."
_MORE_ROOM = "There is more room now, and tools can be called again. Go on with the task until it is done."
_NO_WORDS = "Your reply held no words that can be used. Write the step's conclusion in prose; no tool can be called."
_NARRATED = "You wrote about using a tool, but called none. If you need it, call it now; else give the answer alone."
_WRAP_UP = "Rounds left: {left}. Wrap up: do only what is still needed, then finish."
_NO_TOOLS = Catalogue()


def form_in(state: State, mode: CallMode) -> Form:
    """The form in which steps are written in that call mode."""
    return "tags" if mode == "text" and state.reasoner in TAGGED else mode


def ask_for(state: State, want: Want, form: Form) -> str:
    """What a request asks for besides the next step; "" when any step will do."""
    match want:
        case "any" | "reasoning" | "isolated":
            return ""
        case "no_calls":
            return _REPORT
        case "answer" if state.reasoner in TAGGED:
            return _DELIVER if form == "schema" else _DELIVER + _DELIVERABLE_FORM
        case "answer":
            return _LAST_WORD


def note_for(state: State, turn: Turn, form: Form) -> str:
    """What a role is told about its reply: why it was not a good step, and that few rounds are left; "" for nothing."""
    lacked = "" if turn.outcome == "calls" and turn.calls and turn.want != "answer" else _lacked(state, turn, form)
    wrap_up = _WRAP_UP.format(left=turn.wrap_up) if turn.wrap_up and turn.want == "any" else ""
    return "\n\n".join(filter(None, (lacked, turn.progress_note, turn.conventions, wrap_up)))


def _lacked(state: State, turn: Turn, form: Form) -> str:
    if turn.want == "answer":
        return _MORE_ROOM if state.reasoner not in TAGGED or turn.outcome == "answer" else _fault(state, turn, form)
    match turn.outcome:
        case "empty" | "fault" | "no_step" if turn.want in ("reasoning", "isolated"):
            has_words = turn.parsed.error is not None and turn.parsed.error.kind in OTHER_SHAPE
            return _fault(state, turn, form) if has_words else _NO_WORDS
        case "cut":
            return _CONTINUE
        case "narrated":
            return _NARRATED
        case "calls" if turn.calls:
            return ""
        case "answer" | "instruction" | "refused":
            return ""
        case _:
            return _fault(state, turn, form)


def _fault(state: State, turn: Turn, form: Form) -> str:
    fault = turn.parsed.error or Fault("empty")
    return tell(fault, _NO_TOOLS, THINKER) if turn.role == THINKER else tell(fault, state.offered, form)


_REUSED = "(You have made this call already and it is not run again. Its result was the following; use it.)\n"
_NOT_AGAIN = (
    "(Already {done} as call {id}, so it was not {done} again. If the task is done, give the final answer; "
    "call it again only to do it once more. Its result was:)\n"
)

DIGEST_CHARS = 150  # characters of a folded text that are still shown
LONGEST_ARGUMENT = 400  # characters up to which a text in the arguments of an old call is never folded


def render_outcome(call: Call, offered: Catalogue, form: Form, frame: Frame = NO_FRAME) -> str:
    """The outcome of one call, as text; `frame` is how that of a tool is shown."""
    if call.fault is not None:
        return tell(call.fault, offered, form)
    if call.result is None:  # a fork, or a cancelled run, can leave a call that nobody will run any more
        return "cancelled: not run"
    text = render_result(call.result, call.known or call.id, frame, call.name)
    return _reuse(call) + text if call.known else text


def _reuse(call: Call) -> str:
    """What stands before the result of another call; that of a write must not be taken for a second one."""
    if call.is_told_once and call.result is not None:
        return _NOT_AGAIN.format(done="made" if call.result.is_error else "done", id=call.known)
    return _REUSED if call.known else ""


def render_result(result: ToolResult, call_id: str, frame: Frame = NO_FRAME, name: str = "") -> str:
    """A result as data; what is cut says how to read on."""
    text = frame.render(result.content, result.source or name, result.trust, is_error=result.is_error)
    if result.is_error and not text.startswith(result.kind):
        text = f"{result.kind}: {text}"
    if result.blob is None:
        return text
    read = len(result.content)
    return (
        f'{text}\n[cut: {read} of {result.size} characters; {READ_RESULT}(call_id="{call_id}", start={read}) goes on]'
    )


def is_ours(result: ToolResult) -> bool:
    """Whether the text of a result is surefoot's own."""
    return result.trust == "trusted" and result.source in ("gate", "surefoot")


def frame_of(state: State, call: Call) -> Frame:
    """How the outcome of a call is shown; without a guard, and for what surefoot says itself, in no frame."""
    gate, result = state.gate, call.result
    if gate is None or result is None or is_ours(result):
        return NO_FRAME
    return Frame(gate.nonce, gate.masks.get(key_of(result.content), ()) if gate.masks else ())


def digest(call: Call, whole: str, frame: Frame = NO_FRAME) -> str:
    """What stands for the outcome of an old call, and how to read it again; the outcome itself where that is short."""
    result = call.result
    if result is None or (len(whole) <= DIGEST_CHARS and not result.files):
        return whole
    call_id, start = call.known or call.id, 0
    if call.name == READ_RESULT and not result.is_error:  # the same piece again is the same call again
        call_id, start = attribute(str(call.arguments.get("call_id"))), call.arguments.get("start")
    kind = f"{result.kind}: " if result.is_error else ""
    again = f'{READ_RESULT}(call_id="{call_id}", start={start}) reads it again'
    source = attribute(result.source or call.name)
    made = folded_text(
        kind + frame.cleaned(result.content),
        max(result.size, len(result.content)),
        again,
        lambda text: frame.around(text, source, result.trust),
    )
    made = _reuse(call) + made if call.is_told_once else made
    return made if result.files or len(made) < len(whole) else whole


def folded_text(text: str, size: int, again: str, around: Callable[[str], str] = str) -> str:
    """The beginning of a text as data on one line; how long it is, and how it can be read again."""
    beginning = " ".join(text[: 4 * DIGEST_CHARS].split())[:DIGEST_CHARS]
    return f"{around(f'{plain(beginning)} …')}\n[folded: {size} characters{'; ' if again else ''}{again}]"


def shortened(value: object) -> object:
    """A JSON value with the beginning alone of each long text in it; the same object where there is none."""
    if isinstance(value, str):
        long = len(value) > LONGEST_ARGUMENT
        return f"{value[:DIGEST_CHARS]} … [folded: {len(value)} characters]" if long else value
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)  # decoded JSON
        short = {name: shortened(one) for name, one in members.items()}
        return short if any(short[name] is not one for name, one in members.items()) else members
    if isinstance(value, list):
        items = cast("list[object]", value)  # the same
        parts = [shortened(one) for one in items]
        return parts if any(a is not b for a, b in zip(parts, items, strict=True)) else items
    return value


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


MOST_NAMES = 20
MOST_QUOTED_CHARS = 60
MOST_SCHEMA_CHARS = 1_200


def tell(fault: Fault, tools: Catalogue | Sequence[ToolSpec] = (), mode: str = "native") -> str:
    """The message for one fault. `mode`: "native", "schema", "text" (or "react"), "tags", "thinker"."""
    offered = offered_of(tools)
    tool = offered.find(fault.tool).tool
    head, *rest = cast("list[str]", table("faults")["reply"][fault.kind])
    head = head.format(of=f" of {quoted(fault.tool)}" if fault.tool else "", tool=quoted(fault.tool))
    if fault.kind in _WITH_PARAMETERS and tool is not None:
        rest.insert(0, f"Its parameters: {signature(tool)}.")
    elif fault.kind == "invalid_arguments" and tool is not None:
        schema = json.dumps(tool.parameters, ensure_ascii=False, default=str)
        rest = [f"Expected: {schema[:MOST_SCHEMA_CHARS]}{'…' if len(schema) > MOST_SCHEMA_CHARS else ''}"]
    elif fault.kind == "unknown_tool" and tool is not None:  # it was not on offer for this reply
        return f"{quoted(tool.name)} cannot be called now; nothing was run. Call another tool, or answer."
    elif fault.kind == "unknown_tool":
        close = nearest(fault.tool, [tool.name for tool in offered.tools], 1)
        rest = [f"The nearest name is {name}." for name in close if name]
    parts = [f"{head}: {fault.detail}." if fault.detail and fault.kind not in _WITHOUT_DETAIL else f"{head}.", *rest]
    if fault.kind in _WITH_FORM:
        parts.append(form(mode))
    if fault.kind in _WITH_NAMES and offered.tools:
        names = [tool.name[:MOST_QUOTED_CHARS] for tool in offered.tools]
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        parts.append(f"Tools: {', '.join(names[:MOST_NAMES])}{more}.")
    return " ".join(parts)


def form(mode: str) -> str:
    """The form that a step has in a mode, shown once."""
    match mode:
        case "native":
            return "Call a tool through the tool interface, with one JSON object of arguments, or answer in plain text."
        case "schema":
            return (
                'Write one JSON object: {"thought": "…", "action": "TOOL", "action_input": {…}}, or with "action": '
                f'"{DEFAULT_LABELS.answer[0]}" and the answer as "action_input".'
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
                f"Write\n{DEFAULT_LABELS.action[0]}: TOOL\n{DEFAULT_LABELS.input[0]}: {{…}}\n"
                f"or, when you know the answer,\n{DEFAULT_LABELS.answer[0]}: the answer"
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


_WITH_PARAMETERS: frozenset[FaultKind] = frozenset({"missing_action_input", "args_not_object", "text_call"})
_WITHOUT_DETAIL: frozenset[FaultKind] = frozenset({"no_step", "empty", "unknown_tool"})
_WITH_FORM: frozenset[FaultKind] = frozenset(
    {"no_step", "no_call", "empty", "missing_action", "missing_name", "text_call"}
)
_WITH_NAMES: frozenset[FaultKind] = frozenset({"no_step", "no_call", "missing_action", "missing_name", "unknown_tool"})
