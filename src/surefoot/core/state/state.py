"""A run as its events tell it: turns, calls, what is known, what was used.

`core/loop/fold.py` is the only place that makes a `State` out of events. Only the newest turn can have open calls,
because no model is asked while a call of its last reply is open; so older turns never change, and what is derived from
them (the messages of `core/view/request.py`) is kept with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from surefoot.core.gate.record import GateRecord
from surefoot.core.state.lookup import History, Lookup
from surefoot.core.state.plans import Escalation, Loops, Phase, PlanRecord, Shortlist, StepRecord, Tries
from surefoot.core.state.stuck import Step, Steps
from surefoot.core.state.trail import NO_TRAIL, Trail
from surefoot.core.state.turn import Call, DueLimit, Known, SpeakerState, Turn, changed
from surefoot.types import events
from surefoot.types.config import LoopConfig
from surefoot.types.dataclass import dataclass, field
from surefoot.types.inner import Outer
from surefoot.types.messages import ModelMessage
from surefoot.types.outcomes import Ending
from surefoot.types.plan import Plan, PlanConfig, PlanStep
from surefoot.types.plan_events import PlanEdited, ProposalMade, ProposalRefused, RunReflected
from surefoot.types.reflection import Cause, EvaluationResult, PlanStats
from surefoot.types.selection import ToolSelectionResult
from surefoot.types.tools import Catalogue, Effect, Trust
from surefoot.types.usage import NO_USAGE, Usage

_LONGEST_STEP = 9


@dataclass(frozen=True)
class Planning:
    """A plan that repairs itself, and all that its next move follows from.

    `order` are the ids of all steps in plan order, also of those taken out; `ready` those that may start, `queue` those
    that failed and wait for their reflection, and `due` those that failed and are to be tried again. `late_tools` were
    first selected after untrusted text had been read. `proposal` is a reply that is not decided about yet. `strategy`
    was decided on and needs a selection and a decomposition first. `failed_calls` and `completed_effects` are
    fingerprints, the latter with their place in the journal. `has_read`: untrusted text has entered. `noted` are
    words of persons about the plan. `tried_open`, `idle_rounds`, `seen_causes`, `has_moved`: whether rounds get
    anywhere. `is_limited`: a step came to a limit at which it is skipped, so the run is no whole success any more.
    `answer_fault` says why the answer could not be written.
    """

    config: PlanConfig
    loops: Loops = Loops()
    phase: Phase = "selecting"
    selected: tuple[str, ...] | None = None
    selection: ToolSelectionResult | None = None
    shortlist: Shortlist | None = None
    plan: Plan | None = None
    original: tuple[PlanStep, ...] = ()
    steps: Mapping[str, StepRecord] = field(default_factory=dict[str, StepRecord])
    order: tuple[str, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict[str, int])
    dependents: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    ready: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    due: tuple[str, ...] = ()
    late_tools: frozenset[str] = frozenset()
    children: Mapping[str, State] = field(default_factory=dict[str, "State"])
    proposal: ProposalMade | None = None
    tries: Tries = Tries()
    refusal: ProposalRefused | None = None
    escalation: Escalation | None = None
    strategy: RunReflected | None = None
    stop: RunReflected | None = None
    reflections: tuple[RunReflected, ...] = ()
    edits: tuple[PlanEdited, ...] = ()
    refusals: tuple[ProposalRefused, ...] = ()
    answered: frozenset[Cause] = frozenset()
    evaluations: tuple[EvaluationResult, ...] = ()
    failed_calls: frozenset[str] = frozenset()
    completed_effects: Mapping[str, int] = field(default_factory=dict[str, int])
    signed: int = 0
    rejected_by: str = ""
    noted: tuple[str, ...] = ()
    has_read: bool = False
    stats: PlanStats = PlanStats()
    tried_open: frozenset[str] = frozenset()
    seen_causes: frozenset[Cause] = frozenset()
    idle_rounds: int = 0
    has_moved: bool = False
    answer: str | None = None
    answer_fault: str = ""
    is_limited: bool = False

    @property
    def version(self) -> int:
        """The version of the plan; 0 before there is one."""
        return self.plan.version if self.plan is not None else 0

    @property
    def has_begun(self) -> bool:
        """Whether anything was selected or proposed; before that a run is prepared as any other."""
        return self.proposal is not None or self.shortlist is not None or self.selected is not None

    @property
    def is_unsigned(self) -> bool:
        """Whether a person has to sign this version before it goes on."""
        if self.config.approve_plan == "never" or self.phase != "running" or self.plan is None or self.rejected_by:
            return False
        return not self.signed or (self.config.approve_plan == "every" and self.signed < self.version)

    @property
    def open_steps(self) -> tuple[str, ...]:
        """The steps still to be done, in plan order."""
        return tuple(name for name in self.order if self.steps[name].is_open)

    @property
    def live(self) -> tuple[str, ...]:
        """The steps that are part of this version of the plan, in plan order."""
        return tuple(name for name in self.order if self.steps[name].status != "superseded")

    @property
    def words_trust(self) -> Trust:
        """The trust of what models have proposed in this run so far."""
        return "untrusted" if self.has_read else "trusted"

    def made_before(self, record: StepRecord) -> frozenset[str]:
        """The calls with an effect that a step must not make: its own of earlier attempts, those before it was added.

        That a result was not what was promised makes no difference, and neither does an edit that reopens the step.
        """
        if not record.since:
            return record.done_calls
        return record.done_calls | {mark for mark, at in self.completed_effects.items() if at < record.since}

    def is_outdated(self, record: StepRecord) -> bool:
        """Whether a response tells of what was before: a repair has put in, or changed, a step that was done since."""
        if record.step.kind != "response" or record.status != "succeeded":
            return False
        others = (self.steps[name] for name in self.live)
        return any(one.step.kind != "response" and one.since and one.done_in > record.done_in for one in others)

    @property
    def completion_percent(self) -> int:
        """The engine's own figure: of the steps still in the plan, responses left out, how many have succeeded."""
        counted = [one for one in self.steps.values() if one.step.kind != "response"]
        done = sum(one.status == "succeeded" for one in counted)
        left = sum(one.status not in ("succeeded", "skipped", "superseded") for one in counted)
        return 100 * done // (done + left) if done + left else 0


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a run of a conversation was asked, behind so many turns, what was fetched for it, and its answer."""

    run_id: str
    begun: int
    task: events.Task
    hydrated: events.PreHydrationComplete | None = None
    answer: str = ""


@dataclass(frozen=True)
class State:
    """A run, as its events tell it.

    `speakers` are the models by role. `done` are the settled turns and `turn` the newest. `tools` are all tools of the
    run, `offered` those that may be called now, `redeclared` those whose effect has become stricter since the run
    began, with what it was. `known` maps the key of a call to its result, as long as no call with an effect has ended
    since. `trail` and `tried` tell whether the run gets anywhere, `limit_due` the limits that are to be put on record
    next, `asked` those about which a person is asked, and `stuck` why the run has to end ("": it need not). `seen`
    counts the events folded.
    `found` and `hydrated` are what the task refers to and what was fetched of it; while that is fetched, its calls are
    in a turn of the role "prefetch", which nobody spoke. `heads` keeps what `core/view/request.py` derives from the
    fields that `RunStarted` sets, once for each role and mode; it is no part of the value. `plan` is how far a given
    plan has come, and `planning` one that repairs itself. The state of one of its running steps has a `scope`,
    "STEP.ATTEMPT", before the ids of its calls, and `barred` are the fingerprints of calls that it must not make again.
    `earlier` are the runs that this one follows, the first of all first; their turns are among `done`, `begun` of them.
    `outer` is the call of another run that has asked this one, which is then the run of an agent. `notes` are what the
    user has said in between, each with the number of the reply before which it is read.
    """

    seen: int = 0
    run_id: str = ""
    task: events.Task | None = None
    speakers: Mapping[str, SpeakerState] = field(default_factory=dict[str, SpeakerState])
    tools: Catalogue = Catalogue()
    offered: Catalogue = Catalogue()
    redeclared: Mapping[str, Effect] = field(default_factory=dict[str, Effect])
    is_foreign: bool = False
    prompts: Mapping[str, str] = field(default_factory=dict[str, str])
    instructions: str = ""
    reasoner: str = "react"
    config: LoopConfig = LoopConfig()
    done: History[Turn] = History()
    turn: Turn | None = None
    known: Lookup[str, Known] = field(default_factory=Lookup[str, Known])
    wire_ids: Lookup[str, None] = field(default_factory=Lookup[str, None])
    usage: Usage = NO_USAGE
    requests: int = 0
    elapsed_s: float = 0.0
    calls_made: int = 0
    failure: events.ModelFailed | None = None
    has_cut_result: bool = False
    trail: Trail = NO_TRAIL
    tried: Steps = field(default_factory=Lookup[str, Step])
    limit_due: tuple[DueLimit, ...] = ()
    asked: tuple[events.StepLimitReached, ...] = ()
    found: events.ReferencesFound | None = None
    hydrated: events.PreHydrationComplete | None = None
    conventions: tuple[events.ConventionsRead, ...] = ()
    gate: GateRecord | None = None
    plan: PlanRecord | None = None
    planning: Planning | None = None
    scope: str = ""
    barred: frozenset[str] = frozenset()
    stuck: str = ""
    ending: Ending | None = None
    earlier: tuple[Exchange, ...] = ()
    begun: int = 0
    outer: Outer | None = None
    notes: tuple[tuple[int, str], ...] = ()
    recipe: str = ""
    heads: dict[str, tuple[str, ModelMessage]] = field(
        default_factory=dict[str, tuple[str, ModelMessage]], repr=False, compare=False
    )

    @property
    def steps(self) -> int:
        """The number of replies so far."""
        return self.done.length + (self.turn is not None)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls of the newest turn; no other call can be open."""
        return self.turn.calls if self.turn else ()

    @property
    def open_calls(self) -> list[Call]:
        """The calls of this turn that have no result yet."""
        return [one for one in self.turn.calls if one.result is None and one.fault is None] if self.turn else []

    @property
    def turns(self) -> History[Turn]:
        """All turns, the newest last."""
        return self.done.plus(self.turn) if self.turn else self.done

    @property
    def own_turns(self) -> Sequence[Turn]:
        """The turns of this run, without those of the runs that it follows."""
        return self.turns[self.begun :] if self.begun else self.turns

    @property
    def notes_of_run(self) -> tuple[str, ...]:
        """What the user has said since this run began."""
        return tuple(text for at, text in self.notes if at > self.begun)

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """What was asked in this conversation, the newest last; the runs that this one follows with their answers."""
        if self.task is None:
            return ()
        return (*self.earlier, Exchange(self.run_id, self.begun, self.task, self.hydrated))

    @property
    def used_tools(self) -> frozenset[str]:
        """The tools that have given results; the same object as long as it is no other."""
        if self.turn is None:
            return frozenset()
        new = {call.name for call in self.turn.calls if call.result is not None} - self.turn.called
        return self.turn.called | new if new else self.turn.called

    @property
    def running_step(self) -> PlanStep | None:
        """The step of a plan that runs now."""
        return self.plan.running if self.plan is not None else None

    @property
    def current_step_is_reasoning(self) -> bool:
        """Whether the running step is one in which no tool may be called. Source: spec/guard.md, section 2."""
        plan = self.plan
        return plan is not None and plan.running is not None and plan.is_reasoning(plan.running.step_id)

    @property
    def output_schema(self) -> Mapping[str, object] | None:
        """The shape that words have now: of a plan only the last step gives an answer that may have one."""
        plan = self.plan
        is_answer = plan is None or plan.running is None or plan.running is plan.steps[-1]
        return self.config.output_schema if is_answer else None

    def with_turn(self, **changes: object) -> State:
        """The same with fields of the newest turn changed; what was kept of how that is shown is made anew."""
        return self if self.turn is None else changed(self, turn=changed(self.turn, _memo={}, **changes))

    def with_calls(self, change: Callable[[Call], Call]) -> State:
        """The state with the calls of the newest turn as `change` gives them; itself where nothing changes."""
        calls = tuple([change(call) for call in self.calls])
        is_same = all(one is other for one, other in zip(calls, self.calls, strict=True))
        return self if is_same else self.with_turn(calls=calls)

    def call(self, call_id: str) -> Call | None:
        """The call of that id, also from an older turn."""
        for call in self.turn.calls if self.turn else ():
            if call.id == call_id:
                return call
        step = call_id.removeprefix(f"{self.scope}.").partition(".")[0]
        if not step.isdecimal() or len(step) > _LONGEST_STEP or not 0 < int(step) <= len(self.done):
            return None
        return next((call for call in self.done[int(step) - 1].calls if call.id == call_id), None)


EMPTY = State()


def subset(tools: Catalogue, names: tuple[str, ...]) -> Catalogue:
    """The tools of those names, in that order; made once for each choice, so that what is derived from it is kept."""
    if names == tools.names:
        return tools
    wanted = "subset:" + "\0".join(names)
    return tools.derived(wanted, lambda all_: Catalogue(tuple(t for n in names if (t := all_.get(n)) is not None)))
