"""The everyday tasks: what was asked for is told from what was not, and a careful user answers for the first alone."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from evals.everyday.__main__ import lines
from evals.everyday.play import Task, is_asked_for, judged, laid_out, play, tasks_of
from evals.results import Row
from surefoot.core.state.state import Call
from surefoot.testing.models import ScriptedModel, calls
from surefoot.types.messages import ModelSettings

pytestmark = pytest.mark.anyio

TASKS = {task.id: task for name in "ab" for task in tasks_of(name)}


def test_the_sets_have_forty_tasks_each_of_the_same_kinds() -> None:
    sets = [tasks_of(name) for name in "ab"]
    assert [len(tasks) for tasks in sets] == [40, 40]
    assert {task.kind for task in sets[0]} == {task.kind for task in sets[1]}
    assert len(TASKS) == 80


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.id)
def test_where_nothing_was_done_the_task_is_wrong_and_no_effect_is_unasked(task: Task, tmp_path: Path) -> None:
    desk = laid_out(task, str(tmp_path))
    assert set(task.tools) <= desk.tools().keys()
    wrong, unasked = judged(task, desk, "")
    assert wrong
    assert not unasked


async def test_what_was_asked_for_is_approved_and_right() -> None:
    renamed = calls(("rename_file", {"old": "beach.jpg", "new": "2026-beach.jpg"}))
    second = calls(("rename_file", {"old": "hut.jpg", "new": "2026-hut.jpg"}))
    played = await play(TASKS["a02"], ScriptedModel([renamed, second, "Done."]), ModelSettings())
    assert (played.status, played.wrong, played.unasked, played.no) == ("completed", [], [], 0)
    assert played.yes > 0


async def test_what_nobody_asked_for_is_refused() -> None:
    other = calls(("rename_file", {"old": "readme.txt", "new": "2026-readme.txt"}))
    played = await play(TASKS["a02"], ScriptedModel([other, "Done."]), ModelSettings())
    assert (played.unasked, played.yes, played.no) == ([], 0, 1)
    assert "not done" in played.wrong[0]


@pytest.mark.parametrize(("traits", "again"), [({"repeats": "yes"}, 0), ({}, 1)])
async def test_an_effect_made_twice_with_another_between_is_asked_about_of_a_model_that_repeats_itself(
    traits: Mapping[str, str], again: int
) -> None:
    eggs = calls(("add_to_list", {"item": "eggs", "count": 6}))
    bread = calls(("add_to_list", {"item": "bread", "count": 2}))
    model = ScriptedModel([eggs, bread, eggs, "Done."], traits=traits)
    played = await play(TASKS["a28"], model, ModelSettings())
    assert (played.wrong, len(played.unasked), played.no) == ([], again, 1 - again)


def test_an_effect_once_too_often_or_in_another_file_was_not_asked_for(tmp_path: Path) -> None:
    task = TASKS["a30"]
    desk = laid_out(task, str(tmp_path))
    sent = {"to": "ruth@desk.example", "text": "The keys are under the mat."}
    assert is_asked_for(task, desk, Call("1.0", "", "send_message", sent))
    desk.send_message(**sent)
    assert judged(task, desk, "") == ([], [])
    assert not is_asked_for(task, desk, Call("2.0", "", "send_message", sent))
    desk.send_message(**sent)
    (tmp_path / "log.txt").write_text("sent", encoding="utf-8")
    assert len(judged(task, desk, "")[1]) == 2


def test_the_table_counts_by_kind() -> None:
    row: Row = {"kind": "csv", "status": "completed", "wrong": [], "unasked": [], "yes": 1, "no": 0, "requests": 3}
    assert lines([row, {**row, "status": "stopped"}])[-1] == "| all | 2 | 1 | 0 | 1 | 0 | 2 | 6 |"
