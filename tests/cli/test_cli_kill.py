"""A run that dies or is interrupted in the middle of a tool call, in real processes."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from cli_world import ChatServer, Json, calls, chat_server, ended, says, start, texts, wait_until

from processes import Forked, told_until
from surefoot.cli.conduct import terminable

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="needs signals of POSIX")]

TOOLS = '''
import asyncio
import time
from pathlib import Path

import surefoot

async def wait_for_go() -> None:
    while not Path("go").exists():
        await asyncio.sleep(0.01)

@surefoot.tool
async def append_line(text: str) -> str:
    """Append a line."""
    with Path("effects.txt").open("a") as file:
        file.write(text + "\\n")
    await wait_for_go()
    return "appended"

@surefoot.tool(idempotent=True)
async def set_value(text: str) -> str:
    """Set the value."""
    Path("effects.txt").write_text(text + "\\n")
    await wait_for_go()
    return "set"

@surefoot.tool
def block(text: str) -> str:
    """Append a line, in a thread that cannot be cancelled."""
    with Path("effects.txt").open("a") as file:
        file.write(text + "\\n")
    while not Path("go").exists():
        time.sleep(0.01)
    return "blocked"

@surefoot.tool(effect="read", timeout_s=0.2)
def hang(text: str) -> str:
    """Never come back."""
    while not Path("go").exists():
        time.sleep(0.01)
    return "came back"
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    return tmp_path


def start_run(folder: Path, chat: ChatServer) -> Forked:
    given = ("--guard", "off", "--model", chat.model, "--tools", "tools.py", "--no-builtin")
    return start(folder, "run", *given, "Do it.")


def broken_off(folder: Path, chat: ChatServer, tool: str, number: signal.Signals) -> tuple[str, int, str]:
    """Start a run, send it a signal in the middle of its call: the run's id, the exit code, and what it said."""
    chat.script += [calls((tool, {"text": "once"}))]
    process = start_run(folder, chat)
    wait_until((folder / "effects.txt").exists, process)
    process.send_signal(number)
    done = ended(process)
    (folder / "go").touch()
    listed = ended(start(folder, "runs")).out
    return listed.splitlines()[1].split()[0], done.code, done.err


def test_after_kill_9_an_idempotent_call_runs_again(folder: Path) -> None:
    with chat_server() as chat:
        run_id, code, _ = broken_off(folder, chat, "set_value", signal.SIGKILL)
        assert code == -signal.SIGKILL
        chat.script += [says("It is set.")]
        done = ended(start(folder, "resume", run_id))
    assert (done.code, done.out) == (0, "It is set.\n")
    assert '→ set_value(text="once")  (attempt 2)' in done.err
    assert texts(chat.bodies[1], "tool") == ["set"]


