"""`surefoot serve`, which lets people see and answer runs over HTTP; and `surefoot token new`, who they are to it."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import webbrowser
from datetime import date
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surefoot.cli.agents_file import agents_in
from surefoot.cli.options import JournalOption
from surefoot.cli.setup import journal_path, open_journal, user_name
from surefoot.cli.worker import driven_at_once
from surefoot.journal.sqlite import SqliteJournal
from surefoot.types.errors import UsageError, extra_needed
from surefoot.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from surefoot.server.door import Names
    from surefoot.server.site import Limits, Site

token_app = typer.Typer(help="Tokens for `surefoot serve --tokens`.", no_args_is_help=True)

SIGNED_WITH = "SUREFOOT_NOTIFY_SECRET"
_MCP_RIGHTS = "read,start"


def serve(
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 7319,
    journal: JournalOption = None,
    agents: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Agents: a .py file with `agents`, or a .toml file.")
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Who may do what; `surefoot token new` makes its tables.")
    ] = None,
    drive: Annotated[
        int | None, typer.Option(min=0, help="Runs driven at once; 0 only serves. Default: 8 per core, up to 64.")
    ] = None,
    origin: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="Origin of a page that may call the server. Repeatable.")
    ] = None,
    host_name: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Another host name of this server. Repeatable.")
    ] = None,
    proxy: Annotated[str, typer.Option(metavar="ADDRESS", help="Proxy whose X-Forwarded headers are trusted.")] = "",
    grace: Annotated[float, typer.Option(min=0, help="Seconds for calls in progress to finish at shutdown.")] = 30.0,
    notify: Annotated[
        str, typer.Option(metavar="URL", help=f"URL to which each question is posted, signed with ${SIGNED_WITH}.")
    ] = "",
    notify_arguments: Annotated[bool, typer.Option("--notify-arguments", help="Include the arguments.")] = False,
    notify_page: Annotated[
        str, typer.Option(metavar="URL", help="Where people reach the page, for the links that are posted.")
    ] = "",
    max_task: Annotated[int, typer.Option(metavar="KIB", min=1, help="Largest task, in KiB.", show_default=True)] = 256,
    no_token: Annotated[bool, typer.Option("--no-token", help="Anyone on this machine may do everything.")] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Serve a page and an HTTP API to watch, start and answer runs. Ctrl-C stops it once its runs are at rest."""
    check_extra("serve")
    from surefoot.server.door import Names  # noqa: PLC0415  # what only this command needs loads here
    from surefoot.server.site import KIB, Limits  # noqa: PLC0415

    if no_token and tokens is not None:
        raise UsageError("--no-token and --tokens contradict each other; leave one of them out")
    if notify and not os.environ.get(SIGNED_WITH):
        raise UsageError(f"--notify: set ${SIGNED_WITH}, with which the requests are signed")
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(message)s", force=True)
    logging.getLogger("surefoot.server").setLevel(logging.INFO)
    names, limits = Names.of(host, host_name or (), origin or ()), Limits(task=max_task * KIB)
    made = partial(site_of, journal_path(journal), agents, tokens, limits, drive, no_token=no_token)
    told = partial(_notify, notify, notify_page, shows_arguments=notify_arguments) if notify else None
    asyncio.run(served(made, names, (host, port, proxy), grace, told, opens=open_page, has_tokens=tokens is not None))


def check_extra(command: str) -> None:
    """Raise `UsageError` where a package that a server needs is missing."""
    if missing := [name for name in ("starlette", "uvicorn") if find_spec(name) is None]:
        raise UsageError(f"`surefoot {command}` needs {' and '.join(missing)}; {extra_needed('server')}")


