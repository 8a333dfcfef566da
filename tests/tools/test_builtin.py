"""The set of tools that surefoot brings."""

from pathlib import Path

import pytest

from surefoot.tools.builtin import builtin_tools
from surefoot.tools.workspace import Workspace
from surefoot.types.errors import ConfigError

FILES = ["file_list", "file_read", "file_search", "file_write"]


def names(*args: Path | Workspace | None, **options: bool) -> list[str]:
    return [tool.spec.name for tool in builtin_tools(*args, **options)]


def test_what_is_in_it(tmp_path: Path) -> None:
    assert names(tmp_path) == [*FILES, "web_fetch", "date_time", "arithmetic"]
    assert names(Workspace(tmp_path), web=False, write=False) == [*FILES[:-1], "date_time", "arithmetic"]
    assert names(None, web=False) == ["date_time", "arithmetic"]


def test_only_writing_is_not_reading(tmp_path: Path) -> None:
    assert [tool.spec.name for tool in builtin_tools(tmp_path) if tool.spec.effect != "read"] == ["file_write"]


def test_misuse_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        builtin_tools(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="host:port"):
        builtin_tools(None, allow_hosts=("localhost",))
