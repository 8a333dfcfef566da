"""`surefoot serve` as a process: how it starts, what it refuses, how it leaves, and what it leaves when killed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, cast

import pytest

from cases import cases
from processes import AGENTS, COMMAND, LIMIT_S, Process, command, limited, told_until
from surefoot.cli.serve import serve
from surefoot.types.errors import SurefootError


@dataclass
class Child:
    """A server in a process of its own, and where it listens."""

    process: Process
    address: str
    token: str

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> HTTPResponse:
        data = None if body is None else json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **headers}
        request = urllib.request.Request(f"{self.address}{path}", data, sent, method=method)
        return cast("HTTPResponse", urllib.request.urlopen(request, timeout=LIMIT_S))

    def get(self, path: str) -> Any:
        with self.ask("GET", path) as answer:
            return json.load(answer)

    def start(self, task: str) -> str:
        with self.ask("POST", "/v1/runs", {"agent": "clerk", "task": task}) as answer:
            return str(json.load(answer)["run_id"])

    def follow(self, run: str, sign: str) -> str:
        """What the stream of a run says up to a line that holds `sign`."""
        told = ""
        with self.ask("GET", f"/v1/runs/{run}/events", Accept="text/event-stream") as answer:
            for line in answer:
                told += line.decode()
                if sign in told:
                    break
        return told

    def leave(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """The exit code, and all that it has logged."""
        self.process.send_signal(number)
        _, log = self.process.communicate(timeout=LIMIT_S)
        return self.process.wait(timeout=LIMIT_S), log


def anew(*arguments: str, folder: Path) -> subprocess.Popen[str]:
    """The command as a shell starts it, with no more in memory than it loads."""
    pipe = subprocess.PIPE
    return subprocess.Popen((*COMMAND, *arguments), cwd=folder, stdout=pipe, stderr=pipe, text=True)


@contextmanager
def child(folder: Path, *options: str, make: Callable[..., Process] = command) -> Generator[Child]:
    (folder / "agents.py").write_text(AGENTS)
    given = ("serve", "--port", "0", "--agents", "agents.py", "--journal", "runs.db", *options)
    with make(*given, folder=folder) as process:
        try:
            told = told_until("surefoot serves", process, process.stdout)
            match = re.search(r"(http://127\.0\.0\.1:\d+)/(?:#t=(sft_[\w-]{43}))?\n", told)
            assert match is not None, told
            with limited(process):
                yield Child(process, match[1], match[2] or "")
        finally:
            process.kill()


def test_a_server_starts_says_where_it_is_and_leaves_in_good_order(tmp_path: Path) -> None:
    with child(tmp_path, make=anew) as server:
        assert server.get("/readyz") == {"status": "ok"}
        assert server.get("/v1/me")["rights"] == ["read", "start", "approve", "cancel", "admin"]
        run = server.start("say hello")
        told = server.follow(run, "event: end")
        assert "event: RunEnded" in told
        assert server.get(f"/v1/runs/{run}")["answer"] == "Hello."
        memory = Path(f"/proc/{server.process.pid}/status")
        if memory.exists():
            resident = re.search(r"VmRSS:\s+(\d+) kB", memory.read_text())
            assert resident is not None
            assert int(resident[1]) <= 100 * 1024  # KiB
        code, log = server.leave()
        assert code == 0
        assert "POST /v1/runs 202" in log
        assert server.token not in log
        assert "say hello" not in log
        assert run not in log


def test_a_run_that_is_let_go_goes_on_at_the_next_start(tmp_path: Path) -> None:
    with child(tmp_path) as server:
        run = server.start("wait for it")
        assert "CallStarted" in server.follow(run, "CallStarted")
        stream = server.ask("GET", f"/v1/runs/{run}/events", Accept="text/event-stream")
        assert server.leave()[0] == 0
        assert b"event: bye" in stream.read()
    (tmp_path / "go").touch()
    with child(tmp_path) as server:
        assert "event: RunEnded" in server.follow(run, "event: end")
        assert server.get(f"/v1/runs/{run}")["answer"] == "Done."
        assert server.get(f"/v1/runs/{run}/verify")["replay"] == "ok"
        assert server.leave(signal.SIGINT)[0] == 0


@pytest.mark.slow
def test_a_call_that_may_not_be_repeated_is_given_its_grace(tmp_path: Path) -> None:
    with child(tmp_path, "--grace", "20") as server:
        run = server.start("write it")
        server.follow(run, "CallStarted")
        assert server.leave()[0] == 0
    assert (tmp_path / "book").read_text() == "began\nended\n"
    with child(tmp_path) as server:
        assert "event: RunEnded" in server.follow(run, "event: end")
        assert server.get(f"/v1/runs/{run}")["status"] == "completed"
    assert (tmp_path / "book").read_text() == "began\nended\n"


def test_what_a_killed_server_leaves_is_taken_up_or_asked_about(tmp_path: Path) -> None:
    with child(tmp_path) as server:
        waiting, writing = server.start("wait for it"), server.start("write it")
        for run in (waiting, writing):
            server.follow(run, "CallStarted")
        server.process.kill()
        server.process.wait(timeout=LIMIT_S)
    (tmp_path / "go").touch()
    with child(tmp_path) as server:
        assert "event: RunEnded" in server.follow(waiting, "event: end")
        server.follow(writing, "event: paused")
        (question,) = server.get(f"/v1/runs/{writing}")["waiting"]
        assert question["about"] == "in_doubt"
        for run in (waiting, writing):
            assert server.get(f"/v1/runs/{run}/verify")["replay"] == "ok"


@pytest.mark.slow
def test_a_second_signal_leaves_at_once(tmp_path: Path) -> None:
    with child(tmp_path, "--grace", "600") as server:
        run = server.start("write it slowly")
        server.follow(run, "CallStarted")
        stream = server.ask("GET", f"/v1/runs/{run}/events", Accept="text/event-stream")
        server.process.send_signal(signal.SIGTERM)
        assert b"event: bye" in stream.read()
        assert server.leave()[0] == 1


@pytest.mark.slow
def test_without_a_token_every_user_may_do_everything_and_is_told_so(tmp_path: Path) -> None:
    with child(tmp_path, "--no-token") as server:
        with urllib.request.urlopen(f"{server.address}/v1/me", timeout=LIMIT_S) as answer:
            assert json.load(answer)["rights"][-1] == "admin"
        code, log = server.leave()
        assert code == 0
        assert log.count("every user of this machine may approve calls") == 1


def test_tokens_are_made_kept_and_believed(tmp_path: Path) -> None:
    given = ("alice", "--rights", "read,approve", "--tenant", "acme", "--expires", "2999-01-31")
    out, err = command("token", "new", *given).communicate(timeout=LIMIT_S)
    secret = re.search(r"sft_[\w-]{43}", err)
    assert secret is not None
    assert secret[0] not in out
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(out, encoding="utf-8-sig")  # as Windows editors do
    tokens.chmod(0o600)
    with child(tmp_path, "--tokens", "tokens.toml") as server:
        assert server.token == ""
        server.token = secret[0]
        assert server.get("/v1/me") == {
            "name": "alice", "rights": ["read", "approve"], "tenant": "acme",
            "version": server.get("/v1/me")["version"],
        }  # fmt: skip


@cases("serve_refusals")
def test_what_cannot_be_meant_is_refused_before_anything_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], told: str
) -> None:
    for name, text in (
        ("agents.json", "{}"), ("bad.py", "agents = [1]"), ("bad.toml", "[agents.helper]\nnonsense = 1\n"),
        ("worse.toml", "[agents.helper]\ntemperature = 'hot'\n"),
        ("odd.toml", "[agents.\"Not A Name\"]\nmodel = 'openai:gpt-5.1'\n"), ("open.toml", ""), ("empty.toml", ""),
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o644 if name == "open.toml" else 0o600)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREFOOT_NOTIFY_SECRET", raising=False)
    given: dict[str, Any] = {name: Path(one) if name in ("agents", "tokens") else one for name, one in options.items()}
    with pytest.raises(SurefootError, match=re.escape(told)):
        serve(**given)


def test_an_agent_of_a_table_has_its_tools_and_limits(tmp_path: Path) -> None:
    (tmp_path / "agents.toml").write_text(
        '[agents.clerk]\ndescription = "Reads."\nmodel = "http://127.0.0.1:1/v1#none"\nuse = ["file_read"]\n'
        "[agents.clerk.budget]\nmax_steps = 7\n"
    )
    with child(tmp_path, "--agents", "agents.toml", "--drive", "0") as server:
        (told,) = server.get("/v1/agents")["agents"]
        assert (told["name"], told["description"]) == ("clerk", "Reads.")
        assert "file_read" in [one["name"] for one in told["tools"]]
        with server.ask("POST", "/v1/runs", {"agent": "clerk", "task": "read"}) as answer:
            run = json.load(answer)["run_id"]
        events = server.get(f"/v1/runs/{run}/events")["events"]
        assert events[0]["event"]["config"]["budget"]["max_steps"] == 7
