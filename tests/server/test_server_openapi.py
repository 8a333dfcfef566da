"""The OpenAPI document: it is valid, it names all that there is, and no answer stands outside of it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from typing import Any, cast
from urllib.parse import quote, urlencode

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from server_agents import PLAN, agents
from server_world import Served, serving

from surefoot import MemoryJournal
from surefoot.server.answers import KINDS, dumped, own_version
from surefoot.server.api import document
from surefoot.server.app import ENDPOINTS

Json = Any
DOCUMENT: Json = json.loads(dumped(document(ENDPOINTS, own_version())))
SCHEMAS = DOCUMENT["components"]["schemas"]
OPERATIONS = [(path, method, one) for path, item in DOCUMENT["paths"].items() for method, one in item.items()]


def found(value: Json, name: str) -> Iterator[Json]:
    """All that stands under a name in a document."""
    if isinstance(value, dict):
        members = cast("Mapping[str, Json]", value)
        if name in members:
            yield members[name]
        value = list(members.values())
    for inner in cast("list[Json]", value) if isinstance(value, list) else ():
        yield from found(inner, name)


def resolved(schema: Json) -> Json:
    """A schema that stands alone."""
    text = json.dumps({**schema, "$defs": SCHEMAS}).replace("#/components/schemas/", "#/$defs/")
    return json.loads(text)


def test_the_document_is_one_of_openapi() -> None:
    assert re.fullmatch(r"3\.1\.\d+", DOCUMENT["openapi"])
    assert {"title", "version"} <= DOCUMENT["info"].keys()
    assert set(DOCUMENT) <= {"openapi", "info", "paths", "components", "security"}
    for ref in found(DOCUMENT, "$ref"):
        assert ref.removeprefix("#/components/schemas/") in SCHEMAS, ref
    for name, schema in SCHEMAS.items():
        assert re.fullmatch(r"[a-zA-Z0-9._-]+", name)
        assert jsonschema_rs.meta.is_valid(resolved(schema)), name
    for schema in found(DOCUMENT["paths"], "schema"):
        assert jsonschema_rs.meta.is_valid(resolved(schema))
    assert len({one["operationId"] for _, _, one in OPERATIONS}) == len(OPERATIONS)
    for path, method, one in OPERATIONS:
        assert path.startswith("/")
        assert method in {"get", "post", "delete"}
        assert set(one) <= {"summary", "description", "operationId", "parameters", "requestBody", "responses"}
        assert one["summary"]
        named = {part["name"] for part in one["parameters"] if part["in"] == "path"}
        assert named == set(re.findall(r"\{(\w+)\}", path))
        for part in one["parameters"]:
            assert set(part) <= {"name", "in", "required", "schema", "description"}
            assert part["in"] != "path" or part["required"] is True
        assert len({(part["name"], part["in"]) for part in one["parameters"]}) == len(one["parameters"])
        for status, answer in one["responses"].items():
            assert re.fullmatch(r"[2-5]\d\d", status)
            assert set(answer) <= {"description", "content"}
        assert ("requestBody" in one) == (method == "post")


def test_the_document_names_every_address_and_problem() -> None:
    served = {(one.path.replace(":path", ""), one.method.lower()) for one in ENDPOINTS}
    assert {(path, method) for path, method, _ in OPERATIONS} == served
    for one in ENDPOINTS:
        told = DOCUMENT["paths"][one.path.replace(":path", "")][one.method.lower()]["responses"]
        for name in one.problem_names:
            assert name in told[str(KINDS[name].status)]["description"].split(", ")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def values(schema: Json) -> st.SearchStrategy[Json]:
    """Values of a schema, as far as this document has them."""
    if "$ref" in schema:
        return st.deferred(lambda: values(SCHEMAS[schema["$ref"].rpartition("/")[2]]))
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of(*map(values, schema["anyOf"]))
    match schema.get("type"):
        case "string" if "pattern" in schema:
            pattern: str = schema["pattern"]
            return st.from_regex(pattern, fullmatch=True)
        case "string":
            return st.text(min_size=schema.get("minLength", 0), max_size=min(schema.get("maxLength", 20), 20))
        case "integer":
            return st.integers(schema.get("minimum", -10), schema.get("maximum", 10_000)) | st.integers(1, 20)
        case "number":
            return st.floats(0.01, 1e6)
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(values(schema.get("items", {})), max_size=3)
        case "object":
            known = schema.get("properties", {})
            needed = {name: values(one) for name, one in known.items() if name in schema.get("required", ())}
            others = {name: values(one) for name, one in known.items() if name not in needed}
            return st.fixed_dictionaries(needed, optional=others)
        case _:
            return ANYTHING


@st.composite
def requests(draw: st.DrawFn, runs: tuple[str, ...]) -> tuple[str, str, Json, Json]:
    """An operation, and a request for it: mostly as the document says, sometimes not."""
    path, method, one = draw(st.sampled_from(OPERATIONS))
    query: list[tuple[str, str]] = []
    url = path
    for part in one["parameters"]:
        name, is_odd = part["name"], draw(st.integers(0, 9)) == 0
        if part["in"] == "path":
            likely = {"run_id": runs, "call": ("1.0", "2.0", "plan"), "number": ("1", "2")}.get(name, ("0" * 64,))
            value = draw(st.text(min_size=1, max_size=6)) if is_odd else draw(st.sampled_from(likely))
            url = url.replace(f"{{{name}}}", quote(value, safe=""))
        elif part["in"] == "query" and (part["required"] or draw(st.booleans())):
            other = ANYTHING if is_odd else values(part["schema"])
            value = draw(st.sampled_from(runs) if name in "ab" else other)
            query += [(name, str(item)) for item in (value if isinstance(value, list) else [value])]
    body = None
    if "requestBody" in one:
        is_odd = draw(st.integers(0, 9)) == 0
        body = draw(ANYTHING if is_odd else values(one["requestBody"]["content"]["application/json"]["schema"]))
        if isinstance(body, dict) and "agent" in body and draw(st.booleans()):
            body["agent"] = draw(st.sampled_from(["helper", "planner", "mailer"]))
    encoded = urlencode(query, errors="replace")
    return method.upper(), f"{url}?{encoded}" if query else url, body, one


async def check(served: Served, method: str, url: str, body: Json, one: Json) -> None:
    if url.startswith("/v1/feed") or (isinstance(body, dict) and cast("Json", body).get("stream") is True):
        return  # what never ends is tested elsewhere
    data = json.dumps(body).encode("utf-8", "replace") if body is not None else None
    reply = await served.ask(method, url, data=data)
    if reply.problem in ("not_found", "no_such_method"):
        return  # the text has led to another address
    assert reply.status != 500, (method, url, body)
    told = one["responses"].get(str(reply.status))
    assert told is not None, (method, url, body, reply.status, reply.body)
    kind = reply.headers.get("Content-Type", "").partition(";")[0]
    if reply.status == 204:
        return
    assert kind in told["content"], (method, url, kind)
    if kind.endswith("json"):
        schema = resolved(told["content"][kind]["schema"])
        jsonschema_rs.validator_for(schema).validate(reply.json)
    if reply.problem:
        assert reply.problem in told["description"].split(", "), (method, url, body, reply.body)


@pytest.mark.parametrize("count", [100, pytest.param(3_000, marks=pytest.mark.scale)])
def test_no_request_meets_an_answer_outside_of_the_document(count: int) -> None:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()

        async def begin() -> tuple[Served, tuple[str, ...]]:
            served = await stack.enter_async_context(serving(MemoryJournal(), agents()))
            asked: Json = (
                ("hello", "helper", {}), ("the score of Alice", "helper", {}),
                ("send a mail to bob@example.org", "mailer", {}), ("the scores", "planner", {"steps": PLAN}),
            )  # fmt: skip
            made = [await served.start(task, agent, **more) for task, agent, more in asked]
            return served, tuple(made)

        served, runs = runner.run(begin())

        @settings(
            max_examples=count,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        )
        @given(requests(runs))
        def meet(asked: tuple[str, str, Json, Json]) -> None:
            runner.run(check(served, *asked))

        try:
            meet()
        finally:
            runner.run(stack.aclose())
