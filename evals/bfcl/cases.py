"""Cases of BFCL, as its package ships them, and its own verdict on the calls that a runtime made."""

from __future__ import annotations

import importlib
import random
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import orjson

CATEGORIES = ("simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance")
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string", "String": "string"}

Made = tuple[str, Mapping[str, object]]
"""A call that was made: the tool's name as models see it, and its arguments."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `functions` are as BFCL declares them, `answer` as its checker takes it; `tools` are JSON Schema."""

    id: str
    category: str
    words: str
    functions: Sequence[Mapping[str, Any]]  # Any: JSON of the data set
    answer: Sequence[Mapping[str, Any]]

    @property
    def tools(self) -> list[dict[str, Any]]:
        """Name, description and parameters of each tool, in the names and types that wires take."""
        return [
            {
                "name": wire_name(one["name"]),
                "description": one["description"],
                "parameters": _json_schema(one["parameters"]),
            }
            for one in self.functions
        ]


def wire_name(name: str) -> str:
    """A name without dots, which most wires refuse."""
    return name.replace(".", "_")


def _json_schema(declared: object) -> Any:  # Any: JSON, walked as it is
    if isinstance(declared, list):
        return [_json_schema(one) for one in cast("list[object]", declared)]
    if not isinstance(declared, dict):
        return declared
    return {
        key: _TYPES.get(value, value) if key == "type" and isinstance(value, str) else _json_schema(value)
        for key, value in cast("dict[str, object]", declared).items()
    }


def _rows(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def cases_of(seed: int, each: int, categories: Sequence[str] = CATEGORIES) -> list[Case]:
    """So many cases of each category, drawn by the seed, in turns of one of each: any beginning has all of them."""
    found = find_spec("bfcl_eval")
    if found is None or found.origin is None:
        raise SystemExit("bfcl-eval is not installed; the docstring of evals.bfcl says how")
    data = Path(found.origin).with_name("data")
    drawn: dict[str, list[Case]] = {}
    for category in categories:
        rows = _rows(data / f"BFCL_v4_{category}.json")
        known = data / "possible_answer" / f"BFCL_v4_{category}.json"
        answers = {row["id"]: row["ground_truth"] for row in _rows(known)} if known.is_file() else {}
        drawn[category] = [
            Case(row["id"], category, row["question"][0][-1]["content"], row["function"], answers.get(row["id"], ()))
            for row in random.Random(f"{seed}:{category}").sample(rows, each)  # noqa: S311  # a draw, no secret
        ]
    return [case for turn in zip(*drawn.values(), strict=True) for case in turn]


def is_right(case: Case, made: Sequence[Made]) -> bool:
    """BFCL's own verdict: no call where none fits, else exactly those of the answer, in any order if parallel."""
    if case.category == "irrelevance":
        return not made
    checker, enums = _checker()
    output = [{name: dict(arguments)} for name, arguments in made]
    language = enums.Language.PYTHON
    try:
        verdict = checker.ast_checker(case.functions, output, case.answer, language, case.category, "any")
    except (AttributeError, KeyError, TypeError):  # its checker trips over arguments of an odd shape: they are wrong
        return False
    return bool(verdict["valid"])


def _checker() -> tuple[Any, Any]:
    """BFCL's checker. Of its table of models, whose import needs all their clients, it asks whether names have dots."""
    table = ModuleType("bfcl_eval.constants.model_config")
    table.MODEL_CONFIG_MAPPING = defaultdict(lambda: SimpleNamespace(underscore_to_dot=True))  # type: ignore[attr-defined]  # a module of our own making
    sys.modules.setdefault(table.__name__, table)
    return (
        importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker"),
        importlib.import_module("bfcl_eval.constants.enums"),
    )
