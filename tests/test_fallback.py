"""Several models, each of which goes on when the one before it fails; and a limit of cost that holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from records import events_of
from surefoot import (
    Agent,
    Budget,
    LoopConfig,
    MemoryJournal,
    ModelMessage,
    ModelService,
    ModelSettings,
    Task,
    UsageError,
    tool,
)
from surefoot.core.loop.fold import fold
from surefoot.models.http_model import price_of
from surefoot.models.names import resolve
from surefoot.testing.cassette import Cassette
from surefoot.testing.journals import Crash, CrashingStore
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.types.errors import ModelError, ModelRefused, ModelUnreachable
from surefoot.types.events import Event, ModelFailed
from surefoot.types.messages import CallMode, Emit, ModelRequest, Reset, TextDelta, Usage
from surefoot.types.plan import PlanStep

pytestmark = pytest.mark.anyio


@tool(effect="read")
def look(at: str) -> str:
    """Look at something."""
    return f"{at} is blue"


def down(kind: str = "unavailable") -> ModelError:
    error = ModelRefused("down", kind=kind) if kind != "unavailable" else ModelUnreachable("down")  # pyright: ignore[reportArgumentType]
    error.usage = Usage(0, 4)
    return error


def scripted(name: str, *replies: Scripted, modes: tuple[str, ...] = ("native",), **traits: str) -> FunctionModel:
    left = iter(replies)
    return FunctionModel(lambda _: next(left), name=name, modes=modes, traits=traits)  # pyright: ignore[reportArgumentType]


def failures(events: list[Event]) -> list[tuple[str, str]]:
    return [(e.kind, e.instead.model if e.instead else "") for e in events if isinstance(e, ModelFailed)]


@pytest.mark.parametrize("kind", ["unavailable", "auth", "bad_request", "timeout", "rate_limited"])
async def test_the_next_goes_on_where_the_one_before_it_failed(kind: str) -> None:
    first, third = scripted("test:a", calls(("look", {"at": "sky"})), down(kind)), scripted("test:c", "It is blue.")
    second, store = scripted("test:b", down(kind)), MemoryJournal()
    agent = Agent([first, second, third], [look], journal=store)
    run = await agent.run("What colour is the sky?")
    assert (run.status, run.answer, run.models) == ("completed", "It is blue.", {"solo": "test:c"})
    assert "sky is blue" in third.requests[0].messages[-1].content
    assert run.usage.output_tokens >= 8  # what failed is counted
    events = await events_of(store, run.id)
    assert failures(events) == [(kind, "test:b"), (kind, "test:c")]
    assert next(iter(await store.runs(1))).models == {"solo": "test:c"}


async def test_the_one_that_goes_on_is_spoken_to_by_its_own_traits_and_in_its_own_mode() -> None:
    step = {"thought": "", "action": "look", "action_input": {"at": "sky"}}
    answer = {"thought": "", "action": "Final Answer", "action_input": "Blue."}
    first = scripted("test:a", down(), system_role="no")
    second = scripted("test:b", step, answer, modes=("schema",))
    settings = ModelSettings(temperature=0.5, price_in=1.0, price_out=1.0, extra={"own": 1})
    run = await Agent([first, second], [look], settings=settings).run("What colour is the sky?")
    assert run.status == "completed"
    assert [one.mode for one in (*first.requests, *second.requests)] == ["native", "schema", "schema"]
    asked = second.requests[0]
    assert "system_role" not in asked.traits
    assert (asked.settings.temperature, asked.settings.price_in, asked.settings.extra) == (0.5, None, {})


async def test_when_the_last_fails_too_the_run_fails_and_resuming_begins_with_the_first() -> None:
    store = MemoryJournal()
    first, second = scripted("test:a", down(), "Here again."), scripted("test:b", down("auth"))
    agent = Agent([first, second], journal=store)
    failed = await agent.run("Hello")
    assert (failed.status, failed.reason) == ("failed", "auth")
    again = await agent.resume(failed.id)
    assert (again.answer, again.models) == ("Here again.", {"solo": "test:a"})


async def test_a_resumed_run_stays_with_the_model_that_answers() -> None:
    store = MemoryJournal()
    first, second = scripted("test:a", down()), scripted("test:b", calls(("look", {"at": "sky"})), "Blue.")
    with pytest.raises(Crash):
        await Agent([first, second], [look], journal=CrashingStore(store, 3, "after")).run("The sky?", run_id="r")
    run = await Agent([first, second], [look], journal=store).resume("r")
    assert (run.answer, len(first.requests)) == ("Blue.", 1)


@pytest.mark.parametrize("kind", ["refused", "context_overflow"])
async def test_what_a_model_will_not_say_is_not_asked_of_another(kind: str) -> None:
    other = scripted("test:b")
    run = await Agent([FunctionModel(lambda _: down(kind), name="test:a"), other]).run("Hello")
    assert (run.status in ("failed", "stopped"), other.requests) == (True, [])


async def test_steps_of_a_plan_go_on_with_the_next_and_further_ones_ask_it_at_once() -> None:
    one = PlanStep("1", "Say one", "reasoning", instruction="Say one.")
    steps = (one, PlanStep("2", "Say two", "reasoning", instruction="Say two.", dependencies=("1",)))
    first, second = scripted("test:a", down()), FunctionModel(lambda _: "Said.", name="test:b")
    for reasoner in ("react", "plan"):
        first, store = scripted("test:a", down()), MemoryJournal()
        run = await Agent([first, second], journal=store, reasoner=reasoner).run(Task("Say two things.", steps=steps))
        events = await events_of(store, run.id)
        assert (run.status, len(first.requests)) == ("completed", 1), reasoner
        assert fold(events).speakers["solo"].model == "test:b"


async def test_what_a_broken_reply_has_shown_is_taken_back() -> None:
    class Breaks(FunctionModel):
        async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
            self.requests.append(request)
            if emit:
                emit(TextDelta("The answer is forty"))
            raise down()

    agent = Agent([Breaks(lambda _: "", name="test:a"), scripted("test:b", "Seven.")])
    shown = [one async for one in agent.stream("How many?") if isinstance(one, TextDelta | Reset)]
    after = max(at for at, one in enumerate(shown) if isinstance(one, Reset))
    assert "".join(one.text for one in shown[after:] if isinstance(one, TextDelta)) == "Seven."


async def test_what_cannot_be_meant_is_told_before_a_run() -> None:
    with pytest.raises(UsageError, match="test:a is given twice"):
        Agent([scripted("test:a"), scripted("test:a")])
    with pytest.raises(UsageError, match="no model is given"):
        Agent([])
    with pytest.raises(UsageError, match="test:b cannot be spoken to in call mode 'schema'"):
        Agent([scripted("test:a", modes=("schema",)), scripted("test:b")], call_mode="schema")


async def test_a_limit_of_cost_needs_prices() -> None:
    config = LoopConfig(budget=Budget(max_cost_usd=1.0))
    unknown = resolve("openai:nobody-knows-it", api_key="k")
    told = r"max_cost_usd cannot hold: no price is known for openai:nobody-knows-it\. Give ModelSettings\(price_in"
    agent, store = Agent(unknown, config=config), MemoryJournal()
    with pytest.raises(UsageError, match=told):
        await agent.run("Hello")
    with pytest.raises(UsageError, match=told):
        await Agent([scripted("test:a", "x"), unknown], config=config, journal=store).run("Hello", run_id="r")
    assert await store.runs(9) == []
    assert Agent("local", config=config).model == "local"
    own = ModelSettings(price_in=1_000_000.0, price_out=0.0)
    message = ModelMessage("assistant", "", tuple(calls(("look", {"at": "x"})).calls), usage=Usage(1, 1))
    run = await Agent(FunctionModel(lambda _: message), [look], config=config, settings=own).run("Look on and on")
    assert (run.reason, run.requests) == ("cost", 1)


def test_what_a_cache_is_given_costs_more_than_other_input_and_what_it_gives_less() -> None:
    def price(read: int = 0, written: int = 0) -> float:
        used = Usage(1_000, cached_tokens=read, cache_write_tokens=written)
        cost = price_of(used, "https://api.anthropic.com", "claude-sonnet-4-5")
        assert cost is not None
        return cost

    plain, written, read = price(), price(written=1_000), price(read=1_000)
    assert read < plain < written == pytest.approx(1.25 * plain)  # Anthropic's list
    assert price(read=600, written=900) == pytest.approx(0.6 * read + 0.4 * written)


class Own:
    """A wire of a user's own, which tells tokens and no cost."""

    name = "house:own"
    modes: tuple[CallMode, ...] = ("native",)
    traits: Mapping[str, str] = {}

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:  # noqa: ARG002  # the port
        return ModelMessage("assistant", "", calls(("look", {"at": "x"})).calls, usage=Usage(1, 1))

    async def aclose(self) -> None: ...


