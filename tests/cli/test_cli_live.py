"""A run on a terminal: what streams by goes away, what stays is told once."""

from collections.abc import Callable
from pathlib import Path

import pytest
from cli_world import lasting

from cases import cases
from surefoot.cli.live import Answers, JsonLines, Progress, as_markdown, progress, stdout, under_way
from surefoot.core.loop.fold import fold
from surefoot.core.state.state import EMPTY
from surefoot.run import Run
from surefoot.telling.text import json_line
from surefoot.types.events import CallEnded, CallStarted, ModelReplied, RunStarted, Speaker
from surefoot.types.messages import CallPreview, ModelMessage, Reset, TextDelta, ToolProgress
from surefoot.types.reply import Instruction, Parsed, ParsedCall
from surefoot.types.task import Task
from surefoot.types.tools import Catalogue, ToolResult

LOOKING = (
    RunStarted("r1", Task("Look."), {"solo": Speaker("test:m")}, Catalogue(), {}),
    ModelReplied(1, ModelMessage("assistant"), Parsed((ParsedCall(0, "look", {"at": "all"}),))),
    CallStarted("1.0"),
)


def test_what_streams_by_is_not_told_twice(capsys: pytest.CaptureFixture[str], terminal: Callable[..., None]) -> None:
    terminal(80)
    progress = Progress(EMPTY, clock=lambda: 1.0)
    assert progress.streams
    call = ParsedCall(0, "look", {"at": "all"})
    with progress:
        progress.watch(RunStarted("r1", Task("Look."), {"solo": Speaker("test:m")}, Catalogue(), {}))
        for piece in (TextDelta("broken "), Reset("again"), TextDelta("I look"), TextDelta(" it up.")):
            progress.watch(piece)
        progress.watch(CallPreview(0, "look"))
        parsed = Parsed((call,), content="I look it up.")
        progress.watch(ModelReplied(1, ModelMessage("assistant", "I look it up."), parsed))
        progress.watch(CallStarted("1.0"))
        progress.watch(TextDelta("It is 42."))
        progress.watch(ModelReplied(2, ModelMessage("assistant", "It is 42."), Parsed(final="It is 42.")))
    progress.over(Run("r1", "completed", "It is 42."), "")
    captured = capsys.readouterr()
    assert captured.out == "It is 42.\n"
    assert lasting(captured.err) == [
        "run r1 · test:m · no tools", "I look it up.", '  → look(at="all")',
        "completed · 0 requests · 0 + 0 tokens · 0.0 s · run r1",
    ]  # fmt: skip


def test_how_far_a_call_is_goes_away(capsys: pytest.CaptureFixture[str], terminal: Callable[..., None]) -> None:
    terminal(80)
    shown = Progress(EMPTY, clock=lambda: 1.0)
    with shown:
        for event in LOOKING:
            shown.watch(event)
        for at in (1, 2):
            shown.watch(ToolProgress("1.0", "reading\n\x1b[2J", at, 3))
        shown.watch(CallEnded("1.0", ToolResult("found")))
    err = capsys.readouterr().err
    assert "running look … reading \\u001b[2J 2 of 3" in err
    assert lasting(err)[-2:] == ['  → look(at="all")', "  ← found"]


def test_a_line_on_a_terminal_says_how_long_a_model_thinks_and_what_has_come(
    capsys: pytest.CaptureFixture[str], terminal: Callable[..., None]
) -> None:
    terminal(80)
    now = [0.0]
    shown = Progress(EMPTY, clock=lambda: now[0])
    with shown:
        shown.watch(LOOKING[0])
        now[0] = 7.0
        assert str(shown.__rich__()) == "thinking 7 s"
        shown.watch(TextDelta("word" * 10))
        now[0] = 9.0
        assert str(shown.__rich__()).startswith("thinking 9 s · about 10 tokens, 5/s … ")
        shown.watch(LOOKING[1])
        assert str(shown.__rich__()) == "thinking"
    capsys.readouterr()


@cases("cli/live")
def test_an_answer_is_markdown_on_a_terminal_and_itself_everywhere_else(
    capsys: pytest.CaptureFixture[str], terminal: Callable[..., None], tmp_path: Path, text: str, shown: list[str]
) -> None:
    Answers().give(text)
    assert capsys.readouterr().out == f"{text}\n"
    Answers(tmp_path / "answer.md").give(text)
    assert (tmp_path / "answer.md").read_text() == f"{text}\n"
    terminal(40)
    stdout().print(as_markdown(text))
    assert [line.strip() for line in lasting(capsys.readouterr().out)] == shown


def test_how_far_a_call_is_is_told_to_nobody_but_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    for shown in (Progress(EMPTY), JsonLines("r1", "react", Answers())):
        with shown:
            for event in LOOKING:
                shown.watch(event)
            before = capsys.readouterr()
            shown.watch(ToolProgress("1.0", "reading", 1, 3))
            assert capsys.readouterr() == ("", "")
        assert "look" in before.err + before.out


def test_of_several_calls_under_way_each_is_named() -> None:
    both = Parsed((ParsedCall(0, "look", {"at": "all"}), ParsedCall(1, "find", {})))
    events = (*LOOKING[:1], ModelReplied(1, ModelMessage("assistant"), both), CallStarted("1.0"), CallStarted("1.1"))
    state = fold(events)
    assert under_way(state) == "running look, find"
    assert progress(state, ToolProgress("1.1", "page", 4)) == "find: page 4"


def test_of_two_models_it_is_said_which_is_asked() -> None:
    speakers = {"thinker": Speaker("test:t"), "actor": Speaker("test:a")}
    started = RunStarted("r1", Task("Look."), speakers, Catalogue(), {}, reasoner="dual")
    parsed = Parsed(instruction=Instruction("Look it up."))
    instructed = ModelReplied(1, ModelMessage("assistant"), parsed, role="thinker")
    assert under_way(fold((started,))) == "Thinker: thinking"
    assert under_way(fold((started, instructed))) == "Actor: thinking"


def test_any_value_has_its_line_of_json() -> None:
    assert json_line(ToolResult("a\nb")).startswith('{"content":"a\\nb","kind":"ok"')
    assert json_line(frozenset({"b", "a"})) == '["a","b"]'
    assert json_line({"n": 2**70, "t": "\ud800"}) == '{"n": 1180591620717411303424, "t": "\\ud800"}'
    with pytest.raises(TypeError):
        json_line(object())
