"""Bytes that a run refers to: given as plain text to be saved, so that no browser ever shows them as a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from surefoot.journal.codec import encode
from surefoot.server.api import Asked
from surefoot.server.problems import Problem
from surefoot.server.reads import run_of
from surefoot.server.records import Reading
from surefoot.types.attachments import Attachment
from surefoot.types.errors import JournalCorrupt, JournalError
from surefoot.types.events import Event, InStep, RunStarted

_HEADERS = {
    "Content-Disposition": "attachment",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cache-Control": "private, no-store",
}


async def show_blob(asked: Asked[Any, None]) -> Response:
    """Give bytes that a run refers to."""
    run, digest = await run_of(asked), asked.part("digest")
    async for piece in Reading(asked.site.store, run.run_id).pieces():
        for record in piece:
            if (found := blobs_of(record.event).get(digest)) is not None:
                return Response(found or await _kept(asked, digest), media_type="text/plain", headers=_HEADERS)
    raise Problem("no_such_blob", "this run refers to no bytes of that digest")


async def _kept(asked: Asked[Any, None], digest: str) -> bytes:
    try:
        return await asked.site.store.get_blob(digest)
    except JournalCorrupt:
        raise
    except JournalError as error:
        raise Problem("no_such_blob", "the bytes of that digest are gone") from error


def blobs_of(event: Event) -> Mapping[str, bytes]:
    """What a record refers to, by digest; the bytes where they are at hand, else b"".

    Its texts do not count: they may hold any digest.
    """
    inner = event.event if isinstance(event, InStep) else event
    result = getattr(inner, "result", None)
    files: tuple[object, ...] = getattr(result, "files", ())
    found = {getattr(result, "blob", None) or "": b""}
    if isinstance(inner, RunStarted):
        files = inner.task.attachments
        found |= dict([encode(inner)[1] or ("", b"")])
    return found | {one.digest: b"" for one in files if isinstance(one, Attachment)}
