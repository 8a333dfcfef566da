"""A whole run to keep: its records as JSON lines, its rows as Markdown or as a page of HTML, its spans as OTLP in JSON.

The page stands alone: nothing is loaded by it and nothing runs in it. What models and tools wrote is never markup.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from typing import Literal, assert_never

from surefoot.telemetry_names import SCHEMA_URL, SCOPE
from surefoot.telling.row import Details, Row
from surefoot.telling.rows import rows_of
from surefoot.telling.span_records import Attributes, SpanRecord, Value, nanoseconds
from surefoot.telling.tale import NO_TALE
from surefoot.telling.text import json_line, moment, visible
from surefoot.types.ports import Recorded

Form = Literal["jsonl", "md", "html"]

_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+.!|~&-])")
_TICKS = re.compile(r"`+")
_STYLE = """
:root {
  color-scheme: light dark;
  --dim: #57606a; --line: #d0d7de; --call: #0550ae; --good: #116329; --warn: #7d4e00; --bad: #a40e26;
}
@media (prefers-color-scheme: dark) {
  :root { --dim: #9aa4af; --line: #3d444d; --call: #79c0ff; --good: #7ee787; --warn: #e3b341; --bad: #ff9a92; }
}
body { font: 14px/1.5 ui-monospace, Menlo, Consolas, monospace; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.2rem; } ol { list-style: none; padding: 0; } li { overflow-wrap: anywhere; }
li.head { border-top: 1px solid var(--line); font-weight: bold; margin-top: .75rem; padding-top: .5rem; }
.dim { color: var(--dim); } .call { color: var(--call); } .good { color: var(--good); } .warn { color: var(--warn); }
.bad { color: var(--bad); }
.i2 { margin-left: 2ch; } .i4 { margin-left: 4ch; } .i6 { margin-left: 6ch; } .i8 { margin-left: 8ch; }
time { color: var(--dim); float: right; font-size: .85em; } summary { cursor: pointer; }
pre { border-left: 2px solid var(--line); margin: .25rem 0 .5rem; padding-left: 1ch; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
"""
_HASH = b64encode(sha256(_STYLE.encode()).digest()).decode()
_PAGE = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'sha256-{_HASH}'; form-action 'none'; base-uri 'none'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{title}}</title>
<style>{_STYLE.replace("{", "{{").replace("}", "}}")}</style>
</head>
<body>
<main>
<h1>{{title}}</h1>
<ol>
"""


def export(records: Iterable[Recorded], form: Form, run_id: str = "") -> Iterator[str]:
    """The run in pieces of text, written as they come: JSON lines as `show --events` has them, Markdown, or HTML."""
    title = visible(f"Run {run_id}".strip())
    match form:
        case "jsonl":
            yield from (json_line(record, run_id) + "\n" for record in records)
        case "md":
            yield f"# {_plain(title)}\n"
            yield from map(_as_markdown, _rows(records))
        case "html":
            yield _PAGE.format(title=escape(title))
            yield from map(_as_html, _rows(records))
            yield "</ol>\n</main>\n</body>\n</html>\n"
        case _:
            assert_never(form)


def _rows(records: Iterable[Recorded]) -> Iterator[Row]:
    tale = NO_TALE
    for record in records:
        after = tale.plus(record)
        yield from rows_of(record, tale, after, is_whole=True)
        tale = after


def _more(row: Row) -> str:
    """What a row opens, as a text; "" where the row has said it."""
    opens = row.opens or Details("")
    text = "\n".join(line.text for line in opens.lines)
    return "" if text in row.text else text


def _files(row: Row) -> list[str]:
    opens = row.opens or Details("")
    kept = (f"{one.name} · {one.media_type or 'text'} · {one.size:,} · {one.digest}" for one in opens.files)
    return [*(one.rstrip(" ·") for one in kept), *[f"the whole: sha256 {opens.blob}"] * bool(opens.blob)]


def _as_markdown(row: Row) -> str:
    if row.style == "head":
        return f"\n## {_plain(row.text)}\n\n"
    told = [f"{' ' * row.indent}- {_code(row.text)}"]
    if more := _more(row):
        fence = "`" * max((2, *map(len, _TICKS.findall(more)))) + "`"
        told += [f"{fence}text", *more.split("\n"), fence]
    told += map(_code, _files(row))
    return f"\n{' ' * (row.indent + 2)}".join(told) + "\n"


def _plain(text: str) -> str:
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    text = " ".join(text.splitlines())
    ticks = "`" * (1 + max(map(len, _TICKS.findall(text)), default=0))
    return f"{ticks} {text} {ticks}"


def _as_html(row: Row) -> str:
    at = moment(row.at)
    parts = "".join(f'<bdi class="of-{part.role}">{escape(part.text)}</bdi>' for part in row.parts)
    when = f'<time datetime="{at.isoformat()}" title="record {row.seq}">{at:%H:%M:%S}</time>'
    opened = "".join(f"<pre><bdi>{escape(text)}</bdi></pre>" for text in (_more(row), "\n".join(_files(row))) if text)
    told = f"<details><summary>{parts}</summary>{opened}</details>" if opened else parts
    return f'<li class="{row.style} i{min(row.indent, 8)}">{when}{told}</li>\n'


# ------------------------------------------------------------------ as spans

_KINDS = {"internal": 1, "client": 3}
_ERROR = 2
_SAMPLED = 1


def otlp(spans: Sequence[SpanRecord], resource: Attributes) -> dict[str, object]:
    """One export request. `resource` says who speaks; "service.name" is the least."""
    scope = {"name": SCOPE, "version": resource.get("service.version", "")}
    told = {"scope": scope, "schemaUrl": SCHEMA_URL, "spans": [_as_otlp(span) for span in spans]}
    return {"resourceSpans": [{"resource": {"attributes": _attributes(resource)}, "scopeSpans": [told]}]}


def _as_otlp(span: SpanRecord) -> dict[str, object]:
    told: dict[str, object] = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "flags": _SAMPLED,
        "name": span.name,
        "kind": _KINDS[span.kind],
        "startTimeUnixNano": str(nanoseconds(span.start_s)),
        "endTimeUnixNano": str(nanoseconds(span.start_s if span.end_s is None else span.end_s)),
        "attributes": _attributes(span.attributes),
        "events": [
            {"timeUnixNano": str(nanoseconds(one.at)), "name": one.name, "attributes": _attributes(one.attributes)}
            for one in span.events
        ],
        "links": [{"traceId": trace_id, "spanId": span_id} for trace_id, span_id in span.links],
        "status": {"code": _ERROR, "message": span.message} if span.failed else {},
    }
    return told | ({"parentSpanId": span.parent_id} if span.parent_id else {})


def _attributes(given: Attributes) -> list[Mapping[str, object]]:
    return [{"key": name, "value": _value(value)} for name, value in given.items()]


def _value(value: Value) -> Mapping[str, object]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case _:
            return {"arrayValue": {"values": [{"stringValue": one} for one in value]}}
