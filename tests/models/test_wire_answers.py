"""An answer of a type over each wire: the wire's own schema where it has one, else the tool for the answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import orjson
import pytest
from fake_endpoint import Json, Reply, answer, endpoint, refusal, said
from wires import WIRES, words

from surefoot import Agent, tool
from surefoot.core.view.shape import FINISH
from surefoot.models.http_model import HttpModel
from surefoot.models.openai_chat import OpenAIChat

pytestmark = pytest.mark.anyio


@dataclass
class Sum:
    sum: int


@tool(effect="read")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


GOOD = '{"sum": 171}'
BESIDE = {"json_schema": "yes", "answer_schema": "beside_tools"}


def called(name: str, arguments: Mapping[str, object]) -> Reply:
    function = {"name": name, "arguments": orjson.dumps(arguments).decode()}
    return said(None, "tool_calls", tool_calls=[{"id": "c1", "type": "function", "function": function}])


def names(body: Json) -> list[str]:
    return [one["function"]["name"] for one in cast("list[Any]", body.get("tools", []))]


@pytest.mark.parametrize(
    ("wire", "field"),
    [("openai_chat", "response_format"), ("openai_responses", "text"), ("anthropic", "output_config")],
)
async def test_each_wire_holds_the_answer_beside_tools(wire: str, field: str) -> None:
    async with endpoint(answer(words(wire, GOOD))) as fake:
        model = HttpModel(WIRES[wire].wire, "p:m", "m", fake.base_url, key="k", traits=BESIDE)
        run = await Agent(model, [add], output=Sum).run("add up")
        await model.aclose()
    assert run.output == Sum(171)
    assert '"sum"' in orjson.dumps(fake.bodies[0][field]).decode()
    assert "add" in str(fake.bodies[0]["tools"])
    assert FINISH not in str(fake.bodies[0]["tools"])


async def test_an_endpoint_that_takes_no_schema_is_given_the_tool() -> None:
    script = (refusal(400, "response_format is not supported"), called(FINISH, {"sum": 171}))
    async with endpoint(*script) as fake:
        model = HttpModel(OpenAIChat, "p:m", "m", fake.base_url)
        run = await Agent(model, output=Sum).run("add up")
        await model.aclose()
    assert run.output == Sum(171)
    assert fake.bodies[0]["response_format"]
    assert "response_format" not in fake.bodies[1]
    assert (names(fake.bodies[0]), names(fake.bodies[1])) == ([], [FINISH])


async def test_a_wrong_call_for_the_answer_stands_as_words_when_it_is_asked_for_again() -> None:
    script = (called("add", {"a": 1, "b": 2}), called(FINISH, {"sum": "many"}), called(FINISH, {"sum": 3}))
    async with endpoint(*script) as fake:
        model = HttpModel(OpenAIChat, "p:m", "m", fake.base_url)
        run = await Agent(model, [add], output=Sum).run("add up")
        await model.aclose()
    assert (run.output, run.calls) == (Sum(3), 1)
    assert [names(body) for body in fake.bodies] == [["add", FINISH]] * 3
    wrong, told = cast("list[Any]", fake.bodies[2]["messages"])[-2:]
    assert "tool_calls" not in wrong
    assert "many" in wrong["content"]
    assert "sum: must be integer" in told["content"]
