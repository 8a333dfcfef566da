"""The database of a journal: its address, its connections, its tables, and what an error of it means.

A connection that breaks is made anew, with growing waits, for as long as the caller can wait. An error names host and
database, never a password. Whether a store died can be told on its own machine where there is `/proc`; elsewhere its
lease has to run out. Source: spec/scale.md, sections 3.2 and 3.5.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, LiteralString, TypeVar
from uuid import uuid4

from surefoot.types.errors import JournalError, JournalTooNew, JournalUnavailable, UsageError, extra_needed

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError as error:  # also where psycopg is there, and libpq is not
    _told = "or, with all that it needs, 'psycopg[binary]'"
    raise UsageError(f"a journal in PostgreSQL needs psycopg; {extra_needed('postgres')}, {_told}") from error

Row = tuple[Any, ...]  # Any: what a column holds, which the statement says
Values = Sequence[object] | Mapping[str, object]
Connection = psycopg.AsyncConnection[Row]
T = TypeVar("T")
ERRORS = (psycopg.Error, TimeoutError, OSError)  # what a connection raises

Tables = Literal["make", "upgrade", "look"]

FORMS = Path(__file__).with_name("postgres_forms")
"""The forms of the tables, one file for the step to each; none is ever changed."""

PATIENCE_S = 60.0  # for how long what has to be written, or read for a run, waits for a server that is away

ANSWER_S = 30.0
"""After so long without an answer a connection counts as broken. To give it up may take 10 seconds more."""

_MOST_CONNECTIONS = 4
_PROC = Path("/proc")
_LOCK = 1937076837
_LIBPQ = {
    "application_name": "surefoot",
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
_PASSING = ("08", "57P", "40001", "40P01", "53300")  # how the codes of errors begin that pass by themselves

_AWAY = ("53", "58", "25006")
"""How the codes of errors begin that say nothing about what was sent: no room, no disk, no right to write."""

_REMEDIES = {
    "42501": "give this user the rights, or have its owner run `surefoot db init`",
    "53100": "the server's disk is full; free some space, then resume",
    "25006": "this server only reads; name the one that writes",
    "53300": "it has no connection left; raise max_connections, or start fewer processes",
    "3D000": "make the database with `createdb`, or name another",
}

GONE = "the server has lost the rest, as in a failover to a standby that lagged behind"
"""Why less is there than was confirmed."""

_UNREADABLE = (
    "the journal's address cannot be read; write postgresql://USER@HOST:PORT/DATABASE, and / ? # @ of a password as "
    "%2F %3F %23 %40"
)


def is_passing(error: BaseException) -> bool:
    """Whether trying again may help: the connection broke, the server restarts, or two were in each other's way."""
    if isinstance(error, psycopg.Error):
        code = error.sqlstate
        lost = code is None and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        return lost or (code is not None and code.startswith(_PASSING))
    return isinstance(error, TimeoutError | OSError)


async def waits() -> AsyncGenerator[None]:
    """The moments at which to try again: at once, then after growing waits of up to half a second."""
    wait_s = 0.0
    while True:
        yield
        await asyncio.sleep(wait_s * (0.8 + 0.4 * random.random()))  # noqa: S311  # so that not all come at once
        wait_s = min(0.4, wait_s * 2 or 0.02)


