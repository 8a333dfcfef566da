"""Plans that repair themselves, as data."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scenario_parts import Json, in_short, scenario, scenarios

from cases import each
from surefoot.testing.conformance import main
from surefoot.testing.world import orchestrator_scenarios

KIND = "orchestrator_scenarios"
SCENARIOS = scenarios()


@each("case", SCENARIOS)
def test_a_scenario_ends_as_the_specification_has_it(case: Json) -> None:
    got: Any = orchestrator_scenarios({"scenarios": [case]})[case["id"]]  # Any: JSON
    assert in_short(got, case["expected"]) == case["expected"]


def test_each_scenario_has_a_name_of_its_own() -> None:
    assert [name for name, times in Counter(str(case["id"]) for case in SCENARIOS).items() if times > 1] == []


def test_a_scenario_says_where_the_engine_leaves_its_script() -> None:
    fails = {"end": "", "does": {"fetch": [{"fails": "tool"}]}}
    other = scenario({**fails, "id": "other", "script": [{"overall": None}]})
    reflects = {"reflects": ["a", "trigger_overall_reflection", "nothing to offer"]}
    over = scenario({**fails, "id": "over", "script": [reflects]})
    unknown = scenario({"id": "unknown", "end": "", "does": {"fetch": []}})
    assert orchestrator_scenarios({"scenarios": [other, over, unknown]}) == {
        "other": {"fault": "the engine asks for step_reflection:a, and the script has overall_reflection:a next"},
        "over": {"fault": "the engine asks for overall_reflection, and the script is over"},
        "unknown": {"fault": 'the scenario has no behaviour for fetch with {"url":"u"}'},
    }


def test_a_file_of_scenarios_is_run_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / f"{KIND}.json"
    file.write_text(json.dumps({"scenarios": [scenario({"id": "a line", "end": ""})]}), encoding="utf-8")
    assert main([KIND, str(file)]) == 0
    got = json.loads(capsys.readouterr().out)["results"]["a line"]
    assert (got["status"], got["stop_reason"]) == ("completed", "all_steps_done")
    assert got["calls"][2] == {"step": "c", "tool": "save", "params": {"x": "ok"}, "outcome": "ok"}
