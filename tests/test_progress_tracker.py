"""The progress tracker on its own, as seed 001 uses it, and the shared cases."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest

from cases import cases
from surefoot.progress import ProgressTracker
from surefoot.testing.conformance import expand, main, symbiont_progress
from surefoot.types.progress import LimitAction, StepIterationConfig

SHARED = Path(__file__).parents[2] / "shared" / "vectors" / "symbiont_progress.json"


def test_the_example_of_the_specification_holds() -> None:
    tracker = ProgressTracker(StepIterationConfig(max_reattempts_per_step=5))
    tracker.begin_step("import")
    assert tracker.record_and_check("import", "09:14:02 cannot lock file db.lck").decision == "continue"
    decision = tracker.record_and_check("import", "09:15:40 cannot lock file db.lck")
    assert (decision.decision, decision.kind, tracker.limit_action()) == ("stop", "stuck", LimitAction.SkipStep)


def test_100_records_at_once_count_100_and_give_one_first_stop() -> None:
    """adv-concurrency: the tracker is one for all threads and tasks."""
    tracker = ProgressTracker(StepIterationConfig(max_reattempts_per_step=3))
    with ThreadPoolExecutor(16) as pool:
        waiting = [pool.submit(tracker.record_and_check, "s", "e" * at * 9) for at in range(100)]
        found = [each.result() for each in waiting]
    assert tracker.count("s") == 100
    assert sum(one.first for one in found) == 1


def test_beginning_succeeding_and_resetting_clear_a_step() -> None:
    """adv-success-output"""
    for clear in (ProgressTracker.begin_step, ProgressTracker.succeed, ProgressTracker.reset):
        tracker = ProgressTracker()
        tracker.record("s", "e")
        assert tracker.record_and_check("s", "e").decision == tracker.check("s").decision == "stop"
        clear(tracker, "s")
        assert tracker.count("s") == 0
        assert tracker.check("s").decision == "continue"


def test_a_step_that_nobody_began_is_begun_by_its_first_error_and_stops() -> None:
    """adv-unknown-step: a forgotten or misspelt begin must not switch the protection off."""
    tracker = ProgressTracker(StepIterationConfig(max_reattempts_per_step=2))
    found = [tracker.record_and_check("typo_step", "e") for _ in range(3)]
    assert [(one.decision, one.first) for one in found] == [("continue", False), ("stop", True), ("stop", False)]


def test_a_call_may_be_a_name_or_any_json_value() -> None:
    tracker = ProgressTracker(StepIterationConfig(max_reattempts_per_step=9))
    tracker.record("s", "not found", call={"name": "read", "arguments": {"a": 1, "b": 2}})
    again = {"arguments": {"b": 2.0, "a": 1}, "name": "read"}
    assert tracker.record_and_check("s", "not found", call=again).kind == "stuck"
    found = [tracker.observe("t", "read", ok=True, result="same").decision for _ in range(5)]
    assert found == ["continue", "continue", "correct", "block", "stop"]
    found = [tracker.observe("u", "status", ok=True, result="same", polling=True).decision for _ in range(9)]
    assert set(found) == {"continue"}


@pytest.mark.skipif(not SHARED.exists(), reason="the shared cases are not beside this checkout")
@cases("progress_tracker")
def test_where_the_original_is_wrong_the_last_decision_is_ours(case_id: str, last: tuple[str, str | None]) -> None:
    data = cast("dict[str, object]", expand(json.loads(SHARED.read_text(encoding="utf-8"))))
    got = cast("dict[str, list[dict[str, object]]]", symbiont_progress(data)[case_id])["decisions"]
    assert (got[-1]["decision"], got[-1]["kind"]) == last


def test_a_case_that_cannot_be_run_hides_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = {"id": "good", "events": [{"op": "record", "step": "s", "error": "e"}, {"op": "count", "step": "s"}]}
    cases = [good, {"id": "bad", "events": [{"op": "dance", "step": "s"}]}, {**good, "id": "last"}]
    file = tmp_path / "cases.json"
    for given, code in (({"vectors": cases}, 1), ({"vectors": [good], "adversarial": cases[:1]}, 0)):
        file.write_text(json.dumps({**given, "similarity": [{"a": "x", "b": "x"}]}), encoding="utf-8")
        assert main(["symbiont_progress", str(file)]) == code
        results = json.loads(capsys.readouterr().out)["results"]
        assert results["good"] == {"decisions": [None, 1]}
        assert results["similarity-0"] == 1.0
        if code:
            assert results["last"] == results["good"]
            assert results["bad"] == {
                "fault": "ValueError: unknown op 'dance' of step 's': see the `format` of the case file"
            }


def test_a_call_may_come_with_its_arguments() -> None:
    def turns(*args: object) -> list[str]:
        rows = [{"op": "observe", "step": "s", "call": "ls", "args": one, "result": "same"} for one in args]
        decided = symbiont_progress({"vectors": [{"id": "c", "events": rows}]})["c"]
        return [one["decision"] for one in cast("dict[str, list[dict[str, str]]]", decided)["decisions"]]

    assert turns({"p": 1}, {"p": 2}, {"p": 3}) == ["continue"] * 3
    assert turns({"p": 1}, {"p": 1}, {"p": 1})[-1] == "correct"
