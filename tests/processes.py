"""How tests start a process and listen to it, with a limit on each wait."""

import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import types
import warnings
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Self, TypeAlias

LIMIT_S = 60.0  # seconds that a test waits for a process that has little to do

_COMMAND = """
import signal
from surefoot.cli import process
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
process()
"""
COMMAND = (sys.executable, "-c", _COMMAND)
"""The command line, with the signals as a shell in the foreground leaves them: whoever started the tests may ignore
SIGINT, as `nohup` and background jobs do, and children inherit that."""

AGENTS = '''
import asyncio
from pathlib import Path
from surefoot import Agent, tool
from surefoot.testing.models import FunctionModel, calls

@tool(effect="read", idempotent=True)
async def wait() -> str:
    """Wait until a file is there."""
    Path("begun").touch()
    while not Path("go").exists():
        await asyncio.sleep(0.02)
    return "it came"

@tool
async def write(slowly: bool = False) -> str:
    """Write a line."""
    with Path("book").open("a") as book:
        book.write("began\\n")
        book.flush()
        Path("begun").touch()
        await asyncio.sleep(60 if slowly else 0.5)
        book.write("ended\\n")
    return "written"

def reply(request):
    if any(one.role == "tool" for one in request.messages):
        return "Done."
    task = next(one.content for one in request.messages if one.role == "user")
    if "wait" in task:
        return calls(("wait", {}))
    return calls(("write", {"slowly": "slowly" in task})) if "write" in task else "Hello."

agents = {"clerk": Agent(FunctionModel(reply), tools=[wait, write])}
'''
"""An agent that answers, waits in a call that may be repeated, and writes in one that may not."""

Process: TypeAlias = "subprocess.Popen[str] | Forked"


@contextmanager
def limited(process: Process, limit_s: float = LIMIT_S) -> Generator[None]:
    """Kill a process that is still at it after `limit_s`, so that its pipes end and nobody waits for it for ever."""
    limit = threading.Timer(limit_s, process.kill)
    limit.start()
    try:
        yield
    finally:
        limit.cancel()


def told_until(sign: str, process: Process, pipe: IO[str] | None) -> str:
    """What a process says up to the line that holds `sign`; fails when it ends before, or takes too long."""
    assert pipe is not None
    told = ""
    with limited(process):
        while sign not in told:
            line = pipe.readline()
            assert line, f"{sign!r} never came: {told}"
            told += line
    return told


@contextmanager
def served(
    folder: Path, agents: str, environment: Mapping[str, str] = os.environ, limit_s: float = LIMIT_S
) -> Generator[tuple[str, str]]:
    """`surefoot serve` with a file of agents of that text, for `limit_s`: its port, and the token of its link."""
    (folder / "agents.py").write_text(agents)
    with command("serve", "--agents", "agents.py", "--port", "0", folder=folder, environment=environment) as process:
        try:
            told = told_until("surefoot serves", process, process.stdout)
            link = re.search(r"http://127\.0\.0\.1:(\d+)/#t=(\S+)", told)
            assert link is not None
            with limited(process, limit_s):
                yield link[1], link[2]
        finally:
            process.terminate()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def listening(program: Path, ports: Sequence[int], *arguments: str) -> Generator[None]:
    """A server of a file, with these arguments, once it listens at all of its ports."""
    process, until = Forked(program.read_text(encoding="utf-8"), *arguments), time.monotonic() + LIMIT_S
    with process:
        try:
            for port in ports:
                while not _is_open(port):
                    assert process.poll() is None, process.stderr.read()
                    assert time.monotonic() < until, port
                    time.sleep(0.02)
            yield
        finally:
            process.kill()


def _is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


_LOADED = [
    *("aiohttp", "docstring_parser", "mcp.server.mcpserver", "pydantic.type_adapter", "pytest", "rich.markdown"),
    *("surefoot.cli.check", "surefoot.cli.conduct", "surefoot.cli.runs", "surefoot.cli.serve", "surefoot.reasoners"),
    *("surefoot.runtime.drive", "surefoot.server.process", "surefoot.testing.models", "surefoot.worker"),
    *("typer._adapters", "uvicorn.protocols.http.h11_impl"),
]


class Forked:
    """A program, as of `python -c PROGRAM`, in a process of its own: what tests use of `subprocess.Popen`.

    It is forked from a process that has loaded the library, so that a start costs a tenth; `sys.path` is the test's.
    """

    def __init__(
        self,
        program: str,
        *arguments: str,
        folder: Path | None = None,
        environment: Mapping[str, str] = os.environ,
        stdin: int | None = None,
        is_strict: bool = False,
    ) -> None:
        forks = multiprocessing.get_context("forkserver")
        forks.set_forkserver_preload(_LOADED)
        (out, its_out), (err, its_err) = os.pipe(), os.pipe()
        its_in = os.open(os.devnull, os.O_RDONLY) if stdin is None else os.dup(stdin)
        pipes = [Connection(one) for one in (its_in, its_out, its_err)]
        told = ((program, *arguments), folder or Path.cwd(), dict(environment), pipes, is_strict)
        self._process = forks.Process(target=_play, args=told)
        self._process.start()
        for pipe in pipes:
            pipe.close()
        self.pid = self._process.pid or 0
        self.stdout, self.stderr = os.fdopen(out), os.fdopen(err)

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        self._process.join(timeout)
        if (code := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return code

    def communicate(self, timeout: float) -> tuple[str, str]:
        """All that it says from now on; it is killed if it has not ended within `timeout`."""
        with limited(self, timeout), ThreadPoolExecutor(1) as other, self:
            err = other.submit(self.stderr.read)
            return self.stdout.read(), err.result()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdout.close()
        self.stderr.close()
        self.wait(LIMIT_S)


def command(
    *arguments: str, folder: Path | None = None, environment: Mapping[str, str] = os.environ, stdin: int | None = None
) -> Forked:
    """`surefoot` with these arguments."""
    return Forked(_COMMAND, *arguments, folder=folder, environment=environment, stdin=stdin)


def ran(
    program: str, *arguments: str, folder: Path | None = None, environment: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """What came of a program; a warning in it is an error."""
    process = Forked(program, *arguments, folder=folder, environment=environment, is_strict=True)
    out, err = process.communicate(timeout=LIMIT_S)
    return subprocess.CompletedProcess(arguments, process.wait(0), out, err)


def _play(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str], pipes: Sequence[Connection], is_strict: bool
) -> None:
    for at, pipe in enumerate(pipes):
        os.dup2(pipe.fileno(), at)
        pipe.close()
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as above
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    program, *arguments = argv
    sys.argv = ["-c", *arguments]
    sys.path.insert(0, "")
    if is_strict:
        warnings.simplefilter("error")
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(program, "<string>", "exec"), main.__dict__)  # noqa: S102  # that of a test
