"""The labels of a ReAct step: one table for the parser, the prompt templates and the stop sequences.

Source: spec/react.md, sections 3, 6 and 11.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from surefoot.core.parse.scan import FENCES
from surefoot.types.dataclass import dataclass

LabelKind = Literal["thought", "action", "input", "observation", "answer", "bare_answer", "question"]

RESULT_TAG = "<function_call_result>"
MOST_STOP_SEQUENCES = 4


@dataclass(frozen=True, slots=True)
class Labels:
    """The words that open a line of a step, any case, the first of each being the one that prompts show.

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


def words_of(labels: Labels, kind: LabelKind) -> tuple[str, ...]:
    """The words of one kind of label."""
    match kind:
        case "thought":
            return labels.thought
        case "action":
            return labels.action
        case "input":
            return labels.input
        case "observation":
            return labels.observation
        case "answer":
            return labels.answer
        case "bare_answer":
            return labels.bare_answer
        case "question":
            return labels.question


@lru_cache(maxsize=32)
def label_pattern(labels: Labels) -> re.Pattern[str]:
    """Matches a label with its colon at a line start (group: its kind), or a code fence (`FENCES`).

    Around the words may stand blanks, `*`, `_`, `#` and a number. Nothing in it backtracks over the line.
    """
    rows = "|".join(f"(?P<{kind}>{_words(words_of(labels, kind))})" for kind in KINDS if words_of(labels, kind))
    label = rf"^[ \t]*+(?P<decoration>[*_# \t]*+)(?:{rows})(?P<inner>[ \t*_#]*+(?:\d++[ \t*_#]*+)?)[:：]"
    return re.compile(f"{label}|{FENCES}", re.MULTILINE | re.IGNORECASE)


def _words(names: tuple[str, ...]) -> str:
    return "|".join(r"[ \t_]*+".join(map(re.escape, name.split())) for name in names)


def is_answer_name(name: str, labels: Labels) -> bool:
    """Whether an action of this name means the final answer."""
    folded = _folded(name)
    return any(folded == _folded(word) for word in labels.answer)


def _folded(name: str) -> str:
    return "".join(name.casefold().replace("_", " ").split())


def stop_sequences(labels: Labels = DEFAULT_LABELS) -> tuple[str, ...]:
    """Where a server may stop writing in text mode: before results, which are not the model's to write. At most four.

    They save tokens and protect nothing: the parser cuts there anyway.
    """
    observed = tuple(f"\n{word}" for word in labels.observation)
    return (*observed[: MOST_STOP_SEQUENCES - 1], RESULT_TAG)
