"""What is thought about failures: of one step, and of the run. Source: seed 004; spec/planning.md, sections 2, 6 and 7.

All of these are read from what a model proposes; pure code accepts them whole or refuses them (`core/plan`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from surefoot.types.dataclass import dataclass, fields
from surefoot.types.plan import Plan, PlanStep, StepExecutionResult

RootCause = Literal[
    "parameter_error", "tool_error", "dependency_error", "decomposition_error", "external_error", "server_error"
]
ProblemClass = Literal["parameter", "tool", "decomposition", "dependency", "external", "server", "other"]

Cause = tuple[str, str, str]
"""Why a round of overall reflection began: (tool or kind, error class, code), ("evaluation", name, "") or
("blocked", "", ""). A failure without a code of its own has its masked message in that place."""


@dataclass(frozen=True, slots=True)
class RetryWithAdjustedParams:
    """The same tool again: `data` is laid over the step's parameters, null takes one away."""

    data: Mapping[str, object]
    type: Literal["retry_with_params"] = "retry_with_params"


@dataclass(frozen=True, slots=True)
class RetryWithAlternativeTool:
    """Another of the selected tools, with parameters of its own or those of the step."""

    tool_id: str
    parameters: Mapping[str, object] | None = None
    type: Literal["retry_with_tool"] = "retry_with_tool"


@dataclass(frozen=True, slots=True)
class TriggerOverallReflection:
    """Nothing can be mended at the step: the run as a whole is to be thought about."""

    reason: str = ""
    type: Literal["trigger_overall_reflection"] = "trigger_overall_reflection"


@dataclass(frozen=True, slots=True)
class ReplanEntireTask:
    """Read and never obeyed: a step does not replan, so it counts as `TriggerOverallReflection`."""

    reason: str = ""
    type: Literal["replan_entire_task"] = "replan_entire_task"


StepAction = RetryWithAdjustedParams | RetryWithAlternativeTool | TriggerOverallReflection | ReplanEntireTask


@dataclass(frozen=True, slots=True)
class StepReflection:
    """What a model thinks about one failed step. Three chapters, then the decision in fields; confidence 0 to 100."""

    suggested_action: StepAction
    history_review: str = ""
    error_analysis: str = ""
    proposal: str = ""
    root_cause_category: RootCause | None = None
    root_cause: str = ""
    is_recoverable: bool = False
    confidence: int = 0
    analysis: str = ""
    alternative_solutions: tuple[str, ...] = ()

    @property
    def adjusted_parameters(self) -> Mapping[str, object] | None:
        """What is laid over the parameters; None where the action is another."""
        return self.suggested_action.data if isinstance(self.suggested_action, RetryWithAdjustedParams) else None

    @property
    def alternative_tool_id(self) -> str | None:
        """The tool to take in its place; None where the action is another."""
        return self.suggested_action.tool_id if isinstance(self.suggested_action, RetryWithAlternativeTool) else None


@dataclass(frozen=True, slots=True)
class FullReplan:
    """All that has not succeeded is planned anew."""

    type: Literal["full_replan"] = "full_replan"


@dataclass(frozen=True, slots=True)
class ReplanFromStep:
    """One step and all that depends on it is planned anew."""

    step_id: str
    reason: str = ""
    type: Literal["replan_from_step"] = "replan_from_step"


@dataclass(frozen=True, slots=True)
class SkipSteps:
    """Some steps are not needed."""

    step_ids: tuple[str, ...]
    reason: str = ""
    type: Literal["skip_steps"] = "skip_steps"


@dataclass(frozen=True, slots=True)
class RemediationStep:
    """A step that is put in before or after another, which it may give other parameters (when before)."""

    step: PlanStep
    insert_before: str = ""
    insert_after: str = ""
    target_parameters: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class AddRemediationSteps:
    """Something has to be done besides. A suggestion in words is made into steps by a decomposition."""

    suggestions: tuple[RemediationStep | str, ...]
    type: Literal["add_remediation_steps"] = "add_remediation_steps"


@dataclass(frozen=True, slots=True)
class Adjustment:
    """Other dependencies of one step, or other parameters, or both; what is None stays."""

    step_id: str
    depends_on: tuple[str, ...] | None = None
    parameters: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class AdjustDependencies:
    """The steps are right, and their order or their inputs are not."""

    adjustments: tuple[Adjustment, ...]
    type: Literal["adjust_dependencies"] = "adjust_dependencies"


ReplanningStrategy = FullReplan | ReplanFromStep | SkipSteps | AddRemediationSteps | AdjustDependencies


@dataclass(frozen=True, slots=True)
class ReflectionResult:
    """What a model thinks about the whole run. Five chapters, then the decision in fields; completion 0 to 100."""

    overview: str = ""
    diagnosis: str = ""
    improvements: str = ""
    decision: str = ""
    lessons: str = ""
    completion_percent: int = 0
    problem_class: ProblemClass = "other"
    repeated_failure: bool = False
    root_causes: tuple[str, ...] = ()
    incorrect_assumptions: tuple[str, ...] = ()
    alternative_approaches: tuple[str, ...] = ()
    optimization_suggestions: tuple[str, ...] = ()
    lessons_learned: tuple[str, ...] = ()
    should_replan: bool = False
    replanning_strategy: ReplanningStrategy | None = None


@dataclass(frozen=True, slots=True)
class OverallReflectionGuidance:
    """What an overall reflection hands on to whoever selects tools and plans anew."""

    root_causes: tuple[str, ...] = ()
    incorrect_assumptions: tuple[str, ...] = ()
    alternative_approaches: tuple[str, ...] = ()
    lessons_learned: tuple[str, ...] = ()
    replanning_strategy: ReplanningStrategy | None = None

    @classmethod
    def of(cls, reflection: ReflectionResult) -> OverallReflectionGuidance:
        """The guidance of a reflection, in which its fields have the same names."""
        return cls(*(getattr(reflection, one.name) for one in fields(cls)))


@dataclass(frozen=True, slots=True)
class PlanStats:
    """What a planned run has taken: overall reflections, accepted retries, applied strategies, calls, requests."""

    rounds: int = 0
    step_retries: int = 0
    replans: int = 0
    tool_calls: int = 0
    llm_calls: int = 0


@dataclass(frozen=True, slots=True)
class ExecutionContext:
    """How far a planned run is: a view of its journal, never stored. `budget_left`: None where there is no limit."""

    plan: Plan
    step_results: tuple[StepExecutionResult, ...]
    selected_tools: tuple[str, ...]
    stats: PlanStats
    budget_left: Mapping[str, float | None]
    failed_calls: frozenset[str]
    completed_effects: frozenset[str]
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class ReflectionContext:
    """What a step reflection is made from."""

    task_description: str
    successful_steps: tuple[StepExecutionResult, ...]
    failed_step: StepExecutionResult
    execution_history: str
    stats: PlanStats = PlanStats()


@dataclass(frozen=True, slots=True)
class OverallReflectionContext:
    """What an overall reflection is made from."""

    execution_history: str
    task_replan_count: int
    current_round: int
    original_plan: tuple[PlanStep, ...]
    evaluation: str = ""
    causes_already_replanned: tuple[Cause, ...] = ()


Evaluator = Callable[["ExecutionContext"], object]
"""Looks at a run whose steps are done; gives an `EvaluationResult`, or something to be awaited that does."""


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """What an evaluator says about a run whose steps are all done; figures from 0 to 100."""

    name: str
    passed: bool
    score: float | None = None
    completeness: float | None = None
    correctness: float | None = None
    efficiency: float | None = None
    reliability: float | None = None
    note: str = ""
