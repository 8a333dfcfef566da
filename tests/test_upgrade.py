"""Journals of released versions go on in this one: read, replayed, resumed, answered and forked.

`tests/golden/runs.py` wrote them with the code of each release.
"""

import shutil
from pathlib import Path

import pytest

from golden import runs
from surefoot import Agent, LoopConfig, Run, SqliteJournal
from surefoot.core.loop.fold import fold
from surefoot.core.loop.replay import replay
from surefoot.core.parse.objects import read
from surefoot.core.parse.pythonic import LiteralReader
from surefoot.core.parse.scan import NotJsonError, decode
from surefoot.core.view.shape import shape_faults
from surefoot.journal import upkeep
from surefoot.testing.models import Scripted

GOLDEN = Path(__file__).parent / "golden"
FORMER = sorted(GOLDEN.glob("*.db"))
LEFT = {
    "completed": ("completed", 14),
    "forked": ("completed", 12),
    "mono": ("completed", 10),
    "plan": ("completed", 17),
    "stopped": ("stopped", 9),
    "asks": ("paused", 8),
    "reading": ("interrupted", 6),
    "sending": ("paused", 4),
}
"""Of each run where it was left, and its records."""
pytestmark = pytest.mark.anyio


@pytest.fixture(params=FORMER, ids=lambda path: path.name)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    runs.done.clear()
    return Path(shutil.copy(request.param, tmp_path / "runs.db"))


def agent(path: Path, *replies: Scripted, **how: object) -> Agent:
    return runs.agent(SqliteJournal(path), replies, **how)


def bytes_of(path: Path) -> bytes:
    return path.read_bytes()


def test_there_are_such_journals() -> None:
    assert [path.name for path in FORMER] == ["0.1.0.db"]


async def test_it_is_read_and_replayed_as_it_is(path: Path) -> None:
    before = bytes_of(path)
    store = SqliteJournal(path, read_only=True)
    read = {
        one.run_id: [record.event for record in (await store.read_recorded(one.run_id))[0]]
        for one in await store.runs()
    }
    assert {run_id: (Run.of(fold(events)).status, len(events)) for run_id, events in read.items()} == LEFT
    assert [replay(events).differs_at for events in read.values()] == [None] * len(LEFT)
    await store.aclose()
    assert upkeep.verify(path) == []
    assert bytes_of(path) == before


def test_what_is_on_record_of_an_answer_or_call_that_cannot_be_read_is_told_in_the_same_words() -> None:
    """A replay reads replies anew and compares, so other words would make every former run with such a reply differ."""
    unfit = [shape_faults(answer, {"type": "object"}) for answer in ("Rome.", "171")]
    assert unfit[0].startswith("it is no JSON: ")
    assert unfit[1] == "it: must be object, not integer"
    for reader in (decode, read):
        with pytest.raises(NotJsonError, match=r"^NaN is no JSON number"):
            reader("[NaN]", 0)
    with pytest.raises(NotJsonError, match=r"^0x_ is no number"):
        LiteralReader("0x_", 0).value()


async def test_its_runs_go_on_and_nothing_is_done_twice(path: Path) -> None:
    async with agent(path, "171") as reader:
        assert (await reader.resume("completed")).answer == "171"
        assert (await reader.resume("reading")).answer == "171"
    async with agent(path, "171") as more:
        assert (await more.resume("stopped", config=LoopConfig())).answer == "171"
    assert runs.done == []
    async with agent(path, "Sent.") as sender:
        await sender.settle("sending", "1.0", "not_done", by="Ada")
        assert (await sender.resume("sending")).answer == "Sent."
    async with agent(path, "Paid.") as payer:
        await payer.approve("asks", "2.0", by="Ada")
        assert (await payer.resume("asks")).answer == "Paid."
    assert runs.done == ["Ann: 171", "GB29NWBK60161331926819: 900.0"]
    assert upkeep.verify(path) == []


@pytest.mark.parametrize(
    ("parent", "at", "replies"), [("completed", 7, ["Both."]), ("forked", 12, []), ("plan", 4, ["Ann has it."])]
)
async def test_its_runs_are_forked(path: Path, parent: str, at: int, replies: list[Scripted]) -> None:
    async with agent(path, *replies, reasoner="plan" if parent == "plan" else "react") as other:
        run = await other.fork(parent, at, new_id="new")
    assert (run.status, run.answer) == ("completed", replies[0] if replies else "Both have 171.")
    assert upkeep.verify(path) == []
