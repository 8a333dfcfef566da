"""Files that come with a task or a result: to the model that takes them, on every wire, and once in the journal."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cases import each
from records import events_of
from surefoot import Agent, Attachment, MemoryJournal, SqliteJournal, Task, UsageError, tool
from surefoot.testing.models import ScriptedModel, calls
from surefoot.tools.builtin import file_tools
from surefoot.tools.workspace import Workspace
from surefoot.types.events import CallEnded, RunStarted
from surefoot.types.messages import ModelRequest
from surefoot.types.ports import JournalStore

pytestmark = pytest.mark.anyio


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0"
SEES = {"images": "yes"}


@tool(effect="read")
def snapshot() -> list[object]:
    return ["taken at noon", Attachment.from_bytes(PNG, "door.png")]


def files_of(request: ModelRequest) -> list[tuple[str, str, bytes]]:
    return [(message.role, one.name, one.data) for message in request.messages for one in message.files]


KINDS = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/gif": b"GIF89a",
    "application/pdf": b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n",
    "image/webp": b"RIFF\0\0\0\0WEBPVP8 ",
    "audio/wav": b"RIFF\x24\0\0\0WAVEfmt ",
    "audio/mpeg": b"ID3\x04",
}


@each("data, kind", [(data, kind) for kind, data in KINDS.items()])
def test_a_file_is_what_its_bytes_say(data: bytes, kind: str) -> None:
    made = Attachment.from_bytes(data, "x", media_type="image/jpeg" if kind != "image/jpeg" else "image/png")
    assert (made.media_type, made.size, made.data) == (kind, len(data), data)
    assert made.line == f"[x: {kind}, {len(data)} bytes]"
    assert repr(data)[2:-1] not in repr(made)


def test_text_stays_text_and_nothing_else_passes_for_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffhéllo".encode())
    (tmp_path / "wide.txt").write_bytes("héllo".encode("utf-16"))
    assert Attachment.from_path(tmp_path / "a.txt") == Attachment("a.txt", "héllo")
    assert Attachment.from_path(tmp_path / "wide.txt").text == "héllo"
    for data, kind in ((b"PK\3\4\0\0", ""), (b"\x80\x81", "application/zip"), (b"a\0b", "")):
        with pytest.raises(UsageError, match="attach text, PNG"):
            Attachment.from_bytes(data, "x.zip", media_type=kind)
    with pytest.raises(UsageError, match="no such file"):
        Attachment.from_path(tmp_path / "none.png")


@pytest.mark.parametrize("kept", ["memory", "sqlite"])
async def test_a_picture_goes_to_the_model_and_its_bytes_once_to_the_journal(tmp_path: Path, kept: str) -> None:
    store: JournalStore = MemoryJournal() if kept == "memory" else SqliteJournal(tmp_path / "runs.journal")
    (tmp_path / "cat.png").write_bytes(PNG)
    model = ScriptedModel(["A cat.", "A cat again."], traits=SEES)
    agent = Agent(model, journal=store)
    run = await agent.run("What is it?", attachments=[tmp_path / "cat.png"])
    await agent.run(Task("And now?", (Attachment.from_bytes(PNG, "other.png"),)))
    assert run.answer == "A cat."
    sent = [files_of(request) for request in model.requests]
    assert sent == [[("user", "cat.png", PNG)], [("user", "other.png", PNG)]]
    started = (await events_of(store, run.id))[0]
    assert isinstance(started, RunStarted)
    picture = started.task.attachments[0]
    assert (picture.name, picture.media_type, picture.size) == ("cat.png", "image/png", len(PNG))
    assert await store.get_blob(picture.digest) == PNG
    await agent.aclose()
    if kept == "sqlite":
        with closing(sqlite3.connect(tmp_path / "runs.journal")) as db:
            assert db.execute("SELECT count(*) FROM blob WHERE data=?", (PNG,)).fetchone() == (1,)


async def test_a_model_that_takes_no_pictures_is_one_error_before_the_run() -> None:
    store = MemoryJournal()
    agent = Agent(ScriptedModel(["never"]), journal=store)
    with pytest.raises(UsageError, match=r"test:scripted does not take cat.png \(image/png\): use a model that does"):
        await agent.run("What is it?", attachments=[Attachment.from_bytes(PNG, "cat.png")])
    assert await store.runs() == []


async def test_the_picture_of_a_tool_is_shown_and_comes_back_after_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "runs.journal"
    asks = ScriptedModel([calls(("snapshot", {}))], traits=SEES)  # its script is at an end before the answer
    agent = Agent(asks, tools=[snapshot], journal=path)
    run = await agent.run("Who is at the door?")
    await agent.aclose()
    answers = ScriptedModel(["Nobody."], traits=SEES)
    agent = Agent(answers, tools=[snapshot], journal=path)
    assert (await agent.resume(run.id)).answer == "Nobody."
    assert files_of(answers.requests[0]) == files_of(asks.requests[1]) == [("tool", "door.png", PNG)]
    told = answers.requests[0].messages[-1].content
    assert told == f"taken at noon\n[door.png: image/png, {len(PNG)} bytes]"
    ended = next(one for one in await events_of(SqliteJournal(path), run.id) if isinstance(one, CallEnded))
    assert [one.digest for one in ended.result.files] == [Attachment.from_bytes(PNG).digest]
    await agent.aclose()


async def test_a_file_tool_says_what_a_picture_is_and_shows_it(tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(PNG)
    (tmp_path / "cat.zip").write_bytes(b"PK\3\4\0")
    read = {"path": "cat.png"}
    model = ScriptedModel([calls(("file_read", read)), calls(("file_read", {"path": "cat.zip"})), "Red."], traits=SEES)
    await Agent(model, tools=file_tools(Workspace(tmp_path))).run("Which colour?")
    assert files_of(model.requests[1]) == [("tool", "cat.png", PNG)]
    assert model.requests[1].messages[-1].content == f"[cat.png: image/png, {len(PNG)} bytes]"
    assert model.requests[2].messages[-1].content == "error: cat.zip is not text."
