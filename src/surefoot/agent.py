"""The recipe: `Agent` says how runs are made, and takes them up again."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from surefoot.core.fold import fold
from surefoot.core.moves import next_moves, standing
from surefoot.core.pager import READ_RESULT, pager_spec
from surefoot.core.reasoners.table import REASONERS
from surefoot.core.state import EMPTY, State
from surefoot.core.template import check_template
from surefoot.journal.memory import MemoryJournal
from surefoot.models.providers import resolve
from surefoot.prompts.load import MODES, templates
from surefoot.run import Run
from surefoot.runtime.drive import drive
from surefoot.runtime.hands import LiveHands, Watch
from surefoot.runtime.traits import REMEMBERED, LearntTraits, traits_file
from surefoot.tools.function import tool as as_tool
from surefoot.types.config import LoopConfig
from surefoot.types.decisions import Allow, Deny
from surefoot.types.endings import Cancelled, Completed
from surefoot.types.errors import UsageError
from surefoot.types.events import (
    Attachment,
    CallJudged,
    DoubtSettled,
    Event,
    ModelTraitLearnt,
    RunEnded,
    RunForked,
    RunResumed,
    RunStarted,
    Task,
)
from surefoot.types.messages import CallMode, ModelSettings, ModelSignal
from surefoot.types.ports import JournalStore, Model, RunJournal, Tool
from surefoot.types.tools import Catalogue, ToolResult

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Agent:
    """A recipe for runs. It holds no run, so one agent serves thousands at once.

    `model` is `provider:model` or any `Model`. `tools` are functions or `Tool`s, with unique names. `journal` is where
    runs are kept: a `JournalStore`, a path for SQLite, or None for memory. `call_mode` "auto" takes the first that the
    model's wire can carry. `prompts` replaces the template of a call mode. Raises `UsageError` for what cannot work.
    """

    model: str | Model
    tools: Sequence[Tool | Callable[..., object]] = ()
    instructions: str = ""
    config: LoopConfig = LoopConfig()
    settings: ModelSettings = ModelSettings()
    journal: JournalStore | str | Path | None = None
    reasoner: str = "react"
    call_mode: CallMode | Literal["auto"] = "auto"
    prompts: Mapping[str, str] = field(default_factory=dict[str, str])
    _model: Model = field(init=False, repr=False)
    _store: JournalStore = field(init=False, repr=False)
    _tools: Mapping[str, Tool] = field(init=False, repr=False)
    _catalogue: Catalogue = field(init=False, repr=False)
    _prompts: Mapping[str, str] = field(init=False, repr=False)
    _traits: LearntTraits = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.instructions, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
            raise UsageError("instructions must be a text")
        if self.reasoner not in REASONERS:
            raise UsageError(f"there is no reasoner {self.reasoner!r}; choose one of {', '.join(REASONERS)}")
        tools = _by_name(self.tools)
        if READ_RESULT in tools:
            raise UsageError(f"a tool cannot be called {READ_RESULT!r}: surefoot pages through long results under it")
        specs = (*(one.spec for one in tools.values()), pager_spec()) if tools else ()
        model = resolve(self.model, settings=self.settings) if isinstance(self.model, str) else self.model
        if self.call_mode != "auto" and self.call_mode not in model.modes:
            raise UsageError(f"{model.name} cannot be spoken to in call mode {self.call_mode!r}; it has {model.modes}")
        for mode, template in self.prompts.items():
            if mode not in MODES:
                raise UsageError(f"there is no call mode {mode!r} to have a prompt; choose one of {', '.join(MODES)}")
            check_template(template, f"prompts[{mode!r}]")
        for name, value in (
            ("_model", model),
            ("_store", _store(self.journal)),
            ("_tools", tools),
            ("_catalogue", Catalogue(specs)),
            ("_traits", LearntTraits(model, traits_file())),
            ("_prompts", {**templates(self.reasoner), **self.prompts} if self.prompts else templates(self.reasoner)),
        ):
            object.__setattr__(self, name, value)

    async def run(self, task: str | Task, *, run_id: str = "", watch: Watch | None = None, stream: bool = False) -> Run:
        """Run a task until it ends, or until a person has to speak. Never raises for how it ends.

        `watch` gets every event, and with `stream` the pieces of replies too. Cancelling leaves the run resumable.
        """
        journal = await self._store.open(run_id or new_run_id(), create=True)
        async with _Opened(journal):
            return await self._drive(journal, self._started(journal.run_id, task), watch, stream=stream)

    def run_sync(self, task: str | Task, *, run_id: str = "", watch: Watch | None = None, stream: bool = False) -> Run:
        """`run` for scripts. Must not be called where an event loop is running."""
        return self._sync(self.run(task, run_id=run_id, watch=watch, stream=stream))

    async def stream(self, task: str | Task, *, run_id: str = "") -> AsyncIterator[Event | ModelSignal | Run]:
        """Events and signals as they happen; the `Run` comes last. Closing the iterator leaves the run resumable."""
        seen: asyncio.Queue[Event | ModelSignal | Run] = asyncio.Queue()
        running = asyncio.ensure_future(self.run(task, run_id=run_id, watch=seen.put_nowait, stream=True))
        running.add_done_callback(lambda done: seen.put_nowait(done.result()) if not _went_wrong(done) else None)
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
    ) -> Run:
        """Go on with a run that was interrupted, paused or ended, from where its journal stands.

        A completed run is given back as it is. Resuming approves nothing. `config` replaces the limits that ended it.
        """
        journal = await self._store.open(run_id)
        async with _Opened(journal):
            state = fold(await journal.read())
            if state.task is None:
                raise UsageError(f"run {run_id!r} has no records, so there is nothing to resume; start it anew")
            if isinstance(state.ending, Completed) or (standing(state) and not next_moves(state)):
                return Run.of(state)
            first: list[Event] = []
            if state.run_id != run_id:  # it was forked, and died before it could say so
                first.append(RunForked(run_id, state.run_id, state.seen))
            model, mode, traits = self._taking_up(state)
            first.append(RunResumed(by or "resume", model, mode, traits, config))
            first += self._remembered(traits) if model else ()
            return await self._drive(journal, first, watch, stream=stream, state=state)

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
    ) -> Run:
        """Make a run that shares the first `at` records of another, and drive it with this agent's model.

        `config` replaces that of the parent. Raises `UsageError` for an unknown run or a record that it does not have.
        """
        forked = new_id or new_run_id()
        await self._store.fork(run_id, at, forked)
        journal = await self._store.open(forked)
        async with _Opened(journal):
            state = fold(await journal.read())
            model, mode, traits = self._taking_up(state)
            first: list[Event] = [RunForked(forked, run_id, at, model, mode, traits, config)]
            first += self._remembered(traits) if model else ()
            return await self._drive(journal, first, watch, stream=stream, state=state)

    async def settle(
        self, run_id: str, call_id: str, outcome: Literal["done", "not_done"], *, by: str, result: str = ""
    ) -> Run:
        """Say whether a call in doubt took effect: "done" (the model reads `result`) or "not_done" (it runs again)."""
        most = self.config.tool_result_chars
        if len(result) > most:
            raise UsageError(f"the result has {len(result)} characters; give at most {most}")
        told = ToolResult(result, source=by, trust="trusted") if result else None
        return await self._speak(run_id, call_id, by, "in_doubt", lambda: DoubtSettled(call_id, outcome, by, told))

    async def approve(self, run_id: str, call_id: str, *, by: str) -> Run:
        """Allow a call that waits for a person. `by` is their name."""
        return await self._speak(run_id, call_id, by, "approval", lambda: CallJudged(call_id, Allow(), "person", by))

    async def refuse(self, run_id: str, call_id: str, *, by: str, reason: str = "") -> Run:
        """Refuse a call that waits for a person; the model reads the reason."""
        why = f"refused by {by}" + (f": {reason}" if reason else "")
        return await self._speak(run_id, call_id, by, "approval", lambda: CallJudged(call_id, Deny(why), "person", by))

    async def cancel(self, run_id: str, *, by: str) -> Run:
        """End a run that nobody drives. One that is driven is stopped by cancelling its task."""
        _check_name(by)
        journal = await self._store.open(run_id)
        async with _Opened(journal):
            state = fold(await journal.read())
            if state.ending is None:
                ended = RunEnded(Cancelled(by))
                await journal.append((ended,), "written")
                state = fold((ended,), state)
            return Run.of(state)

    async def aclose(self) -> None:
        """Give back connections and files. The agent can be used again afterwards."""
        await self._model.aclose()
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
            return asyncio.run(closing())
        work.close()
        raise UsageError("an event loop is running here: await `run` or `resume` in place of their `_sync` forms")

    async def _speak(
        self, run_id: str, call_id: str, by: str, about: Literal["approval", "in_doubt"], word: Callable[[], Event]
    ) -> Run:
        """Put a person's word on record, if it answers what the call waits for."""
        _check_name(by)
        journal = await self._store.open(run_id)
        async with _Opened(journal):
            state = fold(await journal.read())
            call = next((call for call in Run.of(state).waiting if call.id == call_id), None)
            waits_for = "in_doubt" if call and call.attempts else "approval"
            if call is None or waits_for != about:
                why = f"waits for {waits_for}, which is another question" if call else "does not wait for a person"
                raise UsageError(f"run {run_id}: call {call_id!r} {why}")
            event = word()
            await journal.append((event,), "written")
            return Run.of(fold((event,), state))

    async def _drive(
        self,
        journal: RunJournal,
        first: Sequence[Event],
        watch: Watch | None,
        *,
        stream: bool,
        state: State = EMPTY,
    ) -> Run:
        """Put on record how somebody takes it up, then drive on from `state`."""
        await journal.append(first)
        hands = LiveHands(
            self._model,
            self._tools,
            journal,
            self.settings,
            watch,
            stream,
            earlier_s=state.elapsed_s,
            traits=self._traits,
        )
        hands.announced(first)
        return Run.of(await drive(journal, hands, fold(first, state)))

    def _started(self, run_id: str, task: str | Task) -> tuple[Event, ...]:
        traits = self._declared()
        started = RunStarted(
            run_id,
            task if isinstance(task, Task) else Task(task),
            self._model.name,
            self._catalogue,
            self._prompts,
            self.instructions,
            self.reasoner,
            self._mode(),
            self.config,
            traits,
        )
        return (started, *self._remembered(traits))

    def _taking_up(self, state: State) -> tuple[str | None, CallMode | None, Mapping[str, str]]:
        """Model, mode and traits to go on with, as far as they are others than before."""
        if self._model.name != state.model:
            return self._model.name, self._mode(), self._declared()
        return None, None if self.call_mode in ("auto", state.start_mode) else self._mode(), {}

    def _declared(self) -> dict[str, str]:
        """What the adapter says of the model. The user's own choice of a call mode counts for more."""
        traits = dict(self._model.traits)
        if "schema" in self._model.modes:
            traits.setdefault("json_schema", "yes")  # until the endpoint refuses it
        return {trait: value for trait, value in traits.items() if self._may_start_with(trait)}

    def _remembered(self, declared: Mapping[str, str]) -> list[Event]:
        known = self._traits.known().items()
        return [
            ModelTraitLearnt(self._model.name, trait, value, REMEMBERED)
            for trait, value in known
            if declared.get(trait) != value and self._may_start_with(trait)
        ]

    def _may_start_with(self, trait: str) -> bool:
        return self.call_mode == "auto" or trait not in MODE_TRAITS

    def _mode(self) -> CallMode:
        return self._model.modes[0] if self.call_mode == "auto" else self.call_mode


