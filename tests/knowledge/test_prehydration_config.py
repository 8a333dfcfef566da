"""What can be set about pre-hydration, and its JSON. Source: spec/primitives.md, 3.1 and D1."""

from collections.abc import Mapping

import pytest

from cases import cases
from surefoot.types.errors import ConfigError
from surefoot.types.prehydration import PreHydrationConfig, ReferencePattern, Resolver


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


@cases("knowledge/prehydration_config")
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
