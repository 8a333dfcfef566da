"""What a run asks, over MCP: as forms in both versions of the protocol, and as tasks, by the client of the SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest
from server_agents import agents, two_mails
from server_world import LIMIT_S, Served, endings, judged, serving, token

from surefoot import MemoryJournal
from surefoot.server.site import Limits
from surefoot.types.outcomes import Cancelled

pytest.importorskip("mcp")
from mcp import Client, MCPError
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim, advertise
from mcp.types import CallToolResult, ElicitRequest, ElicitRequestFormParams, ElicitResult, Request, Result
from mcp_client import client_of, text_of
from pydantic import TypeAdapter

pytestmark = pytest.mark.anyio

Json = Any
MODES = ("legacy", "2026-07-28")
NAME = "io.modelcontextprotocol/tasks"
MAIL = {"task": "send a mail to bob@example.org"}
ASKER = token("asker", "read", "start")
SOON = Limits(requests_s=10_000, burst=10_000, call_s=0.5)


class Person:
    """Who sits before a client, and fills in its forms."""

    def __init__(self, *says: Mapping[str, Json] | Literal["decline", "cancel"]) -> None:
        self.says, self.saw = list(says), list[ElicitRequestFormParams]()

    async def __call__(self, _context: object, asked: Json) -> ElicitResult:
        self.saw.append(asked)
        said = self.says.pop(0)
        return ElicitResult(action=said) if isinstance(said, str) else ElicitResult(action="accept", content=dict(said))


SAID: Sequence[tuple[Json, str]] = (
    ({"decision": "approve"}, "allow"),
    ({"decision": "deny", "reason": "not to bob"}, "deny"),
    ("decline", "deny"),
)


@pytest.mark.parametrize(("said", "decision"), SAID)
@pytest.mark.parametrize("mode", MODES)
async def test_a_person_answers_a_form(
    store: MemoryJournal, served: Served, mode: str, said: Json, decision: str
) -> None:
    async with client_of(served, mode, elicitation_callback=(person := Person(said))) as client:
        result = await client.call_tool("run_mailer", MAIL)
        run = result.structured_content["run_id"]
        assert text_of(result) == "It is done."
        (form,) = person.saw
        assert isinstance(form, ElicitRequestFormParams)
        assert form.message.startswith("send_mail")
        assert "bob@example.org" in form.message
        assert form.requested_schema["properties"]["decision"]["enum"] == ["approve", "deny"]
        assert form.requested_schema["required"] == ["decision"]
        assert await judged(store, run) == [(decision, "all via mcp")]


@pytest.mark.parametrize("mode", MODES)
async def test_each_question_has_a_form_of_its_own(mode: str) -> None:
    store, person = MemoryJournal(), Person({"decision": "approve"}, "decline")
    async with serving(store, two_mails()) as served, client_of(served, mode, elicitation_callback=person) as client:
        result = await client.call_tool("run_mailer", {"task": f"{MAIL['task']} and to carol@example.org"})
        assert text_of(result) == "It is done."
        assert len({form.message for form in person.saw}) == 2
        run = result.structured_content["run_id"]
        assert sorted(await judged(store, run)) == [("allow", "all via mcp"), ("deny", "all via mcp")]


@pytest.mark.parametrize("mode", MODES)
async def test_a_form_that_is_closed_says_nothing(mode: str) -> None:
    store, person = MemoryJournal(), Person("cancel", {"decision": "approve"})
    async with (
        serving(store, agents(), limits=SOON) as served,
        client_of(served, mode, elicitation_callback=person) as client,
    ):
        result = await client.call_tool("run_mailer", MAIL)
        run = result.structured_content["run_id"]
        assert text_of(result).startswith(f"The run waits for a person's decision: {served.url}/runs/{run}")
        assert await judged(store, run) == []
        assert text_of(await client.call_tool("run_answer", {"run_id": run})) == "It is done."
        assert len(person.saw) == 2


@pytest.mark.parametrize("mode", MODES)
async def test_no_form_goes_to_a_token_that_may_not_approve(mode: str) -> None:
    person = Person()
    async with (
        serving(MemoryJournal(), agents(), tokens=(ASKER,)) as served,
        client_of(served, mode, "asker", elicitation_callback=person) as client,
    ):
        result = await client.call_tool("run_mailer", MAIL)
        run = result.structured_content["run_id"]
        assert text_of(result).startswith(f"The run waits for a person's decision: {served.url}/runs/{run}")
        assert person.saw == []


async def test_a_form_that_was_made_up_is_refused(store: MemoryJournal, served: Served) -> None:
    """Only what is asked now can be answered, by a token that may."""
    run, question = await served.asks(**MAIL)
    right = f"{question['digest']}:{question['asked_at']:.3f}:{question['call']}"
    yes = {"action": "accept", "content": {"decision": "approve"}}
    for name, given, who, status, problem in (
        (right, yes, "starter", 403, "forbidden"),
        (right, {"action": "accept", "content": {"decision": "perhaps"}}, "all", 422, "invalid"),
        (right, {"action": "perhaps"}, "all", 422, "invalid"),
        (f"::{question['call']}", yes, "all", 422, "invalid"),
        (f"{'0' * 64}:0:{question['call']}", yes, "all", 409, "changed"),
        (right, yes, "other", 404, "no_such_run"),
    ):
        body = {"jsonrpc": "2.0", "id": f"{run}:{name}", "result": given}
        refused = await served.ask("POST", "/mcp", body, who=who)
        assert (refused.status, refused.problem) == (status, problem), name
    assert await judged(store, run) == []
    body = {"jsonrpc": "2.0", "id": f"{run}:{right}", "result": yes}
    assert [(await served.ask("POST", "/mcp", body)).status for _ in "12"] == [202, 202]
    late = {**body, "result": {"action": "accept", "content": {"decision": "approve", "reason": "me too"}}}
    assert (await served.ask("POST", "/mcp", late)).status == 202, "somebody else was first, which is no fault"
    await served.refused("404 no_such_run", "POST", "/mcp", {**body, "id": f":{right}"})
    assert await judged(store, run) == [("allow", "all via mcp")]


async def test_what_is_left_of_a_call_opens_no_run_of_another() -> None:
    tokens = (token("all", "read", "start"), token("desk", "start"))
    async with serving(MemoryJournal(), agents(), tokens=tokens) as served:
        made = await served.ask("POST", "/v1/runs", {"agent": "helper", "task": "the score of Alice"})
        async with client_of(served, "2026-07-28", "desk") as client:
            left = made.json["run_id"]
            result = await client.session.call_tool("run_helper", {"task": "x"}, request_state=left)
            assert isinstance(result, CallToolResult)
            assert text_of(result).startswith("forbidden: ")


class Made(Result):
    """A task, as a client reads it."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    ttl_ms: int | None
    poll_interval_ms: int


