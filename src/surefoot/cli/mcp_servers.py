"""The command for MCP servers: `mcp list`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli.lines import Line, json_line, visible
from surefoot.cli.live import put, stdout
from surefoot.core.gate.effects import guess
from surefoot.tools.mcp.offers import Listing, Offer
from surefoot.tools.mcp.servers import McpServers

app = typer.Typer(help="MCP servers: see what they offer.", no_args_is_help=True)

_PIN_CHARS = 12


@app.callback()
def everywhere() -> None:
    """MCP servers: see what they offer."""


@app.command(name="list")
def listed(
    files: Annotated[list[Path], typer.Argument(metavar="FILE.json...", help="Files of MCP servers.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a tool.")] = False,
) -> None:
    """Start the servers of files and list their tools: effect, pin, and what is left out and why."""
    from surefoot.tools.mcp.config import servers_of  # noqa: PLC0415  # pydantic loads when it is used

    listings = asyncio.run(_listings(McpServers(servers_of(files))))
    if as_json:
        for server, listing in listings.items():
            for offer in listing.offers.values():
                print(json_line({"server": server, "remote": offer.remote, "pin": offer.pin, "spec": offer.spec}))
        return
    for server, listing in listings.items():
        put(stdout(), [Line(f"{visible(server)}: {len(listing.offers)} tools", "head"), *_lines(listing)])


async def _listings(servers: McpServers) -> dict[str, Listing]:
    async with servers:
        return await servers.listings()


def _lines(listing: Listing) -> list[Line]:
    width = max(map(len, listing.offers), default=0)
    rows = [
        Line(f"  {name:<{width}}  {_effect(offer):<30}  pin {offer.pin[:_PIN_CHARS]}")
        for name, offer in listing.offers.items()
    ]
    return rows + [Line(f"  - {visible(name)}: {visible(why)}", "dim") for name, why in listing.dropped]


def _effect(offer: Offer) -> str:
    """The effect, and whose word it is: the developer's, or nobody's and then what the gate takes it for."""
    spec = offer.spec
    taken = guess(spec)
    egress = " +egress" if taken.egress else ""
    if spec.declared:
        return f"{spec.effect}{egress} (declared)"
    return f"{spec.effect}{egress} (taken for {taken.effect or 'unknown'})"
