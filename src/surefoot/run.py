"""The handle: `Run` says what came of a run, as far as it has gone."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, cast

from surefoot.core.loop.fold import fold
from surefoot.core.loop.inbox import asked_in, digest_of_call, due_at
from surefoot.core.loop.moves import next_moves, standing
from surefoot.core.parse.marks import Deliverable, parts_of
from surefoot.core.plan.accept import waiting
from surefoot.core.plan.child import owners
from surefoot.core.state.roles import rounds
from surefoot.core.state.state import Call, State
from surefoot.core.state.summary import is_word
from surefoot.types.dataclass import dataclass, field
from surefoot.types.errors import ConfigError, JournalError, SurefootError
from surefoot.types.events import Event
from surefoot.types.inner import MADE_BEFORE, InnerQuestion, InnerRun, Refused
from surefoot.types.messages import Signal, Usage, models_line
from surefoot.types.outcomes import Ask, Cancelled, Completed, CompletedPartial, Status, Stopped
from surefoot.types.ports import JournalStore, RunJournal, Standing

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Out = TypeVar("Out", default=Any)
    Out_co = TypeVar("Out_co", default=Any, covariant=True)
else:  # a default is for type checkers alone
    from typing import TypeVar

    Out, Out_co = TypeVar("Out"), TypeVar("Out_co", covariant=True)

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True)  # with slots, `Run[Trip](…)` cannot be made
class Run(Generic[Out_co]):
    """The result of a run, as far as it has gone.

    `answer` is the answer, or "" when there is none. `status` is the ending's name, or `paused`, `ready` or
    `interrupted`; `reason` says why, `detail` what to do about it. `waiting` are the calls that wait for a person,
    limits of progress, and a plan that is to be signed, in the form of calls; they are answered in any order. Those
    of an agent that was asked are among them, as "CALL/ITS-CALL".
    `elapsed_s`: seconds in which it was driven. `models` are by role, `rounds` replies of the role that leads.
    """

    id: str
    status: Status
    answer: str = ""
    reason: str = ""
    detail: str = ""
    usage: Usage = Usage()
    requests: int = 0
    elapsed_s: float = 0.0
    models: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    rounds: int = 0
    calls: int = 0
    waiting: tuple[Call, ...] = field(default=(), hash=False)
    _read: Callable[[str], Out_co] | None = field(default=None, repr=False, compare=False)

    @staticmethod
    def of(state: State, last: Event | None = None, read: Callable[[str], Out] | None = None) -> Run[Out]:
        """The run that a state tells of. `last` is its newest event: after a person's word the run is `ready`.

        `read` makes the value of an answer.
        """
        ending, asked, answer, detail = state.ending, (), "", ""
        if ending is None:
            asked = waiting(state)
            reason = standing(state) if not next_moves(state) else ""
            is_ready = not reason and last is not None and is_word(last)
            status: Status = "paused" if reason else "ready" if is_ready else "interrupted"
        else:
            status, reason, detail = ending.kind, getattr(ending, "reason", ""), getattr(ending, "detail", "")
            if isinstance(ending, (Completed, CompletedPartial, Stopped)):
                answer = ending.answer
            elif isinstance(ending, Cancelled):
                reason = ending.by
                calls = (call for owner in owners(state) for call in owner.state.calls)
                cut = [f"{one.id} {one.name}" for one in calls if one.result and one.result.kind == "in_doubt"]
                detail = f"broken off, and nobody knows whether it took effect: {', '.join(cut)}" if cut else ""
        return Run(
            state.run_id,
            status,
            answer,
            reason,
            detail,
            state.usage,
            state.requests,
            state.elapsed_s,
            {role: speaker.model for role, speaker in state.speakers.items()},
            rounds(state),
            state.calls_made,
            asked,
            read,
        )

    @property
    def output(self) -> Out_co:
        """The answer as a value of the type that was asked for; the text itself where none was.

        Raises `NoAnswer` where the run gave none.
        """
        if self.status not in ("completed", "completed_partial"):
            raise NoAnswer(self)
        if self._read is None:
            return cast("Out_co", self.answer)  # of an agent without a type
        try:
            return self._read(self.answer)
        except ValueError as error:
            raise NoAnswer(self, f"the answer of run {self.id} does not fit this agent's output: {error}") from error

    @property
    def model(self) -> str:
        """The models in one line."""
        return models_line(self.models)

    @property
    def questions(self) -> tuple[tuple[Call, ...], ...]:
        """What `waiting` asks: calls of a run with one effect and reason are one question, answered by row."""
        found: dict[object, list[Call]] = {}
        for call in self.waiting:
            is_asked = isinstance(call.decision, Ask) and call.spec is not None and not call.is_in_doubt
            within = call.id.rpartition("/")[0]
            key = (within, call.spec and call.spec.effect, call.rule, call.decision) if is_asked else call.id
            found.setdefault(key, []).append(call)
        return tuple(map(tuple, found.values()))

    @property
    def deliverable(self) -> Deliverable:
        """The answer in its four parts, as `mono` and `dual` deliver it; of plain words all is the final output."""
        return parts_of(self.answer)


Stream = AsyncIterator[Event | Signal | Run[Out]]
"""What happens in a run as it happens, and at last the `Run`."""


async def stream_of(start: Callable[[Callable[[S], None]], Coroutine[object, object, T]]) -> AsyncGenerator[S | T]:
    """What is seen of something that is started with a watch, as it happens; what it gives comes last.

    Closing it cancels that. Raises what it raises, once all that was seen before is given.
    """
    seen: asyncio.Queue[S | None] = asyncio.Queue()
    running = asyncio.ensure_future(start(seen.put_nowait))
    running.add_done_callback(lambda _: seen.put_nowait(None))
    try:
        while (item := await seen.get()) is not None:
            yield item
        yield running.result()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


class NoAnswer(SurefootError):
    """A run ended or paused without an answer. `run` says how far it got, and why."""

    def __init__(self, run: Run, message: str = "") -> None:
        reason = f" ({run.reason})" if run.reason else ""
        detail = f": {run.detail}" if run.detail else ""
        calls = ", ".join(f"{call.id} {call.name}" for call in run.waiting)
        waits = f", waiting for a person's decision on {calls} (`approve`, `refuse` or `settle`)" if calls else ""
        why = f"run {run.id} has no answer: {run.status}{reason}{detail}{waits}. Continue it with "
        remedy = f"`await agent.resume({run.id!r})`, or from a shell with `surefoot resume {run.id}`"
        super().__init__(message or why + remedy)
        self.run = run


class Opened:
    """The right to drive a run, given back whatever happens, with how the run was left.

    One that was not left stands as it did: whoever takes it up next finds out when its question is due.
    """

    def __init__(self, journal: RunJournal, store: JournalStore) -> None:
        self.journal = journal
        self._store = store
        self._standing: Standing | None = None

    def leave(self, run: Run[Out]) -> Run[Out]:
        """The run; how it stands goes to the journal with the right to drive."""
        self._standing = "" if run.status != "paused" else "approval" if run.reason == "approval" else "in_doubt"
        return run

    async def __aenter__(self) -> Opened:
        return self

    async def __aexit__(self, *_: object) -> None:
        wake_at = None if self._standing is not None else 0.0
        try:
            if self._standing == "approval":  # a question that nobody answers in time is a no, also if nobody asks
                with suppress(JournalError):  # it is given back all the same
                    records = (await self._store.read_recorded(self.journal.run_id))[0]
                    wake_at = due_at(fold(record.event for record in records), asked_in(records))
        except asyncio.CancelledError:
            self._standing, wake_at = None, 0.0
            raise
        finally:
            await self.journal.release(self._standing or "", wake_at)


def id_of(run: Run | str, name: str = "run_id") -> str:
    """The id of a run that is given itself, or by its id. Raises `UsageError` for anything else."""
    found = run.id if isinstance(run, Run) else run
    if not isinstance(found, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
        raise ConfigError(name, found, "give a run, or the id of one")
    return found


def new_run_id() -> str:
    """A new name for a run: 12 letters and digits."""
    return os.urandom(6).hex()


async def state_of(store: JournalStore, run_id: str) -> State:
    """A run as its records tell it. Raises `JournalError` for one that is damaged."""
    records, wrong = await store.read_recorded(run_id)
    if wrong:
        raise JournalError(f"run {run_id} is damaged: {wrong}")
    return fold(record.event for record in records)


def inner_run(inner: State, call: Call) -> InnerRun:
    """How the run of an agent stands, since the call that asks it was last told of it."""
    before = call.inner or InnerRun(inner.run_id)
    begun = inner.gate.started if inner.gate is not None else ()
    return InnerRun(
        inner.run_id,
        tuple(
            InnerQuestion(q.id, q.name, q.arguments, q.spec, q.decision, q.rule, q.attempts, q.doubt, digest_of_call(q))
            for q in Run.of(inner).waiting
        ),
        inner.usage.since(before.usage),
        inner.requests - before.requests,
        tuple(one for one in begun if not one.call_id.startswith(MADE_BEFORE)),
        inner.gate.noes if inner.gate is not None else Refused(),
    )
