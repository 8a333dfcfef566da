"""Runs that begin: started, forked. Their opening events are on disk before the answer is; a worker drives them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from hashlib import sha256
from re import compile as pattern
from typing import Any

from starlette.responses import Response

from surefoot.agent import Agent
from surefoot.run import new_run_id
from surefoot.server.answers import OWN_LABELS, STARTED_BY, TENANT, Problem, answer, dumped, run_json
from surefoot.server.api import Asked
from surefoot.server.follow import events_stream
from surefoot.server.reads import check_reads, run_of
from surefoot.server.shapes import Fork, Start, Tighter
from surefoot.server.tales import Reading
from surefoot.telling.text import visible
from surefoot.types.config import LoopConfig
from surefoot.types.errors import RunBusy, RunExists, RunUnknown
from surefoot.types.events import RunForked, RunStarted
from surefoot.types.plan import PlanConfig
from surefoot.types.ports import RunFilter, RunSummary
from surefoot.types.task import Task

_TRACEPARENT = pattern(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_RETRY_S = 10.0
_LOOKS, _LOOK_S = 100, 0.02
NO_LABELS: Mapping[str, str] = {}
NO_LIMITS = Tighter()


async def start(asked: Asked[None, Start]) -> Response:
    """Start a run."""
    body = asked.body
    attachments = tuple(one.attachment() for one in body.attachments)
    task = Task(body.task, attachments, steps=body.steps, context=body.context, author=asked.token.speaks_as)
    with asked.site.pace.stream(asked.token.name) if body.stream else nullcontext():  # 429 before anything is begun
        run, is_replayed = await begin_run(asked, body.agent, task, body.labels, body.limits)
    if body.stream:
        return events_stream(asked, run, 0, {"Location": f"/v1/runs/{run.run_id}"})
    return _answer(run, is_replayed=is_replayed)


async def begin_run(
    asked: Asked[Any, Any], name: str, task: Task, labels: Mapping[str, str] = NO_LABELS, limits: Tighter = NO_LIMITS
) -> tuple[RunSummary, bool]:
    """A run of the agent `name` for that task, and whether an earlier request with this key has begun it.

    Raises `Problem`.
    """
    agent = agent_of(asked, name)
    if (size := len(task.text.encode())) > (most := asked.site.limits.task):
        raise Problem("too_large", f"the task has {size:,} bytes; it may have {most:,}")
    config = tightened(agent, agent.config, limits)

    async def begin(run_id: str, labels: Mapping[str, str], request: str) -> object:
        return await agent.start(task, run_id=run_id, labels=labels, config=config, request=request)

    return await once(asked, ("start", 0), labels, begin)


async def fork(asked: Asked[None, Fork]) -> Response:
    """Start a run that shares the first records of another."""
    body, parent = asked.body, await run_of(asked)
    check_reads(asked, parent)
    agent = agent_of(asked, body.agent or parent.agent)
    if body.at > parent.events:
        raise Problem("invalid", f"the run has {parent.events} records; fork it at 1 to {parent.events}")
    config: LoopConfig | None = agent.config
    if agent.name == parent.agent:  # it keeps its own limits
        tale = await asked.site.library.tale(Reading(asked.site.store, parent.run_id), body.at)
        config = tale.state.config if body.limits != NO_LIMITS else None
    config = tightened(agent, config, body.limits) if config is not None else None

    async def begin(run_id: str, labels: Mapping[str, str], request: str) -> object:
        begin = partial(agent.fork, parent.run_id, body.at, new_id=run_id, config=config, drives=False)
        return await begin(labels=labels, request=request)

    inherited = {key: value for key, value in parent.labels.items() if not key.startswith(OWN_LABELS)}
    run, is_replayed = await once(asked, (f"fork {parent.run_id}", body.at), {**inherited, **body.labels}, begin)
    return _answer(run, is_replayed=is_replayed)


def tightened(agent: Agent, config: LoopConfig, limits: Tighter) -> LoopConfig:
    """A configuration with limits that are not looser than the agent's. Raises `Problem` for one that is."""
    given = limits.model_dump(exclude_none=True)
    if agent.reasoner == "plan" and "max_steps" in given:  # its own ceiling is the one that counts
        plan = agent.config.plan or PlanConfig()
        _check("max_steps", given["max_steps"], plan.max_llm_calls)
        config = replace(config, plan=replace(config.plan or plan, max_llm_calls=given["max_steps"]))
    for name, value in given.items():
        _check(name, value, getattr(agent.config.budget, name))
    return replace(config, budget=replace(config.budget, **given)) if given else config


