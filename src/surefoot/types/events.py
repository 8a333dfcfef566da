"""Everything that can have happened in a run: the closed union of journal records.

Each event is a frozen, JSON-able record whose `type` names it; a new kind of fact is a new class in `Event`, and the
type checker then lists every place that has to know of it. `VERSION` counts changes of form; `journal` upgrades old
records before they are read as events. Times are measured by whoever made the move, so that the core needs no clock:
`elapsed_s` are seconds in which the run was driven, from its start on; `took_s` those from a request to the whole
reply, and `first_s` those to the first piece of one that streams.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from surefoot.types.config import LoopConfig
from surefoot.types.dataclass import dataclass, field
from surefoot.types.errors import ModelFailureKind
from surefoot.types.guard import NO_GROUNDS, Grounds, IntentAnchor, Role
from surefoot.types.guard_events import Asking, GuardEvent, SpeculationEvent
from surefoot.types.inner import CallPaused, InnerRun, Outer, Refused, Started
from surefoot.types.messages import CallMode, ModelMessage, Usage
from surefoot.types.outcomes import Decision, Ending
from surefoot.types.plan_events import PlanEvent, StepEvent
from surefoot.types.prehydration import ConventionsRead, PreHydrationComplete, ReferencesFound
from surefoot.types.progress import LimitAction
from surefoot.types.reply import Parsed
from surefoot.types.selection import Dropped, ToolSelectionResult
from surefoot.types.task import Task
from surefoot.types.tools import Catalogue, Effect, ToolResult

VERSION = 3

Want = Literal["any", "no_calls", "answer", "reasoning", "isolated"]
"""What a request asks for: any step, words without a call, or the answer alone; the words of a plan's step without
tools, in which a call is a violation; or the same words out of fresh messages. Only with "any" tools are offered."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """A model in a role: its name, the call mode that it is first spoken to in, and what its adapter declares of it."""

    model: str
    call_mode: CallMode = "native"
    traits: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run exists. Everything that its fold depends on is in here, and in the run that it `follows`.

    `speakers` are the models by role: "solo", or "thinker" and "actor", `prompts` the templates (`prompt_name`). One
    that follows another shares its records up to `follows_hash`: a conversation. `outer` is a call that asks an agent.
    `agent` is the name under which the agent is served, "" for none, `recipe` a digest of what it is made of, `labels`
    are the user's own; `request` is a digest of what was asked for with a key. Source: spec/serving.md, section 2.
    """

    run_id: str
    task: Task
    speakers: Mapping[str, Speaker]
    tools: Catalogue
    prompts: Mapping[str, str]
    instructions: str = ""
    reasoner: str = "react"
    config: LoopConfig = LoopConfig()
    version: int = VERSION
    follows: str = ""
    follows_hash: str = ""
    outer: Outer | None = None
    agent: str = ""
    recipe: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    request: str = ""
    type: Literal["RunStarted"] = "RunStarted"


JournalOrigin = Literal["", "own", "foreign"]
"""Who has begun a run: this user or program, or nobody who is known here; "" of older records, which do not say."""


@dataclass(frozen=True, slots=True)
class RunResumed:
    """Somebody took the run up again after it had stood still or ended; `None` leaves the configuration as it was.

    `speakers` are those that changed; of another model, what was learnt of the old one no longer counts. `effects` are
    those of tools that are stricter now than on record: they count from here on, and a person is asked about each call.
    With a `journal`, what was allowed and has not started is judged again; of a "foreign" one a person is asked before
    the first effect, and no yes in it counts.
    """

    by: str
    speakers: Mapping[str, Speaker] = field(default_factory=dict[str, Speaker])
    config: LoopConfig | None = None
    effects: Mapping[str, Effect] = field(default_factory=dict[str, Effect])
    journal: JournalOrigin = ""
    type: Literal["RunResumed"] = "RunResumed"


