"""MCP: each agent is a tool, a call of it is a run, and a run is a resource. Stateless: each request stands alone.

What a client's model writes into a call is a model's task: it says what is to be done, and vouches for no value. What
a run asks is shown as a form by a client that can and whose token may answer; for any other the result says where a
person does. Source: spec/serving.md, section 7.1.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import Field
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from surefoot.server.answers import Problem, own_version
from surefoot.server.api import Asked, Exact, checked, problem_of
from surefoot.server.protocols.mcp_forms import Json, Reply, fill_in, forms_of, shows_forms
from surefoot.server.protocols.mcp_tasks import Context, Tasks
from surefoot.server.protocols.status import GOING, cancel, link_to, stood, words_of
from surefoot.server.reads import at_desk, check_reads, run_of
from surefoot.server.shapes import Labels
from surefoot.server.site import body_of
from surefoot.server.starts import begin_run
from surefoot.server.tales import Reading
from surefoot.telling.export import export
from surefoot.telling.text import visible
from surefoot.types.ports import RunSummary
from surefoot.types.task import Task

_RUN, _URI = "run_", "surefoot://runs/"
_OWN = ("status", "answer", "cancel")
"""What no agent can be called here."""
_OF_RUN = tuple(f"{_RUN}{name}" for name in _OWN)
_GOOD = ("completed", "completed_partial", "paused", *GOING)
_READS = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_ENDS = types.ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
_ACTS = types.ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)


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
        self._tasks = Tasks(self._asked, self._result_of)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request to the SDK, which asks back here; its body is read as that of any other."""
        limits = self._asked.site.limits
        body = [await body_of(self._asked.request, limits.body, limits.idle_s)]
        self._reply = Reply(self._asked, body[0], send)
        if await self._reply.is_filled_in():
            await Response(status_code=202)(scope, receive, send)
            return

        async def receive_body() -> Message:
            return {"type": "http.request", "body": body.pop(), "more_body": False} if body else await receive()

        server: Server[Any] = Server(  # Any: it has no state
            "surefoot",
            version=own_version(),
            on_list_tools=self._tools,
            on_call_tool=self._call,
            on_list_resources=self._resources,
            on_list_resource_templates=self._templates,
            on_read_resource=self._read,
        )
        server.extensions[self._tasks.identifier] = self._tasks.settings()
        for method in self._tasks.methods():
            server.add_request_handler(method.method, method.params_type, method.handler)
        manager = StreamableHTTPSessionManager(server, stateless=True, json_response=True)
        async with manager.run():
            await manager.handle_request(scope, receive_body, self._reply.send)

    def _may(self, *rights: Literal["read", "start", "cancel"]) -> bool:
        return not self._asked.token.rights.isdisjoint(rights)

    async def _tools(self, _context: object, _params: object) -> types.ListToolsResult:
        asked, found = self._asked, list[types.Tool]()
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
                _tool("run_answer", "The answer of a run, waited for a while.", OfRun, _READS),
            ]
        if self._may("cancel", "start"):
            found.append(_tool("run_cancel", "End a run.", OfRun, _ENDS))
        return types.ListToolsResult(tools=found)

    async def _call(self, context: Context, params: types.CallToolRequestParams) -> Any:  # Any: a task has no type
        """Call a tool. What goes wrong is a result that the client's model can read."""
        try:
            return await self._call_tool(context, params)
        except Exception as error:  # noqa: BLE001  # as every endpoint answers
            problem = problem_of(error)
            return _result(f"{problem.name}: {problem.detail or problem.kind.remedy}", is_error=True)

    async def _call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult | Json:
        asked, name, arguments = self._asked, params.name, params.arguments or {}
        if name not in {tool.name for tool in (await self._tools(None, None)).tools}:
            raise Problem("forbidden", f"this token has no tool {visible(name)!r}")
        given = checked(OfRun if name in _OF_RUN else Given, arguments)
        if isinstance(given, OfRun) and name != "run_answer":
            is_end = name == "run_cancel"
            run = await (cancel(asked, given.run_id, "mcp") if is_end else run_of(asked, given.run_id))
            waiting = await asked.site.library.waiting(run, Reading(asked.site.store, run.run_id), run.events)
            where = [f"A person answers at {link_to(asked, run)}"] if waiting else []
            asks = [one.text for one in waiting]
            return _result("\n".join((f"{run.status} {visible(run.reason)}".strip(), *asks, *where)), run)
        with asked.site.pace.stream(asked.token.name):
            if isinstance(given, OfRun):
                run = await run_of(asked, given.run_id)
            elif params.request_state:
                run = await run_of(asked, params.request_state)
                check_reads(asked, run)
            else:
                task = Task(given.task, author="model")
                run, _ = await begin_run(asked, name.removeprefix(_RUN), task, given.labels)
                if self._tasks.is_wanted(context):
                    return self._tasks.task_reply(run)
            return await self._answer(context, run, params.input_responses or {})

    async def _answer(
        self, context: Context, run: RunSummary, said: Mapping[str, object]
    ) -> types.CallToolResult | types.InputRequiredResult:
        """What a run has come to once it stands, or after a while; what it asks meanwhile, the client shows."""
        asked, told = self._asked, set(said)
        heard = [await fill_in(asked, run, name, form) for name, form in said.items()]
        until = time.monotonic() + asked.site.limits.call_s
        run = await stood(asked, run, asked.site.limits.call_s, past=-1 if all(heard) else run.events)
        if shows_forms(context.session.client_capabilities):
            if due := {name: form for name, form in (await forms_of(asked, run)).items() if name not in told}:
                return types.InputRequiredResult(input_requests=dict(due), request_state=run.run_id)
        elif self._reply.shows_forms:
            while forms := await forms_of(asked, run):
                for name in forms.keys() - told:
                    await self._reply.ask(run, name, forms[name])
                told |= forms.keys()
                before, run = run, await stood(asked, run, until - time.monotonic(), past=run.events)
                if run.events == before.events:
                    break
        return await self._result_of(run)

    async def _result_of(self, run: RunSummary) -> types.CallToolResult:
        """Its answer; of a run that is not over, how it goes on."""
        said = await words_of(self._asked, run)
        if run.status in GOING or run.status == "paused":
            said = f"{said}\n\nAsk run_status for run {run.run_id} later."
        return _result(said, run, is_error=run.status not in _GOOD)

    async def _resources(self, _context: object, _params: object) -> types.ListResourcesResult:
        """None by name. Without this the SDK does not say that there are resources, and clients do not ask."""
        return types.ListResourcesResult(resources=[])

    async def _templates(self, _context: object, _params: object) -> types.ListResourceTemplatesResult:
        told = types.ResourceTemplate(
            name="run",
            uri_template=f"{_URI}{{run_id}}",
            description="What happened in a run.",
            mime_type="text/markdown",
        )
        return types.ListResourceTemplatesResult(resource_templates=[told] if self._may("read") else [])

    async def _read(self, _context: object, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri, asked = str(params.uri), self._asked
        if not self._may("read") or not uri.startswith(_URI):
            raise MCPError(types.INVALID_PARAMS, f"unknown resource {visible(uri)}")
        try:
            run = await run_of(asked, uri.removeprefix(_URI))
        except Problem as problem:
            raise MCPError(types.INVALID_PARAMS, f"{problem.name}: {problem.detail}") from problem
        records = await Reading(asked.site.store, run.run_id).all()
        text = await at_desk(asked, lambda: "".join(export(records, "md", run.run_id)))
        told = types.TextResourceContents(uri=uri, mime_type="text/markdown", text=text)
        return types.ReadResourceResult(contents=[told])


def _tool(name: str, description: str, given: type[Exact], hints: types.ToolAnnotations) -> types.Tool:
    return types.Tool(name=name, description=description, input_schema=given.model_json_schema(), annotations=hints)


def _result(text: str, run: RunSummary | None = None, *, is_error: bool = False) -> types.CallToolResult:
    told = run and {"run_id": run.run_id, "status": run.status, "reason": visible(run.reason)}
    content = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[content], structured_content=told, is_error=is_error)
