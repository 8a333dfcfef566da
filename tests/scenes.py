"""Runs as rows of a table, a run a line: what models say, what a person does then, and what is seen of it all.

A row of `tests/data/scenes/TABLE.jsonl` names its case in `why`. What is played:
- `said`: replies in turn, or those of each role. A list of `[tool, arguments]` is a reply of calls, `{"error": [CLASS,
  argument…, fields]}` the error that a request ends in, `{"reply": text, …}` a reply with fields of its own (`calls` as
  above, `tokens` as [in, out]), any other object is JSON. `$NAME a | b` is what the test file makes of a and b by that
  name, and so is `{"$NAME": [a, b]}`.
- `task`, `steps` (a given plan), `attached`, `config` (tables by name), `agent` (further options of it), `mode`, or
  `modes` by role, `world` (arguments of the world of the test file).
- `then`: `["approve", CALL]`, `["refuse", CALL, reason]`, `["settle", CALL, outcome, result]`, `["cancel"]`,
  `["resume", config]`, `["is", END, detail]` for how the run stands. A call is its id, or the number of what waits.

What is seen, each where it is given:
- `end`: STATUS or STATUS/REASON. `answer`, or how it begins (`answer_begins`), `details` (texts in it), `output` (of a
  deliverable), `rounds`, `calls`, `tokens`, `requests` (by role where there are several; "<9": fewer than nine in all).
- `ran`: the lines of the world's book.
- `shown`: by the number of a request ("ROLE NUMBER" with several roles; "last" behind it: in its last message alone)
  texts that it holds; behind a "!" those that it does not. `asked`: fields of requests (`tools`, `mode`, `stop`,
  `roles`; `schema`: texts in it, or null).
- `events`: how many of each kind are on record, or of each one fields by their path. `rules`: those of all verdicts
  that have one.
- Of a plan: `refused` proposals, `statuses` of steps, tools `selected`, `retries` of steps and `replans`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol, cast

import pytest

from records import events_of
from surefoot import Agent, LoopConfig, MemoryJournal, PlanStep, Run, Task
from surefoot.core.loop.fold import fold
from surefoot.core.state.state import Planning
from surefoot.testing.journals import CheckedJournal
from surefoot.testing.models import NATIVE_FIRST, Scripted, ScriptedModel, calls
from surefoot.types import errors
from surefoot.types.config import TABLES
from surefoot.types.events import Attachment, CallJudged, Event, InStep
from surefoot.types.messages import CallMode, ModelMessage, ModelRequest, Usage
from surefoot.types.ports import Tool

Row = Mapping[str, Any]  # Any: JSON
Words = Mapping[str, Scripted | Callable[..., Scripted]]
Tasks = Mapping[str, Task]
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
        return calls(*cast("list[Any]", line))
    fields = dict(cast("Row", line))
    match next(iter(fields), ""):
        case "error":
            kind, *arguments = cast("list[Any]", fields["error"])
            more = cast("Row", arguments.pop() if isinstance(arguments[-1], dict) else {})
            return getattr(errors, kind)(*arguments, **more)
        case "reply":
            native = calls(*fields.pop("calls", ())).calls
            usage = Usage(*fields.pop("tokens", ()))
            return ModelMessage("assistant", fields.pop("reply"), native, usage=usage, **fields)
        case name if name in words:
            return cast("Callable[..., Scripted]", words[name])(*fields[name])
        case _:
            return fields


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
            **_of_plan(fold(self.events).planning),
        }
        if "end" in row:
            assert _end(run, row["end"]) == row["end"], run
        if "output" in row:
            assert run.deliverable.output == row["output"]
        assert all(text in run.detail for text in row.get("details", ())), run.detail
        assert run.answer.startswith(row.get("answer_begins", "")), run.answer
        for name, found in seen.items():
            assert found == row.get(name, found), (name, found)
        requests = {role: len(model.requests) for role, model in self.models.items()}
        match row.get("requests", requests):
            case str(fewer):
                assert sum(requests.values()) < int(fewer.removeprefix("<")), requests
            case wanted:
                assert wanted in (requests, requests.get("solo")), requests
        for kind, wanted in row.get("events", {}).items():
            found = [one for one in self._of_steps() if type(one).__name__ == kind]
            if isinstance(wanted, int):
                assert len(found) == wanted, (kind, found)
                continue
            told = [{path: _at(event, path) for path in fields} for event, fields in zip(found, wanted, strict=True)]
            assert told == wanted, (kind, told)
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


def _of_plan(planning: Planning | None) -> Mapping[str, object]:
    """What there is to see of a plan."""
    if planning is None:
        return {}
    return {
        "refused": [f"{one.what} {one.detail}".strip() for one in planning.refusals],
        "statuses": {name: step.status for name, step in planning.steps.items()},
        "selected": [*(planning.selected or ())],
        "retries": planning.stats.step_retries,
        "replans": planning.stats.replans,
    }


def _at(event: Event, path: str) -> object:
    found: object = attrgetter(path)(event)
    return list(cast("tuple[object, ...]", found)) if isinstance(found, tuple) else found


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
    tasks: Tasks | None = None,
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
    steps = tuple(PlanStep(**step) for step in row.get("steps", ()))
    words_of_task = row.get("task", task)
    run = await agent.run((tasks or {}).get(words_of_task, Task(words_of_task, attached, steps=steps)), run_id="r")
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
