"""What a server lists: its tools as declarations, each with a name and a pin; its resources and prompts.

A tool is always called `SERVER__TOOL` here. With a prefix on clash alone, adding a server would rename tools of another
one, by which journals, profiles, rules and pins know them. A resource becomes an attachment of a task, or is read by a
model. Every word here comes from outside: texts lose what does not show and are cut; hints of the server may raise an
effect, never lower one; what the developer declares stands. Source: spec/guard.md, sections 3.3, 4.3 and 4.4.
"""

from __future__ import annotations

import re
import unicodedata
from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from surefoot.core.state.window import READ_RESULT
from surefoot.core.text import shortened
from surefoot.core.text.json import pin_of
from surefoot.core.text.look import SHOWS_NOTHING
from surefoot.tools.mcp.config import McpServer
from surefoot.types.attachments import Attachment
from surefoot.types.errors import UsageError
from surefoot.types.messages import ModelMessage
from surefoot.types.plan import RESERVED
from surefoot.types.rules import Declared
from surefoot.types.tools import ToolSpec

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp_types import Prompt, Resource, Tool

MOST_DESCRIPTION_CHARS = 600
MOST_TOOLS = 1_000  # tools of one server; what it lists beyond is dropped

LONGEST_NAME = 64
SEPARATOR = "__"

_DIGEST_CHARS = 8
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")
_UNDECLARED = Declared()
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_SAID = ("description", "title", "$comment")  # keys of a JSON Schema that only speak to the reader
_VALUES = ("const", "default", "enum", "examples", "required", "pattern")
"""Keys of a JSON Schema that hold values, in which nothing is a subschema."""
_NAMED = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
"""Keys of a JSON Schema that hold subschemas by name."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool as it is offered: its declaration, the server's own name for it, and its pin.

    `reads`: it is our own, and reads the server's resources.
    """

    remote: str
    spec: ToolSpec
    pin: str
    reads: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server offers, by our names; `dropped`: the server's names of what is left out, and why."""

    offers: Mapping[str, Offer] = field(default_factory=lambda: MappingProxyType({}))
    dropped: tuple[tuple[str, str], ...] = ()


def listing_of(server: McpServer, tools: Iterable[Tool], *, has_resources: bool = False) -> Listing:
    """The offers among what a server lists, in its order, and behind them what reads its resources. Pure."""
    offers: dict[str, Offer] = {}
    dropped: list[tuple[str, str]] = []
    seen: set[str] = set()
    for tool in tools:
        made = offer_of(server, tool)
        why = ""
        if tool.name in seen or made.spec.name in offers:
            why = "the server lists another tool of this name"
        elif tool.name in RESERVED or made.spec.name in RESERVED:
            why = "its name is reserved for steps of a plan"
        elif tool.name == READ_RESULT:
            why = "its name is that of surefoot's own pager"
        elif not server.takes(tool.name):
            why = "left out by include and exclude"
        elif made.spec.parameters.get("type", "object") != "object":
            why = "its parameters are not an object"
        elif len(offers) >= MOST_TOOLS:
            why = "the server lists too many tools"
        if why:
            dropped.append((visible_text(tool.name, 100), why))
        else:
            offers[made.spec.name] = made
        seen.add(tool.name)
    if has_resources and server.resources and READ_RESOURCE not in seen:
        about = f"Read a resource of the MCP server {server.name} by its URI; with an empty URI, list them."
        uri = {"type": "string", "description": "URI of the resource"}
        spec = ToolSpec(
            name=name_of(server.name, READ_RESOURCE),
            description=about,
            parameters={"type": "object", "properties": {"uri": uri}, "required": ["uri"]},
            effect="read",
            timeout_s=server.timeout_s,
            origin="remote",
            server=server.name,
            declared=True,
        )
        spec = server.tools.get(READ_RESOURCE, _UNDECLARED).of(spec)
        reader = Offer(READ_RESOURCE, spec, pin_of(spec), reads=True)
        offers[reader.spec.name] = reader
        seen.add(READ_RESOURCE)
    dropped += [(name, "declared, but the server does not list it") for name in server.tools if name not in seen]
    return Listing(offers, tuple(dropped))


def offer_of(server: McpServer, tool: Tool) -> Offer:
    """One listed tool as an offer. The one place where a `ToolSpec` is filled from outside."""
    said = server.tools.get(tool.name, _UNDECLARED)
    hints = tool.annotations
    is_destructive = hints is not None and hints.destructive_hint is True and hints.read_only_hint is not True
    is_open = hints is not None and hints.open_world_hint is True
    title = tool.title or (hints.title if hints else None)
    spec = ToolSpec(
        name=name_of(server.name, tool.name),
        description=visible_text(tool.description or title or "", MOST_DESCRIPTION_CHARS),
        parameters=_shown_schema({"type": "object", **tool.input_schema}),
        effect="delete" if is_destructive else "write",
        timeout_s=server.timeout_s,
        origin="remote",
        egress=is_open and said.effect is None,
        server=server.name,
        output=None if tool.output_schema is None else _shown_schema(tool.output_schema),
    )
    spec = said.of(spec)
    return Offer(tool.name, spec, pin_of(spec))


