"""One agent used from many threads and event loops: every run completes, and nobody closes what others use."""

import asyncio
import gc
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from models.fake_endpoint import answer, endpoint
from processes import Forked, told_until
from surefoot import Agent, MemoryJournal, SqliteJournal, UsageError, tool
from surefoot.runtime.background import background_loop
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.types.messages import ModelRequest
from surefoot.types.ports import JournalStore

pytestmark = pytest.mark.anyio

LIMIT_S = 100
DONE = answer({"choices": [{"message": {"role": "assistant", "content": "done"}}]})


@tool(effect="write")
def count(word: str) -> int:
    """Length of a word."""
    return len(word)


def reply(request: ModelRequest) -> Scripted:
    word = request.messages[0].content
    return calls(("count", {"word": word})) if len(request.messages) == 1 else f"{word}: {request.messages[-1].content}"


class Closing(FunctionModel):
    """A model that cannot be used while it is closed, and counts how often it was."""

    def __init__(self, answer: Callable[[ModelRequest], Scripted] = reply) -> None:
        super().__init__(answer)
        self.closed = 0

    async def aclose(self) -> None:
        self.closed += 1


def journal_of(kind: str, folder: Path) -> JournalStore:
    return MemoryJournal() if kind == "memory" else SqliteJournal(folder / "runs.db")


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_eight_threads_of_twenty_runs_all_complete(kind: str, tmp_path: Path) -> None:
    store = journal_of(kind, tmp_path)
    agent = Agent(FunctionModel(reply), [count], journal=store)

    def twenty(thread: int) -> list[tuple[str, str]]:
        runs = (agent.run_sync(f"word{thread}-{number}", run_id=f"r{thread}-{number}") for number in range(20))
        return [(run.status, run.answer.split(":")[0]) for run in runs]

    with ThreadPoolExecutor(8) as threads:
        told = [one for found in threads.map(twenty, range(8), timeout=LIMIT_S) for one in found]
    assert told == [("completed", f"word{thread}-{number}") for thread in range(8) for number in range(20)]

    async def kept() -> int:
        try:
            return len(await store.runs(1_000))
        finally:
            await store.aclose()

    assert asyncio.run(kept()) == 160


def test_agents_that_share_a_model_and_a_journal_do_not_close_them_for_each_other() -> None:
    begun, gate = threading.Event(), threading.Event()

    @tool(effect="read", name="count")
    def waits(word: str) -> str:
        """Wait."""
        begun.set()
        gate.wait(20)
        return word

    model, store = Closing(), MemoryJournal()
    slow, quick = Agent(model, [waits], journal=store), Agent(model, [count], journal=store)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(slow.run_sync, "a")
        assert begun.wait(20)
        assert quick.run_sync("b").status == "completed"
        assert model.closed == 0
        gate.set()
        assert first.result(LIMIT_S).status == "completed"
    assert model.closed == 1


def test_an_agent_in_a_with_block_stays_open_until_its_end() -> None:
    model = Closing()
    with Agent(model, [count]) as agent:
        with agent:  # one block inside of another
            assert [agent.run_sync(word).status for word in ("a", "b")] == ["completed"] * 2
        assert model.closed == 0
    assert model.closed == 1


async def test_an_agent_in_an_async_with_block_stays_open_until_its_end() -> None:
    model = Closing()
    async with Agent(model, [count]) as agent:
        async with agent:
            assert (await agent.run("a")).status == "completed"
        assert model.closed == 0
    assert model.closed == 1


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_an_agent_on_a_loop_of_ones_own_and_in_run_sync(kind: str, tmp_path: Path) -> None:
    """A tool of a run on one loop runs the same agent on another."""

    @tool(effect="read", name="count")
    def inner(word: str) -> str:
        """Run the same agent."""
        return agent.run_sync("inner").answer if word == "outer" else word

    agent = Agent(FunctionModel(reply), [inner], journal=journal_of(kind, tmp_path))
    run = asyncio.run(agent.run("outer"))
    assert run.status == "completed"
    if kind == "memory":
        assert run.answer == "outer: inner: inner"
    else:
        assert "in use on another event loop" in run.answer
    assert agent.run_sync("again").status == "completed"


