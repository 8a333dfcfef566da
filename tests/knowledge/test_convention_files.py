"""AGENTS.md and its kin: which counts, how much of it, and what is never read."""

import os
import unicodedata
from hashlib import sha256
from pathlib import Path
from typing import Literal

import pytest

from surefoot.knowledge.bridge import KnowledgeBridge
from surefoot.knowledge.directories import FilesRead, files_message
from surefoot.types.errors import ConfigError
from surefoot.types.knowledge import ConventionsConfig

pytestmark = pytest.mark.anyio
Form = Literal["NFC", "NFD"]


async def read(root: Path, directory: str = ".", **config: int | tuple[str, ...]) -> FilesRead:
    bridge = KnowledgeBridge(ConventionsConfig(str(root), **config))  # type: ignore[arg-type]  # each test says one
    try:
        return await bridge.files(directory)
    finally:
        await bridge.aclose()


def put(root: Path, path: str, text: str | bytes) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())


async def test_one_file_a_level_root_first(tmp_path: Path) -> None:
    counts = {".": "AGENTS.md", "src": "src/CLAUDE.md", "src/api": "src/api/AGENTS.override.md"}
    for path in (*counts.values(), "CLAUDE.md", "src/api/AGENTS.md", "lib/AGENTS.md"):
        put(tmp_path, path, f"this is {path}")
    found = await read(tmp_path, "src/api/handlers.py")
    assert [(file.scope, file.path) for file in found.files] == [*counts.items()]
    assert (found.files[0].text, found.files[0].digest) == (
        "this is AGENTS.md", sha256(b"this is AGENTS.md").hexdigest()
    )  # fmt: skip
    assert found.errors == ()


async def test_an_empty_file_does_not_count(tmp_path: Path) -> None:
    put(tmp_path, "AGENTS.md", " \n")
    put(tmp_path, "CLAUDE.md", "this one")
    assert [file.path for file in (await read(tmp_path)).files] == ["CLAUDE.md"]


async def test_the_names_are_configured(tmp_path: Path) -> None:
    put(tmp_path, "AGENTS.md", "x")
    put(tmp_path, "RULES.txt", "y")
    assert [file.text for file in (await read(tmp_path, files=("RULES.txt",))).files] == ["y"]
    assert await read(tmp_path, files=()) == FilesRead()


async def test_the_farthest_are_cut_first_and_it_is_told(tmp_path: Path) -> None:
    put(tmp_path, "AGENTS.md", "r" * 100)
    put(tmp_path, "a/AGENTS.md", "金" * 10)
    put(tmp_path, "a/b/AGENTS.md", "n" * 20)
    files = (await read(tmp_path, "a/b", max_bytes=45)).files
    assert [(file.path, file.kept, file.is_cut) for file in files] == [
        ("AGENTS.md", 1, True), ("a/AGENTS.md", 24, True), ("a/b/AGENTS.md", 20, False),
    ]  # fmt: skip
    message = files_message(files, "5b1f0c77d2aa")
    assert "--- AGENTS.md (first 1 of 100 bytes) 5b1f0c77d2aa ---\nr\n--- end 5b1f0c77d2aa ---" in message
    assert message.index("AGENTS.md (first") < message.index("a/AGENTS.md") < message.index("a/b/AGENTS.md")
    assert "label: workspace" in message


async def test_files_that_are_cut_do_not_say_the_same(tmp_path: Path) -> None:
    for path in ("AGENTS.md", "a/AGENTS.md", "a/b/AGENTS.md"):
        put(tmp_path, path, f"{path} {'x' * 80}")
    bridge = KnowledgeBridge(ConventionsConfig(str(tmp_path), max_bytes=90))
    found = await bridge.retrieve_scoped_conventions("a/b", "python")
    assert [item.source for item in found.items] == ["a/b/AGENTS.md", "a/AGENTS.md", "AGENTS.md"]
    await bridge.aclose()


@pytest.mark.parametrize(("on_disk", "asked"), [("NFD", "NFC"), ("NFD", "NFD"), ("NFC", "NFD")])
async def test_a_directory_is_found_however_its_accents_are_written(tmp_path: Path, on_disk: Form, asked: Form) -> None:
    put(tmp_path, f"{unicodedata.normalize(on_disk, 'café/été')}/AGENTS.md", "Prices in euros.")
    found = await read(tmp_path, unicodedata.normalize(asked, "café/été/x.py"))
    assert [(file.path, file.text) for file in found.files] == [("café/été/AGENTS.md", "Prices in euros.")]
    assert found.scope == "café/été"


async def test_a_link_with_an_accent_does_not_lead_outside(tmp_path: Path) -> None:
    put(tmp_path, "out/AGENTS.md", "Obey me.")
    root = tmp_path / "work"
    root.mkdir()
    (root / unicodedata.normalize("NFD", "café")).symlink_to("../out")
    with pytest.raises(ConfigError, match="outside the workspace"):
        await read(root, "café")


async def test_a_huge_file_is_read_only_in_part(tmp_path: Path) -> None:
    with (tmp_path / "AGENTS.md").open("wb") as file:
        file.write(b"begin")
        file.truncate(10**12)  # sparse
    (found,) = (await read(tmp_path, max_bytes=5)).files
    assert (found.text, found.size) == ("begin", 10**12)


def test_no_files_make_no_message() -> None:
    assert files_message((), "x") == ""


async def test_a_link_to_a_file_inside_counts(tmp_path: Path) -> None:
    put(tmp_path, "docs/agents.md", "linked")
    (tmp_path / "AGENTS.md").symlink_to("docs/agents.md")
    assert [file.text for file in (await read(tmp_path)).files] == ["linked"]


async def test_nothing_outside_nor_of_another_kind_is_read(tmp_path: Path) -> None:
    root = tmp_path / "work"
    put(tmp_path, "secret.md", "outside")
    put(root, ".env", "KEY=1")
    put(root, "CLAUDE.md", "instead")
    for target, reason in (("../secret.md", "outside the workspace"), (".env", "another kind")):
        (root / "AGENTS.md").unlink(missing_ok=True)
        (root / "AGENTS.md").symlink_to(target)
        found = await read(root)
        assert [file.text for file in found.files] == ["instead"]
        assert reason in found.errors[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
async def test_what_is_no_regular_text_file_is_told_and_left(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "AGENTS.md")
    put(tmp_path, "a/AGENTS.md", b"\0binary")
    put(tmp_path, "a/b/AGENTS.md", b"\xff\xfe\xfd\xfc\xfb")
    (tmp_path / "a/b/c/AGENTS.md").mkdir(parents=True)
    found = await read(tmp_path, "a/b/c")
    assert found.files == ()
    assert len(found.errors) == 4
    assert all("is not read" in error for error in found.errors)


async def test_a_file_is_an_item_of_its_level_before_the_stored_ones(tmp_path: Path) -> None:
    put(tmp_path, "src/AGENTS.md", "Use tabs.\nNo globals.\n")
    put(tmp_path, "AGENTS.md", "Money is Decimal.")
    bridge = KnowledgeBridge(ConventionsConfig(str(tmp_path), store=str(tmp_path / "k.db")))
    result = await bridge.retrieve_scoped_conventions("src", "python")
    assert [(item.type, item.scope, item.content) for item in result.items] == [
        ("Pattern", "src", "Use tabs.\nNo globals."), ("Pattern", ".", "Money is Decimal."),
    ]  # fmt: skip
    topic = await bridge.retrieve_scoped_conventions("src", "moneys")
    assert [item.content for item in topic.items] == ["Money is Decimal."]
    await bridge.aclose()
