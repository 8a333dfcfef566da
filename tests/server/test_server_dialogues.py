"""What is asked of a server, and what it answers: a row of `tests/data/server_dialogues.jsonl` is a dialogue.

A step asks: `ask` is "METHOD PATH", with `body`, `who` and `headers`; what comes back is a good answer, or what `is`
says, a status and a problem. `has` are its parts by their paths, headers among them; `holds` texts that stand in it.
`keep` gives parts a name: `$NAME` stands for it from then on. A step may `start` a run as well (`as` names it, else
"run"), or wait `until` that stands as it says.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from server_world import Reply, Served

from cases import rows
from surefoot import SqliteJournal
from surefoot.types.ports import JournalStore

pytestmark = pytest.mark.anyio

Json = Any


def filled(told: Json, kept: dict[str, Json]) -> Json:
    """What a row says, with what was kept in place of its names."""
    match told:
        case str() if told.removeprefix("$") in kept and told.startswith("$"):
            return kept[told[1:]]
        case str():
            for name, value in kept.items():
                told = told.replace(f"${name}", str(value))
            return told
        case list():
            return [filled(one, kept) for one in told]  # pyright: ignore[reportUnknownVariableType]  # JSON
        case dict():
            return {name: filled(one, kept) for name, one in told.items()}  # pyright: ignore[reportUnknownVariableType]  # JSON
        case _:
            return told


def part(reply: Reply, path: str) -> Json:
    """A part of an answer; a name in capitals is a header."""
    if path[0].isupper():
        return reply.headers.get(path)
    found: Json = reply.json
    for name in path.split(".") if path != "." else ():
        found = len(found) if name == "#" else found[int(name) if name.isdecimal() else name]
    return found


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[JournalStore]:
    made = SqliteJournal(tmp_path / "journal.db")
    yield made
    await made.aclose()


@pytest.mark.parametrize("row", rows("server_dialogues"), ids=lambda row: str(row["why"]))
async def test_a_server_answers_as_it_was_told(served: Served, row: Json) -> None:
    kept: dict[str, Json] = {"port": served.port}
    for number, told in enumerate(row["steps"]):
        step = filled(told, kept)
        who = step.get("who", "all")
        if "start" in step:
            kept[step.get("as", "run")] = await served.start(*step["start"], who=who, **step.get("with", {}))
        elif "until" in step:
            await served.until(kept[step.get("as", "run")], *step["until"], who=who)
        else:
            method, path = step["ask"].split(" ", 1)
            reply = await served.ask(method, path, step.get("body"), who=who, headers=step.get("headers"))
            status = f"{reply.status} {reply.problem}".strip()
            assert status == step.get("is", status if reply.status < 300 else "a good answer"), (number, reply.body)
            for name, value in step.get("has", {}).items():
                assert part(reply, name) == value, (number, name, reply.body)
            for text in step.get("holds", ()):
                assert text in reply.body.decode(), (number, text, reply.body)
            kept |= {name: part(reply, at) for name, at in step.get("keep", {}).items()}