async def test_run_sync_and_with_are_refused_where_a_loop_runs() -> None:
    with pytest.raises(UsageError, match="await `run`"):
        Agent(FunctionModel(reply)).run_sync("go")
    with pytest.raises(UsageError, match="async with"), Agent(FunctionModel(reply)):
        pass


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_what_ends_a_loop_leaves_the_others_at_work(kind: type[BaseException]) -> None:
    def leaves(_: ModelRequest) -> Scripted:
        raise kind("enough")

    with pytest.raises(kind, match="enough") as raised:
        Agent(FunctionModel(leaves)).run_sync("go")
    assert raised.value.__context__ is None  # a traceback shows no other error above it
    assert Agent(FunctionModel(reply), [count]).run_sync("a").status == "completed"
    assert background_loop().is_running()


def test_a_forked_process_has_a_loop_of_its_own() -> None:
    script = """
import os, sys
from surefoot import Agent
from surefoot.testing.models import FunctionModel
agent = Agent(FunctionModel(lambda _: "done"))
assert agent.run_sync("a").answer == "done"
child = os.fork()
if not child:
    os._exit(0 if agent.run_sync("b").answer == "done" else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script]  # of 3.12, of forks beside threads
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


INTERRUPTED = """
import asyncio, signal
from surefoot import Agent, MemoryJournal, tool
from surefoot.testing.models import FunctionModel, calls

signal.signal(signal.SIGINT, signal.default_int_handler)

@tool(effect="read")
async def waits() -> str:
    "Wait for ever."
    print("at work", flush=True)
    await asyncio.Event().wait()

answers = [calls(("waits", {})), "done"]
store = MemoryJournal()
agent = Agent(FunctionModel(lambda request: answers[len(request.messages) > 1]), [waits], journal=store)
try:
    agent.run_sync("go", run_id="r")
except KeyboardInterrupt:
    listed = asyncio.run(store.runs())
    print([(run.run_id, run.status) for run in listed])
"""


def test_an_interrupt_leaves_the_run_resumable() -> None:
    process = Forked(INTERRUPTED)
    assert told_until("at work", process, process.stdout) == "at work\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=LIMIT_S) == ("[('r', 'interrupted')]\n", "")


UNCLOSED = """
import asyncio, gc, sys
from surefoot import Agent

url, journal, how = sys.argv[1:]

def agent():
    return Agent(f"{url}#m", journal=journal)

async def twice(agent):
    return [(await agent.run(word)).status for word in "ab"]

if how == "kept":
    kept = agent()
    print(*asyncio.run(twice(kept)), *asyncio.run(twice(kept)))
elif how == "dropped":
    print(asyncio.run(agent().run("a")).status)
elif how == "in a with block":
    with agent() as kept:
        print(kept.run_sync("a").status)
else:
    print(agent().run_sync("a").status)
gc.collect()
"""


@pytest.mark.parametrize("how", ["kept", "dropped", "in a with block", "run_sync"])
async def test_nothing_is_left_unclosed(how: str, tmp_path: Path) -> None:
    async with endpoint() as server:
        server.decide = lambda _: DONE
        # a journal is open until its process ends, of which Python 3.13 and later warn
        command = [sys.executable, "-W", "error", "-W", "ignore:unclosed database:ResourceWarning", "-c", UNCLOSED]
        process = await asyncio.create_subprocess_exec(
            *command, server.base_url, str(tmp_path / "runs.db"), how, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        async with asyncio.timeout(LIMIT_S):
            out, err = await process.communicate()
    assert (set(out.decode().split()), err.decode()) == ({"completed"}, "")


async def test_a_session_of_a_model_that_is_collected_is_closed() -> None:
    async with endpoint() as server:
        server.decide = lambda _: DONE
        assert (await Agent(f"{server.base_url}#m").run("a")).status == "completed"
        gc.collect()
        async with asyncio.timeout(LIMIT_S):
            await server.hung_up.wait()