async def test_prices_of_the_settings_count_for_a_wire_of_ones_own() -> None:
    config, prices = LoopConfig(budget=Budget(max_cost_usd=1.0)), ModelSettings(price_in=1_000_000.0, price_out=0.0)
    with pytest.raises(UsageError, match="no price is known for house:own"):
        await Agent(Own(), [look], config=config).run("Look on and on")
    run = await Agent(Own(), [look], config=config, settings=prices).run("Look on and on")
    assert (run.reason, run.requests, run.usage.cost_usd) == ("cost", 1, 1.0)
    failed = await Agent([FunctionModel(lambda _: ModelError("down")), scripted("test:b", "x")], settings=prices).run(
        "Look"
    )
    assert failed.usage.cost_usd is None  # who failed has cost nothing that is known, and the other has no price
    with pytest.raises(UsageError, match=r"settings=\{\}: give a ModelSettings"):
        ModelService(Own(), settings={})  # type: ignore[arg-type]
    asked = ModelService(Own(), settings=prices)
    assert (await asked.generate("", [ModelMessage("user", "Look")])).usage.cost_usd == 1.0


async def test_a_model_named_in_a_list_is_resolved_as_any_other() -> None:
    with pytest.raises(UsageError, match="'nothing' is not a model name"):
        Agent([scripted("test:a"), "nothing"])
    agent = Agent([scripted("test:a", down()), "http://127.0.0.1:9/v1#m"], settings=ModelSettings(attempts=1))
    run = await agent.run("Hello")
    assert (run.status, run.models) == ("failed", {"solo": "http://127.0.0.1:9/v1#m"})


def test_a_run_that_went_on_with_another_model_plays_from_a_cassette(tmp_path: Path) -> None:
    def asked(cassette: Cassette) -> str:
        agent = cassette.agent([scripted("test:a", down()), scripted("test:b", "Blue.")], [look])
        return agent.run_sync("What colour is the sky?").answer

    with Cassette(tmp_path / "sky.db", record=True) as cassette:
        assert asked(cassette) == "Blue."
    with Cassette(tmp_path / "sky.db") as cassette:
        assert asked(cassette) == "Blue."
