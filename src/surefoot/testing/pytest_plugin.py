"""For pytest: the fixture `cassette`, and the option that records. Loaded by pytest wherever surefoot is installed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Generator, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pluggy import Result

    from surefoot.testing.cassette import Cassette

_OPTION = "--surefoot-record"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    told = "record the cassettes of the chosen tests anew, on their real models and tools"
    parser.getgroup("surefoot").addoption(_OPTION, action="store_true", help=told)


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """The test's cassette, a file in `cassettes/` beside it: played, or with `--surefoot-record` recorded."""
    from surefoot.testing.cassette import Cassette  # noqa: PLC0415  # most sessions of pytest have no cassette

    test: pytest.Item = request.node
    name = f"{test.path.stem}.{test.nodeid.partition('::')[2].replace('::', '.')}"
    remedy = f"record it again: pytest {_OPTION} {shlex.quote(test.nodeid)}"
    path = test.path.parent / "cassettes" / f"{_file_name(name)}.journal"
    with Cassette(path, record=bool(request.config.getoption(_OPTION)), remedy=remedy) as made:
        test.stash[_CASSETTE] = made
        yield made


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Result[object]]:
    """A test that caught a `Miss` fails all the same."""
    outcome = yield
    made = item.stash.get(_CASSETTE, None)
    if made is not None and made.missed is not None and outcome.excinfo is None:
        outcome.force_exception(made.missed)


_CASSETTE: pytest.StashKey[Cassette] = pytest.StashKey()


def _file_name(test: str) -> str:
    """The name of a test as one of a file; what had to be replaced is told apart by a few digits."""
    plain = re.sub(r"[^\w.,=+\[\]-]", "_", test)
    is_long = len(plain.encode()) > _LONGEST
    if plain == test and not is_long:
        return plain
    readable = plain.encode()[:_LONGEST].decode(errors="ignore") if is_long else plain
    return f"{readable.rstrip('_')}-{sha256(test.encode()).hexdigest()[:8]}"


_LONGEST = 160
