"""The recipe: `Agent` says how runs are made, and takes them up again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Unpack

from surefoot.batch import run_all
from surefoot.chat import Chat, History, RunOptions, TurnOptions, follow
from surefoot.core.guard.anchor import HandOver
from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import next_moves, standing
from surefoot.core.state.roles import CHOICES
from surefoot.delegate import AgentTool, on_journal, spec_of
from surefoot.driver import Driver
from surefoot.journal.memory import store_of
from surefoot.run import Opened, Out_co, Run, Stream, id_of, new_run_id, stream_of
from surefoot.runtime.admission import Admission
from surefoot.runtime.background import Held
from surefoot.runtime.cast import ModelChoice, ModelWrapper, Thinking, by_role, cast_of, chosen_templates, judge_of
from surefoot.runtime.offers import Offers, bound_tools, known_of, selected_anew
from surefoot.runtime.output import shape_of, with_shape
from surefoot.runtime.pins import Pins
from surefoot.runtime.plan import NOTHING_DONE
from surefoot.runtime.services import checked_services, services_of
from surefoot.runtime.start import (
    Named,
    anchor_late,
    checked_name,
    config_taken,
    digest_of_recipe,
    first_events,
    next_records,
    planned,
)
from surefoot.runtime.trajectories import Trajectories
from surefoot.runtime.world import Watch, check_watch
from surefoot.speak import at_rest, state_now
from surefoot.tools.function import ToolWrapper
from surefoot.types.attachments import Attached
from surefoot.types.config import LoopConfig, checked_config
from surefoot.types.errors import RunExists, UsageError
from surefoot.types.events import Event, JournalOrigin, RunForked, Speaker
from surefoot.types.guard import GuardConfig
from surefoot.types.messages import CallMode, ModelSettings
from surefoot.types.outcomes import Completed
from surefoot.types.ports import Encoder, JournalStore, ServiceKey, Tool
from surefoot.types.reflection import Evaluator
from surefoot.types.rules import Declared
from surefoot.types.settings import Check, fits, mapping, pairs_of, text, tuple_of, whole
from surefoot.types.task import Task
from surefoot.types.tools import Delegates, Effect

if TYPE_CHECKING:
    from surefoot.tools.mcp.config import McpGiven
    from surefoot.tools.mcp.servers import McpServers

_MANY = fits(lambda given: isinstance(given, Iterable) and not isinstance(given, str), "give a list, such as [look_up]")
_CALLABLES = tuple_of(callable, "give a list of callables")
_MADE_OF: Mapping[str, Check] = {
    "tools": _MANY,
    "instructions": text,
    "journal": fits(
        lambda given: given is None or isinstance(given, str) or hasattr(given, "open"),
        "give a path, such as 'runs.db', a journal, or None for memory",
    ),
    "services": mapping,
    "prompts": mapping,
    "evaluators": pairs_of(lambda name, one: isinstance(name, str) and callable(one), *["give functions by name"] * 2),
    "encoder": fits(lambda given: given is None or hasattr(given, "likeness"), "give an Encoder, or None for none"),
    "wrap_model": _CALLABLES,
    "wrap_tools": _CALLABLES,
    "name": text,
    "description": text,
}
"""What fields have to be before anything looks into them; all others are checked where they are read."""


@dataclass(frozen=True, eq=False)  # with slots, `Agent[Trip](…)` cannot be made
class Agent(Held, Driver[Out_co]):
    """A recipe for runs. It holds no run state, so one agent can serve thousands of runs at once.

    `model` is `provider:model` or any `Model`, or a list of these, each of which goes on when the one before it fails.
    For the reasoner `dual` also one for each role, `{"thinker": …, "actor": …}`, and so with `settings`. `tools` are
    functions or `Tool`s, with unique names; `services` is what they ask for by type, objects or factories
    (`runtime/services.py` says which is which). `mcp` are servers whose tools come besides: a file, a mapping or server
    objects (docs/mcp.md); a run sees them as they are when it begins. `journal` is where runs are kept: a
    `JournalStore`, a path for SQLite, or None for memory. `call_mode` "auto" takes the first that the model's wire can
    carry. `thinking` is how `mono` and `dual` are asked to think (`runtime/cast.py`). For `plan`, `evaluators` look at
    a run whose steps are done, by name, and `encoder` helps to find tools. `guard=True` judges each call before it
    runs, a `GuardConfig` says how; read back, it says whether there is one, and `config.guard` which. `output` is the
    type of `Run.output`, or a JSON Schema. `prompts` replaces templates, by call mode or "ROLE_MODE". `wrap_model` and
    `wrap_tools` are put around every model and tool, the first outermost. `max_concurrent_runs` are driven at once,
    further ones wait. `name` and `description` are what a server or a worker knows it by. Raises `UsageError` for what
    cannot work.
    """

    model: ModelChoice | Mapping[str, ModelChoice]
    tools: Sequence[Tool | Callable[..., object]] = ()
    instructions: str = ""
    config: LoopConfig = LoopConfig()
    settings: ModelSettings | Mapping[str, ModelSettings] = ModelSettings()
    journal: JournalStore | str | Path | None = None
    reasoner: str = "react"
    call_mode: CallMode | Literal["auto"] = "auto"
    thinking: Thinking = "auto"
    services: Mapping[ServiceKey, object] = field(default_factory=dict[ServiceKey, object], repr=False)
    prompts: Mapping[str, str] = field(default_factory=dict[str, str])
    encoder: Encoder | None = field(default=None, repr=False)
    evaluators: Mapping[str, Evaluator] = field(default_factory=dict[str, Evaluator], repr=False)
    mcp: McpGiven | Sequence[McpGiven] | McpServers | None = field(default=None, repr=False)
    guard: bool | GuardConfig | None = field(default=False, repr=False)
    output: type[Out_co] | UnionType | Mapping[str, object] | None = None
    wrap_model: Sequence[ModelWrapper] = field(default=(), repr=False)
    wrap_tools: Sequence[ToolWrapper] = field(default=(), repr=False)
    max_concurrent_runs: int = 64
    name: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        for name, check in _MADE_OF.items():
            check(name, getattr(self, name))
        object.__setattr__(self, "config", checked_config(self.config, guard=self.guard))
        if self.reasoner not in CHOICES:
            raise UsageError(f"unknown reasoner {self.reasoner!r}; choose one of {', '.join(CHOICES)}")
        if self.reasoner == "dual" and self.config.guard is not None and self.config.guard.speculate:
            raise UsageError("speculate works with one model alone: use the reasoner 'react' or 'mono'")
        plan = self.config.plan if self.reasoner == "plan" else None
        if plan is not None and (unknown := set(plan.evaluators) - {NOTHING_DONE, *self.evaluators}):
            told = "give the function as Agent(evaluators={…}), or leave out the name"
            raise UsageError(f"plan.evaluators names {min(unknown)!r}, which this agent does not have; {told}")
        models, settings = by_role(
            self.reasoner,
            self.model,
            self.settings,
            judge=judge_of(self.config.guard),
            planner=plan.model if plan is not None else "",
            wrappers=self.wrap_model,
        )
        parts = cast_of(self.reasoner, models, settings, self.call_mode)
        parts.with_shares(self.config, self.reasoner)
        services = checked_services(self.services)
        known, own = known_of(self.config)
        store = store_of(self.journal)
        given = tuple(on_journal(one, store, self.config.guard) for one in self.tools)
        asked = (one for one in given if isinstance(one, AgentTool))
        tools, shape = bound_tools((*given, *own), services), shape_of(self.output)
        config = with_shape(self.config, shape, tools)
        offers = Offers(tools, config, self.mcp, Pins(store.side), self.wrap_tools)
        prompts = chosen_templates(self.reasoner, self.thinking, parts.thinks, self.prompts)
        made = (parts.speakers, prompts, self.instructions, self.reasoner, config)
        vars(self).update(  # it is frozen for everybody else
            config=config,
            guard=config.guard is not None,
            _admission=Admission(self.max_concurrent_runs),
            _cast=parts,
            _store=store,
            _shape=shape,
            _offers=offers,
            _services=services,
            _knowledge=known,
            _paths=Trajectories(store.side),
            _used=(store, *((known,) if known else ()), *offers.used, *parts.used, *asked),
            _prompts=prompts,
            _recipe=digest_of_recipe(*made) if checked_name(self.name) else "",
        )

    async def run(
        self,
        task: str | Task,
        *,
        run_id: str = "",
        attachments: Attached = (),
        services: Mapping[ServiceKey, object] | None = None,
        history: History | None = None,
        watch: Watch | None = None,
        stream: bool = False,
    ) -> Run[Out_co]:
        """Run a task until it ends, or until it needs a person's decision. Never raises for how it ends.

        `attachments` come with the task, and `services` in place of the agent's. With `history`, a run that has ended,
        its id or a `Chat`, the model sees what was said and done there. `watch` gets every event, and with `stream` the
        pieces of replies too. Cancelling leaves the run resumable.
        """
        check_watch(watch)
        asked, new_id = Task.of(task, attachments), run_id or new_run_id()
        return await self.begin(new_id, asked, services, history=history, watch=watch, stream=stream)

    async def begin(
        self,
        new_id: str,
        asked: Task,
        services: Mapping[ServiceKey, object] | None,
        *,
        history: History | None = None,
        watch: Watch | None = None,
        stream: bool = False,
        config: LoopConfig | None = None,
        over: HandOver | None = None,
        labels: Mapping[str, str] | None = None,
        request: str = "",
        drives: bool = True,
    ) -> Run[Out_co]:
        """`run` as agents do it that another one has asked: with the limits of that, and what it hands `over`.

        Without `drives` it is put on record and left to a worker. `labels` and `request` are as in `start`.
        """
        async with self._admission.place(drives=drives):
            new_id, given, offered = id_of(new_id), services_of(self._services, services), await self._offers.now()
            config = self.config if config is None else self._cast.with_shares(checked_config(config), self.reasoner)
            asked = planned(asked, self.reasoner, offered.catalogue, config) if asked.steps else asked
            before, at_hash = await follow(self._store, history, new_id)
            journal = await self._store.open(new_id, create=before.task is None)
            async with Opened(journal, self._store) as opened:
                recipe = (self._cast, self._prompts, self.instructions, self.reasoner, config)
                named = Named(self.name, self._recipe, labels or {}, request)
                first = await first_events(new_id, asked, offered, recipe, before, at_hash, over, named)
                how = partial(self._drive, journal, first, watch, given, stream=stream, state=before, drives=drives)
                return opened.leave(await how(offered=offered))

    async def start(
        self,
        task: str | Task,
        *,
        run_id: str = "",
        attachments: Attached = (),
        history: History | None = None,
        config: LoopConfig | None = None,
        labels: Mapping[str, str] | None = None,
        request: str = "",
    ) -> Run[Out_co]:
        """Put a run on record, safe from the loss of power, for a worker to drive that serves an agent of this `name`.

        `config` takes the place of the agent's, `labels` are the user's own; `request` is kept with the run, so that
        whoever asks twice can tell. Raises `RunExists` for an id that was used.
        """
        asked, begin = Task.of(task, attachments), partial(self.begin, run_id or new_run_id(), history=history)
        return await begin(asked, None, config=config, labels=labels, request=request, drives=False)

    def run_sync(self, task: str | Task, **options: Unpack[RunOptions]) -> Run[Out_co]:
        """`run` for scripts, from any number of threads; must not be called where an event loop is running.

        It runs on an event loop in the background. Interrupting it leaves the run resumable.
        """
        return self._sync(self.run(task, **options))

    def stream(
        self, task: str | Task, *, run_id: str = "", history: History | None = None, **options: Unpack[TurnOptions]
    ) -> Stream[Out_co]:
        """Events and signals as they happen; the `Run` comes last. Closing the iterator leaves the run resumable."""
        started = partial(self.run, task, run_id=run_id, history=history, stream=True, **options)
        return stream_of(lambda watch: started(watch=watch))

    def chat(self, id: str = "", *, after: History | None = None) -> Chat[Out_co]:  # noqa: A002  # what it is called everywhere
        """A conversation, begun (`after` a run or another chat) or gone on with; `send` says what comes next."""
        text("id", id)
        return Chat(id or new_run_id(), self.run, self.resume, self._sync, self._store, after, self._shape)

    def map(self, tasks: Iterable[str | Task], *, id: str = "", concurrency: int = 8) -> AsyncGenerator[Run[Out_co]]:  # noqa: A002
        """The runs of many tasks, as they end; run "ID-000001" is the first task's, whenever it ends (docs/batch.md).

        With an `id` that was used before, what has its answer is not run again and what was interrupted goes on.
        """
        return run_all(self.run, self.resume, self._store, tasks, name=id or new_run_id(), concurrency=concurrency)

    async def resume(
        self,
        run_id: str | Run,
        *,
        by: str = "",
        config: LoopConfig | None = None,
        services: Mapping[ServiceKey, object] | None = None,
        watch: Watch | None = None,
        stream: bool = False,
        origin: JournalOrigin = "own",
        over: HandOver | None = None,
    ) -> Run[Out_co]:
        """Go on with a run (or the run of an id) that was interrupted, paused or ended, from where its journal stands.

        A completed run is given back as it is. Resuming approves nothing. `config` replaces the limits that ended it,
        and the tool profile (one without lifts it); of two guards the stricter holds. `origin`: of a "foreign" run a
        person is asked before the first effect. `over` is for a run of an agent, which only goes on within another.
        """
        check_watch(watch)
        given, run_id = services_of(self._services, services), id_of(run_id)
        async with self._admission.place(), Opened(await self._store.open(run_id), self._store) as opened:
            text("by", by)
            state, words = await state_now(self._store, run_id, opened, over, origin)
            stands = origin != "foreign" and standing(state) and not next_moves(state)
            if isinstance(state.ending, Completed) or stands:  # that it is foreign is put on record
                return await at_rest(opened, words, Run.of(state, read=self._shape))
            parts, said = (self._cast, self._offers, self.config), by or "resume"
            first = await next_records(run_id, state, parts, by=said, config=config, origin=origin, over=over)
            drive = partial(self._drive, opened.journal, first, watch, given, words, stream=stream, state=state)
            return opened.leave(await drive())

    def resume_sync(self, run_id: str | Run, **options: Any) -> Run[Out_co]:  # Any: passed on as they are
        """`resume` for scripts; takes the same options."""
        return self._sync(self.resume(run_id, **options))

    async def fork(
        self,
        run_id: str | Run,
        at: int,
        *,
        new_id: str = "",
        config: LoopConfig | None = None,
        services: Mapping[ServiceKey, object] | None = None,
        watch: Watch | None = None,
        stream: bool = False,
        origin: JournalOrigin = "own",
        labels: Mapping[str, str] | None = None,
        request: str = "",
        drives: bool = True,
    ) -> Run[Out_co]:
        """Make a run that shares the first `at` records of another, and drive it with this agent's model.

        The others are as in `resume` and `start`; without `drives` it is left to a worker. Raises `UsageError` for an
        unknown run or a record that it does not have.
        """
        given, run_id = services_of(self._services, services), id_of(run_id)
        whole(1)("at", at)
        check_watch(watch)
        named = Named(self.name, "", labels or {}, request)
        async with self._admission.place(drives=drives):
            records, _ = await self._store.read_recorded(run_id)
            state = fold(record.event for record in records[:at])
            config = config_taken(state, config, self.config)
            effects = await self._offers.effects_of(state.tools)
            changes, selected = dict[str, Speaker](), tuple[Event, ...]()
            if state.task is not None:  # what cannot be driven is not made
                changes = self._cast.changes(state, config)
                selected = (*await anchor_late(state, config), *selected_anew(state, config))
            forked = new_id or new_run_id()
            try:
                await self._store.fork(run_id, at, forked)
            except RunExists:
                known = await self._store.summary(forked)
                if (known.parent, known.events) != (run_id, at):  # else it was begun so, and died before it said so
                    raise
            async with Opened(await self._store.open(forked), self._store) as opened:
                how = (changes, config, effects, origin, named.agent, named.labels, request)
                first: list[Event] = [RunForked(forked, run_id, at, *how), *selected]
                first += self._cast.newly_remembered(changes, state)
                drive = partial(self._drive, opened.journal, first, watch, given, stream=stream, state=state)
                return opened.leave(await drive(drives=drives))

    def as_tool(
        self, name: str, description: str, *, effect: Effect | None = None, hand_off: bool = False
    ) -> AgentTool:
        """This agent as a tool of another: a call of it is a run of its own, in the other's journal (docs/agents.md).

        `effect` is the strongest of its tools' where it is not given. With `hand_off` its answer ends the outer run.
        """
        Declared(effect=effect)  # raises for what is none
        how: Delegates = "hand_off" if hand_off else "call"
        return AgentTool(self, spec_of(name, description, effect or self._offers.effect, how), effect)
