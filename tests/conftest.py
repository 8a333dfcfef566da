"""What all tests share."""

import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from servers import PostgresServer

pytest.register_assert_rewrite("plan_kit")  # what it asserts is told as in a test

_TESTS = settings(  # how long an example takes says how busy the machine is
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
settings.register_profile("tests", _TESTS)
settings.register_profile("long", _TESTS, max_examples=2_000)  # `make test-scale`
settings.load_profile("tests")

LIMITS_S = {"slow": 600, "scale": 3600, "real_model": 3700}
"""What a test may take that says by its mark that it needs longer; for all others pyproject.toml has the limit."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests that are marked as slow their time, unless they name one of their own."""
    for item in items:
        longer = [limit_s for mark, limit_s in LIMITS_S.items() if item.get_closest_marker(mark)]
        if longer and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(max(longer)))


_EMPTIED = """
DO $$ BEGIN
    IF to_regclass('surefoot.meta') IS NOT NULL THEN
        TRUNCATE surefoot.run, surefoot.event, surefoot.blob, surefoot.summary, surefoot.label, surefoot.word,
            surefoot.owner, surefoot.side RESTART IDENTITY;
    END IF;
END $$"""


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What tests learn about models stays out of the user's cache."""
    monkeypatch.setenv("SUREFOOT_TRAITS_FILE", "")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def own_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server that is ended with the tests."""
    short = "/tmp"  # noqa: S108  # for the path of a socket
    with tempfile.TemporaryDirectory(prefix="surefoot-", dir=short, ignore_cleanup_errors=True) as folder:
        server = PostgresServer(folder)
        yield server
        server.end()


@pytest.fixture(scope="session")
def postgres_server(request: pytest.FixtureRequest) -> str:
    """The address of a PostgreSQL server: that of $SUREFOOT_TEST_POSTGRES, or of one of the tests' own."""
    return os.environ.get("SUREFOOT_TEST_POSTGRES") or request.getfixturevalue("own_postgres").url


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """The address of a database in which there are no runs."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_server, autocommit=True) as server:
        server.execute(_EMPTIED)
    return postgres_server
