"""A model that is asked again when it fails for reasons that pass. Source: spec/reasoners.md, section 1."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from surefoot.types.errors import ModelError, ModelRefused, ModelTimeout, TraitRefused
from surefoot.types.messages import (
    CallMode,
    Emit,
    ModelMessage,
    ModelRequest,
    ModelSettings,
    ModelSignal,
    ReasoningDelta,
    Reset,
    TextDelta,
    Traits,
    Usage,
)
from surefoot.types.ports import Model

_PASSING = frozenset({"rate_limited", "timeout", "unavailable"})
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 8.0
_LONGEST_RETRY_AFTER_S = 60.0
_CHARACTERS_A_TOKEN = 4
_LEAST_S = 1.0  # with less than that left another attempt is not worth while


class Retried:
    """Asks the inner model up to `settings.attempts` times, with growing, wholly random waits between.

    What a server asks for in `Retry-After` is kept, up to 60 s; when it asks for more, or for more than the deadline
    leaves, the failure is final at once. So it is when the endpoint has been silent for long enough: attempts without a
    sign of life share the time that one has by default (`ModelSettings.patience`), or by its settings if that is
    more. The message tells the attempts, and its usage holds an estimate for replies that broke off. When every attempt
    fails, the last error leaves, with `attempts`, `usage` and `waited_s` of them all. `near`: see `patience`.
    """

    def __init__(
        self,
        inner: Model,
        *,
        near: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        random01: Callable[[], float] = random.random,
    ) -> None:
        self._inner = inner
        self._near = near
        self._clock = clock
        self._sleep = sleep
        self._random01 = random01

    def __repr__(self) -> str:
        return f"Retried({self._inner!r})"

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def modes(self) -> tuple[CallMode, ...]:
        return self._inner.modes

    @property
    def traits(self) -> Traits:
        return self._inner.traits

    @property
    def inner(self) -> Model:
        return self._inner

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        """One reply, as `surefoot.types.ports.Model.send` has it. `Reset` is shown before a broken reply comes anew."""
        started = self._clock()
        shown = None if emit is None else _Shown(emit)
        try:
            return await self._inner.send(request, shown)
        except ModelError as error:
            spent = error.usage + _broken_off(shown)
            if not is_passing(error):
                error.usage, error.waited_s = spent, self._clock() - started
                raise
            failure = error
        return await self._again(request, shown, failure, started, spent)

    async def aclose(self) -> None:
        """Close the inner model."""
        await self._inner.aclose()

    async def _again(
        self, request: ModelRequest, shown: "_Shown | None", failure: ModelError, started: float, spent: Usage
    ) -> ModelMessage:
        attempts, begun, silent_s = 1, started, 0.0
        while True:
            now = self._clock()
            left_s = None if request.deadline_s is None else request.deadline_s - (now - started)
            wait_s = self._wait_s(attempts, failure)
            if isinstance(failure, ModelTimeout) and not failure.stalled:
                silent_s += now - begun + (wait_s or 0.0)
            settings = self._settings_after(silent_s, request)
            is_last = attempts >= request.settings.attempts
            if is_last or wait_s is None or settings is None or (left_s is not None and wait_s >= left_s):
                failure.attempts, failure.usage, failure.waited_s = attempts, spent, now - started
                raise failure
            if shown is not None and shown.chars:
                shown.reset(str(failure))
            await self._sleep(wait_s)
            attempts, begun = attempts + 1, self._clock()
            deadline_s = None if left_s is None else left_s - wait_s
            try:
                message = await self._inner.send(replace(request, settings=settings, deadline_s=deadline_s), shown)
            except ModelError as error:
                spent += error.usage + _broken_off(shown)
                if not is_passing(error):
                    error.attempts, error.usage, error.waited_s = attempts, spent, self._clock() - started
                    raise
                failure = error
                continue
            return replace(message, attempts=attempts, usage=message.usage + spent)

    def _settings_after(self, silent_s: float, request: ModelRequest) -> ModelSettings | None:
        """The settings for another attempt after so much silence; `None` when there is to be none."""
        if not silent_s:
            return request.settings
        asked = request.settings.patience(near=self._near).silence_s(stream=request.stream)
        default = ModelSettings().patience(near=self._near).silence_s(stream=request.stream)
        left_s = max(asked, default) - silent_s
        if left_s < _LEAST_S:
            return None
        limit = "first_token_timeout_s" if request.stream else "request_timeout_s"
        return replace(request.settings, **{limit: min(asked, left_s)})

    def _wait_s(self, attempts: int, failure: ModelError) -> float | None:
        """Seconds until the next attempt; `None` when the server asks for more than anyone should wait."""
        asked_s = failure.retry_after_s or 0.0
        if asked_s > _LONGEST_RETRY_AFTER_S:
            return None
        longest = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** (attempts - 1))
        return asked_s + self._random01() * longest  # those who were turned away together do not come back together


def is_passing(error: ModelError) -> bool:
    """Whether the same request may work later."""
    return error.kind in _PASSING and not isinstance(error, ModelRefused | TraitRefused)


def _broken_off(shown: "_Shown | None") -> Usage:
    """An estimate for what was shown of a reply that did not come to its end."""
    if shown is None or not shown.chars:
        return Usage()
    return Usage(output_tokens=shown.chars // _CHARACTERS_A_TOKEN, estimated=True)


class _Shown:
    """Passes signals on, and remembers how much of the reply has been shown."""

    __slots__ = ("_emit", "chars")

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.chars = 0

    def __call__(self, signal: ModelSignal) -> None:
        if isinstance(signal, TextDelta | ReasoningDelta):
            self.chars += len(signal.text)
        else:
            self.chars += 1
        self._emit(signal)

    def reset(self, reason: str) -> None:
        """Tell the watcher to forget what it saw of the broken reply."""
        self.chars = 0
        self._emit(Reset(reason))