ANY = TypeAdapter(dict[str, Any])


class Asks(Request[dict[str, Any], str]):
    """A request about a task."""

    method: str
    params: dict[str, Any]


class Polls(ClientExtension):
    """A client of tasks: it polls until one is over, and has its forms filled in. `seen` are the statuses."""

    identifier = NAME

    def __init__(self, person: Person | None = None) -> None:
        self.person, self.seen, self.ids = person, list[str](), list[str]()

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return (ResultClaim(result_type="task", model=Made, resolve=self._resolve),)

    async def _resolve(self, made: Made, context: ClaimContext) -> CallToolResult:
        assert (made.status, made.ttl_ms, made.poll_interval_ms) == ("working", None, 1_000)
        self.ids.append(made.task_id)
        answered = set[str]()
        async with asyncio.timeout(LIMIT_S):
            while True:
                task = await about(context.session, "tasks/get", made.task_id)
                self.seen.append(task["status"])
                if "result" in task:
                    return CallToolResult.model_validate(task["result"])
                for name, asked in task.get("inputRequests", {}).items():
                    if self.person is None or name in answered:
                        continue
                    answered.add(name)
                    form = await self.person(None, ElicitRequest.model_validate(asked).params)
                    given = {name: form.model_dump(by_alias=True, exclude_none=True)}
                    await about(context.session, "tasks/update", made.task_id, inputResponses=given)
                if task["status"] in ("failed", "cancelled"):
                    raise AssertionError(task)
                await asyncio.sleep(0.01)


