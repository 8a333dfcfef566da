"""A process that is really gone: `os._exit` asks nobody, as `kill -9` does."""

from pathlib import Path

from processes import ran

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