@dataclass(frozen=True, slots=True)
class RunForked:
    """From here on this run goes its own way; all before its record `at` is shared with `parent`.

    See `RunResumed`, and `RunStarted` for `agent`, `labels` and `request`.
    """

    run_id: str
    parent: str
    at: int
    speakers: Mapping[str, Speaker] = field(default_factory=dict[str, Speaker])
    config: LoopConfig | None = None
    effects: Mapping[str, Effect] = field(default_factory=dict[str, Effect])
    journal: JournalOrigin = ""
    agent: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    request: str = ""
    type: Literal["RunForked"] = "RunForked"


@dataclass(frozen=True, slots=True)
class DriverChanged:
    """Somebody else drives the run from here on, since whoever did has died or been cut off. It means nothing else."""

    by: str
    fence: int
    type: Literal["DriverChanged"] = "DriverChanged"


@dataclass(frozen=True, slots=True)
class RunNoted:
    """The user has said something more while the run was at work; the model reads it before its next reply."""

    text: str
    by: str
    type: Literal["RunNoted"] = "RunNoted"


@dataclass(frozen=True, slots=True)
class ToolsSelected:
    """Which tools are offered from now on, in this order.

    `counts` says how many tools each stage of a profile dropped, `warnings` what the operator should hear, `dropped`
    the first of them with stage and reason. For the gate: `doubted` are the tools about whose every call a person is
    asked because of their names, and why; `pinned` are the foreign tools seen for the first time, with their pins.

    With `selection` it is the choice of the reasoner `plan`, in the mode `reason`: what is visible stays as it is.
    """

    visible: tuple[str, ...]
    reason: str = ""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    warnings: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    doubted: Mapping[str, str] = field(default_factory=dict[str, str])
    pinned: Mapping[str, str] = field(default_factory=dict[str, str])
    selection: ToolSelectionResult | None = None
    type: Literal["ToolsSelected"] = "ToolsSelected"


@dataclass(frozen=True, slots=True)
class ModelTraitLearnt:
    """What is known of a model's endpoint, with `role` of the model in it: all that the fold knows of traits."""

    model: str
    trait: str
    value: str
    evidence: str
    role: str = ""
    type: Literal["ModelTraitLearnt"] = "ModelTraitLearnt"


@dataclass(frozen=True, slots=True)
class ModelReplied:
    """A model's raw reply, and what the parser made of it. `step` counts replies from 1; it may take two `requests`."""

    step: int
    message: ModelMessage
    parsed: Parsed
    mode: CallMode = "native"
    want: Want = "any"
    role: str = "solo"
    elapsed_s: float = 0.0
    requests: int = 1
    took_s: float = 0.0
    first_s: float = 0.0
    type: Literal["ModelReplied"] = "ModelReplied"


@dataclass(frozen=True, slots=True)
class ModelFailed:
    """A model gave no reply, after all attempts. `message` says what to do about it; `instead` goes on from here."""

    kind: ModelFailureKind
    message: str
    attempts: int = 1
    role: str = "solo"
    usage: Usage = Usage()
    want: Want = "any"
    elapsed_s: float = 0.0
    instead: Speaker | None = None
    type: Literal["ModelFailed"] = "ModelFailed"


@dataclass(frozen=True, slots=True)
class CallJudged:
    """The gate spoke about a call, by the policy `rule`; or a person did, and then `by` is their name.

    `origin` is who asked for the call. A person may also speak about a limit: `call_id` is that of its step then.
    `grounds` are what the decision rests on, where the gate is on.
    """

    call_id: str
    decision: Decision
    rule: str = ""
    by: str = ""
    origin: Literal["model", "prefetch", "plan", "branch"] = "model"
    grounds: Grounds = NO_GROUNDS
    type: Literal["CallJudged"] = "CallJudged"


@dataclass(frozen=True, slots=True)
class IntentAnchored:
    """What the user's words ask for, read before any other text; only a later word of the user extends it.

    `today` is the day on which the run was begun, in ISO form. With `asking` a model has read the words too; `dropped`
    counts what of its reply is not in them. `begun` and `refused` are of an outer run. Source: spec/guard.md, 3.2.
    """

    anchor: IntentAnchor
    today: str = ""
    dropped: int = 0
    asking: Asking | None = None
    begun: tuple[Started, ...] = ()
    refused: Refused = Refused()
    type: Literal["IntentAnchored"] = "IntentAnchored"