def _check(name: str, value: float, most: float | None) -> None:
    if most is not None and value > most:
        told = f"limits.{name}: the agent allows at most {most:g}"
        raise Problem("invalid", told, faults=[{"path": f"limits.{name}", "message": f"give at most {most:g}"}])


def agent_of(asked: Asked[Any, Any], name: str) -> Agent:
    """The agent of that name. Raises `Problem` where it is not served, or not to this token."""
    agent = asked.site.agents.get(name)
    if agent is None or not asked.token.sees_agent(name):
        raise Problem("agent_unknown", f"unknown agent {visible(name)!r}; `GET /v1/agents` lists those that are served")
    return agent


async def once(
    asked: Asked[Any, Any],
    what: tuple[str, int],
    labels: Mapping[str, str],
    begin: Callable[[str, Mapping[str, str], str], Awaitable[object]],
) -> tuple[RunSummary, bool]:
    """The run that `begin` makes, or the one that a request with this key has made before.

    `what` is what the request does, and which record then names it. The run's id is made of tenant and key, so the
    store itself sees to it that two servers at once make one run.
    """
    site, token, key = asked.site, asked.token, asked.key
    if site.leaving.is_set():
        raise Problem("draining", "this server accepts no new runs", retry_after_s=_RETRY_S)
    request = sha256(dumped([*what, asked.body.model_dump()])).hexdigest() if key else ""
    run_id = sha256(dumped([token.tenant, key])).hexdigest()[:24] if key else new_run_id()
    if key and (made := await _earlier_run(asked, run_id, request, what[1])):
        return made, True
    waiting = RunFilter(status="queued", labels=token.only_labels)
    if await site.store.count(waiting, site.limits.queued) >= site.limits.queued:
        raise Problem("too_many_runs", f"{site.limits.queued:,} runs are queued already", retry_after_s=_RETRY_S)
    own = {STARTED_BY: token.name, **({TENANT: token.tenant} if token.tenant else {})}
    trace = asked.request.headers.get("traceparent", "")
    traced = {"traceparent": trace} if _TRACEPARENT.fullmatch(trace) else {}
    try:
        await begin(run_id, {**traced, **labels, **own}, request)
    except (RunExists, RunBusy):  # somebody else has just made it, or is about to
        for _ in range(_LOOKS if key else 0):
            if made := await _earlier_run(asked, run_id, request, what[1]):
                return made, True
            await asyncio.sleep(_LOOK_S)
        raise
    site.stir()
    return await site.store.summary(run_id), False


async def _earlier_run(asked: Asked[Any, Any], run_id: str, request: str, at: int) -> RunSummary | None:
    """The run that the same request has made before. Raises `Problem` where it was another request."""
    store = asked.site.store
    try:
        run = await store.summary(run_id)
    except RunUnknown:
        return None
    if not run.events:
        return None
    records, _ = await store.read_recorded(run_id, at, 1)
    if not records:  # a fork that is about to be made
        return None
    match records[0].event:
        case RunStarted(request=before) | RunForked(request=before) if before == request:
            return run
        case _:
            raise Problem("key_reused", "this Idempotency-Key was used for another request")


def _answer(run: RunSummary, *, is_replayed: bool) -> Response:
    return answer(run_json(run), 202, {"Location": f"/v1/runs/{run.run_id}"}, is_replayed=is_replayed)
