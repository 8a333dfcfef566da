"""Temporal's development server, for the tests of this room."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from dev_server import Server


@pytest.fixture(scope="session")
def temporal_server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="surefoot-temporal-") as folder:
        server = Server(Path(folder))
        yield server
        server.kill()
