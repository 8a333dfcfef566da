"""The conformance command, `python -m surefoot.testing.conformance KIND FILE`: runs a file of cases.

The answer is JSON on standard output, `{"results": {case id: got}}`. A kind is a row of `KINDS`: a function from the
decoded file to the results. A case that cannot be run has `{"fault": why}` for its result.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, cast

from surefoot.core.parse.reply import parse
from surefoot.core.select.profile import apply, canonical
from surefoot.core.text import object_schema
from surefoot.core.text.look import similarity
from surefoot.knowledge.bridge import KnowledgeBridge
from surefoot.knowledge.prefetch.extract import Extraction, references_in
from surefoot.knowledge.prefetch.hydrate import examined, hydrated, lookups
from surefoot.knowledge.tools import knowledge_tools
from surefoot.progress import ProgressTracker
from surefoot.testing.world import orchestrator_scenarios
from surefoot.types.errors import ConfigError
from surefoot.types.knowledge import ROOT, ConventionsConfig, Knowledge
from surefoot.types.messages import NativeCall
from surefoot.types.ports import ToolCallContext
from surefoot.types.prehydration import PreHydrationConfig, Reference
from surefoot.types.progress import StepDecision, StepIterationConfig
from surefoot.types.selection import ToolProfile
from surefoot.types.tools import Catalogue, ToolResult, ToolSpec

Case = Mapping[str, Any]  # Any: JSON, whose shape is its authors' promise
Results = dict[str, object]

_TOOL_SET = re.compile(r"tool set \{([^}]*)\}")
_INPUT: Case = object_schema({"input": {"type": "string"}})


def expand(value: Any) -> Any:  # Any: JSON
    """Build the long strings that cases spell as `{"repeat": [s, n]}` or `{"concat": […]}`."""
    match value:
        case {"repeat": [text, times], **rest} if not rest:
            return text * times
        case {"concat": [*parts], **rest} if not rest:
            return "".join(str(expand(part)) for part in parts)
        case dict():
            return {key: expand(member) for key, member in cast("Case", value).items()}
        case list():
            return [expand(item) for item in cast("list[Any]", value)]
        case _:
            return value


def react_text(data: Case) -> Results:
    """Text or message -> calls, final, error, with the file's tools and the dialect `react`."""
    tools = [ToolSpec(name, "", _schema(given), effect="read") for name, given in data["tools"].items()]
    return {case["id"]: _parsed(case, tools, "react") for case in data["vectors"]}


def function_call_tags(data: Case) -> Results:
    """Text -> calls, final, error in the tags dialect; tools only where a note tells the set."""
    results: Results = {}
    for case in data["vectors"]:
        told = _TOOL_SET.search(case.get("note", ""))
        names = [name.strip() for name in told.group(1).split(",")] if told else []
        results[case["id"]] = _parsed(case, _tools([*names, *case.get("tools", ())]), "tags")
    return results


def tool_call_formats(data: Case) -> Results:
    """Text -> calls, content, final, error in the family that the case names."""
    dialects = {case["id"]: case.get("format", "auto_detect").removesuffix("_detect") for case in data["vectors"]}
    return {case["id"]: _parsed(case, _tools(case.get("tools", ())), dialects[case["id"]]) for case in data["vectors"]}


def _parsed(case: Case, tools: Sequence[ToolSpec], dialect: str) -> Results:
    message = case.get("message", {"content": case.get("text", "")})
    calls = [NativeCall(call["id"], call["name"], call["arguments"]) for call in message.get("tool_calls") or ()]
    parsed = parse(
        message.get("content") or "",
        tools,
        dialect=dialect,
        tool_calls=calls,
        finish_reason=case.get("finish_reason", "stop"),
    )
    return {
        "calls": [{"name": call.name, "arguments": call.arguments} for call in parsed.calls],
        "call_ids": [call.id for call in parsed.calls],
        "final": parsed.final,
        "content": parsed.content,
        "error": parsed.error.kind if parsed.error else None,
        "errors": [{"position": faulty.position, "error": faulty.error.kind} for faulty in parsed.errors],
        "warnings": sorted(parsed.warnings),
    }


def _tools(declared: Sequence[str | Case]) -> list[ToolSpec]:
    """The tools of a case: bare names, or names with parameters, of which none is required unless the case says so."""
    tools: list[ToolSpec] = []
    for tool in declared:
        row: Case = {"name": tool, "parameters": {"type": "object"}} if isinstance(tool, str) else tool
        schema: Case = row.get("parameters", {})
        if "properties" not in schema and schema.get("type") != "object":
            schema = {**_schema(schema), "required": row.get("required", [])}
        tools.append(ToolSpec(row["name"], "", schema, effect="read"))
    return tools


