"""Responses over HTTP, by OpenAI's own client: what a run makes of them, streams that are cut, approval, refusals."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from server_agents import agents, two_mails
from server_world import LIMIT_S, Served, endings, judged, serving, task_of, token, token_of

from surefoot import Agent, MemoryJournal, SqliteJournal
from surefoot.server.site import Limits
from surefoot.testing.models import FunctionModel, Scripted, ScriptedModel, calls
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.outcomes import Cancelled

openai = pytest.importorskip("openai")

pytestmark = pytest.mark.anyio

Json = Any
MAIL = "send a mail to bob@example.org"
STARTER = token("desk", "start")


@asynccontextmanager
async def client_of(served: Served, who: str = "all") -> AsyncGenerator[Any]:  # Any: it is left out where it is missing
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    url = f"{served.url}/openai/v1"
    async with asyncio.timeout(LIMIT_S), http:
        yield openai.AsyncOpenAI(base_url=url, api_key=token_of(who), http_client=http, max_retries=0)


def thinking(request: ModelRequest) -> Scripted:
    """A reply that says what it thinks, a call, and an answer."""
    if any(one.role == "tool" for one in request.messages):
        return ModelMessage("assistant", "It is 50.", reasoning="The tool says so.")
    return calls(("score", {"name": "Alice"}))


def thinker() -> dict[str, Agent]:
    helper = agents()["helper"]
    return {"helper": Agent(FunctionModel(thinking), tools=helper.tools, name="helper")}


async def test_a_response_is_a_run_with_its_calls_and_its_answer() -> None:
    async with serving(MemoryJournal(), thinker()) as served, client_of(served) as client:
        response = await client.responses.create(model="helper", input="the score of Alice", instructions="Be brief.")
        assert (response.status, response.output_text, response.model) == ("completed", "It is 50.", "helper")
        call, reasoning, message = response.output
        assert (call.type, call.name, json.loads(call.arguments)) == ("mcp_call", "score", {"name": "Alice"})
        assert (call.status, call.output, call.error) == ("completed", "Alice: 50", None)
        assert (reasoning.type, [one.text for one in reasoning.summary]) == ("reasoning", ["The tool says so."])
        assert (message.type, message.role) == ("message", "assistant")
        run = await served.get(f"/v1/runs/{response.id.removeprefix('resp_')}")
        assert (run["status"], run["task"]) == ("completed", "the score of Alice")
        assert response.usage.total_tokens == run["usage"]["input_tokens"] + run["usage"]["output_tokens"] > 0
        assert await client.responses.retrieve(response.id) == response


async def test_a_stream_tells_the_same_and_goes_on_after_each_frame() -> None:
    """A client that has come to any frame gets the rest, and nothing twice."""
    async with serving(MemoryJournal(), thinker()) as served, client_of(served) as client:
        async with client.responses.stream(model="helper", input="the score of Alice") as stream:
            frames = [one async for one in stream]
            final = await stream.get_final_response()
        told = [one.type.removeprefix("response.") for one in frames]
        assert told[:2] == ["created", "in_progress"]
        assert told[-1] == "completed"
        assert final.output_text == "It is 50."
        assert "".join(one.delta for one in frames if one.type == "response.output_text.delta") == "It is 50."
        done = [one.item for one in frames if one.type == "response.output_item.done"]
        assert [one.to_dict() for one in done] == (await client.responses.retrieve(final.id)).to_dict()["output"]
        numbers = [one.sequence_number for one in frames]
        assert numbers == sorted(set(numbers))
        for number in numbers[:-1]:
            rest = await client.responses.retrieve(final.id, stream=True, starting_after=number)
            assert [one.sequence_number async for one in rest] == [one for one in numbers if one > number]


async def test_a_response_in_the_background_is_joined_after_a_cut() -> None:
    gate = asyncio.Event()

    async def slow(request: ModelRequest) -> Scripted:
        if any(one.role == "tool" for one in request.messages):
            await gate.wait()
        return thinking(request)

    helper = Agent(FunctionModel(slow), tools=agents()["helper"].tools, name="helper")
    async with serving(MemoryJournal(), {"helper": helper}) as served, client_of(served) as client:
        response = await client.responses.create(model="helper", input="the score of Alice", background=True)
        assert response.status in ("queued", "in_progress")
        stream = await client.responses.retrieve(response.id, stream=True)
        seen: list[Any] = []
        async for one in stream:
            seen.append(one)
            if one.type == "response.output_item.done":
                break
        await stream.close()  # the cut: the run does not notice
        assert seen[-1].item.type == "mcp_call"
        gate.set()
        rest = await client.responses.retrieve(response.id, stream=True, starting_after=seen[-1].sequence_number)
        seen += [one async for one in rest]
        assert seen[-1].type == "response.completed"
        assert seen[-1].response.output_text == "It is 50."
        again = await client.responses.retrieve(response.id, stream=True)
        whole = [one.sequence_number async for one in again if one.type not in BEGINNING]
        assert [one.sequence_number for one in seen if one.type not in BEGINNING] == whole


BEGINNING = ("response.created", "response.in_progress")


async def heard(store: MemoryJournal, response_id: str) -> list[tuple[str, str]]:
    return await judged(store, response_id.removeprefix("resp_"))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("is_yes", [False, True])
async def test_a_question_is_a_request_for_approval(
    is_yes: bool, stream: bool, store: MemoryJournal, served: Served
) -> None:
    async with client_of(served) as client:
        first = await client.responses.create(model="mailer", input=MAIL)
        assert first.status == "completed"
        (request,) = first.output
        assert (request.type, request.name) == ("mcp_approval_request", "send_mail")
        assert json.loads(request.arguments)["to"] == "bob@example.org"
        said = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": is_yes}
        given = {"model": "mailer", "previous_response_id": first.id, "input": [said]}
        if stream:
            async with client.responses.stream(**given) as events:
                told = [one.type async for one in events]
                second = await events.get_final_response()
            assert told[0] == "response.created"
        else:
            second = await client.responses.create(**given)
        assert second.id == first.id
        assert (second.status, second.output_text) == ("completed", "It is done.")
        call = second.output[0]
        assert (call.type, call.status) == ("mcp_call", "completed" if is_yes else "failed")
        assert await heard(store, first.id) == [("allow" if is_yes else "deny", "all via openai")]
        assert (await client.responses.create(**given)).output_text == "It is done."  # a client that tries again
        assert len(await heard(store, first.id)) == 1


async def test_several_questions_are_answered_at_once() -> None:
    store, task = MemoryJournal(), f"{MAIL} and to carol@example.org"
    async with serving(store, two_mails()) as served, client_of(served) as client:
        first = await client.responses.create(model="mailer", input=task)
        said = [
            {"type": "mcp_approval_response", "approval_request_id": one.id, "approve": n == 0, "reason": "one will do"}
            for n, one in enumerate(first.output)
        ]
        second = await client.responses.create(model="mailer", input=[{"role": "user", "content": task}, *said])
        assert second.output_text == "It is done."
        told = {json.loads(one.arguments)["to"]: one.status for one in second.output if one.type == "mcp_call"}
        assert told == {"bob@example.org": "completed", "carol@example.org": "failed"}
        assert sorted(await heard(store, first.id)) == [("allow", "all via openai"), ("deny", "all via openai")]


async def test_an_answer_is_waited_for_while_another_has_the_run() -> None:
    store = MemoryJournal()
    limits = Limits(requests_s=10_000, burst=10_000, word_s=0.0)
    async with serving(store, agents(), limits=limits) as served, client_of(served) as client:
        first = await client.responses.create(model="mailer", input=MAIL)
        held = await store.open(first.id.removeprefix("resp_"))
        said = {"type": "mcp_approval_response", "approval_request_id": first.output[0].id, "approve": True}
        answering = asyncio.ensure_future(client.responses.create(model="mailer", input=[said]))
        while not await held.words():  # noqa: ASYNC110  # said over HTTP
            await asyncio.sleep(0)
        for _ in range(200):  # turns in which it finds that the run is taken
            await asyncio.sleep(0)
        assert not answering.done()
        await held.release()
        assert (await answering).output_text == "It is done."


async def test_an_answer_takes_the_right_and_the_question_that_waits() -> None:
    store = MemoryJournal()
    async with serving(store, agents(), tokens=(token("all", "read", "start", "approve"), STARTER)) as served:
        async with client_of(served, "desk") as client:
            first = await client.responses.create(model="mailer", input=MAIL)
            (request,) = first.output
            run, _, name = request.id.partition(":")
            said = {"type": "mcp_approval_response", "approve": True}
            with pytest.raises(openai.PermissionDeniedError):
                await client.responses.create(model="mailer", input=[{**said, "approval_request_id": request.id}])
        async with client_of(served) as client:
            for wrong, error in (
                (f"{run}:{'0' * 64}:{name.partition(':')[2]}", openai.ConflictError),
                (f"{run}::{name.partition(':')[2]}", openai.UnprocessableEntityError),
                (f"mcpr_none:{name}", openai.NotFoundError),
            ):
                with pytest.raises(error):
                    await client.responses.create(model="mailer", input=[{**said, "approval_request_id": wrong}])
            assert await heard(store, first.id) == []


async def test_a_response_follows_another_as_material(store: MemoryJournal, served: Served) -> None:
    async with client_of(served) as client:
        ids = [(await client.responses.create(model="helper", input="the score of Alice")).id]
        for text in ("And Bob?", "And Carol?"):
            ids.append((await client.responses.create(model="helper", input=text, previous_response_id=ids[-1])).id)
        first, second, third = [await task_of(store, one.removeprefix("resp_")) for one in ids]
        assert (second.text, second.author) == ("And Bob?", "person")
        (earlier,) = second.attachments
        assert (earlier.trust, earlier.text) == ("untrusted", "user: the score of Alice\n\nassistant: It is done.")
        assert third.attachments[0].text == f"{earlier.text}\n\nuser: And Bob?\n\nassistant: It is done."
        assert first.job == ""
        assert second.job == third.job == ids[0].removeprefix("resp_")


async def test_a_response_is_cancelled_and_stays_so(store: MemoryJournal, served: Served) -> None:
    async with client_of(served) as client:
        response = await client.responses.create(model="helper", input="wait", background=True)
        with pytest.raises(openai.UnprocessableEntityError, match="not finished yet"):
            await client.responses.create(model="helper", input="And?", previous_response_id=response.id)
        status = ""
        while status != "cancelled":
            status = (await client.responses.cancel(response.id)).status
        assert await endings(store, response.id.removeprefix("resp_")) == [Cancelled("all via openai")]


async def test_who_started_a_response_may_read_it_and_nobody_else_without_the_right() -> None:
    tokens = (STARTER, token("other", "start"), token("far", "read", tenant="far"))
    async with serving(MemoryJournal(), agents(), tokens=tokens) as served:
        async with client_of(served, "desk") as client:
            made = await client.responses.create(model="helper", input="hello")
            assert (await client.responses.retrieve(made.id)).output_text == "Hello."
        for who, error in (("other", openai.PermissionDeniedError), ("far", openai.NotFoundError)):
            async with client_of(served, who) as client:
                with pytest.raises(error):
                    await client.responses.retrieve(made.id)
                with pytest.raises(openai.PermissionDeniedError):
                    await client.responses.cancel(made.id)
        run = made.id.removeprefix("resp_")
        for path, body in ((f"/v1/runs/{run}/resume", {}), (f"/v1/runs/{run}/fork", {"at": 1})):
            assert (await served.ask("POST", path, body, who="other")).status == 403
            assert (await served.ask("POST", path, body, who="desk")).status < 300


async def test_the_stream_of_a_damaged_response_ends(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = SqliteJournal(path)
    await Agent(ScriptedModel(["Hello."]), journal=store, name="helper").run("hello", run_id="d")
    await store.aclose()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE event SET hash=zeroblob(32) WHERE seq=1")
    store = SqliteJournal(path)
    async with serving(store, agents()) as served, asyncio.timeout(LIMIT_S):
        reply = await served.ask("GET", "/openai/v1/responses/resp_d?stream=true")
        assert b"event: response.failed" in reply.body
    await store.aclose()


async def test_a_run_that_fails_says_so() -> None:
    def fails(_request: ModelRequest) -> Scripted:
        raise ValueError("broken")

    async with (
        serving(MemoryJournal(), {"helper": Agent(FunctionModel(fails), name="helper")}) as served,
        client_of(served) as client,
    ):
        response = await client.responses.create(model="helper", input="hello")
        run = response.id.removeprefix("resp_")
        status = (await served.get(f"/v1/runs/{run}"))["status"]
        assert response.status == "failed"
        assert response.error.message.startswith(f"The run ended as {status}, ")
        assert response.error.message.endswith(f"{served.url}/runs/{run}")