READ_RESOURCE = "read_resource"


def visible_text(text: str, most: int) -> str:
    """A text from outside without characters that do not show, of at most `most` characters."""

    def shows(character: str) -> bool:
        return unicodedata.category(character) not in _HIDDEN_CATEGORIES and character not in SHOWS_NOTHING

    plain = "".join(c for c in text if c in "\n\t" or (c.isascii() and c.isprintable()) or shows(c)).strip()
    return shortened(plain, most)


def name_of(server: str, tool: str) -> str:
    """The name here of a server's tool, which fits every wire: 1 to 64 of `A-Z a-z 0-9 _ -`.

    One that does not fit is made to, and ends in a piece of the digest of the server's own name: the same name always
    gives the same one, and no two give one. Pure; `server` is a name that `McpServer` accepts.
    """
    plain = f"{server}{SEPARATOR}{_UNFIT.sub('_', tool)}"
    if tool and plain.endswith(tool) and len(plain) <= LONGEST_NAME:
        return plain
    digest = sha256(tool.encode(errors="replace")).hexdigest()[:_DIGEST_CHARS]
    return f"{plain[: LONGEST_NAME - _DIGEST_CHARS - 1]}_{digest}"


def _shown_schema(schema: Mapping[str, object], *, names: bool = False) -> dict[str, object]:
    """A schema as given, its descriptions made fit to be shown: they reach a model like any other.

    `names`: its keys are names of the server's own, such as those of parameters, and all that is below them is shown.
    """
    return {
        key: visible_text(value, MOST_DESCRIPTION_CHARS)
        if (names or key in _SAID) and isinstance(value, str)
        else _below("" if names else key, value)
        for key, value in schema.items()
    }


def _below(key: str, value: object) -> object:
    if key in _VALUES:
        return value
    if isinstance(value, dict):
        return _shown_schema(cast("dict[str, object]", value), names=key in _NAMED)  # of a JSON object
    if isinstance(value, list):
        return [_below("", item) for item in cast("list[object]", value)]  # of a JSON list
    return value


MOST_LISTED = 1_000  # resources, and prompts, of one server that are listed


async def resources_of(client: Client) -> tuple[Resource, ...]:
    """The resources that a server lists; none of one that has none."""
    found: list[Resource] = []
    cursor: str | None = None
    while client.server_capabilities.resources is not None and len(found) < MOST_LISTED:
        page = await client.list_resources(cursor=cursor, cache_mode="bypass")
        found += page.resources
        if page.next_cursor is None or page.next_cursor == cursor:
            break
        cursor = page.next_cursor
    return tuple(found[:MOST_LISTED])


async def prompts_of(client: Client) -> tuple[Prompt, ...]:
    """The prompts that a server lists on its first page; none of one that has none."""
    if client.server_capabilities.prompts is None:
        return ()
    return tuple((await client.list_prompts(cache_mode="bypass")).prompts[:MOST_LISTED])


async def attachments_of(client: Client, uri: str) -> tuple[Attachment, ...]:
    """What a resource holds: texts, and files whose bytes say what they are. All of it is untrusted.

    Raises `UsageError` for bytes that no model could read.
    """
    found: list[Attachment] = []
    for part in (await client.read_resource(uri, cache_mode="bypass")).contents:
        name = visible_text(part.uri, 200).rstrip("/").rpartition("/")[2] or "resource"
        text = getattr(part, "text", None)
        if isinstance(text, str):
            found.append(Attachment(name, text))
            continue
        try:
            data = b64decode(str(getattr(part, "blob", "")), validate=True)
        except ValueError as error:
            raise UsageError(f"{name} is not the base64 that MCP asks for") from error
        found.append(Attachment.from_bytes(data, name, media_type=part.mime_type or ""))
    return tuple(found)


async def messages_of(client: Client, name: str, arguments: Mapping[str, str]) -> tuple[ModelMessage, ...]:
    """A prompt with its arguments, as messages; of what is not text one line says what it is."""
    told = await client.get_prompt(name, dict(arguments))
    return tuple(
        ModelMessage(one.role, visible_text(getattr(one.content, "text", None) or f"[{one.content.type}]", 1_000_000))
        for one in told.messages
    )


def resource_lines(resources: tuple[Resource, ...]) -> str:
    """Resources for a model: the URI of each, its name, and its type."""
    lines = (
        f"{visible_text(one.uri, 500)}  {visible_text(one.name, 100)}  {one.mime_type or ''}".rstrip()
        for one in resources
    )
    return "\n".join(lines) or "(the server lists no resources)"
