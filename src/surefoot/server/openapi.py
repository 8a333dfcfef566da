"""The OpenAPI document, 3.1, made of the table of endpoints and the types that check requests. It cannot drift."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from re import findall
from typing import Any, Literal, cast

from pydantic import TypeAdapter

from surefoot.server.answers import JSON_TYPE
from surefoot.server.api import Endpoint, Nothing, adapter_of
from surefoot.server.problems import KINDS, PROBLEM_TYPE

_REF = "#/components/schemas/{model}"
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "instance"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "faults": {"type": "array", "items": {"type": "object"}},
    },
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same key and body give the first answer again.",
    "schema": {"type": "string", "maxLength": 200},
}

Json = dict[str, Any]  # Any: a document of JSON
Mode = Literal["validation", "serialization"]
Schemas = Mapping[tuple[Any, Mode], Json]


def document(endpoints: Sequence[Endpoint], version: str) -> Json:
    """The document for these endpoints."""
    outgoing = {kind for one in endpoints for gives in one.gives.values() for kind in _types(gives)}
    incoming = {kind for one in endpoints for kind in (one.query, one.body)} - {Nothing}
    given: list[tuple[Any, Mode, TypeAdapter[Any]]] = [
        *((kind, "validation", adapter_of(kind)) for kind in sorted(incoming, key=str)),
        *((kind, "serialization", adapter_of(kind)) for kind in sorted(outgoing, key=str)),
    ]
    schemas, defined = TypeAdapter.json_schemas(given, ref_template=_REF)
    paths: dict[str, Json] = {}
    for one in endpoints:
        path = one.path.replace(":path", "")
        paths.setdefault(path, {})[one.method.lower()] = _operation(one, path, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "surefoot", "version": version or "0", "description": "Runs of agents, and what people say."},
        "paths": paths,
        "components": {
            "schemas": {"Problem": _PROBLEM, **defined.get("$defs", {})},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _several(gives: object) -> tuple[Any, ...]:  # Any: types, which are hashable
    return cast("tuple[Any, ...]", gives if isinstance(gives, tuple) else (gives,))


def _types(gives: object) -> Iterator[Any]:  # Any: as above
    return (kind for kind in _several(gives) if not isinstance(kind, str) and kind is not None)


def _operation(one: Endpoint, path: str, schemas: Schemas) -> Json:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in findall(r"\{(\w+)\}", path)
    ]
    query = {} if one.query is Nothing else adapter_of(one.query).json_schema(ref_template=_REF)
    parameters += [
        {"name": name, "in": "query", "required": name in query.get("required", ()), "schema": schema}
        for name, schema in query.get("properties", {}).items()
    ]
    told: Json = {
        "summary": (one.handle.__doc__ or "").partition("\n")[0].rstrip("."),
        "operationId": one.handle.__name__,
        "parameters": [*parameters, *([_KEY] if one.method == "POST" else [])],
        "responses": {
            **{str(status): _answer(gives, schemas) for status, gives in one.gives.items()},
            **_problems(one),
        },
    }
    if one.rights:
        told["description"] = f"Takes the right {' or '.join(one.rights)}."
    if one.body is not Nothing:
        schema = schemas[one.body, "validation"]
        is_needed = bool(adapter_of(one.body).json_schema().get("required"))
        told["requestBody"] = {"required": is_needed, "content": {JSON_TYPE: {"schema": schema}}}
    return told


def _answer(gives: object, schemas: Schemas) -> Json:
    """One good answer: a type, media types of bytes, both, or None for no content."""
    content: Json = {
        kind: {"schema": {"type": "object" if kind == JSON_TYPE else "string"}}
        for kind in _several(gives)
        if isinstance(kind, str)
    }
    for kind in _types(gives):
        content[JSON_TYPE] = {"schema": schemas[kind, "serialization"]}
    return {"description": "Good.", **({"content": content} if content else {})}


def _problems(one: Endpoint) -> Json:
    by_status: dict[int, list[str]] = {}
    for name in one.told:
        by_status.setdefault(KINDS[name].status, []).append(name)
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        str(status): {"description": ", ".join(names), "content": {PROBLEM_TYPE: {"schema": schema}}}
        for status, names in sorted(by_status.items())
    }
