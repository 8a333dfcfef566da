"""The commands on a journal in PostgreSQL: its address stands wherever a file may, and no password is shown."""

from __future__ import annotations

import re

import pytest
from cli_world import Command, calls, chat_server, says

pytestmark = pytest.mark.postgres


def test_a_run_is_made_listed_shown_forked_and_verified_in_a_database(surefoot: Command, postgres_url: str) -> None:
    place = ("--journal", postgres_url.replace(":@", ":s3cret@"))
    with chat_server(calls(("arithmetic", {"expression": "6*7"})), says("42"), says("42 again")) as chat:
        made = surefoot("run", "What is 6*7?", "--model", chat.model, *place)
        assert (made.code, made.out.strip()) == (0, "42")
        run_id = _id_of(surefoot("runs", "--json", *place).out)
        assert "6*7" in surefoot("show", run_id, *place).out
        forked = surefoot("fork", run_id, "--at", "1", *place)
        assert forked.code == 0
    assert surefoot("journal", "verify", "--sample", "1", *place).out.strip() == "all is well"
    refused = surefoot("journal", "backup", "copy.db", *place)
    assert refused.code != 0
    assert "own tools" in refused.err
    unknown = surefoot("show", "r9", *place)
    assert unknown.code != 0
    for one in (made, forked, unknown):
        assert "s3cret" not in one.out + one.err


def _id_of(listed: str) -> str:
    found = re.search(r'"run_id": ?"([^"]+)"|"id": ?"([^"]+)"', listed)
    assert found is not None
    return found[1] or found[2]


def test_tables_are_made_and_looked_at(surefoot: Command, postgres_url: str) -> None:
    for command in ("init", "upgrade", "check"):
        told = surefoot("db", command, "--journal", postgres_url)
        assert (told.code, "form 1, made by surefoot" in told.out) == (0, True), told
    told = surefoot("db", "check")
    assert told.code != 0
    assert "name a database" in told.err
