"""Recorded runs, and how far they are played: everything that comes of a played run is held against them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import next_moves
from surefoot.core.loop.read import read_reply
from surefoot.core.loop.replay import is_outcome, replay
from surefoot.core.loop.slices import request
from surefoot.core.plan.child import with_whole
from surefoot.core.state.state import EMPTY, State
from surefoot.core.text import json_text, shortened
from surefoot.journal.codec import encode
from surefoot.journal.memory import MemoryJournal
from surefoot.journal.sqlite_file import connect
from surefoot.journal.sqlite_read import Reader
from surefoot.runtime.hands import LiveHands
from surefoot.testing.journals import AroundRun, CheckedJournal
from surefoot.types import events as e
from surefoot.types.errors import UsageError
from surefoot.types.messages import CallMode, ModelMessage, ModelRequest, TextDelta
from surefoot.types.moves import Act, Think, Within, WorldMove
from surefoot.types.outcomes import Cancelled
from surefoot.types.ports import Place, RunJournal
from surefoot.types.task import Task
from surefoot.types.tools import ToolSpec

_MOST_RUNS = 10_000
_EXCERPT = 60
_RANK: dict[CallMode, int] = {"native": 0, "schema": 1, "text": 2}


class Miss(BaseException):  # it must fail the test, and no `except Exception` of a runtime may make a failed run of it
    """What is asked for is not on the cassette, or is something else there. The message says what, and the remedy."""


@dataclass(slots=True)
class Tape:
    """A recorded run, and how far it is played: `state` is the fold of the records before `at`."""

    run_id: str
    parent: str
    events: Sequence[e.Event]
    is_taken: bool = False
    at: int = 0
    state: State = EMPTY
    beside: frozenset[int] = frozenset()
    turns: dict[int, asyncio.Future[None]] = field(default_factory=dict[int, "asyncio.Future[None]"])
    """The records that hands wait for. `beside` is as in `Replayed`."""

    def get(self, at: int) -> e.Event | None:
        """The record of that number; None behind the last one, and where somebody else has to go on with the run."""
        event = self.events[at] if at < len(self.events) else None
        return None if isinstance(event, e.RunResumed | e.RunForked) or _is_cancelled(event) else event

    def find(self, wanted: Callable[[e.Event], bool]) -> int | None:
        """The next record of that kind that comes before somebody takes the run up again."""
        at = self.at
        while (event := self.get(at)) is not None:
            if wanted(event):
                return at
            at += 1
        return None

    def advance(self, count: int) -> None:
        """So many records more have been played."""
        self.state = fold(self.events[self.at : self.at + count], self.state)
        self.at += count
        self.call()

    def call(self) -> None:
        """Let the next hand go on, in one turn of the loop with those whose records came together with its own."""
        end = self.at + 1
        while end in self.beside:
            end += 1
        due = [turn for at in range(self.at, end) if (turn := self.turns.get(at)) is not None and not turn.done()]
        for turn in due if len(due) == end - self.at else ():
            turn.set_result(None)


class PlayedStore(CheckedJournal):
    """Played runs in memory, and the recorded ones of the journal at `path` that they are held against.

    `miss` makes what is raised when something is not there. A played run waits `patience_s` seconds at most for what
    the record says comes first.
    """

    def __init__(self, path: Path, miss: Callable[[str], Miss], patience_s: float) -> None:
        super().__init__(MemoryJournal())
        self.miss = miss
        self.patience_s = patience_s
        self.blobs: dict[str, bytes] = {}
        self._playing: dict[str, Tape] = {}
        self._tapes: list[Tape] = []
        with closing(connect(path, make=False)) as db:
            reader = Reader(db, path)
            for info in reader.newest(_MOST_RUNS, lambda _: False)[::-1]:
                records, wrong = reader.load(info.run_id, 0)
                if wrong is not None:
                    raise wrong
                events = [record.event for record in records]
                self._tapes.append(Tape(info.run_id, info.parent, events))
                results = (one.result for one in events if isinstance(one, e.CallEnded | e.DoubtSettled))
                blobs = (result.blob for result in results if result is not None and result.blob is not None)
                self.blobs |= {blob: reader.blob(blob) for blob in blobs}

    async def open(self, run_id: str, *, create: bool = False, fence: int | None = None) -> RunJournal:
        return PlayedRun(await super().open(run_id, create=create, fence=fence), self, self._playing.get(run_id))

    def take(self, run_id: str, started: e.RunStarted) -> Tape:
        """The next tape of that task, reasoner and models, behind the same run of a conversation."""
        follows = self._playing[started.follows].run_id if started.follows else ""
        tapes = [tape for tape in self._tapes if tape.parent == _started(tape).follows == follows]
        tapes = [tape for tape in tapes if (_started(tape).outer is None) == (started.outer is None)]
        of_task = [tape for tape in tapes if not tape.is_taken and _started(tape).task == started.task]
        if not of_task:
            held = ", ".join(dict.fromkeys(map(_title, tapes)))
            raise self.miss(f"no (further) run of the task {_short(started.task)}; it holds {held or 'none'}")
        tape = next((tape for tape in of_task if _played_by(_started(tape)) == _played_by(started)), None)
        if tape is None:
            was = _played_by(_started(of_task[0]))
            raise self.miss(f"{_title(of_task[0])} was recorded with {was}, not with {_played_by(started)}")
        if started.follows:
            tape.advance(tape.events.index(_started(tape)))
        self._play(run_id, tape)
        return tape

    def take_fork(self, run_id: str, forked: e.RunForked) -> Tape:
        """The next tape that left that run at that record, and went on with the same models."""
        of = self._playing[forked.parent]
        there = [t for t in self._tapes if not t.is_taken and t.parent == of.run_id and _fork_at(t, forked.at)]
        if not there:
            raise self.miss(f"no (further) fork of {_title(of)} at {forked.at}")
        models = _models_after(fold(there[0].events[: forked.at]), forked)
        tape = next(
            (t for t in there if _models_after(fold(t.events[: forked.at]), _fork_at(t, forked.at)) == models), None
        )
        if tape is None:
            raise self.miss(f"no fork of {_title(of)} at {forked.at} was recorded with {models}")
        tape.advance(forked.at)
        self._play(run_id, tape)
        return tape

    def unplayed(self) -> str:
        """What was recorded and is not played, in words; "" when all of it is."""
        for tape in self._tapes:
            if _started(tape).outer is not None:  # what an agent gave is on the tape of the run that asked it
                continue
            if not tape.is_taken:
                return f"{_title(tape)} was recorded and is not played"
            if tape.at < len(tape.events) and not next_moves(fold(tape.events)):  # one that was broken off has no end
                return f"{_title(tape)} was recorded up to record {len(tape.events)}, and is played to {tape.at}"
        return ""

    def speaker(self, name: str, call_mode: str) -> e.Speaker:
        """How the model of that name was spoken to: in that call mode, or in the best one for "auto"."""
        events = (event for tape in self._tapes for event in tape.events)
        taken_up = (event for event in events if isinstance(event, e.RunStarted | e.RunResumed | e.RunForked))
        all_ = [speaker for event in taken_up for speaker in event.speakers.values()]
        found = [s for s in all_ if s.model == name and call_mode in ("auto", s.call_mode)]
        if not found:
            held = ", ".join(sorted({f"{s.model} (call mode {s.call_mode})" for s in all_}))
            mode = "" if call_mode == "auto" else f" in call mode {call_mode}"
            raise self.miss(f"no run was recorded with {name}{mode}, only with {held}")
        return min(found, key=lambda s: _RANK[s.call_mode])

    def _play(self, run_id: str, tape: Tape) -> None:
        tape.is_taken, tape.beside = True, replay(tape.events).beside
        self._playing[run_id] = tape


class PlayedRun(AroundRun):
    """The journal of a played run. It takes only what stands on the tape."""

    def __init__(self, journal: RunJournal, store: PlayedStore, tape: Tape | None) -> None:
        super().__init__(journal)
        self.store = store
        self._tape = tape

    @property
    def tape(self) -> Tape:
        if self._tape is None:
            raise UsageError(f"run {self.run_id} has no records yet")
        return self._tape

    async def append(self, events: Sequence[e.Event], *given: Any, **more: Any) -> Place:  # Any: passed on as they are
        for ahead, event in enumerate(events):
            if self._tape is None and isinstance(event, e.RunStarted):
                self._tape = self.store.take(self.run_id, event)
            if self._tape is None and isinstance(event, e.RunForked):
                self._tape = self.store.take_fork(self.run_id, event)
            tape = self.tape
            at = tape.at + ahead
            was = tape.events[at] if at < len(tape.events) else None
            if isinstance(was, e.IntentAnchored) and isinstance(event, e.IntentAnchored):
                was = replace(was, today=event.today)  # played on another day, from which a date may be counted
            if was == event:
                continue
            is_taken_up = isinstance(event, e.RunStarted | e.RunResumed | e.RunForked)
            if is_taken_up and isinstance(was, e.RunStarted | e.RunResumed | e.RunForked) and type(event) is type(was):
                before, now = _models_after(tape.state, was), _models_after(tape.state, event)
                if before == now:
                    continue  # of how a run is taken up, counts who plays in it, and what the model is shown of it
                raise self.store.miss(f"record {at} of {_title(tape)} was with {before}, is with {now}")
            if tape.get(at) is None and not isinstance(event, e.RunResumed | e.RunForked) and not _is_cancelled(event):
                raise await self.broken_off()
            told = differing(encoded(was) if was else "nothing", encoded(event))
            raise self.store.miss(f"record {at} of {_title(tape)} {told}")
        stands = await self._journal.append(events, *given, **more)
        self.tape.advance(len(events))
        return stands

    async def broken_off(self) -> Miss:
        """What to raise where the recorded run was broken off, unless the test breaks off this one too, in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.store.patience_s):
                await asyncio.Event().wait()
        tape = self.tape
        return self.store.miss(f"{_title(tape)} was broken off at record {tape.at}, and now it goes on")

    async def turn_of(self, at: int) -> None:
        """Return when all records before that one are played."""
        loop, tape = asyncio.get_running_loop(), self.tape
        tape.turns[at] = turn = loop.create_future()
        loop.call_soon(tape.call)  # not at once: hands that go on together have to do so in the order of their records
        try:
            async with asyncio.timeout(self.store.patience_s):
                await turn
        except TimeoutError:
            late = next((n for n in range(tape.at, len(tape.events)) if n not in tape.turns), at)
            what = f"{_title(tape)} went on with a {tape.events[late].type} at record {late}, which does not come"
            raise self.store.miss(what) from None
        finally:
            tape.turns.pop(at, None)


