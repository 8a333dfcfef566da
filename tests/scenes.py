"""Runs as rows of a table, a run a line: what models say, what a person does then, and what is seen of it all.

A row of `tests/data/scenes/TABLE.jsonl` names its case in `why`. What is played:
- `said`: replies in turn, or those of each role. A list of `[tool, arguments]` is a reply of calls, `{"error": [CLASS,
  argument…, fields]}` the error that a request ends in, `{"reply": text, …}` a reply with fields of its own (`calls` as
  above, `tokens` as [in, out]), any other object is JSON. `$NAME a | b` is what the test file makes of a and b by that
  name, and so is `{"$NAME": [a, b]}`; `{"times": 9, "said": […]}` stands for as many.
- `task`, `steps` (a given plan), `attached`, `config` (tables by name), `agent` (further options of it), `mode`, or
  `modes` by role, `world` (arguments of the world of the test file).
- `then`: `["approve", CALL]`, `["refuse", CALL, reason]`, `["settle", CALL, outcome, result]`, `["cancel"]`,
  `["resume", config]`; `["yes"]` and `["no"]`, to what waits first, and on. How the run stands by then: `["is", END,
  detail]`, `["open", CALLS]`, `["asked", texts of the last question]`. A call is its id, or the number of what waits.

What is seen, each where it is given:
- `end`: STATUS or STATUS/REASON. `answer`, or how it begins (`answer_begins`), `details` (texts in it), `output` (of a
  deliverable), `rounds`, `calls`, `tokens`, `requests` (by role where there are several; "<9": fewer than nine in all).
- `ran`: the lines of the world's book.
- `shown`: by the number of a request ("ROLE NUMBER" with several roles; "last" behind it: in its last message alone)
  texts that it holds; behind a "!" those that it does not. `asked`: fields of requests (`tools`, `mode`, `stop`,
  `roles`; `schema`: texts in it, or null).
- `events`: how many of each kind are on record, or of each one fields by their path. `rules`: those of all verdicts
  that have one.
- Of the gate: how many verdicts are questions (`asks`) and refusals (`denies`), the last `question`, the values of
  arguments that are `waiting`, the values `endorsed` by role.
- Of a plan: `refused` proposals, `statuses` of steps, tools `selected`, `retries` of steps and `replans`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol, cast

import pytest

from records import events_of
from surefoot import Agent, Attachment, LoopConfig, MemoryJournal, PlanStep, Run, Task
from surefoot.core.loop.fold import fold
from surefoot.core.state.state import Planning
from surefoot.telling.guard import question_lines
from surefoot.testing.journals import CheckedJournal
from surefoot.testing.models import NATIVE_FIRST, FunctionModel, Scripted, ScriptedModel, calls
from surefoot.types import errors
from surefoot.types.config import TABLES
from surefoot.types.events import CallJudged, Event, InStep, ValuesEndorsed
from surefoot.types.messages import CallMode, ModelMessage, ModelRequest, Usage
from surefoot.types.ports import JournalStore, Tool

Row = Mapping[str, Any]  # Any: JSON
Words = Mapping[str, Scripted | Callable[..., Scripted]]
Tasks = Mapping[str, Task]
_DATA = Path(__file__).parent / "data" / "scenes"


class World(Protocol):
    """What happens outside of a run: its tools, and the book of what they did."""

    @property
    def ran(self) -> list[str]: ...

    def tools(self) -> Sequence[Tool]: ...


def rows_in(table: str, group: str = "") -> list[Row]:
    """The rows of a table, or of one `group` of it."""
    lines = (_DATA / f"{table}.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row.get("group", "") == group]


def scenes(table: str, group: str = "") -> pytest.MarkDecorator:
    """A test for each of these rows."""
    rows = rows_in(table, group)
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
    models: Mapping[str, FunctionModel]
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
        self._hold_gate(row)
        for place, fields in row.get("asked", {}).items():
            _hold_asked(self._request(place), fields)
        for place, texts in row.get("shown", {}).items():
            self._hold_shown(place, texts)

    def _hold_gate(self, row: Row) -> None:
        judged = [one.decision.kind for one in self.events if isinstance(one, CallJudged) and not one.by]
        for name, kind in (("asks", "ask"), ("denies", "deny")):
            assert judged.count(kind) == row.get(name, judged.count(kind)), (name, judged)
        if "question" in row:
            _hold_texts(_question(self.events), row["question"])
        for value in row.get("waiting", ()):
            assert any(value in call.arguments.values() for call in self.run.waiting), value
        for role, wanted in row.get("endorsed", {}).items():
            endorsed = [value for one in self.events if isinstance(one, ValuesEndorsed) for value in one.values]
            assert {norm for each, norm in endorsed if each == role} == {*wanted}, endorsed

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


def _question(events: Sequence[Event]) -> str:
    """The lines of the last question."""
    asked = [one for one in events if isinstance(one, CallJudged) and one.decision.kind == "ask"][-1]
    call = fold(events).call(asked.call_id)
    assert call is not None
    return "\n".join((*question_lines(call, asked), getattr(asked.decision, "reason", "")))


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


def models_of(row: Row, words: Words | None = None) -> Mapping[str, ScriptedModel]:
    """The models of a row, by role."""
    given = row["said"]
    scripts = cast("Mapping[str, Sequence[Any]]", given if isinstance(given, dict) else {"solo": given})  # JSON
    modes: Mapping[str, CallMode] = {role: row["mode"] for role in scripts if "mode" in row} | row.get("modes", {})
    return {
        role: ScriptedModel(
            [said(line, words or {}) for line in _spread(script)],
            name=f"test:{role}",
            modes=(modes[role],) if role in modes else NATIVE_FIRST,
        )
        for role, script in scripts.items()
    }


def task_of(row: Row, text: str = "go") -> Task:
    """The task of a row."""
    attached = tuple(Attachment(*one) for one in row.get("attached", ()))
    return Task(row.get("task", text), attached, steps=tuple(PlanStep(**step) for step in row.get("steps", ())))


async def drive(agent: Agent, row: Row, task: str | Task = "go", run_id: str = "r") -> Run:
    """A run of a row: its task, and what a person does then."""
    run = await agent.run(task_of(row, task) if isinstance(task, str) else task, run_id=run_id)
    for do, *what in row.get("then", ()):
        run = await _done(agent, run, do, what)
    return run


async def play(
    row: Row,
    world: Callable[..., World],
    words: Words | None = None,
    task: str = "go",
    *,
    tasks: Tasks | None = None,
    model: FunctionModel | None = None,
    **options: Any,  # of the agent
) -> Played:
    """Play a row, and hold it to what is to be seen. Each run is replayed, and checked at every append.

    `model` takes the place of one that says the script of the row.
    """
    store, real = CheckedJournal(MemoryJournal()), world(**row.get("world", {}))
    models = models_of(row, words) if model is None else {"solo": model}
    given = {**options, **row.get("agent", {})}
    config = config_of({**given.pop("config", {}), **row.get("config", {})})
    agent = Agent(models if len(models) > 1 else models["solo"], real.tools(), journal=store, config=config, **given)
    run = await drive(agent, row, (tasks or {}).get(row.get("task", task), task))
    played = Played(run, agent, real, models, await events_of(store, "r"))
    played.hold(row)
    return played


def _spread(script: Sequence[Any]) -> Iterator[Any]:  # Any: JSON
    """A script with each of its lines as often as it is said."""
    for line in script:
        is_often = isinstance(line, dict) and "times" in line
        yield from cast("list[Any]", [*line["said"]] * line["times"] if is_often else [line])


async def _done(agent: Agent, run: Run, do: str, what: Sequence[Any]) -> Run:
    """One thing that a person does with a run, or sees of it."""
    match do, *what:
        case "is", end, *detail:
            assert _end(run, end) == end, run
            assert "".join(detail) in run.detail
        case "open", ids:
            assert [call.id for call in run.waiting] == ids, run.waiting
        case "asked", texts:
            _hold_texts(_question(await events_of(cast("JournalStore", agent.journal), run.id)), texts)
        case "resume", *config:
            return await (agent.resume(run.id, config=config_of(config[0])) if config else agent.resume(run.id))
        case "cancel", *_:
            return await agent.cancel(run.id, by="Ada")
        case "yes", *_:
            await agent.approve(run.id, run.waiting[0].id, by="Ada")
            return await agent.resume(run.id)
        case "no", *_:
            await agent.refuse(run.id, run.waiting[0].id, by="Ada")
            return await agent.resume(run.id)
        case "approve", call:
            return await agent.approve(run.id, _id(run, call), by="Ada")
        case "refuse", call, *reason:
            return await agent.refuse(run.id, _id(run, call), by="Ada", reason="".join(reason))
        case "settle", call, outcome, *result:
            return await agent.settle(run.id, _id(run, call), outcome, by="Ada", result="".join(result))
        case _:
            raise ValueError(do)
    return run


def _id(run: Run, call: str | int) -> str:
    return call if isinstance(call, str) else run.waiting[call].id


def _end(run: Run, like: str) -> str:
    return f"{run.status}/{run.reason}" if "/" in like else run.status
