"""The file tools as a model meets them: what they give, and that nothing leads outside the workspace."""

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import cases
from surefoot.tools.builtin import file_tools
from surefoot.tools.call import ToolFailed
from surefoot.tools.workspace import MAX_READ_BYTES, Workspace, open_folder
from surefoot.types.errors import ConfigError
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio
Call = Callable[..., Awaitable[ToolResult]]
Files = Callable[..., Awaitable[ToolResult]]

SECRET = "the secret outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace `work` beside a folder `outside`, and links between them."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "empty").mkdir()
    texts = {"readme.md": "# Title\none\ntwo\nthree\n", "page": "one\n\x0ctwo\nthree\n", "nul": "a\0b"}
    for name, text in texts.items():
        (work / name).write_text(text)
    (work / "latin").write_bytes("é".encode("latin-1"))
    (work / "src" / "main.py").write_text("print()\n")
    (work / "inner").symlink_to("src")
    (work / "inner.md").symlink_to("readme.md")
    (work / "leak.txt").symlink_to(outside / "secret.txt")
    (work / "leaks").symlink_to(outside)
    (work / "dangling").symlink_to(outside / "new.txt")
    (work / "loop").symlink_to("loop")
    return work


@pytest.fixture(params=[True, False], ids=["held open", "by path"])
def files(request: pytest.FixtureRequest, root: Path, call: Call) -> Files:
    """Calls a file tool by name, both ways of opening."""
    tools = {tool.spec.name: tool for tool in file_tools(Workspace(root, hold_open=request.param))}

    async def use(name: str, **arguments: object) -> ToolResult:
        return await call(tools[name], **arguments)

    return use


@cases("tools/files")
async def test_what_is_given_and_what_is_told(
    files: Files, root: Path, *, name: str, arguments: dict[str, str], is_error: bool, source: str, whole: str | None,
    told: Sequence[str], untold: Sequence[str],
) -> None:  # fmt: skip
    given = {key: value.replace("ROOT", str(root)) if key == "path" else value for key, value in arguments.items()}
    result = await files(name, **given)
    assert (result.is_error, result.source, whole or result.content) == (is_error, source, result.content)
    assert not [text for text in told if text not in result.content], result.content
    assert not [text for text in untold if text in result.content], result.content


class TestReading:
    async def test_a_large_file_is_cut_between_characters(self, files: Files, root: Path) -> None:
        (root / "big").write_text("é" * MAX_READ_BYTES)
        text = (await files("file_read", path="big")).content
        assert text.endswith(f"(only the first {MAX_READ_BYTES} of {2 * MAX_READ_BYTES} bytes of the file can be read)")
        (root / "odd").write_text("a" + "é" * MAX_READ_BYTES)
        assert not (await files("file_read", path="odd")).is_error
        assert "Only the first 1 lines" in (await files("file_read", path="odd", start_line=2)).content


ESCAPES = [
    "../outside/secret.txt", "src/../../outside/secret.txt", "leak.txt", "leaks/secret.txt",
    "inner/../leaks/secret.txt", "leaks/../outside/secret.txt", "/etc/passwd", "/dev/zero", "/proc/self/environ",
    "~/.profile", "~root/x", "..", "leaks", "dangling", "../work-evil/x",
]  # fmt: skip


NAMES = ("src", "inner", "leaks", "leak.txt", "readme.md", "secret.txt", "outside")


