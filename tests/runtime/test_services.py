"""The services of a run: made once, at need; closed in reverse at the end, whatever end; and the line of a call."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import pytest

from cases import each
from surefoot.agent import Agent
from surefoot.runtime.act import Line
from surefoot.runtime.hands import LiveHands
from surefoot.runtime.services import RunServices, checked_services, is_factory
from surefoot.testing.models import ScriptedModel, calls
from surefoot.tools.call import ToolFailed
from surefoot.tools.function import tool
from surefoot.types.config import LoopConfig
from surefoot.types.errors import UsageError
from surefoot.types.events import Event
from surefoot.types.messages import Signal, ToolProgress
from surefoot.types.ports import ServiceKey, ToolCallContext

pytestmark = pytest.mark.anyio
SECRET = "hunter2"


class Db:
    """A service that tells its password to everybody who asks."""

    def __init__(self, owner: str = "") -> None:
        self.owner = owner

    def __repr__(self) -> str:
        return f"Db({SECRET})"


class CallableDb(Db):
    def __call__(self) -> str:
        return "called"


class Asks(Protocol):
    def ask(self) -> str: ...


class Cache:
    pass


class Conn(Db):
    """A service that is an async context manager, as sessions and connections are."""

    entered = closed = 0

    async def __aenter__(self) -> Conn:
        self.entered += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self.closed += 1


class Log:
    """Factories that write down what happens to their services."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def factory(self, name: str, *, closing: BaseException | None = None) -> Callable[[], AsyncGenerator[Db]]:
        async def opened() -> AsyncGenerator[Db]:
            self.seen.append(f"open {name}")
            await asyncio.sleep(0)
            yield Db()
            self.seen.append(f"close {name}")
            if closing:
                raise closing

        return opened


@pytest.fixture
def log() -> Log:
    return Log()


class TestFactories:
    @each(
        ("key", "value", "makes"),
        [
            (Db, Db, True),
            (Db, Conn, True),
            (Db, lambda: Db(), True),  # noqa: PLW0108  # the case
            (Db, functools.partial(Db), True),
            (Db, functools.lru_cache(Db), True),
            (Asks, Db, True),
            ((Db, "b"), Db, True),
            (Db, Db(), False),
            (Db, CallableDb(), False),  # an instance of its type, also when it can be called
            (Asks, CallableDb(), False),  # no function, method, partial or class
            ((str, "key"), "sesame", False),
        ],
    )
    def test_objects_are_told_from_factories(self, key: ServiceKey, value: object, makes: bool) -> None:
        assert is_factory(key, value) is makes
        assert checked_services({key: value}) == {key: value}

    @pytest.mark.parametrize(
        "form", ["object", "class", "async", "async gen", "gen", "async cm", "cm", "own cm", "own object"]
    )
    async def test_each_form_gives_the_service(self, form: str) -> None:
        closed: list[str] = []

        async def by_coroutine() -> Db:
            return Db()

        async def by_async_generator() -> AsyncGenerator[Db]:
            yield Db()
            closed.append(form)

        def by_generator() -> Generator[Db]:
            yield Db()
            closed.append(form)

        forms: dict[str, object] = {
            "object": Db(),
            "class": Db,
            "async": by_coroutine,
            "async gen": by_async_generator,
            "gen": by_generator,
            "async cm": contextlib.asynccontextmanager(by_async_generator),
            "cm": contextlib.contextmanager(by_generator),
            "own cm": Conn,
            "own object": Conn(),
        }
        async with RunServices(checked_services({Db: forms[form]})) as services:
            service = await services.get(Db)
        assert isinstance(service, Db)
        assert closed == ([form] if form in ("async gen", "gen", "async cm", "cm") else [])
        if isinstance(service, Conn):
            assert (service.entered, service.closed) == ((0, 0) if form == "own object" else (1, 1))

    @each(
        ("services", "why"),
        [
            ({"Db": Db()}, "'Db'"),
            ({(Db, ""): Db()}, "name"),
            ({(Db,): Db()}, "name"),
            ({list[int]: Db()}, "class"),
            ({ToolCallContext: Db()}, "ToolCallContext"),
            ({str: SECRET}, "hidden from the model"),
            ({Any: SECRET}, "hidden from the model"),
            ({Mapping: SECRET}, "hidden from the model"),
            ({Db: lambda x: x}, "without arguments"),  # type: ignore[misc]  # no types: the case
        ],
    )
    def test_what_cannot_be_meant_is_refused_without_showing_it(self, services: Any, why: str) -> None:  # Any: misuse
        with pytest.raises(UsageError, match=why) as caught:
            checked_services(services)
        assert SECRET not in str(caught.value)