class PlayedHands(LiveHands):
    """Hands that take from the tape what came of each move."""

    __slots__ = ()

    @property
    def _run(self) -> PlayedRun:
        return cast("PlayedRun", self.journal)  # its agent made it so

    async def do(self, move: WorldMove, state: State) -> Sequence[e.Event]:
        """What came of the move when it was recorded, in its turn."""
        tape, miss = self._run.tape, self._run.store.miss
        at, now = tape.find(lambda event: is_outcome(event, move)), tape.get(tape.at)
        if isinstance(move, Think) and at != tape.at and now is not None:  # nothing is made beside it
            raise miss(f"in step {move.step} of {_title(tape)} a model is asked, where there was a {now.type}")
        call = state.call(move.call_id) if isinstance(move, Act) else None
        if at is None and call is not None and call.spec is not None and not call.spec.may_repeat:
            return ()  # nobody knew what came of it
        if at is None:
            raise await self._run.broken_off()
        event = tape.events[at]
        result = event.result if isinstance(event, e.CallEnded | e.DoubtSettled) else None
        if result is not None and result.blob is not None:
            await self._run.put_blob(self._run.store.blobs[result.blob])
        await self._run.turn_of(at)
        if isinstance(move, Think):
            self._compare(event, move, tape.state, state)
        elif isinstance(move, Within) and isinstance(move.move, Think) and isinstance(event, e.InStep):
            plans = ((one.planning, one) for one in (tape.state, state))
            steps = (with_whole(plan.children[move.step_id], one) for plan, one in plans if plan is not None)
            self._compare(event.event, move.move, *steps)
        return (event,)

    def _compare(self, event: e.Event, move: Think, then: State, state: State) -> None:
        """Raise a `Miss` unless what is asked now and how the reply is read are as they were."""
        miss, step = self._run.store.miss, f"step {move.step} of {_title(self._run.tape)}"
        was = request(then, move)
        if then.gate and state.gate:  # the marks around foreign text are of the run's id
            marks = (then.gate.nonce, state.gate.nonce)
            shown = tuple(replace(one, content=one.content.replace(*marks)) for one in was.messages)
            was = replace(was, system=was.system.replace(*marks), messages=shown)
        if told := first_difference(was, request(state, move)):
            raise miss(f"what the model is shown in {step} is not what was recorded: {told}")
        if isinstance(event, e.ModelReplied):
            read = replace(event, parsed=read_reply(state, move, event.message))
            if read != event:
                raise miss(f"the reply in {step} is read otherwise now: {differing(encoded(event), encoded(read))}")
            if self.stream:
                self.tell(TextDelta(event.parsed.final or event.parsed.content or event.message.content))