@pytest.mark.parametrize(("number", "ends"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_a_run_that_can_be_resumed(folder: Path, number: signal.Signals, ends: int) -> None:
    with chat_server() as chat:
        run_id, code, err = broken_off(folder, chat, "set_value", number)
        assert code == ends
        assert f"surefoot resume {run_id}" in err
        assert "Traceback" not in err
        chat.script += [says("It is set.")]
        assert ended(start(folder, "resume", run_id)).out == "It is set.\n"


@pytest.mark.parametrize(
    "command", [("batch", "rows.csv", "--task={n}", "--out=out.csv"), ("chat",)], ids=lambda one: one[0]
)
def test_sigterm_ends_a_batch_and_a_chat(folder: Path, command: tuple[str, ...]) -> None:
    (folder / "rows.csv").write_text("n\n1\n2\n")
    ours, theirs = os.pipe()
    os.write(theirs, b"Do it.\nAnd that.\n")
    with chat_server(*(calls(("append_line", {"text": "once"})) for _ in "12")) as chat:
        given = ("--guard=off", f"--model={chat.model}", "--tools=tools.py", "--no-builtin")
        process = start(folder, *command, *given, stdin=ours)
        wait_until((folder / "effects.txt").exists, process)
        process.send_signal(signal.SIGTERM)
        done = ended(process)
    assert (done.code, "interrupted" in done.err, "Traceback" in done.err) == (143, True, False), done.err
    assert (folder / "out.csv").exists() == (command[0] == "batch")


def test_sigterm_before_a_run_begins_says_so(folder: Path) -> None:
    (folder / "slow.py").write_text("import time\nprint('loading', flush=True)\ntime.sleep(60)  # until the signal\n")
    with chat_server() as chat:
        process = start(folder, "run", "--guard", "off", "--model", chat.model, "--tools", "slow.py", "Do it.")
        told_until("loading", process, process.stdout)
        process.send_signal(signal.SIGTERM)
        done = ended(process)
    assert (done.code, done.err) == (143, "surefoot: terminated; no run was started or resumed\n")


def test_sigterm_in_the_last_moment_of_a_run_is_not_lost() -> None:
    async def work() -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        return "done"

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(terminable(work()))


def test_sigterm_at_a_question_leaves_the_run_paused(folder: Path) -> None:
    step: Json = {"step_id": "s", "tool_id": "set_value", "dependencies": [], "parameters": {"text": "x"}}
    ours, theirs = os.openpty()
    with chat_server(says(json.dumps({"description": "one step", "steps": [step]}))) as chat:
        given = ("--model", chat.model, "--tools", "tools.py", "--no-builtin", "--reasoner", "plan", "--review-plan")
        process = start(folder, "run", *given, "Do it.", stdin=theirs)
        os.close(theirs)
        told_until("is to be signed", process, process.stderr)
        process.send_signal(signal.SIGTERM)
        done = ended(process)
        os.close(ours)
    assert done.code == 143
    assert "paused (approval)" in done.err
    assert "surefoot approve" in done.err
    assert "Traceback" not in done.err
    assert not (folder / "effects.txt").exists()


def test_the_process_does_not_wait_for_a_tool_that_cannot_be_stopped(folder: Path) -> None:
    with chat_server() as chat:
        run_id, code, err = broken_off(folder, chat, "block", signal.SIGTERM)
        assert code == 143
        assert f"surefoot settle {run_id} 1.0" in err
        chat.script += [calls(("hang", {"text": "once"})), says("It took too long.")]
        (folder / "go").unlink()
        done = ended(start_run(folder, chat))
    assert (done.code, done.out) == (0, "It took too long.\n")
    assert not (folder / "go").exists()


def test_a_second_ctrl_c_leaves_a_tool_that_cannot_be_stopped(folder: Path) -> None:
    with chat_server(calls(("block", {"text": "once"}))) as chat:
        process = start_run(folder, chat)
        wait_until((folder / "effects.txt").exists, process)
        process.send_signal(signal.SIGINT)
        assert "surefoot settle" in told_until("Ctrl-C again", process, process.stderr)
        process.send_signal(signal.SIGINT)
        assert ended(process).code == 130
    assert not (folder / "go").exists()


def test_a_run_in_another_process_can_be_followed(folder: Path) -> None:
    with chat_server(calls(("set_value", {"text": "once"})), says("It is set.")) as chat:
        process = start_run(folder, chat)
        wait_until((folder / "effects.txt").exists, process)
        assert "running" in ended(start(folder, "runs")).out
        run_id = ended(start(folder, "runs", "--json")).out.split('"run_id":"')[1].split('"')[0]
        busy = ended(start(folder, "resume", run_id))
        assert (busy.code, busy.err.count("\n")) == (1, 1)
        following = start(folder, "show", run_id, "--follow")
        told_until("→ set_value", following, following.stdout)
        (folder / "go").touch()
        assert ended(process).out == "It is set.\n"
        followed = ended(following)
    assert followed.code == 0
    assert "ended: completed" in followed.out
