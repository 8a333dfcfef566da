"""The runner of BFCL: what a runtime asks of a server is counted, and so are the calls that tools got."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import orjson
import pytest
from aiohttp import web

from evals.bfcl.__main__ import lines, play
from evals.bfcl.cases import Case
from evals.bfcl.forms import FORMS, calls_of, writing
from evals.bfcl.proxy import MAX_TOKENS, Count, counting
from evals.results import Row

pytestmark = pytest.mark.anyio

CASE = Case(
    "irrelevance_1",
    "irrelevance",
    "What is 2 + 2?",
    [
        {
            "name": "math.sum",
            "description": "Add up.",
            "parameters": {
                "type": "dict",
                "properties": {"numbers": {"type": "tuple", "items": {"type": "float"}, "description": "The numbers."}},
                "required": ["numbers"],
            },
        }
    ],
    (),
)
COMPLETION = {"id": "1", "object": "chat.completion", "created": 1, "model": "any"}
CALL = {"id": "1", "type": "function", "function": {"name": "math_sum", "arguments": '{"numbers": [2, 2]}'}}


@asynccontextmanager
async def _server(*messages: dict[str, object]) -> AsyncGenerator[tuple[str, list[dict[str, object]]]]:
    """A server that says these messages in turn; gives its address and the bodies that it got."""
    left, bodies = list(messages), list[dict[str, object]]()

    async def reply(request: web.Request) -> web.Response:
        bodies.append(orjson.loads(await request.read()))
        message = {"role": "assistant", "content": "", **left.pop(0)}
        finish = "tool_calls" if "tool_calls" in message else "stop"
        choice = {"index": 0, "message": message, "finish_reason": finish}
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
        timings = {"prompt_ms": 1000, "predicted_ms": 500}
        return web.json_response({**COMPLETION, "choices": [choice], "usage": usage, "timings": timings})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", reply)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", bodies
    finally:
        await runner.cleanup()


async def test_declarations_become_json_schema_with_names_that_wires_take() -> None:
    (tool,) = CASE.tools
    assert tool["name"] == "math_sum"
    assert tool["parameters"]["type"] == "object"
    assert tool["parameters"]["properties"]["numbers"] == {
        "type": "array",
        "items": {"type": "number"},
        "description": "The numbers.",
    }


@pytest.mark.parametrize(("name", "requests"), [("bare", 1), ("surefoot-native", 2)])
async def test_calls_requests_and_tokens_are_counted(name: str, requests: int) -> None:
    async with (
        _server({"tool_calls": [CALL]}, {"content": "4"}) as (address, bodies),
        counting(address) as (base_url, count),
    ):
        row = await play(name, CASE, base_url, count)
    assert row["calls"] == [("math_sum", {"numbers": [2, 2]})]
    assert not row["right"]
    assert (row["requests"], row["tokens_in"], row["cached"]) == (requests, 10 * requests, 4 * requests)
    assert row["model_s"] == 1.5 * requests
    assert {body.get("max_tokens", body.get("max_completion_tokens")) for body in bodies} == {MAX_TOKENS}
    assert {body["temperature"] for body in bodies} == {0}


async def test_a_runtime_without_a_call_is_right_where_none_fits_and_a_failure_is_a_result() -> None:
    async with _server({"content": "4"}) as (address, _), counting(address) as (base_url, count):
        assert (await play("surefoot-native", CASE, base_url, count))["right"]
    failed = await play("bare", CASE, "http://127.0.0.1:1/v1", Count())
    assert "Error" in failed["ended"]
    assert not failed["right"]


@pytest.mark.parametrize(
    ("name", "form"), [("surefoot-schema", "native"), *(("surefoot-native", one) for one in FORMS)]
)
async def test_right_calls_reach_the_tools_in_every_form(name: str, form: str) -> None:
    sums = ({"math.sum": {"numbers": [[2, 2], [4]], "unit": ["", "m"]}}, {"math.sum": {"numbers": [[3, 3]]}})
    case = replace(CASE, answer=sums)
    assert calls_of(case) == [("math_sum", {"numbers": [2, 2]}), ("math_sum", {"numbers": [3, 3]})]
    async with writing(case, form) as base_url:
        row = await play(name, case, base_url, Count())
    assert (row["calls"], row["ended"]) == (calls_of(case), "completed")


def test_the_table_has_a_row_for_each_runtime() -> None:
    used: Row = {"calls": [], "requests": 1, "tokens_in": 10, "cached": 4, "tokens_out": 2, "model_s": 1.5}
    row: Row = {"runtime": "bare", "category": "irrelevance", "right": True, **used}
    assert "| bare | 0 of 0 | 0 of 0 | 0 of 0 | 0 of 0 | 1 of 1 | 1 of 1 | 0 | 1 | 10 | 4 | 2 | 2 |" in lines([row])
