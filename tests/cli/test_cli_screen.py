"""A run told in lines: events in, lines out."""

import pytest

from surefoot.cli.lines import cut, visible
from surefoot.cli.screen import Teller
from surefoot.core.state.state import EMPTY
from surefoot.types.endings import Allow, Ask, Completed, Deny
from surefoot.types.events import (
    CallEnded,
    CallJudged,
    CallReused,
    CallStarted,
    ConventionsRead,
    DoubtSettled,
    Event,
    ModelFailed,
    ModelReplied,
    ModelTraitLearnt,
    ReferencesFound,
    RunEnded,
    RunForked,
    RunResumed,
    RunStarted,
    Speaker,
    Task,
    ToolsSelected,
    Want,
)
from surefoot.types.messages import ModelMessage, Usage
from surefoot.types.prehydration import Reference
from surefoot.types.reply import Fault, FaultyCall, Instruction, Parsed, ParsedCall
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


def told(*events: Event, width: int = 80, detail: bool = False) -> list[str]:
    """The lines of the last of these events, each a tenth of a second after the one before."""
    teller = Teller(EMPTY, width=width, detail=detail)
    lines: list[str] = []
    for at, event in enumerate(events):
        lines = [" " * line.indent + line.text for line in teller.tell(event, 100 + at / 10)]
    return lines


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((STARTED,), ["run r1 · test:m · 1 tool"]),
        (
            (STARTED, ConventionsRead(".", (("AGENTS.md", "0", 9), ("src/AGENTS.md", "1", 9)))),
            ["  conventions read before the first model call: AGENTS.md, src/AGENTS.md"],
        ),
        ((STARTED, ConventionsRead(".")), []),
        ((STARTED, ALICE, ConventionsRead("a/b.py", (("a/X.md", "0", 9),), scope="a")), ["  conventions of a: a/X.md"]),
        ((STARTED, ALICE, ConventionsRead("../b", error="outside")), ["  conventions of ../b: outside"]),
        ((STARTED, FETCHING, CallStarted("0.0")), ['  → page(url="https://***@x.org/?token=***")']),
        (
            (STARTED, FETCHING, CallEnded("0.0", ToolResult(f"404 for {SECRET}", "error"))),
            ["  ← 404 for https://***@x.org/?token=***"],
        ),
        ((STARTED, ALICE), ["I look her up."]),
        ((STARTED, ALICE, CallJudged("1.0", Allow())), []),
        ((STARTED, ALICE, CallStarted("1.0")), ['  → exam_score(name="Alice")']),
        ((STARTED, ALICE, CallStarted("1.0", 2)), ['  → exam_score(name="Alice")  (attempt 2)']),
        ((STARTED, ALICE, CallEnded("1.0", ToolResult("90"))), ["  ← 90"]),
        ((STARTED, ALICE, CallEnded("1.0", ToolResult("a\nb\nc"))), ["  ← a  … 2 more lines"]),
        ((STARTED, ALICE, CallEnded("1.0", ToolResult(""))), ["  ← (nothing)"]),
        ((STARTED, TWO, CallEnded("1.1", ToolResult("81"))), ["  ← exam_score: 81"]),
        ((STARTED, TWO, CallStarted("1.1")), ['  → exam_score(name="小明")']),
        ((STARTED, ALICE, CallEnded("1.0", ToolResult("slow", "timeout"))), ["  ← timeout: slow"]),
        (
            (STARTED, ALICE, CallJudged("1.0", Deny("not now"), "no_reads")),
            ['  ✗ exam_score(name="Alice")  denied: not now [no_reads]'],
        ),
        (
            (STARTED, ALICE, CallJudged("1.0", Ask("sure?"), "ask_first")),
            ['  ? exam_score(name="Alice")  waits for a person: sure? [ask_first]'],
        ),
        (
            (STARTED, ALICE, CallJudged("1.0", Allow(), "person", "ada")),
            ['  ✓ exam_score(name="Alice")  allowed by ada'],
        ),
        (
            (STARTED, ALICE, DoubtSettled("1.0", "done", "ada")),
            ['  ? exam_score(name="Alice")  took effect, says ada'],
        ),
        (
            (STARTED, ALICE, CallEnded("1.0", ToolResult("90")), reply(("exam_score", {"name": "Alice"}), step=2),
             CallReused("2.0", "1.0")),
            ['  = exam_score(name="Alice")  known from call 1.0', "  ← 90"],
        ),
        ((STARTED, ModelFailed("auth", "no key", 1)), ["! no reply after 1 attempt (auth): no key"]),
        (
            (STARTED, ModelTraitLearnt("test:m", "native_tools", "no", "400")),
            ["* learnt about test:m: native_tools is no (400)"],
        ),
        ((STARTED, ToolsSelected(("exam_score",), "fits")), ["tools offered: 1 (fits)"]),
        (
            (STARTED, ToolsSelected((), "profile", {"include": 1}, ("nothing is left\x1b",))),
            ["tools offered: 0 (profile) · dropped: include 1", "  ! nothing is left\\u001b"],
        ),
        ((STARTED, RunResumed("ada", {"solo": Speaker("test:n")})), ["taken up again by ada, with test:n"]),
        ((STARTED, RunForked("r2", "r1", 1)), ["forked from r1 at record 1"]),
        ((STARTED, RunEnded(Completed("91"))), []),
    ],
)  # fmt: skip
def test_each_event_has_its_line(events: tuple[Event, ...], expected: list[str]) -> None:
    assert told(*events) == expected


