"""The last words of a server's process: its standard error, kept off our own, for when it fails."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

_KEPT_BYTES = 4_096


class LastWords:
    """What a process wrote to standard error last. A thread reads it, because not every event loop can read a pipe."""

    def __init__(self) -> None:
        self._kept = b""

    @property
    def text(self) -> str:
        """At most 4 KiB, decoded as UTF-8 as far as it goes."""
        return self._kept.decode(errors="replace").strip()

    @contextmanager
    def pipe(self) -> Generator[TextIO]:
        """What the process is to get as its standard error. Our own end is closed with the context."""
        reading, writing = os.pipe()
        threading.Thread(target=self._read, args=(reading,), daemon=True, name="mcp stderr").start()
        with os.fdopen(writing, "w") as end:
            yield end

    def _read(self, reading: int) -> None:
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            while piece := pipe.read(_KEPT_BYTES):
                self._kept = (self._kept + piece)[-_KEPT_BYTES:]
