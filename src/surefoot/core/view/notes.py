"""What the runtime says to a model between its replies: what is asked for now, and what a reply lacked.

All of it stands at the end of what a role sees, and is not rewritten later. Source: spec/react.md, sections 7, 9 and
10; spec/reasoners.md, sections 5, 7 and 8.
"""

from __future__ import annotations

from typing import Literal

from surefoot.core.parse.faults import tell
from surefoot.core.state.roles import TAGGED, THINKER
from surefoot.core.state.state import State, Turn
from surefoot.types.events import Want
from surefoot.types.messages import CallMode
from surefoot.types.reply import Fault
from surefoot.types.tools import Catalogue

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
    """What a role is told about its reply: why it was no good step, and that few rounds are left; "" for nothing."""
    lines = [_lacked(state, turn, form), turn.progress_note, turn.conventions]
    if turn.wrap_up and turn.want == "any":
        lines.append(_WRAP_UP.format(left=turn.wrap_up))
    return "\n\n".join(line for line in lines if line)


def _lacked(state: State, turn: Turn, form: Form) -> str:
    if turn.want == "answer":
        return _MORE_ROOM if state.reasoner not in TAGGED or turn.outcome == "answer" else _fault(state, turn, form)
    match turn.outcome:
        case "empty" | "fault" | "no_step" if turn.want in ("reasoning", "isolated"):
            return (
                _NO_WORDS
                if turn.parsed.error is None or turn.parsed.error.kind != "invalid_output"
                else _fault(state, turn, form)
            )
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
