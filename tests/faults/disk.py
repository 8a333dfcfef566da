"""A small disk of its own, in memory, that can be filled and freed. Only Linux has it, and only root may make it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from work import note

_PIECE = bytes(65_536)
_MOUNT_S = 60

Harm = tuple[float, str, float]
"""After how many seconds what begins, and how long it lasts."""


class Disk:
    """A disk of so many megabytes at `folder`. `close` it. Raises `OSError` where none can be made."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        folder.mkdir()
        self.folder, self._filler = folder, folder / "filler"
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)],
            capture_output=True,
            check=False,
            timeout=_MOUNT_S,
        )
        if made.returncode:
            raise OSError(made.stderr.decode().strip())

    def fill(self) -> None:
        """Leave no room for anything."""
        with suppress(OSError), self._filler.open("ab", buffering=0) as filler:
            while filler.write(_PIECE):
                pass

    def free(self) -> None:
        """Make room again."""
        self._filler.unlink()

    def suffer(self, harms: Sequence[Harm]) -> None:
        """Be full as often and as long as that says; to be a process of its own."""
        for after_s, harm, lasts_s in harms:
            time.sleep(after_s)
            note(what="harm", harm=harm)
            self.fill()
            note(what="away", harm=harm)
            time.sleep(lasts_s)
            self.free()
            note(what="back")

    def close(self) -> None:
        """Give it up, with all that is on it."""
        subprocess.run(["umount", "-l", str(self.folder)], check=True, timeout=_MOUNT_S)
