"""What no configuration takes: each bad value is a `ConfigError` when it is built. Source: spec/primitives.md, D1."""

import copy
import pickle
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
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
Kind = type[Any]
"""One of the configurations; its fields are given by name."""

HUGE, NAN, INF = 10**400, float("nan"), float("inf")
COUNT: Values = (-1, 1.5, True, "3", [], HUGE, NAN)
SECONDS: Values = (0, -1.0, True, "3", [], HUGE, NAN, INF, None)
SHARE: Values = (-0.1, 1.1, True, "1", [], HUGE, NAN, None)
FLAG: Values = (None, 0, 1, "yes", [])
TEXTS: Values = (None, "a", 3, {"a": 1}, [None], [1], [["a"]])
MAPPING: Values = (None, "a", 3, [], [("a", "b")])
WORD: Values = (None, 3, "", [], {})

BAD: Mapping[Kind, Mapping[str, Values]] = {
    Budget: {
        "max_steps": (0, *COUNT),
        "max_tokens": (0, *COUNT),
        "max_cost_usd": SECONDS[:-1],
        "max_seconds": SECONDS[:-1],
        "reserve": (1, *SHARE),
        "shares": (*MAPPING, {"thinker": 0}, {"thinker": None}, {"thinker": HUGE}, {1: 0.5}),
    },
    LoopConfig: {
        "budget": (None, 3, {}, {"max_steps": 3}),
        "parse_faults": (0, None, *COUNT),
        "nudges": (None, *COUNT),
        "empty_replies": (0, None, *COUNT),
        "continuations": (None, *COUNT),
        "tool_result_chars": (199, None, *COUNT),
        "max_concurrent_tools": (0, None, *COUNT),
        **dict.fromkeys(("tool_timeout_s", "tool_grace_s"), SECONDS),
        "finish_with_reads": FLAG,
        "repair": ("all", *WORD),
        "max_rounds": (0, None, *COUNT),
        "deliverable": ("never", *WORD),
        "actor_steps": (0, None, *COUNT),
        "early_deliverable": ("never", *WORD),
        "thinker_sees": ("nothing", *WORD),
        "context_tokens": (999, *COUNT),
        "output_schema": ("{}", 3, []),
        "output_repairs": (None, *COUNT),
        "tool_profile": ({}, ["web_*"], "web_*"),
        "step_iteration": ({}, 3, False),
        "pre_hydration": ({}, True, 3),
        "conventions": ({}, ".", 3),
        "guard": ({}, "enforce", True),
        "plan": ({}, "first", True),
    },
    PlanConfig: {
        **dict.fromkeys(("max_parallel", "same_error_limit", "no_progress_rounds"), (0, None, *COUNT)),
        **dict.fromkeys(("shortlist_max", "selected_max", "max_steps"), (0, None, *COUNT)),
        **dict.fromkeys(("transient_retries", "reasks", "llm_repairs", "select_all_below"), (None, *COUNT)),
        **dict.fromkeys(("max_replans", "max_llm_calls", "max_tool_calls"), COUNT),
        "max_tokens": (0, *COUNT),
        "completion_threshold": (0, 101, None, *COUNT),
        "history_max_tokens": (199, None, *COUNT),
        "chapter_max_chars": (19, None, *COUNT),
        "step_timeout_s": SECONDS,
        **dict.fromkeys(("deadline_s", "max_cost_usd"), SECONDS[:-1]),
        "approve_plan": ("last", *WORD),
        "answer": ("on", *WORD),
        "evaluators": (None, 3, "nothing_done", [None], (3,)),
        "model": (None, 3, [], {}),
    },
    ToolProfile: {
        **dict.fromkeys(("include", "exclude", "pinned"), TEXTS),
        "max_tools": COUNT,
        "require_verified": FLAG,
        "trust_description": ("remote", *WORD),
        "digests": (*MAPPING, {"a": None}, {"a": "0" * 64}, {"a": f"sha256:{'0' * 63}"}, {1: f"sha256:{'0' * 64}"}),
    },
    StepIterationConfig: {
        "max_reattempts_per_step": (None, *COUNT),
        "similarity_threshold": SHARE,
        "on_limit_reached": ("Skip", *WORD),
        "window": (0, 19, None, *COUNT),
        "max_period": (0, None, *COUNT),
        "repeats": (1, None, *COUNT),
        "enabled": FLAG,
    },
    PreHydrationConfig: {
        "custom_patterns": (None, "a", 3, {"a": "b"}, [None], ["[A-Z]"], [{"ref_type": "a"}]),
        "resolution_tools": (*MAPPING, {"url": None}, {"url": 3}, {"url": ""}, {"": "a"}, {1: "a"}),
        "timeout": SECONDS,
        "reference_timeout": SECONDS,
        "max_references": (None, *COUNT),
        "max_context_tokens": (None, *COUNT),
        "max_per_type": COUNT,
        "max_concurrency": (0, None, *COUNT),
        "max_input_chars": (None, *COUNT),
        "path_style": ("vms", *WORD),
    },
    ReferencePattern: {
        "ref_type": ("1a", "a b", "a" * 65, *WORD),
        "pattern": (*WORD, "(", "*", r"(a)\1", "(a+)+", "a" * 1001, "a{99999999999}"),
    },
    Resolver: {"tool": WORD, "argument": WORD[1:]},
    GuardConfig: {
        **dict.fromkeys(("mode", "two_faults", "content_tokens", "fetch", "guess", "pins"), ("maybe", *WORD)),
        **dict.fromkeys(("approvals", "anchor", "sanitise"), ("maybe", *WORD)),
        **dict.fromkeys(("strict", "speculate", "direct", "memory"), FLAG),
        **dict.fromkeys(("approval_timeout_s", "stage_timeout_s"), SECONDS),
        **dict.fromkeys(("max_asks", "reasoning_retries", "max_backtracks", "max_trees"), (None, *COUNT)),
        "lexicon": (*MAPPING, {"ping": ("a",)}, {"write": "a"}, {"write": (3,)}, {"write": ("",)}),
        **dict.fromkeys(("constraints", "rules", "standing"), (None, "a", 3, {}, (None,), ("a",))),
        "declared": MAPPING,
        **dict.fromkeys(("cedar", "user", "judge"), (None, 3, [], {})),
    },
    ModelSettings: {
        **dict.fromkeys(("temperature", "price_in", "price_out"), (-0.1, True, "1", [], HUGE, NAN, INF)),
        "top_p": SHARE[:-1],
        "max_output_tokens": COUNT,
        "seed": COUNT[1:],
        "reasoning_effort": (3, [], {}),
        "stop": TEXTS,
        **dict.fromkeys(("connect_timeout_s", "between_tokens_timeout_s"), SECONDS),
        **dict.fromkeys(("first_token_timeout_s", "request_timeout_s"), SECONDS[:-1]),
        "attempts": (0, None, *COUNT),
        "extra": MAPPING,
    },
    ConventionsConfig: {
        "root": ("a\0b", *WORD),
        "files": (*TEXTS, ["a/b"], [""], [".."], {"AGENTS.md"}),
        "max_bytes": (None, *COUNT),
        "store": WORD[1:],
    },
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
