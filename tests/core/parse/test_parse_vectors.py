"""The shared conformance cases, where the checkout has them beside it. Every rule in them has a test of its own too."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from surefoot.testing.conformance import KINDS, expand, main

SHARED = Path(__file__).parents[4] / "shared" / "vectors"


def scorer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("score", SHARED / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared conformance cases are not beside this checkout")
@pytest.mark.parametrize("kind", ["react_text", "function_call_tags", "tool_call_formats"])
def test_every_shared_case_holds_and_warns_as_it_should(kind: str) -> None:
    data = expand(json.loads((SHARED / f"{kind}.json").read_text(encoding="utf-8")))
    assert isinstance(data, dict)
    results = KINDS[kind](data)  # type: ignore[reportUnknownArgumentType]  # a case file
    missed: list[str] = []
    for case_id, case, compare in scorer().checks(kind, data):
        got = results[case_id]
        if told := compare(case, got):
            missed.append(f"{case_id}: {told}")
        if isinstance(got, dict) and sorted(case["expect"].get("warnings", [])) != got["warnings"]:
            missed.append(f"{case_id}: warnings {got['warnings']}")
        if isinstance(got, dict):
            wanted = {key: case["expect"].get(key, got[key]) for key in ("errors", "call_ids")}
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
