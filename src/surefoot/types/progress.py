"""How often a step may be tried, and what is decided about one that gets nowhere. Source: spec/primitives.md, 2.1."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from surefoot.types.dataclass import dataclass
from surefoot.types.errors import ConfigError
from surefoot.types.settings import Settings, choice, flag, setting, share, whole


class LimitAction(StrEnum):
    """What happens when a step reaches its limit; in JSON its name. Source: seed 001, and two of ours."""

    SkipStep = "SkipStep"
    AbortTask = "AbortTask"
    Escalate = "Escalate"
    Replan = "Replan"
    AnswerNow = "AnswerNow"


@dataclass(frozen=True, slots=True)
class StepIterationConfig(Settings):
    """How often a step may be tried, and when a run counts as going in circles.

    Raises `ConfigError`. Source: spec/primitives.md, 2.1.
    """

    max_reattempts_per_step: int = setting(
        2, whole(0), "failures at which a step stops (1: no retry; 0: it is not started)"
    )
    similarity_threshold: float = setting(0.85, share, "share from 0 to 1 at or above which two errors are the same")
    on_limit_reached: LimitAction = setting(
        LimitAction.SkipStep,
        lambda name, value: LimitAction(str(choice(*LimitAction)(name, value))),  # a name will do
        "what happens to a step, or a run, that goes in circles",
        option="--on-stuck",
    )
    window: int = setting(20, whole(1), "turns that are looked at; at least `repeats` × `max_period` + 2")
    max_period: int = setting(6, whole(1), "the most turns in a block of turns that repeats")
    repeats: int = setting(3, whole(2), "copies of such a block that are a circle")
    enabled: bool = setting(True, flag, "false: it still counts, and decides nothing")

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if self.window < (needed := self.repeats * self.max_period + 2):
            raise ConfigError("window", self.window, f"give at least repeats × max_period + 2, which is {needed}")


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