class TestOneRun:
    async def test_each_run_makes_once_what_it_is_asked_for(self, log: Log) -> None:
        registered: dict[ServiceKey, object] = {Db: log.factory("db"), Cache: log.factory("never")}
        async with RunServices(registered) as services, RunServices(registered) as other:
            found = await asyncio.gather(*(services.get(Db) for _ in range(100)))
            assert len({id(one) for one in found}) == 1
            assert log.seen == ["open db"]
            assert await other.get(Db) is not found[0]

    @pytest.mark.parametrize("ending", [None, KeyError("the run"), asyncio.CancelledError()])
    async def test_they_close_in_reverse_however_a_run_ends_and_no_words_of_errors_are_logged(
        self, log: Log, ending: BaseException | None, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def run() -> None:
            registered: dict[ServiceKey, object] = {Db: log.factory("db")}
            registered[Cache] = log.factory("cache", closing=OSError(SECRET))
            async with RunServices(registered) as services:
                await services.get(Db)
                await services.get(Cache)
                ready.set()
                if isinstance(ending, KeyError):
                    raise ending
                if ending is not None:
                    await asyncio.Event().wait()

        ready = asyncio.Event()
        running = asyncio.create_task(run())
        await ready.wait()
        if isinstance(ending, asyncio.CancelledError):
            running.cancel()
        (came,) = await asyncio.gather(running, return_exceptions=True)
        assert (type(came), log.seen) == (type(ending), ["open db", "open cache", "close cache", "close db"])
        assert "Cache could not be closed: OSError" in caplog.text
        assert SECRET not in caplog.text

    async def test_each_is_closed_in_the_task_that_opened_it(self) -> None:
        tasks: list[object] = []

        class Tasked(Db):
            async def __aenter__(self) -> Db:
                tasks.append(asyncio.current_task())
                return self

            async def __aexit__(self, *_: object) -> None:
                tasks.append(asyncio.current_task())

        async with RunServices({Db: Tasked}) as services:
            await services.get(Db)
        assert len(tasks) == 2
        assert tasks[0] is tasks[1]

    async def test_a_failed_making_tells_the_type_only_and_is_tried_again_later(self) -> None:
        attempts: list[int] = []

        async def unsure() -> Db:
            attempts.append(1)
            await asyncio.sleep(0)
            if len(attempts) == 1:
                raise ConnectionError(SECRET)
            return Db()

        async with RunServices({Db: unsure}) as services:
            failed = await asyncio.gather(*(services.get(Db) for _ in range(10)), return_exceptions=True)
            assert {str(each) for each in failed} == {"a service of this tool could not be made: ConnectionError"}
            assert all(isinstance(each, ToolFailed) and each.infrastructure for each in failed)
            assert isinstance(await services.get(Db), Db)
        assert len(attempts) == 2

    @pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), ValueError(SECRET)])
    async def test_nothing_that_a_factory_raises_ends_the_run(self, error: BaseException) -> None:
        def bad() -> Db:
            raise error

        async with RunServices({Db: bad}) as services:
            with pytest.raises(ToolFailed, match=type(error).__name__) as caught:
                await services.get(Db)
            assert SECRET not in str(caught.value)

    async def test_a_call_that_gives_up_leaves_the_service_to_the_others(self) -> None:
        gate = asyncio.Event()

        async def slow() -> Db:
            await gate.wait()
            return Db()

        async with RunServices({Db: slow}) as services:
            first, second = (asyncio.create_task(services.get(Db)) for _ in range(2))
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.wait((first,))
            gate.set()
            assert isinstance(await second, Db)

    async def test_one_that_is_still_being_made_at_the_end_is_given_up(self) -> None:
        undone: list[str] = []

        async def never() -> AsyncGenerator[Db]:
            try:
                await asyncio.Event().wait()
                yield Db()
            finally:
                undone.append("undone")

        async with RunServices({Db: never}) as services:
            asking = asyncio.create_task(services.get(Db))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        with pytest.raises(ToolFailed):
            await asking
        assert undone == ["undone"]

    async def test_after_the_end_none_is_made_nor_one_that_nobody_registered(self, log: Log) -> None:
        async with RunServices({Db: log.factory("db")}) as services:
            with pytest.raises(ToolFailed, match=r"\(Db, 'b'\)"):
                await services.get((Db, "b"))
        with pytest.raises(ToolFailed, match="over"):
            await services.get(Db)
        assert log.seen == []


