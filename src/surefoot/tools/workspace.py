"""Which files an agent may touch: those whose real path is inside its workspace, and that hold no secrets.

Source: spec/primitives.md, 3.7. Nobody can tell where the other names of a file are, so one with several (hard links)
is not read: it may be a file outside of the root.
"""

# What is checked are the strings that the system gets; a Path would clean them on its own.
# ruff: noqa: PTH100, PTH111, PTH112, PTH118, PTH206

from __future__ import annotations

import os
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase

from surefoot.tools.calling import ToolFailed
from surefoot.tools.folder import HAS_DIR_FD, Folder, ManyNames, NotRegular, opened
from surefoot.types.errors import ConfigError

MAX_READ_BYTES = 1024 * 1024
"""How much of one file is read."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
LONGEST_PATH = 4096
DEEPEST_PATH = 64
"""Folders inside folders that are entered."""

SECRET_NAMES = (
    *(".env*", "*.pem", "*.key", "id_rsa*", ".netrc", ".ssh", ".aws", ".gnupg"),
    *("id_dsa*", "id_ecdsa*", "id_ed25519*"),  # the same as the third, of later years
    *(".npmrc", ".pypirc", ".pgpass", ".git-credentials", ".kube", ".docker", "credentials", "credentials.*"),
    ".surefoot",  # the journal, and recipes that name files to run
)
"""Names that usually hold secrets, whatever their case; a directory stands for all below it."""
HISTORY_NAMES = (".git", ".hg", ".svn", ".jj")
"""Folders of version control: never searched, and never written, since their hooks are run by others."""
_HISTORY_SECRETS = ("config", "config.worktree", "hgrc")
"""Files below them that may hold the password of a remote."""

OUTSIDE = "The path is outside the workspace. Give a path relative to the workspace, without leading slash or dots."


@dataclass(frozen=True, slots=True)
class Place:
    """A checked path: `parts` below the real directory `base`; `shown` is how the model sees it.

    `is_straight`: the path as written goes through no link.
    """

    base: str
    parts: tuple[str, ...]
    shown: str
    is_straight: bool


class Workspace:
    """The files below `root`, and below each of `allow_roots` when a path leads there.

    `allow_secret_names` opens names (patterns as in a shell) that are refused otherwise. `hold_open`: see `opened`.
    Raises `ConfigError` when a root is no directory. Methods that take a path raise `ToolFailed`.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        allow_roots: tuple[str | os.PathLike[str], ...] = (),
        allow_secret_names: tuple[str, ...] = (),
        hold_open: bool = HAS_DIR_FD,
    ) -> None:
        self._as_given = tuple(os.path.abspath(os.path.expanduser(os.fspath(each))) for each in (root, *allow_roots))
        self._real = tuple(os.path.realpath(each) for each in self._as_given)
        self._hold_open = hold_open
        self._open_names = tuple(name.casefold() for name in allow_secret_names)
        for field, path in zip(("root", *["allow_roots"] * len(allow_roots)), self._real, strict=True):
            if not os.path.isdir(path):
                raise ConfigError(field, path, "must be a directory that exists")

    @property
    def root(self) -> str:
        """The real path of the workspace."""
        return self._real[0]

    def place(self, path: str) -> Place:
        """Where a path leads, links followed; raises `ToolFailed` when outside, secret, or no path at all."""
        path = path.strip() or "."
        if len(path) > LONGEST_PATH or _CONTROL.search(path):
            raise ToolFailed("The path is too long or holds control characters. Give a plain relative path.")
        written = os.path.normpath(os.path.join(self._as_given[0], os.path.expanduser(path)))
        try:
            real = os.path.realpath(os.path.join(self._as_given[0], os.path.expanduser(path)))
        except (OSError, ValueError) as error:
            raise ToolFailed(OUTSIDE) from error
        for base in self._real:
            if (parts := _below(base, real)) is not None:
                break
        else:
            raise ToolFailed(OUTSIDE)
        if len(parts) > DEEPEST_PATH:
            raise ToolFailed("The path is too deep. Give one with fewer folders.")
        straight = any(_below(given, written) == parts for given in (*self._as_given, *self._real))
        named = next((found for given in self._as_given if (found := _below(given, written)) is not None), parts)
        for name in (*parts, *named):
            if self.is_secret(name) or _holds_remote(parts):
                raise ToolFailed(f"{name} usually holds secrets and is closed to tools. Go on without it.")
        shown = "/".join(parts) or "." if base == self._real[0] else real
        return Place(base, parts, shown, straight)

    def is_secret(self, name: str) -> bool:
        """Whether a file or directory of that name is refused."""
        folded = name.casefold().rstrip(". ") or name
        if any(fnmatchcase(folded, pattern) for pattern in self._open_names):
            return False
        return any(fnmatchcase(folded, pattern) for pattern in SECRET_NAMES)

    @contextmanager
    def folder(self, place: Place, parts: tuple[str, ...], *, create: bool = False) -> Generator[Folder]:
        """The directory at `parts` below the place's base, opened name by name. Raises `ToolFailed`."""
        with (
            _told(place),
            opened(place.base, hold_open=self._hold_open) as base,
            _descend(base, parts, create) as folder,
        ):
            yield folder

    def read(self, place: Place) -> tuple[bytes, int]:
        """The first `MAX_READ_BYTES` of a regular file, and its size in bytes."""
        if not place.parts:
            raise ToolFailed(f"{place.shown} is a folder. List it with file_list.")
        with self.folder(place, place.parts[:-1]) as folder:
            return read_in(folder, place.parts[-1])

    def write(self, place: Place, data: bytes) -> bool:
        """Replace or make a file, with its parent folders; whether it was there before."""
        if not place.parts:
            raise ToolFailed("The path is a folder. Give the path of a file.")
        if not place.is_straight:
            raise ToolFailed("The path goes through a link, and links are not written through. Use the real path.")
        if any(name.casefold() in HISTORY_NAMES for name in place.parts):
            raise ToolFailed("Folders of version control are not written by tools. Use another path.")
        name = place.parts[-1]
        with self.folder(place, place.parts[:-1], create=True) as folder:
            try:
                kind = folder.kind(name)
            except FileNotFoundError:
                kind = ""
            if kind not in ("", "file"):
                raise NotRegular(name) if kind != "folder" else IsADirectoryError(name)
            folder.replace_file(name, data)
            return kind == "file"


