"""What an operator sets about pre-hydration: its JSON, and own patterns. Source: spec/primitives.md, 3.1, 3.3, D1."""

from collections.abc import Mapping
from itertools import count

import pytest

from cases import cases, each
from surefoot.knowledge.prefetch.extract import custom_matches, extract
from surefoot.types.errors import ConfigError
from surefoot.types.prehydration import PreHydrationConfig, ReferencePattern, Resolver

JIRA = ReferencePattern("jira", r"[A-Z]+-\d+")


@cases("knowledge/prefetch_patterns")
def test_a_pattern_that_cannot_be_meant_is_refused_with_its_place(pattern: str, place: str) -> None:
    """adv-custom-invalid, adv-custom-redos"""
    with pytest.raises(ConfigError, match=place) as refused:
        ReferencePattern("x", pattern)
    assert refused.value.field == "pattern"


@each("pattern", [
    r"(\d{1,3}\.){3}\d{1,3}", "(?:a+)?", "[(a+)+]", r"\(a+\)+", r"\141", r"[\1]", "x{}", "(?=a+)b", "(a+)b*",
    "(a|b){1,9}", "(ab{2})+", "(?:foo|bar)?-[0-9]+",
])  # fmt: skip
def test_other_patterns_are_taken(pattern: str) -> None:
    assert ReferencePattern("x", pattern).pattern == pattern


@each("name", ["", "a b", "1a", "a\n", "é", "x" * 65, None, 3])
def test_a_type_is_a_plain_word(name: object) -> None:
    with pytest.raises(ConfigError, match="ref_type"):
        ReferencePattern(name, "a")  # type: ignore[arg-type]  # that is the case


def refs(text: str, *patterns: ReferencePattern) -> list[tuple[str, str]]:
    config = PreHydrationConfig(custom_patterns=patterns, path_style="posix")
    return [(ref.type, ref.value) for ref in extract([text], config).references]


def test_the_group_value_is_the_value_and_empty_matches_are_skipped() -> None:
    patterns = (ReferencePattern("id", r"id=(?P<value>\d*)"), ReferencePattern("empty", "x*"))
    assert refs("id=77; id= id=78", *patterns) == [("id", "77"), ("id", "78")]


def test_a_value_of_a_built_in_type_is_the_same_as_the_built_in_one() -> None:
    assert refs("src/a.py ./src/a.py", ReferencePattern("file", r"src/\w+\.py")) == [("file", "src/a.py")]


def test_a_text_that_is_no_valid_unicode_does_not_hinder() -> None:
    assert refs("\ud800 PROJ-1", JIRA) == [("jira", "PROJ-1")]


def test_what_was_through_when_the_time_is_over_counts_and_the_rest_is_late() -> None:
    later = ReferencePattern("a", "a"), ReferencePattern("last", "b")
    ticks = count(0.0, 0.06)  # the limit is 0.25
    matches = custom_matches((JIRA, *later), ["PROJ-1 aaaa", "b"], lambda: next(ticks))
    assert [[span.value for span in spans] for spans in matches.by_text] == [["PROJ-1"], []]
    assert matches.late == [*later]


def test_a_late_pattern_is_a_failed_reference_beyond_the_caps_and_built_in_ones_are_found() -> None:
    slow = ReferencePattern("slow", "a")
    config = PreHydrationConfig(custom_patterns=(slow, JIRA), max_references=1)
    ticks = count(0.0, 0.2)
    found = extract(["#1 #2 aaa"], config, clock=lambda: next(ticks))
    assert [(ref.type, ref.value, ref.refusal) for ref in found.references] == [
        ("issue", "#1", ""),
        *((one.ref_type, one.pattern, "Custom patterns took longer than 250 ms") for one in (slow, JIRA)),
    ]
    assert found.dropped == 1


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
