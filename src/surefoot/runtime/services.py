"""The services of a run: made at first need, once, and closed when the run ends.

What may be registered under a type, or under a type and a name, is decided here alone (`is_factory`):

- **`...`** is given with each run, `agent.run(task, services={Db: db})`; so may be what takes another's place.
- **An object** is given to tools as it is, and stays the caller's: it is neither entered nor closed. An instance of the
  type that it is registered under is always an object, also when it can be called; so is whatever is not named below.
- **A factory** is a function, method, partial or class that is no such instance. It takes no arguments and is called on
  the event loop, at most once a run; one that takes long should be async. What it gives is the service, with these
  exceptions: what can be awaited is awaited; of a generator, async or not, what it yields is the service and what
  follows closes it; a context manager, async or not, is entered, what entering gives is the service, and it is left at
  the end. (A lock is a context manager: give it as an object.)

Each made service lives in a task of its own, because a context manager may ask to be left in the task that entered it,
and because a call that is cancelled must not take along a service that others wait for. The tasks are all awaited in
`__aexit__`; a task group would cancel them at once, where they are to be closed one after the other.

No error of a service reaches a model in words: an exception may hold a password in an address. Source:
spec/reasoners.md, section 4.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import cast

from surefoot.tools.call import ToolFailed, is_stopping
from surefoot.tools.signature import NO_SERVICE, is_class, key_text
from surefoot.types.errors import UsageError
from surefoot.types.ports import ServiceKey, ToolCallContext
from surefoot.types.settings import mapping

_LOG = logging.getLogger("surefoot")

LONGEST_CLOSING_S = 30.0
"""How long the end of a run waits for one service to close, then it is cancelled; and for threads that use services."""


def checked_services(services: Mapping[ServiceKey, object]) -> Mapping[ServiceKey, object]:
    """The registered services, as a copy. For the one who builds an agent.

    Raises `UsageError` for a key that is neither a class nor a pair of class and name, for a type that a model fills
    itself, and for a factory that cannot be called without arguments. No message shows a value.
    """
    for key, value in services.items():
        pair = cast("tuple[object, ...]", key) if isinstance(key, tuple) else (key, "")
        kind, name = pair if len(pair) == 2 else (None, None)  # noqa: PLR2004  # type and name
        if not is_class(kind) or not isinstance(name, str) or (isinstance(key, tuple) and not name):
            raise UsageError(f"services: {key!r} is not a key; give a class, or a class and a name: (Db, 'archive')")
        if kind is ToolCallContext:
            raise UsageError("services: each call has its own ToolCallContext already; leave it out")
        if kind.__module__ in NO_SERVICE and not name:
            raise UsageError(
                f"services: every {kind.__name__} of every tool would be hidden from the model; register it by name,"
                f" ({kind.__name__}, 'name'), and ask for it with Annotated[{kind.__name__}, Inject('name')]"
            )
        if is_factory(key, value) and not _needs_nothing(cast("Callable[[], object]", value)):
            raise UsageError(f"services: the factory of {key_text(key)} must be callable without arguments")
    return MappingProxyType(dict(services))


def services_of(
    registered: Mapping[ServiceKey, object], given: Mapping[ServiceKey, object] | None = None
) -> Mapping[ServiceKey, object]:
    """The services of one run: what is `given` with it, in place of what is registered.

    Raises `UsageError` for a key that is not registered, as tools are bound to what is, and for one that is registered
    as `...`, "comes with each run", and did not come.
    """
    if given is not None:
        mapping("services", given)
    for key in given or ():
        if key not in registered:
            told = f"services: {key_text(key)} is not registered, so no tool asks for it"
            raise UsageError(f"{told}; give Agent(services={{{key_text(key)}: ...}})")
    chosen = checked_services({**registered, **given}) if given else registered
    for key, value in chosen.items():
        if value is ...:
            name = key_text(key)
            raise UsageError(f"services: {name} comes with each run; give services={{{name}: …}} to run or resume")
    return chosen


def is_factory(key: ServiceKey, value: object) -> bool:
    """Whether a registered value makes the service, and is not the service itself."""
    kind = key[0] if isinstance(key, tuple) else key
    try:
        if isinstance(value, kind):
            return False
    except TypeError:  # a protocol that cannot be asked
        pass
    return isinstance(value, (type, functools.partial)) or inspect.isroutine(value)


def _needs_nothing(factory: Callable[..., object]) -> bool:
    try:
        inspect.signature(factory).bind()
    except TypeError:
        return False
    except ValueError:  # some built-in classes do not tell
        return True
    return True


class RunServices:
    """The services of one run: `async with RunServices(checked) as services`, then `await services.get(key)`.

    Costs nothing until the first factory is needed.
    """

    __slots__ = ("_is_over", "_kept", "_registered", "_users")

    def __init__(self, registered: Mapping[ServiceKey, object]) -> None:
        self._registered = registered
        self._kept: dict[ServiceKey, _Kept] = {}
        self._users: set[Future[object]] = set()
        self._is_over = False

    async def __aenter__(self) -> RunServices:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close what was made, the last first, when no thread uses it any more or has had `LONGEST_CLOSING_S` to end.

        What goes wrong is logged, and never hides how the run ended.
        """
        self._is_over = True
        try:
            if self._kept:
                await self._unused()
            while self._kept:
                key, kept = self._kept.popitem()
                await kept.closed(key)
        finally:  # cancelled once more: nobody waits for the rest any longer
            for kept in self._kept.values():
                kept.task.cancel()

    def used_by(self, threads: Iterable[Future[object]]) -> None:
        """These threads go on when their call is over; services are not closed under them."""
        for thread in threads:
            self._users.add(thread)
            thread.add_done_callback(self._users.discard)

    async def _unused(self) -> None:
        waiting = [asyncio.wrap_future(thread) for thread in tuple(self._users)]
        if not waiting:
            return
        try:
            _, late = await asyncio.wait(waiting, timeout=LONGEST_CLOSING_S)
        finally:
            for each in waiting:
                each.cancel()  # a thread that runs is not stopped by it; nobody listens to it any more
        if late:
            told = "services are closed under %d threads, which did not end within %g s"
            _LOG.warning(told, len(late), LONGEST_CLOSING_S)

    async def get(self, key: ServiceKey) -> object:
        """The service of that key. Raises `ToolFailed`, in words that tell nothing of its value, when there is none.

        Calls that ask at once share one making; if that fails they fail with it, and a later call tries again.
        """
        if key not in self._registered:
            raise ToolFailed(f"a service of this tool is not registered: {key_text(key)}")
        value = self._registered[key]
        if not is_factory(key, value):
            return value
        if self._is_over:
            raise ToolFailed("a service of this tool could not be made: the run is over")
        kept = self._kept.get(key)
        if kept is None or kept.has_failed:
            self._kept.pop(key, None)  # so that it takes its place among the others anew
            kept = self._kept[key] = _Kept.begin(key, cast("Callable[[], object]", value))
        outcome = await asyncio.shield(kept.made)  # shielded: one call that gives up leaves it to the others
        if isinstance(outcome, _NotMade):
            told = f"a service of this tool could not be made: {outcome.kind}"
            raise ToolFailed(told, infrastructure=outcome.infrastructure)
        return outcome


