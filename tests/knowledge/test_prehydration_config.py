"""What can be set about pre-hydration, and its JSON. Source: spec/primitives.md, 3.1 and D1."""

from collections.abc import Mapping

import pytest

from cases import each
from surefoot.types.errors import ConfigError
from surefoot.types.prehydration import MOST_PATTERNS, PreHydrationConfig, ReferencePattern, Resolver


def test_defaults_are_written_as_nothing() -> None:
    assert PreHydrationConfig().to_json() == {}
    assert PreHydrationConfig.from_json({}) == PreHydrationConfig()


def test_what_is_written_is_read_again() -> None:
    config = PreHydrationConfig(
        custom_patterns=[ReferencePattern("jira", r"[A-Z]+-\d+")],  # type: ignore[arg-type]  # a list is taken too
        resolution_tools={"url": "web_fetch", "jira": Resolver("jira_get", "key")},
        timeout=3,
        max_per_type=2,
    )
    assert config.to_json() == {
        "custom_patterns": [{"ref_type": "jira", "pattern": r"[A-Z]+-\d+"}],
        "resolution_tools": {"url": "web_fetch", "jira": {"tool": "jira_get", "argument": "key"}},
        "timeout": 3,
        "max_per_type": 2,
    }
    assert PreHydrationConfig.from_json(config.to_json()) == config


def test_no_tools_is_not_the_default() -> None:
    assert PreHydrationConfig(resolution_tools={}).to_json() == {"resolution_tools": {}}


@each(("data", "field"), [
    ({"custom_pattern": []}, "custom_pattern"), ({"custom_patterns": None}, "custom_patterns"),
    ({"custom_patterns": "ab"}, "custom_patterns"), ({"custom_patterns": [{"ref_type": "x"}]}, "custom_patterns"),
    ({"custom_patterns": [{"ref_type": "x", "pattern": "a", "flags": "i"}]}, "custom_patterns.flags"),
    ({"custom_patterns": [{"ref_type": "x", "pattern": "a"}] * (MOST_PATTERNS + 1)}, "custom_patterns"),
    ({"resolution_tools": None}, "resolution_tools"), ({"resolution_tools": ["web_fetch"]}, "resolution_tools"),
    ({"resolution_tools": {"url": None}}, "resolution_tools.url"),
    ({"resolution_tools": {"url": ""}}, "resolution_tools.url"),
    ({"resolution_tools": {"url": {"tool": "a", "arg": "b"}}}, "resolution_tools.arg"),
    ({"resolution_tools": {"url": {"tool": "a", "argument": 3}}}, "argument"), ({"timeout": 0}, "timeout"),
    ({"timeout": True}, "timeout"), ({"reference_timeout": float("nan")}, "reference_timeout"),
    ({"max_references": -1}, "max_references"), ({"max_references": 1.5}, "max_references"),
    ({"max_context_tokens": None}, "max_context_tokens"), ({"max_concurrency": 0}, "max_concurrency"),
    ({"max_per_type": -1}, "max_per_type"), ({"path_style": "vms"}, "path_style"), ([], "PreHydrationConfig"),
])  # fmt: skip
def test_a_value_that_cannot_be_meant_is_refused_by_name(data: object, field: str) -> None:
    with pytest.raises(ConfigError) as refused:
        PreHydrationConfig.from_json(data)
    assert refused.value.field == field


def test_a_mapping_changed_later_does_not_change_the_configuration() -> None:
    tools: dict[str, str | Resolver] = {"url": "web_fetch"}
    config = PreHydrationConfig(resolution_tools=tools)
    tools["url"] = "other"
    resolved: Mapping[str, object] = config.resolution_tools
    assert resolved == {"url": "web_fetch"}
