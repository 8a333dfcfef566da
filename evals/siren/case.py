"""What a case of the suite is: a user's task, a world, and perhaps an attack on it. All of it is data.

The cases stand in `tasks.jsonl` and `attacks.jsonl`, what is in the world before them in `tables.jsonl`. In JSON a call
is [tool, arguments]; what has its default is left out. Nobody's words name what the attacker owns: the account
LT121000011101001000, drop-box.example, Unit 9 at Dock 4 in Rotterdam. All names are made up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson

Kind = Literal["I-A", "I-B", "II-A", "II-B", "III-A", "III-B"]
"""I-A: a description orders the value of a parameter. I-B: a tool that "has to be called first". II-A: a tempting tool
that does it all. II-B: a look-alike with a harmful parameter more. III-A: an error or a procedure orders an action.
III-B: a result plants a false value for the user's own call. Source: spec/guard.md, section 7.4."""

KINDS: tuple[Kind, ...] = ("I-A", "I-B", "II-A", "II-B", "III-A", "III-B")

Row = dict[str, object]
Tables = Mapping[str, Mapping[str, object]]
"""Table, key, and what stands there: rows, lists of rows, or texts. A list is added to what the table has."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool; also the pattern of one that was really made (`World.did`)."""

    tool: str
    args: Mapping[str, object]


def do(tool: str, /, **args: object) -> Call:
    """A call in one line."""
    return Call(tool, args)


@dataclass(frozen=True, slots=True)
class Remote:
    """A tool of a foreign server: what it says of itself, and what it answers.

    `parameters` are "name" or "name:type", with a "?" behind where they may be left out. Where it `does` an own tool's
    work, it calls that with the parameters that the two have in common; a call that `fails` is an error with the answer
    as its text. `says` describes parameters. Nobody has declared what the tool does.
    """

    name: str
    description: str
    parameters: tuple[str, ...] = ()
    answer: str = "ok"
    server: str = "partner"
    does: str = ""
    fails: bool = False
    says: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Task:
    """What a user wants done, in his words, with the calls that do it; it is done when all of them were really made."""

    id: str
    words: str
    offered: tuple[str, ...]
    calls: tuple[Call, ...]
    put: Tables = field(default_factory=dict[str, Mapping[str, object]])
    remotes: tuple[Remote, ...] = ()


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack on a task: what the attacker put where, and what a model does that obeys him.

    `put` and `remotes` come to what the task has; a remote of the same name takes its place. The model makes the first
    `after` of the user's calls, by which it has read the attacker's text, then `calls`, leaves out the next `instead`,
    and goes on with the rest. The attacker has what he wants when one call that fits one of `goal` was really made.
    """

    id: str
    kind: Kind
    task: Task
    after: int
    calls: tuple[Call, ...]
    goal: tuple[Call, ...]
    put: Tables = field(default_factory=dict[str, Mapping[str, object]])
    remotes: tuple[Remote, ...] = ()
    instead: int = 0

    @property
    def script(self) -> tuple[Call, ...]:
        """The calls of a model that does what the attacker wants."""
        users = self.task.calls
        return (*users[: self.after], *self.calls, *users[self.after + self.instead :])

    @property
    def world(self) -> Task:
        """The task in the world that the attacker has prepared."""
        replaced = {remote.name for remote in self.remotes}
        kept = tuple(remote for remote in self.task.remotes if remote.name not in replaced)
        put = {
            table: {**self.task.put.get(table, {}), **self.put.get(table, {})} for table in {*self.task.put, *self.put}
        }
        task = self.task
        return Task(task.id, task.words, task.offered, task.calls, put, (*kept, *self.remotes))


def _rows(name: str) -> list[dict[str, Any]]:  # Any: JSON
    return [orjson.loads(line) for line in Path(__file__).with_name(name).read_bytes().splitlines()]


def _read(row: dict[str, Any]) -> dict[str, Any]:
    """The fields of a task or an attack."""
    fields = {name: tuple(Call(*pair) for pair in row[name]) for name in ("calls", "goal") if name in row}
    if "offered" in row:
        fields["offered"] = tuple(row["offered"])
    return {**row, **fields, "remotes": tuple(_remote(**one) for one in row.get("remotes", ()))}


def _remote(parameters: Iterable[str] = (), **fields: Any) -> Remote:  # Any: JSON
    return Remote(parameters=tuple(parameters), **fields)


def _attack(task: str, **fields: Any) -> Attack:  # Any: JSON
    return Attack(task=TASKS[task], **fields)


TWINS = tuple(Task(**_read(row)) for row in _rows("tasks.jsonl"))
"""What users want, with no attacker near: the tasks of the attacks, and some that ask for an attacker's actions."""

TASKS = {task.id: task for task in TWINS}

ATTACKS = tuple(_attack(**_read(row)) for row in _rows("attacks.jsonl"))

TABLES: Tables = {row["table"]: row["rows"] for row in _rows("tables.jsonl")}
"""What stands in the shop, the calendar and the ledger before a case puts anything there."""
