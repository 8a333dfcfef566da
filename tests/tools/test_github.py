"""The GitHub tools against a local server that speaks the API, and what must never leave them."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from served import never, serving

from cases import cases
from surefoot import Agent, LoopConfig, MemoryJournal
from surefoot.testing.models import ScriptedModel
from surefoot.tools.call import LONGEST_ERROR
from surefoot.tools.github import MOST_CHARS, github_tools
from surefoot.types.errors import ConfigError
from surefoot.types.events import PreHydrationComplete
from surefoot.types.ports import Tool
from surefoot.types.prehydration import PreHydrationConfig
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio
Call = Callable[..., Awaitable[ToolResult]]
TOKEN = "ghp_0123456789abcdef"


def comment(text: str) -> dict[str, object]:
    return {"user": {"login": "bob"}, "created_at": "2024-05-01T10:00:00Z", "body": text}


ISSUE: dict[str, object] = {
    "number": 3, "title": "The log is\nempty", "state": "open", "user": {"login": "ann"},
    "labels": [{"name": "bug"}, "urgent"], "body": "It holds nothing.\r\nSee the file.", "comments": 2,
}  # fmt: skip
PULL: dict[str, object] = {**ISSUE, "number": 4, "title": "Fill the log", "state": "closed", "merged": True}
PULL["comments"], PULL["labels"], PULL["body"], PULL["user"] = 0, [], None, None


@dataclass
class Hub:
    """A local server that speaks the endpoints of the API: what it answers, by path, and what it was asked."""

    port: int = 0
    answers: dict[str, object] = field(default_factory=dict[str, object])
    asked: list[web.BaseRequest] = field(default_factory=list[web.BaseRequest])

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request)
        match self.answers.get(request.path):
            case None:
                return web.json_response({"message": "Not Found"}, status=404)
            case web.Response() as response:
                return response
            case "never":
                await asyncio.Event().wait()
                raise AssertionError
            case value:
                return web.json_response(value)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.asked]


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    hub = Hub()
    hub.answers = {
        "/repos/acme/logs/issues/3": ISSUE,
        "/repos/acme/logs/issues/3/comments": [comment("Same here."), comment("Fixed by #4?")],
        "/repos/acme/logs/pulls/4": PULL,
    }
    async with serving(hub.answer) as hub.port:
        yield hub


def tools(hub: Hub, *, token: str = "", timeout_s: float = 5) -> tuple[Tool, Tool]:
    return github_tools("acme/logs", token=token, base_url=hub.url, timeout_s=timeout_s, resolve=never)


async def test_an_issue_is_told_with_its_first_comments(hub: Hub, call: Call) -> None:
    result = await call(tools(hub)[0], number="#3")
    assert result == ToolResult(
        "Issue acme/logs#3: The log is empty\n"
        "State: open\n"
        "Author: ann\n"
        "Labels: bug, urgent\n"
        "\n"
        "It holds nothing.\nSee the file.\n"
        "\n"
        "Comments: 2\n"
        "\n"
        "Comment by bob, 2024-05-01T10:00:00Z:\nSame here.\n"
        "\n"
        "Comment by bob, 2024-05-01T10:00:00Z:\nFixed by #4?",
        source=f"{hub.url}/repos/acme/logs/issues/3",
    )
    assert hub.asked[1].query_string == "per_page=10"
    assert not {"Authorization", "Cookie"} & set(hub.asked[0].headers)


async def test_a_pull_request_without_comments_is_one_request(hub: Hub, call: Call) -> None:
    result = await call(tools(hub)[1], number="PR #4")
    head = "Pull request acme/logs#4: Fill the log\nState: merged\nAuthor: unknown\nLabels: none"
    assert result.content == f"{head}\n\n(no text)"
    assert hub.paths == ["/repos/acme/logs/pulls/4"]


@cases("tools/github")
async def test_a_reference_is_taken_as_extraction_writes_it(hub: Hub, call: Call, reference: str, path: str) -> None:
    assert (await call(tools(hub)[0], number=reference)).is_error
    assert hub.paths == [f"/repos/{path}"]


@pytest.mark.parametrize("reference", [
    *("", "#", "seven", "-7", "7.5", "12345678", "٧", "#7#8", "acme#7", "a/b/c#7", "../x#7", "a/..#7", "a/.#7"),
    *("a/b?x#7", "a b/c#7", "https://github.com/acme/logs/issues/7", "7\n8", "a%2Fb/c#7", "x" * 5_000),
])  # fmt: skip
async def test_what_is_no_reference_is_refused_before_any_request(hub: Hub, call: Call, reference: str) -> None:
    result = await call(tools(hub)[0], number=reference)
    assert (result.kind, result.infrastructure) == ("error", False)
    assert "is not the number of a GitHub issue" in result.content
    assert len(result.content) < 300
    assert hub.asked == []


Answered = tuple[int, Mapping[str, str], str]


@cases("tools/github")
async def test_what_is_told_of_an_answer(
    hub: Hub, call: Call, *, issue: Mapping[str, object] | None, answer: Answered | None, comments: Answered | None,
    token: str, is_error: bool, infrastructure: bool, told: Sequence[str],
) -> None:  # fmt: skip
    path = "/repos/acme/logs/issues/3"
    hub.answers[path] = {**ISSUE, **(issue or {})}
    for place, given in ((path, answer), (f"{path}/comments", comments)):
        if given is not None:
            status, headers, text = given
            hub.answers[place] = web.Response(status=status, headers=headers, body=text.encode("latin-1"))
    result = await call(tools(hub, token=token)[0], number="3")
    assert (result.is_error, result.infrastructure) == (is_error, infrastructure)
    assert not [text for text in told if text not in result.content], result.content


class TestBounds:
    async def test_a_long_issue_is_cut_and_says_so(self, hub: Hub, call: Call) -> None:
        hub.answers["/repos/acme/logs/issues/3"] = {**ISSUE, "title": "t" * 900, "body": "b" * 60_000, "comments": 25}
        hub.answers["/repos/acme/logs/issues/3/comments"] = [comment("c" * 9_000) for _ in range(25)]
        told = (await call(tools(hub)[0], number="3")).content
        assert len(told) <= MOST_CHARS
        assert "[cut: 60000 characters in all]" in told
        assert "[cut: 9000 characters in all]" in told
        assert "Comments: the first 10 of 25" in told
        assert told.endswith("characters in all]")

    async def test_an_answer_over_the_cap_of_the_wire_is_refused(self, hub: Hub, call: Call) -> None:
        hub.answers["/repos/acme/logs/issues/3"] = {**ISSUE, "body": "b" * 3_000_000}
        assert "more than 2097152 bytes" in (await call(tools(hub)[0], number="3")).content


class TestFailures:
    async def test_what_is_not_there_is_named(self, hub: Hub, call: Call) -> None:
        result = await call(tools(hub)[1], number="other/repo#9")
        told = "There is no pull request other/repo#9, or it may not be read without a token."
        assert result == ToolResult(told, kind="error", error="parameter:404")

    async def test_nesting_without_end_is_no_json(self, hub: Hub, call: Call) -> None:
        hub.answers["/repos/acme/logs/issues/3"] = web.Response(text="[" * 100_000)
        assert "did not answer with JSON for issue acme/logs#3" in (await call(tools(hub)[0], number="3")).content

    async def test_no_answer_in_time_and_nobody_there(self, hub: Hub, call: Call) -> None:
        hub.answers["/repos/acme/logs/issues/3"] = "never"
        nobody = github_tools("acme/logs", base_url="http://127.0.0.1:1", token=TOKEN)
        for (issue, _), kind in ((tools(hub, timeout_s=0.2), "timeout"), (nobody, "error")):
            result = await call(issue, number="3")
            assert (result.kind, result.infrastructure) == (kind, True)


class TestTheToken:
    async def test_goes_to_the_base_url_with_each_request(self, hub: Hub, call: Call) -> None:
        moved = web.Response(status=301, headers={"Location": "/repos/acme/logs/issues/3"})
        hub.answers["/repos/acme/logs/issues/9"] = moved
        result = await call(tools(hub, token=TOKEN)[0], number="9")
        assert result.source == f"{hub.url}/repos/acme/logs/issues/3", "a moved issue is followed on its server"
        assert [request.headers["Authorization"] for request in hub.asked] == [f"Bearer {TOKEN}"] * 3

    async def test_follows_no_redirect_to_another_server(self, hub: Hub, call: Call) -> None:
        other = Hub()
        async with serving(other.answer) as other.port:
            for location in (f"{other.url}/repos", f"//127.0.0.1:{other.port}/", "https://example.org/"):
                hub.answers["/repos/acme/logs/issues/3"] = web.Response(status=302, headers={"Location": location})
                result = await call(tools(hub, token=TOKEN)[0], number="3")
                assert (result.kind, result.infrastructure) == ("error", False)
                assert "leads to another server" in result.content
            assert other.asked == []
            assert len(hub.asked) == 3

    async def test_is_in_no_result_error_source_or_repr_though_the_server_says_it(self, hub: Hub, call: Call) -> None:
        path = "/repos/acme/logs/issues/3"
        issue, pull = tools(hub, token=TOKEN)
        echo = json.dumps({**ISSUE, "title": TOKEN, "body": f"{'b' * 11_950} {TOKEN}{'b' * 999}", "comments": 0})
        seen = [repr(issue), repr(pull), repr(issue.spec)]
        for response in (
            web.Response(text=echo),
            web.Response(status=403, text=f"rate limit of {TOKEN}"),
            web.Response(status=302, headers={"Location": f"https://{TOKEN}.example.org/"}),
            web.Response(status=302, headers={"Location": f"/{TOKEN}"}),
        ):
            hub.answers[path] = response
            hub.answers[f"/{TOKEN}"] = {**ISSUE, "comments": 0}
            seen.append(repr(await call(issue, number="3")))
        assert not [text for text in seen if TOKEN[:8] in text]
        assert sum("[token]" in text for text in seen) == 3

    async def test_is_not_in_the_error_for_an_answer_that_is_no_http(self, call: Call) -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked = await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/9 " + asked)
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            issue, _ = github_tools("acme/logs", token=TOKEN, base_url=f"http://127.0.0.1:{port}")
            result = await call(issue, number="3")
        assert (result.kind, result.infrastructure) == ("error", True)
        assert "gave no usable answer" in result.content
        assert len(result.content) <= LONGEST_ERROR
        assert TOKEN not in repr(result)


class TestAddresses:
    @pytest.mark.parametrize("base_url", ["http://127.0.0.1", "http://localhost", "https://10.0.0.5/api/v3"])
    async def test_a_private_server_is_closed_unless_its_port_is_named(self, call: Call, base_url: str) -> None:
        issue, _ = github_tools("acme/logs", base_url=base_url, resolve=never)
        result = await call(issue, number="3")
        assert "may not be fetched from" in result.content

    async def test_a_base_url_may_have_a_path(self, hub: Hub, call: Call) -> None:
        hub.answers["/api/v3/repos/acme/logs/pulls/4"] = PULL
        for path in ("/api/v3", "/api/v3/"):
            _, pull = github_tools("acme/logs", base_url=hub.url + path)
            assert not (await call(pull, number="4")).is_error


@cases("tools/github")
def test_what_cannot_be_meant_is_told(repository: str, token: str, base_url: str, field: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as refused:
        github_tools(repository, token=token, base_url=base_url)
    assert refused.value.field == field
    assert TOKEN not in repr(refused.value)
    assert "secret" not in str(refused.value)


@cases("tools/github")
def test_where_a_token_may_go(token: str, base_url: str) -> None:
    assert github_tools("acme/logs", token=token, base_url=base_url)[0].spec.name == "github_issue"


async def test_the_tools_read_and_say_of_which_repository() -> None:
    for made in github_tools("acme/logs"):
        assert made.spec.effect == "read"
        assert "acme/logs" in made.spec.description
        assert made.spec.parameters["required"] == ["number"]


async def test_what_a_task_refers_to_is_read_before_the_first_model_call(hub: Hub) -> None:
    named = {"issue": "github_issue", "pr": "github_pull_request"}
    config = LoopConfig(pre_hydration=PreHydrationConfig(resolution_tools=named))
    store, model = MemoryJournal(), ScriptedModel(["done"])
    task = "Is #3 closed by PR #4, as acme/logs#8 says?"
    run = await Agent(model, tools(hub, token=TOKEN), config=config, journal=store).run(task)
    assert run.status == "completed"
    fetched, asked = model.requests[0].messages
    assert asked.content == task
    assert "Issue acme/logs#3: The log is empty" in fetched.content
    assert "Pull request acme/logs#4: Fill the log\nState: merged" in fetched.content
    assert "- acme/logs#8 (issue): There is no issue acme/logs#8" in fetched.content
    records, wrong = await store.read_recorded(run.id)
    (told,) = [each.event for each in records if isinstance(each.event, PreHydrationComplete)]
    assert (told.references_resolved, told.references_failed, wrong) == (2, 1, "")
    assert TOKEN not in repr(records)
