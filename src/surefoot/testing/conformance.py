"""The conformance command, `python -m surefoot.testing.conformance KIND FILE`: runs a file of cases.

The answer is JSON on standard output, `{"results": {case id: got}}`. A kind is a row of `KINDS`: a function from the
decoded file to the results. A case that cannot be run has `{"fault": why}` for its result.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from surefoot.core.parse.reply import parse
from surefoot.testing.kinds_conventions import symbiont_conventions
from surefoot.testing.kinds_orchestrator import orchestrator_scenarios
from surefoot.testing.kinds_prehydrate import symbiont_prehydrate
from surefoot.testing.kinds_profile import symbiont_tool_profile
from surefoot.testing.kinds_progress import symbiont_progress
from surefoot.types.messages import NativeCall
from surefoot.types.reply import Parsed
from surefoot.types.tools import ToolSpec

Case = Mapping[str, object]
Results = dict[str, object]

_TOOL_SET = re.compile(r"tool set \{([^}]*)\}")


def expand(value: object) -> object:
    """Build the long strings that cases spell as `{"repeat": [s, n]}` or `{"concat": […]}`."""
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)  # from JSON
        if set(members) == {"repeat"}:
            text, times = cast("tuple[str, int]", members["repeat"])  # as the case files have it
            return text * times
        if set(members) == {"concat"}:
            return "".join(str(expand(part)) for part in _list(members["concat"]))
        return {key: expand(member) for key, member in members.items()}
    return [expand(item) for item in cast("list[object]", value)] if isinstance(value, list) else value  # from JSON


def react_text(data: Case) -> Results:
    """Text or message -> calls, final, error, with the file's tools and the dialect `react`."""
    tools = _declared(_case(data["tools"]), optional=False)
    results: Results = {}
    for case in _cases(data):
        message = _case(case.get("message", {"content": case.get("text", "")}))
        calls = [
            NativeCall(str(call["id"]), str(call["name"]), cast("str", call["arguments"]))  # text, or an object
            for call in map(_case, _list(message.get("tool_calls") or []))
        ]
        results[str(case["id"])] = _got(
            parse(
                str(message.get("content") or ""),
                tools,
                dialect="react",
                tool_calls=calls,
                finish_reason=str(case.get("finish_reason", "stop")),
            )
        )
    return results


def function_call_tags(data: Case) -> Results:
    """Text -> calls, final, error in the tags dialect; tools only where a note tells the set."""
    results: Results = {}
    for case in _cases(data):
        told = _TOOL_SET.search(str(case.get("note", "")))
        names = [name.strip() for name in told.group(1).split(",")] if told else []
        results[str(case["id"])] = _parsed(case, _tools([*names, *_list(case.get("tools", []))]), "tags")
    return results


def tool_call_formats(data: Case) -> Results:
    """Text -> calls, content, final, error in the family that the case names."""
    results: Results = {}
    for case in _cases(data):
        dialect = str(case.get("format", "auto_detect"))
        tools = _tools(_list(case.get("tools", [])))
        results[str(case["id"])] = _parsed(case, tools, "auto" if dialect == "auto_detect" else dialect)
    return results


KINDS: dict[str, Callable[[Case], Results]] = {
    "react_text": react_text,
    "function_call_tags": function_call_tags,
    "tool_call_formats": tool_call_formats,
    "symbiont_tool_profile": symbiont_tool_profile,
    "symbiont_progress": symbiont_progress,
    "symbiont_prehydrate": symbiont_prehydrate,
    "symbiont_conventions": symbiont_conventions,
    "orchestrator_scenarios": orchestrator_scenarios,
}
"""Kind -> (the decoded file, strings built) -> what came out, by case id. A new kind is a row here."""


def _parsed(case: Case, tools: Sequence[ToolSpec], dialect: str) -> Results:
    finish_reason = str(case.get("finish_reason", "stop"))
    return _got(parse(str(case["text"]), tools, dialect=dialect, finish_reason=finish_reason))


