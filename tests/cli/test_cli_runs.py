"""`runs`, `show`, `replay`, and a person's word: `approve`, `settle`, `cancel`."""

import asyncio
import json
import re
import sqlite3
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from cli_world import Command, chat_server, run_id_in, says, texts

from surefoot.agent import Agent
from surefoot.journal.sqlite import SqliteJournal
from surefoot.testing.models import ScriptedModel
from surefoot.testing.models import calls as asks
from surefoot.tools.function import tool
from surefoot.types.events import CallJudged, Event, RunEnded, RunStarted
from surefoot.types.outcomes import Ask, Completed
from surefoot.types.task import Task


def alter(journal: Path, statement: str) -> None:
    db = sqlite3.connect(journal)
    with db:
        db.execute(statement)
    db.close()


def keep(journal: Path, run_id: str, events: list[Event]) -> None:
    """Put a run on record, event by event."""

    async def kept() -> None:
        store = SqliteJournal(journal)
        run = await store.open(run_id, create=True)
        await run.append(events, "written")
        await run.release()
        await store.aclose()

    journal.parent.mkdir(exist_ok=True)
    asyncio.run(kept())


def recorded(write: str = "send") -> list[Event]:
    """The events of a run on a scripted model that calls a tool which is not idempotent, and answers."""

    @tool(name=write)
    async def send(to: str) -> str:
        """Send a letter."""
        return f"sent to {to}"

    events: list[Event] = []
    model = ScriptedModel([asks((write, {"to": "Bob"})), "Sent."])
    agent = Agent(model, tools=[send])
    agent.run_sync("Send it.", run_id="r1", watch=events.append)  # type: ignore[arg-type]  # no signals without `stream`
    return events


SEND = '''
import surefoot

@surefoot.tool
async def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"
'''


def test_runs_lists_the_newest_first(surefoot: Command, finished: str) -> None:
    with chat_server(401) as chat:
        other = run_id_in(surefoot("run", "--model", chat.model, "Hello").err)
    listed = surefoot("runs")
    head, first, second = listed.out.splitlines()
    assert head.split() == ["run", "status", "started", "records", "model", "task"]
    assert first.startswith(f"{other}  failed")
    assert second.startswith(f"{finished}  completed")
    assert "6 times 7? 六乘七" in second
    machine = surefoot("runs", "--json", "-n", "1")
    assert [line["run"]["run_id"] for line in map(json.loads, machine.out.splitlines())] == [other]


def test_the_list_shows_no_secret_of_a_task(surefoot: Command, tmp_path: Path) -> None:
    task = Task("Read https://ann:hunter2@x.example/a?token=s3cret for me.")
    keep(
        tmp_path / "secret.journal",
        "run-1",
        [replace(e, task=task, run_id="run-1") if isinstance(e, RunStarted) else e for e in recorded()],
    )
    told = surefoot("runs", "--journal", tmp_path / "secret.journal").out
    assert "x.example" in told
    assert not [secret for secret in ("hunter2", "s3cret") if secret in told]


def test_show_gives_raw_records_and_follows_to_the_end(surefoot: Command, finished: str) -> None:
    raw = [json.loads(line) for line in surefoot("show", finished, "--events").out.splitlines()]
    assert [record["seq"] for record in raw] == list(range(7))
    assert raw[-1]["event"]["type"] == "RunEnded"
    assert surefoot("show", finished, "--follow").out == surefoot("show", finished).out


def test_of_a_torn_journal_the_readable_part_is_shown(surefoot: Command, finished: str, tmp_path: Path) -> None:
    journal = tmp_path / ".surefoot" / "journal.db"
    alter(journal, "UPDATE event SET body = CAST(replace(CAST(body AS TEXT), '42', '43') AS BLOB) WHERE seq = 4")
    shown = surefoot("show", finished)
    assert shown.code == 1
    assert '→ arithmetic(expression="6*7")' in shown.out
    assert "← 43" not in shown.out
    assert "this run is damaged" in shown.out
    assert re.search(f"run {finished}, record 4: .*hash does not match", shown.err)
    assert surefoot("replay", finished).code == 1
    assert surefoot("resume", finished).code == 1


