"""One reply of a run and its calls, as the events tell them; and the model that gave it, in its role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar

from surefoot.core.state.trail import call_digest
from surefoot.core.state.window import NO_FIT, Fit, message_tokens
from surefoot.core.text import json_text
from surefoot.types.dataclass import dataclass, field, kept
from surefoot.types.events import Want
from surefoot.types.inner import InnerQuestion, InnerRun
from surefoot.types.messages import CallMode, ModelMessage
from surefoot.types.outcomes import Decision
from surefoot.types.progress import StepDecision
from surefoot.types.reply import Fault, Parsed
from surefoot.types.tools import ToolResult, ToolSpec
from surefoot.types.usage import NO_USAGE, Usage

Outcome = Literal["calls", "answer", "instruction", "cut", "no_step", "narrated", "empty", "fault", "refused"]
"""What a reply was: calls · an answer or other words that stand for themselves · a Thinker's instruction · words cut by
length · text without a step · text that announces a call and makes none · nothing · something unreadable · a refusal by
the model or a content filter."""


ACTOR = "actor"  # the role of the one of two models that calls tools (`core/state/roles.py` has the others)

MOST_ATTEMPTS = 3
"""Attempts of one call after which only a person lets it run again: it may be what ends the process each time."""

Record = TypeVar("Record")
_new, _set = object.__new__, object.__setattr__


def changed(record: Record, **changes: object) -> Record:
    """What `dataclasses.replace` gives at a quarter of its cost, most of a fold: these records have no slots for it."""
    new = _new(record.__class__)
    _set(new, "__dict__", record.__dict__ | changes)
    return new


@dataclass(frozen=True)
class Call:
    """One call of a reply, and how far it has come. `id` is "STEP.POSITION"; `wire_id` is the id the model knows.

    A call that could not be read has a `fault` and no decision. `attempts` counts how often it was started, and
    `origin` is the run in which it first was (a fork keeps it). `doubt` is what was said about an interrupted attempt:
    "not_done" lets it run again, "unknown" leaves it to a person. `inner` is the run of the agent that it has
    asked, with all that this has used.
    """

    id: str
    wire_id: str
    name: str
    arguments: Mapping[str, object]
    spec: ToolSpec | None = None
    fault: Fault | None = None
    decision: Decision | None = None
    rule: str = ""
    attempts: int = 0
    origin: str = ""
    doubt: Literal["", "not_done", "unknown"] = ""
    known: str = ""
    digest: str = ""
    result: ToolResult | None = None
    inner: InnerRun | None = None

    @property
    def position(self) -> int:
        """Its place among the calls of its reply, from 0."""
        return int(self.id.rpartition(".")[2])

    @property
    def is_open(self) -> bool:
        """Whether nobody knows yet what it gives."""
        return self.result is None and self.fault is None

    @property
    def is_waiting(self) -> bool:
        """Whether it is still to be started, for the first time or again."""
        return self.is_open and (not self.attempts or self.doubt == "not_done")

    @property
    def may_run_again(self) -> bool:
        """Whether it is run again if it was interrupted, and nobody is asked."""
        if self.spec is not None and self.spec.delegates:
            return not self.asks
        may_repeat = self.spec is not None and self.spec.may_repeat
        return may_repeat and self.doubt != "unknown" and self.attempts < MOST_ATTEMPTS

    @property
    def is_in_doubt(self) -> bool:
        """Whether it was interrupted, and only a person can say how it goes on."""
        if self.spec is None or not self.is_open or not self.attempts or self.doubt == "not_done":
            return False
        if self.spec.delegates:
            return False  # its run knows
        return not self.may_run_again and (self.doubt == "unknown" or not self.spec.has_probe)

    @property
    def asks(self) -> tuple[Call, ...]:
        """What the run of the agent that it has asked waits for, under the ids by which that is answered."""

        def as_call(q: InnerQuestion) -> Call:
            found = Call(f"{self.id}/{q.call_id}", "", q.name, q.arguments, q.spec, decision=q.decision, rule=q.rule)
            return changed(found, attempts=q.attempts, doubt=q.doubt, digest=q.digest)

        return tuple(map(as_call, self.inner.waiting)) if self.inner is not None and self.is_open else ()

    @kept
    def key(self) -> str:
        """What makes two calls the same: the tool, and the arguments whatever their order. `changed` keeps it."""
        return json_text([self.name, self.arguments], sort_keys=True)

    @kept
    def trail_key(self) -> bytes:
        """The same for the trail, where the form of accents and numbers does not matter either; it is kept, too."""
        return call_digest(self.name, self.arguments, self.key)

    @property
    def has_effect(self) -> bool:
        """Whether it may change anything."""
        return self.spec is not None and self.spec.effect != "read"

    @property
    def is_told_once(self) -> bool:
        """Whether it was answered with an effect that is done, or in doubt, already; the same call again does run."""
        result = self.result
        if not self.known or result is None:
            return False
        return self.has_effect and (not result.is_error or result.kind == "in_doubt")


@dataclass(frozen=True)
class Rendered:
    """What a turn is shown as."""

    messages: Sequence[ModelMessage]

    @kept
    def tokens(self) -> int:
        """How many tokens that is by estimate; asked only where a window is known."""
        return sum(map(message_tokens, self.messages))


@dataclass(frozen=True)
class Turn:
    """One reply and its calls, in the order of the reply. `wrap_up`: how few rounds were left (0: many).

    `progress_note` is what is told of a circle that it is part of, `conventions` those of directories that it came to.
    `step_id` is the step of a plan that it belongs to, `guidance` what was told of that step before it. `called` are
    the tools that had given results before it.
    """

    step: int
    message: ModelMessage
    parsed: Parsed
    mode: CallMode
    want: Want
    role: str
    outcome: Outcome
    calls: tuple[Call, ...] = ()
    wrap_up: int = 0
    progress_note: str = ""
    conventions: str = ""
    step_id: str = ""
    guidance: str = ""
    called: frozenset[str] = frozenset()
    _memo: dict[str, Rendered] = field(default_factory=dict[str, Rendered], init=False, repr=False, compare=False)

    def rendered(self, form: str) -> Rendered | None:
        """What was kept of this turn in that form, if it was made before."""
        return self._memo.get(form)

    def keep(self, form: str, messages: Sequence[ModelMessage]) -> Rendered:
        """Keep the messages of a settled turn, which cannot change any more, or of all turns up to it."""
        made = self._memo[form] = Rendered(messages)
        return made

    def take(self, form: str) -> Rendered | None:
        """What was kept in that form, and is from now on by a later turn."""
        return self._memo.pop(form, None)


@dataclass(frozen=True, slots=True)
class Known:
    """What an identical call came to. It `answers` the next one: a failure once it has come twice, an effect once."""

    call_id: str
    result: ToolResult
    may_repeat: bool
    answers: bool = True


@dataclass(frozen=True, slots=True)
class DueLimit:
    """A step that has come to its limit, which is to be put on record."""

    step_id: str
    attempts: int
    decision: StepDecision


MOST_TRAITS = 30  # traits learnt in one go after which an endpoint is not asked any more


@dataclass(frozen=True)
class SpeakerState:
    """A model in its role: how it is spoken to, and how it has done so far.

    `learnt` are the traits that were learnt since the run was taken up, with their values. `rounds` are the replies but
    those for which the answer was asked, and turns of calls that were made without one. Counters ending in `_running`
    are in a row: no good step came between. `leaks` counts replies with calls as text although tools were sent. `fit`
    is what was still shown of the turns last.
    """

    model: str
    start_mode: CallMode
    mode: CallMode
    traits: Mapping[str, str]
    learnt: frozenset[tuple[str, str]] = frozenset()
    usage: Usage = NO_USAGE
    replies: int = 0
    rounds: int = 0
    faults_running: int = 0
    empty_running: int = 0
    nudges_running: int = 0
    cuts_running: int = 0
    narrated: int = 0
    leaks: int = 0
    calls_natively: bool = False
    overflows: int = 0
    fit: Fit = NO_FIT

    def knows(self, trait: str, value: str) -> bool:
        """Whether nothing more can be learnt of its endpoint: that part was left out already, or too many were."""
        is_left_out = (trait, value) in self.learnt or self.traits.get(trait) == value
        return is_left_out or len(self.learnt) >= MOST_TRAITS
