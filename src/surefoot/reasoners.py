"""The two reasoners of seed 003 as classes: handles over a run with one model, or with a Thinker and an Actor.

They hold no conversation: what they remember of a job is read from the journal, so two of them share nothing, and one
can be used for many jobs at once. Source: seed 003, 2.2 and 2.3, and spec/reasoners.md, sections 5 to 8.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Self

from surefoot.agent import Agent
from surefoot.core.loop.fold import fold
from surefoot.core.parse.marks import Deliverable
from surefoot.core.state.roles import ACTOR, SOLO, THINKER
from surefoot.core.state.state import State
from surefoot.journal.memory import store_of
from surefoot.recall import ReasonerMemory, delivered, note_on, run_id_of
from surefoot.run import NoAnswer, Run, new_run_id
from surefoot.runtime.background import Held
from surefoot.runtime.cast import Thinking
from surefoot.service import Functions, ModelService
from surefoot.types.config import LoopConfig, checked_config
from surefoot.types.errors import JournalError, UsageError
from surefoot.types.messages import ModelMessage, ModelSettings
from surefoot.types.ports import JournalStore, Model, ServiceKey
from surefoot.types.task import Task

Memory = Literal["fresh", "resume"]
"""What an attempt at a job that was tried before begins with: the task and a note, or the old conversation."""

CALLER = "the caller, by cancelling infer"
"""Who a run is cancelled by when the task that waits for it is."""

_CONFIG = LoopConfig()
_NO_SERVICES: Mapping[ServiceKey, object] = MappingProxyType({})


class Answer(str):
    """The answer of a run, which is itself a text. `run` says how it came about."""

    __slots__ = ("run",)

    run: Run

    def __new__(cls, text: str, run: Run) -> Self:
        made = super().__new__(cls, text)
        made.run = run
        return made

    def __reduce__(self) -> tuple[type[Answer], tuple[str, Run]]:
        return Answer, (str(self), self.run)

    @property
    def deliverable(self) -> Deliverable:
        """The answer in its four parts; its `output` is the last of them."""
        return self.run.deliverable


class ModelReasoner(Held):
    """What both reasoners share. Use `MonoModelReasoner` or `DualModelReasoner`.

    `agent` is the recipe that they run by: `await reasoner.agent.resume(answer.run.id)`, or `approve`, `fork`, ….
    """

    speaks = SOLO
    """The role whose deliverable counts."""

    def __init__(
        self, make: Callable[..., Agent], journal: JournalStore | str | Path | None, config: LoopConfig, memory: Memory
    ) -> None:
        if memory not in ("fresh", "resume"):
            raise UsageError(f"unknown memory {memory!r}; choose fresh or resume")
        self._store = store_of(journal)
        self.agent = make(journal=self._store, config=replace(checked_config(config), deliverable="required"))
        self._used = (self.agent,)
        self._memory: Memory = memory

    async def infer(self, task: Task | str) -> Answer:
        """Work on a task until there is a deliverable, and give its body.

        A task with a `job` is an attempt at its operator. An earlier attempt that was interrupted, or waits for a
        person, is resumed. After one that ended a new one begins with a fresh memory: it sees the task and one note on
        what came before; with `memory="resume"` the old conversation goes on instead, also with another question. Its
        runs are called "JOB.OPERATOR", "JOB.OPERATOR.2", ….

        Raises `NoAnswer` for every end without an answer and for a run that waits for a person. Cancelled, it ends the
        run as cancelled, with every open call settled in the journal, before `CancelledError` goes on.
        """
        task = task if isinstance(task, Task) else Task(task)
        attempts = await self._attempts(task) if task.job else []
        run_id = run_id_of(task, len(attempts) + 1) if task.job else new_run_id()
        if not attempts:
            driving = self.agent.run(task, run_id=run_id)
        elif (last := attempts[-1]).ending is None:
            run_id, driving = last.run_id, self.agent.resume(last.run_id)
        elif self._memory == "fresh":
            noted = replace(task, attachments=(*task.attachments, note_on(attempts)))
            driving = self.agent.run(noted, run_id=run_id)
        elif last.task is not None and last.task.text == task.text:
            run_id, driving = last.run_id, self.agent.resume(last.run_id, config=self.agent.config)
        else:  # the next question of a conversation
            driving = self.agent.run(task, run_id=run_id, history=last.run_id)
        run = await self._until_cancelled(run_id, driving)
        if run.status in ("completed", "completed_partial"):
            return Answer(run.answer, run)
        raise NoAnswer(run)

    async def conclude(self, reasoner_memory: ReasonerMemory) -> Answer:
        """The deliverable of the last message that `stopped`: its body, with the runtime's marks removed.

        In a dual memory only the Actor's messages count. Raises `NoAnswer` where none has stopped; no other text
        stands in for a deliverable.
        """
        run = reasoner_memory.run or Run("", "interrupted")
        for message in reversed(reasoner_memory.messages):
            is_its_own = message.role == "assistant" and message.name in ("", self.speaks)
            if is_its_own and (body := delivered(message)) is not None:
                return Answer(body, replace(run, answer=body))
        of = f"run {run.id}" if run.id else "this memory"
        raise NoAnswer(run, f"{of} holds no deliverable: no message of its {self.speaks} has stopped the reasoning")

    @staticmethod
    def stopped(message: ModelMessage) -> bool:
        """Whether a message ends the reasoning: it holds a whole deliverable in its tags, and no call beside it.

        Tags in a sentence, in reasoning or in a code fence stop nothing. Source: spec/reasoners.md, section 5.
        """
        return delivered(message) is not None

    async def remembered(self, of: Task | Run | str) -> ReasonerMemory:
        """The memory of a run, by itself or its id, or of the newest attempt at a task with a job.

        Raises `UsageError` where there is none.
        """
        if isinstance(of, Task):
            attempts = await self._attempts(of) if of.job else []
            if not attempts:
                raise UsageError(f"no attempt at operator {of.operator!r} of job {of.job!r} in this journal")
            return ReasonerMemory.of(attempts[-1])
        recorded, _ = await self._store.read_recorded(of if isinstance(of, str) else of.id)
        return ReasonerMemory.of(fold(record.event for record in recorded))

    async def _until_cancelled(self, run_id: str, driving: Coroutine[object, object, Run]) -> Run:
        """Wait for a run that is driven; when that is cancelled, end it in the journal first."""
        try:
            return await driving
        except asyncio.CancelledError:
            ending = asyncio.ensure_future(self.agent.cancel(run_id, by=CALLER))
            while not ending.done():
                with suppress(asyncio.CancelledError):  # cancelled twice: it is short, and must come to its end
                    await asyncio.wait((ending,))
            error = ending.exception()
            if error is not None and not isinstance(error, UsageError | JournalError):  # it had not begun
                raise error from None
            raise

    async def _attempts(self, task: Task) -> list[State]:
        """All attempts at a task's operator, oldest first."""
        found: list[State] = []
        while True:
            run_id = run_id_of(task, len(found) + 1)
            try:
                recorded, wrong = await self._store.read_recorded(run_id)
            except UsageError:  # there is no such run
                return found
            if not recorded:
                return found
            if wrong:
                raise JournalError(f"the earlier attempt {run_id} cannot be read: {wrong}")
            state = fold(record.event for record in recorded)
            if state.task is None or (state.task.job, state.task.operator) != (task.job, task.operator):
                raise UsageError(f"run {run_id} is not an attempt at this operator: use another job or operator name")
            found.append(state)