def _schema(parameters: Mapping[str, str]) -> Case:
    """A JSON Schema from `name -> type`; `a|b` is a union, and a `?` behind the name makes it optional."""
    properties = {
        name.rstrip("?"): {"anyOf": [{"type": one} for one in types.split("|")]} if "|" in types else {"type": types}
        for name, types in parameters.items()
    }
    required = [name for name in parameters if not name.endswith("?")]
    return {"type": "object", "properties": properties, "required": required}


def symbiont_tool_profile(data: Case) -> Results:
    """What is visible, what dropped, what warned of. The tools of `vectors` are local, those of `adversarial` remote.

    Tools are registered under their names in NFC; the results tell each by the name that its case gives it.
    """
    results: Results = {}
    origins: dict[str, Literal["local", "remote"]] = {"vectors": "local", "adversarial": "remote"}
    for group, origin in origins.items():
        for case in data.get(group, ()):
            tools = [
                ToolSpec(row["name"], row.get("description") or "", {"type": "object"}, effect="read", origin=origin)
                for row in case["tools"]
            ]
            try:
                report = apply(tools, ToolProfile.from_json(case.get("profile", {})))
            except ConfigError as error:
                results[case["id"]] = {"config_error": str(error)}
                continue
            given = {canonical(tool.name): tool.name for tool in reversed(tools)}  # of equal names, the first counts
            results[case["id"]] = {
                "visible": [given[name] for name in report.visible],
                "dropped": [name if stage == "registration" else given[name] for name, stage, _ in report.dropped],
                "warnings": list(report.warnings),
            }
    return results


def symbiont_progress(data: Case) -> Results:
    """The decisions of each case, one entry an event; for `similarity-N` the number."""
    pairs = enumerate(data.get("similarity", ()))
    results: Results = {f"similarity-{at}": similarity(case["a"], case["b"]) for at, case in pairs}
    for case in [*data.get("vectors", ()), *data.get("adversarial", ())]:
        try:
            tracker = ProgressTracker(StepIterationConfig.from_json(case.get("config") or {}))
        except ConfigError as error:
            results[case["id"]] = {"config_error": str(error)}
            continue
        answers = [_track(tracker, event) for event in case.get("events", ())]
        decisions = [
            {"decision": one.decision, "kind": one.kind, "reason": one.reason} if isinstance(one, StepDecision) else one
            for one in answers
        ]
        results[case["id"]] = {"decisions": decisions}
    return results


def _track(tracker: ProgressTracker, event: Case) -> object:
    step, error, call = event["step"], event.get("error", ""), event.get("call")
    if "args" in event:
        call = {"name": call, "arguments": event["args"]}
    match event["op"]:
        case "begin":
            return tracker.begin_step(step)
        case "record":
            return tracker.record(step, error, call=call)
        case "record_and_check":
            return tracker.record_and_check(step, error, call=call, infrastructure=bool(event.get("infrastructure")))
        case "observe":
            result, ok, polling = event.get("result", ""), bool(event.get("ok", True)), bool(event.get("polling"))
            return tracker.observe(step, call, ok=ok, result=result, polling=polling)
        case "check" | "succeed" | "success" | "reset" | "count" as op:
            return getattr(tracker, op.replace("success", "succeed"))(step)
        case other:
            raise ValueError(f"unknown op {other!r} of step {step!r}: see the `format` of the case file")


