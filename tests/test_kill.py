"""A real process that is really gone, before and after every append: `os._exit` asks nobody, as `kill -9` does."""

import json
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from plan_kit import store_of
from processes import ran
from records import events_of
from surefoot import Agent, LoopConfig, SqliteJournal, tool
from surefoot.testing.models import FunctionModel, Scripted, ScriptedModel, calls
from surefoot.types.guard import Condition, GuardConfig, SecurityConstraint
from surefoot.types.messages import ModelRequest
from surefoot.types.plan import PlanConfig
from surefoot.types.ports import JournalStore, Tool

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PROGRAM = """
import asyncio, os, sys
from test_kill import agent_on
from surefoot.testing.journals import CrashingStore
from surefoot import SqliteJournal
from pathlib import Path

class Killed(CrashingStore):
    def when_it_comes(self):
        os._exit(9)

folder = Path(sys.argv[1])
store = Killed(SqliteJournal(folder / "journal.db"), int(sys.argv[2]), sys.argv[3])
run = asyncio.run(agent_on(folder, store).run("go", run_id="r"))
print(run.status)
"""


def agent_on(folder: Path, store: JournalStore) -> Agent:
    """An agent with a letter to send, whose tools keep a book on disk of what they really did."""
    book = folder / "book.txt"

    def note(line: str) -> None:
        with book.open("a") as file:
            file.write(line + "\n")

    @tool(effect="read")
    async def look(q: str) -> str:
        """Look something up."""
        note(f"look {q}")
        return q

    @tool
    async def send(to: str) -> str:
        """Send a letter, which cannot be called back."""
        note(f"send {to}")
        return f"sent to {to}"

    def reply(request: ModelRequest) -> Scripted:
        step = sum(1 for message in request.messages if message.role == "assistant")
        turns = [[("look", {"q": "a"}), ("look", {"q": "b"})], [("send", {"to": "Ada"})]]
        return calls(*turns[step]) if step < len(turns) else "done"

    tools: list[Tool] = [look, send]
    return Agent(FunctionModel(reply), tools=tools, journal=store)


async def finish(folder: Path) -> Counter[str]:
    """Go on where the dead process stopped, as a user would, and say what really happened in all."""
    book = folder / "book.txt"
    store = SqliteJournal(folder / "journal.db")
    agent = agent_on(folder, store)
    if (await store.read_recorded("r"))[0]:
        run = await agent.resume("r")
        if run.status == "paused":
            (call,) = run.waiting
            happened = "send Ada" in book.read_text() if book.exists() else False
            await agent.settle("r", call.id, "done" if happened else "not_done", by="Ada", result="sent to Ada")
            run = await agent.resume("r")
        assert (run.status, run.answer) == ("completed", "done")
        await events_of(store, "r")
    await agent.aclose()
    return Counter(book.read_text().splitlines()) if book.exists() else Counter()


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_killed_process_loses_nothing_and_repeats_nothing(tmp_path: Path, when: str) -> None:
    for at in range(1, 40):
        folder = tmp_path / str(at)
        folder.mkdir()
        done = ran(PROGRAM, str(folder), str(at), when)
        if done.returncode == 0:
            assert done.stdout.strip() == "completed"
            assert at > 5
            return
        assert done.returncode == 9, done.stderr
        happened = await finish(folder)
        if not happened:
            assert at <= 5  # no tool had been touched yet, so nothing is lost
            continue
        assert happened["send Ada"] == 1
        assert all(count <= 2 for count in happened.values())
    pytest.fail("the run never came to its end")


APPROVED = """
import asyncio, os, signal, sys
from test_kill import payer
from pathlib import Path

def die():
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(payer(Path(sys.argv[1]), sys.argv[2], die).resume("r"))
"""


def payer(folder: Path, reasoner: str, die: Callable[[], None] | None = None) -> Agent:
    """A guarded agent that pays two bills that nobody named, and the process dies in the middle, where it is to."""

    @tool(effect="transact")
    async def pay(account: str, amount: int) -> str:
        """Pay money."""
        if die is not None:
            die()
        with (folder / "book.txt").open("a") as file:
            file.write(f"{amount} to {account}\n")
        return "paid"

    bills = [{"account": f"GB29NWBK6016133192681{at}", "amount": 90 + at} for at in range(2)]

    def reply(request: ModelRequest) -> Scripted:
        has_results = any(message.role == "tool" for message in request.messages)
        return "done" if has_results else calls(*(("pay", bill) for bill in bills))

    plan: list[dict[str, object]] = [
        {"step_id": f"p{at}", "tool_id": "pay", "kind": "tool", "dependencies": [], "parameters": bill}
        for at, bill in enumerate(bills)
    ]
    model = FunctionModel(reply) if reasoner == "react" else ScriptedModel([json.dumps({"steps": plan})])
    most = SecurityConstraint("most", "forbid", "200 in all", Condition(effect="transact", max_amount=200))
    config = LoopConfig(guard=GuardConfig(constraints=(most,)), plan=PlanConfig(answer="off"))
    return Agent(model, [pay], journal=SqliteJournal(folder / "journal.db"), config=config, reasoner=reasoner)


@pytest.mark.parametrize("reasoner", ["react", "plan"])
async def test_what_was_approved_killed_and_not_done_is_made_once(tmp_path: Path, reasoner: str) -> None:
    agent = payer(tmp_path, reasoner)
    run = await agent.run("Pay the bills.", run_id="r")
    assert (run.status, run.reason, len(run.waiting)) == ("paused", "approval", 2)
    for call in reversed(run.waiting):
        await agent.approve("r", call.id, by="Ada")
    for _ in range(2):  # it dies again when it is made again
        died = ran(APPROVED, str(tmp_path), reasoner)
        assert died.returncode == -signal.SIGKILL, died.stderr
        run = await agent.resume("r")
        assert (run.status, run.reason) == ("paused", "in_doubt")
        for call in reversed(run.waiting):
            await agent.settle("r", call.id, "not_done", by="Ada")
    run = await agent.resume("r")
    assert run.status == "completed"
    paid = sorted((tmp_path / "book.txt").read_text().splitlines())
    assert paid == ["90 to GB29NWBK60161331926810", "91 to GB29NWBK60161331926811"]
    await events_of(store_of(agent), "r")
    await agent.aclose()


DEADLY = """
import asyncio, os, sys
from surefoot import Agent, SqliteJournal, tool
from surefoot.testing.models import ScriptedModel, calls

@tool(effect="read")
def look() -> str:
    "Look something up."
    print("looked", flush=True)
    os._exit(9)

agent = Agent(ScriptedModel([calls(("look", {}))]), tools=[look], journal=SqliteJournal(sys.argv[1]))
run = asyncio.run(agent.run("go", run_id="r") if sys.argv[2] == "run" else agent.resume("r"))
print(run.status, run.reason)
"""


def test_a_read_that_ends_the_process_each_time_is_not_tried_for_ever(tmp_path: Path) -> None:
    told = [ran(DEADLY, str(tmp_path / "journal.db"), how).stdout.strip() for how in ("run", *["resume"] * 4)]
    assert told == [*["looked"] * 3, *["paused in_doubt"] * 2]
