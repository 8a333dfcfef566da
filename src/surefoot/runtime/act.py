"""Run a tool that was allowed, and put what it gave into a form that fits the journal.

Foreign code is awaited for a limited time (`within`), and left behind where it does not let itself be stopped. It runs
in a task of its own, because one that swallows its cancellation would hold whoever awaits it for ever: the run, and
whoever wants to stop that. Whatever is raised inside stays inside, since a task that ends with `KeyboardInterrupt` or
`SystemExit` takes the whole loop along. The loop does not know that task: `asyncio.run` cancels and awaits all that it
knows before it ends, and here whoever awaits the work does so, for a limited time.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import partial
from hashlib import sha256
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol, cast, get_args

from surefoot.core.loop.fold import PROBE
from surefoot.core.state.roles import seconds_left, window_of
from surefoot.core.state.state import Call, State
from surefoot.core.state.trail import outcome
from surefoot.core.state.window import READ_RESULT
from surefoot.core.text import clean
from surefoot.core.view.turns import step_in_words
from surefoot.runtime.world import keep_files
from surefoot.tools.call import Raised, after_left, as_exception, failure, goes_on, is_stopping, retry
from surefoot.tools.function import FunctionTool, innermost
from surefoot.types.attachments import Attachment
from surefoot.types.errors import JournalError
from surefoot.types.events import CallEnded, DoubtSettled, Event
from surefoot.types.messages import ToolProgress
from surefoot.types.ports import ServiceKey, Tool, ToolCallContext
from surefoot.types.settings import is_number
from surefoot.types.tools import ResultKind, ToolResult

if TYPE_CHECKING:
    from surefoot.runtime.world import World


class Line:
    """A `CallLine`, open as long as its context lasts. A thread may hold it for longer."""

    __slots__ = ("_is_waiting", "_loop", "_state", "_world")

    def __init__(self, world: World) -> None:
        self._world = world
        self._is_waiting = False
        self._loop = asyncio.get_running_loop()
        self._state: Literal["open", "ended", "cancelled"] = "open"

    def __enter__(self) -> Line:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        given_up = isinstance(error, (TimeoutError, asyncio.CancelledError))
        self._state = "cancelled" if given_up else "ended"

    @property
    def cancelled(self) -> bool:
        return self._state == "cancelled"

    @property
    def ended_waiting(self) -> bool:
        """Whether the call was given up while one of its services was being made."""
        return self._is_waiting

    def tell(self, signal: ToolProgress) -> None:
        """Show it to whoever watches: at once when asked on the loop, as soon as it is free when asked in a thread."""
        if self._world.watch is None or self._state != "open":
            return
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:  # a thread has none
            is_here = False
        if is_here:
            self._world.tell(signal)
            return

        def tell() -> None:
            if self._state == "open":
                self._world.tell(signal)

        with suppress(RuntimeError):  # the loop is closed, so nobody watches any more
            self._loop.call_soon_threadsafe(tell)

    async def service(self, key: ServiceKey) -> object:
        self._is_waiting = True
        service = await self._world.services.get(key)
        self._is_waiting = False
        return service


class Delegating(Protocol):
    """A tool whose spec says that it `delegates`: each call of it is a run of its own."""

    async def delegate(self, world: World, tool: Tool, call: Call, state: State) -> Sequence[Event]:
        """What came of that run: how the call ended, or that it waits. `tool` is this one, in its wrappers.

        Raises `JournalError`, as a run does.
        """
        ...


_KINDS = frozenset(get_args(ResultKind))
_PLAIN = frozenset({str, int, float, bool, type(None)})


async def act(world: World, call_id: str, state: State) -> Sequence[Event]:
    """The result of one call. No event when nobody knows whether one ran that must not be repeated: it is in doubt."""
    call = state.call(call_id)
    assert call is not None  # noqa: S101  # the move was made from this state
    assert call.spec is not None  # noqa: S101  # only calls of known tools are allowed
    if call.name == READ_RESULT:
        return (CallEnded(call_id, await _page(world, call, state), world.elapsed_s),)
    tool = world.tools.get(call.name)
    if tool is None:
        missing = f"the tool {call.name!r} is part of this run but was not given to the agent that goes on with it"
        return (CallEnded(call_id, ToolResult(missing, "error", source="surefoot"), world.elapsed_s),)
    own = innermost(tool)
    if call.spec.delegates:
        return await cast("Delegating", own).delegate(world, tool, call, state)
    limit_s, line = _limit_s(world, call, state), Line(world)
    context, is_over = context_of(state, call, limit_s, line), False

    def once() -> Awaitable[ToolResult]:
        return tool.call(own_arguments(call), context)

    is_function = isinstance(own, FunctionTool)  # others know best themselves when to try again, and if they have begun
    may_retry = is_function and call.spec.may_repeat and not (state.scope and _is_planned(state))
    work: Callable[[], Awaitable[object]] = partial(retry, once, limit_s) if may_retry else once
    key = context.idempotency_key
    try:
        with line:
            result = await within(after_left(key, work), limit_s, state.config.tool_grace_s, call.name, key)
    except TimeoutError as late:
        has_begun = not (is_function and line.ended_waiting)
        is_doubtful = has_begun and not call.spec.may_repeat
        if is_doubtful and not state.scope:
            return ()
        why = "" if has_begun else ": one of its services was not ready, so it did not run"
        kind: ResultKind = "in_doubt" if is_doubtful else "timeout"  # other steps go on, so it has to be on record
        left_s = seconds_left(state) if state.scope else None
        has_had_all = left_s is not None and left_s <= limit_s  # cut off with its run, a step has not failed (R17)
        is_over = isinstance(late, Late) and kind == "timeout" and has_had_all
        if isinstance(late, Late) and late.is_left:
            why = "; it did not stop when it was cancelled, and was left running"
        if is_over:
            kind, why = "cancelled", ": the run's time is over"
        result = ToolResult(f"no result within {limit_s:g} s{why}", kind, infrastructure=True)
    except BaseException as error:  # a tool may be anybody's code: the model is told
        if is_stopping(error):
            raise
        result = failed(error)
    finally:
        if is_function and (threads := own.threads(context)):
            world.services.used_by(threads)  # a thread cannot be stopped, so its services stay open until it is done
    is_doubtful = isinstance(result, ToolResult) and result.kind == "in_doubt" and not call.spec.may_repeat
    if is_doubtful and not state.scope:
        return ()  # as where it ran out of time: a person decides
    elapsed_s = max(world.elapsed_s, state.elapsed_s + limit_s) if is_over else world.elapsed_s
    return (CallEnded(call_id, await fit_result(world, result, call, state), elapsed_s),)


def own_arguments(call: Call) -> Mapping[str, object]:
    """The arguments for one try, which a tool may keep and change: what was judged stays as it was."""
    given = dict(call.arguments)  # the tool may change what it is given
    return given if _PLAIN.issuperset(map(type, given.values())) else deepcopy(given)


def failed(error: BaseException) -> ToolResult:
    """What a tool raised, for the model; also when the error cannot be put in words, for it is anybody's code too."""
    if isinstance(error, asyncio.CancelledError):
        return ToolResult("the tool was cancelled from inside", "error")
    try:
        return failure(as_exception(error))
    except Exception:  # noqa: BLE001  # an attribute of it
        return ToolResult(type(error).__name__, "error")


