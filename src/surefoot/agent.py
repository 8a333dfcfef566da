"""The recipe: `Agent` says how runs are made, and takes them up again."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import next_moves, standing
from surefoot.core.loop.table import CHOICES
from surefoot.core.plan.child import give_up, open_calls, owner_of
from surefoot.core.state.roles import ROLES
from surefoot.core.state.state import EMPTY, Call, State
from surefoot.journal.memory import store_of
from surefoot.run import Opened, Run, asked_about, late
from surefoot.runtime.admission import Admission
from surefoot.runtime.approvals import anchor, anchor_late, approval, config_taken, expired, refusal, settled
from surefoot.runtime.ask import stage_templates
from surefoot.runtime.cast import Cast, Thinking, by_role, cast_of, chosen_templates, judge_of
from surefoot.runtime.drive import drive
from surefoot.runtime.hands import LiveHands
from surefoot.runtime.offers import Offered, Offers, bound_tools, known_of, selected_anew
from surefoot.runtime.pins import Pins
from surefoot.runtime.services import RunServices, checked_services
from surefoot.runtime.task_plan import bounded, plan_given, planned, step_templates
from surefoot.runtime.trajectories import Trajectories
from surefoot.runtime.world import Watch
from surefoot.types.config import LoopConfig, checked_config
from surefoot.types.errors import UsageError
from surefoot.types.events import (
    Event,
    InStep,
    JournalOrigin,
    Outcome,
    RunEnded,
    RunForked,
    RunResumed,
    RunStarted,
    Speaker,
    Task,
)
from surefoot.types.guard import GuardConfig
from surefoot.types.messages import CallMode, ModelSettings, Signal
from surefoot.types.outcomes import Cancelled, Completed
from surefoot.types.ports import Encoder, JournalStore, Model, RunJournal, ServiceKey, Tool
from surefoot.types.reflection import Evaluator

if TYPE_CHECKING:
    from surefoot.knowledge.bridge import KnowledgeBridge
    from surefoot.tools.mcp.config import McpGiven
    from surefoot.tools.mcp.servers import McpServers

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Agent:
    """A recipe for runs. It holds no run, so one agent serves thousands at once.

    `model` is `provider:model` or any `Model`; for the reasoner `dual` also one for each role, `{"thinker": …, "actor":
    …}`, and so with `settings`. `tools` are functions or `Tool`s, with unique names; `services` is what they ask for by
    type, objects or factories (`runtime/services.py` says which is which). `mcp` are servers whose tools come besides:
    a file, a mapping or server objects (docs/mcp.md); a run sees them as they are when it begins. `journal` is where
    runs are kept: a `JournalStore`, a path for SQLite, or None for memory. `call_mode` "auto" takes the first that the
    model's wire can carry. `fallback` answers while the circuit of a model that was given by name is open. `thinking`
    is how `mono` and `dual` are asked to think (`runtime/cast.py`). For `plan`, `evaluators` look at a run whose
    steps are done, by name, and `encoder` helps to find tools (`models/encoder.py`). `guard=True` judges each call
    before it runs, a `GuardConfig` says how (docs/guard.md). `prompts` replaces templates, by call mode or "ROLE_MODE".
    `max_concurrent_runs` are driven at once, further ones wait in order
    (`runtime/admission.py`). Raises `UsageError` for what cannot work.
    """

    model: str | Model | Mapping[str, str | Model]
    tools: Sequence[Tool | Callable[..., object]] = ()
    instructions: str = ""
    config: LoopConfig = LoopConfig()
    settings: ModelSettings | Mapping[str, ModelSettings] = ModelSettings()
    journal: JournalStore | str | Path | None = None
    reasoner: str = "react"
    call_mode: CallMode | Literal["auto"] = "auto"
    fallback: str | Model | None = None
    thinking: Thinking = "auto"
    services: Mapping[ServiceKey, object] = field(default_factory=dict[ServiceKey, object], repr=False)
    prompts: Mapping[str, str] = field(default_factory=dict[str, str])
    encoder: Encoder | None = field(default=None, repr=False)
    evaluators: Mapping[str, Evaluator] = field(default_factory=dict[str, Evaluator], repr=False)
    mcp: McpGiven | Sequence[McpGiven] | McpServers | None = field(default=None, repr=False)
    guard: InitVar[bool | GuardConfig] = False
    max_concurrent_runs: int = 64
    _admission: Admission = field(init=False, repr=False)
    _alone: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)
    _cast: Cast = field(init=False, repr=False)
    _store: JournalStore = field(init=False, repr=False)
    _offers: Offers = field(init=False, repr=False)
    _prompts: Mapping[str, str] = field(init=False, repr=False)
    _services: Mapping[ServiceKey, object] = field(init=False, repr=False)
    _knowledge: KnowledgeBridge | None = field(init=False, repr=False)
    _paths: Trajectories = field(init=False, repr=False)

    def __post_init__(self, guard: bool | GuardConfig) -> None:
        if not isinstance(self.instructions, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
            raise UsageError("instructions must be a text")
        object.__setattr__(self, "config", checked_config(self.config, guard=guard))
        if self.reasoner not in CHOICES:
            raise UsageError(f"there is no reasoner {self.reasoner!r}; choose one of {', '.join(CHOICES)}")
        if self.reasoner == "dual" and self.config.guard is not None and self.config.guard.speculate:
            raise UsageError("speculate is for one who speaks alone: use the reasoner 'react' or 'mono'")
        planner = self.config.plan.model if self.config.plan is not None and self.reasoner == "plan" else ""
        judge = judge_of(self.config.guard)
        models, settings = by_role(
            self.reasoner, self.model, self.settings, self.fallback, judge=judge, planner=planner
        )
        parts = cast_of(self.reasoner, models, settings, self.call_mode)
        services = checked_services(self.services)
        known, own = known_of(self.config)
        store = store_of(self.journal)
        offers = Offers(bound_tools((*self.tools, *own), services), self.config, self.mcp, Pins.beside(store))
        for name, value in (
            ("_admission", Admission(self.max_concurrent_runs)),
            ("_cast", parts),
            ("_store", store),
            ("_offers", offers),
            ("_services", services),
            ("_knowledge", known),
            ("_paths", Trajectories.beside(store)),
            ("_prompts", chosen_templates(self.reasoner, self.thinking, parts.thinks, self.prompts)),
        ):
            object.__setattr__(self, name, value)

    async def run(self, task: str | Task, *, run_id: str = "", watch: Watch | None = None, stream: bool = False) -> Run:
        """Run a task until it ends, or until a person has to speak. Never raises for how it ends.

        `watch` gets every event, and with `stream` the pieces of replies too. Cancelling leaves the run resumable.
        """
        async with self._admission.place():
            offered = await self._offers.now()
            asked = task if isinstance(task, Task) else Task(task)
            if asked.steps:
                asked = planned(asked, self.reasoner, offered.catalogue, self.config)
            async with Opened(await self._store.open(run_id or new_run_id(), create=True)) as opened:
                first = await self._started(opened.journal.run_id, asked, offered)
                return opened.left(await self._drive(opened.journal, first, watch, stream=stream, offered=offered))

    def run_sync(self, task: str | Task, *, run_id: str = "", watch: Watch | None = None, stream: bool = False) -> Run:
        """`run` for scripts. Must not be called where an event loop is running, nor in two threads at once."""
        return self._sync(self.run(task, run_id=run_id, watch=watch, stream=stream))

    async def stream(self, task: str | Task, *, run_id: str = "") -> AsyncIterator[Event | Signal | Run]:
        """Events and signals as they happen; the `Run` comes last. Closing the iterator leaves the run resumable."""
        seen: asyncio.Queue[Event | Signal | Run] = asyncio.Queue()
        running = asyncio.ensure_future(self.run(task, run_id=run_id, watch=seen.put_nowait, stream=True))
        running.add_done_callback(
            lambda done: None if done.cancelled() or done.exception() else seen.put_nowait(done.result())
        )
        getting = asyncio.ensure_future(seen.get())
        try:
            while True:
                await asyncio.wait((getting, running), return_when=asyncio.FIRST_COMPLETED)
                if not getting.done():
                    running.result()  # raises what went wrong, or the run is about to be put
                    await asyncio.wait((getting,))
                yield (item := getting.result())
                if isinstance(item, Run):
                    return
                getting = asyncio.ensure_future(seen.get())
        finally:
            getting.cancel()
            running.cancel()
            await asyncio.wait((running, getting))

    async def resume(
        self,
        run_id: str,
        *,
        by: str = "",
        config: LoopConfig | None = None,
        watch: Watch | None = None,
        stream: bool = False,
        origin: JournalOrigin = "own",
    ) -> Run:
        """Go on with a run that was interrupted, paused or ended, from where its journal stands.

        A completed run is given back as it is. Resuming approves nothing. `config` replaces the limits that ended it,
        and the tool profile (one without lifts it); of two guards the stricter holds. `origin`: of a "foreign" run a
        person is asked before the first effect.
        """
        async with self._admission.place(), Opened(await self._store.open(run_id)) as opened:
            journal = opened.journal
            state = fold(await journal.read())
            if state.task is None:
                raise UsageError(f"run {run_id!r} has no records, so there is nothing to resume; start it anew")
            if standing(state) and (no := expired(state, (await self._store.read_recorded(run_id))[0])):
                await journal.append(no, "written")
                state = fold(no, state)
            stands = origin != "foreign" and standing(state) and not next_moves(state)
            if isinstance(state.ending, Completed) or stands:  # that it is foreign is put on record
                return opened.left(Run.of(state))
            config = config_taken(state, config, self.config)
            first: list[Event] = []
            if state.run_id != run_id:  # it was forked, and died before it could say so
                first.append(RunForked(run_id, state.run_id, state.seen, journal=origin))
            changes = self._cast.changes(state)
            effects = await self._offers.effects_of(state.tools)
            first += (RunResumed(by or "resume", changes, config, effects, origin), *await anchor_late(state, config))
            first += selected_anew(state, config)
            first += self._cast.remembered(_other_models(changes, state))
            return opened.left(await self._drive(journal, first, watch, stream=stream, state=state))

    def resume_sync(self, run_id: str, **options: Any) -> Run:  # Any: passed on as they are
        """`resume` for scripts; takes the same options."""
        return self._sync(self.resume(run_id, **options))

    async def fork(
        self,
        run_id: str,
        at: int,
        *,
        new_id: str = "",
        config: LoopConfig | None = None,
        watch: Watch | None = None,
        stream: bool = False,
        origin: JournalOrigin = "own",
    ) -> Run:
        """Make a run that shares the first `at` records of another, and drive it with this agent's model.

        The others are as in `resume`. Raises `UsageError` for an unknown run or a record that it does not have.
        """
        async with self._admission.place():
            records, _ = await self._store.read_recorded(run_id)
            state = fold(record.event for record in records[:at])
            config = config_taken(state, config, self.config)
            effects = await self._offers.effects_of(state.tools)
            changes, selected = dict[str, Speaker](), tuple[Event, ...]()
            if state.task is not None:  # what cannot be driven is not made
                changes = self._cast.changes(state)
                selected = (*await anchor_late(state, config), *selected_anew(state, config))
            forked = new_id or new_run_id()
            await self._store.fork(run_id, at, forked)
            async with Opened(await self._store.open(forked)) as opened:
                first: list[Event] = [RunForked(forked, run_id, at, changes, config, effects, origin), *selected]
                first += self._cast.remembered(_other_models(changes, state))
                return opened.left(await self._drive(opened.journal, first, watch, stream=stream, state=state))

    async def settle(self, run_id: str, call_id: str, outcome: Outcome, *, by: str, result: str = "") -> Run:
        """Say what became of a call in doubt: "done" (with `result`), "not_done" (it runs again), or "abandoned".

        Raises `UsageError` for "not_done" while the call still runs in this process.
        """
        if len(result) > (most := self.config.tool_result_chars):
            raise UsageError(f"the result has {len(result)} characters; give at most {most}")
        told = partial(settled, outcome=outcome, by=by, result=result)
        return await self._speak(run_id, call_id, by, "in_doubt", told)

    async def approve(self, run_id: str, call_id: str | Sequence[str], *, by: str) -> Run:
        """Allow a call that waits for a person, exactly as it is, or sign the plan ("plan"). `by` is their name.

        Of a question about several calls (`Run.questions`), give the ids of those that may run. Raises `AnswerLate`
        when it has waited longer than `GuardConfig.approval_timeout_s`, which is a no.
        """
        return await self._speak(run_id, call_id, by, "approval", partial(approval, by=by), is_yes=True)

    async def refuse(self, run_id: str, call_id: str | Sequence[str], *, by: str, reason: str = "") -> Run:
        """Refuse calls that wait; the model reads the reason. Of a plan, it asks for another."""
        return await self._speak(run_id, call_id, by, "approval", partial(refusal, by=by, reason=reason))

    async def cancel(self, run_id: str, *, by: str) -> Run:
        """End a run that nobody drives. One that is driven is stopped by cancelling its task.

        Every open call is settled: as cancelled, or as in doubt where it was started and must not be repeated.
        """
        if not by.strip():
            raise UsageError("say who decides this: give `by`")
        journal = await self._store.open(run_id)
        async with Opened(journal):
            state = fold(await journal.read())
            if state.task is None:
                raise UsageError(f"run {run_id!r} has no records, so there is nothing to cancel")
            if state.ending is None:
                given = (owner.told((give_up(call, state.elapsed_s),)) for owner, call in open_calls(state))
                ended = (*chain.from_iterable(given), RunEnded(Cancelled(by)))
                await journal.append(ended, "written")
                state = fold(ended, state)
            return Run.of(state)

    async def aclose(self) -> None:
        """Give back connections and files. The agent can be used again afterwards."""
        await self._cast.aclose()
        await self._offers.aclose()
        if self._knowledge is not None:
            await self._knowledge.aclose()
        await self._store.aclose()

    def _sync(self, work: Coroutine[object, object, T]) -> T:
        async def closing() -> T:
            try:
                return await work
            finally:
                await self.aclose()

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            if not self._admission.held and self._alone.acquire(blocking=False):
                try:
                    return asyncio.run(closing())
                finally:
                    self._alone.release()
            why = "this agent drives a run in another thread: make one for each, or await `run` on one loop"
        else:
            why = "an event loop is running here: await `run` or `resume` in place of their `_sync` forms"
        work.close()
        raise UsageError(why)

    async def _speak(
        self,
        run_id: str,
        call_id: str | Sequence[str],
        by: str,
        about: Literal["approval", "in_doubt"],
        word: Callable[[State, Call], Sequence[Event]],
        *,
        is_yes: bool = False,
    ) -> Run:
        """Put a person's word on record, if it answers what the call waits for."""
        if not by.strip():
            raise UsageError("say who decides this: give `by`")
        named = tuple(dict.fromkeys([call_id] if isinstance(call_id, str) else call_id))
        if not named:
            raise UsageError("name the calls that are meant; `Run.waiting` has their ids")
        async with Opened(await self._store.open(run_id)) as opened:
            journal = opened.journal
            state = fold(await journal.read())
            calls = [asked_about(state, one, about) for one in named]
            no = expired(state, (await self._store.read_recorded(run_id))[0])
            others = tuple(
                n for n in no if getattr(n.event if isinstance(n, InStep) else n, "call_id", "") not in named
            )
            is_late = is_yes and len(others) < len(no)  # a no counts at any time, with its reason
            said = [*(no if is_late else others)]
            state = fold(said, state)
            for call in () if is_late else calls:
                owner = owner_of(state, call.id)
                told = owner.told(word(owner.state, call))
                said += told
                state = fold(told, state)
            await journal.append(said, "written")
            run = opened.left(Run.of(state, said[-1]))
        if is_late:
            raise late(run_id, named[0])
        return run

    async def _drive(
        self,
        journal: RunJournal,
        first: Sequence[Event],
        watch: Watch | None,
        *,
        stream: bool,
        state: State = EMPTY,
        offered: Offered | None = None,
    ) -> Run:
        """Put on record how somebody takes it up, then drive on from `state`."""
        tools = offered.tools if offered else await self._offers.tools_of(state.tools)
        await journal.append(first)
        async with RunServices(self._services) as services:
            own = (self._knowledge, self._paths, self.encoder, self.evaluators)
            hands = LiveHands(self._cast, tools, journal, services, watch, stream, state.elapsed_s, *own)
            hands.announced(first)
            ended = await drive(journal, hands, fold(first, state))
            if ended.gate is not None:
                await self._paths.remember(journal, ended)
            return Run.of(ended)

    async def _started(self, run_id: str, asked: Task, offered: Offered) -> tuple[Event, ...]:
        prompts, config, tools, reasoner = self._prompts, self.config, offered.catalogue, self.reasoner
        anchored, plan = tuple[Event, ...](), tuple[Event, ...]()
        if asked.steps or reasoner == "plan":
            prompts, config = {**prompts, **step_templates(asked, reasoner)}, bounded(config, reasoner)
            plan = plan_given(asked, reasoner, tools)
        if config.guard is not None:
            prompts, anchored = {**prompts, **stage_templates(config.guard)}, await anchor(asked.text, config)
        started = RunStarted(run_id, asked, self._cast.speakers, tools, prompts, self.instructions, reasoner, config)
        return (started, *anchored, *offered.selected, *self._cast.remembered(ROLES[reasoner]), *plan)


def _other_models(changes: Mapping[str, Speaker], state: State) -> list[str]:
    return [role for role, speaker in changes.items() if speaker.model != state.speakers[role].model]


def new_run_id() -> str:
    """A new name for a run: 12 letters and digits."""
    return uuid.uuid4().hex[:12]
