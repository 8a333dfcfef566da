"""A house with a mail box, a bank, notes and contacts, and a run in it that is played call by call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import orjson

from surefoot.core.gate.intent import read_words
from surefoot.core.gate.origins import endorsed_by, having_read, listed_in, set_of
from surefoot.core.gate.record import GateRecord, Started
from surefoot.core.gate.slots import Words
from surefoot.core.gate.sources import Known
from surefoot.core.gate.verdict import digest_of, verdict_on
from surefoot.types.guard import Grounds, GuardConfig
from surefoot.types.outcomes import Decision
from surefoot.types.tools import Effect, ToolResult, ToolSpec

TEXT: Mapping[str, object] = {"type": "string"}
TEXTS: Mapping[str, object] = {"type": "array", "items": TEXT}
NUMBER: Mapping[str, object] = {"type": "number"}


def tool(name: str, effect: Effect | None, /, **more: Any) -> ToolSpec:  # Any: fields of a spec, and its parameters
    """A tool whose parameters are the mappings among `more`; one without an effect is undeclared."""
    properties = {key: more.pop(key) for key in tuple(more) if isinstance(more[key], Mapping) and key != "roles"}
    schema = {"type": "object", "properties": properties}
    return ToolSpec(name, more.pop("description", ""), schema, effect or "write", declared=effect is not None, **more)


SEND = tool("send_mail", "communicate", to=TEXTS, subject=TEXT, body=TEXT)
PAY = tool("pay", "transact", recipient=TEXT, amount=NUMBER, date=TEXT, note=TEXT)
DELETE = tool("delete_note", "delete", name=TEXT)
WRITE = tool("save_note", "write", name=TEXT, text=TEXT)
EVENT = tool("add_event", "write", title=TEXT, start=TEXT, guests=TEXTS)
SIGN_IN = tool("sign_in", "write", account=TEXT, password=TEXT)
READ = tool("read_note", "read", name=TEXT)
PRIVATE = tool("medical_file", "read", name=TEXT, private=True)
CONTACTS = tool("list_contacts", "read")
SEARCH = tool("search_notes", "read", query=TEXT)
FETCH = tool("open_page", "read", url=TEXT, egress=True)
TOOLS = (SEND, PAY, DELETE, WRITE, EVENT, SIGN_IN, READ, PRIVATE, CONTACTS, SEARCH, FETCH)


Row = dict[str, Any]  # Any: JSON


def rows(name: str) -> list[Row]:
    """A table of cases, or several: `tests/data/gate/NAME`."""
    files = sorted((Path(__file__).parents[2] / "data" / "gate").glob(name))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


SPECS = {spec.name: spec for spec in TOOLS} | {row.pop("tool"): ToolSpec(**row) for row in rows("tools.jsonl")}
"""The tools of the tables, by the name that they have there."""


class Run:
    """One run: what it knows grows with each result and each word of the person."""

    def __init__(self, words: str, config: GuardConfig | None = None, *, today: str = "2026-11-22") -> None:
        config = config or GuardConfig()
        self.known = Known(Words.of(read_words(words, config.lexicon)), config, today=today)
        self.started: list[Started] = []

    def read(self, spec: ToolSpec, value: object, *, kind: str = "ok", **arguments: object) -> None:
        """A call gave a result: a text is a text, all else is a value."""
        content = value if isinstance(value, str) else orjson.dumps(value).decode()
        result = ToolResult(content, cast("Any", kind), structured=not isinstance(value, str))  # a kind of result
        self._started(spec, arguments)
        self.known = having_read(self.known, str(len(self.started)), spec, arguments, result)

    def judged(self, spec: ToolSpec, **arguments: object) -> tuple[Decision, str, Grounds]:
        return verdict_on(self.known, spec, arguments, self.started)

    def verdict(self, spec: ToolSpec, **arguments: object) -> str:
        return self.judged(spec, **arguments)[0].kind

    def yes(self, spec: ToolSpec, **arguments: object) -> None:
        """The person says yes, where they are asked, and the call runs."""
        decision, _, grounds = self.judged(spec, **arguments)
        asked_about = grounds.evidence if decision.kind == "ask" else ()
        shown = (*listed_in(spec, arguments, asked_about), *set_of(self.known, spec, arguments))
        values = endorsed_by(self.known, spec, arguments, shown) if decision.kind == "ask" else ()
        self.known = self.known.with_yes(spec.name, values)
        self._started(spec, arguments)

    def _started(self, spec: ToolSpec, arguments: Mapping[str, object]) -> None:
        begun = GateRecord(self.known).begin(str(len(self.started)), spec, arguments, digest_of(spec, arguments))
        self.started.append(replace(begun, is_open=False, ended=len(self.started) + 1))