async def about(session: Any, method: str, task: str, **more: Json) -> dict[str, Any]:
    return await session.send_request(Asks(method=method, params={"taskId": task, **more}), ANY)


async def test_a_call_is_a_task_for_a_client_that_takes_one(served: Served) -> None:
    polls = Polls()
    async with client_of(served, "auto", extensions=[polls]) as client:
        result = await client.call_tool("run_helper", {"task": "the score of Alice"})
        assert (text_of(result), result.is_error) == ("It is done.", False)
        assert result.structured_content["run_id"] == polls.ids[0]
        assert polls.seen[-1] == "completed"
        assert set(polls.seen) <= {"working", "completed"}
        assert client.server_capabilities.extensions == {NAME: {}}


async def test_a_task_asks_and_is_answered(store: MemoryJournal, served: Served) -> None:
    person = Person({"decision": "approve"})
    more: Json = {"elicitation_callback": person, "extensions": [polls := Polls(person)]}
    async with client_of(served, "2026-07-28", **more) as client:
        assert text_of(await client.call_tool("run_mailer", MAIL)) == "It is done."
        assert "input_required" in polls.seen
        assert await judged(store, polls.ids[0]) == [("allow", "all via mcp")]


async def paused_task(client: Client) -> tuple[str, dict[str, Any]]:
    made = await client.session.call_tool("run_mailer", MAIL, allow_claimed=True)
    assert isinstance(made, Made)
    async with asyncio.timeout(LIMIT_S):
        while (task := await about(client.session, "tasks/get", made.task_id))["status"] == "working":
            if "statusMessage" in task:
                break
    return made.task_id, task


async def test_a_task_of_a_client_without_forms_says_where_a_person_answers_and_can_be_cancelled(
    store: MemoryJournal, served: Served
) -> None:
    async with client_of(served, "2026-07-28", extensions=[Polls()]) as client:
        run, task = await paused_task(client)
        assert task["status"] == "working"
        assert task["statusMessage"] == f"A person answers at {served.url}/runs/{run}"
        for _ in "12":
            assert "taskId" not in await about(client.session, "tasks/cancel", run)
        assert (await about(client.session, "tasks/get", run))["status"] == "cancelled"
        assert await endings(store, run) == [Cancelled("all via mcp")]


async def test_what_is_wrong_with_a_task_is_an_error(served: Served) -> None:
    async with client_of(served, "2026-07-28", extensions=[Polls()]) as client:
        with pytest.raises(MCPError, match="no_such_run") as unknown:
            await about(client.session, "tasks/get", "none")
        assert unknown.value.code == -32602
        run, _ = await paused_task(client)
    for who, told in (("other", "no_such_run"), ("canceller", "forbidden")):
        given = {"x:1:1.0": {"action": "accept", "content": {"decision": "approve"}}}
        async with client_of(served, "2026-07-28", who, extensions=[advertise(NAME)]) as client:
            with pytest.raises(MCPError, match=told):
                await about(client.session, "tasks/update", run, inputResponses=given)
    async with client_of(served, "2026-07-28") as client:
        with pytest.raises(MCPError) as missing:
            await about(client.session, "tasks/get", run)
        assert missing.value.code == -32021
        assert missing.value.data == {"requiredCapabilities": {"extensions": {NAME: {}}}}
    async with client_of(served, "legacy", extensions=[Polls()]) as client:
        result = await client.call_tool("run_helper", {"task": "the score of Alice"})
        assert text_of(result) == "It is done."
