"""Where the journals of this room's tests are."""

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from journal_cases import KINDS, Made

from surefoot.journal.memory import MemoryJournal, store_of
from surefoot.journal.sqlite import SqliteJournal
from surefoot.types.errors import RunBusy
from surefoot.types.ports import JournalStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
async def journal(path: Path) -> AsyncIterator[SqliteJournal]:
    one = SqliteJournal(path)
    yield one
    await one.aclose()


@pytest.fixture
async def made(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Made]:
    """Makes stores of a kind, each empty but for the further ones in PostgreSQL, and closes them."""
    there: list[JournalStore] = []

    def one(kind: str) -> JournalStore:
        lines: list[str] = []
        match kind:
            case "memory":
                store: JournalStore = MemoryJournal()
            case "kept":
                store = MemoryJournal(keep=lines.extend)
            case "sqlite":
                store = SqliteJournal(tmp_path / f"runs-{len(there)}.db")
            case _:
                store = store_of(request.getfixturevalue("postgres_url"))
        there.append(store)
        return store

    yield one
    for store in there:
        await store.aclose()


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, made: Made) -> JournalStore:
    """One of each kind."""
    return made(request.param)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def another(request: pytest.FixtureRequest, path: Path) -> AsyncIterator[Callable[[], JournalStore]]:
    """Makes a store of the same journal with each call, as another process would, and closes them."""
    there: list[JournalStore] = []
    place = path if request.param == "sqlite" else request.getfixturevalue("postgres_url")

    def one() -> JournalStore:
        there.append(store_of(place))
        return there[-1]

    yield one
    for store in reversed(there):
        with suppress(RunBusy):  # what others have taken
            await store.aclose()


@pytest.fixture
def two(another: Callable[[], JournalStore]) -> tuple[JournalStore, JournalStore]:
    """Two stores of one journal."""
    return another(), another()
