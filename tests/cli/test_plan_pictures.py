"""A plan as rows, as a live table and as a picture: events and rows in, text out."""

import asyncio
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal

import pytest
from cli_world import lasting
from rich.cells import cell_len

from surefoot.agent import Agent
from surefoot.cli.lines import in_columns
from surefoot.cli.live import PlanProgress
from surefoot.cli.picture import picture
from surefoot.cli.plan_table import plan_shown, rows_of, table
from surefoot.core.loop.fold import fold
from surefoot.core.plan.accept import PLAN
from surefoot.core.state.state import EMPTY
from surefoot.journal.memory import MemoryJournal
from surefoot.run import Run
from surefoot.telling.plan import Node
from surefoot.testing.models import ScriptedModel
from surefoot.tools.function import tool
from surefoot.types.config import LoopConfig
from surefoot.types.errors import JournalError
from surefoot.types.events import CallEnded, Event, InStep, RunResumed
from surefoot.types.messages import TextDelta
from surefoot.types.plan import PlanConfig, PlanStep, StepStatus
from surefoot.types.plan_events import PlanSigned
from surefoot.types.task import Task

Shown = Callable[..., list[str]]
SVG = "{http://www.w3.org/2000/svg}"


def row(step_id: str, status: StepStatus = "succeeded", *notes: str, name: str = "", result: str = "") -> Node:
    return Node(step_id, name, "tool", ("read_csv",), status, what="log.csv", notes=notes, result=result)


def needing(rows: Sequence[Node], needs: Mapping[str, Sequence[str]]) -> list[Node]:
    return [replace(row, depends_on=tuple(needs.get(row.id, ()))) for row in rows]


def drawn(rows: Sequence[Node], needs: Mapping[str, Sequence[str]]) -> ET.Element:
    return ET.fromstring(picture(needing(rows, needs), "plan v1 <&>"))  # noqa: S314  # our own text


