"""Words as a search compares them."""

import pytest

from surefoot.tools.search import FORM, LONGER, PART, Query, fold, relation, words_of


@pytest.mark.parametrize("forms", [
    ("bridge", "bridges"), ("city", "cities"), ("open", "opened", "opens", "opening"), ("make", "making", "makes"),
    ("plan", "planned", "planning"), ("church", "churches"), ("class", "classes"), ("carry", "carried"),
    ("pass", "passed", "passing"), ("sell", "selling"),
])  # fmt: skip
def test_forms_of_a_word_are_one(forms: tuple[str, ...]) -> None:
    assert len({fold(form) for form in forms}) == 1


def test_words_that_are_no_forms_stay_apart() -> None:
    assert len({fold(word) for word in ("bus", "his", "ring", "red", "string", "stress", "1932s")}) == 7


def test_chinese_runs_are_pairs() -> None:
    assert list(words_of("长江大桥 in Nanjing, 桥")) == ["长江", "江大", "大桥", "in", "nanjing", "桥"]


@pytest.mark.parametrize(("asked", "written", "how_well"), [
    ("bridge", "bridges", 1.0), ("carry", "carries", 1.0), ("carry", "carried", 1.0), ("open", "opening", 1.0),
    ("rebuild", "rebuilt", FORM), ("rebuilt", "rebuilding", FORM), ("write", "written", FORM),
    ("write", "writer", FORM), ("built", "build", FORM), ("decide", "decided", 1.0),
    ("construct", "construction", LONGER), ("construction", "constructed", LONGER), ("bridge", "footbridge", PART),
    ("footbridge", "bridges", PART), ("storm", "thunderstorms", PART),
])  # fmt: skip
def test_related_words_count_less_than_the_same(asked: str, written: str, how_well: float) -> None:
    match = Query(asked).match(written)
    assert match is not None
    assert match[1] == how_well


@pytest.mark.parametrize(("asked", "written"), [
    *(("summer", "summit"), ("station", "statue"), ("mark", "market"), ("water", "watch"), ("rain", "train")),
    *(("ridge", "footbridge"), ("1987", "19871"), ("wind", "window"), ("three", "thread"), ("horse", "hours")),
])  # fmt: skip
def test_words_that_only_look_alike_are_not_related(asked: str, written: str) -> None:
    assert Query(asked).match(written) is None
    assert relation(fold(written), fold(asked)) == 0.0


@pytest.mark.parametrize("text", ["rebuilt", "a footbridge", "THE BRIDGES", "bridging", "carries", "cities", "written"])
def test_the_quick_look_misses_nothing_that_matches(text: str) -> None:
    query = Query("rebuild bridge footbridge carry city write")
    assert any(query.match(word) for word in words_of(text.casefold()))
    assert query.pattern.search(text.casefold())
