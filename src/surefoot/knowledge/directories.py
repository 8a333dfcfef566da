"""A directory as a model or a person writes it, as the place in the workspace that it means.

Source: spec/primitives.md, 4.2. What a link leads to is looked at for the check only; the place keeps its written name.
"""

# What is checked are the strings that the system gets; a Path would clean them on its own.
# ruff: noqa: PTH100, PTH111, PTH112, PTH117, PTH118, PTH208

from __future__ import annotations

import os
import re
import unicodedata
from contextlib import suppress

from surefoot.knowledge.languages import looks_like_a_file
from surefoot.types.errors import ConfigError
from surefoot.types.knowledge import ROOT

DEEPEST = 64
LONGEST_PATH = 4_096

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_DRIVE = re.compile(r"[A-Za-z]:(?:/|$)")
_OUTSIDE = "outside the workspace; give a directory inside it, relative to its root"


class Directories:
    """The directories of one workspace. `ignore_case`: whether its file system does; None asks it.

    All paths here are relative to the root, with `/`, in NFC, and in lower case where case makes no difference.
    Methods ask the file system, and raise `ConfigError` for a directory that cannot be meant. Raises `ConfigError` when
    the root is no directory.
    """

    def __init__(self, root: str, *, ignore_case: bool | None = None) -> None:
        given = os.path.abspath(os.path.expanduser(root))
        self.root = os.path.realpath(given)
        if not os.path.isdir(self.root):
            raise ConfigError("root", root, "must be a directory that exists")
        self._ignore_case = _ignores_case(self.root) if ignore_case is None else ignore_case
        self._bases = tuple(dict.fromkeys((_parts(given), _parts(self.root))))

    def scope_of(self, directory: str) -> str:
        """The scope that a directory stands for, `ROOT` for the root itself. A file means the directory it is in."""
        if len(directory) > LONGEST_PATH or _CONTROL.search(directory):
            raise ConfigError("directory", directory[:80], "too long, or holds control characters; give a plain path")
        written = unicodedata.normalize("NFC", directory.strip()).replace("\\", "/")
        if written.startswith("~"):
            written = os.path.expanduser(written)
        is_absolute = os.path.isabs(written) or written.startswith("/") or _DRIVE.match(written)
        whole = _parts(written if is_absolute else f"{self.root}/{written}")
        below = next((found for base in self._bases if (found := self._below(base, whole)) is not None), None)
        if below is None:
            raise ConfigError("directory", directory, _OUTSIDE)
        real = self.inside("/".join(below) or ROOT)
        if real is None:
            raise ConfigError("directory", directory, _OUTSIDE)
        if below and _is_file(real, below[-1]):
            below = below[:-1]
        if len(below) > DEEPEST:
            raise ConfigError("directory", f"{directory[:80]}…", f"at most {DEEPEST} directories deep")
        scope = "/".join(below) or ROOT
        return scope.casefold() if self._ignore_case else scope

    def inside(self, path: str) -> str | None:
        """The real path of something in the workspace, links followed; None when it leads outside."""
        try:
            real = os.path.realpath(os.path.join(self.root, self.on_disk(path)))
        except (OSError, ValueError):  # a name that this system cannot have
            return None
        return real if self._below(_parts(self.root), _parts(real)) is not None else None

    def on_disk(self, path: str) -> str:
        """A path as the disk has it: names that are not there in NFC may be there in NFD."""
        found = ""
        for name in () if path.isascii() else path.split("/"):
            decomposed = os.path.join(found, unicodedata.normalize("NFD", name))
            found = os.path.join(found, name)
            if not os.path.lexists(os.path.join(self.root, found)) and os.path.lexists(
                os.path.join(self.root, decomposed)
            ):
                found = decomposed
        return found or path

    def _below(self, base: tuple[str, ...], path: tuple[str, ...]) -> tuple[str, ...] | None:
        """What leads from a directory down to a path, compared by whole names; None when it is not inside."""
        head = path[: len(base)]
        is_inside = [self._case(part) for part in head] == [self._case(part) for part in base]
        return path[len(base) :] if is_inside else None

    def _case(self, part: str) -> str:
        return part.casefold() if self._ignore_case else part


def levels(scope: str) -> tuple[str, ...]:
    """A scope and all above it, nearest first, the root last."""
    parts = () if scope == ROOT else tuple(scope.split("/"))
    return (*("/".join(parts[:depth]) for depth in range(len(parts), 0, -1)), ROOT)


def _parts(path: str) -> tuple[str, ...]:
    """The names of an absolute path, `.` and `..` resolved, in NFC."""
    plain = os.path.normpath(path).replace("\\", "/")
    return tuple(part for part in unicodedata.normalize("NFC", plain).split("/") if part)


def _is_file(real: str, name: str) -> bool:
    if os.path.lexists(real):
        return not os.path.isdir(real)
    return looks_like_a_file(name)


def _ignores_case(root: str) -> bool:
    """Whether the root's file system does: asked with a name in it, else with the root's own."""
    names: list[str] = []
    with suppress(OSError):
        names = [os.path.join(root, name) for name in os.listdir(root)[:100]]
    for path in (*names, root):
        folder, name = os.path.split(path)
        if name.swapcase() != name:
            with suppress(OSError):
                return os.path.samestat(os.lstat(path), os.lstat(os.path.join(folder, name.swapcase())))
            return False
    return os.path.normcase("A") == "a"
