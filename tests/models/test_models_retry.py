from dataclasses import dataclass, field, replace

import pytest

from surefoot.models.retry import Retried
from surefoot.types.errors import ModelError, ModelRefused, ModelTimeout, ModelUnreachable, TraitRefused
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

pytestmark = pytest.mark.anyio
REPLY = ModelMessage("assistant", "hi", usage=Usage(10, 2))


@dataclass
class World:
    """A clock that a sleep moves, and a model that does what the script says."""

    script: list[ModelMessage | ModelError] = field(default_factory=list[ModelMessage | ModelError])
    now: float = 0.0
    slept: list[float] = field(default_factory=list[float])
    deadlines: list[float | None] = field(default_factory=list[float | None])
    takes_s: float = 0.0
    shows: str = ""
    name: str = "scripted"
    modes: tuple[CallMode, ...] = ("native",)
    traits: Traits = field(default_factory=dict[str, str])

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        self.deadlines.append(request.deadline_s)
        self.now += self.takes_s
        if emit and self.shows:
            emit(TextDelta(self.shows))
        step = self.script.pop(0)
        if isinstance(step, ModelError):
            raise step
        return step

    async def aclose(self) -> None:
        self.name = "closed"

    def retried(self, random: float = 1.0) -> Retried:
        return Retried(self, clock=self.clock, sleep=self.sleep, random01=lambda: random)


def request(deadline_s: float | None = None, attempts: int = 3) -> ModelRequest:
    return ModelRequest("", (), settings=ModelSettings(attempts=attempts), deadline_s=deadline_s)


def down() -> ModelUnreachable:
    return ModelUnreachable("down")


@pytest.mark.parametrize(
    "error", [down(), ModelTimeout("slow"), ModelUnreachable("busy", kind="rate_limited")], ids=lambda e: e.kind
)
async def test_what_passes_is_tried_again(error: ModelError) -> None:
    world = World([error, error, REPLY])
    reply = await world.retried().send(request())
    assert (reply.content, reply.attempts) == ("hi", 3)
    assert world.slept == [0.5, 1.0]


@pytest.mark.parametrize(
    "error",
    [
        ModelRefused("key", kind="auth"),
        ModelRefused("bad"),
        ModelRefused("long", kind="context_overflow"),
        ModelRefused("no", kind="refused"),
        TraitRefused("stop", "no", "x"),
        ModelError("stopped", kind="cancelled"),
    ],
    ids=lambda e: f"{type(e).__name__}-{e.kind}",
)
async def test_what_stays_is_not_tried_again(error: ModelError) -> None:
    world = World([error])
    with pytest.raises(type(error)) as caught:
        await world.retried().send(request())
    assert caught.value.attempts == 1
    assert world.slept == []


async def test_the_reply_of_a_first_attempt_is_handed_on_as_it_is() -> None:
    assert await World([REPLY]).retried().send(request()) is REPLY


async def test_the_last_error_tells_the_attempts() -> None:
    world = World([down() for _ in range(5)])
    with pytest.raises(ModelUnreachable) as caught:
        await world.retried().send(request(attempts=4))
    assert caught.value.attempts == 4
    assert world.slept == [0.5, 1.0, 2.0]


async def test_a_refusal_after_a_failure_tells_the_attempts() -> None:
    world = World([down(), ModelRefused("bad")])
    with pytest.raises(ModelRefused) as caught:
        await world.retried().send(request())
    assert caught.value.attempts == 2


async def test_waits_are_wholly_random() -> None:
    world = World([down(), REPLY])
    await world.retried(random=0.0).send(request())
    assert world.slept == [0.0]


async def test_retry_after_is_kept_up_to_a_minute() -> None:
    world = World([ModelUnreachable("busy", kind="rate_limited", retry_after_s=60.0), REPLY])
    await world.retried(random=0.0).send(request())
    assert world.slept == [60.0]
    world = World([ModelUnreachable("busy", kind="rate_limited", retry_after_s=61.0), REPLY])
    with pytest.raises(ModelUnreachable) as caught:
        await world.retried().send(request())
    assert caught.value.retry_after_s == 61.0


async def test_the_deadline_is_never_passed() -> None:
    world = World([down(), down(), REPLY], takes_s=4.0)
    with pytest.raises(ModelUnreachable) as caught:
        await world.retried().send(request(deadline_s=9.0))
    assert caught.value.attempts == 2
    assert world.deadlines == [9.0, 4.5]
    assert world.now <= 9.0


async def test_a_broken_reply_is_reset_and_counted() -> None:
    world = World([down(), REPLY], shows="x" * 40)
    shown: list[ModelSignal] = []
    reply = await world.retried().send(request(), shown.append)
    assert shown == [TextDelta("x" * 40), Reset("down"), TextDelta("x" * 40)]
    assert reply.usage == Usage(10, 12, estimated=True)


async def test_nothing_shown_nothing_reset() -> None:
    shown: list[ModelSignal] = []
    await World([down(), REPLY]).retried().send(request(), shown.append)
    assert shown == []


@pytest.mark.parametrize("last", [ModelUnreachable("down"), ModelRefused("bad")], ids=["passing", "final"])
async def test_what_failed_attempts_spent_is_told_when_the_last_one_fails_too(last: ModelError) -> None:
    last.usage = Usage(5, 1)
    world = World([down(), last], shows="x" * 40)
    with pytest.raises(type(last)) as caught:
        await world.retried().send(request(attempts=2), lambda _: None)
    assert caught.value.usage == Usage(5, 21, estimated=True)


async def test_what_a_first_attempt_spent_is_told_when_it_is_final() -> None:
    world = World([ModelRefused("filtered")], shows="x" * 40)
    with pytest.raises(ModelRefused) as caught:
        await world.retried().send(request(), lambda _: None)
    assert caught.value.usage == Usage(0, 10, estimated=True)


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
