"""An endpoint is one record: of these are made routes, rights, checks of what comes in, and the document."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from re import findall
from traceback import extract_tb
from typing import Any, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from surefoot.server.answers import JSON_TYPE, KINDS, PROBLEM_TYPE, Problem
from surefoot.server.auth import Right, Token
from surefoot.server.site import Site, body_of
from surefoot.telling.text import visible
from surefoot.types.errors import JournalCorrupt, JournalError, UsageError

LOG = logging.getLogger("surefoot.server")

T = TypeVar("T")
Query_co = TypeVar("Query_co", covariant=True)
Body_co = TypeVar("Body_co", covariant=True)

_KEY_CHARS = 200
EVERYWHERE = ("unauthorized", "too_fast", "invalid", "internal", "journal_down")
"""What every endpoint that asks for a token may answer."""
_WITH_BODY = ("too_large", "too_slow", "not_json")


@dataclass(frozen=True, slots=True)
class Asked(Generic[Query_co, Body_co]):
    """One request that may be served: who asks, and what, checked. `key` is its `Idempotency-Key`, "" for none."""

    site: Site
    token: Token
    request: Request
    query: Query_co
    body: Body_co
    key: str = ""

    def part(self, name: str) -> str:
        return str(self.request.path_params[name])

    def wants_stream(self) -> bool:
        accepts = self.request.headers.get("accept", "")
        return "text/event-stream" in accepts and self.request.method != "HEAD"


Handle = Callable[[Asked[Any, Any]], Awaitable[Response]]  # Any: as `query` and `body` of its endpoint say


class Exact(BaseModel):
    """What a request says. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Nothing(Exact):
    """No query and no body."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one address; its docstring's first line is the handler's.

    Any of `rights` will do. `gives` are its good answers by status: a type, a media type of bytes, or several of these.
    """

    method: str
    path: str
    handle: Handle
    rights: tuple[Right, ...]
    gives: Mapping[int, object]
    query: type[Exact] = Nothing
    body: type[Exact] = Nothing
    problems: tuple[str, ...] = ()

    @property
    def problem_names(self) -> tuple[str, ...]:
        """The names of all problems that it may answer with."""
        posts = (*_WITH_BODY, "key_reused") if self.method == "POST" else ()
        found = ("no_such_run",) if "{run_id}" in self.path else ()
        return (*EVERYWHERE, *(("forbidden",) if self.rights else ()), *found, *posts, *self.problems)

    def prepare(self) -> None:
        adapter_of(self.body)
        _many(self.query)

    async def serve(self, request: Request) -> Response:
        """Serve one request: whose it is, whether they may, what it says. What goes wrong is answered as a problem."""
        try:
            return await self.handle(await self._check_request(request, request.app.state.site))
        except Exception as error:  # noqa: BLE001  # whatever happens is told as a problem, and where it happened is logged
            return problem_of(error).response(request.url.path)

    async def _check_request(self, request: Request, site: Site) -> Asked[Any, Any]:  # Any: as `query` and `body` say
        peer = request.client.host if request.client else ""
        token = site.keys.token_of(request.headers.get("authorization", ""), peer)
        request.state.token = token.name
        site.pace.count(token.name)
        if self.rights and not token.rights.intersection(self.rights):
            raise Problem("forbidden", f"this needs the right `{'` or `'.join(self.rights)}`")
        key = request.headers.get("idempotency-key", "") if self.method == "POST" else ""
        if len(key) > _KEY_CHARS or not key.isprintable():
            raise Problem("invalid", f"Idempotency-Key: give up to {_KEY_CHARS} printable characters")
        given, many = request.query_params, _many(self.query)
        pairs = {name: given.getlist(name) if name in many else given[name] for name in given}
        query: Any = checked(self.query, pairs)
        body: object = None
        if self.body is not Nothing:
            limits = site.limits
            most = limits.task + limits.attachments if getattr(self.body, "has_task", False) else limits.body
            sent = await body_of(request, most, limits.idle_s)
            try:
                body = adapter_of(self.body).validate_json(sent or b"{}")
            except ValidationError as error:
                raise invalid(error) from error
        return Asked(site, token, request, query, body, key)


def problem_of(error: Exception) -> Problem:
    """What went wrong as the client is told of it. A message of ours names ids and limits, never contents."""
    match error:
        case Problem():
            return error
        case JournalCorrupt():
            return Problem("journal_damaged", visible(str(error)))
        case JournalError():
            return Problem("journal_down", visible(str(error)), retry_after_s=2)
        case UsageError():
            return Problem("invalid", visible(str(error)))
        case _:
            where = [f"{frame.filename}:{frame.lineno}" for frame in extract_tb(error.__traceback__)[-4:]]
            LOG.error("%s at %s", type(error).__name__, " < ".join(reversed(where)))  # its message could hold contents
            return Problem("internal", "an error that is a bug in surefoot")


