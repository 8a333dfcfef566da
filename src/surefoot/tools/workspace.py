"""Which files an agent may touch: those whose real path is inside its workspace, and that hold no secrets.

Each step opens one name inside the directory that is already open and never follows a link, so that nobody can swap a
directory for a link between the check and the use. Where the system cannot do so (`os.supports_dir_fd`, e.g. Windows),
a step is a path that is checked right before it is used; a swap at that very moment is not noticed. A file with several
names (hard links) is not read: one of them may be outside. Source: spec/primitives.md, 3.7.
"""

# What is checked are the strings that the system gets, inside an open directory; a Path would clean them on its own.
# ruff: noqa: PTH100, PTH111, PTH112, PTH116, PTH118, PTH206

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase

from surefoot.tools.call import ToolFailed
from surefoot.types.errors import ConfigError

MAX_READ_BYTES = 1024 * 1024  # how much of one file is read
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
LONGEST_PATH = 4096
DEEPEST_PATH = 64  # folders inside folders that are entered

SECRET_NAMES = (
    *(".env*", "*.pem", "*.key", "id_rsa*", ".netrc", ".ssh", ".aws", ".gnupg"),
    *("id_dsa*", "id_ecdsa*", "id_ed25519*"),  # the same as the third, of later years
    *(".npmrc", ".pypirc", ".pgpass", ".git-credentials", ".kube", ".docker", "credentials", "credentials.*"),
    ".surefoot",  # the journal, and recipes that name files to run
)
"""Names that usually hold secrets, whatever their case; a directory stands for all below it."""
HISTORY_NAMES = (".git", ".hg", ".svn", ".jj")
"""Folders of version control: never searched, and never written, since their hooks are run by others."""
_HISTORY_SECRETS = ("config", "config.worktree", "hgrc")  # files below them that may hold the password of a remote

OUTSIDE = "The path is outside the workspace. Give a path relative to the workspace, without leading slash or dots."

