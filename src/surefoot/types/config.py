"""What can be set about a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal, cast

from surefoot.types.dataclass import dataclass, replace
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.guard import GuardConfig
from surefoot.types.knowledge import ConventionsConfig
from surefoot.types.plan import PlanConfig
from surefoot.types.prehydration import PreHydrationConfig
from surefoot.types.progress import StepIterationConfig
from surefoot.types.selection import ToolProfile
from surefoot.types.settings import (
    Settings,
    T,
    above_zero,
    choice,
    fits,
    flag,
    is_number,
    of_type,
    or_none,
    pairs_of,
    seconds,
    setting,
    whole,
)

LEAST_RESULT_CHARS = 200
LEAST_CONTEXT_TOKENS = 1_000


class _Unsaid(int):
    """The default of a number of steps, which can be told from the same number that somebody has said."""


def _schema(name: str, value: object) -> object:
    if not isinstance(value, Mapping):
        raise ConfigError(name, value, "give a JSON Schema as a mapping")
    schema = cast("Mapping[str, object]", value)  # its members are asked next
    try:
        json.dumps(schema, allow_nan=False, default=dict)
    except (TypeError, ValueError) as error:
        raise ConfigError(name, schema, "JSON has no dates, no inf and no nan; leave them out") from error
    return schema


@dataclass(frozen=True, slots=True)
class Budget(Settings):
    """What a run may use. `None` means no limit; a run that reaches a limit ends with what it has."""

    max_steps: int | None = setting(
        _Unsaid(50),
        or_none(whole(1), "no limit"),
        "requests to a model, including those of the judge and the sanitiser, and turns made without one",
        option="--max-steps",
    )
    max_tokens: int | None = setting(
        None, or_none(whole(1), "no limit"), "tokens, in and out together", option="--max-tokens"
    )
    max_cost_usd: float | None = setting(
        None, or_none(above_zero, "no limit"), "the most that a run may cost, in US dollars", option="--max-cost"
    )
    max_seconds: float | None = setting(
        None,
        or_none(above_zero, "no limit"),
        "seconds of active run time; waiting for a person does not count",
        option="--max-seconds",
    )
    reserve: float = setting(
        0.1,
        fits(lambda value: is_number(value) and 0 <= value < 1, "give a share from 0 up to, but not including, 1"),
        "share of tokens, money and time that is kept for the last request, which asks for what is known",
    )
    shares: Mapping[str, float] = setting(
        dict[str, float],
        pairs_of(
            lambda role, value: isinstance(role, str) and is_number(value) and 0 < value <= 1,
            "give each role a share above 0 and up to 1",
            "give a share for each role that has one, or {} for none",
        ),
        "share of tokens and money that a role may use, except in a plan: `{thinker = 0.4}`",
    )

    @property
    def steps_said(self) -> int | None:
        """The number of steps, where somebody has said one; None for the default, and for no limit."""
        return None if isinstance(self.max_steps, _Unsaid) else self.max_steps


def _part(kind: type[T]) -> T | None:
    return setting(None, or_none(of_type(kind), "none"), "", in_files=False)


@dataclass(frozen=True, slots=True)
class LoopConfig(Settings):
    """How the loop behaves; counts are in a row. Source: spec/react.md, section 10; spec/reasoners.md, sections 6 to 8.

    `budget`, `tool_profile`, `step_iteration`, `pre_hydration`, `conventions`, `guard` and `plan` are configurations
    of their own. None is off, except for `step_iteration` and `plan`, where it means their defaults.
    """

    budget: Budget = setting(Budget(), of_type(Budget), "", in_files=False)
    parse_faults: int = setting(3, whole(1), "unreadable replies after which the run fails")
    nudges: int = setting(2, whole(0), "replies without a step that are answered with a reminder")
    empty_replies: int = setting(2, whole(1), "empty replies after which the run fails")
    continuations: int = setting(1, whole(0), "how often an answer that was cut by length is asked to go on")
    tool_result_chars: int = setting(
        16_000,
        whole(LEAST_RESULT_CHARS),
        "characters of one result that a model sees at once (at least 200); it can page through the rest",
    )
    context_tokens: int | None = setting(
        None,
        or_none(whole(LEAST_CONTEXT_TOKENS), "what is known of the model"),
        "the models' window, for a request and its reply (at least 1000), which old results are folded to fit; "
        "none: what is known of each model",
    )
    max_concurrent_tools: int = setting(16, whole(1), "reads of one reply that run side by side")
    tool_timeout_s: float = setting(120.0, seconds, "for tools without a time-out of their own")
    tool_grace_s: float = setting(
        5.0, seconds, "how long a tool may take to stop once its call is given up; then it is left running"
    )
    finish_with_reads: bool = setting(False, flag, "whether a finish tool's answer counts when reads stand beside it")
    repair: Literal["strict", "lossless"] = setting(
        "lossless",
        choice("strict", "lossless"),
        "JSON that is written loosely (comments, trailing commas, single quotes …) is read for what it says; "
        "`strict`: JSON only",
    )
    output_schema: Mapping[str, object] | None = setting(
        None, or_none(_schema, "none"), "JSON Schema that the answer, or the deliverable's final output, has to fit"
    )
    output_repairs: int = setting(
        1, whole(0), "answers in another shape than `output_schema` that are asked for again, before the run fails"
    )
    max_rounds: int = setting(
        20, whole(1), "`mono`, `dual`: rounds until the deliverable is asked for", option="--max-rounds"
    )
    deliverable: Literal["optional", "required"] = setting(
        "optional",
        choice("optional", "required"),
        "`mono`, `dual`: `required` does not accept plain words as an answer",
    )
    actor_steps: int = setting(3, whole(1), "`dual`: requests of one turn of the Actor")
    early_deliverable: Literal["confirm", "accept"] = setting(
        "confirm",
        choice("confirm", "accept"),
        "`dual`: the Thinker confirms a deliverable that came before its word; `accept`: it counts",
    )
    thinker_sees: Literal["data", "all"] = setting(
        "data", choice("data", "all"), "`dual`: the Thinker reads no untrusted text; `all`: it does", found="default"
    )
    tool_profile: ToolProfile | None = _part(ToolProfile)
    step_iteration: StepIterationConfig | None = _part(StepIterationConfig)
    pre_hydration: PreHydrationConfig | None = _part(PreHydrationConfig)
    conventions: ConventionsConfig | None = _part(ConventionsConfig)
    guard: GuardConfig | None = _part(GuardConfig)
    plan: PlanConfig | None = _part(PlanConfig)


TABLES: Mapping[str, type[Settings]] = {
    "budget": Budget,
    "loop": LoopConfig,
    "tool_profile": ToolProfile,
    "step_iteration": StepIterationConfig,
    "pre_hydration": PreHydrationConfig,
    "guard": GuardConfig,
    "plan": PlanConfig,
    "conventions": ConventionsConfig,
}
"""All configurations, by the name of their table in a settings file."""


def checked_config(given: object, *, guard: bool | GuardConfig | None = False) -> LoopConfig:
    """The configuration that was given, with a `guard` besides; True is its own, or one with defaults.

    Raises `ConfigError` for anything else, also for None, and `UsageError` for two different guards.
    """
    if not isinstance(given, LoopConfig):
        raise ConfigError("config", given, "give a LoopConfig, or leave it out for the default")
    if not isinstance(guard, bool | GuardConfig | None):  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
        raise ConfigError("guard", guard, "give True, or a GuardConfig such as GuardConfig(mode='observe')")
    chosen = given.guard or GuardConfig() if guard is True else guard or given.guard
    if given.guard not in (None, chosen):
        raise UsageError("two guards are given: leave out `guard=`, and set it in the config: LoopConfig(guard=…)")
    return replace(given, guard=chosen)
