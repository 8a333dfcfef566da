"""The MCP servers of one agent: their tools as tools of ours for a run that begins, and the end of them all."""

from __future__ import annotations

import asyncio
import logging
import re
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

import orjson

from surefoot.core.parse.validate import Validator
from surefoot.core.text import at, clean, json_text, shortened
from surefoot.core.text.json import pin_of
from surefoot.tools.call import code_of
from surefoot.tools.mcp import offers
from surefoot.tools.mcp.config import McpServer
from surefoot.tools.mcp.link import Connection, Link, LinkLost, Unreachable
from surefoot.types.attachments import Attachment, media_type_of
from surefoot.types.errors import UsageError, extra_needed
from surefoot.types.messages import ModelMessage
from surefoot.types.ports import ToolCallContext
from surefoot.types.tools import ToolResult, ToolSpec

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp_types import CallToolResult, ContentBlock, Prompt, Resource

T = TypeVar("T")


MOST_RESULT_CHARS = 4_000_000  # characters of a result that are kept at all; the rest is cut off, and the text says so
_PART_FOR_CONNECTING = 0.8
"""Of the time that a call has left. A call that is given up while it connects was not sent, and must say so itself."""

_MOST_TOLD_CHARS = 300

_CODE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
RESERVED = range(-32768, -31999)  # the codes that JSON-RPC keeps for itself

_FAILED_HTTP = range(400, 600)


