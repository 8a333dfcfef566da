"""The runner of BFCL: what a runtime asks of a server is counted, and so are the calls that tools got."""

import ast
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.request import urlopen

import orjson
import pytest
from aiohttp import web

from evals.bfcl.__main__ import lines, play
from evals.bfcl.cases import MULTI_TURN, Case, Made, cases_of
from evals.bfcl.forms import FORMS, calls_of, writing
from evals.bfcl.proxy import MAX_TOKENS, Count, counting
from evals.bfcl.runtimes import RUNTIMES
from evals.results import Row
from processes import told_until
from surefoot.core.view.shape import ANSWER, MAX_BRANCHES
from surefoot.models.files import weights_file

pytestmark = pytest.mark.anyio

OWN = ("bare", "surefoot-native", "surefoot-schema")
"""Runtimes that need no package beside ours."""

NUMBERS = {"type": "tuple", "items": {"type": "float"}, "description": "The numbers."}
SUM = {"type": "dict", "properties": {"numbers": NUMBERS}, "required": ["numbers"]}
SUMS = [{"name": "math.sum", "description": "Add up.", "parameters": SUM}]
CASE = Case("irrelevance_1", "irrelevance", ["What is 2 + 2?"], SUMS, ())
COMPLETION = {"id": "1", "object": "chat.completion", "created": 1, "model": "any"}
CALL = {"id": "1", "type": "function", "function": {"name": "math_sum", "arguments": '{"numbers": [2, 2]}'}}


@asynccontextmanager
async def _server(*messages: dict[str, object]) -> AsyncGenerator[tuple[str, list[Row]]]:
    """A server that says these messages in turn; gives its address and the bodies that it got."""
    left, bodies = list(messages), list[Row]()

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
    multi: Row = {"runtime": "bare", "category": MULTI_TURN, "right": False, "turns": [1, 0, 2], "turns_right": 1}
    none = " | ".join(["0 of 0"] * 4)
    told = f"| bare | {none} | 1 of 1 | 0 of 1 | 1 of 3 | 1 of 2 | 0 | 2 | 20 | 8 | 4 | 3 |"
    assert told in lines([row, {**multi, **used}])


def _step(name: str, action_input: object) -> dict[str, object]:
    return {
        "content": orjson.dumps({"thought": "It is needed.", "action": name, "action_input": action_input}).decode()
    }


def _native(name: str, arguments: object) -> dict[str, object]:
    function = {"name": name, "arguments": orjson.dumps(arguments).decode()}
    return {"tool_calls": [{"id": "1", "type": "function", "function": function}]}


def _script(name: str, case: Case, turns: Sequence[Sequence[Made]]) -> list[dict[str, object]]:
    """What a model says that makes these calls, one at a time; a step with many tools is asked for in two requests."""
    if name != "surefoot-schema":
        end: dict[str, object] = {"content": "It is done."}
        return [one for calls in turns for one in (*(_native(*call) for call in calls), end)]
    steps = [_step(*call) for calls in turns for call in (*calls, (ANSWER, "It is done."))]
    return [step for step in steps for _ in range(2 if len(case.tools) > MAX_BRANCHES else 1)]


@pytest.mark.parametrize("name", OWN)
async def test_each_turn_of_a_conversation_sees_those_before_it(name: str) -> None:
    case = replace(CASE, category=MULTI_TURN, turns=["What is 2 + 2?", "And 3 + 3?"])
    turns = [[("math_sum", {"numbers": [one, one]})] for one in (2, 3)]
    made: list[object] = []

    def call_tool(tool: str, arguments: Mapping[str, object]) -> str:
        made.append((tool, arguments))
        return f"result {len(made)}"

    async with (
        _server(*_script(name, case, turns)) as (address, bodies),
        RUNTIMES[name](f"{address}/v1", case, call_tool) as say,
    ):
        ended = [await say(words) for words in case.turns]
    assert [[one] for one in made] == turns
    assert ended == (["replied"] * 2 if name == "bare" else ["completed"] * 2)
    seen = [orjson.dumps(body["messages"]).decode() for body in bodies]
    places = [seen[-1].index(text) for text in (case.turns[0], "result 1", case.turns[1], "result 2")]
    assert places == sorted(places)
    assert [case.turns[1] in text for text in seen] == [False, False, True, True]


async def test_a_turn_that_does_not_end_is_the_last_one() -> None:
    case = replace(CASE, turns=["What is 2 + 2?", "And 3 + 3?", "And 4 + 4?"])
    async with _server(_native("math_sum", {"numbers": [2, 2]}), {"tool_calls": [{}]}) as (address, bodies):
        row = await play("bare", case, f"{address}/v1", Count())
    assert (row["turns"], row["ended"], len(bodies)) == ([1, 0, 0], "KeyError: 'function'", 2)


@pytest.mark.parametrize("name", OWN)
async def test_turns_are_right_until_one_leaves_the_classes_otherwise_than_the_answer(name: str) -> None:
    pytest.importorskip("bfcl_eval", reason="bfcl-eval is not installed; the docstring of evals.bfcl says how")
    (case,) = cases_of(1, 1, [MULTI_TURN])
    turns = [[_call(case, line) for line in lines] for lines in case.answer]
    for calls, right in ((turns, len(turns)), ([*turns[:-1], turns[-1][:-1]], len(turns) - 1)):
        async with _server(*_script(name, case, calls)) as (address, bodies):
            row = await play(name, case, f"{address}/v1", Count())
        assert (row["turns"], row["turns_right"]) == ([len(one) for one in calls], right)
        assert row["right"] == (right == len(turns))
        assert "Error" not in str([one for one in bodies[-1]["messages"] if one["role"] != "system"])


def _call(case: Case, line: str) -> Made:
    """A call of an answer, which BFCL writes in Python."""
    call = ast.parse(line, mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    (known,) = (one["parameters"]["properties"] for one in case.functions if one["name"] == call.func.id)
    named = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
    return call.func.id, dict(zip(known, map(ast.literal_eval, call.args), strict=False)) | named


@pytest.mark.real_model
@pytest.mark.skipif(not weights_file().is_file(), reason="no embedded model; `surefoot model pull` fetches it")
def test_the_embedded_model_is_served() -> None:
    serve = [sys.executable, "-m", "evals.bfcl.server", "--port=0"]
    said = {"messages": [{"role": "user", "content": "Say yes."}], "max_tokens": 2}
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as process:
        address = told_until("http", process, process.stdout).strip()
        with urlopen(f"{address}/v1/chat/completions", orjson.dumps(said), 60) as reply:  # it is ours
            told = orjson.loads(reply.read())
        process.kill()
    assert 1 <= told["usage"]["completion_tokens"] <= 2
