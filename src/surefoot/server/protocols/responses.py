"""Responses as clients of OpenAI ask for them: each is a run, which is kept, and which a reader can leave and join.

What a run asks is an `mcp_approval_request`; the `mcp_approval_response` goes on with the same response. Source:
spec/serving.md, section 7.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict

from surefoot.server.answers import Problem, dumped
from surefoot.server.answers import answer as answered
from surefoot.server.api import Asked, checked
from surefoot.server.protocols.openai import EARLIER, Chat, Lax, task_of
from surefoot.server.protocols.responses_output import Json, Output
from surefoot.server.protocols.status import GOING, answer, asks_of, cancel, sentence_of, stood
from surefoot.server.reads import check_reads, run_of
from surefoot.server.shapes import Count, Ended, Long
from surefoot.server.sse import PING, PING_S, EventStream, Write, frame
from surefoot.server.starts import begin_run
from surefoot.server.tales import Reading
from surefoot.types.ports import RunSummary

_RUN, _ASK = "resp_", "mcpr_"
_STATUS: Mapping[str, str] = {
    "queued": "queued",
    **dict.fromkeys(GOING[1:], "in_progress"),
    **dict.fromkeys(("paused", "completed", "completed_partial"), "completed"),
    "stopped": "incomplete",
    "cancelled": "cancelled",
}

# ruff: noqa: UP013
Told = TypedDict("Told", {
    "id": str, "object": str, "created_at": int, "status": str, "model": str, "output": list[Json],
    "error": Json | None, "incomplete_details": Json | None, "instructions": None, "metadata": Json,
    "parallel_tool_calls": bool, "tool_choice": str, "tools": list[Json], "store": bool, "usage": Json,
})  # fmt: skip


class Approval(Lax):
    """What a person says to a request for approval."""

    type: Literal["mcp_approval_response"]
    approval_request_id: Annotated[str, Field(min_length=1, max_length=1_000)]
    approve: bool
    reason: Long | None = None


class Create(Lax):
    """What a response is to be about: text, messages, or what a person says to a request for approval."""

    has_task: ClassVar[bool] = True
    model: Annotated[str, Field(min_length=1, max_length=200)]
    input: str | Annotated[tuple[Json, ...], Field(min_length=1)]
    instructions: Long | None = None
    previous_response_id: Annotated[str, Field(max_length=200)] | None = None
    stream: bool | None = False
    background: bool | None = False
    store: Literal[True] | None = True
    tools: tuple[Json, ...] | None = None


class Joined(Lax):
    """Whether a response is followed as a stream, and after which frame."""

    stream: bool = False
    starting_after: Count | None = None


async def create(asked: Asked[None, Create]) -> Response:
    """Start a run for the last message, or answer what a run asks; the run goes on if the client leaves."""
    body = asked.body
    with asked.site.pace.stream(asked.token.name):
        said = _approvals(body)
        run, since = await _approved(asked, said) if said else (await _begin(asked), 0)
        if not body.stream:
            return await _answer(asked, run if body.background else await stood(asked, run))
    return _stream(asked, run, since=since)


async def retrieve(asked: Asked[Joined, None]) -> Response:
    """Give a response as it stands, or follow it after a frame."""
    run = await _run(asked, asked.part("response_id"))
    if not asked.query.stream:
        return await _answer(asked, run)
    return _stream(asked, run, after=-1 if asked.query.starting_after is None else asked.query.starting_after)


async def end(asked: Asked[None, Ended]) -> Response:
    """Cancel a response; one that is over stays as it is."""
    run = await _run(asked, asked.part("response_id"))
    try:
        run = await cancel(asked, run.run_id, "openai", asked.body.reason)
    except Problem as problem:
        if problem.name != "ended":
            raise
    return await _answer(asked, run)


async def _run(asked: Asked[Any, Any], response_id: str) -> RunSummary:
    run = await run_of(asked, response_id.removeprefix(_RUN))
    check_reads(asked, run)
    return run


async def _begin(asked: Asked[None, Create]) -> RunSummary:
    """A run for the last message; with those before it, and a response that it follows, as material."""
    if "start" not in asked.token.rights:
        raise Problem("forbidden", "starting a run needs the right `start`")
    body, before, job = asked.body, "", ""
    given = [{"role": "user", "content": body.input}] if isinstance(body.input, str) else body.input
    told = [{"role": "system", "content": body.instructions}] if body.instructions else []
    messages = [*told, *(one for one in given if one.get("type", "message") == "message")]
    chat = checked(Chat, {"model": body.model, "messages": messages, "tools": body.tools})
    if body.previous_response_id:
        before, job = await _before(asked, body.previous_response_id)
    task = replace(task_of(chat, asked.token.speaks_as, before), job=job)
    run, _ = await begin_run(asked, body.model, task)
    return run


async def _before(asked: Asked[None, Create], response_id: str) -> tuple[str, str]:
    """What was said up to the end of a response, and the job that it belongs to."""
    run = await _run(asked, response_id)
    tale = await asked.site.library.tale(Reading(asked.site.store, run.run_id), run.events)
    task, ending = tale.state.task, tale.state.ending
    if task is None or ending is None:
        raise Problem("invalid", "previous_response_id: that response is not finished yet")
    texts = [one.text for one in task.attachments if one.name == EARLIER]
    answered = [f"assistant: {said}"] if (said := getattr(ending, "answer", "")) else []
    return "\n\n".join((*texts, f"user: {task.text}", *answered)), task.job or run.run_id


def _approvals(body: Create) -> list[Approval]:
    found: list[Approval] = []
    for one in reversed(() if isinstance(body.input, str) else body.input):
        if one.get("type") != "mcp_approval_response":
            break
        found.insert(0, checked(Approval, one))
    return found


async def _approved(asked: Asked[None, Create], said: list[Approval]) -> tuple[RunSummary, int]:
    """The run that has heard these answers, and how many records it had before."""
    names = [one.approval_request_id.removeprefix(_ASK).partition(":") for one in said]
    if len({run_id for run_id, *_ in names}) > 1:
        raise Problem("invalid", "input: answer the requests of one response at a time")
    run = await _run(asked, names[0][0])
    for one, (*_, name) in zip(said, names, strict=True):
        if not await answer(asked, run, name, "openai", one.reason or "", is_yes=one.approve):
            await stood(asked, run, past=run.events, goes_on=True)
    return await asked.site.store.summary(run.run_id), run.events


async def _answer(asked: Asked[Any, Any], run: RunSummary) -> Response:
    output = Output()
    async for piece in Reading(asked.site.store, run.run_id).pieces(run.events):
        output.add(piece)
    await _stand(asked, run, output)
    return answered(_response(run, output, asked), headers={"X-Surefoot-Run": run.run_id})


async def _stand(asked: Asked[Any, Any], run: RunSummary, output: Output) -> list[Json]:
    if run.status in GOING:
        return []
    asks = await asks_of(asked, run) if run.status == "paused" else {}
    is_silent = asks or run.status in ("completed", "failed", "cancelled")
    return output.stand(run.run_id, asks, "" if is_silent else sentence_of(asked, run))


def _stream(asked: Asked[Any, Any], run: RunSummary, since: int = 0, after: int = -1) -> EventStream:
    """The frames of a response from record `since` on, or after frame `after`, until the run stands."""

    async def tell(write: Write) -> None:
        output, reading, now = Output(), Reading(asked.site.store, run.run_id), run
        async for piece in reading.pieces(since):
            output.add(piece)

        async def send(frames: list[Json]) -> None:
            if due := [frame(one["type"], dumped(one)) for one in frames if one["sequence_number"] > after]:
                await write(b"".join(due))

        await send(output.begin(_response(now, output, asked, "in_progress")))
        while True:
            async for piece in reading.pieces():
                await send(output.add(piece))
            if reading.wrong:
                await send([output.end("failed", _response(now, output, asked, "failed"))])
                return
            if now.status not in GOING and reading.place >= now.events:
                break
            now = await stood(asked, now, PING_S, reading.place, goes_on=True, stands=True)
            if asked.site.leaving.is_set():
                return
            if now.status in GOING and reading.place >= now.events:
                await write(PING)
        await send(await _stand(asked, now, output))
        told = _response(now, output, asked)
        kind = told["status"] if told["status"] in ("completed", "failed") else "incomplete"
        await send([output.end(kind, told)])

    return EventStream(tell, asked.site.pace.stream(asked.token.name), {"X-Surefoot-Run": run.run_id})


def _response(run: RunSummary, output: Output, asked: Asked[Any, Any], status: str = "") -> Told:
    status, spent = status or _STATUS.get(run.status, "failed"), run.usage
    failed = {"code": "server_error", "message": sentence_of(asked, run)}
    details = {"cached_tokens": spent.cached_tokens, "cache_write_tokens": spent.cache_write_tokens}
    return {
        "id": f"{_RUN}{run.run_id}",
        "object": "response",
        "created_at": int(run.started_at),
        "status": status,
        "model": run.agent,
        "output": output.items,
        "error": failed if status == "failed" else None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "store": True,
        "usage": {
            "input_tokens": spent.input_tokens,
            "input_tokens_details": details,
            "output_tokens": spent.output_tokens,
            "output_tokens_details": {"reasoning_tokens": spent.reasoning_tokens},
            "total_tokens": spent.total_tokens,
        },
    }