MODE_TRAITS = ("native_tools", "text_steps")
"""Traits that move a run away from the call mode that it was started in."""


def _check_name(by: str) -> None:
    if not by.strip():
        raise UsageError("a person's word needs their name: give `by`")


class _Opened:
    """The right to drive a run, given back whatever happens."""

    def __init__(self, journal: RunJournal) -> None:
        self._journal = journal

    async def __aenter__(self) -> None:
        return

    async def __aexit__(self, *_: object) -> None:
        await self._journal.release()


def new_run_id() -> str:
    """A new name for a run: 12 letters and digits."""
    return uuid.uuid4().hex[:12]


def attachment(path: Path) -> Attachment:
    """A text file as something that comes with a task."""
    return Attachment(path.name, path.read_text(encoding="utf-8", errors="replace"))


def _went_wrong(done: asyncio.Future[Run]) -> bool:
    return done.cancelled() or done.exception() is not None


def _store(journal: JournalStore | str | Path | None) -> JournalStore:
    if journal is None:
        return MemoryJournal()
    if isinstance(journal, str | Path):
        from surefoot.journal.sqlite import SqliteJournal  # noqa: PLC0415  # sqlite3 loads when it is used

        return SqliteJournal(journal)
    return journal


def _by_name(tools: Sequence[Tool | Callable[..., object]]) -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    for one in tools:
        made: Tool = one if hasattr(one, "spec") else as_tool(one)  # type: ignore[assignment]  # a function becomes a tool
        name = made.spec.name
        if name in found:
            raise UsageError(f"two tools are called {name!r}; give one of them another name with @tool(name=…)")
        found[name] = made
    return found
