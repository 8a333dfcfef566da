"""`surefoot check --replay`: the gate held over recorded runs of other agents, in the form of OpenAI's chat messages.

A line of the file is a run: `{"messages": […], "tools": […], "date": "2026-05-15"}`, or the list of messages alone.
The tools and the date may be left out. A line that is wrong is told and left out; the others are read.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast, get_args

from surefoot.cli.exits import CODES, DONE
from surefoot.cli.lines import in_columns
from surefoot.cli.live import put, stdout
from surefoot.core.gate.keeper import Held, judge_recorded
from surefoot.models.json_edge import Json, decoded, items, mapping, read, text
from surefoot.telling.text import Line, count, json_line, one_line
from surefoot.types.errors import UsageError
from surefoot.types.guard import GuardConfig
from surefoot.types.messages import ModelMessage, NativeCall, Role
from surefoot.types.outcomes import Allow
from surefoot.types.tools import ToolSpec

MOST_TOLD = 20
"""Wrong lines that are told one by one; the last line of the output counts all of them."""

_ROLES: Mapping[str, Role] = {"developer": "system", **{role: role for role in get_args(Role)}}
_KINDS = ("allow", "ask", "deny")
_WIDTH = 160


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded run: its messages, the tools that it was offered or called, the day on which it ran ("": unknown)."""

    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolSpec, ...]
    date: str = ""

    @classmethod
    def of(cls, line: bytes, given: Mapping[str, ToolSpec]) -> Recorded:
        """The run of a line. A tool is as `given`, else as the line says, else known by its name and arguments alone.

        Raises `UsageError` that says what is wrong.
        """
        try:
            told, _ = decoded(line.strip())
        except ValueError as error:
            raise UsageError(f"not valid JSON ({error})") from error
        run = mapping(told) or {"messages": told}
        if "messages" not in run:
            raise UsageError('an object without "messages"')
        messages = tuple(_message(at, mapping(one)) for at, one in enumerate(_list_at(run, "messages")))
        properties: dict[str, dict[str, object]] = {}
        for call in (call for message in messages for call in message.calls):
            names = () if isinstance(call.arguments, str) else call.arguments
            properties.setdefault(call.name, {}).update((name, True) for name in names)
        by_name = {name: ToolSpec(name, "", {"type": "object", "properties": p}) for name, p in properties.items()}
        listed = {spec.name: spec for spec in map(_tool, _list_at(run, "tools"))}
        return cls(messages, tuple({**by_name, **listed, **given}.values()), text(run.get("date")))


def _list_at(told: Json, key: str) -> list[object]:
    """A list that may be missing; what stands in its place is told, so that no call is passed over."""
    if (found := told.get(key)) is not None and not isinstance(found, list):
        raise UsageError(f'"{key}" is not a list')
    return items(told.get(key))


def _message(at: int, told: Json) -> ModelMessage:
    role = _ROLES.get(text(told.get("role")))
    if role is None:
        raise UsageError(f"message {at} has no role of system, developer, user, assistant, tool")
    if told.get("function_call"):
        raise UsageError(f'message {at} has "function_call", the form before "tool_calls"; convert it')
    call_id = text(told.get("tool_call_id"))
    if role == "tool" and not call_id:
        raise UsageError(f'message {at} is a result without "tool_call_id"')
    calls = tuple(_call(at, mapping(one)) for one in _list_at(told, "tool_calls"))
    return ModelMessage(role, _content(at, told.get("content")), calls, call_id)


def _content(at: int, content: object) -> str:
    """The text of a message; of its parts only those that are text count."""
    if content is None or isinstance(content, str):
        return content or ""
    if not (parts := items(content)) and content != []:
        raise UsageError(f"message {at}: its content is neither text nor a list of parts")
    return "\n".join(one if isinstance(one, str) else text(mapping(one).get("text")) for one in parts)


def _call(at: int, told: Json) -> NativeCall:
    function, call_id = mapping(told.get("function")), text(told.get("id"))
    name, arguments = text(function.get("name")), function.get("arguments")
    if not call_id or not name:
        raise UsageError(f"message {at}: a call needs an id and the name of its function")
    if isinstance(arguments, str) and arguments:
        arguments = read(arguments)
    elif not arguments:
        arguments = {}
    return NativeCall(call_id, name, cast("Json", arguments) if isinstance(arguments, dict) else "")


