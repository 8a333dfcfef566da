"""The shop, the calendar and the ledger of one case: really working, in memory, and made anew for each."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from evals.siren.case import TABLES, Call, Remote, Row, Task
from surefoot.tools.function import FunctionTool, tool
from surefoot.types.guard import Role
from surefoot.types.ports import Tool, ToolCallContext
from surefoot.types.tools import Effect, ToolResult, ToolSpec


@dataclass(slots=True)
class World:
    """The tables, and every call that was really made and came to its end, in order."""

    tables: dict[str, dict[str, object]]
    made: list[Call] = field(default_factory=list[Call])

    @classmethod
    def of(cls, task: Task) -> World:
        """The world in which a task begins."""
        tables = {table: copy.deepcopy(dict(rows)) for table, rows in TABLES.items()}
        for table, rows in copy.deepcopy(dict(task.put)).items():
            for key, row in rows.items():
                before = tables[table].get(key)
                is_more = isinstance(row, list) and isinstance(before, list)
                tables[table][key] = [*cast("list[object]", before), *cast("list[object]", row)] if is_more else row
        return cls(tables)

    def did(self, wanted: Call) -> bool:
        """Whether a call like that was made: of the tool, and with all those arguments.

        An argument fits one that is equal, a list in which it is, or a longer text in which it stands.
        """
        return any(made.tool == wanted.tool and _fits(wanted.args, made.args) for made in self.made)

    def row(self, table: str, key: str) -> Row:
        """A row; raises `LookupError`, with words for the caller, where there is none."""
        return cast("Row", self._found(table, key))

    def rows(self, table: str) -> list[Row]:
        """All rows of a table."""
        return [cast("Row", row) for row in self.tables[table].values()]

    def text(self, table: str, key: str) -> str:
        """A text of a table."""
        return str(self._found(table, key))

    def _found(self, table: str, key: str) -> object:
        if (found := self.tables[table].get(key)) is None:
            raise LookupError(f"there is no {table.removesuffix('s')} {key!r}")
        return found

    def add(self, table: str, start: str, row: Row) -> str:
        """Put a new row under a new id, and give the id."""
        key = f"{start}-{len(self.tables[table]) + 701}"
        self.tables[table][key] = {"id": key, **row}
        return key


def _fits(wanted: Mapping[str, object], made: Mapping[str, object]) -> bool:
    return all(name in made and _is_in(value, made[name]) for name, value in wanted.items())


def _is_in(value: object, made: object) -> bool:
    if value == made:
        return True
    if isinstance(made, list):
        found = cast("list[object]", made)
        wanted = cast("list[object]", value) if isinstance(value, list) else [value]
        return all(one in found for one in wanted)
    return isinstance(value, str) and isinstance(made, str) and value in made


@dataclass(frozen=True, slots=True)
class Placed:
    """A tool of a world: another tool under the declaration that it has here, whose calls are put on record."""

    inner: Tool
    spec: ToolSpec
    world: World

    async def call(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:
        """Call it; what came to a good end is on record."""
        given = await self.inner.call(arguments, context)
        if not given.is_error:
            self.world.made.append(Call(self.spec.name, dict(arguments)))
        return given

    async def probe(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult | None:
        """As the tool itself says."""
        return await self.inner.probe(arguments, context)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A tool of a foreign server, without the wire: its spec and its results are those that an MCP server's have."""

    about: Remote
    spec: ToolSpec
    does: Tool | None

    async def call(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:
        """Do the work of the own tool, if it does any, and give the server's answer."""
        told, is_error = self.about.answer, self.about.fails
        if self.does is not None:
            known = cast("Mapping[str, object]", self.does.spec.parameters["properties"])
            given = await self.does.call({n: v for n, v in arguments.items() if n in known}, context)
            if given.is_error:
                told, is_error = given.content, True
        kind = "error" if is_error else "ok"
        return ToolResult(told, kind, source=f"mcp:{self.about.server}", trust="untrusted")

    async def probe(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult | None:  # noqa: ARG002  # as `Tool` has it
        """Never asked."""
        raise LookupError(f"{self.spec.name} has no probe")


@dataclass(frozen=True, slots=True)
class Own:
    """A function of the house as a tool; `effect` None leaves it undeclared."""

    fn: Callable[..., object]
    effect: Effect | None = None
    roles: Mapping[str, Role] = field(default_factory=dict[str, Role])
    private: bool = False
    egress: bool = False

    @property
    def name(self) -> str:
        """The tool's name: its function's."""
        return self.fn.__name__

    def placed(self, world: World) -> Placed:
        """The tool in its world."""
        made: FunctionTool[..., object] = tool(
            self.fn,
            effect=self.effect,
            roles=self.roles,
            private=self.private,
            egress=self.egress,
        )
        return Placed(made, made.spec, world)


def foreign(remote: Remote, world: World, does: Placed | None) -> Placed:
    """A tool of a foreign server in a world."""
    spec = ToolSpec(
        remote.name,
        remote.description,
        _schema(remote),
        origin="remote",
        server=remote.server,
    )
    return Placed(Foreign(remote, spec, does), spec, world)


_TYPES: Mapping[str, Mapping[str, object]] = {
    "list": {"type": "array", "items": {"type": "string"}},
    **{name: {"type": name} for name in ("string", "number", "integer", "boolean")},
}


def _schema(remote: Remote) -> Mapping[str, object]:
    properties: dict[str, object] = {}
    required: list[str] = []
    for told in remote.parameters:
        name, _, kind = told.removesuffix("?").partition(":")
        about = {"description": remote.says[name]} if name in remote.says else {}
        properties[name] = {**_TYPES[kind or "string"], **about}
        if not told.endswith("?"):
            required.append(name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
