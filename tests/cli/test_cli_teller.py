"""A run told in lines: events in, lines out."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from cli_world import cases

from surefoot.cli.teller import Teller
from surefoot.core.state.state import EMPTY
from surefoot.journal.codec import decode
from surefoot.telling.text import cut, visible
from surefoot.types.events import (
    VERSION,
    CallEnded,
    CallStarted,
    Event,
    ModelReplied,
    ReferencesFound,
    RunStarted,
    Speaker,
)
from surefoot.types.messages import ModelMessage, Usage
from surefoot.types.prehydration import Reference
from surefoot.types.reply import Fault, FaultyCall, Parsed, ParsedCall
from surefoot.types.task import Task
from surefoot.types.tools import Catalogue, ToolResult, ToolSpec

SCORE = ToolSpec("exam_score", "Score of a student.", {"type": "object"}, effect="read", idempotent=True)
STARTED = RunStarted("r1", Task("Who improved?"), {"solo": Speaker("test:m")}, Catalogue((SCORE,)), {})


def reply(*named: tuple[str, dict[str, object]], text: str | None = None, step: int = 1) -> ModelReplied:
    made = tuple(ParsedCall(at, name, arguments) for at, (name, arguments) in enumerate(named))
    return ModelReplied(step, ModelMessage("assistant", text or "", usage=Usage(7, 3)), Parsed(made, content=text))


SECRET = "https://joe:pw@x.org/?token=abc"
FETCHING = ReferencesFound((Reference("url", SECRET),), calls=(ParsedCall(0, "page", {"url": SECRET}),))
ALICE = reply(("exam_score", {"name": "Alice"}), text="I look her up.")
TWO = reply(("exam_score", {"name": "Alice"}), ("exam_score", {"name": "小明"}))


SPEAKERS = {"thinker": Speaker("http://ada:pw@h/v1#t"), "actor": Speaker("test:a")}
DUAL = RunStarted("r1", Task("Who improved?"), SPEAKERS, Catalogue((SCORE,)), {}, reasoner="dual")


def told(*events: Event, width: int = 80, detail: bool = False) -> list[str]:
    """The lines of the last of these events, each a tenth of a second after the one before."""
    teller = Teller(EMPTY, width=width, detail=detail)
    lines: list[str] = []
    for at, event in enumerate(events):
        lines = [" " * line.indent + line.text for line in teller.tell(event, 100 + at / 10)]
    return lines


def no_catalogue(digest: str, version: int) -> Catalogue:
    raise NotImplementedError(f"{digest} of form {version}: the starts of runs have names")


@pytest.mark.parametrize("case", cases("cli_lines"))
def test_each_event_has_its_line_and_of_two_models_it_says_whose(case: Mapping[str, Any]) -> None:
    """The lines of the last event of each case; some events have names above, others are as a journal holds them."""
    named = {"STARTED": STARTED, "DUAL": DUAL, "ALICE": ALICE, "TWO": TWO, "FETCHING": FETCHING}
    events = [
        named[one] if isinstance(one, str) else decode(json.dumps(one).encode(), VERSION, no_catalogue)
        for one in case["events"]
    ]
    assert told(*events) == case["told"]


def test_faults_and_repairs_are_told() -> None:
    broken = FaultyCall(0, Fault("malformed_json", "no closing brace"), "exam_score")
    parsed = Parsed(errors=(broken,), error=broken.error, warnings=frozenset({"repaired_json"}))
    assert told(STARTED, ModelReplied(1, ModelMessage("assistant", "{"), parsed)) == [
        "  ~ repaired_json",
        "  ! exam_score: malformed_json: no closing brace",
    ]
    empty = Parsed(error=Fault("empty", "say something"))
    assert told(STARTED, ModelReplied(1, ModelMessage("assistant", ""), empty)) == ["  ! the reply is empty"]


def test_an_answer_is_not_told_while_the_run_goes_on() -> None:
    answer = ModelReplied(1, ModelMessage("assistant", "42"), Parsed(final="42"))
    assert told(STARTED, answer) == []


def test_detail_has_record_numbers_times_ids_and_all_lines() -> None:
    assert told(STARTED, ALICE, detail=True) == [
        "step 1 · record 1 · 0.1 s · 7 + 3 tokens · native",
        "  I look her up.",
    ]
    assert told(STARTED, ALICE, CallStarted("1.0"), CallEnded("1.0", ToolResult("a\nb")), detail=True) == [
        "  ← a",
        "    b (0.10 s)",
    ]
    assert told(STARTED, ALICE, CallStarted("1.0"), detail=True) == ['  → exam_score(name="Alice")  #1.0']
    many = told(STARTED, ALICE, CallEnded("1.0", ToolResult("x\n" * 30)), detail=True)
    assert len(many) == 21
    assert many[-1] == "    … 10 more lines (--events has all)"


def test_lines_fit_their_width_also_in_chinese() -> None:
    result = ToolResult("成绩" * 100)
    (line,) = told(STARTED, ALICE, CallEnded("1.0", result), width=40)
    assert line.endswith("…")
    assert len(line) <= 22  # 40 cells: two for the indent, two for the mark, one for the dots, the rest two a sign


def test_nothing_that_a_tool_says_can_hide_or_steer_the_terminal() -> None:
    (line,) = told(STARTED, ALICE, CallEnded("1.0", ToolResult("\x1b[2Jok\u202egpj.exe")))
    assert line == "  ← \\u001b[2Jok\\u202egpj.exe"
    assert visible("a\tb") == "a b"
    assert visible("一行\n二行") == "一行\n二行"


@pytest.mark.parametrize(("text", "cells", "expected"), [
    ("abc", 3, "abc"), ("abcd", 3, "ab…"), ("成绩单", 6, "成绩单"), ("成绩单", 5, "成绩…"), ("成绩单", 4, "成…"),
    ("", 3, ""),
])  # fmt: skip
def test_cut_counts_cells(text: str, cells: int, expected: str) -> None:
    assert cut(text, cells) == expected
