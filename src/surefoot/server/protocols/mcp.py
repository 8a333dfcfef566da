"""MCP: each agent is a tool, a call of it is a run, and a run is a resource. Stateless: each request stands alone.

What a client's model writes into a call is a model's task: it says what is to be done, and vouches for no value. No
question is answered here; the result says where a person does. Source: spec/serving.md, section 7.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from secrets import token_hex
from typing import Annotated, Any, Literal

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    ReadResourceRequestParams,
    ReadResourceResult,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)
from pydantic import Field, ValidationError
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from surefoot.server.answers import own_version
from surefoot.server.api import Asked, Exact, problem_of
from surefoot.server.bounds import body_of
from surefoot.server.problems import Problem
from surefoot.server.protocols.status import GOING, stood, words_of
from surefoot.server.reads import at_desk, run_of
from surefoot.server.records import Reading
from surefoot.server.say import cancellable
from surefoot.server.shapes import Labels
from surefoot.server.starts import begun
from surefoot.speak import speak
from surefoot.telling.export import export
from surefoot.telling.question import questions_of
from surefoot.telling.text import visible
from surefoot.types.ports import RunSummary
from surefoot.types.task import Task
from surefoot.types.words import Cancel

_RUN, _URI = "run_", "surefoot://runs/"
_OWN = ("status", "answer", "cancel")
"""What no agent can be called here."""
_GOOD = ("completed", "completed_partial", "paused", *GOING)
_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_ENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
_ACTS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)
Context = Any  # Any: of the SDK, and nothing here looks at it


class Given(Exact):
    """A task for an agent."""

    task: Annotated[str, Field(min_length=1)]
    labels: Labels = Field(default_factory=dict)


class OfRun(Exact):
    """Which run is meant."""

    run_id: Annotated[str, Field(min_length=1, max_length=200)]


class Conversation(Response):
    """The answer to one request, as the SDK gives it."""

    def __init__(self, asked: Asked[Any, Any]) -> None:
        super().__init__()
        self._asked = replace(asked, key="")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request to the SDK, which asks back here; its body is read as that of any other."""
        limits = self._asked.site.limits
        try:
            body = [await body_of(self._asked.request, limits.body, limits.idle_s)]
        except Problem as problem:
            await problem.response(scope["path"])(scope, receive, send)
            return

        async def given() -> Message:
            return {"type": "http.request", "body": body.pop(), "more_body": False} if body else await receive()

        server: Server[Any] = Server(  # Any: it has no state
            "surefoot",
            version=own_version(),
            on_list_tools=self._tools,
            on_call_tool=self._call,
            on_list_resource_templates=self._templates,
            on_read_resource=self._read,
        )
        manager = StreamableHTTPSessionManager(server, stateless=True, json_response=True)
        async with manager.run():
            await manager.handle_request(scope, given, send)

    def _may(self, *rights: Literal["read", "start", "cancel"]) -> bool:
        return not self._asked.token.rights.isdisjoint(rights)

    async def _tools(self, _context: Context, _params: object) -> ListToolsResult:
        """What the token may do."""
        asked, found = self._asked, list[Tool]()
        if self._may("start"):
            told = "It may take a while: then the result names the run, and run_status says how it stands."
            found += [
                _tool(f"{_RUN}{name}", f"{visible(agent.description)} {told}".strip(), Given, _ACTS)
                for name, agent in asked.site.agents.items()
                if asked.token.sees_agent(name) and name not in _OWN
            ]
        if self._may("read"):
            found += [
                _tool("run_status", "How a run stands, and what it asks a person.", OfRun, _READS),
                _tool("run_answer", "The answer of a run.", OfRun, _READS),
            ]
        if self._may("cancel", "start"):
            found.append(_tool("run_cancel", "End a run.", OfRun, _ENDS))
        return ListToolsResult(tools=found)

    async def _call(self, _context: Context, params: CallToolRequestParams) -> CallToolResult:
        """Call a tool. What goes wrong is a result that the client's model can read."""
        try:
            return await self._called(params.name, params.arguments or {})
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            return _result(f"invalid: {'.'.join(map(str, first['loc']))}: {visible(first['msg'])}", is_error=True)
        except Exception as error:  # noqa: BLE001  # as every endpoint answers
            problem = problem_of(error)
            return _result(f"{problem.name}: {problem.detail or problem.kind.remedy}", is_error=True)

    async def _called(self, name: str, arguments: Mapping[str, object]) -> CallToolResult:
        known = {tool.name for tool in (await self._tools(None, None)).tools}
        if name not in known:
            raise Problem("forbidden", f"this token has no tool {visible(name)!r}")
        asked = self._asked
        match name:
            case "run_status":
                return await self._status(await run_of(asked, OfRun.model_validate(arguments).run_id))
            case "run_answer":
                return await self._answer(await run_of(asked, OfRun.model_validate(arguments).run_id))
            case "run_cancel":
                run = await cancellable(asked, OfRun.model_validate(arguments).run_id)
                word = Cancel(f"{asked.token.name} via mcp")
                posted = await speak(
                    asked.site.store, run.run_id, word, key=token_hex(16), wait_s=asked.site.limits.call_s
                )
                asked.site.stir()
                if posted.outcome not in ("", "applied"):
                    raise Problem(posted.outcome, visible(posted.detail))
                return await self._status(await asked.site.store.summary(run.run_id))
            case _:
                given = Given.model_validate(arguments)
                with asked.site.pace.stream(asked.token.name):
                    task = Task(given.task, author="model")
                    run, _ = await begun(asked, name.removeprefix(_RUN), task, given.labels)
                    return await self._answer(await stood(asked, run, asked.site.limits.call_s))

    async def _answer(self, run: RunSummary) -> CallToolResult:
        """Its answer; of a run that is not over, how it goes on."""
        said = await words_of(self._asked, run)
        if run.status in GOING or run.status == "paused":
            said = f"{said}\n\nAsk run_status for run {run.run_id} later."
        return _result(said, run, is_error=run.status not in _GOOD)

    async def _status(self, run: RunSummary) -> CallToolResult:
        """How it stands, and the lines of what it asks."""
        site = self._asked.site
        tale = await site.library.tale(Reading(site.store, run.run_id), run.events)
        asks = [line.text for one in questions_of(tale, await site.library.inner(tale)) for line in one.lines]
        link = f"{self._asked.request.base_url}runs/{run.run_id}"
        where = [f"A person answers at {link}"] if asks else []
        return _result("\n".join((f"{run.status} {visible(run.reason)}".strip(), *asks, *where)), run)

    async def _templates(self, _context: Context, _params: object) -> ListResourceTemplatesResult:
        told = ResourceTemplate(
            name="run",
            uri_template=f"{_URI}{{run_id}}",
            description="What happened in a run.",
            mime_type="text/markdown",
        )
        return ListResourceTemplatesResult(resource_templates=[told] if self._may("read") else [])

    async def _read(self, _context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """A run as Markdown."""
        uri, asked = str(params.uri), self._asked
        if not self._may("read") or not uri.startswith(_URI):
            raise Problem("no_such_run", "unknown resource")
        run = await run_of(asked, uri.removeprefix(_URI))
        records = await Reading(asked.site.store, run.run_id).all()
        text = await at_desk(asked, lambda: "".join(export(records, "md", run.run_id)))
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type="text/markdown", text=text)])


def _tool(name: str, description: str, given: type[Exact], hints: ToolAnnotations) -> Tool:
    return Tool(name=name, description=description, input_schema=given.model_json_schema(), annotations=hints)


def _result(text: str, run: RunSummary | None = None, *, is_error: bool = False) -> CallToolResult:
    told = run and {"run_id": run.run_id, "status": run.status, "reason": visible(run.reason)}
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=told, is_error=is_error)
