"""What a server tells of itself: who asks, which agents it serves, what runs have used, whether it lives."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from surefoot.agent import Agent
from surefoot.core.state.roles import SOLO
from surefoot.runtime.offers import bound_tools
from surefoot.server.answers import Problem, answer, own_version
from surefoot.server.api import Asked, problem_of
from surefoot.server.auth import RIGHTS
from surefoot.server.reads import run_of
from surefoot.server.shapes import AgentTold, By, Spent
from surefoot.server.site import Site
from surefoot.telling.text import visible, without_password
from surefoot.types.errors import RunBusy, RunUnknown, SurefootError, UsageError
from surefoot.types.ports import RunFilter, RunSummary
from surefoot.types.usage import Usage

_PAGE = 200


async def me(asked: Asked[None, None]) -> Response:
    """Say whose token this is."""
    token = asked.token
    rights = [one for one in RIGHTS if one in token.rights]
    return answer({"name": token.name, "rights": rights, "tenant": token.tenant, "version": own_version()})


async def agents(asked: Asked[None, None]) -> Response:
    """List the agents that are served, with the tools that are known before a run."""
    site = asked.site
    told: list[AgentTold] = [
        {
            "name": name,
            "description": visible(agent.description),
            "reasoner": agent.reasoner,
            "models": _models_of(agent),
            "tools": [
                {"name": visible(one.name), "effect": one.effect or "", "description": visible(one.description)}
                for one in (tool.spec for tool in bound_tools(agent.tools, agent.services).values())
            ],
        }
        for name, agent in site.agents.items()
        if asked.token.sees_agent(name)
    ]
    return answer({"agents": told, "drives": site.drives})


def _models_of(agent: Agent) -> dict[str, str]:
    chosen = agent.model if isinstance(agent.model, Mapping) else {SOLO: agent.model}
    first = {
        role: one[0] if isinstance(one, Sequence) and not isinstance(one, str) else one for role, one in chosen.items()
    }
    return {role: visible(without_password(one if isinstance(one, str) else one.name)) for role, one in first.items()}


async def usage(asked: Asked[By, None]) -> Response:
    """Sum up what runs have used."""
    by, token = asked.query.by, asked.token
    wanted = RunFilter(agents=token.only_agents, labels=token.only_labels)
    groups = defaultdict[str, list[RunSummary]](list)
    cursor, is_whole = "", False
    while not is_whole:
        page = await asked.site.store.list(wanted, cursor, _PAGE)
        for run in page.runs:
            if not run.outer:  # an outer run has counted what it asked for
                day = datetime.fromtimestamp(run.started_at, UTC).date().isoformat()
                groups[{"agent": run.agent, "day": day, "model": run.model}[by]].append(run)
        cursor, is_whole = page.next, not page.next
        await asyncio.sleep(0)
    rows: list[Spent] = []
    for key, runs in sorted(groups.items()):
        spent = sum((run.usage for run in runs), Usage())
        rows.append(
            {
                "key": visible(key),
                "runs": len(runs),
                "requests": sum(run.requests for run in runs),
                "calls": sum(run.calls for run in runs),
                "input_tokens": spent.input_tokens,
                "output_tokens": spent.output_tokens,
                "cost_usd": spent.cost_usd,
            }
        )
    return answer({"by": by, "rows": rows})


_MOST_INNER = 10_000


async def delete(asked: Asked[None, None]) -> Response:
    """Delete a run, with the runs of agents that it has asked."""
    run, store = await run_of(asked), asked.site.store
    going = [run.run_id]
    for one in await store.beginning(f"{run.run_id}.", _MOST_INNER):  # an outer run sorts before its inner ones
        if (await store.summary(one)).outer in going:
            going.append(one)
    try:
        await store.delete(run.run_id)
    except RunBusy as error:
        raise Problem("driven", visible(str(error))) from error
    except UsageError as error:
        raise Problem("has_forks", visible(str(error))) from error
    for one in reversed(going[1:]):
        with suppress(RunBusy, RunUnknown, UsageError):  # what a fork shares stays
            await store.delete(one)
    return Response(status_code=204)


async def metrics(asked: Asked[Any, Any]) -> Response:
    """Give figures in the text form of Prometheus."""
    site, count = asked.site, asked.site.store.count
    told = {
        "surefoot_runs_driven": 0 if site.worker is None else len(site.worker.driven),
        "surefoot_lease_lost": 0 if site.worker is None else site.worker.lost,
        "surefoot_runs_queued": await count(RunFilter(status="queued")),
        "surefoot_runs_waiting": await count(RunFilter(waiting=True)),
        "surefoot_streams_open": site.pace.streams,
        "surefoot_up_seconds": round(time.time() - site.began, 1),
    }
    lines = [line for name, value in told.items() for line in (f"# TYPE {name} gauge", f"{name} {value}")]
    return PlainTextResponse("\n".join((*lines, "")), media_type="text/plain; version=0.0.4")


async def healthz(_request: Request) -> Response:
    """It lives."""
    return answer({"status": "ok"})


async def readyz(request: Request) -> Response:
    """It takes runs, and its journal answers."""
    site: Site = request.app.state.site
    if site.leaving.is_set():
        raise Problem("draining", retry_after_s=10)
    try:
        await site.store.list(RunFilter(), "", 1)
    except SurefootError as error:
        raise problem_of(error) from error
    return answer({"status": "ok"})
