"""How often a step may be tried, and what is decided about one that gets nowhere. Source: spec/primitives.md, 2.1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Literal, cast

from surefoot.types.checks import is_share, is_whole
from surefoot.types.errors import ConfigError
from surefoot.types.written import written


class LimitAction(StrEnum):
    """What happens to a step that reached its limit; in JSON its name. Source: seed 001, and two of ours."""

    SkipStep = "SkipStep"
    AbortTask = "AbortTask"
    Escalate = "Escalate"
    Replan = "Replan"
    AnswerNow = "AnswerNow"


_LEAST = {"max_reattempts_per_step": 0, "max_period": 1, "repeats": 2, "window": 1}


@dataclass(frozen=True, slots=True)
class StepIterationConfig:
    """How often a step may be tried, and when a run counts as going in circles.

    `max_reattempts_per_step`: failures at which a step stops (2: at the second; 1: no retry; 0: it is not started).
    `similarity_threshold`: share from 0 to 1 at or above which two errors are the same. `repeats` copies of a block of
    up to `max_period` turns are a circle; `window` turns are kept. `enabled=False` still counts, and decides nothing.
    Raises `ConfigError`. Source: spec/primitives.md, 2.1.
    """

    max_reattempts_per_step: int = 2
    similarity_threshold: float = 0.85
    on_limit_reached: LimitAction = LimitAction.SkipStep
    window: int = 20
    max_period: int = 6
    repeats: int = 3
    enabled: bool = True

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value: object = getattr(self, name)
            if not is_whole(value, least):
                raise ConfigError(name, value, f"give a whole number of at least {least}")
        if not is_share(self.similarity_threshold):
            raise ConfigError("similarity_threshold", self.similarity_threshold, "give a number from 0 to 1")
        if self.on_limit_reached not in tuple(LimitAction):
            raise ConfigError("on_limit_reached", self.on_limit_reached, f"choose one of {', '.join(LimitAction)}")
        object.__setattr__(self, "on_limit_reached", LimitAction(self.on_limit_reached))  # a name will do
        if type(self.enabled) is not bool:
            raise ConfigError("enabled", self.enabled, "give true or false")
        if self.window < (needed := self.repeats * self.max_period + 2):
            raise ConfigError("window", self.window, f"give at least repeats × max_period + 2, which is {needed}")

    @classmethod
    def from_json(cls, data: object) -> StepIterationConfig:
        """The configuration of a JSON object. Raises `ConfigError`, also for a field that there is not."""
        if not isinstance(data, Mapping):
            raise ConfigError("step_iteration", data, "give an object")
        known = {field.name for field in fields(cls)}
        given = cast("Mapping[str, object]", data)  # the keys of a JSON object are text; others are unknown fields
        for name, value in given.items():
            if name not in known:
                raise ConfigError(str(name), value, f"there is no such field; choose from {', '.join(sorted(known))}")
        return cls(**given)  # pyright: ignore[reportArgumentType] - the constructor checks each value

    def to_json(self) -> dict[str, object]:
        """A JSON object of what is not the default."""
        return written(self)


Verdict = Literal["continue", "correct", "block", "stop"]
LimitKind = Literal["max", "stuck"]
StuckPattern = Literal["similar", "repeat", "cycle", "monologue"]


@dataclass(frozen=True, slots=True)
class StepDecision:
    """What to do about a step, or a run, after what was recorded.

    `correct`: tell the model that it goes in circles; `block`: refuse the call that continues it; `stop`: give up.
    `kind` and `pattern` say why; `evidence` are the numbers (in the journal) of what is meant, oldest first, as far as
    they were given. `first` is true once for each stop: when it is made. `similarity` of the errors is from 0 to 1.
    """

    decision: Verdict = "continue"
    kind: LimitKind | None = None
    pattern: StuckPattern | None = None
    reason: str = ""
    evidence: tuple[int, ...] = ()
    first: bool = False
    similarity: float | None = None

    @property
    def strictness(self) -> int:
        """From 0, continue, to 3, stop."""
        return _STRICTNESS[self.decision]


_STRICTNESS: Mapping[Verdict, int] = {"continue": 0, "correct": 1, "block": 2, "stop": 3}
CONTINUE = StepDecision()
