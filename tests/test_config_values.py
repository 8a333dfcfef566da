"""What no configuration takes: each bad value is a `ConfigError` when it is built. Source: spec/primitives.md, D1."""

import copy
import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cases import each
from surefoot.agent import Agent
from surefoot.reasoners import DualModelReasoner, MonoModelReasoner
from surefoot.service import ModelService
from surefoot.testing.models import ScriptedModel
from surefoot.types.config import Budget, LoopConfig
from surefoot.types.errors import ConfigError
from surefoot.types.guard import GuardConfig
from surefoot.types.knowledge import ConventionsConfig
from surefoot.types.messages import ModelSettings
from surefoot.types.plan import PlanConfig
from surefoot.types.prehydration import PreHydrationConfig, ReferencePattern, Resolver
from surefoot.types.progress import StepIterationConfig
from surefoot.types.selection import ToolProfile

Values = tuple[object, ...]
Kind = type[Any]  # one of the configurations; its fields are given by name

HUGE, NAN, INF = 10**400, float("nan"), float("inf")
WHOLE: Values = (1.5, True, "3", [], HUGE, NAN)
LIMIT: Values = (0, -1.0, True, "3", [], HUGE, NAN, INF)
PART: Values = (-0.1, 1.1, True, "1", [], HUGE, NAN)
NO_NAME: Values = (3, "", [], {})
GROUPS: Mapping[str, Values] = {
    "$WHOLE": WHOLE,
    "$COUNT": (-1, *WHOLE),
    "$LIMIT": LIMIT,
    "$SECONDS": (*LIMIT, None),
    "$PART": PART,
    "$SHARE": (*PART, None),
    "$AMOUNT": (-0.1, True, "1", [], HUGE, NAN, INF),
    "$FLAG": (None, 0, 1, "yes", []),
    "$TEXTS": (None, "a", 3, {"a": 1}, [None], [1], [["a"]]),
    "$MAPPING": (None, "a", 3, [], [("a", "b")]),
    "$NO_NAME": NO_NAME,
    "$WORD": (None, *NO_NAME),
    "$LONG": ("a" * 1001,),
}
"""What stands in the table for several values."""
NO_JSON: Mapping[str, Values] = {
    "shares": ({"thinker": HUGE}, {1: 0.5}),
    "digests": ({1: f"sha256:{'0' * 64}"},),
    "resolution_tools": ({1: "a"},),
    "files": ({"AGENTS.md"},),
}
KINDS: Sequence[Kind] = (
    *(Budget, LoopConfig, PlanConfig, ToolProfile, StepIterationConfig, PreHydrationConfig),
    *(ReferencePattern, Resolver, GuardConfig, ModelSettings, ConventionsConfig),
)


def _table() -> Iterator[tuple[str, str, Values]]:
    """The rows of `tests/data/config_values.jsonl`: a kind, a field, and what it does not take."""
    for row in map(json.loads, TABLE.read_text(encoding="utf-8").splitlines()):
        for name in row["fields"]:
            values = [one for bad in row["bad"] for one in (GROUPS[bad] if str(bad) in GROUPS else (bad,))]
            yield row["kind"], name, (*values, *NO_JSON.get(name, ()))


TABLE = Path(__file__).parent / "data" / "config_values.jsonl"
BAD: Mapping[Kind, Mapping[str, Values]] = {
    kind: {name: values for of, name, values in _table() if of == kind.__name__} for kind in KINDS
}
NEEDED: Mapping[Kind, Mapping[str, object]] = {
    ReferencePattern: {"ref_type": "jira", "pattern": "a"},
    Resolver: {"tool": "jira_get"},
    ConventionsConfig: {"root": "."},
}


def _taken(kind: Kind, name: str, value: object) -> str:
    """What is wrong with how a bad value is refused; "" when nothing is."""
    what = f"{kind.__name__}.{name}={ascii(value)[:30]}"
    try:
        kind(**{**NEEDED.get(kind, {}), name: value})
    except ConfigError as error:
        return "" if error.field.split(".")[0] == name and error.message else f"{what} is told as {error.field}"
    return f"{what} is taken"


def test_a_bad_value_is_told_by_its_field_when_it_is_built() -> None:
    cases = [(kind, name, value) for kind, rows in BAD.items() for name, values in rows.items() for value in values]
    assert not [wrong for case in cases if (wrong := _taken(*case))]


@each("kind", BAD)
def test_what_is_needed_alone_is_enough_and_frozen(kind: Kind) -> None:
    config = kind(**NEEDED.get(kind, {}))
    assert {field.name for field in fields(config)} == {*BAD[kind]}, "every field has bad values"
    with pytest.raises(AttributeError):
        setattr(config, next(iter(BAD[kind])), 3)


def test_a_field_that_a_profile_has_not_is_told_by_its_name() -> None:
    fields_given: dict[str, Any] = {"includes": ["web_*"]}
    with pytest.raises(ConfigError, match=r"^includes=\['web_\*'\]: unknown field; choose from include, "):
        ToolProfile(**fields_given)
    assert copy.copy(pickle.loads(pickle.dumps(ToolProfile(["a"])))) == ToolProfile(include=["a"])  # noqa: S301 - ours


@each("kind", [ToolProfile, StepIterationConfig, PreHydrationConfig])
def test_json_of_another_shape_or_with_an_unknown_field_is_refused(kind: Kind) -> None:
    for data in (None, 3, "x", [], [1], {"nope": 1}, {1: 2}, {None: None}):
        with pytest.raises(ConfigError):
            kind.from_json(data)


DUAL = partial(DualModelReasoner, ScriptedModel([]))
TOLD = {
    "settings": "give a ModelSettings",
    "guard": r"give True, or a GuardConfig such as GuardConfig\(mode=",
    "config": "give a LoopConfig, or leave it out",
}


@each(
    ("made", "name", "values"),
    [
        (Agent, "settings", (None, 3, {"temperature": 0}, {"solo": {"temperature": 0}}, {"solo": None})),
        (Agent, "guard", ("enforce", {"mode": "enforce"}, 1)),
        *(
            (made, "config", (None, {"repair": "all"}, LoopConfig))
            for made in (Agent, MonoModelReasoner, ModelService, DUAL)
        ),
    ],
)
def test_what_is_no_configuration_is_refused_where_it_is_given(made: Any, name: str, values: Values) -> None:
    for given in values:
        with pytest.raises(ConfigError, match=rf"^{name}=.*: {TOLD[name]}"):
            made(ScriptedModel([]), **{name: given})
