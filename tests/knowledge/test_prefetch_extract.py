"""What counts as a reference. Source: spec/primitives.md, 3.2 to 3.4."""

from hypothesis import given
from hypothesis import strategies as st

from cases import cases
from surefoot.core.text.urls import MOST_SPANS
from surefoot.knowledge.prefetch.extract import MOST_MARKS, extract
from surefoot.knowledge.prefetch.paths import MOST_QUESTIONS, MOST_QUOTED, file_key
from surefoot.types.prehydration import PreHydrationConfig, ReferencePattern

CONFIG = PreHydrationConfig(path_style="posix")
MANY = PreHydrationConfig(path_style="posix", max_references=1000)


def refs(text: str, config: PreHydrationConfig = CONFIG) -> list[tuple[str, str]]:
    return [(ref.type, ref.value) for ref in extract([text], config).references]


def values(text: str, kind: str, config: PreHydrationConfig = CONFIG) -> list[str]:
    found = refs(text, config)
    assert all(each == kind for each, _ in found), found
    return [value for _, value in found]


@cases("knowledge/prefetch_extract")
def test_a_url_goes_on_to_what_ends_it_and_leaves_the_sentence_its_signs(text: str, expected: list[str]) -> None:
    """adv-null-byte: no NUL ever comes to a tool."""
    assert values(text, "url") == expected


@cases("knowledge/prefetch_extract")
def test_a_file_begins_like_a_path_and_ends_in_an_extension(text: str, expected: list[str]) -> None:
    assert values(text, "file") == expected


@cases("knowledge/prefetch_extract")
def test_what_only_looks_like_a_url_or_a_file_is_no_reference(text: str) -> None:
    assert refs(text) == []


def test_lines_behind_a_file_are_told_apart_from_its_path() -> None:
    """adv-file-line-col: and `#L10` is no issue."""
    found = extract(["./a.rs:42:7 ./b.py#L10-L20 ./c.py:3 `./d e.py:5` ./f.py:6x"], CONFIG).references
    assert [(ref.value, ref.lines, ref.column) for ref in found] == [
        ("./a.rs", (42, 42), 7), ("./b.py", (10, 20), None), ("./c.py", (3, 3), None), ("./d e.py", (5, 5), None),
        ("./f.py", None, None),
    ]  # fmt: skip


def test_windows_paths_count_in_windows_style() -> None:
    config = PreHydrationConfig(path_style="windows")
    expected = [r"C:\x.y", r".\x.y", r"..\a\b.c", r"\\host\share\x.y", "./z.py", r"D:\a b.txt"]
    assert values(r'C:\x.y .\x.y ..\a\b.c \\host\share\x.y ./z.py "D:\a b.txt"', "file", config) == expected


def test_existing_files_count_without_a_prefix_and_few_questions_are_asked() -> None:
    asked: list[str] = []

    def exists(path: str) -> bool:
        asked.append(path)
        return path in ("src/x.py", "README.md", "./Makefile", ".gitignore")

    text = "See src/x.py, README.md. ./Makefile, .gitignore or e.g. and/or https://e.com/README.md README.md"
    found = extract([text], CONFIG, exists=exists).references
    there = ["src/x.py", "README.md", "./Makefile", ".gitignore"]
    assert [ref.value for ref in found] == [*there, "https://e.com/README.md"]
    assert asked == [*there, "e.g", "and/or"]
    asked.clear()
    cut = extract([" ".join(f"a{i}.py" for i in range(100))], CONFIG, exists=exists)
    assert (len(asked), cut.scan_truncated) == (MOST_QUESTIONS, True)


@cases("knowledge/prefetch_extract")
def test_an_issue_is_a_number_that_stands_alone_outside_code(text: str, expected: list[str]) -> None:
    assert values(text, "issue") == expected


def test_a_pull_request_is_one_reference_and_no_issue() -> None:
    assert refs("PR #5, pull  request\n#6, pR#7") == [("pr", "PR #5"), ("pr", "pull  request\n#6"), ("pr", "pR#7")]
    assert refs("PR 3, `PR #4`") == []
    assert refs("SPR #3") == [("issue", "#3")]
    assert refs("PR         #8") == [("issue", "#8")]


