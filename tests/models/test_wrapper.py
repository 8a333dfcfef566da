"""Retries and the circuit breaker: all their states on a clock that only a sleep moves."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from cases import cases
from surefoot.models.names import resolve
from surefoot.models.wrapper import CircuitBreaker, Retried, circuit_of
from surefoot.types import messages
from surefoot.types.errors import ModelError, ModelRefused, ModelTimeout, ModelUnreachable, TraitRefused
from surefoot.types.messages import ModelMessage, ModelRequest, ModelSettings, Reset, TextDelta, Usage
from surefoot.types.ports import Model

pytestmark = pytest.mark.anyio
REPLY = ModelMessage("assistant", "hi", usage=Usage(10, 2), model="m-2026")
Step = ModelMessage | ModelError


def steps(words: str) -> list[Step]:
    """What a model does: "ok", "down", "slow", "late", "stalled", "busy:SECONDS", or a refusal of that kind."""
    return [*map(step, words.split())]


def step(word: str) -> Step:
    kind, _, seconds = word.partition(":")
    match kind:
        case "ok":
            return REPLY
        case "down":
            return ModelUnreachable("down")
        case "busy":
            return ModelUnreachable("busy", kind="rate_limited", retry_after_s=float(seconds))
        case "slow" | "stalled":
            error = ModelTimeout(kind)
            error.stalled = kind == "stalled"
            return error
        case "trait":
            return TraitRefused("stop", "no", "x")
        case "cancelled":
            return ModelError("stopped", kind="cancelled")
        case _:
            return ModelRefused(kind, kind=kind)  # pyright: ignore[reportArgumentType]  # a kind of failure


@dataclass
class World:
    """A clock that a sleep moves, and a model that does what the script says."""

    script: list[Step] = field(default_factory=list[Step])
    now: float = 0.0
    slept: list[float] = field(default_factory=list[float])
    deadlines: list[float | None] = field(default_factory=list[float | None])
    takes_s: float = 0.0
    meanwhile: Callable[[], Awaitable[None]] | None = None
    shows: str = ""
    name: str = "scripted"
    modes: tuple[messages.CallMode, ...] = ("native",)
    traits: messages.Traits = field(default_factory=dict[str, str])

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    async def send(self, request: ModelRequest, emit: messages.Emit | None = None) -> ModelMessage:
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

    async def opened(self, then: str = "") -> CircuitBreaker:
        """A breaker that has just opened, and what the model does after that."""
        self.script = steps(f"{DOWNS} {then}")
        breaker = self.breaker()
        await fail(breaker, 5)
        self.deadlines.clear()
        return breaker


DOWNS = "down down down down down"


def request(deadline_s: float | None = None, attempts: int = 3) -> ModelRequest:
    return ModelRequest("", (), settings=ModelSettings(attempts=attempts), deadline_s=deadline_s)


async def fail(model: CircuitBreaker, times: int = 1, deadline_s: float | None = None) -> None:
    for _ in range(times):
        await error_from(model, request(deadline_s))


async def error_from(model: Model, asked: ModelRequest, emit: messages.Emit | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model.send(asked, emit)
    return caught.value


# retries


@cases("models/wrapper")
async def test_what_passes_is_tried_again_and_what_stays_is_not(
    script: str, most: int, random: float, slept: Sequence[float]
) -> None:
    world = World(steps(script))
    last, count = world.script[-1], len(world.script)
    model, asked = world.retried(random), request(attempts=most)
    told = await error_from(model, asked) if isinstance(last, ModelError) else await model.send(asked)
    assert told is last or (told == replace(REPLY, attempts=count) and count > 1)
    assert (told.attempts, world.slept, world.script) == (count, [*slept], [])


async def test_the_deadline_is_never_passed() -> None:
    world = World(steps("down down ok"), takes_s=4.0)
    error = await error_from(world.retried(), request(deadline_s=9.0))
    assert isinstance(error, ModelUnreachable)
    assert error.attempts == 2
    assert world.deadlines == [9.0, 4.5]
    assert world.now <= 9.0


@pytest.mark.parametrize("shows", ["x" * 40, ""])
async def test_a_broken_reply_is_reset_and_counted(shows: str) -> None:
    world, shown = World(steps("down ok"), shows=shows), list[messages.ModelSignal]()
    reply = await world.retried().send(request(), shown.append)
    assert shown == ([TextDelta(shows), Reset("down"), TextDelta(shows)] if shows else [])
    assert reply.usage == (Usage(10, 12, estimated=True) if shows else Usage(10, 2))


@cases("models/wrapper")
async def test_what_failed_attempts_spent_is_told(script: str, spent: int, shown: int) -> None:
    world = World(steps(script), shows="x" * 40)
    if spent and isinstance(last := world.script[-1], ModelError):
        last.usage = Usage(spent, 1)
    error = await error_from(world.retried(), request(attempts=2), lambda _: None)
    assert error.usage == Usage(spent, shown, estimated=True)


class Silent(World):
    """A model that does what the script says, and then lets every request stand until its limit, in silence."""

    async def send(self, request: ModelRequest, emit: messages.Emit | None = None) -> ModelMessage:
        patience = request.settings.patience(near=self.name == "near")
        limit_s = patience.silence_s(stream=request.stream)
        if self.script:
            return await super().send(request, emit)
        self.deadlines.append(limit_s)
        self.now += limit_s
        raise ModelTimeout("silent")


@cases("models/wrapper")
async def test_a_silent_endpoint_is_noticed_in_time(
    stream: bool, near: bool, given: Mapping[str, Any], limits: Sequence[float]
) -> None:
    settings = ModelSettings(**given)
    world = Silent(name="near" if near else "far")
    model = Retried(world, near=near, clock=world.clock, sleep=world.sleep, random01=lambda: 1.0)
    with pytest.raises(ModelTimeout) as caught:
        await model.send(ModelRequest("", (), settings=settings, stream=stream))
    assert world.deadlines == [*limits]
    assert caught.value.waited_s == world.now
    assert str(caught.value).endswith(f"in {world.now:.1f} s)")


async def test_waits_that_a_server_asks_for_are_no_silence() -> None:
    world = Silent(steps("busy:50 busy:50"))
    model = Retried(world, clock=world.clock, sleep=world.sleep, random01=lambda: 0.0)
    with pytest.raises(ModelTimeout):
        await model.send(replace(request(), stream=True))
    assert world.deadlines == [None, None, 120]


async def test_a_stream_that_stalls_is_asked_for_again() -> None:
    world = World(steps("stalled stalled ok"), takes_s=100)
    assert (await world.retried().send(replace(request(), stream=True))).attempts == 3


# the breaker, closed


async def test_only_failures_that_pass_and_are_close_together_are_counted() -> None:
    world = World(steps("down down down down auth bad_request context_overflow refused cancelled down ok"))
    breaker = world.breaker()
    await fail(breaker, 9)
    world.now += 61
    await fail(breaker)
    assert await breaker.send(request()) is REPLY
    assert world.slept == []


async def test_running_out_of_the_runs_time_is_no_failure() -> None:
    world = World(steps("slow slow slow slow slow slow ok"), takes_s=1.0)
    breaker = world.breaker()
    await fail(breaker, 6, deadline_s=1.0)
    assert await breaker.send(request()) is REPLY


# open


@pytest.mark.parametrize(("deadline_s", "left_s"), [(None, None), (100.0, 80.0)])
async def test_while_open_a_request_waits_for_the_probe_that_it_then_is(
    deadline_s: float | None, left_s: float | None
) -> None:
    world = World()
    breaker = await world.opened("ok")
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
    world, never = World(steps(DOWNS)), asyncio.Event()
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
    breaker = await world.opened("down ok ok")
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
    breaker = await world.opened("ok")
    world.now += 30

    async def ask_too() -> None:
        with pytest.raises(ModelUnreachable, match="left alone for 1 s"):
            await breaker.send(request(deadline_s=1.0))

    world.meanwhile = ask_too
    assert await breaker.send(request()) is REPLY


@cases("models/wrapper")
async def test_who_waits_for_another_ones_probe(
    then: str, deadline_s: float | None, told: Sequence[str], asked: int
) -> None:
    world = World(meanwhile=lambda: asyncio.sleep(0))
    breaker = await world.opened(then)  # the first one waits, and the second finds the circuit half open by then
    requests = (request(deadline_s), request())
    found = await asyncio.gather(*map(breaker.send, requests), return_exceptions=True)
    assert all(words in str(one) for words, one in zip(told, found, strict=True)), found
    assert len(world.deadlines) == asked


async def test_an_answer_that_refuses_closes_it_too() -> None:
    world = World()
    breaker = await world.opened("bad_request ok")
    world.now += 30
    with pytest.raises(ModelRefused):
        await breaker.send(request())
    assert await breaker.send(request()) is REPLY


async def test_a_cancelled_probe_lets_the_next_one_try() -> None:
    world = World()
    breaker = await world.opened("ok")
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


# shared


async def test_all_who_ask_one_endpoint_share_its_circuit() -> None:
    asked = (resolve(f"http://localhost:9/v1#{name}", environment={}) for name in "mmn")
    one, other, elsewhere = (model.circuit for model in asked if isinstance(model, CircuitBreaker))
    assert one is other
    assert one is not elsewhere


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "another model stands behind it"])
async def test_what_one_breaker_found_out_spares_the_other(waits: bool) -> None:
    world = World()
    breaker = await world.opened("ok")
    other = CircuitBreaker(world, waits=waits, circuit=breaker.circuit, clock=world.clock, sleep=world.sleep)
    with pytest.raises(ModelUnreachable, match="left alone for 30 s"):
        await other.send(request(deadline_s=1.0 if waits else None))
    assert world.slept == []
    if not waits:
        return
    assert await other.send(request()) is REPLY
    assert not breaker.circuit.is_blocked(world.now)


def test_a_circuit_is_forgotten_with_the_last_who_ask() -> None:
    circuit = circuit_of("test shared")
    circuit.count(0.0, is_probe=True)
    assert circuit_of("test shared").is_blocked(1.0)
    del circuit
    gc.collect()
    assert not circuit_of("test shared").is_blocked(1.0)