class TestEscapes:
    @pytest.mark.parametrize("path", ESCAPES)
    async def test_nothing_leads_outside(self, files: Files, root: Path, path: str) -> None:
        """adv-file-escape-noext: also where its name is no reference."""
        (root.parent / "work-evil").mkdir()
        (root.parent / "work-evil" / "x").write_text(SECRET)
        before = sorted(str(each) for each in root.parent.rglob("*"))
        for name, more in (("file_read", {}), ("file_list", {}), ("file_search", {"query": "secret"})):
            result = await files(name, path=path, **more)
            assert result.is_error, name
            assert SECRET not in result.content
        if path != "~root/x":  # without such a person it is a name like others
            assert (await files("file_write", path=path, text="x")).is_error
        assert sorted(str(each) for each in root.parent.rglob("*")) == before
        assert (root.parent / "outside" / "secret.txt").read_text() == SECRET

    @pytest.mark.parametrize(
        "path", ["a\0b", "a\nb", "x" * 5000, "x" * 300, "a/" * 1000 + "b", "loop", "loop/x", "\ud800"]
    )
    async def test_odd_paths_are_told(self, files: Files, path: str) -> None:
        for name, more in (("file_read", {}), ("file_list", {}), ("file_write", {"text": "x"})):
            result = await files(name, path=path, **more)
            assert result.is_error
            assert "Error:" not in result.content

    async def test_pipes_devices_and_sockets_are_not_opened(self, files: Files, root: Path) -> None:
        os.mkfifo(root / "pipe")
        for name, more in (("file_read", {}), ("file_write", {"text": "x"})):
            assert "not a regular file" in (await files(name, path="pipe", **more)).content
        assert not (await files("file_search", query="word")).is_error

    def test_what_was_swapped_for_a_link_after_the_check_is_not_entered(self, root: Path) -> None:
        workspace, outside = Workspace(root), root.parent / "outside"
        folder, file = workspace.place("src/main.py"), workspace.place("readme.md")
        (outside / "main.py").write_text(SECRET)
        for name, target in (("src", outside), ("readme.md", outside / "secret.txt")):
            (root / name).rename(root / f"{name}.gone")
            (root / name).symlink_to(target)
        with pytest.raises(ToolFailed, match="link"):
            workspace.read(folder)
        with pytest.raises(ToolFailed, match="link"):
            workspace.write(folder, b"x")
        with pytest.raises(ToolFailed, match="not a regular file"):
            workspace.read(file)

    async def test_a_hard_link_is_not_read(self, files: Files, root: Path) -> None:
        (root / "hard.txt").hardlink_to(root.parent / "outside" / "secret.txt")
        told = await files("file_read", path="hard.txt")
        assert told.is_error
        assert "hard.txt is a hard link" in told.content
        for path in (".", "hard.txt"):
            assert SECRET not in (await files("file_search", query="secret outside", path=path)).content
        assert not (await files("file_write", path="hard.txt", text="mine")).is_error
        assert (root.parent / "outside" / "secret.txt").read_text() == SECRET
        assert (await files("file_read", path="hard.txt")).content == "mine"

    @pytest.mark.parametrize(
        "path", [".git/config", ".GIT/config", ".git/modules/x/config", ".git/config.worktree", "at"]
    )
    async def test_what_may_hold_a_password_of_a_remote_is_not_read(self, files: Files, root: Path, path: str) -> None:
        (root / ".git" / "modules" / "x").mkdir(parents=True)
        for name in ("config", "modules/x/config", "config.worktree", "HEAD"):
            (root / ".git" / name).write_text(f"url = https://me:{SECRET}@host\n")
        (root / "at").symlink_to(".git/config")
        (root / "here").symlink_to(".")
        assert not (await files("file_list", path="here")).is_error
        told = await files("file_read", path=path)
        assert told.is_error
        assert SECRET not in told.content
        assert (await files("file_read", path=".git/HEAD")).content.startswith("url")
        assert "not searched" in (await files("file_search", query="url", path=".git")).content

    async def test_other_roots_must_be_allowed(self, root: Path, call: Call) -> None:
        outside = root.parent / "outside"
        read = file_tools(Workspace(root, allow_roots=(outside,)))[1]
        for path in (str(outside / "secret.txt"), "leak.txt"):
            assert (await call(read, path=path)).content == SECRET

    async def test_a_root_that_is_a_link_is_its_target(self, root: Path, call: Call) -> None:
        (root.parent / "alias").symlink_to("work")
        tools = file_tools(Workspace(root.parent / "alias"))
        assert not (await call(tools[1], path="readme.md")).is_error
        assert not (await call(tools[1], path=str(root.parent / "alias" / "readme.md"))).is_error
        assert not (await call(tools[3], path="new.md", text="x")).is_error

    def test_a_root_that_is_no_directory_is_refused(self, root: Path) -> None:
        with pytest.raises(ConfigError, match="root"):
            Workspace(root / "nowhere")

    @pytest.mark.parametrize("path", [
        ".env", ".ENV.local", "src/.env", "a.pem", "b.KEY", "id_rsa", "id_rsa.pub", ".netrc", ".ssh/config", ".aws/x",
    ])  # fmt: skip
    async def test_names_that_hold_secrets_are_refused(self, files: Files, root: Path, path: str) -> None:
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("password swordfish")
        (root / "plain.txt").symlink_to(path)
        for name in (path, "plain.txt"):
            assert "usually holds secrets" in (await files("file_read", path=name)).content
        assert (await files("file_write", path=path, text="x")).is_error
        assert "swordfish" not in (await files("file_search", query="password swordfish")).content

    async def test_listed_secrets_are_open(self, root: Path, call: Call) -> None:
        (root / ".env.example").write_text("A=")
        read = file_tools(Workspace(root, allow_secret_names=(".env.example",)))[1]
        assert (await call(read, path=".env.example")).content == "A="
        assert (await call(read, path=".env")).is_error

    @given(st.lists(st.sampled_from(["..", ".", "", "~", "/", *NAMES]) | st.text(max_size=5), max_size=8))
    def test_no_path_escapes(self, root: Path, parts: list[str]) -> None:
        workspace = Workspace(root)
        try:
            place = workspace.place("/".join(parts))
        except ToolFailed:
            return
        real = os.path.realpath(Path(place.base, *place.parts))
        assert real == str(root) or real.startswith(f"{root}/")


