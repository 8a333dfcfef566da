"""The shared conformance cases, where the checkout has them beside it. Every rule in them has a test of its own too."""

import importlib.util
import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from surefoot.testing.conformance import KINDS, expand, main, symbiont_prehydrate

SHARED = Path(__file__).parents[2] / "shared" / "vectors"
OF_REPLIES = ("react_text", "function_call_tags", "tool_call_formats")


def scorer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("score", SHARED / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared conformance cases are not beside this checkout")
@pytest.mark.parametrize("kind", KINDS)
def test_every_shared_case_holds_but_the_habits_of_one_implementation(kind: str) -> None:
    data = expand(json.loads((SHARED / f"{kind}.json").read_text(encoding="utf-8")))
    results = cast("Mapping[str, Any]", KINDS[kind](data))  # JSON, as its authors promise
    missed: list[str] = []
    for case_id, case, compare in scorer().checks(kind, data):
        got = results[case_id]
        if case.get("source") != "impl" and (told := compare(case, got)):
            missed.append(f"{case_id}: {told}")
        # what the scorer does not look at
        wanted: dict[str, object] = {}
        if kind in OF_REPLIES:
            wanted = {key: case["expect"].get(key, got[key]) for key in ("errors", "call_ids")}
            wanted["warnings"] = sorted(case["expect"].get("warnings", []))
        elif kind == "orchestrator_scenarios":
            wanted = {key: case["expected"][key] for key in ("stats", "makespan_ms", "unused_script")}
        missed += [f"{case_id}: {key} {got[key]}" for key, value in wanted.items() if got[key] != value]
    assert missed == []


def test_a_file_of_cases_is_run_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = {
        "vectors": [{"id": "a", "text": {"concat": ["<function_call>", {"repeat": ["x", 3]}, "</function_call>"]}}]
    }
    file = tmp_path / "function_call_tags.json"
    file.write_text(json.dumps(cases), encoding="utf-8")
    assert main(["function_call_tags", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["results"]["a"]["error"] == "malformed_json"


def test_an_unknown_kind_is_one_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nope", "file.json"]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert "nope" in captured.err
    assert main(["react_text"]) == 2


def test_a_configuration_that_is_refused_is_told() -> None:
    case = {"id": "a", "input": "x", "config": {"custom_patterns": [{"ref_type": "x", "pattern": "("}]}}
    results = symbiont_prehydrate({"extraction": [case], "adversarial": [], "hydration": []})
    assert "pattern='('" in cast("Mapping[str, str]", results["a"])["config_error"]


def test_a_result_belongs_to_its_reference_also_behind_one_that_is_refused() -> None:
    references = [["url", "https://joe:pw@e.org"], ["url", "https://e.org"]]
    config, results = {"resolution_tools": {"url": "get"}}, [{"content": "not asked"}, {"content": "read"}]
    case = {"id": "a", "config": config, "references": references, "results": results}
    got = cast("Any", symbiont_prehydrate({"extraction": [], "adversarial": [], "hydration": [case]})["a"])  # JSON
    assert [one["content"] for one in got["resolved"]] == ["read"]


SCORED = {
    "tool_profile": {"visible", "config_error", "must_report_dropped", "warn", "or"},
    "progress": {"last", "config_error"},
    "prehydrate": {"extracted"},
    "conventions": set[str](),
}
"""What the scorer of the shared cases compares, of what a case calls right."""


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared conformance cases are not beside this checkout")
def test_every_case_that_is_told_in_words_has_a_test_that_names_it() -> None:
    named = re.compile(r'''def test_\w+\([^"]*:\n +"""([^"]*)"""''')
    texts = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("test_*.py")]
    tested = {one for text in texts for told in named.findall(text) for one in re.findall(r"adv-[\w-]+", told)}
    in_words: set[str] = set()
    for primitive, scored in SCORED.items():
        data = json.loads((SHARED / f"symbiont_{primitive}.json").read_text(encoding="utf-8"))
        mine = {
            str(case["id"])
            for case in data["adversarial"]
            if not case.get("mechanical", True) or (isinstance(case["right"], dict) and {*case["right"]} - scored)
        }
        assert mine, "the file has such cases"
        in_words |= mine
    assert in_words - tested == set()
