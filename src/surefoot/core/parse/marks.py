"""What opens a part of a reply: the labels of a ReAct step, deliverables, and the markers of the families of calls.

The first marker is found by one scan from left to right. Code fences, deliverables and JSON values are stepped over: a
marker in them is text. Markers that are special tokens count alone; those that look like tags count only with the start
of a body or their end tag behind them, since models also write about them. Source: spec/react.md, sections 3 to 6.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from textwrap import dedent
from typing import Literal

from surefoot.core.parse.objects import value_end
from surefoot.core.parse.scan import FENCE, FENCES, MOST_BRACKETS, Seeker, outside_fences, past_fence, skip_blanks
from surefoot.types.dataclass import dataclass

DELIVERABLE = "<deliverable>"
DELIVERABLE_END = "</deliverable>"
TASK_DONE = "TASK_DONE"
_LOOK_BACK = 200
PARTS = ("task_objective", "task_context", "key_reasoning_points", "final_output")


@dataclass(frozen=True, slots=True)
class Deliverable:
    """The body and its four parts. Missing parts are empty; without any part tags the body is the final output."""

    body: str
    task_objective: str = ""
    task_context: str = ""
    key_reasoning_points: str = ""
    final_output: str = ""

    @property
    def output(self) -> str:
        return self.final_output


def opens_at(text: str, at: int) -> bool:
    """Whether the tag at `at` stands where one may open: at a line start, or right after another tag."""
    begin = max(0, at - _LOOK_BACK)
    newline = text.rfind("\n", begin, at)
    before = text[max(begin, newline + 1) : at].rstrip()
    return before.endswith(">") or (not before and (newline >= 0 or begin == 0))


_LINE_END = re.compile(r"\r\n|\r|\n")


def body_of(text: str) -> str:
    """What stands between the tags, as an answer: common indentation and lines of only `TASK_DONE` removed, trimmed."""
    lines = [line for line in _LINE_END.split(text) if line.strip() != TASK_DONE]
    return dedent("\n".join(lines)).strip()


def parts_of(body: str) -> Deliverable:
    """The four parts of a body, in any order; a part goes up to its own closing tag, the last one to its last."""
    opened = sorted(
        (match.start(), name) for name in PARTS if (match := re.search(rf"(?m)^\s*<{name}>|(?<=>)<{name}>", body))
    )
    if not opened:
        return Deliverable(body, final_output=body)
    parts: dict[str, str] = {}
    for at, name in opened:
        start = body.index(f"<{name}>", at) + len(name) + 2
        find = body.rfind if at == opened[-1][0] else body.find
        end = find(f"</{name}>", start)
        parts[name] = body_of(body[start:end]) if end >= 0 else ""
    return Deliverable(body, **parts)


LabelKind = Literal["thought", "action", "input", "observation", "answer", "bare_answer", "question"]

RESULT_TAG = "<function_call_result>"
MOST_STOP_SEQUENCES = 4


@dataclass(frozen=True, slots=True)
class Labels:
    """The words that open a line of a step; prompts show the first.

    `bare_answer` counts only after a thought; `question` only ends an answer.
    """

    thought: tuple[str, ...] = ("Thought", "思考")
    action: tuple[str, ...] = ("Action", "行动")
    input: tuple[str, ...] = ("Action Input", "行动输入")
    observation: tuple[str, ...] = ("Observation", "观察")
    answer: tuple[str, ...] = ("Final Answer", "最终答案")
    bare_answer: tuple[str, ...] = ("Answer",)
    question: tuple[str, ...] = ("Question", "问题")


DEFAULT_LABELS = Labels()

KINDS: tuple[LabelKind, ...] = ("thought", "action", "input", "observation", "answer", "bare_answer", "question")


@lru_cache(maxsize=32)
def label_pattern(labels: Labels) -> re.Pattern[str]:
    """Matches a label with its colon at a line start (group: its kind), or a code fence (`FENCES`).

    Around the words may stand blanks, `*`, `_`, `#` and a number. Nothing in it backtracks over the line.
    """
    rows: list[str] = []
    for kind in KINDS:
        words = [r"[ \t_]*+".join(map(re.escape, name.split())) for name in getattr(labels, kind)]
        rows += [f"(?P<{kind}>{'|'.join(words)})"] if words else []
    label = rf"^[ \t]*+(?P<decoration>[*_# \t]*+)(?:{'|'.join(rows)})(?P<inner>[ \t*_#]*+(?:\d++[ \t*_#]*+)?)[:：]"
    return re.compile(f"{label}|{FENCES}", re.MULTILINE | re.IGNORECASE)


def is_answer_name(name: str, labels: Labels) -> bool:
    """Whether an action of this name means the final answer."""
    folded = ["".join(one.casefold().replace("_", " ").split()) for one in (name, *labels.answer)]
    return folded[0] in folded[1:]


def stop_sequences(labels: Labels = DEFAULT_LABELS) -> tuple[str, ...]:
    """Where a server may stop writing in text mode: before results, which are not the model's to write. At most four.

    They save tokens and protect nothing: the parser cuts there anyway.
    """
    observed = tuple(f"\n{word}" for word in labels.observation)
    return (*observed[: MOST_STOP_SEQUENCES - 1], RESULT_TAG)


FamilyName = Literal[
    "hermes", "qwen3_xml", "glm45", "mistral", "llama3_json", "pythonic", "deepseek_v3", "deepseek_v31",
    "deepseek_v32_dsml", "invoke", "kimi_k2", "harmony", "gemma", "tags", "fenced_json",
]  # fmt: skip

TOOL_CALL, TOOL_CALL_END = "<tool_call>", "</tool_call>"
FUNCTION = "<function="
FUNCTION_CALL, FUNCTION_CALL_END = "<function_call>", "</function_call>"
TOOL_CODE = "```tool_code"
V3_SEPARATOR = "function<｜tool▁sep｜>"
V3_CALL = "<｜tool▁call▁begin｜>"

_MOST_DOUBLED = 2  # opening tags in a row, before one body, that are looked through

_GLM_NAME = re.compile(r"(?P<name>[\w.:-]{1,200}+)(?=\s*+(?:<arg_key>|</tool_call>)|(?P<end>\s*+\Z))")
_QWEN_NAME = re.compile(r"<function=[^<>\s]{1,200}+")
_INVOKE = re.compile(r"<invoke\s++name=[^<>]{1,200}+>\s*+(?:<parameter\s|</invoke>)")
_PYTHON = re.compile(r"\s*+(?:print\(|\[)?\s*+[^\W\d](?:[\w.]|\\_)*+\(")
_CODE = re.compile(rf"[ \t\r]*+\n{_PYTHON.pattern}")
_GEMMA = re.compile(r"\s*+call:\s*+[\w.-]{1,200}+\s*+(?:[{<]|\Z)")
_QWEN_BODY = re.compile(r"\s*+>?\s*+(?:<parameter=|\{|</function>|</tool_call>|\Z)")


@dataclass(frozen=True, slots=True)
class Mark:
    """The first marker of a reply: the family that it stands for, where it stands, and where the text goes on."""

    family: FamilyName
    at: int
    end: int


def tool_call_family(text: str, at: int, seek: Seeker) -> FamilyName | None:
    """What the `<tool_call>` at `at` opens; None if it is only mentioned."""
    inside = skip_blanks(text, at + len(TOOL_CALL))
    for _ in range(_MOST_DOUBLED):
        if not text.startswith(TOOL_CALL, inside):
            break
        inside = skip_blanks(text, inside + len(TOOL_CALL))
    if _QWEN_NAME.match(text, inside):
        return "qwen3_xml"
    if text.startswith(("{", "[", "```", TOOL_CALL_END), inside):
        return "hermes"
    named = _GLM_NAME.match(text, inside)
    if named and (named["end"] is None or text[inside - 1] != " "):  # at the very end, behind a blank, it is a word
        return "glm45"
    return "hermes" if seek.before(TOOL_CALL_END, (TOOL_CALL,), inside) >= 0 else None


def function_call_family(text: str, at: int, seek: Seeker) -> FamilyName | None:
    """What the `<function_call>` at `at` opens; None if it is only mentioned."""
    inside = skip_blanks(text, at + len(FUNCTION_CALL))
    is_meant = text.startswith(("{", "[", "```", FUNCTION_CALL, FUNCTION_CALL_END), inside)
    return "tags" if is_meant or seek.before(FUNCTION_CALL_END, (FUNCTION_CALL,), inside) >= 0 else None


def function_family(text: str, at: int, seek: Seeker) -> FamilyName | None:
    """What the `<function=` at `at` opens; None if it is only mentioned."""
    named = _QWEN_NAME.match(text, at)
    is_meant = named is not None and (
        _QWEN_BODY.match(text, named.end()) is not None or seek.before("</function>", (FUNCTION,), named.end()) >= 0
    )
    return "qwen3_xml" if is_meant else None


def invoke_family(text: str, at: int, seek: Seeker) -> FamilyName | None:  # noqa: ARG001  # the shape of every row
    """What an `invoke` element at `at`, or a tag around some, opens; None if it is only mentioned."""
    inside = at if text.startswith("<invoke", at) else skip_blanks(text, text.index(">", at) + 1)
    if text.startswith("<function_calls>", at) and _PYTHON.match(text, inside):
        return "pythonic"
    return "invoke" if _INVOKE.match(text, inside) else None


def tool_code_family(text: str, at: int, seek: Seeker) -> FamilyName | None:  # noqa: ARG001  # the shape of every row
    """What a fence of `tool_code` at `at` opens, at the head of a line; None if no call follows."""
    is_first = not text[max(text.rfind("\n", max(0, at - _LOOK_BACK), at), at - _LOOK_BACK) + 1 : at].strip(" \t")
    return "pythonic" if is_first and _CODE.match(text, at + len(TOOL_CODE)) else None


def gemma_family(text: str, at: int, seek: Seeker) -> FamilyName | None:  # noqa: ARG001  # the shape of every row
    """What the token at `at` opens; None if no call follows: the words of others are like it."""
    return "gemma" if _GEMMA.match(text, text.index(">", at) + 1) else None


def _deepseek(text: str, at: int, seek: Seeker) -> FamilyName | None:  # noqa: ARG001  # the shape of every row
    call, separator = seek.find(V3_CALL, at), seek.find(V3_SEPARATOR, at)
    return "deepseek_v3" if separator >= 0 and (call < 0 or separator == call + len(V3_CALL)) else "deepseek_v31"


MARKERS: dict[str, FamilyName | Callable[[str, int, Seeker], FamilyName | None]] = {
    TOOL_CALL: tool_call_family,
    FUNCTION: function_family,
    FUNCTION_CALL: function_call_family,
    "[TOOL_CALLS]": "mistral",
    "<|python_tag|>": "llama3_json",
    "<|python_start|>": "pythonic",
    "<|tool_call_start|>": "pythonic",
    TOOL_CODE: tool_code_family,
    "<|tool_call>": gemma_family,
    "<start_function_call>": gemma_family,
    "<｜tool▁calls▁begin｜>": _deepseek,
    V3_CALL: _deepseek,
    "<｜DSML｜function_calls>": "deepseek_v32_dsml",
    "<｜DSML｜invoke": "deepseek_v32_dsml",
    "<minimax:tool_call>": invoke_family,
    "<function_calls>": invoke_family,
    "<invoke": invoke_family,
    "<|tool_calls_section_begin|>": "kimi_k2",
    "<|tool_call_begin|>": "kimi_k2",
    "<|channel|>": "harmony",
    "<|start|>assistant": "harmony",
}
"""Marker -> the family; or (text, its place, seeker) -> that, None if it is only mentioned. A new family is a row."""

RESULT = "<function_call_result"
INVENTED = rf"(?P<result>{RESULT}(?=[\s>])|<\|tool_response>|<start_function_response>)"
"""Matches what opens a result, which is not the model's to write."""

