"""Plans and their steps, and the settings and decisions by which they are made."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from surefoot.types.dataclass import dataclass, field
from surefoot.types.errors import UsageError
from surefoot.types.settings import (
    Settings,
    above_zero,
    choice,
    is_number,
    is_whole,
    or_none,
    seconds,
    setting,
    text,
    tuple_of,
    whole,
)
from surefoot.types.tools import Trust

StepKind = Literal["tool", "agent", "reasoning", "response", "skip"]
"""One call that surefoot makes · a loop with tools · words without tools · the answer, without tools · left out."""

RESERVED: Mapping[str, StepKind] = {
    "__no_tool_call__": "reasoning",
    "__internal_reasoning__": "reasoning",
    "__response__": "response",
    "__step_skip__": "skip",
}
"""What stands for a kind as the whole value of a tool's name, and nowhere else; no tool may be called so."""

WITHOUT_TOOLS: frozenset[StepKind] = frozenset({"reasoning", "response"})
"""The kinds of steps in which no tool may be called."""

StepErrorClass = Literal[
    "parameter", "tool", "transient", "timeout", "server", "external", "denied", "violation", "limit", "postcondition"
]
"""Where an error comes from. Source: spec/planning.md, section 2."""

StepStatus = Literal[
    "pending", "running", "waiting", "succeeded", "failed", "skipped", "superseded", "cancelled", "in_doubt"
]
"""How far a step has come; a step is open while it is pending or failed."""

NON_EMPTY = "non_empty"  # the postcondition that a result is not empty; any other is a JSON Schema

_ID = re.compile(r"[A-Za-z0-9_-]+")


