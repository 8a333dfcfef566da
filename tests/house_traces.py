"""How much of the house one thing walks through: the functions and files of surefoot that four small runs enter.

All but the first run once unwatched, so that what is made once a process is not counted.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType

from aiohttp import web
from aiohttp.test_utils import TestServer

import surefoot
from surefoot import Agent, LoopConfig, MemoryJournal, SqliteJournal, tool
from surefoot.core.guard import judge
from surefoot.core.parse.reply import parse
from surefoot.testing.models import Scripted, ScriptedModel, calls
from surefoot.tools.call import ToolFailed
from surefoot.types.guard import GuardConfig
from surefoot.types.ports import Tool

_SOURCE = str(Path(surefoot.__file__).parent)
_TIMED = "OpenFile._look"
"""What a clock starts now and then, whatever the run does: neither it nor what it enters is counted."""
_TAGGED = '<tool_call>\n{"name": "look", "arguments": {"q": "x"}}\n</tool_call>'


@dataclass
class Trace:
    """The functions entered while it is on; with a `root`, only below that function."""

    root: CodeType | None = None
    entered: set[CodeType] = field(default_factory=set[CodeType])
    _is_on: bool = False
    _below: int = 0
    _timed: int = 0

    @property
    def functions(self) -> int:
        return len(self.entered)

    @property
    def files(self) -> int:
        return len({code.co_filename for code in self.entered})

    def turn(self, *, on: bool) -> None:
        """Begin or stop to count; what a scripted tool does at its own call."""
        self._is_on = on

    @contextmanager
    def watching(self, *, on: bool) -> Generator[None]:
        """Watch this thread, without what the collector would end meanwhile: that belongs to others."""
        gc.disable()
        self._is_on = on
        sys.setprofile(self._see)
        try:
            yield
        finally:
            sys.setprofile(None)
            gc.enable()

    def _see(self, frame: FrameType, kind: str, _: object) -> None:
        code = frame.f_code
        step = {"call": 1, "return": -1}.get(kind, 0)
        self._below += step * (code is self.root)
        self._timed += step * (code.co_qualname == _TIMED)
        is_within = (self.root is None or self._below) and not self._timed
        if kind == "call" and self._is_on and is_within and self._counts(code):
            self.entered.add(code)

    @staticmethod
    def _counts(code: CodeType) -> bool:
        is_inner = code.co_name.startswith("<") or f"{Path('surefoot', 'testing')}" in code.co_filename
        return code.co_filename.startswith(_SOURCE) and not is_inner


def _looking(trace: Trace, *, fails_first: bool = False) -> Tool:
    asked: list[str] = []

    @tool(effect="read")
    async def look(q: str) -> str:
        """Look something up."""
        asked.append(q)
        if fails_first:
            trace.turn(on=len(asked) % 2 == 1)
            if len(asked) % 2:
                raise ToolFailed("not there", code="tool:not_there")
        return f"about {q}"

    return look


def _agent(trace: Trace, *script: Scripted, plans: bool = False, guard: GuardConfig | None = None) -> Agent:
    model = ScriptedModel([*script, *script])
    reasoner = "plan" if plans else "react"
    return Agent(
        model,
        [_looking(trace, fails_first=plans)],
        journal=MemoryJournal(),
        reasoner=reasoner,
        config=LoopConfig(guard=guard),
    )


async def _watched(trace: Trace, make: Callable[[], Awaitable[object]], *, on: bool = True) -> Trace:
    await make()
    trace.entered.clear()
    with trace.watching(on=on):
        await make()
    return trace


async def plain_call() -> Trace:
    """A first run of one tool call and its answer, as users have it: the OpenAI wire, a journal on disk."""
    trace = Trace()
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"q": "x"}'}}
    messages = [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "assistant", "content": "So."}]

    async def reply(_: web.Request) -> web.Response:
        return web.json_response({"choices": [{"message": messages.pop(0), "finish_reason": "stop"}]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", reply)
    async with TestServer(app) as server:
        with TemporaryDirectory() as folder:
            journal = SqliteJournal(Path(folder, "runs.db"))
            agent = Agent(f"{server.make_url('/v1')}#m", [_looking(trace)], journal=journal)
            with trace.watching(on=True):
                await agent.run("What about x?")
            await agent.aclose()
    return trace


async def verdict() -> Trace:
    """One verdict of the gate, on a call with a value of the user's own."""
    trace = Trace(root=judge.judge.__code__)
    agent = _agent(trace, calls(("look", {"q": "x"})), "It is so.", guard=GuardConfig())
    return await _watched(trace, lambda: agent.run("What about x?"))


async def retry() -> Trace:
    """From the failure of a plan's step to its next attempt, with other parameters that a model proposes."""
    trace = Trace()
    steps = {"description": "d", "steps": [{"step_id": "a", "tool_id": "look", "parameters": {"q": "x"}}]}
    again = {"suggested_action": {"type": "retry_with_params", "data": {"q": "y"}}}
    agent = _agent(trace, json.dumps(steps), json.dumps(again), "It is so.", plans=True)
    return await _watched(trace, lambda: agent.run("What about x?"), on=False)


async def text_reply() -> Trace:
    """One tagged call read from text."""
    trace = Trace()

    async def read() -> object:
        return parse(_TAGGED)

    return await _watched(trace, read)


def traces() -> dict[str, Trace]:
    """All four, by what they follow."""
    return {name: asyncio.run(make()) for name, make in _PATHS.items()}


_PATHS: dict[str, Callable[[], Coroutine[None, None, Trace]]] = {
    "a plain tool call": plain_call,
    "a verdict of the gate": verdict,
    "a failed step to its retry": retry,
    "a text reply": text_reply,
}
