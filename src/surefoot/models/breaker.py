"""A model that is left alone for a while after it has failed too often. Source: spec/reasoners.md, section 1."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from surefoot.core.modes import mode_for
from surefoot.models.circuit import FAILURES, WITHIN_S, Circuit
from surefoot.models.retry import is_passing
from surefoot.types.errors import ModelError, ModelRefused, ModelTimeout, ModelUnreachable, TraitRefused
from surefoot.types.messages import CallMode, Emit, ModelMessage, ModelRequest, ModelSettings, Reset, Traits, Usage
from surefoot.types.ports import Model

_MOST_TRAITS = 30  # learnt of a fallback in one request; after that it is not asked any more


class CircuitBreaker:
    """Opens after 5 failures of the inner model within 60 s; while open, the inner model is asked nothing.

    While it is open the `fallback` answers, if there is one that can be spoken to in the request's call mode; so it
    does for the request whose own failure leaves the circuit open. Otherwise a request waits for the circuit, as long
    as its deadline allows; without a deadline, until one probe has told. After 30 s one request is let through as that
    probe: any answer of the server closes the circuit, a failure opens it for another 30 s. Failures are those that
    pass (unreachable, overloaded, timed out), counted after the retries; running out of the run's own time is none.
    `circuit` holds the state; all who ask the same endpoint share one (`circuit_of`), by the same clock.
    """

    def __init__(
        self,
        inner: Model,
        *,
        fallback: Model | None = None,
        circuit: Circuit | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._inner = inner
        self._instead = None if fallback is None else _Instead(fallback, clock)
        self._circuit = circuit or Circuit()
        self._clock = clock
        self._sleep = sleep

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

    @property
    def circuit(self) -> Circuit:
        return self._circuit

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        """One reply, as `surefoot.types.ports.Model.send` has it; `message.model` tells if the fallback gave it.

        Raises `ModelUnreachable` when the circuit stays open for longer than the request can wait.
        """
        until = None if request.deadline_s is None else self._clock() + request.deadline_s
        circuit = self._circuit
        opened = circuit.open_until
        spent = Usage()
        while circuit.is_blocked(self._clock()):
            if self._instead is not None:
                answer = await self._instead.answer(request, emit)
                if isinstance(answer, ModelMessage):
                    return answer
                spent += answer
            wait_s = circuit.wait_s(self._clock())
            is_in_vain = circuit.open_until != opened if until is None else self._clock() + wait_s >= until
            if is_in_vain:
                raise self._left_alone(request, wait_s, spent)
            await self._sleep(wait_s)
            if until is not None:
                request = replace(request, deadline_s=until - self._clock())
        return await self._ask(request, emit, spent)

    async def aclose(self) -> None:
        """Close the inner model and the fallback. What is known of their failures stays."""
        await self._inner.aclose()
        if self._instead is not None:
            await self._instead.model.aclose()

    async def _ask(self, request: ModelRequest, emit: Emit | None, spent: Usage) -> ModelMessage:
        started = self._clock()
        is_probe = self._circuit.open_until is not None
        try:
            message = await (self._probe if is_probe else self._inner.send)(request, emit)
        except ModelError as error:
            error.usage += spent
            if not self._is_failure(error, request, started):
                if is_probe:
                    self._circuit.close()
                raise
            self._circuit.count(self._clock(), is_probe=is_probe)
            self._circuit.last_error = str(error)
            if self._circuit.open_until is None or self._instead is None:
                raise
            return await self._answered_instead(request, emit, error, started)
        if is_probe:
            self._circuit.close()
        return message if spent == Usage() else replace(message, usage=message.usage + spent)

    async def _answered_instead(
        self, request: ModelRequest, emit: Emit | None, failure: ModelError, started: float
    ) -> ModelMessage:
        """The fallback's reply in place of a failure that leaves the circuit open; what both have spent is told."""
        assert self._instead is not None  # noqa: S101  # only asked where there is one
        if emit is not None:
            emit(Reset(str(failure)))
        left_s = None if request.deadline_s is None else request.deadline_s - (self._clock() - started)
        try:
            answer = await self._instead.answer(replace(request, deadline_s=left_s), emit)
        except ModelError as error:
            error.usage += failure.usage
            error.attempts += failure.attempts
            raise
        if isinstance(answer, Usage):
            failure.usage += answer
            raise failure
        return replace(answer, usage=answer.usage + failure.usage, attempts=answer.attempts + failure.attempts)

    async def _probe(self, request: ModelRequest, emit: Emit | None) -> ModelMessage:
        self._circuit.is_probing = True
        try:
            return await self._inner.send(request, emit)
        finally:
            self._circuit.is_probing = False

    def _is_failure(self, error: ModelError, request: ModelRequest, started: float) -> bool:
        if not is_passing(error):
            return False
        ran_out = request.deadline_s is not None and self._clock() - started >= request.deadline_s
        return not (ran_out and isinstance(error, ModelTimeout))

    def _left_alone(self, request: ModelRequest, wait_s: float, spent: Usage) -> ModelUnreachable:
        remedy = "look at its server, or name a fallback"
        if self._instead is not None:
            remedy = (
                f"its fallback {self._instead.model.name} cannot be spoken to in call mode {request.mode!r}: "
                "name one that can, or look at its server"
            )
        error = ModelUnreachable(
            f"{self.name} failed {FAILURES} times within {WITHIN_S:g} s, at last with: {self._circuit.last_error}. "
            f"It is left alone for {wait_s:.0f} s; {remedy}",
            retry_after_s=wait_s,
        )
        error.usage = spent
        return error


