"""The tools on offer, as the parser asks for them: by a name as a model writes it, and by what they take."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from surefoot.core.parse.schema import is_open, properties_of, required_of, resolve, type_name, types_of
from surefoot.core.parse.validate import Checked, Validator
from surefoot.core.text.json import as_object
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.tools import Catalogue, ToolSpec

_DECORATION = "`*[](){}<>\"' \t\r\n"
_PREFIX = "functions."
_BETWEEN = str.maketrans("", "", "_-. \t\\")
_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")


@dataclass(frozen=True, slots=True)
class Named:
    """A name as far as it could be told. Without any tools on offer every name is good and has no `tool`."""

    name: str
    tool: ToolSpec | None = None
    known: bool = True
    corrected: bool = False


class Offered:
    """The tools on offer. Validators are made when a tool is first called."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._by_name = {tool.name: Named(tool.name, tool) for tool in tools}
        self._validators: dict[str, Validator] = {}

    @property
    def any_name(self) -> bool:
        """Whether every name counts as a tool, since none was given."""
        return not self._by_name

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return tuple(named.tool for named in self._by_name.values() if named.tool)

    def find(self, written: str) -> Named:
        """The tool of a name as written: exact, without decoration, or the only one that looks the same (`fold`)."""
        if (exact := self._by_name.get(written)) is not None:
            return exact
        name = plain_name(written)
        if not self._by_name:
            return Named(name)
        if (exact := self._by_name.get(name)) is not None:
            return exact
        alike = self.folded.get(fold(name), ()) if name else ()
        if len(alike) == 1:
            return replace(self._by_name[alike[0]], corrected=True)
        return Named(name, known=False)

    @cached_property
    def folded(self) -> Mapping[str, tuple[str, ...]]:
        """The names by what they look like."""
        folded: dict[str, tuple[str, ...]] = {}
        for known in self._by_name:
            folded[fold(known)] = (*folded.get(fold(known), ()), known)
        return folded

    def check(self, tool: ToolSpec, arguments: Mapping[str, object]) -> Checked:
        """The arguments against the tool's schema."""
        validator = self._validators.get(tool.name)
        if validator is None:
            validator = self._validators[tool.name] = Validator(tool.parameters)
        return validator.check(arguments)


def offered_of(tools: Catalogue | Sequence[ToolSpec]) -> Offered:
    """The tools on offer; made once a catalogue."""
    if isinstance(tools, Catalogue):
        return tools.derived("parse", lambda catalogue: Offered(catalogue.tools))
    return Offered(tools)


def plain_name(written: str) -> str:
    """A name without decoration: back-ticks, brackets, quotes, asterisks, and the `functions.` of some families."""
    return without_escapes(written).strip(_DECORATION).removeprefix(_PREFIX)


def without_escapes(name: str) -> str:
    """A name or key without the backslashes that Markdown puts before punctuation."""
    return _ESCAPE.sub("", name) if "\\" in name else name


def fold(name: str) -> str:
    """A name or text as all have it that look the same: without case, and without what stands between words."""
    return name.casefold().translate(_BETWEEN)


def sole_parameter(tool: ToolSpec | None, of: str = "") -> str | None:
    """The parameter that bare text or a list binds to: the only one, or the only required text; of type `of`."""
    if tool is None:
        return None
    properties, required = properties_of(tool.parameters), required_of(tool.parameters)
    found = next(iter(properties)) if len(properties) == 1 else None
    if found is None and len(required) == 1 and "string" in types_of(properties.get(required[0]), tool.parameters):
        found = required[0]
    return found if found is not None and (not of or of in types_of(properties[found], tool.parameters)) else None


def unwrapped(arguments: Mapping[str, object], tool: ToolSpec) -> Mapping[str, object]:
    """The arguments without a wrapper key around them that the schema lacks."""
    if len(arguments) != 1 or is_open(tool.parameters):
        return arguments
    (key, inner), *_ = arguments.items()
    members = as_object(inner)
    if key not in WRAPPERS or key in properties_of(tool.parameters) or members is None:
        return arguments
    return members


WRAPPERS = frozenset({"args", "arguments", "parameters", "input", "params", "kwargs", "action_input", "tool_input"})


def signature(tool: ToolSpec) -> str:
    """The parameters of a tool by name and type, for a message: `city: string, unit: string (optional)`."""
    required = required_of(tool.parameters)
    rows: list[str] = []
    for name, part in properties_of(tool.parameters).items():
        types, found = types_of(part, tool.parameters), resolve(part, tool.parameters)
        words = type_name(found["enum"]) if not types and found and "enum" in found else " or ".join(sorted(types))
        rows.append(f"{name}: {words or 'any'}{'' if name in required else ' (optional)'}")
    return ", ".join(rows) or "none"


def takes_nothing(tool: ToolSpec | None) -> bool:
    """Whether a call without arguments is complete."""
    return tool is None or not required_of(tool.parameters)
