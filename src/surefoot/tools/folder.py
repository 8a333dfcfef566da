"""A directory held open, through which no name leads outside.

Each step opens one name inside the directory that is already open and never follows a link, so that nobody can swap a
directory for a link between the check and the use. Where the system cannot open names inside an open directory
(`os.supports_dir_fd`, e.g. Windows), a step is a path that is checked to be no link right before it is used; there a
swap at that very moment is not noticed.
"""

# Names are given to an open directory; a Path would join and clean them on its own.
# ruff: noqa: PTH116, PTH118

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

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
        try:
            yield Folder(path, fd)
        finally:
            os.close(fd)

    def kind(self, name: str) -> str:
        """`file`, `folder`, `link` or `other`. Raises `FileNotFoundError`."""
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
                self._keep_mode(file.fileno(), name)
            os.replace(self._name(temporary), self._name(name), src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except BaseException:
            os.unlink(self._name(temporary), dir_fd=self.fd)
            raise

    def entries(self) -> list[Entry]:
        """What is in it, in the order of names."""
        with os.scandir(self.path if self.fd is None else self.fd) as found:
            each = [(entry.name, entry.stat(follow_symlinks=False)) for entry in found]
        return [Entry(name, _kind(info.st_mode), info.st_size) for name, info in sorted(each)]

    def _keep_mode(self, fd: int, name: str) -> None:
        try:
            mode = os.stat(self._name(name), dir_fd=self.fd, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return
        if hasattr(os, "fchmod"):
            os.fchmod(fd, stat.S_IMODE(mode) & 0o777)

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
def opened(path: str, *, hold_open: bool = HAS_DIR_FD) -> Generator[Folder]:
    """The directory at a real path. `hold_open=False` works by checked paths, as where nothing better is to be had."""
    if not hold_open:
        yield Folder(path, None)
        return
    fd = os.open(path, _DIRECTORY)
    try:
        yield Folder(path, fd)
    finally:
        os.close(fd)


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"