def settings_instead(settings: ModelSettings) -> ModelSettings:
    """The settings for a fallback: prices and `extra` are those of the model whose place it takes."""
    return replace(settings, price_in=None, price_out=None, extra={})


class _Instead:
    """The model that answers while another is left alone.

    It is spoken to by its own traits, declared and learnt here: what is known of the other model says nothing of it,
    and what its endpoint refuses must not be learnt of the other.
    """

    def __init__(self, model: Model, clock: Callable[[], float]) -> None:
        self.model = model
        self._clock = clock
        self._learnt: dict[str, str] = {}

    async def answer(self, request: ModelRequest, emit: Emit | None) -> ModelMessage | Usage:
        """Its reply, which says that it is its own.

        When it cannot be spoken to in the call mode of the request: what finding that out has cost. Raises what it
        raises, but `TraitRefused`; `usage` holds what all of its tries have spent.
        """
        started = self._clock()
        spent = Usage()
        tried: set[tuple[str, str]] = set()  # one that changes its mind would be asked for ever
        settings = settings_instead(request.settings)
        while request.mode in self.model.modes:
            traits = {**self.model.traits, **self._learnt}
            if request.mode != mode_for(request.mode, traits):
                break
            left_s = None if request.deadline_s is None else request.deadline_s - (self._clock() - started)
            try:
                if tried and left_s is not None and left_s <= 0:
                    raise ModelTimeout(
                        f"{self.model.name} refused one part of the request after another, in all its time"
                    )
                asked = replace(request, traits=traits, settings=settings, deadline_s=left_s)
                message = await self.model.send(asked, emit)
            except TraitRefused as refused:
                spent += refused.usage
                learnt = (refused.trait, refused.value)
                if learnt in tried or learnt in traits.items() or len(tried) >= _MOST_TRAITS:
                    final = ModelRefused(str(refused))  # it was left out already: nothing more can be learnt
                    final.usage = spent
                    raise final from refused
                tried.add(learnt)
                self._learnt[refused.trait] = refused.value
                continue
            except ModelError as error:
                error.usage += spent
                raise
            usage = message.usage if spent == Usage() else message.usage + spent
            return replace(message, model=message.model or self.model.name, usage=usage)
        return spent
