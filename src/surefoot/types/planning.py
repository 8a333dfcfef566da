"""How a run plans, the plan itself, and what an edit of it does. Source: spec/planning.md, sections 1, 2 and 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from surefoot.types.dataclass import dataclass, field
from surefoot.types.plan import RESERVED, PlanStep
from surefoot.types.settings import Settings, above_zero, choice, or_none, seconds, setting, text, tuple_of, whole
from surefoot.types.tools import Trust

ProposalKind = Literal["select_initial", "decompose", "step_reflection", "overall_reflection", "select_corrective"]
"""What a model is asked to propose."""

ANSWER = "__answer__"
"""The id of the step that writes the answer of a plan without a response step; it stands outside the plan."""

RESERVED_IDS: frozenset[str] = frozenset({ANSWER, *RESERVED})
"""Ids that no step of a plan has: names that mean something else to whoever runs it."""

_NO_LIMIT = "no limit"


@dataclass(frozen=True, slots=True)
class PlanConfig(Settings):
    """How the reasoner `plan` goes about it. Raises `ConfigError`. Source: spec/planning.md, section 1."""

    max_parallel: int = setting(4, whole(1), "steps that run, or are thought about, at once", option="--max-parallel")
    step_timeout_s: float = setting(
        120.0, seconds, "seconds for one attempt of a tool step; a tool or a step may name its own"
    )
    transient_retries: int = setting(2, whole(0), "tries by the engine alone, for each step")
    reasks: int = setting(1, whole(0), "further tries after a refused proposal")
    llm_repairs: int = setting(2, whole(0), "further tries after a proposal that cannot be read, or a plan with faults")
    same_error_limit: int = setting(
        2, whole(1), "failures of one kind after which the run as a whole is thought about, not the step alone"
    )
    max_replans: int | None = setting(None, or_none(whole(0), _NO_LIMIT), "repairs of the plan", option="--max-replans")
    max_llm_calls: int | None = setting(200, or_none(whole(0), _NO_LIMIT), "requests to a model in a run")
    max_tool_calls: int | None = setting(500, or_none(whole(0), _NO_LIMIT), "calls of tools in a run")
    deadline_s: float | None = setting(3600.0, or_none(above_zero, _NO_LIMIT), "seconds of a run")
    max_tokens: int | None = setting(None, or_none(whole(1), _NO_LIMIT), "tokens of a run")
    max_cost_usd: float | None = setting(None, or_none(above_zero, _NO_LIMIT), "US dollars of a run")
    no_progress_rounds: int = setting(
        3, whole(1), "rounds of thinking about the run as a whole without progress after which it is over"
    )
    completion_threshold: int = setting(
        80, whole(1, 100), "per cent from which on a run that cannot go on counts as completed in part"
    )
    select_all_below: int = setting(8, whole(0), "a catalogue smaller than this is taken whole")
    shortlist_max: int = setting(40, whole(1), "tools that a model sees to choose from")
    selected_max: int = setting(24, whole(1), "tools that it may choose")
    max_steps: int = setting(40, whole(1), "steps that it may plan")
    history_max_tokens: int = setting(6000, whole(200), "tokens of history that a reflection reads")
    chapter_max_chars: int = setting(800, whole(20), "characters of a chapter that a reflection writes")
    approve_plan: Literal["never", "first", "every"] = setting(
        "never",
        choice("never", "first", "every"),
        "`first`: a person signs the first plan; `every`: each repair, too",
        option="--approve-plan",
    )
    answer: Literal["auto", "off"] = setting(
        "auto", choice("auto", "off"), "an answer is written at the end; `off`: the run ends with its steps' results"
    )
    evaluators: tuple[str, ...] = setting(
        ("nothing_done",),
        tuple_of(lambda name: isinstance(name, str), "give names, such as ('nothing_done',)"),
        "what looks at a run whose steps are done; functions by name in `Agent(evaluators={…})`; a plain `def` runs in "
        "a thread; one that answers after the deadline has not passed the run",
    )
    model: str = setting("", text, 'who is asked for proposals; `""`: the run\'s own model', found="default")


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
