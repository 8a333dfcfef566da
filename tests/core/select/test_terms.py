"""Words as the index has them: stems, clauses, and a task taken apart."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.core.select.index import MOST_CLAUSES, clauses, content_words, plain, read, stem, words


@pytest.mark.parametrize(("text", "found"), [
    ("getWeatherByCity", ["get", "weath", "city"[:3] + "i"]), ("read_csv", ["read", "csv"]),
    ("HTTPServer", ["http", "serv"]), ("math.factorial", ["math", "factorial"]), ("utf8decode", ["utf", "decod"]),
    ("Train CNNs", ["train", "cnn"]), ("GitHub issues", ["git", "hub", "github", "issu"]),
    ("查询天气", ["查询", "询天", "天气"]), ("用weather查", ["用", "weath", "查"]), ("the of and 12 a", []), ("", []),
])  # fmt: skip
def test_a_text_is_split_at_case_changes_digits_and_punctuation(text: str, found: list[str]) -> None:
    assert words(text) == found


def test_a_name_of_two_parts_is_one_word_too_and_no_longer_for_it() -> None:
    assert read("GitHub") == (["git", "hub", "github"], 2)


def test_words_of_politeness_do_not_count_in_a_task() -> None:
    assert content_words("Hello, could you please help me find the latest news? Thanks!") == ("find", "latest", "news")


def test_a_word_counts_once() -> None:
    assert content_words("weather weather Weather") == ("weath",)


@pytest.mark.parametrize(("text", "kind"), [
    ("open https://example.com/a?b=1 now", "open  url web page  now"),
    ("read /data/in/report.pdf", "read  file pdf document "),
    ("read C:\\data\\report.xlsx", "read  file excel spreadsheet "),
    ("save it to log.csv.", "save it to  write file csv data ."), ("look into /var/log", "look into  directory "),
    ("and/or", "and/or"), ("version 1.5", "version 1.5"),
])  # fmt: skip
def test_what_names_a_place_stands_for_its_kind(text: str, kind: str) -> None:
    assert plain(text) == kind


def test_a_task_is_taken_apart_into_clauses() -> None:
    task = "Average the column of a sheet, and post it to the lab. Then send an email to Bob; 然后查询北京天气"
    assert [text for text, _ in clauses(task)] == [
        "Average the column of a sheet, and post it to the lab",
        "send an email to Bob",
        "查询北京天气",
    ]


def test_a_clause_of_one_content_word_belongs_to_the_one_before() -> None:
    assert clauses("book a flight to Rome. Cheap! ") == [
        ("book a flight to Rome Cheap", ("book", "flight", "rom", "cheap"))
    ]


def test_clauses_are_not_without_end() -> None:
    assert len(clauses(". ".join(f"send letter {'x' * at}" for at in range(1, 50)))) == MOST_CLAUSES


@given(st.text())
def test_any_text_has_words_and_clauses(text: str) -> None:
    assert words(text) == words(text)
    assert set(content_words(plain(text))) <= set(words(plain(text)))
    assert all(asked or len(found) for found, asked in clauses(plain(text)))


@pytest.mark.parametrize("text", ["." * 50_000 + "x", "a-" * 25_000, "/a" * 25_000, "a." * 25_000, "\\" * 50_000])
def test_no_text_takes_long(text: str) -> None:
    began = time.process_time()
    clauses(plain(text))
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize("forms", [
    "calculate calculates calculated calculating calculation calculator",
    "translate translation translating translations", "book books booked booking", "city cities",
    "delete deletes deleting deletion", "create creating creation created", "box boxes",
    "plan plans planned planning planner", "search searches searching searched", "pay pays payment",
    "transform transformation", "query queries querying",
])  # fmt: skip
def test_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    ("one", "other"), [("news", "new"), ("species", "specie"), ("address", "addre"), ("status", "statu")]
)
def test_what_is_no_ending_stays(one: str, other: str) -> None:
    assert stem(one) != stem(other)


@given(st.text(max_size=40))
def test_any_text_has_a_stem_that_is_no_longer(word: str) -> None:
    assert len(stem(word)) <= len(word)
    assert bool(stem(word)) == bool(word)
