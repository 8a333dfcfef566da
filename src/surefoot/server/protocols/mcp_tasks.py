"""The extension `io.modelcontextprotocol/tasks` (SEP-2663) of 2026-07-28: a call gives a task at once, which is a run.

To be dropped for the SDK's own. Source: spec/serving.md, section 7.1; the extension's specification of 2026-07-28.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from pydantic import BaseModel

from surefoot.server.answers import Problem
from surefoot.server.api import Asked, problem_of
from surefoot.server.protocols.mcp_forms import Json, fill_in, forms_of, shows_forms
from surefoot.server.protocols.status import cancel, link_to
from surefoot.server.reads import run_of
from surefoot.telling.text import visible
from surefoot.types.ports import RunSummary

POLL_MS = 1_000
Context = ServerRequestContext[Any, Any]  # Any: nothing here looks at its state or at the request
_NAME = "io.modelcontextprotocol/tasks"
_WANTED = types.ClientCapabilities(extensions={_NAME: {}})
_OWN_FAULT = ("internal", "journal_down")


class OfTask(types.RequestParams):
    """Which task is meant."""

    task_id: str


class Filled(OfTask):
    """What was filled in, by the names of the forms."""

    input_responses: types.InputResponses


class Tasks(Extension):
    """Runs as tasks; `result` gives what a run that is over has come to."""

    identifier = _NAME

    def __init__(self, asked: Asked[Any, Any], result: Callable[[RunSummary], Awaitable[types.CallToolResult]]) -> None:
        self._asked, self._result = asked, result

    def methods(self) -> Sequence[MethodBinding]:
        return (
            MethodBinding("tasks/get", OfTask, partial(self._checked, self._get)),
            MethodBinding("tasks/update", Filled, partial(self._checked, self._update)),
            MethodBinding("tasks/cancel", OfTask, partial(self._checked, self._cancel)),
        )

    def is_wanted(self, context: Context) -> bool:
        """Whether the client takes a task in place of a result, and may ask for it."""
        return "read" in self._asked.token.rights and context.session.check_client_capability(_WANTED)

    def task_reply(self, run: RunSummary) -> Json:
        return {"resultType": "task", **_task(run, "working")}

    async def _checked(
        self, serve: Callable[[Context, RunSummary, Any], Awaitable[Json | BaseModel]], context: Context, params: OfTask
    ) -> Json | BaseModel:
        """What `serve` gives for the run. Raises `MCPError` with what is wrong."""
        if not context.session.check_client_capability(_WANTED):
            told = "Missing required client capability"
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, told, {"requiredCapabilities": _plain(_WANTED)})
        if "read" not in self._asked.token.rights:
            raise MCPError(types.INVALID_PARAMS, "forbidden: tasks need the right read")
        try:
            return await serve(context, await run_of(self._asked, params.task_id), params)
        except Exception as error:
            problem = problem_of(error)
            code = types.INTERNAL_ERROR if problem.name in _OWN_FAULT else types.INVALID_PARAMS
            raise MCPError(code, f"{problem.name}: {problem.detail or problem.kind.remedy}") from error

    async def _get(self, context: Context, run: RunSummary, _params: OfTask) -> Json:
        reason = f"{run.status} {visible(run.reason)}".strip()
        match run.status:
            case "completed" | "completed_partial" | "stopped":
                return _task(run, "completed", reason, result=_plain(await self._result(run)))
            case "cancelled":
                return _task(run, "cancelled")
            case "failed" | "set_aside" | "damaged":
                return _task(run, "failed", reason, error={"code": types.INTERNAL_ERROR, "message": reason})
            case "paused":
                can = shows_forms(context.session.client_capabilities)
                if forms := await forms_of(self._asked, run) if can else {}:
                    asks = {name: _plain(form) for name, form in forms.items()}
                    return _task(run, "input_required", inputRequests=asks)
                return _task(run, "working", f"A person answers at {link_to(self._asked, run)}")
            case _:
                return _task(run, "working")

    async def _update(self, _context: Context, run: RunSummary, params: Filled) -> types.EmptyResult:
        for name, given in params.input_responses.items():
            await fill_in(self._asked, run, name, given)
        return types.EmptyResult()

    async def _cancel(self, _context: Context, run: RunSummary, _params: OfTask) -> types.EmptyResult:
        try:
            await cancel(self._asked, run.run_id, "mcp")
        except Problem as problem:
            if problem.name != "ended":
                raise
        return types.EmptyResult()


def _task(run: RunSummary, status: str, message: str = "", **more: object) -> Json:
    at = [datetime.fromtimestamp(one, UTC).isoformat() for one in (run.started_at, run.changed_at)]
    told = {"taskId": run.run_id, "status": status, "createdAt": at[0], "lastUpdatedAt": at[1]}
    said = {"statusMessage": message} if message else {}
    return {**told, **said, "ttlMs": None, "pollIntervalMs": POLL_MS, **more}


def _plain(value: BaseModel) -> Json:
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)
