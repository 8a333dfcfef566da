"""Spans as OTLP writes them in JSON: what a collector takes over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from surefoot.telemetry_names import SCHEMA_URL, SCOPE
from surefoot.telling.span_records import Attributes, SpanRecord, Value, nanoseconds

_KINDS = {"internal": 1, "client": 3}
_ERROR = 2
_SAMPLED = 1


def otlp(spans: Sequence[SpanRecord], resource: Attributes) -> dict[str, object]:
    """One export request. `resource` says who speaks; "service.name" is the least."""
    scope = {"name": SCOPE, "version": resource.get("service.version", "")}
    told = {"scope": scope, "schemaUrl": SCHEMA_URL, "spans": [_span(span) for span in spans]}
    return {"resourceSpans": [{"resource": {"attributes": _attributes(resource)}, "scopeSpans": [told]}]}


def _span(span: SpanRecord) -> dict[str, object]:
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
