"""A model that is left alone for a while after it has failed too often. Source: spec/reasoners.md, section 1."""

import time
from collections import deque
from collections.abc import Callable

from surefoot.types.errors import ModelError, ModelRefused, ModelTimeout, ModelUnreachable, TraitRefused
from surefoot.types.messages import CallMode, Emit, ModelMessage, ModelRequest, Traits
from surefoot.types.ports import Model

FAILURES = 5
WITHIN_S = 60.0
OPEN_S = 30.0
_PROBING_S = 1.0  # when to ask again while another request is finding out


class CircuitBreaker:
    """Opens after 5 failures of the inner model within 60 s; while open, every request fails at once.

    After 30 s one request is let through as a probe: any answer of the server closes the circuit, a failure opens it
    for another 30 s. Failures are those that pass (unreachable, overloaded, timed out), counted after the retries;
    running out of the run's own time is none. One object holds the state of one (wire, base URL, model), for all runs.
    """

    def __init__(self, inner: Model, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._inner = inner
        self._clock = clock
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

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        """One reply, as `surefoot.types.ports.Model.send` has it, or `ModelUnreachable` at once while open."""
        if self._open_until is not None:
            return await self._probe(request, emit)
        started = self._clock()
        try:
            return await self._inner.send(request, emit)
        except ModelError as error:
            if self._is_failure(error, request, started):
                self._count()
            raise

    async def aclose(self) -> None:
        """Close the inner model. What is known of its failures stays."""
        await self._inner.aclose()

    async def _probe(self, request: ModelRequest, emit: Emit | None) -> ModelMessage:
        started = self._clock()
        left_s = (self._open_until or started) - started
        if left_s > 0 or self._is_probing:
            wait_s = max(left_s, _PROBING_S if self._is_probing else 0.0)
            raise ModelUnreachable(
                f"{self.name} failed {FAILURES} times within {WITHIN_S:g} s and is left alone for {wait_s:.0f} s; "
                "look at its server, or name another model",
                retry_after_s=wait_s,
            )
        self._is_probing = True
        try:
            message = await self._inner.send(request, emit)
        except ModelError as error:
            if self._is_failure(error, request, started):
                self._open_until = self._clock() + OPEN_S
            else:
                self._close()
            raise
        finally:
            self._is_probing = False
        self._close()
        return message

    def _count(self) -> None:
        now = self._clock()
        self._failed_at.append(now)
        if len(self._failed_at) == FAILURES and now - self._failed_at[0] <= WITHIN_S:
            self._open_until = now + OPEN_S

    def _close(self) -> None:
        self._open_until = None
        self._failed_at.clear()

    def _is_failure(self, error: ModelError, request: ModelRequest, started: float) -> bool:
        if isinstance(error, ModelRefused | TraitRefused) or error.kind == "cancelled":
            return False
        ran_out = request.deadline_s is not None and self._clock() - started >= request.deadline_s
        return not (ran_out and isinstance(error, ModelTimeout))