_MARKER = "|".join(re.escape(marker) for marker in MARKERS)
_ANY_MARKER = re.compile(_MARKER)
_STEP_ONLY = re.compile(rf"(?P<marker>{_MARKER})|{INVENTED}|(?P<deliverable>{DELIVERABLE})|{FENCES}", re.MULTILINE)
_STEP = re.compile(
    rf"(?P<marker>{_MARKER})|{INVENTED}|(?P<deliverable>{DELIVERABLE})|(?P<value>\{{)|{FENCES}",
    re.MULTILINE,
)


class Walk:
    """One walk over a visible text, which stops where something may be meant: at markers, deliverables and results.

    `end` is where the text goes on behind that; a marker that is a fence has its content with it.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._marker_at = -1
        self._tried = 0
        self.end = 0
        self.seek = Seeker(text)

    def following(self, at: int) -> re.Match[str] | None:
        """The next `marker`, `deliverable` or `result` (groups of the match) from `at` on."""
        text = self._text
        while True:
            pattern = _STEP if self._tried < MOST_BRACKETS else _STEP_ONLY
            step = outside_fences(pattern, text, at)
            if step is None or pattern is _STEP_ONLY or not step["value"]:
                if step is not None:
                    fence = FENCE.match(text, step.start()) if step["marker"] == TOOL_CODE else None
                    self.end = past_fence(text, fence) if fence is not None else step.end()
                return step
            at, goes_on = value_end(text, step.start())
            if at < 0:  # no value opens there: a marker in what was tried still counts
                self._tried, at = self._tried + 1, step.end()
                if self._marker_at < at:
                    marker = _ANY_MARKER.search(text, at)
                    self._marker_at = marker.start() if marker else len(text)
                at = max(at, min(goes_on, self._marker_at))


def first_mark(text: str, start: int = 0) -> Mark | None:
    """The first marker from `start` on that counts, or None. What follows an invented result is not a call."""
    if _ANY_MARKER.search(text, start) is None:
        return None
    walk = Walk(text)
    at = start
    while (step := walk.following(at)) is not None:
        at = walk.end
        if marker := step["marker"]:
            family = MARKERS[marker]
            if callable(family):
                family = family(text, step.start(), walk.seek)
            if family is not None:
                return Mark(family, step.start(), at)
        elif step["deliverable"]:
            at = past_deliverable(text, step.start(), walk.seek)
        else:
            return None
    return None


def past_deliverable(text: str, at: int, seek: Seeker) -> int:
    """Where the text goes on behind the deliverable that opens at `at`; behind the tag if it opens none."""
    if not opens_at(text, at):
        return at + len(DELIVERABLE)
    end = seek.find(DELIVERABLE_END, at)
    return end + len(DELIVERABLE_END) if end >= 0 else at + len(DELIVERABLE)
