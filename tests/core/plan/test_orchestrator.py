"""Plans that repair themselves, as data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from scenario_parts import Json, in_short, scenario, scenarios

from cases import each
from surefoot.testing.conformance import main
from surefoot.testing.world import World, asked_for, orchestrator_scenarios
from surefoot.types.events import CallEnded, CallStarted, Event, InStep, RunResumed
from surefoot.types.plan_events import ProposalMade

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
    wrong = scenario({"id": "wrong", "end": "", "config": {"max_parallel": 0}})
    null = {**scenario({"id": "null", "end": ""}), **dict.fromkeys(("plan", "config", "cancel_at_ms", "llm_script"))}
    assert orchestrator_scenarios({"scenarios": [wrong, null, other, over, unknown]}) == {
        "null": {"fault": "the engine asks for select_initial, and the script is over"},
        "wrong": {"fault": "max_parallel=0: give a whole number of at least 1"},
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


_QUIET = [case for case in SCENARIOS if not ({"cancel_at_ms", "resume_journal"} & set(case))]


@each("case", _QUIET[::4])
def test_a_crash_after_any_event_changes_nothing_that_follows(case: Json) -> None:
    """R18: the same end, the same steps, the same replies asked for; and no effect twice."""
    whole = _driven(case)
    if {"max_parallel", "deadline_ms"} & set(
        case["config"]
    ):  # there what is in flight at the crash takes its time anew
        return
    want = whole.report()
    for at in range(1, len(whole.journal)):
        world = World(case)
        _crashed(world, whole.journal[:at])
        open_calls = [call for child in world.planning.children.values() for call in child.calls if call.is_open]
        world.drive()
        got = world.report()
        if any(call.attempts and call.spec is not None and not call.spec.may_repeat for call in open_calls):
            assert got["status"] == "paused"
            continue
        same = ("status", "stop_reason", "steps", "dependencies", "results", "llm_calls", "refusals", "selected_tools")
        assert {key: got[key] for key in same} == {key: want[key] for key in same}, whole.journal[at - 1]
        assert _writes(world) == _writes(whole)


def _driven(case: Json) -> World:
    world = World(case)
    world.begin()
    world.drive()
    return world


def _crashed(world: World, journal: Sequence[tuple[Event, ...]]) -> None:
    """A world takes up what another one has on record, with its script, and with its tools as they were used."""
    for event in chain.from_iterable(journal):
        match event:
            case ProposalMade(kind, about=about, by="model"):
                world.asked.append(asked_for(kind, about))
            case InStep(step_id, event=CallEnded(call_id)):
                call = world.planning.children[step_id].call(call_id)
                assert call is not None
                world.answer(call)
            case _:
                pass
        world.record(event)
    world.record(RunResumed("test"))


def _writes(world: World) -> list[str]:
    """The calls with an effect that were begun, in their order."""
    events = chain.from_iterable(world.journal)
    began = (one for one in events if isinstance(one, InStep) and isinstance(one.event, CallStarted))
    return [one.step_id for one in began if world.planning.steps[one.step_id].step.tool_id == "save"]
