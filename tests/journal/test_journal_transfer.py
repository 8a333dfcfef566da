"""Runs from one journal to another: by copies that are cut anywhere, and by lines that may be torn."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from journal_cases import KINDS, REPLY, TOOLS, Made, add, alter, started, stored, story, write

from surefoot.journal import transfer
from surefoot.journal.memory import MemoryJournal
from surefoot.journal.sqlite import SqliteJournal
from surefoot.journal.transfer import copy, lines_of, pieces_in, take_in
from surefoot.journal.upkeep import faults_of, verify
from surefoot.types.errors import JournalError
from surefoot.types.events import CallEnded, CallStarted, Event, RunEnded
from surefoot.types.outcomes import Completed
from surefoot.types.ports import JournalStore
from surefoot.types.tools import Catalogue, ToolResult

pytestmark = pytest.mark.anyio

RUNS = 1_000
CATALOGUES = [TOOLS, *(Catalogue(TOOLS.tools[:number]) for number in range(2))]


async def filled(store: JournalStore, runs: int, dice: random.Random) -> list[str]:
    """Random runs: some share records with others, some refer to bytes, some of which are shared, too."""
    ids: list[str] = []
    for number in range(runs):
        run_id = f"{dice.randrange(10**6):06}-{number}"
        shares = bool(ids) and dice.random() < 0.3
        if shares:
            parent = dice.choice(ids)
            await store.fork(parent, dice.randint(1, (await store.summary(parent)).events), run_id)
        run = await store.open(run_id, create=not shares)
        events: list[Event] = [] if shares else [replace(started(run_id, dice.choice(CATALOGUES)), agent="clerk")]
        for call in range(dice.randrange(12)):
            digest = await run.put_blob(f"bytes {dice.randrange(60)}".encode()) if dice.random() < 0.3 else None
            result = ToolResult(f"谁 {call}", blob=digest)
            events += [REPLY, CallStarted(f"c{call}"), CallEnded(f"c{call}", result)]
            if dice.random() < 0.3:
                await run.append(events, "soon")
                events = []
        has_ended = dice.random() < 0.7
        await run.append([*events, RunEnded(Completed("x"))] if has_ended or not events else events, "written")
        await run.release("" if has_ended else dice.choice(("", "approval")))
        ids.append(run_id)
    return ids


async def same(source: JournalStore, target: JournalStore) -> None:
    """Raise `AssertionError` unless all runs of one are in the other, with the same hashes, forks and bytes."""
    ids = await source.beginning("", 10**6)
    assert await target.beginning("", 10**6) == ids
    for run_id in ids:
        (here, _), (there, wrong) = [await one.read_recorded(run_id) for one in (source, target)]
        assert (there, wrong) == (here, "")
        assert await target.rows(run_id) == await source.rows(run_id)
        assert await target.origin(run_id) == await source.origin(run_id)
        for record in here:
            if isinstance(record.event, CallEnded) and (digest := record.event.result.blob) is not None:
                assert await target.get_blob(digest) == await source.get_blob(digest)
        assert (await target.summary(run_id)).standing == (await source.summary(run_id)).standing
    listed = [[one.run_id for one in (await store.list(limit=10**6)).runs] for store in (source, target)]
    assert listed[0] == listed[1]


async def copied(source: JournalStore, target: JournalStore, since: float | None = None) -> list[transfer.Moved]:
    return [moved async for moved in copy(source, target, since)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("runs", [20, pytest.param(RUNS, marks=pytest.mark.scale)])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_copy_there_and_back_is_the_same(kind: str, runs: int, made: Made, tmp_path: Path) -> None:
    dice = random.Random(7)  # noqa: S311  # no secret
    first, middle, last = SqliteJournal(tmp_path / "first.db"), made(kind), SqliteJournal(tmp_path / "last.db")
    await filled(first, runs, dice)
    for source, target in ((first, middle), (middle, last)):
        told = await copied(source, target)
        assert [one.fault for one in told] == [""] * runs
        await same(source, target)
    assert await last.claim(["clerk"], 10, 30) == []
    assert [one for one in await copied(first, last) if one.records > 1] == []  # once more, there is nothing to do
    await first.aclose()
    await last.aclose()
    assert verify(tmp_path / "last.db") == []
    for run_id in dice.sample(await middle.beginning("", 10**6), 20):
        assert await faults_of(middle, run_id, replays=False) == []


class Cut(Exception):
    """The process is gone."""


@pytest.mark.parametrize("kind", KINDS)
async def test_a_copy_that_is_cut_anywhere_goes_on_where_it_was(kind: str, made: Made) -> None:
    dice = random.Random(kind)  # noqa: S311  # no secret
    source, target = MemoryJournal(), made(kind)
    ids = await filled(source, 25, dice)
    for _ in range(12):
        left = dice.randrange(30)

        async def adopt(*piece: object, left: list[int] = [left]) -> None:  # noqa: B006  # it counts down
            if left[0] == 0:
                raise Cut
            left[0] -= 1
            await target.adopt(*piece)  # pyright: ignore[reportArgumentType]  # what it was given

        try:
            async for _ in copy(source, Around(target, adopt)):  # pyright: ignore[reportArgumentType]  # a store but for that
                pass
        except Cut:
            pass
        await add(source, dice.choice(ids), CallStarted("more"), standing="approval")  # meanwhile the runs go on
    assert [one.fault for one in await copied(source, target)] == [""] * len(ids)
    await same(source, target)


class Around:
    """A store that is another one, but for what takes records in."""

    def __init__(self, store: JournalStore, adopt: object) -> None:
        self._store = store
        self.adopt = adopt

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


async def test_pieces_of_long_runs_follow_on_each_other(made: Made) -> None:
    source, target = MemoryJournal(), made("sqlite")
    await write(source, "long", [started(), *(CallStarted(f"c{at}") for at in range(transfer.PIECE * 2 + 3))])
    await copied(source, target)
    await same(source, target)
    lines = [line async for line in lines_of(source, ["long"])]
    again = MemoryJournal()
    assert [moved.records async for moved in take_in(again, lines)] == [transfer.PIECE * 2 + 4]
    await same(source, again)


async def test_only_what_has_changed_since_and_what_that_needs(made: Made) -> None:
    source, target = MemoryJournal(), made("sqlite")
    for run_id in ("old", "parent"):
        await add(source, run_id, started(run_id), at=10.0, create=True)
    await source.fork("parent", 1, "new")
    await add(source, "new", *story()[5:], at=1000.0)
    assert {one.run_id for one in await copied(source, target, since=500.0)} == {"new"}
    assert await target.beginning("") == ["new", "parent"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_run_that_has_gone_on_in_the_target_does_not_stand_still_again(kind: str, made: Made) -> None:
    source, target = MemoryJournal(), made(kind)
    await write(source, "r1", story()[:4], "approval")
    await copied(source, target)
    await add(target, "r1", CallStarted("more"), standing="ready")
    lines = [line async for line in lines_of(source, ["r1"])]
    await copied(source, target)
    assert [moved.records async for moved in take_in(target, lines)]
    assert (await target.summary("r1")).standing == "ready"


async def test_a_damaged_run_is_told_and_the_others_are_copied(path: Path, made: Made) -> None:
    target, source = made("memory"), SqliteJournal(path)
    await stored(path, "r1", "r2", "r3")
    assert alter(path, "UPDATE event SET body=? WHERE run=2 AND seq=3", b"{}") == 1
    told = {one.run_id: one.fault for one in await copied(source, target)}
    assert told.pop("r2").startswith("run r2, record 3: its hash does not match")
    assert told == {"r1": "", "r3": ""}
    assert await target.beginning("") == ["r1", "r3"]
    await source.aclose()


async def test_a_run_of_that_id_that_is_another_one_is_left_alone(made: Made) -> None:
    source, target = MemoryJournal(), made("sqlite")
    await write(source, "r1", story())
    await write(target, "r1", [*story()[:3], CallStarted("other")])
    (told,) = await copied(source, target)
    assert "run r1 is here already and is not the same" in told.fault
    await write(target, "longer", story("longer"))
    await write(source, "longer", story("longer")[:2])
    assert "is not the same" in {one.run_id: one for one in await copied(source, target)}["longer"].fault


@pytest.fixture
async def lines() -> list[str]:
    source = MemoryJournal()
    run = await source.open("r1", create=True)
    digest = await run.put_blob(b"whole")
    await run.append([*story()[:4], CallEnded("c1", ToolResult("cut", blob=digest)), *story()[5:]])
    await run.release()
    await source.fork("r1", 3, "f")
    await add(source, "f", *story()[3:5], standing="in_doubt")
    return [line async for line in lines_of(source, ["f", "r1"])]


async def test_lines_hold_runs_with_those_whose_records_they_share_once(lines: list[str], made: Made) -> None:
    assert [json.loads(line)["run"] for line in lines if '"began"' in line] == ["r1", "f"]
    target = made("sqlite")
    assert [moved.run_id async for moved in take_in(target, lines)] == ["r1", "f"]
    assert [moved.run_id async for moved in take_in(target, lines)] == ["r1", "f"]
    assert (await target.summary("f")).status == "paused"
    again = [line async for line in lines_of(target, ["f"])]
    assert again == lines
    assert (await MemoryJournal(lines).read_recorded("f"))[0] == (await target.read_recorded("f"))[0]


async def test_torn_lines_are_named(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    for at in random.Random(1).sample(range(1, len(text) - 2), 150):  # noqa: S311  # as above
        torn = text[:at].split("\n")
        torn = torn if torn[-1] else torn[:-1]
        with pytest.raises(JournalError, match=rf"^line {len(torn)} "):
            list(pieces_in(torn))


async def test_altered_lines_are_named(lines: list[str]) -> None:
    for number, line in enumerate(lines, 1):
        for altered in alterations(line):
            with pytest.raises(JournalError, match=r"^line \d+ cannot be imported: ") as told:
                list(pieces_in([*lines[: number - 1], altered, *lines[number:]]))
            assert number <= int(re.findall(r"\d+", str(told.value))[0])
        with pytest.raises(JournalError, match=r"^line \d+ "):
            list(pieces_in([*lines[: number - 1], *lines[number:]]))
        if number > 1 and '"blob"' not in line:
            with pytest.raises(JournalError, match=r"^line \d+ "):
                list(pieces_in([*lines[:number], line, *lines[number:]]))


def alterations(line: str) -> Sequence[str]:
    told = json.loads(line)
    other: dict[str, object] = {"hash": "00" * 32, "body": "{}", "at": 1.5, "seq": 99, "form": 99, "records": 99}
    other |= {"runs": 9, "data": "eA==", "fork": 2, "parent": "other"}
    return [json.dumps({**told, name: value}) for name, value in other.items() if name in told]


async def test_a_later_form_of_lines_is_refused_by_name(lines: list[str]) -> None:
    later = json.dumps({**json.loads(lines[0]), "form": 2})
    with pytest.raises(JournalError, match="a later surefoot wrote it"):
        list(pieces_in([later, *lines[1:]]))
    with pytest.raises(JournalError, match="surefoot export RUN --form journal"):
        list(pieces_in(lines[1:]))
    with pytest.raises(JournalError, match="nothing to import"):
        list(pieces_in([]))


@pytest.mark.parametrize("kind", KINDS)
async def test_a_run_that_goes_on_while_it_is_exported_is_given_as_far_as_its_line_says(kind: str, made: Made) -> None:
    source, target = made(kind), MemoryJournal()
    run = await source.open("r1", create=True)
    await run.append([CallStarted("c1", number) for number in range(transfer.PIECE + 1)], "written")
    lines: list[str] = []
    async for line in lines_of(source, ["r1"]):
        lines.append(line)
        if len(lines) == 2:
            await run.append([CallStarted("c2")], "written")
    await run.release()
    assert [moved.records async for moved in take_in(target, lines)] == [transfer.PIECE + 1]