HAS_DIR_FD = {os.open, os.stat, os.mkdir, os.unlink, os.rename} <= os.supports_dir_fd and os.scandir in os.supports_fd
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0) | _NO_LINK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | _NO_LINK


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory, links not followed. `size` is in bytes."""

    name: str
    kind: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class Folder:
    """An open directory; `path` is its real path, used only where `fd` is None. Methods raise `OSError`."""

    path: str
    fd: int | None

    @contextmanager
    def below(self, name: str, *, create: bool = False) -> Generator[Folder]:
        """The directory of that name in this one. `create` makes it when it is not there."""
        if create:
            with suppress(FileExistsError):
                os.mkdir(self._name(name), dir_fd=self.fd)
        path = os.path.join(self.path, name)
        if self.fd is None:
            if not stat.S_ISDIR(os.stat(self._name(name), follow_symlinks=False).st_mode):
                raise NotADirectoryError(path)
            yield Folder(path, None)
            return
        fd = os.open(name, _DIRECTORY, dir_fd=self.fd)
        with _closed_after(fd):
            yield Folder(path, fd)

    def kind(self, name: str) -> str:
        return _kind(os.stat(self._name(name), dir_fd=self.fd, follow_symlinks=False).st_mode)

    def open_file(self, name: str) -> int:
        """A descriptor for reading a regular file; the caller closes it. Raises `NotRegular` for all else.

        Raises `ManyNames` for a file with hard links.
        """
        if self.kind(name) != "file":  # asked first: even opening a device or a pipe may do something
            raise NotRegular(name)
        fd = os.open(self._name(name), _FILE, dir_fd=self.fd)
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1:
            os.close(fd)
            raise ManyNames(name) if stat.S_ISREG(info.st_mode) else NotRegular(name)
        return fd

    def replace_file(self, name: str, data: bytes) -> None:
        """Put a file in place at once: readers see the old or the new, never a part. Keeps the permissions."""
        temporary = f".surefoot-{os.getpid()}-{os.urandom(6).hex()}.tmp"
        fd = os.open(self._name(temporary), _NEW, 0o666, dir_fd=self.fd)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                with suppress(FileNotFoundError):
                    mode = os.stat(self._name(name), dir_fd=self.fd, follow_symlinks=False).st_mode
                    if hasattr(os, "fchmod"):
                        os.fchmod(file.fileno(), stat.S_IMODE(mode) & 0o777)
            os.replace(self._name(temporary), self._name(name), src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except BaseException:
            os.unlink(self._name(temporary), dir_fd=self.fd)
            raise

    def entries(self) -> list[Entry]:
        """What is in it, in the order of names."""
        with os.scandir(self.path if self.fd is None else self.fd) as found:
            each: list[tuple[str, os.stat_result]] = []
            for entry in found:
                with suppress(FileNotFoundError):  # it was removed meanwhile
                    each.append((entry.name, entry.stat(follow_symlinks=False)))
        return [Entry(name, _kind(info.st_mode), info.st_size) for name, info in sorted(each)]

    def _name(self, name: str) -> str:
        if self.fd is not None:
            return name
        path = os.path.join(self.path, name)
        if os.path.realpath(path) != os.path.normpath(path):
            raise NotRegular(name)
        return path


class NotRegular(OSError):
    """The name is a link, a device, a pipe or a socket, where a file or a directory was wanted."""


class ManyNames(OSError):
    """The file has more than one name, and where the others are cannot be told."""


@contextmanager
def open_folder(path: str, *, hold_open: bool = HAS_DIR_FD) -> Generator[Folder]:
    """The directory at a real path. `hold_open=False` works by checked paths, as where nothing better is to be had."""
    if not hold_open:
        yield Folder(path, None)
        return
    fd = os.open(path, _DIRECTORY)
    with _closed_after(fd):
        yield Folder(path, fd)


@contextmanager
def _closed_after(fd: int) -> Generator[None]:
    try:
        yield
    finally:
        os.close(fd)


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


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

    `allow_secret_names` opens names (patterns as in a shell) that are refused otherwise. For `hold_open` see
    `open_folder`. Raises `ConfigError` when a root is not a directory. Methods that take a path raise `ToolFailed`.
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
        folded = [name.casefold().rstrip(". ") for name in parts]
        holds_remote = {*folded[-1:]} & {*_HISTORY_SECRETS} and {*folded} & {*HISTORY_NAMES}
        for name in (*parts, *named):
            if self.is_secret(name) or holds_remote:
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
        with _explained(place), ExitStack() as stack:
            folder = stack.enter_context(open_folder(place.base, hold_open=self._hold_open))
            for name in parts:
                folder = stack.enter_context(folder.below(name, create=create))
            yield folder

    def walk(
        self, folder: Folder, above: str, *, deep: bool = True, but: Collection[str] = ()
    ) -> Generator[tuple[Folder, str, Entry]]:
        """What is in a folder, and with `deep` below it: the folder it is in, its path behind `above`, and the entry.

        Without secrets, without what is named as in `but`, and without what is in folders of version control.
        """
        for entry in folder.entries():
            if entry.name.casefold() in but or self.is_secret(entry.name):
                continue
            yield folder, f"{above}{entry.name}", entry
            enters = deep and entry.name.casefold() not in HISTORY_NAMES and above.count("/") < DEEPEST_PATH
            if enters and entry.kind == "folder":
                with suppress(OSError), folder.below(entry.name) as below:  # removed or closed to us meanwhile
                    yield from self.walk(below, f"{above}{entry.name}/", but=but)

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


def _below(base: str, path: str) -> tuple[str, ...] | None:
    """The names that lead from a directory down to a path; None when it is not inside. Compares whole names."""
    base, path = os.path.normcase(base), os.path.normpath(path)
    if os.path.normcase(path) == base:
        return ()
    stem = base if base.endswith(os.sep) else base + os.sep
    return tuple(path[len(stem) :].split(os.sep)) if os.path.normcase(path).startswith(stem) else None


@contextmanager
def _explained(place: Place) -> Generator[None]:
    try:
        yield
    except OSError as error:
        match error:
            case FileNotFoundError():
                raise NotThere(f"No such file or folder: {place.shown}.") from error
            case IsADirectoryError():
                why = f"{place.shown} is a folder. List it with file_list."
            case NotADirectoryError():
                why = f"A part of {place.shown} is a file or a link, not a folder."
            case ManyNames():
                why = (
                    f"{place.shown} is a hard link: the file has other names, which may be outside the workspace, so "
                    "it is not read. A copy of it can be read."
                )
            case NotRegular():
                why = f"{place.shown} is not a regular file. Only regular files can be used."
            case PermissionError():
                why = f"The system does not permit access to {place.shown}."
            case _:
                why = f"{place.shown} cannot be used: {error.strerror or error}."
        raise ToolFailed(why) from error


class NotThere(ToolFailed):
    """Nothing has this path."""