def _is_planned(state: State) -> bool:
    """Whether the call of a scope is a step of a plan, which makes it again itself (spec/planning.md, R4)."""
    return state.running_step is not None and state.running_step.kind == "tool"


def _limit_s(world: World, call: Call, state: State) -> float:
    """How long a call may take. What may be repeated is broken off when the run's time is over; the rest is not."""
    assert call.spec is not None  # noqa: S101  # only calls of known tools are allowed
    limit_s = call.spec.timeout_s or state.config.tool_timeout_s
    if state.found is not None and state.hydrated is None and state.config.pre_hydration is not None:
        fetching = state.config.pre_hydration  # all of it together has its own limit, beside that of each reference
        left_s = state.found.elapsed_s + fetching.timeout - world.elapsed_s
        limit_s = min(limit_s, fetching.reference_timeout, max(0.0, left_s))
    if state.config.budget.max_seconds is not None and (call.spec.may_repeat or state.scope):
        left_s = seconds_left(state)
        limit_s = limit_s if left_s is None else min(limit_s, left_s)
    return limit_s


async def probe(world: World, call_id: str, state: State) -> Sequence[Event]:
    """Whether an interrupted call took effect, as its tool tells. What a probe cannot tell is left to a person."""
    call = state.call(call_id)
    tool = world.tools.get(call.name) if call else None
    if call is None or tool is None:
        return (DoubtSettled(call_id, "unknown", PROBE, elapsed_s=world.elapsed_s),)
    limit_s, line = state.config.tool_timeout_s, Line(world)
    context = context_of(state, call, limit_s, line)
    try:
        with line:
            asked = after_left(context.idempotency_key, partial(tool.probe, own_arguments(call), context))
            found = await within(asked, limit_s, state.config.tool_grace_s, f"the probe of {call.name}")
    except BaseException as error:  # a probe is the user's code: whatever it raises, it could not tell
        if is_stopping(error):
            raise
        return (DoubtSettled(call_id, "unknown", PROBE, elapsed_s=world.elapsed_s),)
    finally:
        if isinstance(own := innermost(tool), FunctionTool):
            world.services.used_by(own.threads(context))
    if found is None:
        return (DoubtSettled(call_id, "not_done", PROBE, elapsed_s=world.elapsed_s),)
    result = await fit_result(world, found, call, state)
    return (DoubtSettled(call_id, "done", PROBE, result, world.elapsed_s),)


