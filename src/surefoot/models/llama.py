"""llama.cpp in a process of its own: while it loads a model, no other thread of its process gets a turn.

The two speak in lines of JSON: what to load, then one completion after the other; back come its events, and `null` at
the end. "stop" ends a completion with its next event, the end of the input the process. Run as a script, this module is
that process.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

JsonObject = Mapping[str, object]
OnEvent = Callable[[JsonObject], bool]
"""Gets each event of a generation, in the thread that waits for it; gives whether to stop."""

_END_S = 5.0
_STOP = b'"stop"\n'


class Llama:
    """A model that is loaded in a process of its own. Its process ends when this is freed.

    Raises `RuntimeError` where the model cannot be loaded. `params` are those of `xllamacpp.CommonParams`, by their
    paths ("model.path").
    """

    def __init__(self, params: JsonObject) -> None:
        command = [sys.executable, "-P", __file__]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)  # noqa: S603  # ours
        weakref.finalize(self, _ended, self._process)
        self._write(_line(params))
        self._read()

    def handle_completions(self, prompt: JsonObject, callback: OnEvent, /) -> None:
        """Run one completion; each event goes to the callback, which stops it by giving True."""
        self._write(_line(prompt))
        is_stopped = False
        while (event := self._read()) is not None:
            if not is_stopped and callback(event):
                is_stopped = True
                self._write(_STOP)

    def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None  # noqa: S101  # it is a pipe
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except OSError:
            self._process.kill()  # so that the next line is the end

    def _read(self) -> JsonObject | None:
        assert self._process.stdout is not None  # noqa: S101  # it is a pipe
        said: Any = json.loads(self._process.stdout.readline() or '{"failed": "its process has ended"}')
        if said is not None and "failed" in said:
            raise RuntimeError(said["failed"])
        return said


def _ended(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        assert stream is not None  # noqa: S101  # it is a pipe
        try:
            stream.close()
        except OSError:  # what was written last does not reach it any more
            continue
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever asks
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing that the library prints gets among the lines
    try:
        server = _load(json.loads(sys.stdin.buffer.readline()))
    except RuntimeError as error:
        out.write(_line({"failed": str(error)}))
        return
    asked, stopped = queue.SimpleQueue[bytes](), threading.Event()

    def listen() -> None:
        for line in sys.stdin.buffer:
            if line == _STOP:
                stopped.set()
            else:
                asked.put(line)
        os._exit(0)

    def tell(event: JsonObject) -> bool:
        out.write(_line(event))
        return stopped.is_set()

    out.write(_line(None))
    threading.Thread(target=listen, daemon=True).start()
    while True:
        prompt = json.loads(asked.get())
        stopped.clear()
        server.handle_completions(prompt, tell)
        out.write(_line(None))


def _load(settings: JsonObject) -> Any:  # Any: `xllamacpp` ships no types
    """Takes about two seconds and keeps 2 GB.

    The library opens a socket in any case. Nobody needs it: on Unix it lies in a private directory that is removed as
    soon as the model is loaded, elsewhere it is bound to this machine and asks for a key that nobody knows.
    """
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    for path, value in settings.items():
        holder, _, name = path.rpartition(".")
        setattr(getattr(params, holder) if holder else params, name, value)
    params.fit_params = False  # a trial load to find sizes that we already know
    params.warmup = False
    params.verbosity = -1
    params.ui = False
    params.n_threads_http = 1
    params.api_keys = [secrets.token_urlsafe(32)]
    with tempfile.TemporaryDirectory(prefix="surefoot-", ignore_cleanup_errors=True) as private:
        if sys.platform != "win32":
            params.hostnames = [str(Path(private, "s.sock"))]
        return xllamacpp.Server(params)


if __name__ == "__main__":
    _main()
