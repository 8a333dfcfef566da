"""A call of a Python callable: on the loop or in a thread, made again when it may be, and its exceptions as results.

Threads are our own: the loop's default pool has few and also resolves host names, so a function that hangs would hold
up the process. A thread cannot be stopped, nor can a task that swallows its cancellation: when its call ran out of time
or was cancelled it goes on, and may take effect much later. Whoever asks about that call, or makes it again, is given
the end of the first attempt. A second one beside it could pay twice, and a probe would say "not done" too early.
"""

from __future__ import annotations

import asyncio
import contextlib
import dis
import errno
import functools
import inspect
import logging
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from email.message import Message
from functools import partial
from typing import Any, cast

from surefoot.types.tools import ToolResult

_LOG = logging.getLogger("surefoot")

MOST_THREADS = 128  # sync tools that run at once in this process; further ones wait
LONGEST_ERROR = 2_000  # characters of an exception's type and message that a model gets to read

MOST_RETRIES = 2
FIRST_WAIT_S = 0.1  # seconds before the first retry, and half of those before the second

_NETWORK = frozenset(
    {*(errno.ECONNREFUSED, errno.ECONNRESET, errno.EHOSTUNREACH), *(errno.ENETDOWN, errno.ENETUNREACH, errno.ETIMEDOUT)}
)
_OVERLOADED = frozenset({408, 425, 429, *range(500, 600)})  # HTTP statuses of which the same call may succeed later
_TRANSIENT = frozenset({408, 425, 429, 502, 503, 504})


class ToolFailed(Exception):
    """Raise this in a tool to tell the model in your own words what went wrong: the message is the whole result.

    `infrastructure` says that the failure is not the tool's own, so that the same call may work later. `code` is a
    stable word for it, by which a plan tells whether a step fails in the same way again; "CLASS:CODE" names a class too
    (`types/plan.py: StepErrorClass`).
    """

    def __init__(self, message: str, *, infrastructure: bool = False, code: str = "") -> None:
        super().__init__(message)
        self.infrastructure = infrastructure
        self.code = code


class OutcomeUnknown(Exception):
    """Raise it in a tool when nobody can know whether the call took effect: it is in doubt until a person says so."""


@dataclass(frozen=True, slots=True)
class Raised:
    """What foreign code has raised, as a value."""

    error: BaseException


def is_async(fn: Callable[..., object]) -> bool:
    """Whether calling `fn` gives a coroutine at once, so that it needs no thread."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    inner = inspect.unwrap(fn)
    return any(inspect.iscoroutinefunction(each) for each in (fn, inner, getattr(inner, "__call__", None)))  # noqa: B004  # the method itself is asked


async def call_function(fn: Callable[..., object], keywords: Mapping[str, object], *, on_loop: bool) -> object:
    """What `fn(**keywords)` gives, awaited if it can be; on the loop, or in a thread with this task's context.

    Raises what `fn` raises. When cancelled, a thread cannot be stopped: it ends by itself and its result is lost.
    """
    value = fn(**keywords) if on_loop else await asyncio.wrap_future(start_in_thread(fn, keywords))
    return await value_of(value)


async def called_within(fn: Callable[..., object], keywords: Mapping[str, object], name: str, limit_s: float) -> object:
    """What an async function gives. One that blocks the loop cannot be cut off at its limit, so the log names it."""
    since_s, task = time.monotonic(), asyncio.current_task()  # asked now: it may outlive its loop
    try:
        value = fn(**keywords)
        return await value if inspect.isawaitable(value) else value
    finally:
        took_s = time.monotonic() - since_s
        if took_s > limit_s and task is not None and not task.cancelling():  # else it would have been cancelled by now
            _LOG.warning(
                "%s held up the event loop for %.1f s, past its limit of %g s, and with it all runs of this process: "
                "make it a plain `def`, which runs in a thread, or await what takes long",
                *(name, took_s, limit_s),
            )


def start_in_thread(fn: Callable[..., object], keywords: Mapping[str, object]) -> Future[object]:
    """Let a thread run `fn(**keywords)` with this task's context. `value_of` opens what the future holds in the end."""

    def outcome() -> object:
        """A future cannot carry `StopIteration`: it would wait for ever. So errors travel as values."""
        try:
            return fn(**keywords)
        except BaseException as error:  # noqa: BLE001  # raised again on the other side; signals come to the main thread alone
            return Raised(as_exception(error))

    return _threads(os.getpid()).submit(copy_context().run, outcome)