def read_in(folder: Folder, name: str) -> tuple[bytes, int]:
    """The first `MAX_READ_BYTES` of a regular file in an open folder, and its size. Raises `OSError`."""
    fd = folder.open_file(name)
    with os.fdopen(fd, "rb") as file:
        return file.read(MAX_READ_BYTES), os.fstat(fd).st_size


def _holds_remote(parts: Sequence[str]) -> bool:
    folded = [name.casefold().rstrip(". ") for name in parts]
    return not set(folded[-1:]).isdisjoint(_HISTORY_SECRETS) and not set(folded).isdisjoint(HISTORY_NAMES)


def _below(base: str, path: str) -> tuple[str, ...] | None:
    """The names that lead from a directory down to a path; None when it is not inside. Compares whole names."""
    base, path = os.path.normcase(base), os.path.normpath(path)
    if os.path.normcase(path) == base:
        return ()
    stem = base if base.endswith(os.sep) else base + os.sep
    return tuple(path[len(stem) :].split(os.sep)) if os.path.normcase(path).startswith(stem) else None


@contextmanager
def _descend(folder: Folder, parts: tuple[str, ...], create: bool) -> Generator[Folder]:
    if not parts:
        yield folder
        return
    with folder.below(parts[0], create=create) as next_folder, _descend(next_folder, parts[1:], create) as last:
        yield last


@contextmanager
def _told(place: Place) -> Generator[None]:
    """What the system says of a path, as words for the model."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotThere(f"There is no file or folder {place.shown}.") from error
    except IsADirectoryError as error:
        raise ToolFailed(f"{place.shown} is a folder. List it with file_list.") from error
    except NotADirectoryError as error:
        raise ToolFailed(f"A part of {place.shown} is a file or a link, not a folder.") from error
    except ManyNames as error:
        raise ToolFailed(
            f"{place.shown} is a hard link: the file has other names, which may be outside the workspace, so it is "
            "not read. A copy of it can be read."
        ) from error
    except NotRegular as error:
        raise ToolFailed(f"{place.shown} is not a regular file. Only regular files can be used.") from error
    except PermissionError as error:
        raise ToolFailed(f"The system does not permit access to {place.shown}.") from error
    except OSError as error:
        raise ToolFailed(f"{place.shown} cannot be used: {error.strerror or error}.") from error


class NotThere(ToolFailed):
    """Nothing has this path."""
