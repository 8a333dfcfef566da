"""Retries and the circuit breaker: all their states on a clock that only a sleep moves."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import pytest

from surefoot.models.names import resolve
from surefoot.models.wrapper import CircuitBreaker, Retried, circuit_of
from surefoot.types.errors import (
    ModelError,
    ModelFailureKind,
    ModelRefused,
    ModelTimeout,
    ModelUnreachable,
    TraitRefused,
)
from surefoot.types.messages import (
    CallMode,
    Emit,
    ModelMessage,
    ModelRequest,
    ModelSettings,
    ModelSignal,
    Reset,
    TextDelta,
    Traits,
    Usage,
)
from surefoot.types.ports import Model

pytestmark = pytest.mark.anyio
NOTHING = Usage()
REPLY = ModelMessage("assistant", "hi", usage=Usage(10, 2), model="m-2026")


@dataclass
class World:
    """A clock that a sleep moves, and a model that does what the script says."""

    script: list[ModelMessage | ModelError] = field(default_factory=list[ModelMessage | ModelError])
    now: float = 0.0
    slept: list[float] = field(default_factory=list[float])
    deadlines: list[float | None] = field(default_factory=list[float | None])
    takes_s: float = 0.0
    meanwhile: Callable[[], Awaitable[None]] | None = None
    shows: str = ""
    name: str = "scripted"
    modes: tuple[CallMode, ...] = ("native",)
    traits: Traits = field(default_factory=dict[str, str])

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        self.deadlines.append(request.deadline_s)
        self.now += self.takes_s
        if emit and self.shows:
            emit(TextDelta(self.shows))
        if self.meanwhile:
            await self.meanwhile()
        step = self.script.pop(0)
        if isinstance(step, ModelError):
            raise step
        return step

    async def aclose(self) -> None:
        self.name = "closed"

    def retried(self, random: float = 1.0) -> Retried:
        return Retried(self, clock=self.clock, sleep=self.sleep, random01=lambda: random)

    def breaker(self) -> CircuitBreaker:
        return CircuitBreaker(self, clock=self.clock, sleep=self.sleep)

    async def opened(self, *then: ModelMessage | ModelError) -> CircuitBreaker:
        """A breaker that has just opened, and what the model does after that."""
        self.script = [*downs(5), *then]
        breaker = self.breaker()
        await fail(breaker, 5)
        self.deadlines.clear()
        return breaker


def request(deadline_s: float | None = None, attempts: int = 3, **traits: str) -> ModelRequest:
    return ModelRequest("", (), settings=ModelSettings(attempts=attempts), deadline_s=deadline_s, traits=traits)


def failure(cls: type[ModelError] = ModelUnreachable, attempts: int = 1, usage: Usage = NOTHING) -> ModelError:
    error = cls("down")
    error.attempts, error.usage = attempts, usage
    return error


def downs(times: int) -> list[ModelMessage | ModelError]:
    return [ModelUnreachable("down") for _ in range(times)]


async def fail(model: CircuitBreaker, times: int = 1, deadline_s: float | None = None) -> None:
    for _ in range(times):
        await error_from(model, request(deadline_s))


async def error_from(model: Model, asked: ModelRequest, emit: Emit | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model.send(asked, emit)
    return caught.value


# retries


def busy(seconds: float) -> ModelError:
    return ModelUnreachable("busy", kind="rate_limited", retry_after_s=seconds)


FINAL = [
    ModelRefused("key", kind="auth"), ModelRefused("bad"), ModelRefused("long", kind="context_overflow"),
    ModelRefused("no", kind="refused"), TraitRefused("stop", "no", "x"), ModelError("stopped", kind="cancelled"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("script", "most", "random", "slept"),
    [
        *(([error, error, REPLY], 3, 1.0, [0.5, 1.0]) for error in (*downs(1), ModelTimeout("slow"), busy(0))),
        ([*downs(1), REPLY], 3, 0.0, [0.0]),  # waits are wholly random
        ([busy(60.0), REPLY], 3, 0.0, [60.0]),
        ([busy(61.0)], 3, 0.0, []),  # more than anyone should wait
        *(([error], 3, 1.0, []) for error in FINAL),
        ([*downs(1), ModelRefused("bad")], 3, 1.0, [0.5]),
        (downs(4), 4, 1.0, [0.5, 1.0, 2.0]),
        ([REPLY], 3, 1.0, []),
    ],
)
async def test_what_passes_is_tried_again_and_what_stays_is_not(
    script: list[ModelMessage | ModelError], most: int, random: float, slept: list[float]
) -> None:
    world, last = World(list(script)), script[-1]
    model, asked = world.retried(random), request(attempts=most)
    told = await error_from(model, asked) if isinstance(last, ModelError) else await model.send(asked)
    assert told is last or (told == replace(REPLY, attempts=len(script)) and len(script) > 1)
    assert (told.attempts, world.slept, world.script) == (len(script), slept, [])


async def test_the_deadline_is_never_passed() -> None:
    world = World([*downs(2), REPLY], takes_s=4.0)
    error = await error_from(world.retried(), request(deadline_s=9.0))
    assert isinstance(error, ModelUnreachable)
    assert error.attempts == 2
    assert world.deadlines == [9.0, 4.5]
    assert world.now <= 9.0


async def test_a_broken_reply_is_reset_and_counted() -> None:
    world = World([*downs(1), REPLY], shows="x" * 40)
    shown: list[ModelSignal] = []
    reply = await world.retried().send(request(), shown.append)
    assert shown == [TextDelta("x" * 40), Reset("down"), TextDelta("x" * 40)]
    assert reply.usage == Usage(10, 12, estimated=True)


async def test_nothing_shown_nothing_reset() -> None:
    shown: list[ModelSignal] = []
    await World([*downs(1), REPLY]).retried().send(request(), shown.append)
    assert shown == []


@pytest.mark.parametrize(
    ("script", "spent"),
    [
        ([*downs(1), failure(usage=Usage(5, 1))], Usage(5, 21, estimated=True)),
        ([*downs(1), failure(ModelRefused, usage=Usage(5, 1))], Usage(5, 21, estimated=True)),
        ([failure(ModelRefused)], Usage(0, 10, estimated=True)),
    ],
    ids=["passing", "final", "at once"],
)
async def test_what_failed_attempts_spent_is_told(script: list[ModelMessage | ModelError], spent: Usage) -> None:
    error = await error_from(World(script, shows="x" * 40).retried(), request(attempts=2), lambda _: None)
    assert error.usage == spent


class Silent(World):
    """A model that does what the script says, and then lets every request stand until its limit, in silence."""

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        patience = request.settings.patience(near=self.name == "near")
        limit_s = patience.silence_s(stream=request.stream)
        if self.script:
            return await super().send(request, emit)
        self.deadlines.append(limit_s)
        self.now += limit_s
        raise ModelTimeout("silent")


@pytest.mark.parametrize(
    ("stream", "near", "settings", "limits"),
    [
        (True, False, ModelSettings(), [120]),
        (False, False, ModelSettings(), [600]),
        (True, True, ModelSettings(), [600]),
        (False, True, ModelSettings(), [1800]),
        (True, False, ModelSettings(first_token_timeout_s=30), [30, 30, 30]),
        (True, False, ModelSettings(first_token_timeout_s=50), [50, 50, 18.5]),
        (True, False, ModelSettings(first_token_timeout_s=300), [300]),
        (False, False, ModelSettings(request_timeout_s=900), [900]),
        (False, False, ModelSettings(request_timeout_s=100, attempts=9), [100, 100, 100, 100, 100, 84.5]),
    ],
)
async def test_a_silent_endpoint_is_noticed_in_time(
    stream: bool, near: bool, settings: ModelSettings, limits: list[float]
) -> None:
    world = Silent(name="near" if near else "far")
    model = Retried(world, near=near, clock=world.clock, sleep=world.sleep, random01=lambda: 1.0)
    with pytest.raises(ModelTimeout) as caught:
        await model.send(ModelRequest("", (), settings=settings, stream=stream))
    assert world.deadlines == limits
    assert caught.value.waited_s == world.now
    assert str(caught.value).endswith(f"in {world.now:.1f} s)")


async def test_waits_that_a_server_asks_for_are_no_silence() -> None:
    world = Silent([ModelUnreachable("busy", kind="rate_limited", retry_after_s=50) for _ in range(2)])
    model = Retried(world, clock=world.clock, sleep=world.sleep, random01=lambda: 0.0)
    with pytest.raises(ModelTimeout):
        await model.send(replace(request(), stream=True))
    assert world.deadlines == [None, None, 120]


async def test_a_stream_that_stalls_is_asked_for_again() -> None:
    stalled = ModelTimeout("no further token")
    stalled.stalled = True
    world = World([stalled, stalled, REPLY], takes_s=100)
    assert (await world.retried().send(replace(request(), stream=True))).attempts == 3


# the breaker, closed


async def test_only_failures_that_pass_and_are_close_together_are_counted() -> None:
    kinds: list[ModelFailureKind] = ["auth", "bad_request", "context_overflow", "refused", "cancelled"]
    final = [ModelRefused("bad"), *(ModelError("no", kind=kind) for kind in kinds)]
    world = World([*downs(4), *final, *downs(1), REPLY])
    breaker = world.breaker()
    await fail(breaker, 4 + len(final))
    world.now += 61
    await fail(breaker)
    assert await breaker.send(request()) is REPLY
    assert world.slept == []


async def test_running_out_of_the_runs_time_is_no_failure() -> None:
    world = World([*(ModelTimeout("late") for _ in range(6)), REPLY], takes_s=1.0)
    breaker = world.breaker()
    await fail(breaker, 6, deadline_s=1.0)
    assert await breaker.send(request()) is REPLY


# open


@pytest.mark.parametrize(("deadline_s", "left_s"), [(None, None), (100.0, 80.0)])
async def test_while_open_a_request_waits_for_the_probe_that_it_then_is(
    deadline_s: float | None, left_s: float | None
) -> None:
    world = World()
    breaker = await world.opened(REPLY)
    world.now += 10
    assert await breaker.send(request(deadline_s)) is REPLY
    assert (world.slept, world.deadlines) == ([20.0], [left_s])


async def test_a_request_whose_deadline_comes_first_fails_at_once() -> None:
    world = World()
    breaker = await world.opened()
    world.now += 10
    with pytest.raises(
        ModelUnreachable, match="left alone for 20 s; look at its server, or name another model behind it"
    ) as caught:
        await breaker.send(request(deadline_s=20.0))
    assert (caught.value.kind, caught.value.retry_after_s) == ("unavailable", 20.0)
    assert (world.slept, world.deadlines) == ([], [])


async def test_a_wait_can_be_cancelled() -> None:
    world, never = World(downs(5)), asyncio.Event()
    breaker = CircuitBreaker(world, clock=world.clock, sleep=lambda _: never.wait())
    await fail(breaker, 5)
    waiting = asyncio.ensure_future(breaker.send(request()))
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


# half-open


async def test_one_probe_closes_it_or_opens_it_again() -> None:
    world = World()
    breaker = await world.opened(*downs(1), REPLY, REPLY)
    world.now += 30
    await fail(breaker)  # the probe
    world.now += 29
    await fail(breaker, deadline_s=1.0)  # not asked
    assert len(world.deadlines) == 1
    world.now += 1
    assert await breaker.send(request()) is REPLY
    assert await breaker.send(request()) is REPLY
    assert world.slept == []


async def test_while_a_probe_is_out_nobody_else_asks() -> None:
    world = World()
    breaker = await world.opened(REPLY)
    world.now += 30

    async def ask_too() -> None:
        with pytest.raises(ModelUnreachable, match="left alone for 1 s"):
            await breaker.send(request(deadline_s=1.0))

    world.meanwhile = ask_too
    assert await breaker.send(request()) is REPLY


async def both(breaker: CircuitBreaker, deadline_s: float | None = None) -> list[object]:
    asked = (request(deadline_s), request())
    return [*await asyncio.gather(*map(breaker.send, asked), return_exceptions=True)]


@pytest.mark.parametrize(
    ("then", "deadline_s", "told", "asked"),
    [
        ([REPLY, REPLY], None, ["hi", "hi"], 2),
        (downs(1), None, ["left alone for", "down"], 1),  # for one probe and no longer
        ([*downs(1), REPLY], 200.0, ["hi", "down"], 2),
    ],
    ids=["it answers", "it fails", "it fails, and there is time"],
)
async def test_who_waits_for_another_ones_probe(
    then: list[ModelMessage | ModelError], deadline_s: float | None, told: list[str], asked: int
) -> None:
    world = World(meanwhile=lambda: asyncio.sleep(0))
    breaker = await world.opened(*then)  # the first one waits, and the second finds the circuit half open by then
    found = await both(breaker, deadline_s)
    assert all(words in str(one) for words, one in zip(told, found, strict=True)), found
    assert len(world.deadlines) == asked


async def test_an_answer_that_refuses_closes_it_too() -> None:
    world = World()
    breaker = await world.opened(ModelRefused("bad"), REPLY)
    world.now += 30
    with pytest.raises(ModelRefused):
        await breaker.send(request())
    assert await breaker.send(request()) is REPLY


async def test_a_cancelled_probe_lets_the_next_one_try() -> None:
    world = World()
    breaker = await world.opened(REPLY)
    world.now += 30
    world.meanwhile = lambda: asyncio.sleep(3600)
    probe = asyncio.ensure_future(breaker.send(request()))
    await asyncio.sleep(0)
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    world.meanwhile = None
    assert await breaker.send(request()) is REPLY
    assert world.slept == []


# around it


async def test_it_names_what_it_wraps_and_closes_it() -> None:
    world = World()
    breaker = CircuitBreaker(Retried(world))
    assert (breaker.name, breaker.modes, breaker.traits) == ("scripted", ("native",), {})
    await breaker.aclose()
    assert world.name == "closed"


async def test_one_that_another_model_stands_behind_is_not_waited_for() -> None:
    world = World()
    open_now = (await world.opened(REPLY)).circuit
    breaker = CircuitBreaker(world, waits=False, circuit=open_now, clock=world.clock, sleep=world.sleep)
    with pytest.raises(ModelUnreachable, match="left alone for 30 s"):
        await breaker.send(request())
    assert world.slept == []


# shared


async def test_all_who_ask_one_endpoint_share_its_circuit() -> None:
    asked = (resolve(f"http://localhost:9/v1#{name}", environment={}) for name in "mmn")
    one, other, elsewhere = (model.circuit for model in asked if isinstance(model, CircuitBreaker))
    assert one is other
    assert one is not elsewhere


async def test_what_one_breaker_found_out_spares_the_other() -> None:
    world = World()
    breaker = await world.opened(REPLY)
    other = CircuitBreaker(world, circuit=breaker.circuit, clock=world.clock, sleep=world.sleep)
    with pytest.raises(ModelUnreachable, match="left alone"):
        await other.send(request(deadline_s=1.0))
    assert await other.send(request()) is REPLY
    assert not breaker.circuit.is_blocked(world.now)


def test_a_circuit_is_forgotten_with_the_last_who_ask() -> None:
    circuit = circuit_of("test shared")
    circuit.count(0.0, is_probe=True)
    assert circuit_of("test shared").is_blocked(1.0)
    del circuit
    gc.collect()
    assert not circuit_of("test shared").is_blocked(1.0)