def symbiont_prehydrate(data: Case) -> Results:
    """`extraction` and `adversarial` -> [[type, value], …] or the error; `hydration` -> the context.

    Cases of kind "property" describe a rule instead of a text, and are left out: they need a run.
    """
    results: Results = {}
    for case in (*data["extraction"], *data["adversarial"]):
        if case.get("kind") == "property":
            continue
        try:
            config = PreHydrationConfig.from_json(case.get("config", {}))
        except ConfigError as error:
            results[case["id"]] = {"config_error": str(error)}
            continue
        found = asyncio.run(references_in([case["input"]], config))
        results[case["id"]] = [[ref.type, ref.value] for ref in found.references]
    for case in data["hydration"]:
        config = PreHydrationConfig.from_json(case["config"])
        names = {resolver.tool for kind in config.resolution_tools if (resolver := config.resolver(kind))}
        tools = Catalogue(tuple(ToolSpec(name, "", _INPUT, effect="read") for name in sorted(names)))
        made = lookups(config, tools)
        references = examined([Reference(*ref) for ref in case["references"]], made, tools)
        given = [ToolResult(row["content"], kind="error" if row.get("is_error") else "ok") for row in case["results"]]
        ids = [f"prehydrate_{at}" for at, ref in enumerate(references) if ref.type in made]  # also of one refused
        pairs = [*zip(ids, given, strict=False)]
        outcomes = dict(reversed(pairs) if case.get("reverse") else pairs)
        context = hydrated(Extraction(references), outcomes, config, run_id="conformance")
        results[case["id"]] = {
            "resolved": [
                {"ref": [each.ref.type, each.ref.value], "content": each.content, "tokens": each.tokens}
                for each in context.resolved
            ],
            "failed": [{"ref": [each.ref.type, each.ref.value], "error": each.error} for each in context.failed],
            "total_tokens": context.total_tokens,
            "message": context.message,
        }
    return results


def symbiont_conventions(data: Case) -> Results:
    """Calls of `recall_knowledge` -> `{"output": text}` or `{"error": text}`, each with a store of its own.

    The cases were made for a search by text, so their queries tell the place: "rust conventions src/api" is the scope
    src/api for rust, "rust conventions " the root, "rust conventions" the language alone; all else is plain knowledge.
    """
    return {case["id"]: asyncio.run(_recall(case)) for case in data["vectors"]}


async def _recall(case: Case) -> dict[str, str]:
    entries: list[Knowledge] = []
    for query, items in case["store"].items():
        language, mark, place = query.partition(" conventions")
        is_placed = mark and place[:1] in ("", " ")
        where = {"language": language, "scope": place[1:] or ROOT if place else ""} if is_placed else {}
        for item in items:
            entry = Knowledge(item["content"], type=item.get("type", "Fact"), confidence=item.get("confidence", 0.8))
            entries.append(replace(entry, **where))
    with TemporaryDirectory() as folder:
        path = Path(folder, "knowledge.db")
        bridge = KnowledgeBridge(ConventionsConfig(folder, store=str(path)))
        try:
            await bridge.add(entries)
            if case.get("errors"):  # a search that fails: its file is none of ours any more
                await bridge.aclose()
                await asyncio.to_thread(path.write_bytes, b"no store")
            result = await knowledge_tools(bridge)[0].call(case["arguments"], ToolCallContext("run", "1.0", "key"))
        finally:
            await bridge.aclose()
    return {"error" if result.is_error else "output": result.content}


KINDS: dict[str, Callable[[Case], Results]] = {
    kind.__name__: kind
    for kind in (
        react_text,
        function_call_tags,
        tool_call_formats,
        symbiont_tool_profile,
        symbiont_progress,
        symbiont_prehydrate,
        symbiont_conventions,
        orchestrator_scenarios,
    )
}
"""Kind -> (the decoded file, strings built) -> what came out, by case id. A new kind is a row here."""


def main(arguments: Sequence[str]) -> int:
    """Run the command. 0 when the file was run, 1 when a case of it cannot be, 2 when the file cannot be."""
    if len(arguments) != 2:  # noqa: PLR2004  # a kind and a file
        sys.stderr.write("usage: python -m surefoot.testing.conformance KIND FILE\n")
        return 2
    kind, file = arguments
    if kind not in KINDS:
        sys.stderr.write(f"unknown kind {kind!r}: choose one of {', '.join(KINDS)}\n")
        return 2
    data, is_whole = expand(json.loads(Path(file).read_text(encoding="utf-8"))), True
    try:
        results = KINDS[kind](data)
    except Exception:  # noqa: BLE001  # one bad case does not hide what the others come to: each runs as if it were alone
        results: Results = {}
        groups: dict[str, list[Case]] = {
            name: some
            for name, some in data.items()
            if isinstance(some, list)
            and all(isinstance(one, dict) and "id" in one for one in cast("list[object]", some))  # from JSON
        }
        for name, case in ((name, case) for name, cases in groups.items() for case in cases):
            try:
                results |= KINDS[kind]({**data, **dict.fromkeys(groups, ()), name: [case]})
            except Exception as error:  # noqa: BLE001  # whatever a case that nobody has checked leads to
                results[str(case["id"])] = {"fault": f"{type(error).__name__}: {error}"}
                is_whole = False
    sys.stdout.write(json.dumps({"results": results}) + "\n")
    return 0 if is_whole else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
