"""A journal whose lines are kept elsewhere: it begins anew with them, and nothing is done that they do not tell."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from journal_cases import EVERY_KIND, read_all, story, write

from surefoot import Agent, Attachment, JournalError, tool
from surefoot.journal.codec import digest_of
from surefoot.journal.memory import MemoryJournal
from surefoot.testing.models import ScriptedModel, calls
from surefoot.types.events import CallStarted

pytestmark = pytest.mark.anyio


async def kept() -> tuple[list[str], MemoryJournal]:
    """Every kind of event, a fork of it, a fork of that, bytes, and the lines of all."""
    lines: list[str] = []
    store = MemoryJournal(keep=lines.extend)
    await write(store, "r1", EVERY_KIND)
    for parent, at, run_id in (("r1", 3, "r2"), ("r2", 4, "r3")):
        await store.fork(parent, at, run_id)
        run = await store.open(run_id)
        await run.put_blob(b"\x00door")
        await run.append([CallStarted(f"of {run_id}")])
        await run.release()
    return lines, store


async def test_a_journal_begins_with_the_lines_of_another() -> None:
    lines, before = await kept()
    after = MemoryJournal(lines)
    for run_id in ("r1", "r2", "r3"):
        assert await after.read_recorded(run_id) == await before.read_recorded(run_id)
    told = [replace(one, change=0) for one in await after.runs()]
    assert told == [replace(one, change=0) for one in await before.runs()]
    assert await after.get_blob(digest_of(b"\x00door")) == b"\x00door"
    assert not [line for line in lines if "\n" in line]


async def test_what_is_begun_with_is_not_kept_again() -> None:
    lines, _ = await kept()
    more: list[str] = []
    store = MemoryJournal(lines, more.extend)
    run = await store.open("r3")
    await run.put_blob(b"\x00door")
    await run.append([CallStarted("c9")])
    assert [json.loads(line)["seq"] for line in more] == [5]
    assert (await read_all(MemoryJournal([*lines, *more]), "r3"))[0][-1] == CallStarted("c9")


async def test_an_id_that_was_deleted_is_kept_anew_after_a_restart() -> None:
    lines, store = await kept()
    await store.delete("r3")
    await write(MemoryJournal(list(lines), lines.extend), "r3", story("r3"))
    assert (await read_all(MemoryJournal(lines), "r3"))[0] == story("r3")


@pytest.mark.parametrize("at", range(7))  # a run, its tools and five of its six records; the end is not chained
async def test_lines_that_are_missing_altered_or_moved_are_refused(at: int) -> None:
    lines: list[str] = []
    await write(MemoryJournal(keep=lines.extend), "r1", story())
    altered = [*lines[:at], lines[at].replace("a", "b").replace("1", "2"), *lines[at + 1 :]]
    missing, moved = lines[:at] + lines[at + 1 :], [*lines[:at], *lines[at + 1 :], lines[at]]
    for wrong in (altered, missing, moved):
        with pytest.raises(JournalError):
            MemoryJournal(wrong)


@pytest.mark.parametrize("line", ["", "[]", "3", "{}", '{"run": "r"}', '{"blob": "x", "data": "AA=="}', '{"run": 3}'])
def test_what_is_not_a_line_is_named(line: str) -> None:
    with pytest.raises(JournalError, match="line 0"):
        MemoryJournal([line])


async def test_a_call_does_not_start_where_its_line_cannot_be_kept() -> None:
    lines: list[str] = []
    sent: list[str] = []

    def keep(given: Sequence[str]) -> None:
        if any("CallStarted" in line for line in given) and not sent:
            raise OSError("disk full")
        lines.extend(given)

    @tool
    def send(to: str) -> str:
        """Send a mail."""
        sent.append(to)
        return "sent"

    model = ScriptedModel([calls(("send", {"to": "Ann"})), calls(("send", {"to": "Ann"})), "Done."])
    agent = Agent(model, [send], journal=MemoryJournal(keep=keep))
    with pytest.raises(JournalError, match="could not be kept: disk full"):
        await agent.run("Mail Ann.", run_id="r1")
    with pytest.raises(JournalError, match="start a new journal"):
        await agent.run("Hello?")
    assert not sent
    again = Agent(model, [send], journal=MemoryJournal(lines, lines.extend))
    run = await again.resume("r1")
    assert (run.status, run.answer, sent) == ("completed", "Done.", ["Ann"])


async def test_a_conversation_with_a_picture_goes_on_from_its_lines() -> None:
    lines: list[str] = []
    picture = Attachment.from_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20), "door.png")
    first = Agent(ScriptedModel(["A door."], traits={"images": "yes"}), journal=MemoryJournal(keep=lines.extend))
    await first.chat("door").send("What is this?", attachments=[picture])
    model = ScriptedModel(["Blue."], traits={"images": "yes"})
    run = await Agent(model, journal=MemoryJournal(lines, lines.extend)).chat("door").send("Which colour?")
    assert run.answer == "Blue."
    assert [one.content for one in model.requests[0].messages][1:] == ["A door.", "Which colour?"]
    assert model.requests[0].messages[0].files[0].data == picture.data