@pytest.mark.parametrize(("held", "told"), [(b"", "nothing in this file"), (b"hello " * 200, "not a SQLite file")])
@pytest.mark.parametrize("command", [("runs",), ("show", "r1"), ("replay", "r1"), ("journal", "verify")])
def test_a_file_that_is_no_journal_is_told_and_stays_as_it_is(
    surefoot: Command, tmp_path: Path, command: tuple[str, ...], held: bytes, told: str
) -> None:
    (tmp_path / "no.db").write_bytes(held)
    done = surefoot(*command, "--journal", "no.db")
    assert (done.code, done.err.count("\n"), told in done.err) == (1, 1, True), done.err
    assert [child.name for child in tmp_path.glob("no.db*")] == ["no.db"]
    assert (tmp_path / "no.db").read_bytes() == held


@pytest.mark.usefixtures("finished")
def test_a_new_journal_and_its_folder_are_their_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / ".surefoot"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir() if one.is_file()} == {0o600}


def test_a_journal_is_copied_proven_and_a_loss_is_accepted(surefoot: Command, finished: str, tmp_path: Path) -> None:
    assert surefoot("journal", "verify").out == "all is well\n"
    copied = surefoot("journal", "backup", "copy.db")
    assert (copied.code, "copied to copy.db; keep it with all files" in copied.out) == (0, True)
    assert surefoot("journal", "backup", "copy.db").code == 2
    assert finished in surefoot("runs", "--journal", "copy.db").out
    alter(tmp_path / "copy.db", "DELETE FROM event WHERE seq >= 4")
    lost = surefoot("journal", "verify", "--journal", "copy.db")
    assert lost.code == 1
    assert lost.out.startswith(f"run {finished}, record 4: ")
    assert surefoot("resume", finished, "--journal", "copy.db").code == 1
    assert surefoot("journal", "accept", "--by", "Ada", "--journal", "copy.db").code == 2
    accepted = surefoot("journal", "accept", "--all", "--by", "Ada", "--journal", "copy.db")
    assert f"run {finished} goes on after 4 records: surefoot resume {finished} --journal copy.db" in accepted.out
    again = surefoot("journal", "accept", finished, "--by", "Ada", "--journal", "copy.db")
    assert (again.code, "has lost nothing" in again.err) == (2, True)
    with chat_server(says("hi")) as chat:
        other = run_id_in(surefoot("run", "--model", chat.model, "--journal", "copy.db", "x").err)
    alter(tmp_path / "copy.db", "DELETE FROM event WHERE run = 2 AND seq >= 2")
    both = surefoot("journal", "accept", finished, "gone", other, "--by", "Ada", "--journal", "copy.db")
    assert (both.code, both.err.count("\n")) == (2, 2)  # the first two fail, and the third is accepted all the same
    assert f"run {other} goes on after 2 records" in both.out
    assert surefoot("journal", "verify", "--journal", "copy.db").code == 0
    assert surefoot("journal", "verify", "--journal", "none.db").code == 2


def test_a_journal_beside_is_named_where_nothing_is_found(surefoot: Command, finished: str) -> None:
    beside = "; other journals here: .surefoot/journal.db (surefoot runs --journal .surefoot/journal.db)\n"
    none = surefoot("show", finished, "--journal", "runs.db")
    assert (none.code, none.err.endswith(beside), "runs.db; " in none.err) == (2, True, True)
    assert surefoot("journal", "copy", ".surefoot/journal.db", "runs.db").code == 0
    assert surefoot("show", "zz").err.endswith("; other journals here: runs.db (surefoot runs --journal runs.db)\n")
    assert surefoot("runs", "--journal", "runs.db").err == ""


def test_an_unknown_or_unclear_run_is_one_clear_line(surefoot: Command, finished: str) -> None:
    journal = str(Path(".surefoot", "journal.db"))
    unknown = f"surefoot: unknown run 'zz' in {Path(journal).absolute()}; `surefoot runs"
    assert surefoot("show", "zz").err == f"{unknown}` lists its runs; --journal names another\n"
    for command in (
        ("show", "zz"), ("approve", "zz", "1.0", "--by", "Ada"), ("resume", "zz"), ("fork", "zz", "--at", "1"),
    ):  # fmt: skip
        told = surefoot(*command, "--journal", journal).err
        assert told == f"{unknown} --journal {journal}` lists its runs; --journal names another\n"
    assert surefoot("show", "").code == 2
    with chat_server(*[says("hi")] * 20) as chat:
        ids = {finished} | {run_id_in(surefoot("run", "--model", chat.model, "x").err) for _ in range(17)}
    first = next(one[0] for one in ids if sum(other[0] == one[0] for other in ids) > 1)
    unclear = surefoot("show", first)
    assert unclear.code == 2
    assert f"runs begin with {first!r}" in unclear.err


