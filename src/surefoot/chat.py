"""A conversation: a chain of runs, each of which shares the records of the one that it follows. Nothing is copied."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypedDict, Unpack

from surefoot.core.loop.fold import fold
from surefoot.core.state.state import EMPTY, State
from surefoot.run import Out, Out_co, Run, Stream, id_of, stream_of
from surefoot.runtime.world import Watch
from surefoot.types.attachments import Attached
from surefoot.types.errors import LeaseLost, RunBusy, RunExists, UsageError
from surefoot.types.ports import JournalStore, ServiceKey
from surefoot.types.task import Task

MOST_TURNS = 9_999
_NUMBER = re.compile(r"-(\d{4})\Z")


Starts = Callable[..., Coroutine[object, object, Run[Out]]]
"""`Agent.run` and `Agent.resume`, whose options are passed on as they are."""


@dataclass(frozen=True)
class Chat(Generic[Out_co]):
    """A conversation with an agent, made by `Agent.chat`; one with a known id continues where it stopped.

    Its runs are called "ID-0001", "ID-0002", …: each is a run like any other, to be shown, forked, replayed or resumed.
    """

    id: str
    _run: Starts[Out_co] = field(repr=False)
    _resume: Starts[Out_co] = field(repr=False)
    _sync: Callable[[Coroutine[object, object, Run[Out_co]]], Run[Out_co]] = field(repr=False)
    _store: JournalStore = field(repr=False)
    _after: History | None = field(default=None, repr=False)
    _read: Callable[[str], Out_co] | None = field(default=None, repr=False)

    async def send(
        self, task: str | Task, *, watch: Watch | None = None, stream: bool = False, **options: Unpack[TurnOptions]
    ) -> Run[Out_co]:
        """Run what the user says next; takes `attachments` and `services` as `Agent.run` does.

        Raises `UsageError` while the turn before it has not ended: it waits for a person (`Agent.approve`, `refuse`),
        was interrupted (`resume`), or began at the same time.
        """
        number, last = await self._last()
        history = self._after if last is None else last.run_id
        run_id = self._id(number + 1)
        try:
            return await self._run(task, run_id=run_id, history=history, watch=watch, stream=stream, **options)
        except LeaseLost:  # a turn of its own, which another has taken up
            raise
        except (RunBusy, RunExists) as error:  # somebody was quicker
            raise UsageError(f"chat {self.id!r} has just begun another turn; send this once it ends") from error

    def send_sync(self, task: str | Task, *, watch: Watch | None = None, **options: Unpack[TurnOptions]) -> Run[Out_co]:
        """`send` for scripts."""
        return self._sync(self.send(task, watch=watch, **options))

    def stream(self, task: str | Task, **options: Unpack[TurnOptions]) -> Stream[Out_co]:
        """`send`, with events and signals as they happen; the `Run` comes last."""
        return stream_of(lambda watch: self.send(task, watch=watch, stream=True, **options))

    async def resume(self, **options: Any) -> Run[Out_co]:  # Any: those of `Agent.resume`
        """Go on with the last turn, which was interrupted or whose questions were answered; takes `resume`'s options.

        Raises `UsageError` for a conversation in which nothing was said.
        """
        return await self._resume((await self.last()).id, **options)

    async def last(self) -> Run[Out_co]:
        """The newest turn as it stands. Raises `UsageError` for a conversation in which nothing was said."""
        _, state = await self._last()
        if state is None:
            raise UsageError(f"nothing has been said in chat {self.id!r} yet; start it with `send`")
        return Run.of(state, read=self._read)

    def _id(self, number: int) -> str:
        return f"{self.id}-{number:04}"

    async def _last(self) -> tuple[int, State | None]:
        """The number of the newest turn, from 1, and its state; one that was never begun does not count."""
        known = await self._store.beginning(f"{self.id}-", MOST_TURNS)
        numbers = sorted(int(m[1]) for name in known if (m := _NUMBER.search(name)) and name == self._id(int(m[1])))
        for number in reversed(numbers):
            records, _ = await self._store.read_recorded(self._id(number))
            state = fold(record.event for record in records)
            if state.run_id == self._id(number):
                return number, state
        return 0, None


History = Run | Chat | str
"""What a run may follow: a run that has ended, its id, or a conversation."""


def is_next_turn(run_id: str, before: str) -> bool:
    """Whether a run is the turn of a chat that comes right after another."""
    one, other = _NUMBER.search(before), _NUMBER.search(run_id)
    if one is None or other is None or before[: one.start()] != run_id[: other.start()]:
        return False
    return int(other[1]) == int(one[1]) + 1


async def follow(store: JournalStore, history: History | None, run_id: str) -> tuple[State, str]:
    """The state that a run follows, whose records it shares from here on, and the hash of the last of these.

    Raises `UsageError` for a run that has not ended, or is not in this journal.
    """
    if history is None:
        return EMPTY, ""
    of = (await history.last()).id if isinstance(history, Chat) else id_of(history, "history")
    if of == run_id:
        raise UsageError(f"run {of!r} cannot follow itself; give another run_id, or none")
    records, wrong = await store.read_recorded(of)
    state = fold(record.event for record in records)
    if wrong or state.task is None:
        raise UsageError(f"run {of!r} cannot be followed: {wrong or 'it has no records'}")
    if state.ending is None:
        status = Run.of(state).status
        if status == "interrupted" and (await store.summary(of)).status == "running":
            raise UsageError(f"run {of!r} is under way; wait until it has ended")
        raise UsageError(f"run {of!r} has not ended (it is {status}): answer its questions, resume or cancel it first")
    try:
        await store.fork(of, len(records), run_id)
    except UsageError:  # whoever forked it may have died before the first record of its own
        made, _ = await store.read_recorded(run_id)
        if len(made) != len(records) or made[-1].hash != records[-1].hash:
            raise
    return state, records[-1].hash


class TurnOptions(TypedDict, total=False):
    """What comes with one task, alone or in a conversation."""

    attachments: Attached
    services: Mapping[ServiceKey, object] | None


class RunOptions(TurnOptions, total=False):
    """What `Agent.run` takes beside the task."""

    run_id: str
    history: History | None
    watch: Watch | None
    stream: bool
