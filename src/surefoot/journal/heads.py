"""How long each run of a journal file is known to be, kept beside it: what a damaged log cannot take along.

SQLite ends its write-ahead log at the first frame whose checksum is wrong, and says nothing of those behind it; a log
that is gone is an empty one. A chain of hashes cannot show either, since what is left of it is whole. So the file
`JOURNAL.heads` has a slot for each run, at a place given by the run's number: how many records it has and the hash of
the last one. It is written after each commit, and synced together with the log where an append is to survive the loss
of power. A journal may be ahead of its heads, by the commit at which a process died; it is never behind.

After a loss of power the system may have kept a slot and dropped the log that it tells of. So a slot names the boot in
which it was written: in another one only what was synced counts. Where boots cannot be told apart, all of it counts.

A slot is written in one piece, lies in one sector, and has a checksum. Each run has one driver, so each slot has one
writer, and slots need no lock.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from surefoot.journal.codec import genesis

SLOT_BYTES = 128

_MOST_RUNS = 100_000_000
_SALT = crc32(b"surefoot heads 1")
_KEY_BYTES = 16
_NAME_BYTES = 52
_body = Struct(f">{_KEY_BYTES}s8sQQ32s{_NAME_BYTES}s")
_checked = Struct(f">I{_body.size}s")
_BLANK = bytes(SLOT_BYTES)
_NO_BOOT = bytes(8)
_BINARY = getattr(os, "O_BINARY", 0)


class Head(NamedTuple):
    """Where a run ended: its first `seq` records were there, and `hash` is that of the last of them.

    The first `synced` of them were on the disk itself. `name` is the run's id, cut when it is long, `key` tells it from
    all others, and `boot` the boot of the machine in which this was written.
    """

    key: bytes
    seq: int
    hash: bytes
    synced: int = 0
    name: str = ""
    boot: bytes = _NO_BOOT

    @property
    def least(self) -> int:
        """How many records the run must have."""
        is_now = _NO_BOOT in (self.boot, boot_now()) or self.boot == boot_now()
        return self.seq if is_now else self.synced


HeadRow = tuple[bytes, int, bytes, int, str, bytes]
"""A `Head` by its place in the row, which costs less to make."""


class DamagedHead(ValueError):
    """A slot was altered or torn."""


class Heads:
    """The heads file of a journal, which has the mode of the journal file.

    Who only reads goes without it where it is not there, or where it cannot be read (`unreadable` says why). Raises
    `OSError`; `DamagedHead` for a slot that cannot be believed.
    """

    def __init__(self, journal: Path, *, may_write: bool, boot: bytes = b"") -> None:
        self.path = heads_of(journal)
        self.unreadable: OSError | None = None
        self._boot = boot or boot_now()
        self._file: int | None = None
        try:
            if not may_write:
                self._file = os.open(self.path, os.O_RDONLY | _BINARY)
                return
            try:
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
            except FileExistsError:
                self._file = os.open(self.path, os.O_RDWR | _BINARY)
                return
            # readers of the journal are to be able to prove what they read
            if hasattr(os, "fchmod") and journal.exists():
                os.fchmod(self._file, stat.S_IMODE(journal.stat().st_mode))
        except OSError as error:  # whoever may read the journal reads it, if need be without this proof
            if may_write:
                raise
            self.unreadable = None if isinstance(error, FileNotFoundError) else error

    def __len__(self) -> int:
        """How many slots there are, a cut one too."""
        return 0 if self._file is None else -(-os.fstat(self._file).st_size // SLOT_BYTES)

    def get(self, number: int) -> Head | None:
        """The head of the run of that number, None where none was written."""
        if self._file is None or not 0 < number <= len(self):
            return None
        os.lseek(self._file, (number - 1) * SLOT_BYTES, os.SEEK_SET)
        return _unpacked(os.read(self._file, SLOT_BYTES))

    def put(self, number: int, head: HeadRow) -> None:
        """Write the head of a run, as of this boot."""
        if self._file is None or not 0 < number <= _MOST_RUNS:  # a damaged file may give any number
            raise OSError(f"{self.path}: there can be no slot for run number {number}")
        key, seq, hash_, synced, name, _ = head
        body = _body.pack(key, self._boot, synced, seq, hash_, name.encode())
        slot = _checked.pack(crc32(body, _SALT), body)
        if _write_at(self._file, slot, (number - 1) * SLOT_BYTES) != SLOT_BYTES:
            raise OSError(f"{self.path}: a slot could not be written whole")

    def all(self) -> Iterator[tuple[int, Head | None]]:
        """The slots with the numbers of their runs; None for one that is damaged. Blank ones are left out."""
        if self._file is None:
            return
        data = self.path.read_bytes()
        for at in range(0, len(data), SLOT_BYTES):
            try:
                head = _unpacked(data[at : at + SLOT_BYTES])
            except DamagedHead:
                yield at // SLOT_BYTES + 1, None
            else:
                if head is not None:
                    yield at // SLOT_BYTES + 1, head

    def claim(self, run_id: str, last: int) -> int:
        """A number for a new run, after `last`. The number of a run that is lost is not given again.

        The run has a head from now on, so that one that has none is known to have been robbed of it.
        """
        number = max(len(self), last)
        while number > last and self._is_free(number):
            number -= 1
        self.put(number + 1, head_of(run_id, 0, genesis(run_id), 0))
        return number + 1

    def sync(self) -> None:
        """Have all of it on the disk itself. Blocks."""
        if self._file is not None:
            sync_descriptor(self._file)

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _is_free(self, number: int) -> bool:
        try:
            head = self.get(number)
        except DamagedHead:
            return False
        return head is None or head.seq == 0


def heads_of(journal: Path) -> Path:
    """Where the heads of a journal are."""
    return journal.with_name(f"{journal.name}.heads")


def key_of(run_id: str) -> bytes:
    """What a slot knows a run by."""
    return genesis(run_id)[:_KEY_BYTES]


def head_of(run_id: str, seq: int, hash_: bytes, synced: int) -> Head:
    """The head of the run of that id, with as much of the id as a slot holds."""
    return Head(key_of(run_id), seq, hash_, synced, run_id.encode()[:_NAME_BYTES].decode(errors="ignore"))


@cache
def boot_now() -> bytes:
    """This boot of the machine; nothing where the system does not tell."""
    try:
        return sha256(Path("/proc/sys/kernel/random/boot_id").read_bytes()).digest()[:8]
    except OSError:
        return _NO_BOOT


def sync_descriptor(descriptor: int) -> None:
    """Have all that was written to an open file on the disk itself. Blocks. Raises `OSError`."""
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415 - not on every platform

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # `fsync` stops short of the disk there
    elif hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)


def _seek_and_write(descriptor: int, data: bytes, at: int) -> int:
    os.lseek(descriptor, at, os.SEEK_SET)
    return os.write(descriptor, data)


_write_at = getattr(os, "pwrite", _seek_and_write)  # Windows has none


def _unpacked(slot: bytes) -> Head | None:
    if not slot or slot == _BLANK:
        return None
    if len(slot) != SLOT_BYTES:
        raise DamagedHead("its slot was cut")
    told, body = _checked.unpack(slot)
    if crc32(body, _SALT) != told:
        raise DamagedHead("its slot was altered")
    key, boot, synced, seq, hash_, name = _body.unpack(body)
    return Head(key, seq, hash_, synced, name.rstrip(b"\0").decode(errors="replace"), boot)