async def retry(
    call: Callable[[], Awaitable[ToolResult]],
    limit_s: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> ToolResult:
    """What a call gives that may be repeated: after a failure of infrastructure it is made again, at most twice.

    Before that it waits as long as the failure asks for, else a little and then twice as long. Where this would take it
    beyond `limit_s` seconds from the start, the failure stands. Source: spec/primitives.md, 2.5.
    """
    until = clock() + limit_s
    for tried in range(MOST_RETRIES):
        result = await call()
        wait_s = FIRST_WAIT_S * 2**tried if result.retry_after_s is None else result.retry_after_s
        if not result.infrastructure or clock() + wait_s >= until:
            return result
        await sleep(wait_s)
    return await call()


async def value_of(outcome: object) -> object:
    """What a function gave, awaited if it can be; raises what it raised in its thread."""
    if isinstance(outcome, Raised):
        raise outcome.error
    return await outcome if inspect.isawaitable(outcome) else outcome


def failure(error: Exception) -> ToolResult:
    """An exception for the model to read: type and message, no traceback, at most `LONGEST_ERROR` characters."""
    _LOG.debug("a call has failed", exc_info=error)  # may tell secrets, so only on request
    if isinstance(error, OutcomeUnknown):
        return ToolResult(_described(error)[:LONGEST_ERROR], kind="in_doubt")
    if isinstance(error, ToolFailed):
        cls = "transient" if error.infrastructure else "tool"
        named = error.code if ":" in error.code else f"{cls}:{error.code or 'failed'}"
        return ToolResult(_described(error)[:LONGEST_ERROR], "error", infrastructure=error.infrastructure, error=named)
    leaves = _leaves(error)
    text = "; ".join(_described(leaf) for leaf in leaves[:10])[:LONGEST_ERROR]
    named = _class_and_code(leaves[0]) if leaves else ""
    if not all(any(_is_of_network(one) or _status(one) in _OVERLOADED for one in _causes(leaf)) for leaf in leaves):
        return ToolResult(text, kind="error", error=named)  # of the call, not of connections, time and load
    waits: list[float] = []  # the seconds that a server asks to wait, in the headers of an error; no date is read
    for leaf in leaves:
        for cause in _causes(leaf):
            headers = _attribute(cause, "headers") or _attribute(_attribute(cause, "response"), "headers")
            asked: object = headers.get("Retry-After") if isinstance(headers, Mapping | Message) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # of anybody's
            if isinstance(asked, str) and asked.strip().isdecimal():
                waits.append(float(asked))
                break
    return ToolResult(text, "error", infrastructure=True, error=named, retry_after_s=max(waits, default=None))


def as_exception(error: BaseException) -> Exception:
    """The error, or one that says the same and ends nothing but the call; see `is_stopping`."""
    if isinstance(error, Exception):
        return error
    return ToolFailed("; ".join(_described(leaf) for leaf in _leaves(error)[:10]))


def is_stopping(error: BaseException) -> bool:
    """Whether an exception is to end this task or process, and did not come out of foreign code by its own `raise`.

    Ctrl-C comes at any instruction or out of a handler of signals, and a coroutine is closed where it waits. A tool may
    raise the same types of exceptions itself, as may native code (`PanicException`): those end its call and no more.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_stopping, cast("BaseExceptionGroup[BaseException]", error).exceptions))
    if not isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
        return False
    handlers: set[object] = set()
    for each in (signal.SIGINT, signal.SIGTERM):
        handler: Any = signal.getsignal(each)  # Any: anybody's callable, or a number
        while isinstance(handler, functools.partial):
            handler = handler.func
        if code := getattr(getattr(handler, "__func__", handler), "__code__", None):
            handlers.add(code)
    place = error.__traceback__
    while place is not None:
        if place.tb_frame.f_code in handlers:
            return True
        if place.tb_next is None:
            is_raised = dis.opname[place.tb_frame.f_code.co_code[place.tb_lasti]] in ("RAISE_VARARGS", "RERAISE")
            return not is_raised and not isinstance(error, SystemExit)
        place = place.tb_next
    return False


def code_of(status: int) -> str:
    """Class and code of an HTTP status that tells of a failure."""
    cls = "transient" if status in _TRANSIENT else "server" if status >= 500 else "parameter"  # noqa: PLR2004  # of the server
    return f"{cls}:{status}"


def _class_and_code(error: BaseException) -> str:
    """Class and code of an error, as far as it tells of itself. Source: spec/planning.md, section 2."""
    for cause in _causes(error):
        if 400 <= (status := _status(cause) or 0) < 600:  # noqa: PLR2004  # HTTP statuses of failures
            return code_of(status)
        if isinstance(cause, TimeoutError):
            return "timeout:timeout"
        if _is_of_network(cause):
            return f"transient:{type(cause).__name__}"
    cls = "parameter" if isinstance(error, ValueError | TypeError | LookupError) else "tool"
    return f"{cls}:{type(error).__name__}"


@functools.lru_cache(maxsize=1)
def _threads(_process: int) -> ThreadPoolExecutor:
    """Made at the first sync call of each process: threads do not survive a fork."""
    return ThreadPoolExecutor(max_workers=MOST_THREADS, thread_name_prefix="surefoot-tool")


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)  # `isinstance` cannot ask for the kind of member
        return [leaf for each in group.exceptions for leaf in _leaves(each)]
    return [error]


def _described(error: BaseException) -> str:
    named = type(error).__name__
    try:
        message = str(error)
    except Exception:  # noqa: BLE001  # `__str__` is foreign code
        return named
    if isinstance(error, ToolFailed):
        return message
    return f"{named}: {message}" if message else named


def _is_of_network(error: BaseException) -> bool:
    is_kind = isinstance(error, ConnectionError | TimeoutError | socket.gaierror)
    return is_kind or (isinstance(error, OSError) and error.errno in _NETWORK)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came of, as far as that is told: clients wrap what the network says in words of theirs."""
    cause: object = error
    for _ in range(5):
        if not isinstance(cause, BaseException):
            return
        yield cause
        cause = cause.__cause__ or _attribute(cause, "reason")


def _status(error: BaseException) -> int | None:
    """The HTTP status that an error tells of, as the usual clients do."""
    response = _attribute(error, "response")
    places = ((error, "status_code"), (error, "code"), (response, "status_code"))
    return next((status for place in places if isinstance(status := _attribute(*place), int)), None)


def _attribute(thing: object, name: str) -> object:
    """What an attribute holds; None where there is none, or where foreign code raises."""
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001  # a property may do anything
        return None


PROBE_OF = "probe of "  # how the name of a function begins that is a probe

_RUNNING: dict[tuple[int, str, str], Future[object]] = {}
"""One book for all agents. With the process, because after a fork the child knows the entries but has no threads."""


def is_running(key: str) -> bool:
    """Whether a call of that key still runs in this process; its probe does not count."""
    now = [(function, one) for process, function, one in tuple(_RUNNING) if process == os.getpid()]
    return any(one == key and not function.startswith(PROBE_OF) and _running(function, key) for function, one in now)


def goes_on(key: str, task: asyncio.Task[object]) -> None:
    """Book a task that runs on although the call of that key was given up. What it gives is the call's result."""
    attempt, place = _Left(task.get_loop()), (os.getpid(), _ANY, key)
    attempt.set_running_or_notify_cancel()
    _RUNNING[place] = attempt
    attempt.add_done_callback(partial(_ended, place))
    task.add_done_callback(attempt.follow)


def after_left(key: str, work: Callable[[], Awaitable[object]]) -> Callable[[], Awaitable[object]]:
    """`work`; or, where a task was left with the call of that key, what waits for the end of that task."""
    if not _RUNNING or (attempt := _running(_ANY, key)) is None:
        return work

    async def its_end() -> object:
        with contextlib.suppress(NotBegun):
            return await awaited(attempt)
        return await work()

    return its_end


class _Left(Future[object]):
    """The end of a task that was left. It never comes where the loop is closed before."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.loop = loop

    def follow(self, task: asyncio.Task[object]) -> None:
        if task.cancelled() or task.exception() is not None:
            self.set_exception(NotBegun())
        else:
            self.set_result(task.result())


_ANY = ""  # in place of the name of a function: tools of all kinds may leave a task


def _running(function: str, key: str) -> Future[object] | None:
    place = (os.getpid(), function, key)
    attempt = _RUNNING.get(place)
    if isinstance(attempt, _Left) and attempt.loop.is_closed():
        return _ended(place, attempt)
    return attempt


async def awaited(attempt: Future[object]) -> object:
    """What an attempt that somebody else began gives in the end; raises what it raises.

    Raises `NotBegun` when it was given up before it ran. Being cancelled here leaves the attempt as it is.
    """
    ended = asyncio.wrap_future(attempt)
    await asyncio.wait((ended,))
    if ended.cancelled():
        raise NotBegun
    return await value_of(ended.result())


class Attempts:
    """Which calls of one function, by its name, are under way in a thread. Costs about a microsecond a call."""

    def __init__(self, function: str) -> None:
        self._function = function

    def running(self, key: str) -> Future[object] | None:
        """The attempt at the call of that key that has not ended yet."""
        return _RUNNING.get((os.getpid(), self._function, key))

    async def run(self, key: str, fn: Callable[..., object], keywords: Mapping[str, object]) -> object:
        """What `fn(**keywords)` gives, run in a thread under that key; raises what it raises.

        A call that is cancelled before its thread begins does not run. Later its thread ends by itself.
        """
        attempt, place = start_in_thread(fn, keywords), (os.getpid(), self._function, key)
        _RUNNING[place] = attempt
        attempt.add_done_callback(partial(_ended, place))
        return await value_of(await asyncio.wrap_future(attempt))


def _ended(place: tuple[int, str, str], attempt: Future[object]) -> None:
    if _RUNNING.get(place) is attempt:
        del _RUNNING[place]


class NotBegun(Exception):
    """The attempt that was waited for gave nothing: it never ran, or let itself be cancelled in the end."""