@dataclass(frozen=True, slots=True)
class _NotMade:
    """Why there is no service: the type of the exception, and nothing of what it says."""

    kind: str
    infrastructure: bool


@dataclass(slots=True)
class _Kept:
    """One service and the task in which it lives. `made` gives it, or a `_NotMade`; it never raises."""

    made: asyncio.Future[object]
    released: asyncio.Event
    task: asyncio.Task[None] = field(init=False)

    @property
    def has_failed(self) -> bool:
        """Whether it is known that there is no service."""
        return self.made.done() and isinstance(self.made.result(), _NotMade)

    @classmethod
    def begin(cls, key: ServiceKey, factory: Callable[[], object]) -> _Kept:
        kept = cls(asyncio.get_running_loop().create_future(), asyncio.Event())
        kept.task = asyncio.create_task(kept.live(key, factory), name=f"service {key_text(key)}")
        return kept

    async def live(self, key: ServiceKey, factory: Callable[[], object]) -> None:
        """Make it, keep it until it is released, close it. Raises nothing but its own cancellation."""
        try:
            async with _open(factory) as service:
                self.made.set_result(service)
                await self.released.wait()
        except BaseException as error:  # a service is the user's code
            if is_stopping(error):
                raise
            doing = "closed" if self.made.done() else "made"
            _LOG.warning("the service %s could not be %s: %s", key_text(key), doing, type(error).__name__)
            _LOG.debug("the service %s", key_text(key), exc_info=error)  # may tell secrets, so only on request
            self._fail(error)
        finally:
            self._fail(asyncio.CancelledError())

    async def closed(self, key: ServiceKey) -> None:
        """Release it and wait until it is closed; one that is still being made, or takes too long, is cancelled."""
        self.released.set()
        if not self.made.done():
            self.task.cancel()
        try:
            _, late = await asyncio.wait((self.task,), timeout=LONGEST_CLOSING_S)
            if late:
                _LOG.warning("the service %s did not close within %g s", key_text(key), LONGEST_CLOSING_S)
        finally:
            self.task.cancel()  # does nothing to one that has ended

    def _fail(self, error: BaseException) -> None:
        if not self.made.done():
            unreachable = isinstance(error, (ConnectionError, TimeoutError))
            self.made.set_result(_NotMade(type(error).__name__, unreachable))


@asynccontextmanager
async def _open(factory: Callable[[], object]) -> AsyncGenerator[object]:
    """What a factory gives, as long as the context lasts."""
    given = factory()
    if inspect.isawaitable(given):
        given = cast("object", await given)
    if inspect.isasyncgen(given):
        many = cast("AsyncGenerator[object]", given)
        given = asynccontextmanager(lambda: many)()
    elif inspect.isgenerator(given):
        one_by_one = cast("Generator[object]", given)
        given = contextmanager(lambda: one_by_one)()
    if isinstance(given, AbstractAsyncContextManager):
        async with cast("AbstractAsyncContextManager[object]", given) as service:
            yield service
    elif isinstance(given, AbstractContextManager):
        with cast("AbstractContextManager[object]", given) as service:
            yield service
    else:
        yield given