def _got(parsed: Parsed) -> Results:
    return {
        "calls": [{"name": call.name, "arguments": call.arguments} for call in parsed.calls],
        "call_ids": [call.id for call in parsed.calls],
        "final": parsed.final,
        "content": parsed.content,
        "error": parsed.error.kind if parsed.error else None,
        "errors": [{"position": faulty.position, "error": faulty.error.kind} for faulty in parsed.errors],
        "warnings": sorted(parsed.warnings),
    }


def _tools(declared: Sequence[object]) -> tuple[ToolSpec, ...]:
    """The tools of a case: bare names, or names with parameters, of which none is required unless the case says so."""
    tools: list[ToolSpec] = []
    for tool in declared:
        if isinstance(tool, str):
            tools.append(ToolSpec(tool, "", {"type": "object"}, effect="read"))
            continue
        row = _case(tool)
        parameters = _case(row.get("parameters", {}))
        if "properties" in parameters or parameters.get("type") == "object":
            schema = parameters
        else:
            schema = {
                **_schema(parameters, optional=True),
                **({"required": row["required"]} if "required" in row else {}),
            }
        tools.append(ToolSpec(str(row["name"]), "", schema, effect="read"))
    return tuple(tools)


def _declared(declared: Case, *, optional: bool) -> tuple[ToolSpec, ...]:
    return tuple(
        ToolSpec(name, "", _schema(_case(parameters), optional=optional), effect="read")
        for name, parameters in declared.items()
    )


def _schema(parameters: Case, *, optional: bool) -> Case:
    """A JSON Schema from `name -> type`; `a|b` is a union, and a `?` behind the name makes it optional."""
    properties = {
        name.rstrip("?"): {"anyOf": [{"type": one} for one in str(types).split("|")]}
        if "|" in str(types)
        else {"type": types}
        for name, types in parameters.items()
    }
    required = [] if optional else [name for name in parameters if not name.endswith("?")]
    return {"type": "object", "properties": properties, "required": required}


def _cases(data: Case) -> list[Case]:
    return [_case(case) for case in _list(data["vectors"])]


def _case(value: object) -> Case:
    return cast("Case", value)  # the shape of the case files is their authors' promise


def _list(value: object) -> list[object]:
    return cast("list[object]", value)  # the same


def _each_alone(kind: str, data: Case) -> tuple[Results, bool]:
    """The results of a file with a case that cannot be run, each case as if it were alone; whether all could be run."""
    groups = {name: list(map(_case, _list(some))) for name, some in data.items() if _is_of_cases(some)}
    results: Results = {}
    is_whole = True
    for name, cases in groups.items():
        for case in cases:
            try:
                results |= KINDS[kind]({**data, **dict.fromkeys(groups, ()), name: [case]})
            except Exception as error:  # noqa: BLE001  # whatever a case that nobody has checked leads to
                results[str(case["id"])] = {"fault": f"{type(error).__name__}: {error}"}
                is_whole = False
    return results, is_whole


def _is_of_cases(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, dict) and "id" in one
        for one in cast("list[object]", value)  # from JSON
    )


def main(arguments: Sequence[str]) -> int:
    """Run the command. 0 when the file was run, 1 when a case of it cannot be, 2 when the file cannot be."""
    if len(arguments) != 2:  # noqa: PLR2004  # a kind and a file
        sys.stderr.write("usage: python -m surefoot.testing.conformance KIND FILE\n")
        return 2
    kind, file = arguments
    if kind not in KINDS:
        sys.stderr.write(f"unknown kind {kind!r}: choose one of {', '.join(KINDS)}\n")
        return 2
    data = _case(expand(json.loads(Path(file).read_text(encoding="utf-8"))))
    try:
        results, is_whole = KINDS[kind](data), True
    except Exception:  # noqa: BLE001  # so that one bad case does not hide what the others come to
        results, is_whole = _each_alone(kind, data)
    sys.stdout.write(json.dumps({"results": results}) + "\n")
    return 0 if is_whole else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
