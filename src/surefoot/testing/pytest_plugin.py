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
    remedy = f"record it with: pytest {_OPTION} {shlex.quote(test.nodeid)}"
    path = test.path.parent / "cassettes" / f"{_file_name(test.path.stem, test.nodeid.partition('::')[2])}.journal"
    made = Cassette(path, record=bool(request.config.getoption(_OPTION)), remedy=remedy)
    test.stash[_CASSETTE] = made
    yield made
    called = test.stash.get(_CALLED, None)
    try:
        if called is not None and called.passed:
            made.check()
    finally:
        made.close(keep=called is not None and not called.failed)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Result[pytest.TestReport]]:
    """A test that caught a `Miss` fails all the same, also when it then skips itself or is expected to fail."""
    outcome = yield
    made = item.stash.get(_CASSETTE, None)
    if made is None:
        return
    report = outcome.get_result()
    if made.missed is not None and (report.skipped or (call.when == "call" and report.passed)):
        report.outcome = "failed"
        report.longrepr = str(made.missed)
        vars(report).pop("wasxfail", None)
    if call.when == "call" or (call.when == "setup" and report.skipped):
        item.stash[_CALLED] = report


_CASSETTE: pytest.StashKey[Cassette] = pytest.StashKey()
_CALLED: pytest.StashKey[pytest.TestReport] = pytest.StashKey()


def _file_name(module: str, test: str) -> str:
    """The name of a test as one of a file, which is no other test's.

    What had to be replaced is told apart by a few digits, and so are capitals: some file systems do not.
    """
    path, bracket, values = test.partition("[")
    name = f"{module}.{path.replace('::', '.')}{bracket}{values}"
    plain = re.sub(r"[^\w.,=+\[\]-]", "_", name)
    is_long = len(plain.encode()) > _LONGEST
    if plain == name.lower() and plain.isascii() and "." not in module and not is_long:
        return plain
    readable = plain.encode()[:_LONGEST].decode(errors="ignore") if is_long else plain
    return f"{readable.rstrip('_')}-{sha256(f'{module}::{test}'.encode()).hexdigest()[:8]}"


_LONGEST = 160
