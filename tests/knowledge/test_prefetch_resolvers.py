"""Which tool resolves a reference, and what is refused before any call. Source: spec/primitives.md, 3.1 and 3.5."""

from collections.abc import Mapping

import pytest

from cases import cases
from surefoot.knowledge.prefetch.hydrate import Lookup, examined, lookups, planned
from surefoot.tools.builtin import builtin_tools
from surefoot.types.errors import ConfigError
from surefoot.types.prehydration import PreHydrationConfig, Reference, Resolver
from surefoot.types.tools import Catalogue, Effect, ToolSpec

Schema = Mapping[str, object]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}


def schema(required: str = "", *, extra: bool = False, **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": required.split(), "additionalProperties": extra}


def argument(parameters: Schema, ref_type: str = "url", named: str | None = None, **spec: object) -> str:
    tool = ToolSpec("look", "", parameters, **{"effect": "read", **spec})  # type: ignore[arg-type]  # as the test says
    config = PreHydrationConfig(resolution_tools={ref_type: Resolver("look", named)})
    return lookups(config, Catalogue((tool,)))[ref_type].argument


@cases("knowledge/prefetch_resolvers")
def test_the_value_goes_into_the_argument_that_fits(
    parameters: Schema, ref_type: str, named: str | None, expected: str
) -> None:
    """adv-tool-arg-name"""
    assert argument(parameters, ref_type, named) == expected


def test_what_the_runtime_fills_is_neither_needed_nor_given() -> None:
    parameters = schema("context path", context=TEXT, path=TEXT)
    assert argument(parameters, "file", injected=("context",)) == "path"


@cases("knowledge/prefetch_resolvers")
def test_a_tool_without_a_place_for_the_value_is_refused(parameters: Schema, ref_type: str, named: str | None) -> None:
    with pytest.raises(ConfigError, match=f"resolution_tools.{ref_type}"):
        argument(parameters, ref_type, named)


@pytest.mark.parametrize("effect", ["write", "communicate", "transact", "delete"])
def test_only_a_tool_that_reads_resolves(effect: Effect) -> None:
    with pytest.raises(ConfigError, match=effect):
        argument(schema("url", url=TEXT), effect=effect)


def test_an_unknown_tool_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="web_fetsh"):
        lookups(PreHydrationConfig(resolution_tools={"url": "web_fetsh"}), Catalogue())


def test_the_default_is_what_the_catalogue_has(tmp_path: str) -> None:
    config = PreHydrationConfig()
    assert lookups(config, Catalogue()) == {}
    catalogue = Catalogue(tuple(tool.spec for tool in builtin_tools(tmp_path)))
    assert lookups(config, catalogue) == {"url": Lookup("web_fetch", "url"), "file": Lookup("file_read", "path")}
    assert lookups(PreHydrationConfig(resolution_tools={}), catalogue) == {}


MADE = {"url": Lookup("web_fetch", "url"), "file": Lookup("file_read", "path")}


@cases("knowledge/prefetch_resolvers")
def test_some_references_are_refused_before_any_call(kind: str, value: str, refused: str, told: str) -> None:
    (ref,) = examined([Reference(kind, value, refusal=refused)], MADE, Catalogue())
    assert told in ref.refusal
    assert planned([ref], MADE) == ()


def test_an_at_sign_behind_the_host_is_no_user() -> None:
    (ref,) = examined([Reference("url", "https://e.com/@joe?a=b@c")], MADE, Catalogue())
    assert ref.refusal == ""


def test_calls_are_named_by_the_place_of_their_reference() -> None:
    named = [Reference("issue", "#1"), Reference("url", "https://e.com"), Reference("file", "./a.md")]
    calls = planned(examined(named, MADE, Catalogue()), MADE)
    assert [(call.call_id, call.tool, call.arguments) for call in calls] == [
        ("prehydrate_1", "web_fetch", {"url": "https://e.com"}),
        ("prehydrate_2", "file_read", {"path": "./a.md"}),
    ]
    assert planned([Reference("file", "./a.md")], MADE, prefix="prehydrate_1_")[0].call_id == "prehydrate_1_0"
