"""The shared cases of pre-hydration, where the checkout has them beside it."""

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

from surefoot.testing.conformance import expand, symbiont_prehydrate

SHARED = Path(__file__).parents[3] / "shared" / "vectors"
KIND = "symbiont_prehydrate"


def scorer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("score", SHARED / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared conformance cases are not beside this checkout")
def test_every_shared_case_holds_but_the_habits_of_one_implementation() -> None:
    data = cast("Mapping[str, object]", expand(json.loads((SHARED / f"{KIND}.json").read_text(encoding="utf-8"))))
    results = symbiont_prehydrate(data)
    missed = [
        f"{case_id}: {fault}"
        for case_id, case, compare in scorer().checks(KIND, data)
        if case.get("source") != "impl" and (fault := compare(case, results[case_id]))
    ]
    assert missed == []


def test_a_configuration_that_is_refused_is_told() -> None:
    case = {"id": "a", "input": "x", "config": {"custom_patterns": [{"ref_type": "x", "pattern": "("}]}}
    results = symbiont_prehydrate({"extraction": [case], "adversarial": [], "hydration": []})
    assert "pattern='('" in cast("Mapping[str, str]", results["a"])["config_error"]
