"""Where the journals of this room's tests are."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from surefoot.journal.sqlite import SqliteJournal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
async def journal(path: Path) -> AsyncIterator[SqliteJournal]:
    one = SqliteJournal(path)
    yield one
    await one.aclose()
