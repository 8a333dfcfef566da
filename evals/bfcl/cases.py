"""Cases of BFCL, as its package ships them, and its own verdict on the calls that a runtime made."""

from __future__ import annotations

import importlib
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import orjson

CATEGORIES = ("simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance")
"""Those of one turn."""

MULTI_TURN = "multi_turn"
DONE = "done"
_MULTI_TURN_EVAL = "bfcl_eval.eval_checker.multi_turn_eval"
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string", "String": "string"}

Made = tuple[str, Mapping[str, object]]
"""A call that was made: the tool's name as models see it, and its arguments."""

CallTool = Callable[[str, Mapping[str, object]], str]
"""Carries out a call: name and arguments in, the result's text out."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `functions` are as BFCL declares them, `answer` as its checker takes it; `tools` are JSON Schema.

    `turns` are what the user says, one after the other. Tools of BFCL's simulated classes have a `scene`: the classes
    and what is in them at the beginning, as the data set has it.
    """

    id: str
    category: str
    turns: Sequence[str]
    functions: Sequence[Mapping[str, Any]]  # Any: JSON of the data set
    answer: Sequence[Any]
    scene: Mapping[str, Any] | None = None

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
        name = f"BFCL_v4_{'multi_turn_base' if category == MULTI_TURN else category}.json"
        known = data / "possible_answer" / name
        answers = {row["id"]: row["ground_truth"] for row in _rows(known)} if known.is_file() else {}
        drawn[category] = [
            _case(data, category, row, answers.get(row["id"], ()))
            for row in random.Random(f"{seed}:{category}").sample(_rows(data / name), each)  # noqa: S311  # a draw, no secret
        ]
    return [case for turn in zip(*drawn.values(), strict=True) for case in turn]


def _case(data: Path, category: str, row: Mapping[str, Any], answer: Sequence[Any]) -> Case:
    turns = [said[-1]["content"] for said in row["question"]]
    if category != MULTI_TURN:
        return Case(row["id"], category, turns, row["function"], answer)
    files = importlib.import_module("bfcl_eval.constants.executable_backend_config").MULTI_TURN_FUNC_DOC_FILE_MAPPING
    functions = [one for name in row["involved_classes"] for one in _rows(data / "multi_turn_func_doc" / files[name])]
    return Case(row["id"], category, turns, functions, answer, row)


def hands(case: Case) -> CallTool:
    """What carries out the calls of one run of a case: BFCL's simulated classes, made anew, or no more than "done"."""
    if case.scene is None:
        return lambda _name, _arguments: DONE
    classes, run = importlib.import_module(f"{_MULTI_TURN_EVAL}.multi_turn_utils"), _fresh_name()
    entry = case.scene

    def call_tool(name: str, arguments: Mapping[str, object]) -> str:
        line = _python(case, (name, arguments))
        if line is None:
            return f"Error: no call of a known tool: {name!r}"
        results, _ = classes.execute_multi_turn_func_call(
            [line], entry["initial_config"], entry["involved_classes"], run, case.id
        )
        return results[0]

    return call_tool


def _fresh_name() -> str:
    """A name for instances of BFCL's classes, which stand in a table of all that were ever made, by names of Python."""
    return f"run_{uuid4().hex}"


def _python(case: Case, call: Made) -> str | None:
    """A call as BFCL evaluates it; None unless it is one of a tool of the case, since what stands there is executed."""
    name, arguments = call
    if name not in {one["name"] for one in case.functions} or not all(key.isidentifier() for key in arguments):
        return None
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def is_right(case: Case, made: Sequence[Sequence[Made]]) -> bool:
    """BFCL's own verdict on the calls of each turn.

    Of one turn: no call where none fits, else exactly those of the answer, in any order if parallel. Of several: after
    each the classes are as the answer leaves them, and what its calls gave was seen.
    """
    if case.category == "irrelevance":
        return not any(made)
    if case.scene is not None:
        checker = importlib.import_module(f"{_MULTI_TURN_EVAL}.multi_turn_checker").multi_turn_checker
        steps = [[[line] for call in turn if (line := _python(case, call))] for turn in made]
        return bool(checker(steps, case.answer, case.scene, case.category, _fresh_name())["valid"])
    checker, enums = _checker()
    output = [{name: dict(arguments)} for name, arguments in made[0]]
    language = enums.Language.PYTHON
    try:
        verdict = checker.ast_checker(case.functions, output, case.answer, language, case.category, "any")
    except (AttributeError, KeyError, TypeError):  # its checker trips over arguments of an odd shape: they are wrong
        return False
    return bool(verdict["valid"])


def turns_right(case: Case, made: Sequence[Sequence[Made]]) -> int:
    """How many turns are right before the first that is not."""
    if case.scene is None:
        return int(is_right(case, made))
    beginnings = (replace(case, answer=case.answer[:turns]) for turns in range(1, len(case.turns) + 1))
    return sum(1 for _ in takewhile(lambda one: is_right(one, made), beginnings))


def _checker() -> tuple[Any, Any]:
    """BFCL's checker. Of its table of models, whose import needs all their clients, it asks whether names have dots."""
    table = ModuleType("bfcl_eval.constants.model_config")
    table.MODEL_CONFIG_MAPPING = defaultdict(lambda: SimpleNamespace(underscore_to_dot=True))  # type: ignore[attr-defined]  # a module of our own making
    sys.modules.setdefault(table.__name__, table)
    return (
        importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker"),
        importlib.import_module("bfcl_eval.constants.enums"),
    )