class TestWriting:
    async def test_new_and_replaced_with_folders(self, files: Files, root: Path) -> None:
        assert (await files("file_write", path="a/b/c.txt", text="é")).content == "Created a/b/c.txt (1 characters)."
        assert (await files("file_write", path="a/b/c.txt", text="x")).content == "Replaced a/b/c.txt (1 characters)."
        assert (root / "a/b/c.txt").read_text() == "x"
        assert [each.name for each in (root / "a/b").iterdir()] == ["c.txt"]

    async def test_permissions_stay(self, files: Files, root: Path) -> None:
        (root / "src/main.py").chmod(0o750)
        await files("file_write", path="src/main.py", text="x")
        assert (root / "src/main.py").stat().st_mode & 0o777 == 0o750

    @pytest.mark.parametrize(
        "path", ["inner.md", "inner/main.py", "leak.txt", "dangling", "src", ".", ".git/hooks/pre-commit"]
    )
    async def test_links_folders_and_history_are_refused(self, files: Files, root: Path, path: str) -> None:
        assert (await files("file_write", path=path, text="x")).is_error
        assert (root / "readme.md").read_text().startswith("# Title")
        assert not (root / ".git").exists()

    async def test_too_large_is_refused(self, files: Files) -> None:
        assert (await files("file_write", path="big", text="x" * (MAX_READ_BYTES + 1))).is_error

    def test_a_failed_write_leaves_nothing(self, root: Path) -> None:
        with open_folder(str(root)) as folder, pytest.raises(IsADirectoryError):
            folder.replace_file("src", b"x")
        assert not [each for each in root.iterdir() if each.suffix == ".tmp"]


class TestListing:
    async def test_many_are_cut(self, files: Files, root: Path) -> None:
        for number in range(400):
            (root / f"f{number}").touch()
        assert (await files("file_list")).content.count("\n") == 300


def test_what_each_tool_promises_and_asks_for(root: Path) -> None:
    specs = [tool.spec for tool in file_tools(Workspace(root))]
    properties = [cast("dict[str, dict[str, str]]", spec.parameters["properties"]) for spec in specs]
    assert [
        (spec.name, spec.effect, spec.idempotent, spec.parameters.get("required", []), own["path"].get("default"))
        for spec, own in zip(specs, properties, strict=True)
    ] == [
        ("file_list", "read", True, [], "."), ("file_read", "read", True, ["path"], None),
        ("file_search", "read", True, ["query"], "."), ("file_write", "write", True, ["path", "text"], None),
    ]  # fmt: skip
    assert all(len(spec.description) <= 110 for spec in specs)
    texts = [each["description"] for own in properties for each in own.values()]
    assert all(0 < len(text) <= 70 for text in texts)
    assert not any(map(str.isdigit, "".join([*texts, *(spec.description for spec in specs)])))  # models copy numbers
