"""What MCP servers hold beside tools: resources, as attachments of a task or read by a model, and prompts."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import TYPE_CHECKING

from surefoot.tools.mcp.offers import shown
from surefoot.types.attachments import Attachment
from surefoot.types.errors import UsageError
from surefoot.types.messages import ModelMessage

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp_types import Prompt, Resource

MOST_LISTED = 1_000
"""Resources, and prompts, of one server that are listed."""


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
        name = shown(part.uri, 200).rstrip("/").rpartition("/")[2] or "resource"
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
        ModelMessage(one.role, shown(getattr(one.content, "text", None) or f"[{one.content.type}]", 1_000_000))
        for one in told.messages
    )


def resource_lines(resources: tuple[Resource, ...]) -> str:
    """Resources for a model: the URI of each, its name, and its type."""
    lines = (f"{shown(one.uri, 500)}  {shown(one.name, 100)}  {one.mime_type or ''}".rstrip() for one in resources)
    return "\n".join(lines) or "(the server lists no resources)"
