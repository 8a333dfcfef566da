"""`surefoot export`: a run as a text to keep, or as spans for a collector of traces."""

from __future__ import annotations

import os
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote

import orjson
import typer

from surefoot.cli.doctor import installed
from surefoot.cli.live import put, stderr
from surefoot.cli.options import JournalOption
from surefoot.cli.setup import find, with_journal
from surefoot.journal.transfer import lines_of
from surefoot.telling.export import Form
from surefoot.telling.export import export as text_of
from surefoot.telling.export import otlp as as_otlp
from surefoot.telling.span_records import Place, SpanRecord
from surefoot.telling.spans import spans_of
from surefoot.telling.text import Line, visible, without_password
from surefoot.types.errors import SurefootError, UsageError
from surefoot.types.ports import JournalStore

_AT_ONCE = 1000
_LIMIT_S = 30.0
_PATH = "/v1/traces"


def export(
    *,
    run_ids: Annotated[list[str], typer.Argument(metavar="RUN...", help="Id of the run, or its first characters.")],
    form: Annotated[
        Literal[Form, "journal"],
        typer.Option(help="Markdown, one page of HTML, its records as JSON lines; or runs for `surefoot import`."),
    ] = "md",
    otlp: Annotated[bool, typer.Option("--otlp", help="Send it as OpenTelemetry spans to a collector.")] = False,
    endpoint: Annotated[
        str, typer.Option(envvar="OTEL_EXPORTER_OTLP_ENDPOINT", help="The collector; it must accept OTLP over HTTP.")
    ] = "http://localhost:4318",
    content: Annotated[
        bool, typer.Option("--content", help="With --otlp: include what users, models and tools wrote.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file; send nothing.")
    ] = None,
    journal: JournalOption = None,
) -> None:
    """Export a run as a file, or send it to a trace collector, with the runs of the agents that it asked.

    With --form journal: one or more runs, and the runs whose records they share, for another journal.
    """
    if form != "journal" and len(run_ids) > 1:
        raise UsageError(f"--form {form} is for one run; leave the others out, or use --form journal")

    async def exported(store: JournalStore) -> None:
        found = await find(store, run_ids[0], journal)
        if form == "journal":
            others = [(await find(store, one, journal)).run_id for one in run_ids[1:]]
            with nullcontext(sys.stdout) if output is None else output.open("w", encoding="utf-8") as file:
                async for line in lines_of(store, [found.run_id, *others]):  # with those of agents that they have asked
                    file.write(line + "\n")
        elif otlp:
            spans = await _spans(store, found.run_id, content=content)
            service = os.environ.get("OTEL_SERVICE_NAME", "surefoot")
            who = {"service.name": service, "service.version": installed("surefoot")}
            if output is not None:
                output.write_bytes(orjson.dumps(as_otlp(spans, who)))
            else:
                for at in range(0, len(spans), _AT_ONCE):
                    await _post(endpoint, orjson.dumps(as_otlp(spans[at : at + _AT_ONCE], who)))
            print(f"{len(spans)} spans of run {found.run_id}, trace {spans[0].trace_id if spans else '-'}")
        else:
            with nullcontext(sys.stdout) if output is None else output.open("w", encoding="utf-8") as file:
                file.writelines(text_of(found.records, form, found.run_id))
        if output is not None:
            put(stderr(), [Line(f"written to {visible(str(output))}")])
        found.whole()

    with_journal(journal, exported, read_only=True)


async def _spans(store: JournalStore, run_id: str, *, content: bool, under: Place | None = None) -> list[SpanRecord]:
    """The spans of a run; below a call that has asked an agent those of its run."""
    records, _ = await store.read_recorded(run_id)
    spans = list(spans_of(records, content=content, under=under))
    asked: dict[str, SpanRecord] = {}
    for span in spans:
        if inner := str(span.attributes.get("surefoot.inner.run.id", "")):
            asked.setdefault(inner, span)  # one that had to wait has gone on under a later attempt
    for inner, span in asked.items():
        spans += await _spans(store, inner, content=content, under=(span.trace_id, span.span_id))
    return spans


async def _post(endpoint: str, body: bytes) -> None:
    """Send one request to a collector. Raises `SurefootError` where it was not taken whole."""
    import aiohttp  # noqa: PLC0415  # half of the cost of a start

    url = endpoint.rstrip("/") if endpoint.rstrip("/").endswith(_PATH) else f"{endpoint.rstrip('/')}{_PATH}"
    shown = without_password(url)
    if not url.lower().startswith(("http://", "https://")):
        raise UsageError(f"{without_password(endpoint)}: the address of a collector begins with http:// or https://")
    is_direct = re.match(r"(?i)https?://(localhost|127\.0\.0\.1|\[::1\])[:/]", url) is not None
    told = (one.partition("=") for one in os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "").split(",") if "=" in one)
    headers = {"Content-Type": "application/json", **{name.strip(): unquote(value.strip()) for name, _, value in told}}
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_LIMIT_S), trust_env=not is_direct) as session,
            session.post(url, data=body, headers=headers, allow_redirects=False) as response,
        ):
            said = (await response.content.read(2000)).decode(errors="replace")
            status = response.status
    except (aiohttp.ClientError, OSError, ValueError) as error:
        why = str(error) or type(error).__name__
        raise SurefootError(f"{shown} cannot be reached: {without_password(why)}; is a collector running?") from None
    if not 200 <= status < 300:  # noqa: PLR2004  # the range of success
        raise SurefootError(f"{shown} answered {status}: {said[:200]}")
    if re.search(r'"rejectedSpans":\s*"?[1-9]', said):
        raise SurefootError(f"{shown} did not accept all spans: {said[:200]}")
