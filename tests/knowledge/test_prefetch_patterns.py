"""The operator's own patterns: what may be given, and that none of them can hold up a run. Source: 3.3."""

import sys

import pytest

from surefoot.knowledge.prefetch.find import references_in
from surefoot.knowledge.prefetch.patterns import custom_matches
from surefoot.types.errors import ConfigError
from surefoot.types.patterns import LONGEST_PATTERN, ReferencePattern
from surefoot.types.prehydration import PreHydrationConfig

pytestmark = pytest.mark.anyio

JIRA = ReferencePattern("jira", r"[A-Z]+-\d+")
ENDLESS = ReferencePattern("endless", r"(?:a|a)+$")
HOSTILE = "a" * 60 + "!"


@pytest.mark.parametrize(
    ("pattern", "place"),
    [
        ("(", "character 0"),
        ("x(", "character 1"),
        (r"(a)\1", "character 3"),
        ("(?P<q>a)(?P=q)", "character 8"),
        ("(a)?(?(1)b|c)", "character 4"),
        ("(a+)+$", "character 3"),
        ("(?:x(a*))*", "character 8"),
        ("([a-z]+|b){2,}", "character 9"),
        ("(?P<value>a{2,})+", "character 15"),
        ("(a+?){3}", "character 4"),
        ("(?<=x)(a+)+>", "character 9"),
        ("(?<!x)(?:a*)*>b", "character 11"),
        (r"(?<=(x))\1>", "character 8"),
        ("a" * (LONGEST_PATTERN + 1), f"{LONGEST_PATTERN} characters"),
        ("", "as text"),
    ],
)
def test_a_pattern_that_cannot_be_meant_is_refused_with_its_place(pattern: str, place: str) -> None:
    with pytest.raises(ConfigError, match=place) as refused:
        ReferencePattern("x", pattern)
    assert refused.value.field == "pattern"


@pytest.mark.parametrize(
    "pattern",
    [r"(\d{1,3}\.){3}\d{1,3}", "(?:a+)?", "[(a+)+]", r"\(a+\)+", r"\141", r"[\1]", "x{}", "(?=a+)b", "(a+)b*"],
)
def test_other_patterns_are_taken(pattern: str) -> None:
    assert ReferencePattern("x", pattern).pattern == pattern


@pytest.mark.parametrize("name", ["", "a b", "1a", "a\n", "é", "x" * 65, None, 3])
def test_a_type_is_a_plain_word(name: object) -> None:
    with pytest.raises(ConfigError, match="ref_type"):
        ReferencePattern(name, "a")  # type: ignore[arg-type]  # that is the case


async def test_the_group_value_is_the_value_and_empty_matches_are_skipped() -> None:
    patterns = (ReferencePattern("id", r"id=(?P<value>\d*)"), ReferencePattern("empty", "x*"))
    found = await references_in(["id=77; id= id=78"], PreHydrationConfig(custom_patterns=patterns))
    assert [(ref.type, ref.value) for ref in found.references] == [("id", "77"), ("id", "78")]


async def test_a_value_of_a_built_in_type_is_the_same_as_the_built_in_one() -> None:
    patterns = (ReferencePattern("file", r"src/\w+\.py"),)
    config = PreHydrationConfig(custom_patterns=patterns, path_style="posix")
    found = await references_in(["src/a.py ./src/a.py"], config)
    assert [(ref.type, ref.value) for ref in found.references] == [("file", "src/a.py")]


async def test_a_pattern_without_end_is_killed_and_the_rest_goes_on() -> None:
    last = ReferencePattern("last", "b")
    matches = await custom_matches((JIRA, ENDLESS, last), [f"PROJ-1 {HOSTILE}", "AB-2 b"])
    assert [[span.value for span in spans] for spans in matches.by_text] == [["PROJ-1"], ["AB-2"]]
    why = "Custom patterns took longer than 250 ms"
    assert matches.failed == (("endless", ENDLESS.pattern, why), ("last", "b", why))


async def test_a_slow_pattern_is_a_failed_reference_and_built_in_ones_are_found() -> None:
    found = await references_in([f"#1 {HOSTILE}"], PreHydrationConfig(custom_patterns=(ENDLESS,)))
    assert [(ref.type, ref.value, bool(ref.refusal)) for ref in found.references] == [
        ("issue", "#1", False),
        ("endless", ENDLESS.pattern, True),
    ]


async def test_a_text_that_is_no_valid_unicode_does_not_hinder() -> None:
    matches = await custom_matches((JIRA,), ["\ud800 PROJ-1"])
    assert [span.value for span in matches.by_text[0]] == ["PROJ-1"]


async def test_where_no_process_can_be_started_patterns_fail_and_nothing_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    matches = await custom_matches((JIRA,), ["PROJ-1"])
    assert [why.split(":")[0] for *_, why in matches.failed] == ["Custom patterns could not be run"]
