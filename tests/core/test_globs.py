"""Which names a glob matches. Source: spec/primitives.md, section 1.2."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.core.select.profile import matched

LONG = 2_000


def matches(pattern: str, *names: str) -> set[str]:
    return set(matched([pattern], names)[pattern])


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("web_*", ["web_get", "web_"], ["xweb_get", "web", "Web_get"]),
        ("*_get", ["web_get", "_get"], ["web_gets", "get"]),
        ("*web*", ["web", "a_web_b"], ["we_b"]),
        ("a*b*c", ["abc", "a-b-c", "abcbc"], ["acb", "ab", "xabc"]),
        ("a*ba", ["aba", "abba"], ["ba", "ab"]),
        ("ab*ba", ["abba", "ab_ba"], ["aba"]),  # the beginning and the end may not share a character
        ("tool_?", ["tool_a", "tool_1", "tool_é"], ["tool_", "tool_ab"]),
        ("*_?*", ["a_b", "a_bc"], ["a_"]),
        ("*a?c*", ["xabcx", "aac"], ["ac", "a_b"]),
        ("*?a?*", ["xax"], ["ax", "xa"]),
        ("?", ["a", "\n"], ["ab"]),
        ("*", ["a", "a/b", "a.b__c\n"], []),
        ("mcp/*", ["mcp/a", "mcp/a/b"], ["mcp"]),
        ("exact", ["exact"], ["exact\n", "exactly"]),
        ("web", ["web"], ["web_get", "a web"]),
    ],
)
def test_a_star_is_any_run_and_a_question_mark_one_character(pattern: str, yes: list[str], no: list[str]) -> None:
    assert matches(pattern, *yes, *no) == set(yes)


@pytest.mark.parametrize("pattern", ["t[ab]", "{a,b}", "!web", "a\\", "a.b", "a+", "^a$", "(a|b)", "-"])
def test_every_other_sign_stands_for_itself(pattern: str) -> None:
    others = ["ta", "tb", "a", "b", "web", "axb", "aa"]
    assert matches(pattern, pattern, *others) == {pattern}
    assert matches(f"{pattern}*", pattern, *others) == {pattern}
    assert matches(f"*{pattern}?", f"x{pattern}y", *others) == {f"x{pattern}y"}


def test_a_backslash_does_not_escape_a_star() -> None:
    assert matches(r"a\*", "a*", r"a\x", "a\\") == {r"a\x", "a\\"}


def test_the_empty_pattern_matches_nothing() -> None:
    assert matches("", "", "a") == set()


def test_each_pattern_gets_its_own_names() -> None:
    found = matched(["a*", "*z", "q"], ["az", "a", "z"])
    assert found == {"a*": {"az", "a"}, "*z": {"az", "z"}, "q": set()}


@given(st.lists(st.text("ab*?", max_size=9), max_size=4), st.lists(st.text("ab\n", min_size=1, max_size=12)))
def test_globs_match_what_the_regular_expression_of_the_same_meaning_matches(
    patterns: list[str], names: list[str]
) -> None:
    found = matched(patterns, names)
    for pattern in patterns:
        meaning = "".join({"*": ".*", "?": "."}.get(sign, sign) for sign in pattern)
        assert found[pattern] == {n for n in names if pattern and re.fullmatch(meaning, n, re.DOTALL)}


@given(st.lists(st.text("ab*?", max_size=9), max_size=4), st.lists(st.text("ab\0", max_size=12)))
def test_names_that_are_long_or_hold_odd_characters_are_matched_by_the_same_rules(
    patterns: list[str], names: list[str]
) -> None:
    for head in ("", "c" * 70):
        found = matched([head + pattern for pattern in patterns], [*names, *(head + name for name in names)])
        for pattern in patterns:
            meaning = head + "".join({"*": ".*", "?": "."}.get(sign, sign) for sign in pattern)
            matches = {n for n in (*names, *(head + n for n in names)) if re.fullmatch(meaning, n, re.DOTALL)}
            assert found[head + pattern] == (matches if head + pattern else set())


@given(st.text("ab?", min_size=1, max_size=40), st.text("ab", min_size=1, max_size=400))
def test_a_piece_with_gaps_is_found_wherever_it_stands(piece: str, name: str) -> None:
    meaning = piece.replace("?", ".")
    assert bool(matches(f"*{piece}*", name)) == (re.search(meaning, name) is not None)


@pytest.mark.parametrize(("pattern", "is_match"), [
    ("a" * LONG + "*", True), ("a" * (LONG + 1) + "*", False), ("*a" * (LONG // 2) + "b", False), ("*" * LONG, True),
    ("?" * LONG, True), ("*?" * (LONG // 2), True), ("*" + "a" * (LONG // 2) + "b*", False),
    ("*" + "a?" * (LONG // 4) + "b*", False), ("*a?a" * (LONG // 4) + "b", False), ("*a?" * (LONG // 3), True),
], ids=range(10))  # fmt: skip
def test_no_pattern_and_no_name_is_too_long(pattern: str, is_match: bool) -> None:
    assert bool(matches(pattern, "a" * LONG)) == is_match
    assert not matches(f"x{pattern}", "a" * LONG)