@dataclass
class Watched:
    """Hands, as far as a line asks them."""

    watch: Callable[[Event | Signal], None] | None
    services: RunServices

    def tell(self, item: Event | Signal) -> None:
        assert self.watch is not None
        self.watch(item)


def line_to(watch: Callable[[Event | Signal], None] | None) -> Line:
    return Line(cast("LiveHands", Watched(watch, RunServices({}))))


def context_of(line: Line) -> ToolCallContext:
    return ToolCallContext("run", "1.0", "key", _line=line)


class TestLine:
    async def test_progress_comes_from_the_loop_and_from_threads_in_order(self) -> None:
        seen: list[object] = []
        with line_to(seen.append) as line:
            context = context_of(line)
            context.progress("half", 1, 2)
            await asyncio.to_thread(context.progress, "all", 2, 2)
            await asyncio.sleep(0)  # from Python 3.14 on a thread that ended at once is not waited for on the loop
        assert seen == [ToolProgress("1.0", "half", 1, 2), ToolProgress("1.0", "all", 2, 2)]

    async def test_progress_is_silent_without_a_watch_after_the_call_and_outside_a_run(self) -> None:
        with line_to(None) as line:
            context_of(line).progress("nobody looks")
        seen: list[object] = []
        with line_to(seen.append) as line:
            pass
        outside = ToolCallContext("run", "1.0", "key")
        for context, words in ((context_of(line), "too late"), (outside, "no run")):
            context.progress(words)
            assert not context.cancelled
        assert seen == []

    def test_progress_of_a_thread_that_outlives_its_loop_is_lost(self) -> None:
        async def left_open() -> Line:
            return line_to(lambda _: None)

        context_of(asyncio.run(left_open())).progress("nobody is left")

    @pytest.mark.parametrize("way", ["timeout", "cancelled"])
    async def test_a_thread_learns_that_its_call_is_given_up(self, way: str) -> None:
        begun, looked, ended = threading.Event(), threading.Event(), threading.Event()
        told: list[bool] = []

        @tool
        def work(ctx: ToolCallContext) -> None:
            told.append(ctx.cancelled)
            begun.set()
            looked.wait(10)
            told.append(ctx.cancelled)
            ended.set()

        async def one_call() -> None:
            with line_to(None) as line:
                async with asyncio.timeout(None) as limit:
                    call = asyncio.ensure_future(work.call({}, context_of(line)))
                    await asyncio.to_thread(begun.wait, 10)
                    if way == "timeout":
                        limit.reschedule(0)
                    await call

        running = asyncio.create_task(one_call())
        await asyncio.to_thread(begun.wait, 10)
        if way == "cancelled":
            running.cancel()
        with pytest.raises(TimeoutError if way == "timeout" else asyncio.CancelledError):
            await running
        looked.set()
        await asyncio.to_thread(ended.wait, 10)
        assert told == [False, True]


class Closing(Db):
    def __init__(self, seen: list[str]) -> None:
        super().__init__()
        self.seen = seen

    def __enter__(self) -> Closing:
        return self

    def __exit__(self, *_: object) -> None:
        self.seen.append("closed")


