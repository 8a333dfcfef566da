"""Write a journal with runs in every standing, as this version leaves them: `python tests/golden/runs.py FILE`.

Done once for each release; `tests/test_upgrade.py` goes on with these runs. It uses only what every release has had.
"""

import asyncio
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from surefoot import Agent, Budget, LoopConfig, SqliteJournal, Task, tool
from surefoot.testing.journals import Crash, CrashingStore
from surefoot.testing.models import Scripted, ScriptedModel, calls
from surefoot.types.guard import GuardConfig
from surefoot.types.plan import PlanStep
from surefoot.types.ports import JournalStore

DONE = "<deliverable>\n<final_output>171</final_output>\n</deliverable>\nTASK_DONE"
BOTH = calls(("score", {"name": "Alice"}), ("score", {"name": "Bob"}))
SEND = calls(("send", {"to": "Ann", "text": "171"}))
PAY = calls(("pay", {"account": "GB29NWBK60161331926819", "amount": 900}))
STEPS = (
    PlanStep("ask", tool_id="score", parameters={"name": "Alice"}),
    PlanStep("tell", tool_id="send", parameters={"to": "Ann", "text": "{{ask}}"}, dependencies=("ask",)),
)
done: list[str] = []
"""What was really sent and paid in this process."""


@tool(effect="read")
async def score(name: str) -> int:
    """Exam score of one student. 成绩"""
    return {"Alice": 90, "Bob": 81}[name]


@tool(effect="read")
async def look(path: str) -> str:
    """Read a file."""
    return f"{path}: Rent for May: 900 to GB29NWBK60161331926819"


@tool(effect="transact")
async def pay(account: str, amount: float) -> str:
    """Pay money."""
    done.append(f"{account}: {amount}")
    return "paid"


@tool
async def send(to: str, text: str) -> str:
    """Send a message."""
    done.append(f"{to}: {text}")
    return "sent"


def agent(journal: JournalStore, replies: Sequence[Scripted], **how: Any) -> Agent:  # Any: the fields of an agent
    """The agent of all these runs, with the replies that its model gives."""
    return Agent(ScriptedModel(list(replies)), [score, look, pay, send], journal=journal, **how)


async def write(store: JournalStore) -> None:
    """Each run as far as its name says."""
    await agent(store, [BOTH, SEND, "171"]).run("Send Ann the sum of both scores.", run_id="completed")
    await agent(store, ["Both have 171."]).fork("completed", 7, new_id="forked")
    await agent(store, [BOTH, DONE], reasoner="mono").run("The sum?", run_id="mono")
    await agent(store, ["Ann has it."], reasoner="plan").run(Task("Send Ann a score.", steps=STEPS), run_id="plan")
    short = LoopConfig(budget=Budget(max_steps=1))
    await agent(store, [BOTH, ""], config=short).run("The sum?", run_id="stopped")
    careful = LoopConfig(guard=GuardConfig(approval_timeout_s=1e9))
    replies = [calls(("look", {"path": "bill.txt"})), PAY]
    await agent(store, replies, config=careful).run("Pay the bill in bill.txt, please.", run_id="asks")
    for run_id, replies, at in (("reading", [BOTH], 2), ("sending", [SEND], 2)):
        with suppress(Crash):
            await agent(CrashingStore(store, at, "after"), replies).run("Send Ann the sum.", run_id=run_id)


async def main(path: Path) -> None:
    """Write the journal at `path`, as one small file."""
    store = SqliteJournal(path)
    await write(store)
    await store.aclose()
    with closing(sqlite3.connect(path)) as db:
        db.execute("VACUUM")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
