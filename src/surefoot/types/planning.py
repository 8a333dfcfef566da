"""How a run plans, the plan itself, and what an edit of it does. Source: spec/planning.md, sections 1, 2 and 3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from surefoot.types.checks import is_number, is_whole
from surefoot.types.errors import ConfigError
from surefoot.types.plan import RESERVED, PlanStep
from surefoot.types.tools import Trust

ProposalKind = Literal["select_initial", "decompose", "step_reflection", "overall_reflection", "select_corrective"]
"""What a model is asked to propose."""

ANSWER = "__answer__"
"""The id of the step that writes the answer of a plan without a response step; it stands outside the plan."""

RESERVED_IDS: frozenset[str] = frozenset({ANSWER, *RESERVED})
"""Ids that no step of a plan has: names that mean something else to whoever runs it."""

_LEAST: Mapping[str, int] = {
    "max_parallel": 1,
    "transient_retries": 0,
    "reasks": 0,
    "llm_repairs": 0,
    "same_error_limit": 1,
    "no_progress_rounds": 1,
    "completion_threshold": 1,
    "select_all_below": 0,
    "shortlist_max": 1,
    "selected_max": 1,
    "max_steps": 1,
    "history_max_tokens": 200,
    "chapter_max_chars": 20,
}
_LEAST_OR_NONE: Mapping[str, int] = {
    "max_replans": 0,
    "max_llm_calls": 0,
    "max_tool_calls": 0,
    "max_tokens": 1,
}


@dataclass(frozen=True, slots=True)
class PlanConfig:
    """How the reasoner `plan` goes about it. Times in seconds; None is no limit.

    `max_parallel`: steps that run or are reflected on at once. `step_timeout_s`: one attempt of one tool step that
    names no other. `transient_retries`: by the engine, for each step. `reasks`, `llm_repairs`: further tries after a
    refused proposal, and after one that cannot be read or a plan that has faults. `same_error_limit`: how often a step
    may fail in the same way before the run as a whole is thought about. `max_replans`, `max_llm_calls`,
    `max_tool_calls`, `deadline_s`, `max_tokens`, `max_cost_usd`: ceilings of a run. `no_progress_rounds`,
    `completion_threshold` (per cent): when a run is over. `select_all_below`: a catalogue this small is taken whole.
    `shortlist_max`, `selected_max`, `max_steps`: the most that a model sees, may choose, and may plan.
    `history_max_tokens`, `chapter_max_chars`: what reflections read and write. `approve_plan`: whether a person signs
    the first plan, or every one. `answer` "auto" has an answer written at the end. `evaluators`: by name, what looks at
    a run whose steps are done. `model`: who is asked for proposals; "" is the run's own.
    Source: spec/planning.md, section 1. Raises `ConfigError`.
    """

    max_parallel: int = 4
    step_timeout_s: float = 120.0
    transient_retries: int = 2
    reasks: int = 1
    llm_repairs: int = 2
    same_error_limit: int = 2
    max_replans: int | None = None
    max_llm_calls: int | None = 200
    max_tool_calls: int | None = 500
    deadline_s: float | None = 3600.0
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    no_progress_rounds: int = 3
    completion_threshold: int = 80
    select_all_below: int = 8
    shortlist_max: int = 40
    selected_max: int = 24
    max_steps: int = 40
    history_max_tokens: int = 6000
    chapter_max_chars: int = 800
    approve_plan: Literal["never", "first", "every"] = "never"
    answer: Literal["auto", "off"] = "auto"
    evaluators: tuple[str, ...] = ("nothing_done",)
    model: str = ""

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if not is_whole(getattr(self, name), least):
                raise ConfigError(name, getattr(self, name), f"give a whole number of at least {least}")
        for name, least in _LEAST_OR_NONE.items():
            value = getattr(self, name)
            if value is not None and not is_whole(value, least):
                raise ConfigError(name, value, f"give a whole number of at least {least}, or None for no limit")
        if not (is_number(self.step_timeout_s) and self.step_timeout_s > 0):
            raise ConfigError("step_timeout_s", self.step_timeout_s, "give seconds above 0")
        for name in ("deadline_s", "max_cost_usd"):
            value = getattr(self, name)
            if value is not None and not (is_number(value) and value > 0):
                raise ConfigError(name, value, "give a number above 0, or None for no limit")
        if self.completion_threshold > 100:  # noqa: PLR2004  # per cent
            raise ConfigError("completion_threshold", self.completion_threshold, "give per cent, up to 100")
        if self.approve_plan not in ("never", "first", "every"):
            raise ConfigError("approve_plan", self.approve_plan, "choose one of never, first, every")
        if self.answer not in ("auto", "off"):
            raise ConfigError("answer", self.answer, "choose one of auto, off")
        names: object = self.evaluators
        if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in self.evaluators):  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
            raise ConfigError("evaluators", self.evaluators, "give names, such as ('nothing_done',)")
        object.__setattr__(self, "evaluators", tuple(self.evaluators))
        if not isinstance(self.model, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # the same
            raise ConfigError("model", self.model, "give a model by its name, or '' for the run's own")


@dataclass(frozen=True, slots=True)
class ContextDocument:
    """A document that a plan may take values from. It is material, not instruction."""

    name: str
    content: str
    doc_type: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What is known around a task, for whoever plans it. Source: seed 004."""

    conversation_history: tuple[str, ...] = ()
    documents: tuple[ContextDocument, ...] = ()
    additional_info: Mapping[str, object] = field(default_factory=dict[str, object])
    user_preferences: tuple[str, ...] = ()


NO_CONTEXT = TaskContext()


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a run in their order, as one version of the plan has them.

    `origin` is "plan" or the strategy that made this version; `trust` that of all that whoever wrote it had read.
    """

    steps: tuple[PlanStep, ...]
    plan_id: str = "plan"
    version: int = 1
    description: str = ""
    task_type: str = "general"
    context_understanding: str = ""
    origin: str = "plan"
    trust: Trust = "trusted"


@dataclass(frozen=True, slots=True)
class Supersede:
    """A step is taken out of the plan; what it did stays done."""

    step_id: str
    op: Literal["supersede"] = "supersede"


@dataclass(frozen=True, slots=True)
class Skip:
    """A step is left out."""

    step_id: str
    op: Literal["skip"] = "skip"


@dataclass(frozen=True, slots=True)
class Add:
    """A step is put in, right before or after another, or at the end."""

    step: PlanStep
    before: str = ""
    after: str = ""
    op: Literal["add"] = "add"


@dataclass(frozen=True, slots=True)
class SetDependencies:
    """A step depends on others."""

    step_id: str
    dependencies: tuple[str, ...]
    op: Literal["set_dependencies"] = "set_dependencies"


@dataclass(frozen=True, slots=True)
class SetParameters:
    """A step has other parameters."""

    step_id: str
    parameters: Mapping[str, object]
    op: Literal["set_parameters"] = "set_parameters"


@dataclass(frozen=True, slots=True)
class Reopen:
    """A failed step is pending again, and its call may be made once more."""

    step_id: str
    op: Literal["reopen"] = "reopen"


@dataclass(frozen=True, slots=True)
class Mark:
    """What an open step is about to do goes beyond the user's words: a person is asked about its calls."""

    step_id: str
    op: Literal["mark"] = "mark"


Operation = Supersede | Skip | Add | SetDependencies | SetParameters | Reopen | Mark
