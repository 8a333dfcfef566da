"""A model that is left alone for a while after it has failed too often. Source: spec/reasoners.md, section 1."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace

from surefoot.core.modes import mode_for
from surefoot.types.errors import ModelError, ModelRefused, ModelTimeout, ModelUnreachable, TraitRefused
from surefoot.types.messages import CallMode, Emit, ModelMessage, ModelRequest, Reset, Traits
from surefoot.types.ports import Model

FAILURES = 5
WITHIN_S = 60.0
OPEN_S = 30.0
_PROBING_S = 1.0  # when to ask again while another request is finding out


class CircuitBreaker:
    """Opens after 5 failures of the inner model within 60 s; while open, the inner model is asked nothing.

    While it is open the `fallback` answers, if there is one that can be spoken to in the request's call mode; so it
    does for the request whose own failure leaves the circuit open. Otherwise a request waits for the circuit, as long
    as its deadline allows; without a deadline, until one probe has told. After 30 s one request is let through as that
    probe: any answer of the server closes the circuit, a failure opens it for another 30 s. Failures are those that
    pass (unreachable, overloaded, timed out), counted after the retries; running out of the run's own time is none.
    One object holds the state of one (wire, base URL, model), for all runs.
    """

    def __init__(
        self,
        inner: Model,
        *,
        fallback: Model | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._inner = inner
        self._instead = None if fallback is None else _Instead(fallback)
        self._clock = clock
        self._sleep = sleep
        self._failed_at: deque[float] = deque(maxlen=FAILURES)
        self._open_until: float | None = None
        self._is_probing = False

    def __repr__(self) -> str:
        return f"CircuitBreaker({self._inner!r})"

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

    @property
    def fallback(self) -> Model | None:
        return self._instead.model if self._instead else None

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        """One reply, as `surefoot.types.ports.Model.send` has it; `message.model` tells if the fallback gave it.

        Raises `ModelUnreachable` when the circuit stays open for longer than the request can wait.
        """
        until = None if request.deadline_s is None else self._clock() + request.deadline_s
        opened = self._open_until
        while self._is_blocked:
            if self._instead is not None and (message := await self._instead.answer(request, emit)):
                return message
            wait_s = self._wait_s
            is_in_vain = self._open_until != opened if until is None else self._clock() + wait_s >= until
            if is_in_vain:
                raise self._left_alone(request, wait_s)
            await self._sleep(wait_s)
            if until is not None:
                request = replace(request, deadline_s=until - self._clock())
        return await self._ask(request, emit)

    async def aclose(self) -> None:
        """Close the inner model and the fallback. What is known of their failures stays."""
        await self._inner.aclose()
        if self._instead is not None:
            await self._instead.model.aclose()

    @property
    def _is_blocked(self) -> bool:
        return self._open_until is not None and (self._is_probing or self._clock() < self._open_until)

    @property
    def _wait_s(self) -> float:
        return max((self._open_until or 0.0) - self._clock(), _PROBING_S if self._is_probing else 0.0)

    async def _ask(self, request: ModelRequest, emit: Emit | None) -> ModelMessage:
        started = self._clock()
        is_probe = self._open_until is not None
        try:
            message = await (self._probe if is_probe else self._inner.send)(request, emit)
        except ModelError as error:
            if not self._is_failure(error, request, started):
                if is_probe:
                    self._close()
                raise
            self._count(is_probe=is_probe)
            if self._open_until is None or self._instead is None:
                raise
            if emit is not None:
                emit(Reset(str(error)))
            left_s = None if request.deadline_s is None else request.deadline_s - (self._clock() - started)
            answer = await self._instead.answer(replace(request, deadline_s=left_s), emit)
            if answer is None:
                raise
            return replace(answer, usage=answer.usage + error.usage, attempts=answer.attempts + error.attempts)
        if is_probe:
            self._close()
        return message

    async def _probe(self, request: ModelRequest, emit: Emit | None) -> ModelMessage:
        self._is_probing = True
        try:
            return await self._inner.send(request, emit)
        finally:
            self._is_probing = False

    def _count(self, *, is_probe: bool) -> None:
        now = self._clock()
        self._failed_at.append(now)
        is_often = len(self._failed_at) == FAILURES and now - self._failed_at[0] <= WITHIN_S
        if is_probe or (is_often and self._open_until is None):
            self._open_until = now + OPEN_S

    def _close(self) -> None:
        self._open_until = None
        self._failed_at.clear()

    def _is_failure(self, error: ModelError, request: ModelRequest, started: float) -> bool:
        if isinstance(error, ModelRefused | TraitRefused) or error.kind == "cancelled":
            return False
        ran_out = request.deadline_s is not None and self._clock() - started >= request.deadline_s
        return not (ran_out and isinstance(error, ModelTimeout))

    def _left_alone(self, request: ModelRequest, wait_s: float) -> ModelUnreachable:
        remedy = "look at its server, or name a fallback"
        if self._instead is not None:
            remedy = (
                f"its fallback {self._instead.model.name} cannot be spoken to in call mode {request.mode!r}: "
                "name one that can, or look at its server"
            )
        return ModelUnreachable(
            f"{self.name} failed {FAILURES} times within {WITHIN_S:g} s and is left alone for {wait_s:.0f} s; {remedy}",
            retry_after_s=wait_s,
        )


class _Instead:
    """The model that answers while another is left alone.

    It is spoken to by its own traits, declared and learnt here: what is known of the other model says nothing of it,
    and what its endpoint refuses must not be learnt of the other.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._learnt: dict[str, str] = {}

    async def answer(self, request: ModelRequest, emit: Emit | None) -> ModelMessage | None:
        """Its reply, which says that it is its own; None when it cannot be spoken to in the call mode of the request.

        Raises what it raises, but `TraitRefused`.
        """
        while request.mode in self.model.modes:
            traits = {**self.model.traits, **self._learnt}
            if request.mode != mode_for(request.mode, traits):
                return None
            try:
                message = await self.model.send(replace(request, traits=traits), emit)
            except TraitRefused as refused:
                if traits.get(refused.trait) == refused.value:  # it was left out already: nothing more can be learnt
                    raise ModelRefused(str(refused)) from refused
                self._learnt[refused.trait] = refused.value
                continue
            return replace(message, model=message.model or self.model.name)
        return None
