"""How far a plan has come. `core/plan/steps.py` makes it out of events. Source: spec/guard.md, section 2."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.types.dataclass import dataclass, field
from surefoot.types.plan import WITHOUT_TOOLS, PlanStep, StepExecutionResult
from surefoot.types.tools import Trust


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """The steps in their order, the one that runs, and what came of the others, by id.

    `since` is how many turns there were before the running step, `bad` the numbers of those of its replies that it
    cannot use and that are on record as such. `trust` is that of all that whoever wrote the running step had read,
    `done` what an attempt at it before has done and must not be done again, a line each.
    """

    steps: tuple[PlanStep, ...]
    running: PlanStep | None = None
    results: Mapping[str, StepExecutionResult] = field(default_factory=dict[str, StepExecutionResult])
    since: int = 0
    bad: tuple[int, ...] = ()
    trust: Trust = "trusted"
    done: tuple[str, ...] = ()

    @property
    def following(self) -> PlanStep | None:
        """The first step that has no result yet."""
        return next((step for step in self.steps if step.step_id not in self.results), None)

    @property
    def failed(self) -> StepExecutionResult | None:
        """The step that failed, if one did."""
        return next((result for result in self.results.values() if result.error is not None), None)

    @property
    def answer(self) -> str:
        """The answer so far: the output of the last step that has one."""
        return next((one.output for one in reversed(tuple(self.results.values())) if one.is_success), "")

    def is_reasoning(self, step_id: str) -> bool:
        """Whether that step is one in which no tool may be called."""
        return any(step.step_id == step_id and step.kind in WITHOUT_TOOLS for step in self.steps)

    def inputs(self, step: PlanStep) -> tuple[StepExecutionResult, ...]:
        """The outputs that a step uses: those it depends on, or all before it where it names none."""
        wanted = step.dependencies or tuple(self.results)
        return tuple(one for name in wanted if (one := self.results.get(name)) is not None and one.is_success)