class Database:
    """The connections of one store to its database, on one event loop at a time. Raises `JournalError`.

    `name` is the address without user and password. Connections are made at the first use, and so are the tables, if
    there are none. With "upgrade" older ones are brought to the newest form; with "look" all are left as they are.
    """

    def __init__(self, url: str, forms: Path = FORMS, *, tables: Tables = "make") -> None:
        try:
            options: dict[str, Any] = {**_LIBPQ, **conninfo_to_dict(url)}
            host, port, name = (str(options.get(one) or "") for one in ("host", "port", "dbname"))
        except psycopg.ProgrammingError:  # its words may hold the password
            raise UsageError(_UNREADABLE) from None
        if "@" in host + name or (port and not port.replace(",", "").isdecimal()):  # of a password that was cut
            raise UsageError(_UNREADABLE)
        self._address = make_conninfo(**options)
        self.name = f"postgresql://{host}{port and f':{port}'}/{name}"
        self._forms, self._tables = forms, tables
        self._free: list[Connection] = []
        self._all: set[Connection] = set()
        self._places = asyncio.Semaphore(_MOST_CONNECTIONS)
        self._making = asyncio.Lock()
        self._is_known = False
        self.breaks = 0
        weakref.finalize(self, _drop, self._all)

    async def ask(
        self, statement: LiteralString, values: Values = (), *, patience_s: float = PATIENCE_S, is_final: bool = False
    ) -> list[Row]:
        """The rows that a statement gives. One that `is_final` is not sent again when its answer was lost."""
        return await self.work(lambda one: rows_of(one, statement, values), patience_s=patience_s, is_final=is_final)

    async def work(
        self,
        work: Callable[[Connection], Awaitable[T]],
        *,
        patience_s: float = PATIENCE_S,
        is_final: bool = False,
        is_urgent: bool = False,
    ) -> T:
        """What `work` gives with a connection; it is done again when that breaks, as long as `patience_s` lasts.

        What `is_urgent` does not wait until one of the connections is free.
        """
        began, tries = time.monotonic(), 0
        async for _ in waits():
            tries += 1
            is_sent = False
            try:
                async with nullcontext() if is_urgent else self._places, self.connection() as connection:
                    is_sent = True
                    async with asyncio.timeout(ANSWER_S):
                        return await work(connection)
            except ERRORS as error:
                is_over = tries > 1 and time.monotonic() - began > patience_s
                if not self._is_known or not is_passing(error) or (is_sent and is_final) or is_over:
                    raise self.error(error) from error
        raise AssertionError  # there is always a next moment

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection]:
        """A connection. One that breaks takes the idle ones along: the server has restarted."""
        connection = self._free.pop() if self._free else await self.connect()
        try:
            yield connection
        except ERRORS as error:
            if connection.closed or is_passing(error):
                await self.broken(connection)
            raise
        except asyncio.CancelledError:  # it may be in the middle of an answer
            await connection.close()
            raise
        finally:
            if not connection.closed:
                self._free.append(connection)

    async def broken(self, connection: Connection) -> None:
        """Let go of a connection that broke, and of all that are idle."""
        self.breaks += 1
        for one in (connection, *self._free):
            await one.close()
        self._free.clear()

    async def connect(self) -> Connection:
        """A connection of one's own. Raises `psycopg.Error`; at the first one sees to the tables, too."""
        connection = await psycopg.AsyncConnection[Row].connect(
            self._address,
            autocommit=True,
            prepare_threshold=None,  # a pooler gives each transaction another backend
        )
        self._all.difference_update([one for one in self._all if one.closed])
        self._all.add(connection)
        try:
            async with self._making:
                if not self._is_known:
                    await self._see_to_tables(connection)
                    self._is_known = True
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _see_to_tables(self, connection: Connection) -> None:
        """Raise `JournalError` unless the tables have the newest form; where they are to, they get it all at once."""
        steps = sorted((int(file.stem), file) for file in self._forms.glob("*.sql"))
        newest, form = steps[-1][0], await form_of(connection)
        if (form == 0 and self._tables == "make") or (0 < form < newest and self._tables == "upgrade"):
            async with connection.transaction():
                await connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (_LOCK,))
                form = await form_of(connection)  # another process may have been first
                ((encoding,),) = await rows_of(connection, "SHOW server_encoding")
                if encoding != "UTF8":
                    told = f"its encoding is {encoding}; make one with `createdb -E UTF8`"
                    raise JournalError(f"journal {self.name}: {told}")
                for number, file in steps:
                    if number > form:
                        await connection.execute(file.read_bytes())
                        made = (number, f"surefoot {version('surefoot')}")
                        await connection.execute("INSERT INTO surefoot.meta (form, made_by) VALUES (%s, %s)", made)
                        form = number
        if form == 0:
            raise JournalError(f"journal {self.name}: it has no tables; run `surefoot db init`")
        if form > newest:
            raise JournalTooNew(
                f"journal {self.name}: its tables have form {form}, this surefoot knows {newest}: upgrade it"
            )
        if form < newest:
            raise JournalError(
                f"journal {self.name}: its tables have form {form}, not {newest}; run `surefoot db upgrade`"
            )

    def error(self, error: BaseException) -> JournalError:
        """What went wrong, with which database, and what to do."""
        if isinstance(error, JournalError):
            return error
        code = getattr(error, "sqlstate", None) or ""
        said = error.diag.message_primary if isinstance(error, psycopg.Error) else None  # not where in our statements
        told = " ".join((said or str(error)).split()) or "it gave no answer"
        remedy = _REMEDIES.get(code, "see whether it is up and can be reached" if is_passing(error) else "see its log")
        kind = JournalUnavailable if is_passing(error) or code.startswith(_AWAY) else JournalError
        return kind(f"journal {self.name}: {told}; {remedy}")

    def rebind(self) -> None:
        """Go on on another event loop: what was connected on the one before is dropped."""
        _drop(self._all)
        self._free.clear()
        self._places, self._making = asyncio.Semaphore(_MOST_CONNECTIONS), asyncio.Lock()

    async def aclose(self) -> None:
        """Close the connections that nobody uses."""
        while self._free:
            await self._free.pop().close()


async def rows_of(connection: Connection, statement: LiteralString, values: Values = ()) -> list[Row]:
    """The rows that a statement gives, none for one that gives no rows."""
    cursor = await connection.execute(statement, values or None)
    return await cursor.fetchall() if cursor.description is not None else []


async def form_of(connection: Connection) -> int:
    """The form of the tables, 0 where there are none."""
    is_there = await rows_of(connection, "SELECT 1 FROM pg_tables WHERE schemaname = 'surefoot' AND tablename = 'meta'")
    return int((await rows_of(connection, "SELECT max(form) FROM surefoot.meta"))[0][0]) if is_there else 0


def _drop(connections: set[Connection]) -> None:
    while connections:
        connections.pop().pgconn.finish()


def new_token() -> str:
    """A name that no other store has: machine, process and when that began, and a number."""
    return f"{_machine()}:{os.getpid()}:{_began(os.getpid())}:{uuid4().hex}"


def is_dead_here(token: str) -> bool:
    """Whether that is a store of a process of this machine which has ended."""
    match token.split(":"):
        case [machine, pid, began, _] if machine and machine == _machine() and pid.isdecimal():
            return _began(int(pid)) != began
        case _:
            return False


@cache
def _machine() -> str:
    """This start of this machine, as its processes see it; "" where that cannot be told."""
    with suppress(OSError):
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{(_PROC / 'self/ns/pid').stat().st_ino}"
    return ""


def _began(pid: int) -> str:
    """When a process began, in ticks since the start of the machine; "" where it has ended."""
    with suppress(OSError, IndexError):
        told = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return "" if told[0] in "ZX" else told[19]
    return ""
