"""Bytes that a run refers to: given as plain text to be saved, so that no browser ever shows them as a page."""

from __future__ import annotations

from collections.abc import Iterator
from re import compile as pattern
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

_DIGEST = pattern(r"[0-9a-f]{64}")
_HEADERS = {
    "Content-Disposition": "attachment",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cache-Control": "private, no-store",
}


async def show_blob(asked: Asked[Any, None]) -> Response:
    """Give bytes that a run refers to."""
    run, digest = await run_of(asked), asked.part("digest")
    unknown = Problem("no_such_blob", "this run refers to no bytes of that digest")
    if not _DIGEST.fullmatch(digest) or not await _refers(asked, run.run_id, digest):
        raise unknown
    try:
        data = await asked.site.store.get_blob(digest)
    except JournalCorrupt:
        raise
    except JournalError as error:
        raise unknown from error
    return Response(data, media_type="text/plain", headers=_HEADERS)


async def _refers(asked: Asked[Any, None], run_id: str, digest: str) -> bool:
    """Whether a record of the run refers to it. Its text alone does not count: that may hold any digest."""
    async for piece in Reading(asked.site.store, run_id).pieces():
        for record in piece:
            if digest in blobs_of(record.event):
                return True
    return False


def blobs_of(event: Event) -> Iterator[str]:
    """The digests of all bytes that a record refers to."""
    inner = event.event if isinstance(event, InStep) else event
    if isinstance(inner, RunStarted):
        yield from (one.digest for one in inner.task.attachments if one.digest)
        if (blob := encode(inner)[1]) is not None:
            yield blob[0]
    result = getattr(inner, "result", None)
    if (blob := getattr(result, "blob", None)) is not None:
        yield blob
    files: tuple[object, ...] = getattr(result, "files", ())
    yield from (one.digest for one in files if isinstance(one, Attachment) and one.digest)