class TestThroughTheFrontDoor:
    async def test_a_run_makes_closes_and_never_shows_its_services(self, tmp_path: Path) -> None:
        seen: list[str] = []

        @tool(effect="read")
        async def look(x: int, db: Db, ctx: ToolCallContext) -> str:
            ctx.progress("looking", x)
            return f"{x} {ctx.job == ctx.run_id} {ctx.operator} {ctx.deadline_s} {type(db).__name__}"

        two = calls(("look", {"x": 1}), ("look", {"x": 2, "db": "forged"}))
        model = ScriptedModel([two, calls(("look", {"x": 3})), "Found."])
        agent = Agent(model, tools=[look], services={Db: lambda: Closing(seen)}, journal=tmp_path / "runs.db")
        watched: list[object] = []
        run = await agent.run("look", watch=watched.append)
        assert run.status == "completed"
        assert seen == ["closed"]
        assert model.requests[-1].messages[-1].content == "3 True main 120.0 Closing"
        assert [each.text for each in watched if isinstance(each, ToolProgress)] == ["looking"] * 3
        await agent.aclose()
        written = b"".join(path.read_bytes() for path in tmp_path.glob("*") if path.is_file())  # noqa: ASYNC240  # small files
        assert b"look" in written
        assert b"looking" not in written
        assert b"injected_argument_ignored" in written
        assert SECRET.encode() not in written
        assert "db" not in str(model.requests[0].tools.tools[0].parameters)

    def test_what_cannot_be_given_is_told_when_the_agent_is_built(self) -> None:
        @tool
        def look(db: Db) -> None: ...

        with pytest.raises(UsageError, match="tool 'look', parameter 'db'"):
            Agent(ScriptedModel([]), tools=[look])

    async def test_a_call_whose_service_was_not_ready_in_time_did_not_run(self) -> None:
        ran: list[int] = []

        async def never() -> Db:
            await asyncio.Event().wait()
            return Db()

        @tool(timeout_s=0.01)
        async def pay(amount: int, cache: Cache, db: Db) -> None:  # noqa: ARG001
            ran.append(amount)

        model = ScriptedModel([calls(("pay", {"amount": 5})), "Later."])
        run = await Agent(model, tools=[pay], services={Cache: Cache, Db: never}).run("pay")
        assert (run.status, ran) == ("completed", [])
        told = model.requests[-1].messages[-1].content
        assert "no result within 0.01 s: one of its services was not ready, so it did not run" in told

    @pytest.mark.parametrize("part", ["function", "probe"])
    async def test_services_stay_open_while_a_thread_uses_them(self, part: str) -> None:
        seen: list[str] = []
        begun, go_on = threading.Event(), threading.Event()

        def use(db: Db) -> None:  # noqa: ARG001
            begun.set()
            go_on.wait(60)
            seen.append("used")

        async def hangs(db: Db) -> None:  # noqa: ARG001
            await asyncio.Event().wait()

        limit_s = 1.0  # the thread has begun by then, however busy the machine is
        made = tool(use) if part == "function" else tool(hangs, name="use", probe=use)
        config, model = LoopConfig(tool_timeout_s=limit_s, tool_grace_s=60), ScriptedModel([calls(("use", {}))])
        agent = Agent(model, tools=[made], services={Db: lambda: Closing(seen)}, config=config)
        running = asyncio.create_task(agent.run("use"))
        await asyncio.to_thread(begun.wait, 60)
        await asyncio.wait((running,), timeout=limit_s + 0.1)
        assert not running.done()
        go_on.set()
        assert (await running).reason == "in_doubt"
        assert seen == ["used", "closed"]

    async def test_a_thread_that_uses_no_service_holds_up_nothing(self) -> None:
        seen: list[str] = []
        begun, go_on = threading.Event(), threading.Event()

        @tool(timeout_s=0.01)
        def work(ctx: ToolCallContext) -> None:  # noqa: ARG001
            begun.set()
            go_on.wait(10)

        @tool(effect="read")
        async def look(db: Db) -> str:
            return type(db).__name__

        model = ScriptedModel([calls(("look", {})), calls(("work", {}))])
        run = await Agent(model, tools=[work, look], services={Db: lambda: Closing(seen)}).run("work")
        go_on.set()
        assert (run.reason, seen) == ("in_doubt", ["closed"])


class TestOfOneRun:
    """What is given with a run takes the place of what the agent has."""

    def agent(self, seen: list[str], db: object = ...) -> Agent:
        @tool(effect="read")
        async def whose(db: Db) -> None:
            seen.append(db.owner or type(db).__name__)

        return Agent(ScriptedModel([calls(("whose", {})), "done"] * 2), tools=[whose], services={Db: db})

    async def test_each_run_of_one_agent_and_each_turn_of_a_chat_has_its_own(self) -> None:
        seen = list[str]()
        agent = self.agent(seen)
        await agent.run("whose is it?", services={Db: Db("ann")})
        await agent.chat().send("and now?", services={Db: lambda: Db("bea")})
        assert seen == ["ann", "bea"]

    async def test_a_run_without_it_does_not_begin(self) -> None:
        agent = self.agent([])
        for start in (agent.run("whose is it?"), agent.resume("r"), agent.fork("r", 1)):
            with pytest.raises(UsageError, match=r"Db comes with each run; give services=\{Db: …\}"):
                await start
        with pytest.raises(UsageError, match="Cache is not registered"):
            await agent.run("whose is it?", services={Db: Db(), Cache: Cache()})

    async def test_it_takes_the_place_of_the_agents_for_one_run_alone(self) -> None:
        seen = list[str]()
        agent = self.agent(seen, Db("all"))
        await agent.run("whose?", services={Db: lambda: Closing(seen)})
        await agent.run("whose?")
        assert seen == ["Closing", "closed", "all"]
