"""Makes what stands beside it importable in the folders below, and a server that most tests speak to."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from server_agents import agents
from server_world import Served, serving

from surefoot import MemoryJournal
from surefoot.types.ports import JournalStore


@pytest.fixture
def store() -> JournalStore:
    return MemoryJournal()


@pytest.fixture
async def served(store: JournalStore) -> AsyncGenerator[Served]:
    """A server of the agents of the tests."""
    async with serving(store, agents(), origins=["https://page.example/"]) as made:
        yield made
