"""Each command of the page on operations does what the page says, one after the other in one folder."""

import re
import shlex
from pathlib import Path

import pytest
from cli_world import Command, calls, chat_server, run_id_in, says

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
TELLS = {
    "backup": "copied to backup.db", "verify": "all is well", "copy": "copied 1 run to", "prune": "removed 0 runs",
    "import": "imported 1 run", "export": "",
}  # fmt: skip


def does_as_it_says(surefoot: Command, line: str, run_id: str, url: str = "") -> None:
    words = shlex.split(line.replace("RUN", run_id).replace("postgresql://localhost/surefoot", url))
    told = surefoot(*words[1:])
    assert (words[0], told.code) == ("surefoot", 0), told.err
    wanted = TELLS[words[2] if words[1] == "journal" else words[1]]
    assert told.out.startswith("0 runs would be removed" if "--dry-run" in words else wanted)


@pytest.fixture
def run_id(surefoot: Command) -> str:
    with chat_server(calls(("arithmetic", {"expression": "6*7"})), says("It is 42.")) as chat:
        return run_id_in(surefoot("run", "--model", chat.model, "6 times 7?").err)


def test_each_command_of_the_page_runs(surefoot: Command, run_id: str) -> None:
    assert len(COMMANDS) >= 10
    for line in COMMANDS:
        if "postgresql" not in line:
            does_as_it_says(surefoot, line, run_id)
    assert surefoot("replay", run_id, "--journal", "archive.db").out.endswith("all alike\n")


@pytest.mark.postgres
def test_the_command_that_copies_to_a_database_runs(surefoot: Command, run_id: str, postgres_url: str) -> None:
    (line,) = [line for line in COMMANDS if "postgresql" in line]
    for _ in range(2):
        does_as_it_says(surefoot, line, run_id, postgres_url)
    assert surefoot("journal", "copy", postgres_url, "back.db").out == "copied 1 run to back.db\n"
    assert surefoot("replay", run_id, "--journal", "back.db").out.endswith("all alike\n")
