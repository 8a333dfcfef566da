"""Which directory of the workspace a written path means."""

from pathlib import Path

import pytest

from cases import cases
from surefoot.knowledge.directories import Directories, levels
from surefoot.types.errors import ConfigError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    work = tmp_path / "meadow"
    (work / "src" / "api").mkdir(parents=True)
    (work / "src" / "api" / "handlers.py").write_text("")
    (work / "src" / "Makefile").write_text("")
    (tmp_path / "outside").mkdir()
    (work / "out").symlink_to(tmp_path / "outside")
    (work / "in").symlink_to("src")
    (tmp_path / "linked").symlink_to(work)
    return work


@cases("knowledge/directories")
def test_a_path_means_a_directory(root: Path, written: str, scope: str) -> None:
    assert Directories(str(root)).scope_of(written) == scope


def test_an_absolute_path_inside_is_relative_to_the_root(root: Path) -> None:
    assert Directories(str(root)).scope_of(str(root / "src" / "api")) == "src/api"
    linked = Directories(str(root.parent / "linked"))
    assert linked.scope_of(str(root / "src")) == linked.scope_of(str(root.parent / "linked" / "src")) == "src"


@cases("knowledge/directories")
def test_what_leads_outside_is_refused(root: Path, written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(root.parent / "outside"))
    with pytest.raises(ConfigError, match="outside the workspace"):
        Directories(str(root)).scope_of(written)


@pytest.mark.parametrize("written", ["a\0b", "a\nb", "a\x1b[0m", "/".join("a" * 65), "a" * 5_000])
def test_what_is_no_plain_path_is_refused(root: Path, written: str) -> None:
    with pytest.raises(ConfigError, match="directory="):
        Directories(str(root)).scope_of(written)


def test_64_levels_are_not_too_deep(root: Path) -> None:
    assert len(levels(Directories(str(root)).scope_of("/".join("a" * 64)))) == 65


def test_case_counts_as_the_file_system_has_it(root: Path) -> None:
    assert Directories(str(root)).scope_of("SRC/Api") == "SRC/Api"  # this one tells the two apart
    careless = Directories(str(root), ignore_case=True)
    assert careless.scope_of("SRC/Api") == careless.scope_of(str(root).upper() + "/src/api") == "src/api"


def test_the_levels_go_up_by_whole_names() -> None:
    assert levels("src/api-v2/x") == ("src/api-v2/x", "src/api-v2", "src", ".")
    assert levels(".") == (".",)


def test_a_root_must_be_a_directory(root: Path) -> None:
    for path in (root / "gone", root / "src" / "Makefile"):
        with pytest.raises(ConfigError, match="must be a directory"):
            Directories(str(path))