def _tool(told: object) -> ToolSpec:
    about = mapping(mapping(told).get("function")) or mapping(told)
    if not text(about.get("name")):
        raise UsageError("a tool without a name")
    return ToolSpec(text(about["name"]), text(about.get("description")), mapping(about.get("parameters")))


@dataclass(slots=True)
class Counts:
    """What the gate said of all calls, by tool and by rule; the first call of each rule, in words."""

    runs: int = 0
    wrong: list[int] = field(default_factory=list[int])
    tools: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    rules: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    first: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, number: int, one: Held) -> None:
        self.tools[one.name, one.decision.kind] += 1
        if not isinstance(one.decision, Allow):
            self.rules[one.rule, one.decision.kind] += 1
            odd = f" ({e.path}: {e.value[:60]})" if (e := next(iter(one.grounds.evidence), None)) else ""
            self.first.setdefault(one.rule, one_line(f"line {number}: {one.name}: {_why(one)}{odd}"))

    @property
    def total(self) -> Mapping[str, int]:
        return {kind: sum(n for (_, k), n in self.tools.items() if k == kind) for kind in _KINDS}

    def lines(self) -> list[Line]:
        tools = {name: [self.tools[name, kind] for kind in _KINDS] for name in sorted({n for n, _ in self.tools})}
        told = _table(
            ("tool", "calls", "allowed", "asked", "refused"),
            ((one_line(name), *map(str, (sum(row), *row))) for name, row in tools.items()),
        )
        if self.rules:
            rows = ((rule, *(str(self.rules[rule, k]) for k in _KINDS[1:]), why) for rule, why in self.first.items())
            told += _table(("rule", "asked", "refused", "first"), rows)
        allowed, asked, refused = self.total.values()
        total = f"{count(allowed + asked + refused, 'call')} in {count(self.runs, 'run')}: {allowed:,} allowed"
        skipped = f"; {count(len(self.wrong), 'line')} left out" if self.wrong else ""
        return [*told, Line(f"{total}, {asked:,} asked, {refused:,} refused{skipped}", "head")]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[Line]:
    first, *others = in_columns([head, *rows], _WIDTH)
    return [Line(first, "head"), *map(Line, others), Line("")]


def replay(path: Path, given: Sequence[ToolSpec], config: GuardConfig, *, as_json: bool) -> int:
    """Hold the gate over each run of a file and tell what it says; the exit code is 3 where a line was left out.

    Raises `UsageError` for a file that cannot be read, or holds no run.
    """
    counts, tools = Counts(), {spec.name: spec for spec in given}
    for number, line in _lines(path):
        try:
            run = Recorded.of(line, tools)
        except UsageError as error:
            counts.wrong.append(number)
            if len(counts.wrong) <= MOST_TOLD:
                print(f"{path}, line {number}: {one_line(str(error))}; left out", file=sys.stderr)
            continue
        counts.runs += 1
        for at, one in enumerate(judge_recorded(run.messages, run.tools, config, run.date)):
            counts.add(number, one)
            if as_json:
                told: dict[str, object] = {"line": number, "call": at, "tool": one.name, "decision": one.decision.kind}
                if not isinstance(one.decision, Allow):
                    values = [{"path": e.path, "value": e.value, "origin": e.origin} for e in one.grounds.evidence]
                    told |= {"rule": one.rule, "also": one.grounds.also, "reason": _why(one), "values": values}
                print(json_line(told))
    if not counts.runs:
        raise UsageError(f"{path}: it contains no recorded run")
    if as_json:
        allowed, asked, refused = counts.total.values()
        sums = {"runs": counts.runs, "allowed": allowed, "asked": asked, "refused": refused}
        print(json_line({**sums, "left_out": counts.wrong}))
    else:
        put(stdout(), counts.lines())
    return CODES["completed_partial"] if counts.wrong else DONE


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            yield from ((number, line) for number, line in enumerate(file, 1) if line.strip())
    except OSError as error:
        raise UsageError(f"{path}: the file cannot be read: {error.strerror}; name another one") from error


def _why(one: Held) -> str:
    return one.grounds.reason_person or getattr(one.decision, "reason", "")
