"""What can be set about a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from surefoot.types.checks import is_number, is_share, is_whole
from surefoot.types.errors import ConfigError
from surefoot.types.guard import GuardConfig
from surefoot.types.knowledge import ConventionsConfig
from surefoot.types.planning import PlanConfig
from surefoot.types.prehydration import PreHydrationConfig
from surefoot.types.profile import ToolProfile
from surefoot.types.progress import StepIterationConfig

LEAST_RESULT_CHARS = 200
LEAST_CONTEXT_TOKENS = 1_000


_LEAST = {
    "parse_faults": 1,
    "nudges": 0,
    "empty_replies": 1,
    "continuations": 0,
    "tool_result_chars": LEAST_RESULT_CHARS,
    "max_concurrent_tools": 1,
    "max_rounds": 1,
    "actor_steps": 1,
}

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "on_conflict": ("first", "error"),
    "repair": ("strict", "lossless"),
    "deliverable": ("optional", "required"),
    "early_deliverable": ("confirm", "accept"),
    "thinker_sees": ("data", "all"),
}


class _Unsaid(int):
    """The default of a number of steps, which can be told from the same number that somebody has said."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may use up. `None` means no limit; a limit that is reached ends the run with what it has.

    `max_steps` counts model requests, those of judge and sanitiser among them, and turns that were made without one
    (`GuardConfig.direct`); `max_tokens` counts
    input and output together, `max_seconds` the time in which somebody drives the run (not the time it waits for a
    person). `reserve` is the share of tokens, money and time that is kept for the last request, in which the model says
    what is known. `shares` limits a role to its share of tokens and money: `{"thinker": 0.4}`.
    """

    max_steps: int | None = _Unsaid(50)
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    max_seconds: float | None = None
    reserve: float = 0.1
    shares: Mapping[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self) -> None:
        if not isinstance(self.shares, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
            raise ConfigError("shares", self.shares, "give a share for each role that has one, or {} for none")
        for role, share in self.shares.items():
            if not (isinstance(role, str) and is_share(share) and share > 0):  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
                raise ConfigError("shares", {role: share}, "give each role a share above 0 and up to 1")
        for name in ("max_steps", "max_tokens", "max_cost_usd", "max_seconds"):
            value = getattr(self, name)
            if value is not None and not (is_number(value) and value > 0):
                raise ConfigError(name, value, "give a number above 0, or None for no limit")
        for name in ("max_steps", "max_tokens"):
            if not isinstance(getattr(self, name), int | None):
                raise ConfigError(name, getattr(self, name), "give a whole number, or None for no limit")
        if not (is_share(self.reserve) and self.reserve < 1):
            raise ConfigError("reserve", self.reserve, "give a share from 0 up to, but not including, 1")

    @property
    def steps_said(self) -> int | None:
        """The number of steps, where somebody has said one; None for the default, and for no limit."""
        return None if isinstance(self.max_steps, _Unsaid) else self.max_steps


_PARTS: Mapping[str, type] = {
    "budget": Budget,
    "tool_profile": ToolProfile,
    "step_iteration": StepIterationConfig,
    "pre_hydration": PreHydrationConfig,
    "conventions": ConventionsConfig,
    "guard": GuardConfig,
    "plan": PlanConfig,
}


@dataclass(frozen=True, slots=True)
class LoopConfig:
    """How the loop behaves. Source: spec/react.md, section 10; spec/reasoners.md, sections 6 to 8; counts are in a row.

    `parse_faults`: unreadable replies after which the run fails. `nudges`: replies without a step that are answered
    with a reminder. `empty_replies`: empty replies after which the run fails. `continuations`: how often an answer that
    was cut by length is asked to go on. `tool_result_chars`: what a model sees of one result; the rest can be paged.
    `max_concurrent_tools`: reads of one reply that may run side by side. `tool_timeout_s`: for tools that name none.
    `tool_grace_s`: how long a tool may take to stop once its call is given up; then it is left running.

    For `mono` and `dual`: `max_rounds` until the deliverable is asked for; `deliverable` "required" takes no plain
    words for an answer. For `dual`: `actor_steps`, requests of one turn of the Actor; `early_deliverable`, whether a
    deliverable before the Thinker's word is to be confirmed; `thinker_sees`, whether untrusted text ("all") or not.
    `tool_profile`: which tools the run may see and call; None is all of them. `step_iteration`: when the run counts as
    stuck; None is the defaults, and not "off". `pre_hydration`: what is fetched, before the first model call, of what a
    task refers to; None is nothing. `conventions`: where the workspace tells how its files are to be written, and what
    is known of it; None reads nothing and gives no knowledge tools.
    `context_tokens`: the window of the models, for a request and its reply; old results are folded so that a run stays
    inside. None is what is known of each model; where nothing is, nothing is folded before a server complains.
    `guard`: how the gate judges calls; None is off, and then only what no run may do is refused.
    `plan`: how the reasoner `plan` goes about it; None is its defaults.
    `output_schema`: a JSON Schema that the answer, or the deliverable's final output, has to fit as JSON.
    """

    budget: Budget = Budget()
    parse_faults: int = 3
    nudges: int = 2
    empty_replies: int = 2
    continuations: int = 1
    tool_result_chars: int = 16_000
    context_tokens: int | None = None
    max_concurrent_tools: int = 16
    tool_timeout_s: float = 120.0
    tool_grace_s: float = 5.0
    finish_with_reads: bool = False
    on_conflict: Literal["first", "error"] = "first"
    repair: Literal["strict", "lossless"] = "lossless"
    max_rounds: int = 20
    deliverable: Literal["optional", "required"] = "optional"
    actor_steps: int = 3
    early_deliverable: Literal["confirm", "accept"] = "confirm"
    thinker_sees: Literal["data", "all"] = "data"
    output_schema: Mapping[str, object] | None = None
    tool_profile: ToolProfile | None = None
    step_iteration: StepIterationConfig | None = None
    pre_hydration: PreHydrationConfig | None = None
    conventions: ConventionsConfig | None = None
    guard: GuardConfig | None = None
    plan: PlanConfig | None = None

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not is_whole(value, least):
                raise ConfigError(name, value, f"give a whole number of at least {least}")
        if self.context_tokens is not None and not is_whole(self.context_tokens, LEAST_CONTEXT_TOKENS):
            least = f"give a whole number of at least {LEAST_CONTEXT_TOKENS}, or None for what is known of the model"
            raise ConfigError("context_tokens", self.context_tokens, least)
        if self.output_schema is not None and not isinstance(self.output_schema, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
            raise ConfigError("output_schema", self.output_schema, "give a JSON Schema as a mapping, or None")
        if type(self.finish_with_reads) is not bool:
            raise ConfigError("finish_with_reads", self.finish_with_reads, "give true or false")
        for name, kind in _PARTS.items():
            part = getattr(self, name)
            if not isinstance(part, kind) and (part is not None or name == "budget"):
                raise ConfigError(name, part, f"give a {kind.__name__}" + ("" if name == "budget" else ", or None"))
        for name in ("tool_timeout_s", "tool_grace_s"):
            if not (is_number(seconds := getattr(self, name)) and seconds > 0):
                raise ConfigError(name, seconds, "give seconds above 0")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ConfigError(name, getattr(self, name), f"choose one of {', '.join(choices)}")
