"""Runs as rows of a table, a run a line: what models say, what a person does then, and what is seen of it all.

A row of `tests/data/scenes/TABLE.jsonl` names its case in `why`. What is played:
- `said`: replies in turn, or those of each role. A list of `[tool, arguments]` is a reply of calls, `{"error": [CLASS,
  argument…, fields]}` the error that a request ends in, `{"reply": text, …}` a reply with fields of its own (`calls` as
  above, `tokens` as [in, out]), any other object is JSON. `$NAME a | b` is what the test file makes of a and b by it.
- `task`, `steps` (a given plan), `attached`, `config` (tables by name), `agent` (further options of it), `mode`, or
  `modes` by role, `world` (arguments of the world of the test file).
- `then`: `["approve", CALL]`, `["refuse", CALL, reason]`, `["settle", CALL, outcome, result]`, `["cancel"]`,
  `["resume", config]`, `["is", END, detail]` for how the run stands. A call is its id, or the number of what waits.

What is seen, each where it is given:
- `end`: STATUS or STATUS/REASON. `answer`, `detail` (a part of it), `output` (of a deliverable), `rounds`, `calls`,
  `tokens`.
- `ran`: the lines of the world's book. `requests`: their number, by role where there are several; "<9" for fewer
  than nine.
- `shown`: by the number of a request ("ROLE NUMBER" with several roles; "last" behind it: in its last message alone)
  texts that it holds; behind a "!" those that it does not. `asked`: fields of requests (`tools`, `mode`, `stop`,
  `roles`; `schema`: texts in it, or null).
- `events`: how many of each kind are on record. `rules`: those of all verdicts that have one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

import pytest

from records import events_of
from surefoot import Agent, LoopConfig, MemoryJournal, PlanStep, Run, Task
from surefoot.testing.journals import CheckedJournal
from surefoot.testing.models import NATIVE_FIRST, Scripted, ScriptedModel, calls
from surefoot.types import errors
from surefoot.types.config import TABLES
from surefoot.types.events import Attachment, CallJudged, Event, InStep
from surefoot.types.messages import CallMode, ModelMessage, ModelRequest, Usage
from surefoot.types.ports import Tool

Row = Mapping[str, Any]  # Any: JSON
Words = Mapping[str, Scripted | Callable[..., Scripted]]
_DATA = Path(__file__).parent / "data" / "scenes"


class World(Protocol):
    """What happens outside of a run: its tools, and the book of what they did."""

    ran: list[str]

    def tools(self) -> Sequence[Tool]: ...


def scenes(table: str, group: str = "") -> pytest.MarkDecorator:
    """A test for each row of a table, or of one `group` of it."""
    lines = (_DATA / f"{table}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row.get("group", "") == group]
    return pytest.mark.parametrize("row", rows, ids=[row["why"] for row in rows])


def config_of(tables: Row) -> LoopConfig:
    """The configuration of a row: its fields, and the tables among them by their names."""
    return LoopConfig.from_json(
        {
            key: TABLES[key].from_json(value) if key in TABLES and value is not None else value
            for key, value in tables.items()
        }
    )


def said(line: Any, words: Words) -> Scripted:  # Any: JSON
    """A reply as a script has it."""
    if isinstance(line, str):
        name, _, given = line.partition(" ")
        made = words.get(name, line)
        return made(*given.split(" | ")) if callable(made) else made
    if isinstance(line, list):
        return calls(*((name, arguments) for name, arguments in cast("list[Any]", line)))
    if "error" in line:
        kind, *arguments = line["error"]
        fields = cast("Row", arguments.pop() if isinstance(arguments[-1], dict) else {})
        return getattr(errors, kind)(*arguments, **fields)
    if "reply" not in line:
        return line
    more = {key: value for key, value in line.items() if key not in ("reply", "calls", "tokens")}
    made = calls(*((name, arguments) for name, arguments in line.get("calls", ()))).calls
    return ModelMessage("assistant", line["reply"], made, usage=Usage(*line.get("tokens", ())), **more)


def text_of(request: ModelRequest) -> str:
    """All that a model is shown in a request."""
    return "\n".join((request.system, *(message.content for message in request.messages)))


@dataclass
class Played:
    """A run that was played, and what there is to see of it."""

    run: Run
    agent: Agent
    world: World
    models: Mapping[str, ScriptedModel]
    events: list[Event] = field(default_factory=list[Event])

    def hold(self, row: Row) -> None:
        """Hold the run to its row."""
        run = self.run
        seen = {
            "answer": run.answer,
            "ran": self.world.ran,
            "rounds": run.rounds,
            "calls": run.calls,
            "tokens": run.usage.total_tokens,
            "rules": [one.rule for one in self._of_steps() if isinstance(one, CallJudged) and one.rule],
        }
        if "end" in row:
            assert _end(run, row["end"]) == row["end"], run
        if "output" in row:
            assert run.deliverable.output == row["output"]
        assert row.get("detail", "") in run.detail
        for name, found in seen.items():
            assert found == row.get(name, found), (name, found)
        requests = {role: len(model.requests) for role, model in self.models.items()}
        match row.get("requests", requests):
            case str(fewer):
                assert sum(requests.values()) < int(fewer.removeprefix("<")), requests
            case wanted:
                assert wanted in (requests, requests.get("solo")), requests
        counted = Counter(type(one).__name__ for one in self._of_steps())
        wanted = row.get("events", {})
        assert {name: counted[name] for name in wanted} == wanted
        for place, fields in row.get("asked", {}).items():
            _hold_asked(self._request(place), fields)
        for place, texts in row.get("shown", {}).items():
            self._hold_shown(place, texts)

    def _of_steps(self) -> list[Event]:
        return [one.event if isinstance(one, InStep) else one for one in self.events]

    def _request(self, place: str) -> ModelRequest:
        *role, number = place.split()
        return self.models[role[0] if role else "solo"].requests[int(number)]

    def _hold_shown(self, place: str, texts: Sequence[str]) -> None:
        request = self._request(place.removesuffix(" last"))
        shown = request.messages[-1].content if place.endswith(" last") else text_of(request)
        _hold_texts(shown, texts)


def _hold_texts(shown: str, texts: Sequence[str]) -> None:
    for text in texts:
        assert (text.removeprefix("!") in shown) is not text.startswith("!"), (text, shown)


def _hold_asked(request: ModelRequest, fields: Row) -> None:
    seen = {
        "tools": [*request.tools.names],
        "mode": request.mode,
        "stop": [*request.stop],
        "roles": [message.role for message in request.messages],
    }
    for name, wanted in fields.items():
        if name != "schema":
            assert seen[name] == wanted, (name, seen[name])
        elif wanted is None:
            assert request.schema is None
        else:
            _hold_texts(str(request.schema), wanted)


async def play(
    row: Row,
    world: Callable[..., World],
    words: Words | None = None,
    task: str = "go",
    **options: Any,  # of the agent
) -> Played:
    """Play a row, and hold it to what is to be seen. Each run is replayed, and checked at every append."""
    store, real = CheckedJournal(MemoryJournal()), world(**row.get("world", {}))
    scripts = cast(
        "Mapping[str, Sequence[Any]]", row["said"] if isinstance(row["said"], dict) else {"solo": row["said"]}
    )
    modes: Mapping[str, CallMode] = {role: row["mode"] for role in scripts if "mode" in row} | row.get("modes", {})
    models = {
        role: ScriptedModel(
            [said(line, words or {}) for line in script],
            name=f"test:{role}",
            modes=(modes[role],) if role in modes else NATIVE_FIRST,
        )
        for role, script in scripts.items()
    }
    given = {**options, **row.get("agent", {})}
    config = config_of({**given.pop("config", {}), **row.get("config", {})})
    agent = Agent(models if len(models) > 1 else models["solo"], real.tools(), journal=store, config=config, **given)
    attached = tuple(Attachment(*one) for one in row.get("attached", ()))
    asked = Task(row.get("task", task), attached, steps=tuple(PlanStep(**step) for step in row.get("steps", ())))
    run = await agent.run(asked, run_id="r")
    for do, *what in row.get("then", ()):
        run = await _done(agent, run, do, what)
    played = Played(run, agent, real, models, await events_of(store, "r"))
    played.hold(row)
    return played


async def _done(agent: Agent, run: Run, do: str, what: Sequence[Any]) -> Run:
    """One thing that a person does with a run."""
    if do == "is":
        assert _end(run, what[0]) == what[0], run
        assert "".join(what[1:]) in run.detail
        return run
    if do == "resume":
        return await (agent.resume(run.id, config=config_of(what[0])) if what else agent.resume(run.id))
    if do == "cancel":
        return await agent.cancel(run.id, by="Ada")
    call = run.waiting[what[0]].id if isinstance(what[0], int) else what[0]
    match do, *what[1:]:
        case "approve", *_:
            return await agent.approve(run.id, call, by="Ada")
        case "refuse", *reason:
            return await agent.refuse(run.id, call, by="Ada", reason="".join(reason))
        case "settle", outcome, *result:
            return await agent.settle(run.id, call, outcome, by="Ada", result="".join(result))
        case _:
            raise ValueError(do)


def _end(run: Run, like: str) -> str:
    return f"{run.status}/{run.reason}" if "/" in like else run.status
