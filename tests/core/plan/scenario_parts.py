"""Our own scenarios of plans that repair themselves: `tests/data/plan_scenarios.jsonl`, spelled out as case files are.

A step is [id, tool, parameters, dependencies, more], a rule of a tool "ok" or {"fails": "CLASS:CODE"}, a reply
{"reflects": [about, action, data]}, {"overall": strategy} or {"plans": steps}; anything else stands as it is. A tool
that `does` does not tell of works. What a scenario expects is short: `end` is "STATUS/REASON", `calls` are
"STEP:TOOL:OUTCOME" in the order of their start, `params` the parameters of all calls, `refusals` "WHAT DETAIL".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

Json = dict[str, Any]  # Any: JSON

TOOLS: list[Json] = [
    {"id": "fetch", "category": "web", "idempotent": True}, {"id": "parse", "category": "text", "idempotent": True},
    {"id": "save", "category": "db", "idempotent": False}, {"id": "fetch2", "category": "web", "idempotent": True},
    {"id": "parse2", "category": "text", "idempotent": True}, {"id": "check", "category": "text", "idempotent": True},
]  # fmt: skip
LINE = [
    ["a", "fetch", {"url": "u"}],
    ["b", "parse", {"doc": "{{a.output}}"}, ["a"]],
    ["c", "save", {"x": "{{b.output}}"}, ["b"]],
]


def _step(row: Any) -> Any:  # Any: JSON
    if not isinstance(row, list):
        return row
    given: Json = dict(
        zip(("step_id", "tool_id", "parameters", "dependencies", "more"), cast("list[Any]", row), strict=False)
    )
    more = given.pop("more", {})
    return {"parameters": {}, "dependencies": [], **given, **more}


def _rule(row: Any) -> Json:  # Any: JSON
    match row:
        case "ok":
            return {"result": {"output": "ok"}}
        case {"fails": fault, **more}:
            cls, _, code = fault.partition(":")
            code = code or "x"
            return {"error": {"cls": cls, "code": code, "message": f"{cls} {code}"}, **more}
        case _:
            return row


def _reply(row: Json) -> Json:
    match row:
        case {"reflects": [about, action, data], **more}:
            reply = {"suggested_action": {"type": action, "data": data}}
            return {"kind": "step_reflection", "about": about, "reply": reply, **more}
        case {"overall": strategy, **more}:
            if strategy and "suggestions" in strategy:
                strategy = {**strategy, "suggestions": [_step(one) for one in strategy["suggestions"]]}
            reply = {"completion_percent": 30, "problem_class": "tool", "should_replan": strategy is not None}
            reply |= {"replanning_strategy": strategy, **more.pop("and", {})}
            return {"kind": "overall_reflection", "reply": reply, **more}
        case {"plans": steps, **more}:
            return {"kind": "decompose", "reply": {"steps": [_step(one) for one in steps]}, **more}
        case _:
            return row


def scenario(row: Json) -> Json:
    """One scenario as case files have it."""
    tools = row.get("tools", TOOLS)
    does = {tool["id"]: ["ok"] for tool in tools} | row.get("does", {})
    case: Json = {
        "id": row["id"],
        "tools": tools,
        "tool_behaviour": {name: [_rule(one) for one in rules] for name, rules in does.items()},
        "llm_script": [_reply(one) for one in row.get("script", ())],
        "config": row.get("config", {}),
        **row.get("given", {}),
        "expected": {"end": row["end"], "unused_script": 0, **row.get("expected", {})},
    }
    plan = row.get("plan", LINE)
    return case if plan is None else {**case, "plan": {"steps": [_step(one) for one in plan]}}


def scenarios() -> list[Json]:
    """All of ours."""
    lines = (Path(__file__).parents[2] / "data" / "plan_scenarios.jsonl").read_text(encoding="utf-8").splitlines()
    return [scenario(json.loads(line)) for line in lines]


def in_short(got: Json, want: Json) -> Json:
    """What a case came to, as far as `want` speaks of it and in its short form."""
    made: Json = {
        **got,
        "end": f"{got.get('status')}/{got.get('stop_reason')}",
        "calls": [f"{one['step']}:{one['tool']}:{one['outcome']}" for one in got.get("calls", ())],
        "params": [one["params"] for one in got.get("calls", ())],
        "refusals": [f"{one['what']} {one['detail']}".strip() for one in got.get("refusals", ())],
    }
    return {key: made.get(key, got.get("fault", "nothing")) for key in want}