def encoded(event: e.Event) -> str:
    """Its record, for a person."""
    return f"{event.type} {encode(event)[0].decode()}"


def _is_cancelled(event: e.Event | None) -> bool:
    return isinstance(event, e.RunEnded) and isinstance(event.ending, Cancelled)


def _fork_at(tape: Tape, at: int) -> e.RunForked | None:
    """The record with which it left its parent, if it did so there."""
    event = tape.events[at] if at < len(tape.events) else None
    return event if isinstance(event, e.RunForked) else None


def _models_after(state: State, taken_up: e.RunStarted | e.RunResumed | e.RunForked | None) -> str:
    """Who plays which role once a run is taken up so, in words."""
    models = {role: speaker.model for role, speaker in state.speakers.items()}
    models |= {role: speaker.model for role, speaker in taken_up.speakers.items()} if taken_up else {}
    return " and ".join(f"{role} {model}" for role, model in sorted(models.items()))


def _played_by(started: e.RunStarted) -> str:
    return f"reasoner {started.reasoner!r} and {_models_after(EMPTY, started)}"


def _started(tape: Tape) -> e.RunStarted:
    return next(event for event in reversed(tape.events) if isinstance(event, e.RunStarted))  # every run begins with it


def _title(tape: Tape) -> str:
    return f"the run of {_short(_started(tape).task)}"


