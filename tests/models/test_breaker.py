"""The circuit breaker: all its states on a clock that only a sleep moves."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from itertools import cycle

import pytest

from surefoot.models.breaker import CircuitBreaker
from surefoot.models.circuit import circuit_of
from surefoot.models.providers import identity_of, resolve
from surefoot.models.retry import Retried
from surefoot.testing.models import FunctionModel, Scripted, ScriptedModel
from surefoot.types.errors import (
    ModelError,
    ModelFailureKind,
    ModelRefused,
    ModelTimeout,
    ModelUnreachable,
    TraitRefused,
    UsageError,
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

    def breaker(self, fallback: Model | None = None) -> CircuitBreaker:
        return CircuitBreaker(self, fallback=fallback, clock=self.clock, sleep=self.sleep)

    async def opened(self, *then: ModelMessage | ModelError, fallback: Model | None = None) -> CircuitBreaker:
        """A breaker that has just opened, and what the model does after that."""
        self.script = [*downs(5), *then]
        breaker = self.breaker(fallback)
        await fail(breaker, 4)
        if fallback is None:
            await fail(breaker)
        else:
            await breaker.send(request())
        self.deadlines.clear()
        return breaker


def request(deadline_s: float | None = None, mode: CallMode = "native", **traits: str) -> ModelRequest:
    return ModelRequest("", (), mode, deadline_s=deadline_s, traits=traits)


def downs(times: int) -> list[ModelMessage | ModelError]:
    return [ModelUnreachable("down") for _ in range(times)]


async def fail(model: CircuitBreaker, times: int = 1, deadline_s: float | None = None) -> None:
    for _ in range(times):
        with pytest.raises(ModelError):
            await model.send(request(deadline_s=deadline_s))


# closed


async def test_it_stays_closed_when_failures_are_rare_or_final() -> None:
    world = World([*downs(4), *(ModelRefused("bad") for _ in range(9)), *downs(1), REPLY])
    breaker = world.breaker()
    await fail(breaker, 4)
    await fail(breaker, 9)
    world.now += 61
    await fail(breaker)
    assert await breaker.send(request()) is REPLY
    assert world.slept == []


async def test_only_failures_that_pass_are_counted() -> None:
    kinds: list[ModelFailureKind] = ["auth", "bad_request", "context_overflow", "refused", "cancelled"]
    world = World(
        [*(ModelError("no", kind=kind) for kind in kinds), *(ModelError("no", kind="auth") for _ in range(5))]
    )
    breaker = world.breaker()
    await fail(breaker, 10)
    world.script = [REPLY]
    assert await breaker.send(request()) is REPLY
    assert world.slept == []


async def test_running_out_of_the_runs_time_is_no_failure() -> None:
    world = World([*(ModelTimeout("late") for _ in range(6)), REPLY], takes_s=1.0)
    breaker = world.breaker()
    await fail(breaker, 6, deadline_s=1.0)
    assert await breaker.send(request()) is REPLY


async def test_a_fallback_is_not_asked_while_the_circuit_is_closed() -> None:
    world, other = World([*downs(4), REPLY]), ScriptedModel([])
    breaker = world.breaker(other)
    await fail(breaker, 4)
    assert await breaker.send(request()) is REPLY
    assert other.requests == []


# open, without a fallback


async def test_while_open_a_request_waits_for_the_probe_that_it_then_is() -> None:
    world = World()
    breaker = await world.opened(REPLY)
    world.now += 10
    assert await breaker.send(request()) is REPLY
    assert world.slept == [20.0]
    assert world.deadlines == [None]


async def test_a_request_that_waited_is_told_what_is_left_of_its_time() -> None:
    world = World()
    breaker = await world.opened(REPLY)
    assert await breaker.send(request(deadline_s=100.0)) is REPLY
    assert world.deadlines == [70.0]


async def test_a_request_whose_deadline_comes_first_fails_at_once() -> None:
    world = World()
    breaker = await world.opened()
    world.now += 10
    with pytest.raises(ModelUnreachable, match="left alone for 20 s; look at its server, or name a fallback") as caught:
        await breaker.send(request(deadline_s=20.0))
    assert (caught.value.kind, caught.value.retry_after_s) == ("unavailable", 20.0)
    assert (world.slept, world.deadlines) == ([], [])


async def test_a_wait_can_be_cancelled() -> None:
    world = World()
    breaker = await world.opened()
    never = asyncio.Event()
    breaker = CircuitBreaker(world, clock=world.clock, sleep=lambda _: never.wait())
    world.script = downs(5)
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


async def both(breaker: CircuitBreaker) -> tuple[ModelMessage | BaseException, ModelMessage | BaseException]:
    return await asyncio.gather(breaker.send(request()), breaker.send(request()), return_exceptions=True)


async def test_who_waits_for_another_ones_probe_goes_on_when_it_answers() -> None:
    world = World(meanwhile=lambda: asyncio.sleep(0))
    breaker = await world.opened(REPLY, REPLY)
    first, second = await both(breaker)
    assert (first, second) == (REPLY, REPLY)
    assert len(world.deadlines) == 2


async def test_who_waits_without_a_deadline_waits_for_one_probe_and_no_longer() -> None:
    world = World(meanwhile=lambda: asyncio.sleep(0))
    breaker = await world.opened(*downs(1))
    other, probe = await both(breaker)  # the first one waits, and the second finds the circuit half open by then
    assert str(probe) == "down"
    assert "left alone for" in str(other)
    assert len(world.deadlines) == 1


async def test_who_waits_with_a_deadline_waits_for_the_next_probe_too() -> None:
    world = World(meanwhile=lambda: asyncio.sleep(0))
    breaker = await world.opened(*downs(1), REPLY)
    other, probe = await asyncio.gather(
        breaker.send(request(deadline_s=200.0)), breaker.send(request()), return_exceptions=True
    )
    assert str(probe) == "down"
    assert other is REPLY


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
    never = asyncio.Event()

    async def wait_for_ever() -> None:
        await never.wait()

    world.meanwhile = wait_for_ever
    probe = asyncio.ensure_future(breaker.send(request()))
    await asyncio.sleep(0)
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    world.meanwhile = None
    assert await breaker.send(request()) is REPLY
    assert world.slept == []


# open, with a fallback


async def test_while_open_the_fallback_answers_and_the_message_says_so() -> None:
    world = World()
    other = FunctionModel(lambda _: ModelMessage("assistant", "I stand in", model="other-7b"), name="test:other")
    breaker = await world.opened(REPLY, fallback=other)
    reply = await breaker.send(request())
    assert (reply.content, reply.model) == ("I stand in", "other-7b")
    assert (world.slept, world.deadlines) == ([], [])
    world.now += 30
    assert await breaker.send(request()) is REPLY  # the probe


async def test_a_fallback_that_does_not_report_its_model_is_told_by_its_name() -> None:
    world = World()
    breaker = await world.opened(fallback=FunctionModel(lambda _: "hello", name="test:other"))
    assert (await breaker.send(request())).model == "test:other"


async def test_a_request_that_leaves_the_circuit_open_is_answered_by_the_fallback() -> None:
    shown: list[ModelSignal] = []
    other = FunctionModel(lambda _: ModelMessage("assistant", "here", usage=Usage(3, 1)), name="test:other")
    failure = ModelUnreachable("down")
    failure.attempts, failure.usage = 3, Usage(output_tokens=4, estimated=True)
    world = World([*downs(4), failure, *downs(1)], shows="brok")
    breaker = world.breaker(other)
    await fail(breaker, 4)
    reply = await breaker.send(request(), shown.append)
    assert (reply.content, reply.attempts, reply.usage) == ("here", 4, Usage(3, 5, estimated=True))
    assert shown == [TextDelta("brok"), Reset("down"), TextDelta("here ")]
    world.now += 30
    assert (await breaker.send(request())).content == "here"  # a probe that fails


async def test_the_fallback_is_spoken_to_by_its_own_traits_and_what_it_refuses_is_learnt_of_it_alone() -> None:
    def reply(asked: ModelRequest) -> Scripted:
        return "yes" if asked.traits.get("seed") == "no" else TraitRefused("seed", "no", "no seed here")

    world, other = World(), FunctionModel(reply, traits={"stop": "no"})
    breaker = await world.opened(fallback=other)
    assert (await breaker.send(request(temperature="no"))).content == "yes"
    assert [dict(asked.traits) for asked in other.requests] == [
        {"stop": "no"},
        {"stop": "no", "seed": "no"},
        {"stop": "no", "seed": "no"},
    ]


async def test_a_fallback_that_refuses_the_same_part_for_ever_ends_the_request() -> None:
    world = World(downs(5))
    breaker = world.breaker(FunctionModel(lambda _: TraitRefused("stop", "no", "still")))
    await fail(breaker, 4)
    with pytest.raises(ModelRefused, match="still"):
        await breaker.send(request())


@pytest.mark.parametrize("values", [("no", "yes"), tuple(str(n) for n in range(1000))], ids=["in turns", "ever new"])
async def test_a_fallback_that_changes_its_mind_for_ever_ends_the_request(values: tuple[str, ...]) -> None:
    turns = cycle(values)
    other = FunctionModel(lambda _: TraitRefused("stop", next(turns), "still"))
    world = World(downs(5))
    breaker = world.breaker(other)
    await fail(breaker, 4)
    with pytest.raises(ModelRefused, match="still"):
        await breaker.send(request())
    assert len(other.requests) <= 32


async def test_each_try_of_the_fallback_is_told_what_is_left_of_the_time() -> None:
    world, other = (
        World(),
        World(
            [TraitRefused("stop", "no", "x"), TraitRefused("seed", "no", "x"), REPLY], takes_s=4.0, name="test:other"
        ),
    )
    breaker = await world.opened(fallback=FunctionModel(lambda _: "x"))
    breaker = CircuitBreaker(world, fallback=other, circuit=breaker.circuit, clock=lambda: world.now + other.now)
    with pytest.raises(ModelTimeout, match="test:other refused"):
        await breaker.send(request(deadline_s=7.0))
    assert other.deadlines == [7.0, 3.0]


async def test_prices_and_extra_of_a_model_are_not_for_its_fallback() -> None:
    world, other = World(), FunctionModel(lambda _: "x")
    breaker = await world.opened(fallback=other)
    settings = ModelSettings(temperature=0.5, price_in=1.0, price_out=2.0, extra={"top_k": 1})
    await breaker.send(replace(request(), settings=settings))
    assert other.requests[-1].settings == ModelSettings(temperature=0.5)


async def test_what_was_spent_is_told_when_the_fallback_fails_too() -> None:
    def failing(asked: ModelRequest) -> ModelError:
        error = ModelUnreachable("down too") if "stop" in asked.traits else TraitRefused("stop", "no", "x")
        error.usage = Usage(0, 1)
        return error

    failure = ModelUnreachable("down")
    failure.attempts, failure.usage = 3, Usage(10, 20)
    world = World([*downs(4), failure])
    breaker = world.breaker(FunctionModel(failing))
    await fail(breaker, 4)
    with pytest.raises(ModelUnreachable, match="down too") as caught:
        await breaker.send(request())
    assert (caught.value.usage, caught.value.attempts) == (Usage(10, 22), 4)


@pytest.mark.parametrize("then", [downs(1), [REPLY]], ids=["fails", "replies"])
async def test_what_a_fallback_spent_in_vain_is_told(then: list[ModelMessage | ModelError]) -> None:
    refusal = TraitRefused("native_tools", "no", "none")
    refusal.usage = Usage(1, 1)
    world = World([*downs(5), *then])
    breaker = CircuitBreaker(world, clock=world.clock, sleep=world.sleep)
    await fail(breaker, 5)
    other = FunctionModel(lambda _: refusal)
    breaker = CircuitBreaker(world, fallback=other, circuit=breaker.circuit, clock=world.clock, sleep=world.sleep)
    if then == [REPLY]:
        assert (await breaker.send(request())).usage == REPLY.usage + Usage(1, 1)
        return
    with pytest.raises(ModelUnreachable) as caught:
        await breaker.send(request())
    assert caught.value.usage == Usage(1, 1)


@pytest.mark.parametrize(
    "other",
    [
        FunctionModel(lambda _: "never", name="test:text", modes=("text",)),
        FunctionModel(lambda _: "never", name="test:text", traits={"native_tools": "no"}),
        FunctionModel(lambda _: TraitRefused("native_tools", "no", "none"), name="test:text"),
    ],
    ids=["its wire cannot", "known not to", "learnt now"],
)
async def test_a_request_in_a_mode_that_the_fallback_cannot_carry_is_not_answered_by_it(other: FunctionModel) -> None:
    world = World([*downs(5), REPLY])
    breaker = world.breaker(other)
    await fail(breaker, 5)
    told = "its fallback test:text cannot be spoken to in call mode 'native': name one that can"
    with pytest.raises(ModelUnreachable, match=told):
        await breaker.send(request(deadline_s=10.0))
    assert await breaker.send(request()) is REPLY  # it waits, as without a fallback
    assert world.slept == [30.0]
    assert len(other.requests) <= 1


async def test_when_the_fallback_fails_too_the_request_fails_with_its_error() -> None:
    world = World(downs(5))
    breaker = world.breaker(FunctionModel(lambda _: ModelRefused("no such key", kind="auth")))
    await fail(breaker, 4)
    with pytest.raises(ModelRefused, match="no such key"):
        await breaker.send(request())


# around it


async def test_it_names_what_it_wraps_and_closes_the_fallback_too() -> None:
    world, other = World(), World()
    breaker = CircuitBreaker(Retried(world), fallback=other)
    assert (breaker.name, breaker.modes, breaker.traits) == ("scripted", ("native",), {})
    await breaker.aclose()
    assert (world.name, other.name) == ("closed", "closed")


async def test_a_fallback_is_named_as_any_model() -> None:
    model = resolve("ollama:qwen3:8b", fallback="http://localhost:9/v1#small", environment={})
    assert (model.name, identity_of(model)) == ("ollama:qwen3:8b", identity_of(resolve("ollama:qwen3:8b")))
    assert isinstance(model, CircuitBreaker)
    assert model.fallback is not None
    assert model.fallback.name == "http://localhost:9/v1#small"


def test_a_fallback_that_cannot_be_is_told_at_once() -> None:
    with pytest.raises(UsageError, match="no model name"):
        resolve("ollama:m", fallback="nothing", environment={})
    with pytest.raises(UsageError, match="needs no fallback"):
        resolve("local", fallback="ollama:m", environment={})


# shared


async def test_all_who_ask_one_endpoint_share_its_circuit() -> None:
    one, other = (resolve("http://localhost:9/v1#m", environment={}) for _ in range(2))
    elsewhere = resolve("http://localhost:9/v1#n", environment={})
    assert isinstance(one, CircuitBreaker)
    assert isinstance(other, CircuitBreaker)
    assert isinstance(elsewhere, CircuitBreaker)
    assert one.circuit is other.circuit
    assert one.circuit is not elsewhere.circuit


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
