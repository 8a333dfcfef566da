"""The ranked word search over lines."""

from pathlib import Path

import pytest

from surefoot.tools.search import Found, Query, best_lines, fold, words_of
from surefoot.tools.workspace import Workspace

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


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("When was the bridge built?", "town.md:5: The bridge opened in 1932."),
        ("market day", "town.md:3: The market is held on Mondays."),
        ("how long is it, in metres, across the river", "town.md:6: It is 310 metres long and crosses the river."),
        ("people walking over bridges", "town.md:7: Many people walk over the bridge each day."),
        ("population of the city of Rome", "cities.csv:3: Rome,2800000"),
        ("大桥是什么时候建成的", "zh.txt:1: 南京长江大桥于1968年建成通车。"),
        ("博物馆", "zh.txt:3: 博物馆周一闭馆。"),
        ("PAINTERS", "town.md:8: The bridge is painted every ten years by the town's painters."),
    ],
)
def test_the_line_is_among_the_first(root: Path, query: str, line: str) -> None:
    assert line in search(root, query).lines[:2]


def test_one_file_or_folder_can_be_searched(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "more.md").write_text("a bridge too far")
    assert search(root, "bridge", "sub").lines == ("sub/more.md:1: a bridge too far",)
    assert search(root, "bridge", "sub/more.md").lines == ("sub/more.md:1: a bridge too far",)


def test_binary_files_links_and_history_are_not_read(root: Path) -> None:
    (root / "data.bin").write_bytes(b"bridge\0")
    (root / ".git").mkdir()
    (root / ".git" / "log").write_text("bridge")
    (root / "link.md").symlink_to("town.md")
    assert {line.split(":")[0] for line in search(root, "bridge", limit=50).lines} == {"town.md"}


def test_nothing_found_and_no_words(root: Path) -> None:
    assert search(root, "zeppelin").lines == ()
    assert Query("?! ...").words == ()
    assert Query("who is it").words == ("who", "is", "it")


def test_long_lines_are_shown_around_the_word(root: Path) -> None:
    (root / "long.txt").write_text("x " * 5000 + "needle" + " y" * 5000)
    (line,) = search(root, "needle").lines
    assert "needle" in line
    assert len(line) < 350


def test_what_is_not_searched_is_told(root: Path) -> None:
    for number in range(70):
        (root / f"big{number}.txt").write_text("word\n" * 200_000)
    found = search(root, "word")
    assert "more files than one search can read" in found.note
    assert len(found.lines) == 5


@pytest.mark.parametrize(
    "forms",
    [
        ("bridge", "bridges"),
        ("city", "cities"),
        ("open", "opened", "opens", "opening"),
        ("make", "making", "makes"),
        ("plan", "planned", "planning"),
        ("church", "churches"),
        ("class", "classes"),
        ("carry", "carried"),
        ("pass", "passed", "passing"),
        ("sell", "selling"),
    ],
)
def test_forms_of_a_word_are_one(forms: tuple[str, ...]) -> None:
    assert len({fold(form) for form in forms}) == 1


def test_words_that_are_no_forms_stay_apart() -> None:
    assert len({fold(word) for word in ("bus", "his", "ring", "red", "string", "stress", "1932s")}) == 7


def test_chinese_runs_are_pairs() -> None:
    assert list(words_of("长江大桥 in Nanjing, 桥")) == ["长江", "江大", "大桥", "in", "nanj", "桥"]
