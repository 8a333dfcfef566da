"""Where the journals of this room's tests are."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from surefoot.journal.memory import MemoryJournal, store_of
from surefoot.journal.sqlite import SqliteJournal
from surefoot.types.ports import JournalStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
async def journal(path: Path) -> AsyncIterator[SqliteJournal]:
    one = SqliteJournal(path)
    yield one
    await one.aclose()


@pytest.fixture(params=["memory", "kept", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def store(request: pytest.FixtureRequest, path: Path) -> AsyncIterator[JournalStore]:
    """One of each kind; what a test asks of it each of them promises."""
    lines: list[str] = []
    match request.param:
        case "memory":
            one = MemoryJournal()
        case "kept":
            one = MemoryJournal(keep=lines.extend)
        case "sqlite":
            one = SqliteJournal(path)
        case _:
            one = store_of(request.getfixturevalue("postgres_url"))
    yield one
    await one.aclose()