def boxes(root: ET.Element) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of each step."""
    found = [box for group in root.iter(f"{SVG}g") for box in group.iter(f"{SVG}rect")]
    sides = [[float(box.attrib[name]) for name in ("x", "y", "width", "height")] for box in found]
    return [(x, y, x + width, y + height) for x, y, width, height in sides]


def is_apart(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def chain(count: int) -> Mapping[str, Sequence[str]]:
    return {f"s{at}": [f"s{at - 1}"] for at in range(1, count)}


def fan(count: int) -> Mapping[str, Sequence[str]]:
    middle = [f"s{at}" for at in range(1, count - 1)]
    return {f"s{count - 1}": middle, **{name: ["s0"] for name in middle}} if count > 1 else {}


def net(count: int) -> Mapping[str, Sequence[str]]:
    return {f"s{at}": sorted({f"s{at // 2}", f"s{at // 3}", f"s{max(at - 7, 0)}"}) for at in range(1, count)}


@pytest.mark.parametrize("needs", [chain, fan, net])
@pytest.mark.parametrize("count", [0, 1, 3, 8, 25])
def test_a_picture_has_each_step_once_apart(needs: Callable[[int], Mapping[str, Sequence[str]]], count: int) -> None:
    made = needs(count)
    root = drawn([row(f"s{at}") for at in range(count)], made)
    found = boxes(root)
    assert len(found) == count
    assert all(is_apart(*pair) for pair in combinations(found, 2))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert all(x >= 0 and y >= 0 and right <= width and bottom <= height for x, y, right, bottom in found)
    edges = [one for one in root.findall(f"{SVG}path") if one.attrib.get("marker-end")]
    assert len(edges) == sum(len(some) for some in made.values())


def test_edges_go_around_steps() -> None:
    """From the first step to the last one past those between: no corner of the edge lies inside a step."""
    root = drawn([row(f"s{at}") for at in range(5)], {**chain(5), "s4": ["s3", "s0"]})
    for path in root.findall(f"{SVG}path"):
        numbers = [float(one) for one in re.findall(r"-?\d+\.\d+", path.attrib["d"])]
        points = list(zip(numbers[::2], numbers[1::2], strict=True))
        for x, y in points[1:-1]:
            assert not any(left < x < right and top < y < bottom for left, top, right, bottom in boxes(root))


def test_a_chain_goes_down_and_a_fan_stays_small() -> None:
    def size(needs: Mapping[str, Sequence[str]]) -> tuple[float, float]:
        root = drawn([row(f"s{at}") for at in range(25)], needs)
        return float(root.attrib["width"]), float(root.attrib["height"])

    width, height = size(chain(25))
    assert width < 400 < height
    assert max(size(fan(25))) < 3000


def test_state_is_told_by_colour_and_word_and_texts_are_escaped() -> None:
    rows = [
        row("a", "failed", "attempt 2", name="读取 <script>alert(1)</script>", result='parameter x: "<&>"'),
        row("b", "superseded", "+ round 1"),
        row("c", "in_doubt"),
    ]
    text = picture(needing(rows, {"b": ["a", "gone"], "c": ["a"]}), "plan")
    root = ET.fromstring(text)  # noqa: S314  # our own text
    words = [one.text or "" for one in root.iter(f"{SVG}text")]
    assert "failed · attempt 2" in words
    assert "superseded · + round 1" in words
    assert "in doubt" in words
    assert any(word.startswith("读取 <script>") for word in words)
    assert "<script>" not in text
    assert not re.search(r"href|url\((?!#)|@import|http://(?!www\.w3\.org/2000/svg)", text)  # nothing is loaded
    fills = {box.attrib["fill"] for group in root.iter(f"{SVG}g") for box in group.iter(f"{SVG}rect")}
    assert len(fills) == 3


@pytest.mark.parametrize("width", [20, 40, 60, 80, 160])
def test_rows_keep_to_the_width(width: int) -> None:
    rows = [
        row("a" * 30, "running", "attempt 2", "must succeed", result="很长的结果" * 30),
        Node("b", "", "tool", ("a_tool_with_a_very_long_name_indeed",), "pending", what="x" * 90),
    ]
    lines = table(rows, width)
    assert [line.style for line in lines] == ["call", ""]
    assert all(cell_len(line.text) <= width for line in lines)
    assert table([], width) == []


def test_columns_stand_under_each_other() -> None:
    assert in_columns([("a", "小明", "x"), ("bb", "c", "y")], 40) == ["a   小明  x", "bb  c     y"]
    assert in_columns([("a", "", "x"), ("b", "", "y")], 40) == ["a  x", "b  y"]
    assert in_columns([("abcdefghij", "0123456789" * 3)], 24) == ["abcdefghij  01234567890…"]


@tool(effect="read")
async def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


def happened(steps: int, approve_plan: Literal["never", "first"] = "never") -> list[Event]:
    """The events of a run with so many steps, one after another."""
    ids = [f"s{at}" for at in range(steps)]
    made = tuple(
        PlanStep(name, f"第{at}步", tool_id="look", parameters={"at": name}, dependencies=tuple(ids[at - 1 : at]))
        for at, name in enumerate(ids)
    )
    config = LoopConfig(plan=PlanConfig(answer="off", max_steps=60, approve_plan=approve_plan))
    store = MemoryJournal()
    agent = Agent(ScriptedModel([]), tools=[look], reasoner="plan", config=config, journal=store)

    async def run() -> list[Event]:
        if (await agent.run(Task("Look.", steps=made), run_id="r1")).status == "paused":
            await agent.approve("r1", PLAN, by="Ada")
            await agent.resume("r1")
        return [record.event for record in (await store.read_recorded("r1"))[0]]

    return asyncio.run(run())


@pytest.fixture
def shown(terminal: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> Shown:
    """What stands on the terminal when these have happened, each a second after the one before.

    `also` happens after each; nobody drives the run while a plan waits for its signature.
    """

    def show(events: Sequence[Event], columns: int = 100, rows: int = 30, **more: Any) -> list[str]:  # Any: see above
        also: Callable[[Event], None] | None = more.get("also")
        terminal(columns, rows)
        seconds = iter(range(10_000))
        table = PlanProgress(EMPTY, clock=lambda: float(next(seconds)))
        assert table.streams
        signed = next((at for at, event in enumerate(events) if isinstance(event, PlanSigned)), 0)
        with table:
            for event in events[:signed]:
                table.watch(event)
        with table:
            for event in events[signed:]:
                table.watch(event)
                if also is not None:
                    also(event)
            table.watch(TextDelta("words\nof a model"))
            told = capsys.readouterr().err
        if more.get("while_driven"):
            return lasting(told, rows)
        table.over(Run.of(fold(events)), "")
        return lasting(told + capsys.readouterr().err, rows)

    return show


def steps_in(lines: Sequence[str]) -> list[str]:
    """The ids of the steps that have a row."""
    return [line.split()[1] for line in lines if line[0] in "✓▸·"]


def test_the_table_stays_with_the_last_state(shown: Shown) -> None:
    lines = shown(happened(2))
    assert lines[0].startswith("run r1 · test:scripted")
    steps = [line for line in lines if line.startswith("✓")]
    assert [line.split()[:5] for line in steps] == [["✓", f"s{n}", f"第{n}步", "look", "succeeded"] for n in (0, 1)]
    assert all(re.search(r"\d\.0 s +seen s\d$", line) for line in steps)
    foot = lines[lines.index(steps[-1]) + 1]
    assert "2 of 2 steps, 100 %" in foot
    assert "calls 2/500" in foot


@pytest.mark.parametrize("rows", [10, 40])
def test_a_plan_that_was_reviewed_has_each_row_once(shown: Shown, rows: int) -> None:
    lines = shown(happened(12, approve_plan="first"), rows=rows)
    assert steps_in(lines) == [f"s{at}" for at in range(12)]
    assert sum("of 12 steps, " in line for line in lines) == 1


def test_the_table_stays_when_the_command_fails(shown: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(event: Event) -> None:
        if isinstance(event, InStep) and event.step_id == "s1":
            raise JournalError("the disk is full")

    with pytest.raises(JournalError):
        shown(happened(3), also=fails)
    lines = lasting(capsys.readouterr().err, 30)
    assert steps_in(lines) == ["s0", "s1", "s2"]


@pytest.mark.parametrize("end", ["", "\n"])
def test_what_a_tool_prints_stays_and_repeats_no_row(shown: Shown, end: str) -> None:
    def prints(event: Event) -> None:
        if isinstance(event, InStep) and isinstance(event.event, CallEnded):
            sys.stdout.write(f"<{event.step_id}>{end}")

    with redirect_stdout(sys.stderr):  # both are one terminal
        lines = shown(happened(3), also=prints)
    assert steps_in(lines) == ["s0", "s1", "s2"]
    assert re.findall(r"<(s\d)>", "".join(lines)) == ["s0", "s1", "s2"]


def test_what_is_not_driven_any_more_is_told_as_it_stands(shown: Shown) -> None:
    events = happened(3)
    at = next(at for at, one in enumerate(events) if isinstance(one, InStep) and one.step_id == "s1")
    lines = shown(events[: at + 1])
    assert steps_in(lines) == ["s0", "s1", "s2"]
    assert "of 3 steps" in lines[-3]
    assert "interrupted" in lines[-3]


@pytest.mark.parametrize(("columns", "rows"), [(40, 12), (60, 16), (200, 60)])
def test_a_long_plan_keeps_to_the_terminal(shown: Shown, columns: int, rows: int) -> None:
    lines = shown(happened(25), columns=columns, rows=rows)
    assert sum(line.startswith("✓") for line in lines) == 25  # at the end all of them stay
    assert all(cell_len(line) <= columns for line in lines)


def test_of_a_long_plan_the_steps_at_work_are_in_view(shown: Shown) -> None:
    events = happened(25)
    at = next(at for at, one in enumerate(events) if isinstance(one, InStep) and one.step_id == "s17")
    told = [*events[: at + 1], RunResumed("Ada", {})]  # which has a line, so all is drawn again
    lines = shown(told, rows=16, while_driven=True)
    last = max(at for at, line in enumerate(lines) if line.startswith("resumed by Ada"))
    assert lines[last + 1] == "… 16 steps before"
    assert [line.split()[:2] for line in lines[last + 2 : last + 5]] == [["✓", "s16"], ["▸", "s17"], ["·", "s18"]]
    assert lines[-2] == "… 1 more step"


def test_what_models_and_tools_wrote_steers_no_terminal_and_no_picture() -> None:
    events: list[Event] = []
    evil = "a\x1b[2Jb\u202ec ]]> &lt;"
    step = PlanStep("s", evil, tool_id="look", parameters={"at": evil})
    config = LoopConfig(plan=PlanConfig(answer="off"))
    agent = Agent(ScriptedModel([]), tools=[look], reasoner="plan", config=config)
    agent.run_sync(Task("Look.", steps=(step,)), watch=events.append)  # type: ignore[arg-type]  # no signals
    state = fold(events)
    assert state.planning is not None
    rows = rows_of(state, state.planning)
    assert [row.status for row in rows] == ["succeeded"]
    lines = [line.text for line in plan_shown(state, events, 160)]
    drawn_text = picture(rows, lines[0])
    for text in (*lines, *drawn_text.splitlines()):
        assert text.isprintable(), text
    ET.fromstring(drawn_text)  # noqa: S314  # our own text
