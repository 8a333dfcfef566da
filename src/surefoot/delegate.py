"""An agent as a tool of another: a call of it is a run of its own, in the journal of the run that makes the call.

The inner run is called "RUN.CALL", so however often the call is taken up it is that run which goes on. What it has used
counts for the outer run, and it gets what is left there. What it waits for waits in the outer run, with the call before
its id: "CALL/ITS-CALL". Its gate has the user's words, and grants what they and the hand-over both ask for. Source:
spec/guard.md, section 9; docs/agents.md.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar, cast

from surefoot.core.gate.sinks import quoted_in
from surefoot.core.guard.anchor import HandOver
from surefoot.core.guard.ledger import own_words, words_of
from surefoot.core.guard.resume import stricter
from surefoot.core.loop.fold import fold
from surefoot.core.loop.inbox import asked_in, expired
from surefoot.core.plan.child import open_calls
from surefoot.core.state.state import EMPTY, Call, State
from surefoot.run import Opened, Run, inner_run, state_of
from surefoot.runtime.act import Line, context_of, failed, fit_result, own_arguments
from surefoot.runtime.world import Watch, World
from surefoot.tools.call import ToolFailed, is_stopping
from surefoot.tools.function import check_name, innermost
from surefoot.types.config import Budget, LoopConfig
from surefoot.types.errors import JournalError, UsageError
from surefoot.types.events import CallEnded, Event, JournalOrigin, RunResumed
from surefoot.types.guard import GuardConfig
from surefoot.types.inner import MADE_BEFORE, CallPaused, InnerRun, Outer, Refused
from surefoot.types.messages import Inside
from surefoot.types.ports import JournalStore, Recorded, ServiceKey, Tool, ToolCallContext
from surefoot.types.task import Task
from surefoot.types.tools import Delegates, Effect, ToolResult, ToolSpec

_LEAST_S = 0.001


class Inner(Protocol):
    """What `Agent` is to a call that asks it."""

    @property
    def services(self) -> Mapping[ServiceKey, object]: ...

    async def aclose(self) -> None: ...

    @property
    def config(self) -> LoopConfig: ...

    def begin(
        self,
        new_id: str,
        asked: Task,
        services: Mapping[ServiceKey, object] | None,
        *,
        watch: Watch | None,
        stream: bool,
        config: LoopConfig,
        over: HandOver,
    ) -> Awaitable[Run[Any]]: ...

    def resume(
        self,
        run_id: str,
        *,
        by: str,
        config: LoopConfig | None,
        services: Mapping[ServiceKey, object] | None,
        watch: Watch | None,
        stream: bool,
        over: HandOver | None,
    ) -> Awaitable[Run[Any]]: ...


@dataclass(frozen=True)
class AgentTool:
    """An agent as a tool, made by `Agent.as_tool`; the agent that has it as a tool puts it on its own journal."""

    agent: Inner
    spec: ToolSpec
    most: Effect | None = None
    """The effect that the developer has declared for it: a gate asks about what goes beyond."""

    async def call(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:
        """What came of the agent's run. Raises `ToolFailed` for a call that no run has made."""
        line = context._line  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # it is the runtime's own
        if not isinstance(line, _InnerLine):
            raise ToolFailed("only the run of another agent can ask an agent; call `agent.run` here")
        return await line.ask(self, str(arguments.get("task", "")))

    async def delegate(self, world: World, tool: Tool, call: Call, state: State) -> Sequence[Event]:
        line = _InnerLine(world, call, state)
        try:
            result = await tool.call(own_arguments(call), context_of(state, call, math.inf, line))
        except (JournalError, asyncio.CancelledError):
            raise
        except Stands:
            return (CallPaused(call.id, await line.stands(), world.elapsed_s),)
        except BaseException as error:  # a wrapper may be anybody's code
            if is_stopping(error):
                raise
            result = failed(error)
        inner = await line.stands(result.content) if line.is_asked and await line.has_begun() else None
        is_whole = call.spec is not None and call.spec.delegates == "hand_off"
        given = await fit_result(world, result, call, state, is_whole=is_whole)
        return (CallEnded(call.id, given, world.elapsed_s, inner),)

    async def aclose(self) -> None:
        await self.agent.aclose()

    async def probe(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult | None:  # noqa: ARG002  # as `Tool` has it
        """It is never asked: its run goes on."""
        raise LookupError(f"{self.spec.name} has no probe")


T = TypeVar("T")


def on_journal(tool: T, store: JournalStore, guard: GuardConfig | None) -> T | AgentTool:
    """A tool as the agent has it that may call it: another agent is on its journal then, under the stricter guard.

    Raises `UsageError` for an agent in a wrapper, which would be on a journal of its own.
    """
    if not isinstance(tool, AgentTool):
        if isinstance(wrapped := innermost(cast("Tool", tool)), AgentTool):
            told = "is an agent in a wrapper; give it as it is, and the wrapper as `wrap_tools`"
            raise UsageError(f"{wrapped.spec.name} {told}")
        return tool
    agent = cast("Any", tool.agent)  # a dataclass, of which `Inner` knows the methods
    config = replace(tool.agent.config, guard=stricter(tool.agent.config.guard, guard))
    return replace(tool, agent=replace(agent, journal=store, config=config, guard=False))


def spec_of(name: str, description: str, effect: Effect, how: Delegates) -> ToolSpec:
    """What an agent is to whoever may call it. Raises `UsageError`."""
    check_name(name, description)
    told = "What it is to do, with all that it needs to know."
    schema = {"type": "object", "properties": {"task": {"type": "string", "description": told}}, "required": ["task"]}
    return ToolSpec(name, description, schema, effect, roles={"task": "content"}, delegates=how)


class Stands(BaseException):  # nothing went wrong, and no wrapper that catches errors may catch it
    """The inner run stands still, and waits for a person."""


def inner_run_id(state: State, call: Call) -> str:
    """The run that a call of an agent is, over all attempts at it; once it had begun, a fork has its parent's."""
    return f"{call.origin or state.run_id}.{call.id}"


class _InnerLine(Line):
    """The line from a call that asks an agent to the run that makes it."""

    def __init__(self, world: World, call: Call, state: State) -> None:
        super().__init__(world)
        self.is_asked = False
        self._call, self._of = call, state
        self._id = inner_run_id(state, call)
        assert world.store is not None  # noqa: S101  # a run has one
        self._store = world.store

    async def ask(self, tool: AgentTool, task: str) -> ToolResult:
        """The answer of the agent's run as a result. Raises `Stands` where it waits for a person."""
        world, call, state, agent = self._world, self._call, self._of, tool.agent
        given = {key: await world.services.get(key) for key, one in agent.services.items() if one is ...}
        gate = state.gate
        begun = () if gate is None else tuple(one for one in gate.started if not one.call_id.startswith(f"{call.id}/"))
        over = HandOver(
            Outer(
                call.origin or state.run_id,
                call.id,
                words_of(state),
                quoted_in(gate.known, task) if gate else "",
                own_words(state),
            ),
            gate.known.words.anchor if gate is not None else None,
            tuple(replace(one, call_id=f"{MADE_BEFORE}{one.call_id}") for one in begun if one.call_id != call.id),
            gate.noes if gate is not None else Refused(),
            tool.most,
        )
        self.is_asked = True
        watch: Watch | None = None if world.watch is None else lambda item: world.tell(Inside(call.id, self._id, item))
        run = await self._run(agent, task, over, given, watch)
        if run.status == "paused":
            raise Stands
        is_step = state.plan is not None or state.planning is not None or bool(state.scope)
        return _result(run, await state_of(self._store, self._id), call, is_step=is_step)

    async def _run(
        self, agent: Inner, task: str, over: HandOver, given: Mapping[ServiceKey, object], watch: Watch | None
    ) -> Run[Any]:
        """Begin the run, or go on with it; one that has ended is given as it is. Its guard is that of this run, too.

        Raises `ToolFailed` where another run has its name.
        """
        inner = await state_of(self._store, self._id) if await self.has_begun() else EMPTY
        stream = self._world.stream
        asked = inner.outer and (inner.outer.run_id, inner.outer.call_id)
        if inner.task is not None and asked != (over.outer.run_id, over.outer.call_id):
            self.is_asked = False
            raise ToolFailed(f"not asked: another run already has the id of this call, {self._id}")
        if inner.ending is not None:
            return Run.of(inner)
        own = agent.config if inner.task is None else inner.config
        guard = stricter(own.guard, self._of.config.guard)
        config = replace(own, budget=self._lent(agent.config.budget, inner), guard=guard)
        if inner.task is None:
            begin = partial(agent.begin, self._id, Task(task), given)
            return await begin(watch=watch, stream=stream, config=config, over=over)
        by, changed = f"run {over.outer.run_id}", config if config != own else None
        go_on = partial(agent.resume, self._id, by=by, config=changed, services=given)
        return await go_on(watch=watch, stream=stream, over=over)

    async def has_begun(self) -> bool:
        """Whether anything of the inner run is on record."""
        return self._id in await self._store.beginning(self._id, 1)

    async def stands(self, answer: str = "") -> InnerRun:
        """How the inner run stands, for the record; with what it has answered."""
        inner = await state_of(self._store, self._id)
        is_private = inner.gate is not None and quoted_in(inner.gate.known, answer) == "private"
        return replace(inner_run(inner, self._call), is_private=is_private)

    def _lent(self, own: Budget, inner: State) -> Budget:
        """The limits of the inner run: its own, and its part of what is left of those of the outer run."""
        outer, state = self._world.budget, self._of
        asked = [one for one in state.calls if one.is_open and one.spec is not None and one.spec.delegates]
        share = 1 / max(1, len(asked), self._world.asked)

        def kept_of(most: float | None) -> float | None:
            return None if most is None else most * (1 - outer.reserve)

        def least(
            mine: float | None, most: float | None, used: float, used_inside: float, share: float = share
        ) -> float | None:
            if most is None:
                return mine
            left = used_inside + max(0.0, most - used) * share
            return left if mine is None else min(mine, left)

        before = self._call.inner or InnerRun(self._id)
        spent = inner.usage.since(before.usage)  # not told of yet: the process died
        usage, requests = state.usage + spent, state.requests + inner.requests - before.requests
        is_tool = state.running_step is not None and state.running_step.kind == "tool"
        requests += not is_tool  # one is kept for what is said of the answer
        steps = least(own.max_steps, outer.max_steps, requests, inner.requests)
        tokens = least(own.max_tokens, kept_of(outer.max_tokens), usage.total_tokens, inner.usage.total_tokens)
        cost = least(own.max_cost_usd, kept_of(outer.max_cost_usd), usage.cost_usd or 0.0, inner.usage.cost_usd or 0.0)
        most_s = least(own.max_seconds, kept_of(outer.max_seconds), self._world.elapsed_s, inner.elapsed_s, 1.0)
        return replace(
            own,
            max_steps=own.max_steps if steps == own.max_steps or steps is None else max(1, int(steps)),
            max_tokens=None if tokens is None else max(1, int(tokens)),
            max_cost_usd=None if cost is None else max(1e-9, cost),
            max_seconds=None if most_s is None else max(_LEAST_S, most_s),
        )


def inner_ids(state: State) -> tuple[str, ...]:
    """The runs of agents that open calls have asked."""
    return tuple(
        inner_run_id(owner.state, call)
        for owner, call in open_calls(state)
        if call.spec is not None and call.spec.delegates and call.attempts
    )


def late(state: State, records: Sequence[Recorded]) -> tuple[Event, ...]:
    """What is put on record of questions that nobody has answered in time."""
    return expired(state, asked_in(records), time.time())


async def look_inside(store: JournalStore, state: State, origin: JournalOrigin = "own") -> tuple[Event, ...]:
    """What has changed in inner runs that waited: a question was answered there, or is too old by now.

    Of a foreign run they are foreign too, which is put on record there: no yes that they hold counts.
    """
    found: list[Event] = []
    for run_id in inner_ids(state) if origin == "foreign" else ():
        if run_id in await store.beginning(run_id, 1) and (inner := await state_of(store, run_id)).ending is None:
            await look_inside(store, inner, origin)
            async with Opened(await store.open(run_id), store) as opened:
                await opened.journal.append((RunResumed(f"run {state.run_id}", journal=origin),), "written")
    for owner, call in open_calls(state):
        if call.inner is None or not call.asks:
            continue
        run_id = call.inner.run_id
        records, _ = await store.read_recorded(run_id)
        inner = fold(record.event for record in records)
        told = (*await look_inside(store, inner), *(late(inner, records) if inner.ending is None else ()))
        if told:
            async with Opened(await store.open(run_id), store) as opened:
                await opened.journal.append(told, "written")
                opened.leave(Run.of(inner := fold(told, inner)))
        now = inner_run(inner, call)
        if now.waiting != call.inner.waiting:
            found += owner.wrap((CallPaused(call.id, now, state.elapsed_s, by=f"run {run_id}"),))
    return tuple(found)


def check_taken_up(state: State, run_id: str, over: HandOver | None) -> None:
    """Raises `UsageError` for the run of an agent that is taken up alone: it goes on with the run that has asked it."""
    outer = state.outer
    if outer is not None and over is None and state.ending is None and run_id == f"{outer.run_id}.{outer.call_id}":
        raise UsageError(f"run {run_id} is that of an agent, which goes on within run {outer.run_id}; resume that")


def _result(run: Run[Any], inner: State, call: Call, *, is_step: bool) -> ToolResult:
    """What came of an inner run, for the model that has asked; of one that gave no answer, what it did meanwhile.

    In a step of a plan nothing is handed off.
    """
    is_handed_off = call.spec is not None and call.spec.delegates == "hand_off" and not is_step
    is_value = inner.config.output_schema is not None
    if run.status == "completed":
        return ToolResult(run.answer, size=len(run.answer), structured=is_value)
    why = run.reason or run.detail or run.status
    if run.status == "completed_partial" and is_handed_off:
        return ToolResult(run.answer, size=len(run.answer), error=why)
    done = [
        f"- {one.name}: {one.result.kind if one.result else 'not settled'}"
        for turn in inner.own_turns
        for one in turn.calls
        if one.has_effect and one.attempts
    ]
    if run.status == "completed_partial":
        head, kind = f"{run.answer}\n\n(This answer is incomplete: {why}.)", "ok"
    else:
        answer = f" What it had so far: {run.answer}" if run.answer else ""
        head, kind = f"{call.name} gave no answer: it is {run.status} ({why}).{answer}", "error"
    acted = "\nCalls with an effect that it made:\n" + "\n".join(done) if done and kind == "error" else ""
    return ToolResult(head + acted, "ok" if kind == "ok" else "error")