def test_the_leftmost_wins_and_a_stretch_is_claimed_once() -> None:
    assert refs("https://e.com/./a.md#42 then ./b.md") == [("url", "https://e.com/./a.md#42"), ("file", "./b.md")]


@cases("knowledge/prefetch_extract")
def test_a_custom_match_wins_at_equal_length_and_loses_to_longer(text: str, patterns: str, expected: list[str]) -> None:
    given = tuple(ReferencePattern(f"p{at}", pattern) for at, pattern in enumerate(patterns.split(",")))
    found = extract([text], PreHydrationConfig(path_style="posix", custom_patterns=given)).references
    assert [ref.type for ref in found] == expected


@cases("knowledge/prefetch_extract")
def test_the_same_thing_counts_once_in_its_first_spelling(text: str, first: str) -> None:
    assert [value for _, value in refs(text)] == [first]


def test_what_differs_in_a_path_a_query_or_a_repository_is_not_the_same() -> None:
    text = "https://e.com/A https://e.com/a https://e.com/a?b=1 https://e.com:8080/a http://e.com/a #7 o/r#7 PR #7"
    assert len(refs(text, MANY)) == 8


def test_caps_keep_what_was_named_first_and_count_the_rest() -> None:
    text = "#1 ./a.md #2 #3 ./b.md #1"
    config = PreHydrationConfig(path_style="posix", max_per_type=2, max_references=3)
    found = extract([text], config)
    assert [ref.value for ref in found.references] == ["#1", "./a.md", "#2"]
    assert found.dropped == 2
    nothing = extract([text], PreHydrationConfig(max_references=0))
    assert (nothing.references, nothing.dropped) == ((), 0)


def test_messages_are_read_in_their_order_and_the_same_reference_counts_once() -> None:
    assert [ref.value for ref in extract(["#1 #2", "#2 #3"], CONFIG).references] == ["#1", "#2", "#3"]


def test_text_beyond_the_limit_is_not_read_and_no_word_is_cut_in_two() -> None:
    config = PreHydrationConfig(max_input_chars=20)
    found = extract(["#1 https://example.com/long/path", "#3"], config)
    assert [ref.value for ref in found.references] == ["#1"]
    assert found.scan_truncated
    assert not extract(["#1"], config).scan_truncated


@cases("knowledge/prefetch_extract")
def test_hostile_text_comes_to_an_end(text: str) -> None:
    """adv-redos-slashes"""
    many = "https://a" + text * (200_000 // len(text))
    assert len(extract([many], CONFIG).references) <= 10


def test_a_text_with_more_marks_than_anybody_means_is_read_in_part_and_says_so() -> None:
    assert extract(["`a` " * MOST_MARKS + "#1"], CONFIG) == extract(["`a` " * MOST_MARKS], CONFIG)
    assert extract(["`a` " * MOST_MARKS], CONFIG).scan_truncated
    assert extract([" ".join(f"#{i}" for i in range(MOST_SPANS + 1))], CONFIG).scan_truncated


def test_a_path_too_long_to_be_read_is_not_cleaned() -> None:
    long = "./" + "/a/.." * 1_000 + "/b.py"
    assert file_key(long, "windows") == file_key(long, "posix") == long
    assert file_key(long[-100:], "posix") == "/b.py"


def test_more_quotes_and_names_than_anybody_means_are_read_in_part_and_that_is_told() -> None:
    quotes = "'./a b' " * MOST_QUOTED
    assert not extract([quotes], CONFIG).scan_truncated
    assert extract([quotes + "'./a b'"], CONFIG).scan_truncated
    names = "a.py " * MOST_SPANS
    assert not extract([names], CONFIG, exists=lambda _: False).scan_truncated
    assert extract([names + "a.py"], CONFIG, exists=lambda _: False).scan_truncated


@given(st.text(alphabet="ab1./~#`'\"(:@ \nPRhtps文。\\-G[]"))
def test_values_are_text_as_written_and_in_order(text: str) -> None:
    at = 0
    for ref in extract([text], MANY).references:
        assert ref.value in text[at:]
        at = text.index(ref.value, at)
