"""What all tests share."""

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("plan_kit")  # what it asserts is told as in a test

settings.register_profile("tests", deadline=None)  # how long an example takes says how busy the machine is
settings.load_profile("tests")

LIMITS_S = {"slow": 600, "real_model": 3700}
"""What a test may take that says by its mark that it needs longer; for all others pyproject.toml has the limit."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests that are marked as slow their time, unless they name one of their own."""
    for item in items:
        longer = [limit_s for mark, limit_s in LIMITS_S.items() if item.get_closest_marker(mark)]
        if longer and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(max(longer)))


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What tests learn about models stays out of the user's cache."""
    monkeypatch.setenv("SUREFOOT_TRAITS_FILE", "")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
