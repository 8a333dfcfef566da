"""Wrappers of a model, each with one concern and of the same shape. Source: spec/reasoners.md, section 1."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

from surefoot.types import messages
from surefoot.types.errors import ModelError, ModelRefused, ModelTimeout, ModelUnreachable, TraitRefused
from surefoot.types.ports import Model

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[object]]

FAILURES = 5
WITHIN_S = 60.0
OPEN_S = 30.0

_PASSING = frozenset({"rate_limited", "timeout", "unavailable"})
_NOTHING = messages.Usage()
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 8.0
_LONGEST_RETRY_AFTER_S = 60.0
_CHARACTERS_A_TOKEN = 4
_LEAST_S = 1.0  # with less than that left another attempt is not worth while
_PROBING_S = 1.0  # when to ask again while another request is finding out


class WrappedModel:
    """A model around another one; it behaves like that one unless a subclass overrides it."""

    def __init__(self, inner: Model) -> None:
        self.inner = inner

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def modes(self) -> tuple[messages.CallMode, ...]:
        return self.inner.modes

    @property
    def traits(self) -> messages.Traits:
        return self.inner.traits

    @property
    def identity(self) -> str:
        return identity_of(self.inner)

    @property
    def is_priced(self) -> bool:
        return bool(getattr(self.inner, "is_priced", False))

    async def send(self, request: messages.ModelRequest, emit: messages.Emit | None = None) -> messages.ModelMessage:
        return await self.inner.send(request, emit)

    async def aclose(self) -> None:
        await self.inner.aclose()


def identity_of(model: Model) -> str:
    """Wire, base URL and model in one text, under which learnt traits are kept; the name where a model has no other."""
    identity = getattr(model, "identity", None)
    return identity if isinstance(identity, str) else model.name


class Retried(WrappedModel):
    """Asks the inner model up to `settings.attempts` times, with growing, wholly random waits between.

    `Retry-After` is kept, up to 60 s; when more is asked for, or more than the deadline leaves, the failure is final.
    So it is after long silence: attempts without a sign of life share the time of one (`ModelSettings.patience`, see
    there for `near`). The message tells the attempts, its usage holds an estimate for replies that broke off. The last
    error leaves with `attempts`, `usage` and `waited_s` of all.
    """

    def __init__(
        self,
        inner: Model,
        *,
        near: bool = False,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        random01: Clock = random.random,
    ) -> None:
        super().__init__(inner)
        self._near = near
        self._clock = clock
        self._sleep = sleep
        self._random01 = random01

    async def send(self, request: messages.ModelRequest, emit: messages.Emit | None = None) -> messages.ModelMessage:
        shown = None if emit is None else _Shown(emit)
        started = begun = self._clock()
        asked, spent, silent_s, attempts = request, _NOTHING, 0.0, 0
        while True:
            attempts += 1
            try:
                message = await self.inner.send(asked, shown)
            except ModelError as error:
                failure = error
            else:
                return message if attempts == 1 else replace(message, attempts=attempts, usage=message.usage + spent)
            now = self._clock()
            spent += failure.usage
            if shown is not None and shown.chars:  # an estimate for what came of a reply that broke off
                spent += messages.Usage(output_tokens=shown.chars // _CHARACTERS_A_TOKEN, estimated=True)
            left_s = None if request.deadline_s is None else request.deadline_s - (now - started)
            told_s = failure.retry_after_s or 0.0
            longest_s = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** (attempts - 1))
            wait_s = told_s + self._random01() * longest_s  # those turned away together do not come back together
            if isinstance(failure, ModelTimeout) and not failure.stalled:
                silent_s += now - begun + wait_s
            settings, is_last = request.settings, attempts >= request.settings.attempts or not is_passing(failure)
            if silent_s:  # another attempt gets what is left of the time of one, if that is worth while
                patience_s = settings.patience(near=self._near).silence_s(stream=request.stream)
                default = messages.ModelSettings().patience(near=self._near).silence_s(stream=request.stream)
                rest_s = max(patience_s, default) - silent_s
                is_last = is_last or rest_s < _LEAST_S
                limit = "first_token_timeout_s" if request.stream else "request_timeout_s"
                settings = replace(settings, **{limit: min(patience_s, max(rest_s, _LEAST_S))})
            is_too_long = told_s > _LONGEST_RETRY_AFTER_S or (left_s is not None and wait_s >= left_s)
            if is_last or is_too_long:
                failure.attempts, failure.usage, failure.waited_s = attempts, spent, now - started
                raise failure
            if shown is not None and shown.chars:
                shown.reset(str(failure))
            await self._sleep(wait_s)
            asked = replace(request, settings=settings, deadline_s=None if left_s is None else left_s - wait_s)
            begun = self._clock()


def is_passing(error: ModelError) -> bool:
    """Whether the same request may work later."""
    return error.kind in _PASSING and not isinstance(error, ModelRefused | TraitRefused)


class _Shown:
    """Passes signals on, and remembers how much of the reply has been shown."""

    __slots__ = ("_emit", "chars")

    def __init__(self, emit: messages.Emit) -> None:
        self._emit = emit
        self.chars = 0

    def __call__(self, signal: messages.ModelSignal) -> None:
        self.chars += len(signal.text) if isinstance(signal, messages.TextDelta | messages.ReasoningDelta) else 1
        self._emit(signal)

    def reset(self, reason: str) -> None:
        """Tell the watcher to forget what it saw of the broken reply."""
        self.chars = 0
        self._emit(messages.Reset(reason))


@dataclass(slots=True, weakref_slot=True, eq=False)
class Circuit:
    """Opens after 5 failures within 60 s, for 30 s. Times are seconds of the clock of those who share it.

    They are all in this process who ask one (wire, base URL, model); it is forgotten with the last of them.
    """

    open_until: float | None = None
    last_error: str = ""
    is_probing: bool = False
    _failed_at: deque[float] = field(default_factory=lambda: deque(maxlen=FAILURES))

    def is_blocked(self, now: float) -> bool:
        return self.open_until is not None and (self.is_probing or now < self.open_until)

    def wait_s(self, now: float) -> float:
        """Seconds after which it is worth looking again."""
        return max((self.open_until or 0.0) - now, _PROBING_S if self.is_probing else 0.0)

    def count(self, now: float, *, is_probe: bool) -> None:
        self._failed_at.append(now)
        is_often = len(self._failed_at) == FAILURES and now - self._failed_at[0] <= WITHIN_S
        if is_probe or (is_often and self.open_until is None):
            self.open_until = now + OPEN_S

    def close(self) -> None:
        self.open_until = None
        self._failed_at.clear()


_CIRCUITS: WeakValueDictionary[str, Circuit] = WeakValueDictionary()


def circuit_of(identity: str) -> Circuit:
    """The circuit of the endpoint of that identity, the same for all who hold one."""
    return _CIRCUITS.setdefault(identity, Circuit())


class CircuitBreaker(WrappedModel):
    """Opens after 5 failures of the inner model within 60 s; while open, the inner model is asked nothing.

    A request then waits, as long as its deadline allows, or until one probe has told; with `waits=False` it fails at
    once. After 30 s one request goes through as the probe: any answer of the server closes the circuit, a failure opens
    it again. Failures are those that pass (unreachable, overloaded, timed out), after the retries; running out of the
    run's own time does not count. All who ask one endpoint share its `circuit` (`circuit_of`).
    """

    def __init__(
        self,
        inner: Model,
        *,
        waits: bool = True,
        circuit: Circuit | None = None,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        super().__init__(inner)
        self.circuit = circuit or Circuit()
        self.waits = waits
        self._clock = clock
        self._sleep = sleep

    async def send(self, request: messages.ModelRequest, emit: messages.Emit | None = None) -> messages.ModelMessage:
        """One reply. Raises `ModelUnreachable` when the circuit stays open for longer than the request can wait."""
        started = self._clock()
        until = None if request.deadline_s is None else started + request.deadline_s
        circuit, opened = self.circuit, self.circuit.open_until
        while circuit.is_blocked(started):
            wait_s = circuit.wait_s(started)
            is_late = circuit.open_until != opened if until is None else started + wait_s >= until
            if is_late or not self.waits:
                raise ModelUnreachable(
                    f"{self.name} failed {FAILURES} times within {WITHIN_S:g} s, at last with: {circuit.last_error}. "
                    f"It is left alone for {wait_s:.0f} s; look at its server, or name another model behind it",
                    retry_after_s=wait_s,
                )
            await self._sleep(wait_s)
            started = self._clock()
            if until is not None:
                request = replace(request, deadline_s=until - started)
        circuit.is_probing = is_probe = circuit.open_until is not None
        try:
            message = await self.inner.send(request, emit)
        except ModelError as error:
            ran_out = request.deadline_s is not None and self._clock() - started >= request.deadline_s
            if is_passing(error) and not (ran_out and isinstance(error, ModelTimeout)):
                circuit.count(self._clock(), is_probe=is_probe)
                circuit.last_error = str(error)
            elif is_probe:
                circuit.close()
            raise
        else:
            if is_probe:
                circuit.close()
            return message
        finally:
            if is_probe:
                circuit.is_probing = False