class MonoModelReasoner(ModelReasoner):
    """One model that plans, acts and delivers, round by round. Source: spec/reasoners.md, section 6.

    `model` is `provider:model`, any `Model`, or a `ModelService`, whose model and settings it then takes. The rest is
    as for `Agent`; of `config`, the deliverable is always required.
    """

    def __init__(
        self,
        model: str | Model | ModelService,
        tools: Functions = (),
        *,
        thinking: Thinking = "auto",
        settings: ModelSettings | None = None,
        services: Mapping[ServiceKey, object] = _NO_SERVICES,
        journal: JournalStore | str | Path | None = None,
        config: LoopConfig = _CONFIG,
        memory: Memory = "fresh",
        instructions: str = "",
    ) -> None:
        """Raises `UsageError` for what cannot work; nothing is sent or opened yet."""
        mono = partial(Agent, _model(model), tools, instructions, settings=_settings(model, settings), reasoner="mono")
        super().__init__(partial(mono, thinking=thinking, services=services), journal, config, memory)


class DualModelReasoner(ModelReasoner):
    """A Thinker that plans and instructs, and an Actor that calls tools and delivers. Source: spec/reasoners.md, 7.

    `thinker` and `actor` are as `model` of `MonoModelReasoner`; `settings` are for both, or by role ("thinker",
    "actor"). Only the Actor has the tools.
    """

    speaks = ACTOR

    def __init__(
        self,
        thinker: str | Model | ModelService,
        actor: str | Model | ModelService,
        tools: Functions = (),
        *,
        thinking: Thinking = "auto",
        settings: ModelSettings | Mapping[str, ModelSettings] | None = None,
        services: Mapping[ServiceKey, object] = _NO_SERVICES,
        journal: JournalStore | str | Path | None = None,
        config: LoopConfig = _CONFIG,
        memory: Memory = "fresh",
        instructions: str = "",
    ) -> None:
        """Raises `UsageError` for what cannot work; nothing is sent or opened yet."""
        by_role = settings if isinstance(settings, Mapping) else {THINKER: settings, ACTOR: settings}
        given = {THINKER: thinker, ACTOR: actor}
        if unknown := [role for role in by_role if role not in given]:
            raise UsageError(f"settings are for {THINKER} and {ACTOR}; unknown role {unknown[0]!r}")
        models = {role: _model(model) for role, model in given.items()}
        own = {role: _settings(model, by_role.get(role)) for role, model in given.items()}
        dual = partial(Agent, models, tools, instructions, settings=own, reasoner="dual", thinking=thinking)
        super().__init__(partial(dual, services=services), journal, config, memory)


def _model(given: str | Model | ModelService) -> str | Model:
    return given.model if isinstance(given, ModelService) else given


def _settings(given: str | Model | ModelService, settings: ModelSettings | None) -> ModelSettings:
    if settings is None and isinstance(given, ModelService):
        return given.settings
    return settings or ModelSettings()
