"""The journal of a test's runs as its cassette: recorded once on real models and tools, played without them ever after.

Played, an agent's hands take what the record says came of each move. All else (the table of moves, the gate, the
parser, what a model is shown) is done anew and held against it event by event, or the test fails with a `Miss`.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, cast
from uuid import uuid4

from surefoot.agent import Agent
from surefoot.core.loop.fold import fold
from surefoot.core.state.state import EMPTY, State
from surefoot.journal.sqlite import SqliteJournal
from surefoot.journal.sqlite_open import SqliteRun
from surefoot.models.http_model import without_user
from surefoot.models.names import resolve
from surefoot.models.wrapper import WrappedModel
from surefoot.run import Run
from surefoot.runtime.cast import ModelChoice
from surefoot.runtime.drive import drive
from surefoot.runtime.services import RunServices
from surefoot.runtime.world import Watch
from surefoot.testing.models import FunctionModel
from surefoot.testing.tape import Miss, PlayedHands, PlayedRun, PlayedStore
from surefoot.types.errors import JournalError, UsageError
from surefoot.types.events import Event, Speaker
from surefoot.types.messages import ModelRequest, ModelSettings
from surefoot.types.ports import Model, RunJournal, ServiceKey, Tool
from surefoot.types.words import Posted

_FILE = "cassette.journal"
_PATIENCE_S = 5.0


class Cassette:
    """A journal file that holds the runs of one test.

    With `record` its agents work on their real models and tools, and `close` puts their journal at `path`. Otherwise
    they are played from it: no request goes out, no tool runs, no service is made and no key is needed. Runs are found
    by their task, reasoner and models, those that are alike in the order in which they were recorded; forks by where
    they left which run, and their models. `missed` is the first thing that was not there, also when somebody caught it.
    `remedy` ends each `Miss`. A played run waits `patience_s` seconds at most for what the record says comes first.

    As a context it is checked at the end: nothing missed, nothing left unplayed. What is recorded in one that ends in
    an error is not kept.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        record: bool = False,
        remedy: str = "record it with Cassette(…, record=True)",
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self.path = Path(path)
        self.is_recording = record
        self.missed: Miss | None = None
        self.patience_s = patience_s
        self._remedy = remedy
        self._folder = tempfile.TemporaryDirectory(prefix="surefoot-cassette-")
        copy = Path(self._folder.name) / _FILE
        self._recording = _Recording(copy) if record else None
        self._played: PlayedStore | None = None

    def agent(
        self,
        model: ModelChoice | Mapping[str, ModelChoice],
        tools: Sequence[Tool | Callable[..., object]] = (),
        **recipe: Any,  # Any: passed on to `Agent` as it is
    ) -> Agent:
        """An agent of that recipe, recorded or played. Takes what `Agent` takes, but `journal`: that is the cassette.

        A model's name is only resolved when recording, so playing needs no key and no model file. Raises `Miss` when
        there is no cassette, or none with runs of that model.
        """
        if "journal" in recipe:
            raise UsageError("the journal of an agent on a cassette is the cassette: leave `journal` out")
        if isinstance(model, Mapping):
            made = {role: self._models(one, role, recipe) for role, one in model.items()}
        else:
            made = self._models(model, "", recipe)
        if self._recording is not None:
            return _RecordedAgent(made, tools, journal=self._recording, **recipe)
        return _PlayedAgent(made, tools, journal=self._store(), **recipe)

    def miss(self, what: str) -> Miss:
        """What to raise when something is not there."""
        found = Miss(f"cassette {self.path}: {what}; {self._remedy}")
        self.missed = self.missed or found
        return found

    def check(self) -> None:
        """Raise the first `Miss` that somebody caught, or one for what was recorded and is not played to its end."""
        is_played = self._recording is None and self.path.exists()
        if self.missed is None and is_played and (told := self._store().unplayed()):
            self.miss(told)
        if self.missed is not None:
            raise self.missed

    def close(self, *, keep: bool = True) -> None:
        """Keep what was recorded, if there was a run; without `keep`, the cassette of before.

        May be called wherever an event loop runs or not.
        """
        if self._recording is not None:
            with ThreadPoolExecutor(1) as thread:  # a loop may be running in this one
                thread.submit(asyncio.run, self._recording.aclose()).result()
            self._recording.is_over = True
            copy = Path(self._folder.name) / _FILE
            if keep and copy.exists():  # in one step: whoever reads it meanwhile, or is killed, has the old or the new
                self.path.parent.mkdir(parents=True, exist_ok=True)
                beside = self.path.with_name(f".{uuid4().hex}.part")
                try:
                    shutil.copyfile(copy, beside)
                    beside.replace(self.path)
                finally:
                    beside.unlink(missing_ok=True)
        self._folder.cleanup()

    def __enter__(self) -> Cassette:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it; what failed keeps the cassette of before. Raises as `check` does, unless something is raised."""
        try:
            if kind is None:
                self.check()
        finally:
            self.close(keep=kind is None)

    def _models(self, given: ModelChoice, role: str, recipe: Mapping[str, Any]) -> list[str | Model]:
        several = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
        return [self._model(one, role, recipe, at) for at, one in enumerate(several)]

    def _model(self, given: str | Model, role: str, recipe: Mapping[str, Any], at: int) -> Model:
        name = without_user(given) if isinstance(given, str) else given.name
        if self._recording is not None:
            settings: ModelSettings | Mapping[str, ModelSettings] = recipe.get("settings", ModelSettings())
            own = settings.get(role) if isinstance(settings, Mapping) else settings
            real = resolve(given, settings=own) if isinstance(given, str) else given
            self._recording.models.append(real)
            return _Recorded(real, name)
        # one that goes on for another may have been asked nothing, and is told by the tape when it was
        speaker = Speaker(name) if at else self._store().speaker(name, recipe.get("call_mode", "auto"))

        async def absent(_: ModelRequest) -> str:
            raise self.miss(f"{name} is asked outside the runs of its agent")

        return FunctionModel(absent, name=name, modes=(speaker.call_mode,), traits=speaker.traits)

    def _store(self) -> PlayedStore:
        if self._played is None:
            if not self.path.is_file():
                raise self.miss("no such file")
            copy = Path(self._folder.name) / _FILE
            shutil.copyfile(self.path, copy)  # reading a journal writes beside it, and a cassette may be read-only
            try:
                self._played = PlayedStore(copy, self.miss, self.patience_s)
            except JournalError as error:  # which names the copy
                raise self.miss(str(error).removeprefix(f"journal {copy}: ").partition("; ")[0]) from error
        return self._played


class _Recorded(WrappedModel):
    """A real model under the name that the test gives it: nothing of this machine is remembered of it or for it."""

    def __init__(self, model: Model, name: str) -> None:
        super().__init__(model)
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    @property
    def identity(self) -> str:
        return self._name


class _Recording(SqliteJournal):
    """The journal of what is recorded, and the models that have to be closed when none of its runs is driven."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.models: list[Model] = []
        self.driving = 0
        self.is_over = False

    async def open(self, run_id: str, *, create: bool = False, fence: int | None = None) -> SqliteRun:
        if self.is_over:
            raise UsageError("its cassette is closed: drive the run inside of the `with` block, or of the test")
        return await super().open(run_id, create=create, fence=fence)


class _RecordedAgent(Agent):
    """An agent that leaves no connection open behind a run: the loop of a test may be gone before its fixtures are."""

    __slots__ = ()

    async def _drive(self, *given: Any, **more: Any) -> Run:  # as the agent has it
        recording = cast("_Recording", self._store)  # the cassette made both
        recording.driving += 1
        try:
            return await super()._drive(*given, **more)
        finally:
            recording.driving -= 1
            if not recording.driving:
                for model in recording.models:
                    await model.aclose()


class _PlayedAgent(Agent):
    __slots__ = ()

    async def _drive(
        self,
        journal: RunJournal,
        first: Sequence[Event],
        watch: Watch | None,
        given: Mapping[ServiceKey, object],  # noqa: ARG002 - of the agent
        words: Sequence[Posted] = (),
        *,
        stream: bool,
        state: State = EMPTY,
        **_: object,
    ) -> Run:
        run = cast("PlayedRun", journal)  # the cassette made the store that it comes from
        await run.append(first, heard=words)
        hands = PlayedHands(self._cast, {}, run, RunServices({}), watch, stream)
        hands.announced(first)
        return Run.of(await drive(run, hands, fold(first, state)), read=self._shape)
