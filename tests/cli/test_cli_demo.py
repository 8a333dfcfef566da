"""The demo's tasks that need what is brought before the first model call, with a model that says what a good one would.

The demo is run as `make demo` runs it; the model is a scripted server that it is pointed to by the environment.
"""

import json
import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_world import Json, calls, chat_server, says

from processes import LIMIT_S, limited, told_until

pytestmark = pytest.mark.slow

DEMO = Path(__file__).parent.parent.parent / "examples" / "demo.py"


def played(number: int, model: str, monkeypatch: pytest.MonkeyPatch) -> subprocess.CompletedProcess[str]:
    monkeypatch.setenv("SUREFOOT_MODEL", model)
    command = [sys.executable, str(DEMO), str(number)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=3 * LIMIT_S)


def first_request(bodies: list[Json]) -> str:
    return json.dumps(bodies[0]["messages"])


def entry(text: str) -> Json:
    return calls(("file_write", {"path": "./log/tuesday.md", "text": text}))


def test_an_entry_has_to_follow_the_convention_of_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with chat_server(entry("KAR-7: The ferry is closed.\n"), says("Written.")) as server:
        done = played(4, server.model, monkeypatch)
    assert "KAR-7" in first_request(server.bodies)
    assert "conventions read before the first model call: log/AGENTS.md" in done.stdout
    assert ("✓ right" in done.stdout, done.returncode) == (True, 0), done.stdout + done.stderr
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "tuesday.md").write_text("The ferry is closed.")
    assert not runpy.run_path(str(DEMO))["DEMOS"][3].is_right("", tmp_path)


def test_a_page_and_a_file_are_fetched_before_the_question_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with chat_server(calls(("arithmetic", {"expression": "4 * 17"})), says("68 or 72")) as server:
        done = played(5, server.model, monkeypatch)
    asked = first_request(server.bodies)
    assert "costs 17 francs" in asked
    assert "order 4 tickets" in asked
    assert "web_fetch" not in json.dumps(server.bodies[0]["tools"]), "nothing is left to fetch"
    assert "fetched before the first model call: 2 of 2 references" in done.stdout
    assert ("✗ WRONG" in done.stdout, done.returncode) == (True, 1), done.stdout + done.stderr
    assert runpy.run_path(str(DEMO))["DEMOS"][4].is_right("4 tickets at 17 francs: 68", DEMO)


def test_a_page_is_served_that_has_a_question_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mail = calls(("send_mail", {"to": "warden@hut.example", "body": "Two of us come on Friday."}))
    with chat_server(mail, *[says("I do not know.")] * 60) as server:
        monkeypatch.setenv("SUREFOOT_MODEL", server.model)
        command = [sys.executable, "-m", "surefoot", "demo", "--serve", "--folder", str(tmp_path), "--port", "0"]
        asked: list[int] = []
        for _ in range(2):  # the second start shows what the first one made
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
                told = told_until("All runs have ended or wait for you", process, process.stdout)
                with limited(process):
                    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
                    assert process.wait(timeout=LIMIT_S) == 0
            assert "mailer: waits for you" in told
            asked.append(len(server.bodies))
        assert asked[0] == asked[1] > 6
    assert not (tmp_path / "sent.txt").exists()