@dataclass(frozen=True, slots=True)
class ValuesEndorsed:
    """A person's yes to a call made these values, in their normal form, the user's for their roles in this run.

    `tool` is the pin of the foreign tool that the yes accepts for the run, "" where there is none.
    """

    call_id: str
    values: tuple[tuple[Role, str], ...]
    by: str
    tool: str = ""
    type: Literal["ValuesEndorsed"] = "ValuesEndorsed"


@dataclass(frozen=True, slots=True)
class CallReused:
    """The call asks for what is already known: it gets the result of call `known` and is not run."""

    call_id: str
    known: str
    type: Literal["CallReused"] = "CallReused"


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The call is about to run. On disk before the tool is touched. `attempt` counts from 1."""

    call_id: str
    attempt: int = 1
    type: Literal["CallStarted"] = "CallStarted"


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The call ran, well or badly. Of a call that has asked an agent, `inner` is the run of that agent."""

    call_id: str
    result: ToolResult
    elapsed_s: float = 0.0
    inner: InnerRun | None = None
    type: Literal["CallEnded"] = "CallEnded"


Outcome = Literal["done", "not_done", "abandoned"]  # what a person says of a call in doubt


@dataclass(frozen=True, slots=True)
class DoubtSettled:
    """Whether an interrupted call took effect is known now: a person says so (`by`), or the tool's probe does.

    `outcome` "done" gives the model `result`; "not_done" lets the call run again; "abandoned" has it fail; "unknown" is
    the word of a probe that could not tell, and leaves it to a person.
    """

    call_id: str
    outcome: Literal["done", "not_done", "abandoned", "unknown"]
    by: str
    result: ToolResult | None = None
    elapsed_s: float = 0.0
    type: Literal["DoubtSettled"] = "DoubtSettled"


@dataclass(frozen=True, slots=True)
class StepLimitReached:
    """A step has come to its limit, or the run goes in circles (`step_id` "run"). Once at each first stop.

    `kind` is "max" or "stuck", `pattern` how it is stuck, `action` what the configuration has happen, `evidence` the
    places in the journal that are meant. Source: spec/primitives.md, section 6.
    """

    step_id: str
    attempts: int
    reason: str
    kind: str
    pattern: str = ""
    action: LimitAction = LimitAction.SkipStep
    similarity: float | None = None
    evidence: tuple[int, ...] = ()
    type: Literal["StepLimitReached"] = "StepLimitReached"


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run is over."""

    ending: Ending
    type: Literal["RunEnded"] = "RunEnded"


StepInner = (
    ToolsSelected
    | ModelTraitLearnt
    | ModelReplied
    | ModelFailed
    | CallJudged
    | ValuesEndorsed
    | CallReused
    | CallStarted
    | CallEnded
    | CallPaused
    | DoubtSettled
    | ConventionsRead
    | StepLimitReached
    | StepEvent
    | GuardEvent
    | SpeculationEvent
    | RunEnded
)
"""What can happen inside a running step of the reasoner `plan`, as it can in a run."""


@dataclass(frozen=True, slots=True)
class InStep:
    """Something happened inside the attempt `attempt` of a running step of a plan; what is late changes nothing."""

    step_id: str
    attempt: int
    event: StepInner
    type: Literal["InStep"] = "InStep"


@dataclass(frozen=True, slots=True)
class ToolsShortlisted:
    """The tools that a model gets to choose from, best first; for each part of the task the best of them in order.

    Source: spec/planning.md, section 14.
    """

    names: tuple[str, ...]
    best: tuple[tuple[str, ...], ...] = ()
    elapsed_s: float = 0.0
    type: Literal["ToolsShortlisted"] = "ToolsShortlisted"


Event = (
    RunStarted
    | RunResumed
    | RunForked
    | DriverChanged
    | RunNoted
    | IntentAnchored
    | ReferencesFound
    | PreHydrationComplete
    | ToolsShortlisted
    | PlanEvent
    | InStep
    | StepInner
)