DUAL = RunStarted(
    "r1",
    Task("Who improved?"),
    {"thinker": Speaker("http://ada:pw@h/v1#t"), "actor": Speaker("test:a")},
    Catalogue((SCORE,)),
    {},
    reasoner="dual",
)


def by(role: str, parsed: Parsed, *, want: Want = "any", step: int = 1) -> ModelReplied:
    return ModelReplied(step, ModelMessage("assistant", "…"), parsed, role=role, want=want)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (DUAL, ["run r1 · thinker http://h/v1#t · actor test:a · 1 tool"]),
        (by("thinker", Parsed(instruction=Instruction("Look\nup", "Alice"))), ["Thinker: Look up · input: Alice"]),
        (by("thinker", Parsed(instruction=Instruction("", done=True))), ["Thinker: the task is solved"]),
        (by("actor", Parsed((ParsedCall(0, "exam_score", {}),))), ["Actor:"]),
        (
            by("actor", Parsed((ParsedCall(0, "exam_score", {}),), content="<action>I look.\n</action>")),
            ["Actor: I look."],
        ),
        (by("actor", Parsed(content="It is\n90.")), ["Actor: It is 90."]),
        (by("actor", Parsed(final="90")), ["Actor: proposed deliverable: 90"]),
        (by("actor", Parsed(final="90"), want="answer"), []),
        (
            by("thinker", Parsed(error=Fault("calls_not_allowed", "told"))),
            ["  ! Thinker: unreadable: calls_not_allowed: told"],
        ),
        (by("actor", Parsed(error=Fault("empty", "told"))), ["  ! Actor: the reply is empty"]),
        (ModelFailed("auth", "no key", 1, "actor"), ["! Actor: no reply after 1 attempt (auth): no key"]),
        (
            RunForked("r2", "r1", 1, {"thinker": Speaker("http://ada:pw@h/v1#u")}),
            ["forked from r1 at record 1, with thinker http://h/v1#u"],
        ),
    ],
)
def test_of_two_models_each_line_says_whose_it_is(event: Event, expected: list[str]) -> None:
    assert told(*([event] if event is DUAL else [DUAL, event])) == expected


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


@pytest.mark.parametrize(
    ("text", "cells", "expected"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("成绩单", 6, "成绩单"),
        ("成绩单", 5, "成绩…"),
        ("成绩单", 4, "成…"),
        ("", 3, ""),
    ],
)
def test_cut_counts_cells(text: str, cells: int, expected: str) -> None:
    assert cut(text, cells) == expected