def call_key(state: State, call: Call) -> str:
    """What a call is known by to whoever makes it, over all attempts at it: the idempotency key of its context."""
    named = call.id
    if state.scope and _is_planned(state):  # the same call of a step keeps its key over the attempts
        named = f"{state.scope.rpartition('.')[0]}\0{call.key}"
    return sha256(f"{call.origin or state.run_id}\0{named}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def context_of(state: State, call: Call, limit_s: float, line: Line) -> ToolCallContext:
    """What a tool may know of its call."""
    job, operator = (state.task.job or state.run_id, state.task.operator) if state.task else (state.run_id, "main")
    if state.scope and _is_planned(state):
        operator = state.scope.rpartition(".")[0]
    key = call_key(state, call)
    left_s = None if math.isinf(limit_s) else limit_s
    return ToolCallContext(state.run_id, call.id, key, max(1, call.attempts), job, operator, left_s, line)


async def fit_result(world: World, given: object, call: Call, state: State, *, is_whole: bool = False) -> ToolResult:
    """The result as the journal keeps it: a text over the limit becomes a blob, and the model sees its beginning.

    With `is_whole` it is kept whole: it is the answer of the run.
    """
    if not isinstance(given, ToolResult) or not isinstance(given.content, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # anybody's code
        given = ToolResult(f"the tool gave a {type(given).__name__} in place of a ToolResult with text", "error")
    limit = state.config.tool_result_chars
    content = clean(given.content)
    size = len(content)
    kind = given.kind if given.kind in _KINDS else "error"
    source = given.source if given.source and isinstance(given.source, str) else call.name  # pyright: ignore[reportUnnecessaryIsInstance]  # the same
    trust = "trusted" if given.trust == "trusted" else "untrusted"
    error = clean(str(given.error)) if given.error else ""
    wait_s = given.retry_after_s if given.retry_after_s is not None and is_number(given.retry_after_s) else None
    files: tuple[Attachment, ...] = ()
    if given.files:
        files = tuple(one for one in given.files if isinstance(one, Attachment) and one.digest and one.is_at_hand)  # pyright: ignore[reportUnnecessaryIsInstance]  # the same
        await keep_files(world.journal, files)
    infrastructure, structured = bool(given.infrastructure), given.structured is True
    made = ToolResult(content, kind, size, None, source, trust, infrastructure, structured, "", error, wait_s, files)
    if size <= limit or (is_whole and not made.is_error):
        return made
    digest = await world.journal.put_blob(content.encode())
    return replace(made, content=content[:limit], blob=digest, structured=False, outcome=outcome(content).hex())


async def _page(world: World, call: Call, state: State) -> ToolResult:
    """A piece of an earlier result, whether it was cut, folded or neither; no larger than the window bears."""
    wanted, start = str(call.arguments.get("call_id", "")), call.arguments.get("start", 0)
    earlier, said = state.call(wanted), step_in_words(state, wanted)
    result = earlier.result if earlier is not None else ToolResult(said, source="conversation") if said else None
    if result is None or not isinstance(start, int):
        return ToolResult(f"no result of a call {wanted!r} is kept", "error", source="surefoot")
    text = result.content
    if result.blob is not None:
        try:
            text = (await world.journal.get_blob(result.blob)).decode()
        except JournalError as error:
            return ToolResult(str(error), "error", source="surefoot")
    window = window_of(state, state.turn.role) if state.turn else None
    limit = state.config.tool_result_chars
    end = min(len(text), start + (limit if window is None else min(limit, window // 2)))
    piece = text[start:end]
    more = f"\n[characters {start} to {end} of {len(text)}]"
    files = result.files if start == 0 else ()
    return ToolResult(piece + more, size=len(piece), source=result.source, trust=result.trust, files=files)


_LOG = logging.getLogger("surefoot")


class Late(TimeoutError):
    """No result in time. `is_left`: the code still runs, and nobody waits for it any more."""

    def __init__(self, *, is_left: bool) -> None:
        super().__init__()
        self.is_left = is_left


async def within(
    work: Callable[[], Awaitable[object]], limit_s: float, grace_s: float, name: str, key: str = ""
) -> object:
    """What the work gives; raises what it raises, and `Late` when it takes longer than `limit_s`.

    It is cancelled then, as when this task is, and has `grace_s` seconds to tidy up; a result that comes in that time
    counts. One that had ended when this task was cancelled is given all the same. Cancelled once more, this task leaves
    the work at once. What is left counts as an attempt at the call of that `key`. `name` is for the log.
    """
    loop = asyncio.get_running_loop()
    made, since_s = _Made(), time.monotonic()
    task = asyncio.Task(made.by(work), loop=loop)
    asyncio._unregister_task(task)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # told in "Extending asyncio"
    timer: asyncio.TimerHandle | None = None
    try:
        await asyncio.sleep(0)  # the task has its first turn, in which most tools end
        if made.outcome is _RUNNING:
            made.ended = loop.create_future()
            timer = loop.call_later(since_s + limit_s - time.monotonic(), made.stop, task, grace_s)
            await made.ended
    except asyncio.CancelledError:
        if made.outcome is _RUNNING:  # this task is cancelled, and the work with it
            made.ended = loop.create_future()
            made.stop(task, grace_s)
            try:
                await made.ended
            finally:
                if made.outcome in (_RUNNING, _LEFT):
                    _leave(task, name, key)
            raise
    finally:
        if timer is not None:
            timer.cancel()
        if made.outcome is _STOPPED and task.done() and not task.cancelled():
            task.exception()  # an interrupt inside of it has left the loop already; nobody has to be told again
    outcome = made.outcome
    if outcome is _LEFT:
        _leave(task, name, key)
        raise Late(is_left=True)
    if outcome is _STOPPED:
        raise Late(is_left=False) if made.is_stopped else asyncio.CancelledError
    if isinstance(outcome, Raised):
        raise outcome.error
    return outcome


_RUNNING, _LEFT, _STOPPED = object(), object(), object()
"""It has not ended; it did not end in its grace either; it let itself be cancelled."""


class _Made:
    """How some work ends: known in the same turn of the loop, so that no result waits longer than it has to."""

    __slots__ = ("ended", "is_stopped", "outcome")

    def __init__(self) -> None:
        self.ended: asyncio.Future[None] | None = None
        self.outcome: object = _RUNNING
        self.is_stopped = False

    async def by(self, work: Callable[[], Awaitable[object]]) -> object:
        outcome: object = _STOPPED
        try:
            outcome = await work()
        except BaseException as error:  # it goes on as a value
            if is_stopping(error):
                raise
            outcome = Raised(error)
        finally:
            self.over(outcome)
        return outcome

    def stop(self, task: asyncio.Task[object], grace_s: float) -> None:
        self.is_stopped = True
        task.cancel()
        task.get_loop().call_later(grace_s, self.over, _LEFT)

    def over(self, outcome: object) -> None:
        self.outcome = outcome
        if self.ended is not None and not self.ended.done():
            self.ended.set_result(None)


def _leave(task: asyncio.Task[object], name: str, key: str) -> None:
    _LOG.warning("%s did not stop when it was cancelled: it is left running", name)
    task._log_destroy_pending = False  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage, reportUnknownMemberType]  # it may outlive its loop
    if key:
        goes_on(key, task)