class McpTool:
    """A tool under the pin that it had when it was bound: it is not called under any other.

    Its result is always untrusted. A call whose connection is lost is sent again, once, only if the developer declared
    that it may be repeated; any other is in doubt, unless it was refused, or could not be sent. Source: spec/guard.md,
    section 4.4.
    """

    def __init__(self, offer: offers.Offer, connection: Connection) -> None:
        self.offer = offer
        self.pin = offer.pin
        self.connection = connection
        self._output: Validator | None = None

    @property
    def spec(self) -> ToolSpec:
        return self.offer.spec

    def known_as(self, spec: ToolSpec) -> McpTool:
        """The same tool for a run that knows it by this declaration: under that one's pin."""
        pin = pin_of(spec)
        return self if pin == self.pin else McpTool(replace(self.offer, spec=spec, pin=pin), self.connection)

    async def call(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:
        why, is_refused = "", False
        for may_repeat in (self.spec.may_repeat, False):
            link = await self._link(context)
            if isinstance(link, ToolResult):
                return link
            try:
                return await self._send(link, arguments, context)
            except LinkLost as error:
                why, is_refused = f" ({error})" if str(error) else "", error.is_refused
                if not may_repeat:
                    break
        lost = f"The connection to the MCP server {self.connection.server.name} was lost{why}."
        if self.spec.may_repeat or is_refused:
            return self._result(lost, failed=True, infrastructure=True)
        unknown = self._result(f"{lost} Whether the call took effect is not known.", failed=True)
        return replace(unknown, kind="in_doubt")  # a person finds out: it may not be made twice

    async def probe(
        self,
        arguments: Mapping[str, object],  # noqa: ARG002  # as `Tool` has it
        context: ToolCallContext,  # noqa: ARG002  # the same
    ) -> ToolResult | None:
        """Never asked, as `spec.has_probe` is false: MCP has no question for that."""
        raise LookupError(f"{self.spec.name} cannot tell whether an interrupted call took effect")

    async def _link(self, context: ToolCallContext) -> Link | ToolResult:
        limit_s = None if context.deadline_s is None else context.deadline_s * _PART_FOR_CONNECTING
        server = self.connection.server.name
        try:
            link = await self.connection.ready(limit_s)
        except Unreachable as error:
            return self._result(f"Not called: {error}", failed=True, infrastructure=True)
        now = link.listing.offers.get(self.spec.name)
        if now is None:
            return self._result(f"Not called: the MCP server {server} does not offer this tool any more.", failed=True)
        if now.pin != self.pin:
            changed = f"Not called: the MCP server {server} has changed this tool since the run began"
            return self._result(f"{changed}; a new run sees it as it is now.", failed=True)
        return link

    async def _send(self, link: Link, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415  # the extra `mcp` loads late
        from mcp_types import CallToolResult  # noqa: PLC0415  # as above
        from pydantic import ValidationError  # noqa: PLC0415  # loads late as well

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            context.progress(message or "", progress, total)

        try:
            if self.offer.reads:
                uri = str(arguments.get("uri") or "")
                if not uri:
                    return self._result(offers.resource_lines(await link.ask(offers.resources_of)), failed=False)
                try:
                    found = await link.ask(partial(offers.attachments_of, uri=uri))
                except UsageError as error:
                    return self._result(f"Not read: {error}", failed=True)
                files = tuple(one for one in found if one.digest)
                made = self._result("\n".join(one.line if one.digest else one.text for one in found), failed=False)
                return replace(made, files=files)
            answer = await link.call(self.offer.remote, arguments, on_progress)
        except MCPError as error:
            code = error.code
            return replace(self._result(error.message, failed=True), error="" if code in RESERVED else f"tool:{code}")
        except ValidationError:
            return self._result("The call was made, but its answer is not one that MCP allows.", failed=True)
        if not isinstance(answer, CallToolResult):
            return self._result("Not done: the server asks for input of a person, which it cannot get.", failed=True)
        structured = self.spec.output is not None and not answer.is_error and answer.structured_content is not None
        if structured:
            if self._output is None:
                self._output = Validator(self.spec.output or {}, closed=False)
            if faults := "; ".join(map(str, self._output.faults(answer.structured_content)))[:_MOST_TOLD_CHARS]:
                misfit = f"The call was made, but its result does not fit the tool's own schema: {faults}"
                return self._result(misfit, failed=True)
        made = self._result(_text(answer, structured=structured), failed=answer.is_error)
        made = replace(made, files=tuple(filter(None, map(_file, answer.content))))
        return replace(made, structured=structured, error=code_in(answer) if answer.is_error else "")

    def _result(self, text: str, *, failed: bool, infrastructure: bool = False) -> ToolResult:
        """A result of the server: untrusted, and the source names it, whatever it says."""
        text = shortened(clean(text), MOST_RESULT_CHARS, "\n[cut: the result had {} characters]")
        source, kind = f"mcp:{self.connection.server.name}", "error" if failed else "ok"
        return ToolResult(text, kind, source=source, trust="untrusted", infrastructure=infrastructure)


def _text(answer: CallToolResult, *, structured: bool) -> str:
    """The text of an answer: its structured content as JSON if it is to be, else its parts one after the other."""
    if structured:
        return json_text(answer.structured_content)
    return "\n".join(map(_block, answer.content)) or (
        "(the tool gave no content)" if answer.structured_content is None else json_text(answer.structured_content)
    )


def code_in(answer: CallToolResult) -> str:
    """Class and code of a failure, by which a plan tells whether it is the same again; "" where the server gives none.

    It is looked for as `code`, at the top or under `error`, in the structured content or in a text that is JSON. Codes
    that JSON-RPC reserves are the protocol's, and too coarse to tell two failures apart.
    """
    held: object = answer.structured_content
    if held is None:
        try:
            held = orjson.loads(_text(answer, structured=False))
        except orjson.JSONDecodeError:
            return ""
    for code in (at(held, "code"), at(held, "error", "code")):
        if isinstance(code, str) and _CODE.fullmatch(code):
            return f"tool:{code}"
        if isinstance(code, int) and not isinstance(code, bool) and code not in RESERVED:
            return code_of(code) if code in _FAILED_HTTP else f"tool:{code}"
    return ""


def _block(block: ContentBlock) -> str:
    """Text as it is, also that of a text resource below a line about it; of all else one line: kind and size."""
    if block.type == "text":
        return block.text
    held = block.resource if block.type == "resource" else block
    kind, text = offers.visible_text(held.mime_type or "unknown type", 100), getattr(held, "text", None)
    base64 = str(getattr(held, "data", getattr(held, "blob", "")))
    size = f"{len(base64.rstrip('=')) * 3 // 4} bytes"  # of what the text in base64 holds
    match block.type:
        case "image" | "audio":
            return f"[{block.type}, {kind}, {size}]"
        case "resource_link":
            size = "" if block.size is None else f", {block.size} bytes"
            return f"[link to a resource: {offers.visible_text(block.uri, 500)}, {kind}{size}]"
        case "resource":
            about = f"[resource {offers.visible_text(block.resource.uri, 500)}, {kind}"
            return f"{about}, {len(text)} characters]\n{text}" if isinstance(text, str) else f"{about}, {size}]"


def _file(block: ContentBlock) -> Attachment | None:
    """A picture, sound or PDF for a model that takes it. The text has a line about it in any case."""
    held = block.resource if block.type == "resource" else block
    try:
        data = b64decode(str(getattr(held, "data", getattr(held, "blob", ""))), validate=True)
        return Attachment.from_bytes(data, block.type) if media_type_of(data) else None
    except (ValueError, UsageError):  # not base64, or too large
        return None


_LOG = logging.getLogger("surefoot")


class McpServers:
    """Servers with one connection each, opened when it is first needed and shared by all runs of an event loop.

    `async with McpServers(servers_of("mcp.json")) as servers:` closes them at the end; so does `aclose`. Raises
    `UsageError` when the extra is not installed. `backoff_s`: the pause after a try to connect that failed.
    """

    def __init__(self, servers: Sequence[McpServer], *, backoff_s: float = 0.5) -> None:
        if servers and find_spec("mcp") is None:
            raise UsageError(f"MCP servers need the package mcp; {extra_needed('mcp')}")
        self.servers = tuple(servers)
        self._backoff_s = backoff_s
        # A connection belongs to the loop that opened it, and `run_sync` has one of its own.
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, _Held] = WeakKeyDictionary()

    async def __aenter__(self) -> McpServers:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def tools(self) -> tuple[McpTool, ...]:
        """The tools as they are now, for a run that begins: servers in their order, tools in that of the server.

        The same object as before while nothing has changed. What changes later is not seen by that run: new tools stay
        hidden from it, and one whose pin changed refuses to be called. A server that was reached before and cannot be
        now offers what it did, and its calls fail. Raises `UsageError` for one that was never reached and is not
        `optional`.
        """
        return (await self._current()).tools

    async def listings(self) -> dict[str, offers.Listing]:
        """What each server offers, by its name, as of `tools`; without optional servers that were never reached."""
        held = await self._current()
        return {one.server.name: listing for one, listing in zip(held.connections, held.of, strict=True) if listing}

    async def resource(self, server: str, uri: str) -> tuple[Attachment, ...]:
        """What a resource holds, for a task: `agent.run(task, attachments=await servers.resource("docs", uri))`.

        Raises `UsageError` for a server that is not one of these or cannot be reached, and for what it cannot read.
        """
        return await self._ask(server, f"the resource {uri!r}", partial(offers.attachments_of, uri=uri))

    async def prompt(
        self, server: str, name: str, arguments: Mapping[str, str] | None = None
    ) -> tuple[ModelMessage, ...]:
        """A prompt of a server, filled in. Raises `UsageError` as `resource` does."""
        ask = partial(offers.messages_of, name=name, arguments=arguments or {})
        return await self._ask(server, f"the prompt {name!r}", ask)

    async def contents(self, server: str) -> tuple[Sequence[Resource], Sequence[Prompt]]:
        """The resources and prompts that a server lists. Raises `UsageError` as `resource` does."""
        found = await self._ask(server, "its resources", offers.resources_of)
        return found, await self._ask(server, "its prompts", offers.prompts_of)

    async def _ask(self, server: str, what: str, ask: Callable[[Client], Awaitable[T]]) -> T:
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415  # the extra `mcp` loads late

        connection = next((one for one in self._here().connections if one.server.name == server), None)
        if connection is None:
            known = ", ".join(one.name for one in self.servers) or "none"
            raise UsageError(f"unknown MCP server {server!r}; there are: {known}")
        try:
            return await (await connection.ready()).ask(ask)
        except (Unreachable, LinkLost) as error:
            raise UsageError(f"the MCP server {server} cannot be asked for {what}: {error}") from error
        except MCPError as error:
            told = connection.server.without_secrets(offers.visible_text(error.message, _MOST_TOLD_CHARS))
            raise UsageError(f"the MCP server {server} does not give {what}: {told}") from error

    async def aclose(self) -> None:
        """Close the connections of this event loop and end its processes. Can be used again afterwards."""
        held = self._held.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await asyncio.gather(*(connection.aclose() for connection in held.connections))

    def _here(self) -> _Held:
        """The connections of this event loop; those that were not needed yet are not open."""
        loop = asyncio.get_running_loop()
        if loop not in self._held:
            self._held[loop] = _Held(tuple(Connection(server, self._backoff_s) for server in self.servers))
        return self._held[loop]

    async def _current(self) -> _Held:
        held = self._here()

        async def listing_now(connection: Connection) -> offers.Listing | None:
            """What it offers now, else what it offered before; None for an optional one that was never reached."""
            try:
                await connection.ready()
            except Unreachable as error:
                if (before := connection.listing) is None and not connection.server.optional:
                    raise UsageError(f'{error}; fix it, or give it "optional": true') from error
                _LOG.warning("%s; the run begins %s", error, "with its tools as they were" if before else "without")
            return connection.listing

        now = tuple(await asyncio.gather(*map(listing_now, held.connections)))
        if any(old is not new for old, new in zip(held.of, now, strict=True)):
            held.of = now
            held.tools = tuple(
                McpTool(offer, connection)
                for connection, listing in zip(held.connections, now, strict=True)
                if listing
                for offer in listing.offers.values()
            )
        return held


class _Held:
    """The connections of one event loop, and the tools that were made from their listings."""

    def __init__(self, connections: tuple[Connection, ...]) -> None:
        self.connections = connections
        self.of: tuple[offers.Listing | None, ...] = (None,) * len(connections)
        self.tools: tuple[McpTool, ...] = ()
