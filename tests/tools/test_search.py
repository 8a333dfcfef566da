"""Which lines fit some words best, and which words match."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any  # Any: JSON

import pytest

from cases import cases, each
from surefoot.tools.search import HELD, Found, Query, best_lines, fold, words_of
from surefoot.tools.workspace import MAX_READ_BYTES, Workspace

HISTORY = """# The town
The town has a market and a church.
The market is held on Mondays.
## The bridge
The bridge opened in 1932.
It is 310 metres long and crosses the river.
Many people walk over the bridge each day.
The bridge is painted every ten years by the town's painters.
"""


def search(root: Path, query: str, path: str = ".", limit: int = 5) -> Found:
    workspace = Workspace(root)
    return best_lines(workspace, workspace.place(path), Query(query), limit)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "town.md").write_text(HISTORY)
    (tmp_path / "zh.txt").write_text("南京长江大桥于1968年建成通车。\n桥上可以走火车。\n博物馆周一闭馆。\n")
    (tmp_path / "cities.csv").write_text("city,people\nParis,2100000\nRome,2800000\n")
    return tmp_path


@cases("tools/search")
def test_the_best_line_is_found_and_shown_first_or_beside_its_neighbours(root: Path, query: str, line: str) -> None:
    assert line in search(root, query, limit=10).lines[:5]
    assert search(root, query, limit=1).lines == (line,)


@cases("tools/search")
def test_which_lines_are_shown(
    root: Path, files: Mapping[str, str], query: str, how: Mapping[str, Any], lines: tuple[str, ...]
) -> None:
    (root / "sub").mkdir()
    for name, text in files.items():
        (root / name).write_text(text)
    assert search(root, query, **how).lines == lines


def test_binary_files_links_and_history_are_not_read(root: Path) -> None:
    (root / "data.bin").write_bytes(b"bridge\0")
    (root / ".git").mkdir()
    (root / ".git" / "log").write_text("bridge")
    (root / "link.md").symlink_to("town.md")
    assert {line.split(":")[0] for line in search(root, "bridge", limit=50).lines} == {"town.md"}


def test_words_that_any_text_holds_count_where_there_are_no_others() -> None:
    assert Query("?! ...").words == ()
    assert Query("who is it").words == ("who", "is", "it")


def test_long_lines_are_shown_around_the_word(root: Path) -> None:
    (root / "long.txt").write_text("x " * 5000 + "needle" + " y" * 5000)
    (line,) = search(root, "needle").lines
    assert "needle" in line
    assert len(line) < 350


def test_words_that_say_what_is_looked_for_do_not_hurt(root: Path) -> None:
    plain = search(root, "bridge opened", limit=1).lines
    for more in ("year", "when was the", "date", "who", "name of", "time"):
        assert search(root, f"{more} bridge opened", limit=1).lines == plain


def test_what_is_not_searched_is_told(root: Path) -> None:
    for number in range(70):
        (root / f"big{number}.txt").write_text(f"word {'x' * 9_994}\n" * 100)
    found = search(root, "word")
    assert "more files than one search can read" in found.note
    assert len(found.lines) == 5
    (root / "big0.txt").write_text("word\n" + "x" * MAX_READ_BYTES)
    assert f"only the first {MAX_READ_BYTES} bytes of big0.txt" in search(root, "word", path="big0.txt").note


@each("forms", [
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


@each(("asked", "written", "how_well"), [
    ("bridge", "bridges", 1.0), ("carry", "carries", 1.0), ("carry", "carried", 1.0), ("open", "opening", 1.0),
    ("decide", "decided", 1.0), ("construct", "construction", HELD), ("bridge", "footbridge", HELD),
    ("storm", "thunderstorms", HELD),
])  # fmt: skip
def test_a_word_that_holds_one_of_the_query_counts_less(asked: str, written: str, how_well: float) -> None:
    match = Query(asked).match(written)
    assert match is not None
    assert match[1] == how_well


@each(("asked", "written"), [
    *(("summer", "summit"), ("station", "statue"), ("mark", "market"), ("water", "watch"), ("rain", "train")),
    *(("footbridge", "bridges"), ("19871", "198712"), ("wind", "window"), ("three", "thread"), ("horse", "hours")),
])  # fmt: skip
def test_words_that_only_look_alike_do_not_match(asked: str, written: str) -> None:
    assert Query(asked).match(written) is None


@pytest.mark.parametrize("text", ["a footbridge", "THE BRIDGES", "bridging", "carries", "cities", "writing"])
def test_the_quick_look_misses_nothing_that_matches(text: str) -> None:
    query = Query("bridge carry city write")
    assert any(query.match(word) for word in words_of(text.casefold()))
    assert query.pattern.search(text.casefold())
