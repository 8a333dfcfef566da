"""The world of one run, as all its hands share it: models, tools, journal, services, clock, and whoever watches.

The journal keeps the bytes of files, each once, and a request is given them before it is sent.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surefoot.core.state.roles import GUARD, PLANNER, THINKER
from surefoot.core.state.state import State
from surefoot.runtime.cast import Cast
from surefoot.runtime.services import RunServices
from surefoot.tools.call import is_async
from surefoot.types.attachments import Attachment, files_in
from surefoot.types.config import Budget
from surefoot.types.dataclass import dataclass, field
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.events import CallEnded, CallJudged, CallStarted, Event, ModelReplied, ModelTraitLearnt, RunEnded
from surefoot.types.guard_events import BranchCommitted, BranchRejected, HypothesesMade
from surefoot.types.messages import Signal
from surefoot.types.moves import WorldMove
from surefoot.types.plan_events import ReasoningStepCompleted, ReasoningStepViolated, StepSkipped
from surefoot.types.ports import Encoder, JournalStore, RunJournal, Tool
from surefoot.types.reflection import Evaluator
from surefoot.types.words import Posted

if TYPE_CHECKING:
    from surefoot.knowledge.bridge import KnowledgeBridge
    from surefoot.runtime.output import Shape
    from surefoot.runtime.trajectories import Trajectories
    from surefoot.telemetry import Live

_LOG = logging.getLogger("surefoot")
_GATE_LOG = logging.getLogger("surefoot.gate")
_OF_EVERY_STEP = frozenset({ModelReplied, CallJudged, CallStarted, CallEnded, RunEnded})
_READ_NO_FILES = frozenset({GUARD, PLANNER})

Watch = Callable[[Event | Signal], None]
"""Somebody who looks on: gets every event once it is appended, and the signals between them."""


def check_watch(watch: Watch | None) -> None:
    """Raise `ConfigError` for what cannot look on: an async function would be called, and never awaited."""
    if watch is not None and (not callable(watch) or is_async(watch)):  # pyright: ignore[reportUnnecessaryComparison]  # misuse is told
        raise ConfigError("watch", watch, "give a plain function; async code can iterate over `agent.stream(…)`")


Hear = Callable[[State, bool, Collection[str]], Awaitable[tuple[Sequence[Event], Sequence[Posted]]]]
"""What was said to a run as it stands: whether a model is being asked, and which calls are under way."""


@dataclass(frozen=True)  # no slots: those of a class that others are made from are set one by one
class World:
    """What a run touches. `earlier_s` is the time for which it was driven before, `since` when it was taken up now.

    `shape` is what answers are to be, `budget` what the whole run may use, its steps and the runs of agents among it;
    these are kept in `store`. `inbox` hears what is said to it. `asked` are the agents that are asked at once, which
    share what is left of it. `spans` tells of the run to OpenTelemetry, where the application has a provider.
    """

    cast: Cast
    tools: Mapping[str, Tool]
    journal: RunJournal
    services: RunServices
    watch: Watch | None = None
    stream: bool = False
    earlier_s: float = 0.0
    knowledge: KnowledgeBridge | None = None
    paths: Trajectories | None = None
    encoder: Encoder | None = None
    evaluators: Mapping[str, Evaluator] = field(default_factory=dict[str, Evaluator])
    shape: Shape[Any] | None = None  # Any: the type is the caller's
    budget: Budget = Budget()
    store: JournalStore | None = None
    inbox: Hear | None = None
    asked: int = 1
    spans: Live | None = None
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    since: float = field(default_factory=time.monotonic)

    @property
    def elapsed_s(self) -> float:
        return round(self.earlier_s + time.monotonic() - self.since, 6)

    async def hear(
        self, state: State, *, is_thinking: bool, acting: Collection[str]
    ) -> tuple[Sequence[Event], Sequence[Posted]]:
        return await self.inbox(state, is_thinking, acting) if self.inbox is not None else ((), ())

    def do(self, move: WorldMove, state: State) -> Awaitable[Sequence[Event]]:
        raise TypeError(f"{type(self).__name__} has no hands for {type(move).__name__} in run {state.run_id}")

    def tell(self, item: Event | Signal) -> None:
        """Show something to whoever watches. One who fails at it is logged and cannot harm the run."""
        if self.watch is None:
            return
        try:
            self.watch(item)
        except Exception:  # noqa: BLE001  # it is the caller's code, and it only looks on
            _LOG.exception("whoever watches the run failed at a %s", type(item).__name__)

    def announced(self, events: Sequence[Event]) -> None:
        """Pass events on to whoever watches, remember what was learnt of a model, and log what is of interest.

        That is how steps without tools go, and which ways to go on are taken.
        """
        if self.watch is self.spans is None and _OF_EVERY_STEP.issuperset(map(type, events)):
            return
        for event in events:
            self.tell(event)
            if self.spans is not None:
                self.spans.take(event)
            match event:
                case ModelTraitLearnt():
                    self.cast.learn(event, self.journal.run_id)
                case ReasoningStepCompleted(step_id, _, tries, isolated):
                    how = ", out of fresh messages" if isolated else ""
                    _GATE_LOG.info("reasoning step %s completed at try %d%s", step_id, tries, how)
                case ReasoningStepViolated(step_id, attempt, "empty"):
                    _GATE_LOG.info("reasoning step %s: the reply of try %d is empty", step_id, attempt)
                case ReasoningStepViolated(step_id, attempt, "calls", _, tools, after_untrusted):
                    seen = ", after untrusted text" if after_untrusted else ""
                    told = "reasoning step %s violated at try %d%s: %d calls refused, of %r"
                    _GATE_LOG.warning(told, step_id, attempt, seen, len(tools), tuple(dict.fromkeys(tools)))
                case ReasoningStepViolated(step_id, attempt, reason):
                    told = "reasoning step %s: the reply of try %d cannot be used: %s"
                    _GATE_LOG.warning(told, step_id, attempt, reason)
                case StepSkipped(step_id, reason, by):
                    _GATE_LOG.info("step %s skipped by %s: %r", step_id, by, reason)
                case HypothesesMade(tree, dropped):
                    names = tuple(branch.tool_name for branch in tree.branches)
                    told = "step %s, tree %s: branches of %r, %d dropped"
                    _GATE_LOG.info(told, tree.step_id, tree.tree_id, names, dropped)
                case BranchRejected(tree_id, branch_id, rule):
                    _GATE_LOG.info("tree %s: branch %s is out by %s", tree_id, branch_id, rule)
                case BranchCommitted(decision):
                    taken = decision.selected_branch_id or "none"
                    _GATE_LOG.info("tree %s: %s taken by %s", decision.tree_id, taken, decision.by)
                case _:
                    pass


async def keep_task(journal: RunJournal, state: State) -> State:
    """Keep the files of a task before its run is on record. Raises `UsageError` where its model does not take them."""
    if state.task is not None and state.task.attachments and state.ending is None:
        if untaken := cannot_take(state):
            raise UsageError(untaken)
        await keep_files(journal, state.task.attachments)
    return state


async def keep_files(journal: RunJournal, attachments: Iterable[Attachment]) -> None:
    """Put the bytes of files into the journal. Raises `JournalError` for one that is neither at hand nor kept there."""
    for one in files_in(attachments):
        await bring_files(journal, (one,))
        await journal.put_blob(one.data)


async def bring_files(journal: RunJournal, files: Iterable[Attachment]) -> None:
    """Have the bytes of files at hand, those of a run that was taken up again too. Raises `JournalError`."""
    for one in files:
        if not one.is_at_hand:
            one.keep(await journal.get_blob(one.digest))


def cannot_take(state: State, role: str = "") -> str:
    """Why the task's files cannot be shown to the model in that role, or in any that reads them; "" where they can."""
    files = files_in(state.task.attachments) if state.task is not None else ()
    if not files:
        return ""
    apart = _READ_NO_FILES | (frozenset({THINKER}) if state.config.thinker_sees == "data" else frozenset[str]())
    for name in [role] if role else state.speakers:
        speaker = state.speakers[name]
        refused = [one for one in files if speaker.traits.get(one.trait) != "yes"]
        if refused and name not in apart:
            told = ", ".join(f"{one.name} ({one.media_type})" for one in refused)
            return f"{speaker.model} does not take {told}: use a model that does, or leave the file out"
    return ""
