"""A server as a process: it listens, drives runs, and leaves on a signal without harm to any run."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from surefoot.server.app import app_of, prepare
from surefoot.server.door import Names
from surefoot.server.site import Site
from surefoot.types.errors import JournalError, UsageError
from surefoot.types.ports import RunFilter

_SWITCH_S = 0.0005
"""Long reads run in a thread; the loop waits so long for the interpreter when one is under way, not Python's 5 ms."""

LAST_WORDS_S = 2.0
"""Seconds in which answers that are under way may end once all runs are at rest."""


class Connection(H11Protocol):
    """A connection whose next request has to come within `timeout_keep_alive`; for a first, uvicorn waits for ever."""

    def connection_made(self, transport: Any) -> None:  # Any: as uvicorn has it
        super().connection_made(transport)
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def data_received(self, data: bytes) -> None:
        """Go on waiting where what has come is not yet a request: a few bytes now and then buy no time."""
        waits = self.timeout_keep_alive_task
        self.timeout_keep_alive_task = None
        super().data_received(data)
        cycle = cast("RequestResponseCycle | None", self.cycle)  # there is none before the first request
        is_at_work = cycle is not None and not cycle.response_complete
        if waits is not None and not is_at_work and self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = waits
        elif waits is not None:
            waits.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset_keepalive_if_required()
        super().connection_lost(exc)


class Server(uvicorn.Server):
    """uvicorn's server, which leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def server_of(site: Site, names: Names, host: str, port: int, *, proxies: str = "") -> Server:
    """A server that is not listening yet. It logs nothing of its own: paths and peers are in the log of the door."""
    for name in ("uvicorn.error", "mcp"):  # what was sent is for no log
        logging.getLogger(name).setLevel(logging.CRITICAL)
    config = uvicorn.Config(
        app_of(site, names),
        host,
        port,
        http=Connection,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
        h11_max_incomplete_event_size=site.limits.header,
        timeout_keep_alive=int(site.limits.idle_s),
        timeout_graceful_shutdown=int(LAST_WORDS_S),
    )
    return Server(config)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; children do not inherit it. Raises `UsageError` where the address cannot be had."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        told = f"{error.strerror}; give another --port, or 0 for a free one"
        raise UsageError(f"cannot listen at {host}, port {port}: {told}") from error


async def serve_site(
    site: Site,
    server: Server,
    listening: socket.socket,
    grace_s: float,
    beside: Awaitable[object] | None = None,
    *,
    tell: Callable[[], None] = lambda: None,
) -> None:
    """Serve until SIGTERM or SIGINT, then drain: runs come to rest, streams say bye. A second signal leaves at once.

    `beside` goes on meanwhile; when it ends, so does the server. `tell` says where, once a signal would be heard.
    """
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    sys.setswitchinterval(_SWITCH_S)
    preparing = site.desk.submit(prepare)
    # what is loaded stays; to look through all that lives holds up the loop for 50 ms while many records are read
    preparing.add_done_callback(lambda _: (gc.freeze(), gc.set_threshold(700, 10, 100)))

    def leave() -> None:
        if told.is_set():
            os._exit(1)
        told.set()

    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, leave)
    tell()
    serving = asyncio.ensure_future(server.serve([listening]))
    working = asyncio.ensure_future(site.worker.run() if site.worker is not None else told.wait())
    telling = asyncio.ensure_future(told.wait() if beside is None else beside)
    waiting = asyncio.ensure_future(told.wait())
    indexing = asyncio.ensure_future(site.store.list(RunFilter(q="any"), "1"))  # nobody shall wait for the first index
    try:
        await asyncio.wait((serving, working, telling, waiting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        site.leave()
        told.set()  # whatever ended it
        if site.worker is not None:
            await site.worker.drain(grace_s)
        server.should_exit = True
        telling.cancel()
        waiting.cancel()
        indexing.cancel()
        await asyncio.gather(serving, working)
        for one in (telling, indexing):
            with suppress(asyncio.CancelledError, JournalError):  # who searches is told what is wrong
                await one
        await site.store.aclose()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address."""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"