def _short(task: Task) -> str:
    return f"“{shortened(' '.join(task.text.split()), _EXCERPT)}”"


def first_difference(was: ModelRequest, now: ModelRequest) -> str:
    """Where a request differs from another in what the model is shown, in a few words; "" where nowhere."""
    if was.system != now.system:
        return f"the system prompt {differing(was.system, now.system)}"
    for number, (one, other) in enumerate(zip_longest(was.messages, now.messages), 1):
        if one != other:
            return f"message {number} {differing(_words(one), _words(other))}"
    for tool, other in zip_longest(was.tools.tools, now.tools.tools):
        if tool != other:
            name = tool.name if tool else other.name if other else ""
            return f"the tool {name} {differing(_declared(tool), _declared(other))}"
    for part in ("mode", "schema", "stop"):
        one, other = getattr(was, part), getattr(now, part)
        if one != other:
            return f"its {part} {differing(json_text(one), json_text(other))}"
    return ""


def differing(was: str, now: str) -> str:
    """Both texts from a little before the place where they part."""
    parted = next((at for at, (one, other) in enumerate(zip(was, now, strict=False)) if one != other), None)
    at = max(0, (min(len(was), len(now)) if parted is None else parted) - _EXCERPT // 3)
    before = "…" if at else ""
    return f"was {before}{was[at : at + _EXCERPT]!r}, is {before}{now[at : at + _EXCERPT]!r}"


def _declared(tool: ToolSpec | None) -> str:
    return json_text([tool.name, tool.description, tool.parameters]) if tool else "not offered"


def _words(message: ModelMessage | None) -> str:
    if message is None:
        return "nothing"
    asked = "".join(f" {call.name}({json_text(call.arguments)})" for call in message.calls)
    return f"{message.role}: {message.content}{asked}"