def check_tool_name(name: str) -> None:
    """Raise `UsageError` for a tool that is called by a reserved name."""
    if name in RESERVED:
        raise UsageError(f"a tool cannot be called {name!r}: the name stands for a {RESERVED[name]} step of a plan")


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan.

    `tool_id` and `parameters` belong to a tool step, `instruction` to every other: the goal of an agent, reasoning or
    response step, the reason of a skip. `allowed_tools` are those of an agent step (none: all of the run).
    `dependencies` are the steps whose outputs it uses. Only a step that is not `required` may be skipped by a model. A
    reserved name as `tool_id` is read as the kind that it stands for.

    For the reasoner `plan` alone: strings in `parameters` may hold references, `{{step.field}}`; `postcondition` is
    what the result has to be; a run in which a `must_succeed` step is open is never as good as done; `timeout_s` is for
    one attempt of a tool step, `max_steps` the model requests of an agent step. `unanchored`: whoever proposed it had
    read untrusted text, and it goes beyond what the user's words ask for, so that a person is asked about each call.
    Raises `UsageError` for fields that do not fit.
    """

    step_id: str
    step_name: str = ""
    kind: StepKind = "tool"
    tool_id: str = ""
    instruction: str = ""
    allowed_tools: tuple[str, ...] = ()
    parameters: Mapping[str, object] = field(default_factory=dict[str, object])
    dependencies: tuple[str, ...] = ()
    required: bool = True
    expected_output: str = ""
    postcondition: Literal["non_empty"] | Mapping[str, object] | None = None
    must_succeed: bool = False
    timeout_s: float | None = None
    max_steps: int | None = None
    unanchored: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.step_id, str) or _ID.fullmatch(self.step_id) is None:  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
            raise UsageError(f"step_id={self.step_id!r}: use letters, digits, _ and - alone")
        for name in ("allowed_tools", "dependencies"):
            given = getattr(self, name)
            if isinstance(given, str) or not all(isinstance(one, str) for one in given):
                raise UsageError(f"step {self.step_id!r}: {name} must be names, such as ('a', 'b')")
            object.__setattr__(self, name, tuple(given))
        meant = RESERVED.get(self.tool_id)
        if meant is not None and self.kind in ("tool", meant):
            object.__setattr__(self, "kind", meant)
            object.__setattr__(self, "tool_id", "")
        if fault := self._fault():
            raise UsageError(f"step {self.step_id!r}: {fault}")

    def _fault(self) -> str:
        if self.kind not in get_args(StepKind):
            return f"unknown kind {self.kind!r}; choose one of {', '.join(get_args(StepKind))}"
        is_tool = self.kind == "tool"
        if is_tool != bool(self.tool_id):
            return "a tool step names its tool_id" if is_tool else f"a step of kind {self.kind} has no tool_id"
        if is_tool == bool(self.instruction.strip()):
            if is_tool:
                return "a tool step has parameters, and no instruction"
            return "a skip says why in its instruction" if self.kind == "skip" else "say in its instruction what to do"
        if self.parameters and not is_tool:
            return f"a step of kind {self.kind} has no parameters"
        if self.timeout_s is not None and not (is_number(self.timeout_s) and self.timeout_s > 0):
            return "timeout_s is in seconds, above 0"
        if self.max_steps is not None and not (is_whole(self.max_steps, 1) and self.kind == "agent"):
            return "max_steps is a whole number from 1, for an agent step alone"
        return "only an agent step has allowed_tools" if self.allowed_tools and self.kind != "agent" else ""

    @property
    def title(self) -> str:
        """What it is called: its name, or else its id."""
        return self.step_name or self.step_id


@dataclass(frozen=True, slots=True)
class StepError:
    """Why a step failed: class, code and message, and the seconds that a server asks to wait.

    The code is a stable word of the tool, its server or the engine; else the name of the exception, or "error".
    """

    cls: StepErrorClass
    code: str
    message: str = ""
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class StepExecutionResult:
    """What came of a step; a skipped one has neither output nor error.

    `sources` are where all that its output was made of came from: ids of calls, or names of what came with the task.
    It is untrusted if any of these is. The rest is told of steps of the reasoner `plan`: which `attempt` it was, the
    resolved `parameters` of a tool step and their `fingerprint`, and seconds in which the run was driven.
    """

    step_id: str
    kind: StepKind
    output: str = ""
    error: StepError | None = None
    sources: tuple[str, ...] = ()
    trust: Trust = "trusted"
    attempt: int = 1
    tool_id: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict[str, object])
    call_id: str = ""
    fingerprint: str = ""
    started_at_s: float = 0.0
    duration_s: float = 0.0

    @property
    def error_message(self) -> str:
        """What went wrong in words; "" for nothing."""
        return self.error.message if self.error is not None else ""

    @property
    def is_success(self) -> bool:
        """Whether it has an output that other steps can use."""
        return self.error is None and self.kind != "skip"


def faults_of(steps: Sequence[PlanStep]) -> tuple[str, ...]:
    """What is wrong with steps that are run in their order, each as CODE:STEP or CODE:STEP:OTHER; none for none."""
    found: list[str] = []
    before: dict[str, PlanStep] = {}
    ids = {step.step_id for step in steps}
    for at, step in enumerate(steps):
        if step.step_id in before:
            found.append(f"duplicate_step_id:{step.step_id}")
        for needed in step.dependencies:
            if needed not in ids:
                found.append(f"unknown_dependency:{step.step_id}:{needed}")
            elif needed not in before:
                found.append(f"dependency_not_before:{step.step_id}:{needed}")
            elif before[needed].kind == "skip":  # a skip satisfies no dependent that needs its output
                found.append(f"skipped_dependency:{step.step_id}:{needed}")
        if step.kind == "response" and any(later.kind != "skip" for later in steps[at + 1 :]):
            found.append(f"response_not_last:{step.step_id}")
        before[step.step_id] = step
    if steps and all(step.kind == "skip" for step in steps):
        found.append("empty_plan")
    return tuple(found)


def check_steps(steps: Sequence[PlanStep]) -> None:
    """Raise `UsageError` with all faults of a plan at once."""
    if not all(isinstance(step, PlanStep) for step in steps):  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
        raise UsageError("steps must be PlanStep(…) values")
    if faults := faults_of(steps):
        raise UsageError(f"the plan cannot be run: {'; '.join(faults)}")


ProposalKind = Literal["select_initial", "decompose", "step_reflection", "overall_reflection", "select_corrective"]
"""What a model is asked to propose."""

ANSWER = "__answer__"
"""The id of the step that writes the answer of a plan without a response step; it stands outside the plan."""

RESERVED_IDS: frozenset[str] = frozenset({ANSWER, *RESERVED})
"""Ids that no step of a plan has: names that mean something else to whoever runs it."""

_NO_LIMIT = "no limit"


@dataclass(frozen=True, slots=True)
class PlanConfig(Settings):
    """Settings of the reasoner `plan`. Raises `ConfigError`. Source: spec/planning.md, section 1."""

    max_parallel: int = setting(4, whole(1), "steps that run, or are reflected on, at once", option="--max-parallel")
    step_timeout_s: float = setting(
        120.0, seconds, "seconds for one attempt of a tool step; a tool or a step may name its own"
    )
    transient_retries: int = setting(2, whole(0), "tries by the engine alone, for each step")
    reasks: int = setting(1, whole(0), "further tries after a refused proposal")
    llm_repairs: int = setting(2, whole(0), "further tries after a proposal that cannot be read, or a plan with faults")
    same_error_limit: int = setting(
        2, whole(1), "failures of one kind after which the whole run is reflected on, not just the step"
    )
    max_replans: int | None = setting(None, or_none(whole(0), _NO_LIMIT), "repairs of the plan", option="--max-replans")
    max_llm_calls: int | None = setting(200, or_none(whole(0), _NO_LIMIT), "requests to a model in a run")
    max_tool_calls: int | None = setting(500, or_none(whole(0), _NO_LIMIT), "calls of tools in a run")
    deadline_s: float | None = setting(3600.0, or_none(above_zero, _NO_LIMIT), "seconds of a run")
    max_tokens: int | None = setting(None, or_none(whole(1), _NO_LIMIT), "tokens of a run")
    max_cost_usd: float | None = setting(None, or_none(above_zero, _NO_LIMIT), "US dollars of a run")
    no_progress_rounds: int = setting(3, whole(1), "reflections on the whole run without progress after which it ends")
    completion_threshold: int = setting(
        80, whole(1, 100), "per cent from which a run that cannot continue counts as completed in part"
    )
    select_all_below: int = setting(8, whole(0), "a catalogue smaller than this is used whole")
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
