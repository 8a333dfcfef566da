"""Values that a form gives as bare text (XML-like families, ReAct words), typed by the tool's schema.

JSON first, then a literal; a text parameter stays text, and so does everything where no schema says more. Source:
spec/react.md, section 5.
"""

from __future__ import annotations

from surefoot.core.parse.json_ladder import LENIENT, Rules, read
from surefoot.core.parse.json_strict import NotJsonError
from surefoot.core.parse.schema import properties_of, type_name, types_of
from surefoot.types.tools import ToolSpec


def typed(text: str, parameter: str, tool: ToolSpec | None, rules: Rules = LENIENT) -> tuple[object, bool]:
    """The value of a parameter that was written as `text`, and whether its JSON had to be repaired."""
    if tool is None:
        return text, False
    schema = properties_of(tool.parameters).get(parameter)
    types: frozenset[str] = types_of(schema, tool.parameters) if schema is not None else frozenset()
    if types <= {"string"}:
        return text, False
    stripped = text.strip()
    try:
        value = read(stripped, 0, rules)
    except NotJsonError:
        return text, False
    if value.end != len(stripped):
        return text, False
    found = type_name(value.value)
    if found == "string" and "string" in types:  # quotes that belong to a text are part of it
        return text, False
    fits = found in types or (found == "integer" and "number" in types) or (found == "number" and "integer" in types)
    return (value.value, value.repaired and found in ("object", "array")) if fits else (text, False)