async def served(
    made: Callable[[], tuple[Site, str]],
    names: Names,
    place: tuple[str, int, str],
    grace_s: float,
    beside: Callable[[Site, str], Coroutine[object, object, None]] | None = None,
    *,
    opens: bool,
    has_tokens: bool = False,
) -> None:
    """Listen, say where, and serve until a signal. `place` is host, port and proxy.

    `beside` goes on meanwhile; it is given the address of the page.
    """
    from surefoot.server.process import is_loopback, listen, serve_site, server_of  # noqa: PLC0415

    host, port, proxy = place
    if not is_loopback(host) and not has_tokens:
        raise UsageError(f"--host {host} can be reached from elsewhere: say with --tokens FILE who may do what")
    site, secret = made()
    if isinstance(site.store, SqliteJournal):  # a file does not come back by itself, as a database does
        await site.store.list(limit=1)
    listening = listen(host, port)
    page = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}/"
    if not secret and not has_tokens:
        print("every user of this machine may approve calls here (--no-token)", file=sys.stderr)
    link = f"{page}#t={secret}" if secret else page  # no request carries a fragment

    def tell() -> None:
        print(f"surefoot serves {link}", flush=True)
        if opens:
            webbrowser.open(link)

    work = None if beside is None else beside(site, page)
    await serve_site(site, server_of(site, names, host, port, proxies=proxy), listening, grace_s, work, tell=tell)


def site_of(
    place: str, agents: Path | None, tokens: Path | None, limits: Limits, drive: int | None, *, no_token: bool = False
) -> tuple[Site, str]:
    """What is served, and the token that was made for this start, "" where none was. `place` is the journal."""
    from surefoot.server.auth import RIGHTS, Keyring, Token, digest_of, new_token, tokens_in  # noqa: PLC0415
    from surefoot.server.site import Site  # noqa: PLC0415

    secret = "" if tokens is not None or no_token else new_token()
    everything = Token(user_name(), digest_of(secret), frozenset(RIGHTS))
    keys = Keyring(tokens_in(tokens)) if tokens else Keyring((everything,)) if secret else Keyring((), everything)
    store = open_journal(place, make=True)
    served = agents_in(agents, store, place, (tokens,) if tokens else ()) if agents is not None else {}
    site = Site(store, served, keys, limits)
    drives = driven_at_once(drive)
    if drives and served:
        site.worker, site.drives = Worker(store, served, most=drives, tell=site.live.tell), drives
    return site, secret


async def _notify(url: str, reached: str, site: Site, page: str, *, shows_arguments: bool) -> None:
    from surefoot.server.notify import Notifier  # noqa: PLC0415  # it needs aiohttp

    secret = os.environ[SIGNED_WITH].encode()
    page = f"{reached.rstrip('/')}/" if reached else page
    await Notifier(site.store, site.library, url, secret, page, shows_arguments=shows_arguments).run()


@token_app.command("new")
def new(
    *,
    name: Annotated[str, typer.Argument(help="Who it is for; recorded with all that they say.")],
    rights: Annotated[str, typer.Option(help="Any of read, start, approve, cancel, admin; separated by commas.")] = "",
    made_for: Annotated[str, typer.Option("--for", metavar="mcp", help="For a client of the MCP endpoint.")] = "",
    tenant: Annotated[str, typer.Option(help="Only the runs of this tenant.")] = "",
    agent: Annotated[list[str] | None, typer.Option(help="Only runs of this agent. Repeatable.")] = None,
    speaks_as: Annotated[str, typer.Option(help="Whose words its tasks are: person, program or model.")] = "person",
    expires: Annotated[str, typer.Option(metavar="DATE", help="Its last day, such as 2027-01-31.")] = "",
) -> None:
    """Make a token. It is shown once, on stderr; the table for the tokens file goes to stdout."""
    check_extra("token")
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415

    from surefoot.server.auth import Token, digest_of, new_token, table_of  # noqa: PLC0415

    if made_for not in ("", "mcp"):
        raise UsageError(f"--for {made_for}: give mcp, or leave it out")
    given = rights or (_MCP_RIGHTS if made_for else "read")
    try:
        until = date.fromisoformat(expires) if expires else None
        secret = new_token()
        told = {"name": name, "sha256": digest_of(secret), "rights": [one.strip() for one in given.split(",")]}
        more = {"tenant": tenant, "agents": agent or ["*"], "expires": until}
        said = {"speaks_as": "model" if made_for else speaks_as}
        token = TypeAdapter(Token).validate_python({**told, **more, **said})
    except ValidationError as error:
        wrong = error.errors(include_input=False)[0]
        raise UsageError(f"{wrong['loc'][0]}: {wrong['msg']}") from error
    except ValueError as error:
        raise UsageError(f"--expires {expires}: give a day, such as 2027-01-31") from error
    if token.is_over():
        raise UsageError(f"--expires {expires}: that day is over; give a later one")
    print(f"token for {name}, shown only this once: {secret}", file=sys.stderr)
    print(table_of(token))
