"""How tests start a process and listen to it, with a limit on each wait."""

import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import threading
import types
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

LIMIT_S = 60.0
"""Seconds that a test waits for a process that has little to do."""

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


@contextmanager
def limited(process: subprocess.Popen[str], limit_s: float = LIMIT_S) -> Generator[None]:
    """Kill a process that is still at it after `limit_s`, so that its pipes end and nobody waits for it for ever."""
    limit = threading.Timer(limit_s, process.kill)
    limit.start()
    try:
        yield
    finally:
        limit.cancel()


def told_until(sign: str, process: subprocess.Popen[str], pipe: IO[str] | None) -> str:
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
    command = (*COMMAND, "serve", "--agents", "agents.py", "--port", "0")
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            told = told_until("surefoot serves", process, process.stdout)
            link = re.search(r"http://127\.0\.0\.1:(\d+)/#t=(\S+)", told)
            assert link is not None
            with limited(process, limit_s):
                yield link[1], link[2]
        finally:
            process.terminate()


_LOADED = ["aiohttp", "pydantic", "pytest", "surefoot.reasoners", "surefoot.runtime.drive", "surefoot.worker"]


def ran(
    program: str, *arguments: str, folder: Path | None = None, environment: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """What came of a program, as of `python -W error -c PROGRAM`, in a process of its own that any signal may end.

    It is forked from a process that has loaded the library, so that a start costs a tenth; `sys.path` is the test's.
    """
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(_LOADED)
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        told = (out.name, err.name)
        process = forks.Process(target=_play, args=(program, arguments, folder or Path.cwd(), dict(environment), told))
        process.start()
        process.join(LIMIT_S)
        code = process.exitcode
        process.kill()  # does nothing to one that ended
        process.join()
        assert code is not None, f"it did not end within {LIMIT_S} s: {err.read().decode()}"
        return subprocess.CompletedProcess(arguments, code, out.read().decode(), err.read().decode())


def _play(
    program: str, arguments: tuple[str, ...], folder: Path, environment: dict[str, str], told: tuple[str, str]
) -> None:
    for stream, path in enumerate(told, start=1):
        os.dup2(os.open(path, os.O_WRONLY), stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["-c", *arguments]
    sys.path.insert(0, "")
    warnings.simplefilter("error")
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(program, "<string>", "exec"), main.__dict__)  # noqa: S102  # that of a test