@cache
def adapter_of(kind: type[T]) -> TypeAdapter[T]:
    """What checks values of a type, and tells its schema; made once."""
    return TypeAdapter(kind)


@cache
def _many(kind: type) -> frozenset[str]:
    parts: Mapping[str, Mapping[str, object]] = adapter_of(kind).json_schema().get("properties", {})
    return frozenset(name for name, one in parts.items() if "items" in one)


def checked(kind: type[T], given: object) -> T:
    """A value of that type. Raises `Problem` for what is none."""
    try:
        return adapter_of(kind).validate_python(given)
    except ValidationError as error:
        raise invalid(error) from error


_PLAIN = {
    "missing": "missing; give it",
    "extra_forbidden": "unknown field; leave it out",
    "string_type": "give a string",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "give a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "give a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "give true or false"),
    **dict.fromkeys(("tuple_type", "list_type"), "give an array"),
    **dict.fromkeys(("dict_type", "dataclass_type", "model_type"), "give an object"),
    "too_short": "give at least one",
}
"""What to do about pydantic's errors, by kind; its own words tell the bounds of a value."""


def invalid(error: ValidationError) -> Problem:
    """What is wrong with a request, field by field. What was given is not repeated."""
    found = [
        (
            [str(part) for part in one["loc"] if part != "str" and "[" not in str(part)],  # not the kinds of a union
            visible(_PLAIN.get(one["type"], one["msg"]).removeprefix("Value error, ")),
        )
        for one in error.errors(include_input=False, include_url=False, include_context=False)
    ]
    faults = [  # of one that holds others, the others tell
        {"path": ".".join(place), "message": told}
        for place, told in found
        if not any(len(other) > len(place) and other[: len(place)] == place for other, _ in found if place)
    ]
    told = "; ".join(f"{one['path'] or 'body'}: {one['message']}" for one in faults[:3])
    return Problem("invalid", told, faults=faults)


_REF = "#/components/schemas/{model}"
_OF_PROBLEM = {"type": "string", "title": "string", "status": "integer", "detail": "string", "instance": "string"}
_PROBLEM = {
    "type": "object",
    "required": list(_OF_PROBLEM),
    "properties": {
        **{name: {"type": kind} for name, kind in _OF_PROBLEM.items()},
        "faults": {"type": "array", "items": {"type": "object"}},
    },
}
_KEY_HEADER = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same key and body give the first answer again.",
    "schema": {"type": "string", "maxLength": 200},
}

Json = dict[str, Any]  # Any: a document of JSON
Mode = Literal["validation", "serialization"]
Schemas = Mapping[tuple[Any, Mode], Json]


def document(endpoints: Sequence[Endpoint], version: str) -> Json:
    """The OpenAPI document, 3.1, of these endpoints and the types that check requests. It cannot drift."""
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
    by_status: dict[int, list[str]] = {}
    for name in one.problem_names:
        by_status.setdefault(KINDS[name].status, []).append(name)
    content = {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    wrong = {str(at): {"description": ", ".join(names), "content": content} for at, names in sorted(by_status.items())}
    told: Json = {
        "summary": (one.handle.__doc__ or "").partition("\n")[0].rstrip("."),
        "operationId": one.handle.__name__,
        "parameters": [*parameters, *([_KEY_HEADER] if one.method == "POST" else [])],
        "responses": {**{str(status): _good(gives, schemas) for status, gives in one.gives.items()}, **wrong},
    }
    if one.rights:
        told["description"] = f"Needs the right {' or '.join(one.rights)}."
    if one.body is not Nothing:
        schema = schemas[one.body, "validation"]
        is_needed = bool(adapter_of(one.body).json_schema().get("required"))
        told["requestBody"] = {"required": is_needed, "content": {JSON_TYPE: {"schema": schema}}}
    return told


def _good(gives: object, schemas: Schemas) -> Json:
    """One good answer: a type, media types of bytes, both, or None for no content."""
    content: Json = {
        kind: {"schema": {"type": "object" if kind == JSON_TYPE else "string"}}
        for kind in _several(gives)
        if isinstance(kind, str)
    }
    for kind in _types(gives):
        content[JSON_TYPE] = {"schema": schemas[kind, "serialization"]}
    return {"description": "Good.", **({"content": content} if content else {})}
