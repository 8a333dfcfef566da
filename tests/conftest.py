"""What all tests share."""

import pytest


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What tests learn about models stays out of the user's cache."""
    monkeypatch.setenv("SUREFOOT_TRAITS_FILE", "")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