def test_replay_says_that_all_is_alike_or_where_it_differs(surefoot: Command, finished: str, tmp_path: Path) -> None:
    assert surefoot("replay", finished).out == "7 records, all alike\n"
    events = recorded()
    keep(tmp_path / ".surefoot" / "journal.db", "r1", [*events[:-1], RunEnded(Completed("Something else."))])
    differs = surefoot("replay", "r1")
    assert differs.code == 1
    assert "record 6 comes out differently" in differs.out
    assert "Something else." in differs.out
    assert "Sent." in differs.out


@pytest.mark.parametrize(
    ("word", "result"), [(("--yes",), "sent to Bob"), (("--deny", "--note", "not him"), "not him")]
)
def test_a_call_waits_for_a_person(surefoot: Command, tmp_path: Path, word: tuple[str, ...], result: str) -> None:
    events = recorded()
    keep(tmp_path / ".surefoot" / "journal.db", "r1", [*events[:2], CallJudged("1.0", Ask("it leaves"), "ask_first")])
    (tmp_path / "send.py").write_text(SEND)
    assert "paused (approval)" in surefoot("runs").out
    assert "surefoot approve r1 1.0 --by NAME" in surefoot("show", "r1").out
    with chat_server(says("Done.")) as chat:
        options = ("--model", chat.model, "--tools", "send.py", "--no-builtin")
        assert surefoot("resume", "r1", *options).code == 6  # resuming approves nothing
        assert surefoot("approve", "r1", "1.0").code == 2
        assert surefoot("approve", "r1", "9.9", "--by", "Ada").code == 2
        unread = surefoot("approve", "r1", "1.0", "--by", "Ada")  # no terminal: nobody reads the question
        assert "the question stays open" in unread.out
        assert "paused (approval)" in unread.out
        said = surefoot("approve", "r1", "1.0", "--by", "Ada", *word).out
        assert "surefoot resume r1" in said
        for told in (said, surefoot("runs").out, surefoot("show", "r1").out):
            assert "ready to resume" in told
            assert "interrupted" not in told
        done = surefoot("resume", "r1")
    assert (done.code, done.out) == (0, "Done.\n")
    assert "how it was started is not on file" not in said  # it was resumed here before
    assert result in texts(chat.bodies[0], "tool")[0]
    assert ("allowed by Ada" in surefoot("show", "r1").out) is (word == ("--yes",))


def test_a_run_that_somebody_drives_is_running_and_can_be_followed(surefoot: Command, tmp_path: Path) -> None:
    path = tmp_path / ".surefoot" / "journal.db"
    keep(path, "r1", recorded()[:2])
    told = surefoot("show", "r1").out
    assert "surefoot resume r1\n" in told
    assert "name its tools with --tools, or agent.resume_sync('r1')" in told
    driver = SqliteJournal(path)
    asyncio.run(driver.open("r1"))
    told = surefoot("show", "r1").out
    asyncio.run(driver.aclose())
    assert "run r1 · running" in told
    assert "surefoot show --follow r1" in told
    assert "interrupted" not in told
    assert "surefoot resume" not in told


def test_settle_says_what_nobody_else_knows(surefoot: Command, tmp_path: Path) -> None:
    keep(tmp_path / ".surefoot" / "journal.db", "r1", recorded()[:4])
    (tmp_path / "send.py").write_text(SEND)
    with chat_server(says("Done.")) as chat:
        paused = surefoot("resume", "r1", "--model", chat.model, "--tools", "send.py", "--no-builtin")
        assert paused.code == 6
        assert 'send(to="Bob") was interrupted' in paused.err
        assert "surefoot settle r1 1.0 --done|--not-done --by NAME" in paused.err
        assert surefoot("settle", "r1", "1.0", "--by", "Ada").code == 2
        assert surefoot("settle", "r1", "1.0", "--not-done", "--result", "x", "--by", "Ada").code == 2
        assert surefoot("settle", "r1", "1.0", "--done", "--result", "it lies there", "--by", "Ada").code == 0
        assert surefoot("resume", "r1").out == "Done.\n"
    assert texts(chat.bodies[0], "tool") == ["it lies there"]


def test_cancel_ends_a_run_for_good(surefoot: Command, tmp_path: Path) -> None:
    keep(tmp_path / ".surefoot" / "journal.db", "r1", recorded()[:4])
    told = surefoot("cancel", "r1", "--by", "Ada").out
    assert "cancelled (Ada)" in told
    assert "nobody knows whether it took effect: 1.0 send" in told
    assert "cancelled" in surefoot("runs").out
