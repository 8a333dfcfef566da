"""Models that are reached in a way of their own: headers, query, Azure's addresses and keys, traits that are given."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from fake_endpoint import FakeEndpoint, answer, endpoint, refusal, said

from surefoot import Agent, ConfigError, MemoryJournal, Model, ModelSettings, Run, resolve_model, tool
from surefoot.models.json_edge import items, mapping
from surefoot.models.traits import SMALL, TRAITS, known_traits
from surefoot.types.events import RunStarted

pytestmark = pytest.mark.anyio

KEY = "0123456789abcdef0123456789abcdef"
TOKEN = "eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl"  # it opens nothing
AZURE = "https://desk.openai.azure.com"


@pytest.fixture
async def fake() -> AsyncIterator[FakeEndpoint]:
    async with endpoint(*[said("hello")] * 4) as served:
        yield served


async def run(model: Model, task: str = "greet me", **more: Any) -> Run:  # Any: what an agent takes
    try:
        return await Agent(model, **more).run(task)
    finally:
        await model.aclose()


def line(fake: FakeEndpoint) -> str:
    return fake.headers[-1].split(" HTTP/", 1)[0]


def headers(fake: FakeEndpoint) -> dict[str, str]:
    lines = fake.headers[-1].split("\r\n")[1:]
    return {name.lower(): value for name, _, value in (one.partition(": ") for one in lines) if name}


async def test_headers_and_a_query_go_with_each_request(fake: FakeEndpoint) -> None:
    own_headers, query = {"X-Team": "desk", "user-agent": "mine"}, {"tenant": "a b"}
    model = resolve_model(f"{fake.base_url}#m", headers=own_headers, query=query, environment={})
    assert (await run(model)).answer == "hello"
    assert line(fake) == "POST /v1/chat/completions?tenant=a+b"
    assert (headers(fake)["x-team"], headers(fake)["user-agent"]) == ("desk", "mine")
    assert fake.headers[-1].lower().count("user-agent") == 1


async def test_the_query_of_a_base_url_stays_behind_the_path(fake: FakeEndpoint) -> None:
    await run(resolve_model(f"{fake.base_url}?tenant=4&zone=x#m", query={"zone": "y"}, environment={}))
    assert line(fake) == "POST /v1/chat/completions?tenant=4&zone=y"


async def test_a_header_stands_in_the_place_of_a_key(fake: FakeEndpoint) -> None:
    own_headers, environment = {"authorization": f"Basic {KEY}"}, {"SUREFOOT_API_KEY": "another"}
    model = resolve_model(f"{fake.base_url}#m", headers=own_headers, environment=environment)
    await run(model)
    assert headers(fake)["authorization"] == f"Basic {KEY}"
    assert "another" not in fake.headers[-1]
    at_a_gateway = resolve_model("m", base_url="https://gate.example/v1", headers={"X-Api-Token": KEY}, environment={})
    assert KEY not in repr(at_a_gateway)


async def test_what_is_secret_in_headers_and_query_is_shown_nowhere() -> None:
    told = f"tenant eu-west-1 is not known; you sent Bearer {KEY} and {TOKEN}"
    async with endpoint(*[refusal(401, told)] * 2) as fake:
        model = resolve_model(
            f"{fake.base_url}#m",
            headers={"Authorization": f"Bearer {KEY}", "X-Zone": "eu-west-1"},
            query={"access_token": TOKEN},
            environment={},
        )
        ended = await run(model)
    assert KEY not in ended.detail
    assert TOKEN not in ended.detail
    assert "eu-west-1" in ended.detail
    assert "check `headers`" in ended.detail


def test_a_key_that_a_callable_gives_goes_unencrypted_to_no_public_host() -> None:
    with pytest.raises(ConfigError, match="https://"):
        resolve_model("http://a.example/v1#m", environment={}, api_key=lambda: KEY)


async def awaited_token() -> str:
    await asyncio.sleep(0)
    return TOKEN


@pytest.mark.parametrize("give", [lambda: TOKEN, awaited_token])
async def test_a_callable_gives_the_key_of_each_request(
    fake: FakeEndpoint, give: Callable[[], str | Awaitable[str]]
) -> None:
    asked = 0

    def counted() -> str | Awaitable[str]:
        nonlocal asked
        asked += 1
        return give()

    model = resolve_model(f"{fake.base_url}#m", api_key=counted, environment={"SUREFOOT_API_KEY": "another"})
    agent = Agent(model)
    assert ((await agent.run("greet me")).answer, (await agent.run("greet me")).answer) == ("hello", "hello")
    await model.aclose()
    assert asked == 2
    assert headers(fake)["authorization"] == f"Bearer {TOKEN}"


async def test_a_header_of_the_caller_stays_beside_a_key_for_each_request(fake: FakeEndpoint) -> None:
    at, given = fake.base_url.removesuffix("/v1"), {"Anthropic-Version": "2030-01-01"}
    model = resolve_model("anthropic:m", base_url=at, api_key=lambda: KEY, headers=given, environment={})
    await run(model, settings=ModelSettings(attempts=1))
    assert (headers(fake)["anthropic-version"], headers(fake)["x-api-key"]) == ("2030-01-01", KEY)


async def test_a_callable_that_gives_no_key_ends_the_run_and_says_so() -> None:
    def broken() -> str:
        raise RuntimeError(f"cannot sign {KEY}")

    ended = await run(resolve_model("http://localhost:1/v1#m", api_key=broken, environment={}))
    assert "`api_key`" in ended.detail
    assert "RuntimeError" in ended.detail
    assert KEY not in ended.detail
    empty = await run(resolve_model("http://localhost:1/v1#m", api_key=str, environment={}))
    assert "no key" in empty.detail


async def test_a_callable_that_hangs_is_given_up() -> None:
    async def never() -> str:
        await asyncio.Event().wait()
        return TOKEN

    model = resolve_model("http://localhost:1/v1#m", api_key=never, environment={})
    started = time.monotonic()
    ended = await run(model, settings=ModelSettings(request_timeout_s=0.05, attempts=1))
    assert "`api_key`" in ended.detail
    assert time.monotonic() - started < 20


async def test_azure_in_its_dated_form(fake: FakeEndpoint) -> None:
    at = fake.base_url.removesuffix("/v1")
    model = resolve_model("azure:my gpt", base_url=at, api_key=KEY, query={"api-version": "2024-10-21"}, environment={})
    assert (await run(model)).answer == "hello"
    assert line(fake) == "POST /openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21"
    assert headers(fake)["api-key"] == KEY
    assert "authorization" not in headers(fake)


async def test_azure_without_a_version_and_with_a_token(fake: FakeEndpoint) -> None:
    at = fake.base_url.removesuffix("/v1")
    model = resolve_model("azure:gpt", base_url=at, api_key=lambda: TOKEN, environment={})
    await run(model)
    assert line(fake) == "POST /openai/v1/chat/completions"
    assert headers(fake)["authorization"] == f"Bearer {TOKEN}"
    assert "api-key" not in headers(fake)
    assert mapping(fake.bodies[-1])["model"] == "gpt"


@tool
def weather(city: str, unit: str = "C") -> str:
    """The weather in a city.

    Args:
        city: Its name.
        unit: C or F.
    """
    return f"{city}: 20 {unit}"


async def test_an_endpoint_of_a_small_model_is_led_as_the_embedded_one_is(fake: FakeEndpoint) -> None:
    plain = resolve_model(f"{fake.base_url}#m", environment={})
    await run(plain, tools=[weather])
    assert "tools" in fake.bodies[-1]
    fake.script[:] = [answer(b"{}", 500)] * 9
    led = resolve_model(f"{fake.base_url}#m", traits="small", environment={})
    await run(led, tools=[weather], settings=ModelSettings(attempts=1))
    body = fake.bodies[-1]
    assert "tools" not in body
    shape = str(mapping(mapping(body["response_format"])["json_schema"])["schema"])
    assert "city" in shape
    assert "unit" not in shape


async def test_single_traits_can_be_given_and_are_on_record(fake: FakeEndpoint) -> None:
    traits = {"system_role": "no", "context_tokens": "4096"}
    model = resolve_model(f"{fake.base_url}#m", traits=traits, environment={})
    ended = await run(model, journal=(journal := MemoryJournal()), instructions="Be brief.")
    assert ended.answer == "hello"
    assert [mapping(one)["role"] for one in items(fake.bodies[-1]["messages"])] == ["user"]
    started = (await journal.read_recorded(ended.id))[0][0].event
    assert isinstance(started, RunStarted)
    assert traits.items() <= next(iter(started.speakers.values())).traits.items()


def test_every_trait_in_use_can_be_given() -> None:
    for host, model in (("api.openai.com", "o1-mini"), ("api.anthropic.com", "claude-3-opus"), ("api.mistral.ai", "m")):
        for trait, value in known_traits(host, model).items():
            assert TRAITS[trait].fullmatch(value), trait
    assert all(TRAITS[trait].fullmatch(value) for trait, value in SMALL.items())
