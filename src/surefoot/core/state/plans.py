"""How far a plan has come: the steps that came with a task, and a plan that repairs itself.

A step that runs has a small state of its own (`Planning.children`): the same records, folded by the same rules, as a
run has. `core/plan` makes these out of events. Source: spec/guard.md, section 2; spec/planning.md, 2, 3, 8 and 11.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from surefoot.core.text.look import normal
from surefoot.types.config import Budget, LoopConfig
from surefoot.types.dataclass import dataclass, field
from surefoot.types.plan import WITHOUT_TOOLS, PlanStep, ProposalKind, StepError, StepExecutionResult, StepStatus
from surefoot.types.plan_events import StepReflected
from surefoot.types.reflection import Cause
from surefoot.types.tools import Trust

Phase = Literal["selecting", "decomposing", "running", "reselecting", "redecomposing"]
"""What a planned run is about: choosing tools, planning, running the steps (with what is thought about them), and the
first two once more, for a strategy that needs them."""

BLOCKED: Cause = ("blocked", "", "")  # the cause of a round in which nothing can go on although nothing has failed
_DONE: frozenset[StepStatus] = frozenset({"succeeded", "skipped"})
_OPEN: frozenset[StepStatus] = frozenset({"pending", "failed"})


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


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step of a plan, and how far it has come.

    `attempt` counts starts from 1; `unmet` are its dependencies that are not done yet. `result` is the newest, `value`
    what references see of it. `failures` are all failed attempts, `reflected` what was decided about them. `transient`
    counts the engine's own retries. `due` is what comes next of a failed step: the engine's wait, a retry that was
    accepted, or nothing but what its reflection says. `is_exempt`: its next call may equal one that has failed.
    `since` is the place in the journal where an edit has added it or has given it other parameters, 0 for a call of the
    first plan; `begun_s` how many seconds the run had been driven when its newest attempt began. `effects` are the
    calls with an effect that an agent step has completed, in words; `done_calls` the fingerprints of those of any step.
    `done_in` is the version of the plan under which it succeeded, 0 before.
    """

    step: PlanStep
    status: StepStatus = "pending"
    attempt: int = 0
    unmet: int = 0
    result: StepExecutionResult | None = None
    value: object = None
    failures: tuple[StepExecutionResult, ...] = ()
    reflected: tuple[StepReflected, ...] = ()
    transient: int = 0
    due: Literal["", "wait", "retry"] = ""
    is_exempt: bool = False
    since: int = 0
    begun_s: float = 0.0
    effects: tuple[str, ...] = ()
    done_calls: frozenset[str] = frozenset()
    done_in: int = 0

    @property
    def is_open(self) -> bool:
        """Whether it is still to be done."""
        return self.status in _OPEN

    @property
    def is_done(self) -> bool:
        """Whether what depends on it may run."""
        return self.status in _DONE

    @property
    def error(self) -> StepError | None:
        """What the newest attempt failed at."""
        return self.result.error if self.result is not None else None

    @property
    def signature(self) -> Cause:
        """Of the newest failure; see `kind_of_failure`."""
        return kind_of_failure(self.step.tool_id or self.step.kind, self.error)

    @property
    def cause(self) -> Cause:
        """The cause of a round that begins at this step."""
        return self.signature if self.error is not None else BLOCKED

    @property
    def times_failed_so(self) -> int:
        """How often it has failed as it did last; what the engine retries by itself does not count."""
        mine = self.signature
        return sum(kind_of_failure(one.tool_id or one.kind, one.error) == mine for one in self.failures if one.error)


def kind_of_failure(actor: str, error: StepError | None) -> Cause:
    """By what two failures are the same: tool or kind of step, class, and the code that the tool or its server gives.

    Without such a code it is what the error says, with numbers and all that changes from try to try masked.
    Source: spec/planning.md, sections 6 and 7; docs/decisions/15, "When two failures are the same".
    """
    if error is None:
        return (actor, "", "")
    code, told = error.code, error.message
    is_exception = code.isidentifier() and code not in (code.lower(), code.upper()) and told.startswith(f"{code}:")
    # the name of an exception says no more than what kind of error it was
    return (actor, error.cls, _NUMBER.sub("#", normal(told)) if is_exception or code in _UNTOLD else code)


_UNTOLD = frozenset({"", "error", "failed", "infrastructure"})  # codes of ours for a failure that has none
_NUMBER = re.compile(r"[0-9]+")


class Loops(NamedTuple):
    """How steps are run: the loop of a call, of other steps, and of one that writes the answer.

    `budget` is what the whole run may use: its own, and no more than its plan may.
    """

    tool: LoopConfig = LoopConfig()
    words: LoopConfig = LoopConfig()
    answer: LoopConfig = LoopConfig()
    budget: Budget = Budget()


class Tries(NamedTuple):
    """Proposals of one kind that came to nothing, since one was last taken: unreadable, and refused by a rule."""

    malformed: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Escalation:
    """Why the run as a whole is to be thought about, and at which step; "" for an evaluation."""

    step_id: str
    cause: Cause


@dataclass(frozen=True, slots=True)
class Shortlist:
    """The tools that a model may choose from, and per sub-query the best of them in order."""

    names: tuple[str, ...]
    best: tuple[tuple[str, ...], ...] = ()


WANTED: Mapping[Phase, ProposalKind] = {
    "selecting": "select_initial",
    "decomposing": "decompose",
    "reselecting": "select_corrective",
    "redecomposing": "decompose",
}
"""What is proposed in each phase but the running one."""
