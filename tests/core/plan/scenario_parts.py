"""The words in which scenarios of a plan that repairs itself are written: steps, rules of tools, replies of a model.

What a scenario expects is short: `end` is "STATUS/REASON", `calls` are "STEP:TOOL:OUTCOME" in the order of their start,
`params` the resolved parameters of all calls, `refusals` "WHAT DETAIL".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

Json = dict[str, object]

TOOLS: Sequence[Json] = (
    {"id": "fetch", "category": "web", "idempotent": True},
    {"id": "parse", "category": "text", "idempotent": True},
    {"id": "save", "category": "db", "idempotent": False},
    {"id": "fetch2", "category": "web", "idempotent": True},
    {"id": "parse2", "category": "text", "idempotent": True},
    {"id": "check", "category": "text", "idempotent": True},
)
ALL = tuple(str(one["id"]) for one in TOOLS)


def step(
    step_id: str, tool_id: str, parameters: Mapping[str, object] | None = None, *needs: str, **more: object
) -> Json:
    """A tool step."""
    fields: Json = {"step_id": step_id, "tool_id": tool_id, "parameters": parameters or {}, "dependencies": list(needs)}
    return {**fields, **more}


A = step("a", "fetch", {"url": "u"})
B = step("b", "parse", {"doc": "{{a.output}}"}, "a")
C = step("c", "save", {"x": "{{b.output}}"}, "b")
LINE = (A, B, C)


def gives(value: object = "ok", **more: object) -> Json:
    """A rule of a tool: it works; a text stands under `output`."""
    return {"result": {"output": value} if isinstance(value, str) else value, **more}


def fails(cls: str, code: str = "x", **more: object) -> Json:
    """A rule of a tool: it fails."""
    return {"error": {"cls": cls, "code": code, "message": f"{cls} {code}"}, **more}


def hangs(**more: object) -> Json:
    """A rule of a tool: it never answers."""
    return {"hang": True, **more}


# ------------------------------------------------------------------ what the model says


def reflects(about: str, action: str, data: object = None) -> Json:
    """A step reflection that proposes something."""
    return {"kind": "step_reflection", "about": about, "reply": {"suggested_action": {"type": action, "data": data}}}


def retries(about: str, **parameters: object) -> Json:
    """A step reflection: the same tool with other parameters."""
    return reflects(about, "retry_with_params", parameters)


def swaps(about: str, tool_id: str, parameters: Json | None = None) -> Json:
    """A step reflection: another tool."""
    data: Json = {"tool_id": tool_id}
    return reflects(about, "retry_with_tool", data if parameters is None else {**data, "parameters": parameters})


def escalates(about: str) -> Json:
    """A step reflection: nothing can be done here."""
    return reflects(about, "trigger_overall_reflection", "nothing to offer")


def overall(strategy: object = None, **more: object) -> Json:
    """An overall reflection; with a strategy, or with `should_replan`, it goes on."""
    said: Json = {"completion_percent": 30, "problem_class": "tool", "should_replan": strategy is not None}
    return {"kind": "overall_reflection", "reply": {**said, "replanning_strategy": strategy, **more}}


STOP = overall()
FULL: Json = {"type": "full_replan"}


def from_step(step_id: str) -> Json:
    """The strategy of that name."""
    return {"type": "replan_from_step", "step_id": step_id, "reason": "r"}


def skip(*step_ids: str) -> Json:
    """The strategy of that name."""
    return {"type": "skip_steps", "step_ids": list(step_ids), "reason": "r"}


def remedy(*suggestions: object) -> Json:
    """The strategy of that name."""
    return {"type": "add_remediation_steps", "suggestions": list(suggestions)}


def adjust(*adjustments: object) -> Json:
    """The strategy of that name."""
    return {"type": "adjust_dependencies", "adjustments": list(adjustments)}


def chooses(*tool_ids: str, **more: object) -> Json:
    """A corrective selection."""
    return {"kind": "select_corrective", "reply": {"selected_tool_ids": list(tool_ids), **more}}


def plans(*steps: Json) -> Json:
    """A decomposition."""
    return {"kind": "decompose", "reply": {"steps": list(steps)}}


def says(kind: str, text: str = "no json here", about: str = "") -> Json:
    """A reply in words."""
    return {"kind": kind, "reply": text, **({"about": about} if about else {})}


# ------------------------------------------------------------------ the scenario


def scenario(
    title: str,
    end: str,
    *script: Json,
    plan: Sequence[Json] | None = LINE,
    does: Mapping[str, Sequence[Json]] | None = None,
    tools: Sequence[Json] = TOOLS,
    config: Json | None = None,
    given: Json | None = None,
    **expected: object,
) -> Json:
    """One scenario. A tool that `does` does not tell of works; `given` are further fields of the case."""
    behaviour = {str(tool["id"]): [gives()] for tool in tools} | {
        name: list(rules) for name, rules in (does or {}).items()
    }
    case: Json = {"id": title, "tools": list(tools), "tool_behaviour": behaviour, "llm_script": list(script)}
    if plan is not None:
        case["plan"] = {"steps": list(plan)}
    return {**case, "config": config or {}, **(given or {}), "expected": {"end": end, "unused_script": 0, **expected}}


def in_short(got: Mapping[str, object], want: Mapping[str, object]) -> Json:
    """What a case came to, as far as `want` speaks of it and in its short form."""
    calls = cast("list[Json]", got.get("calls", []))
    refusals = cast("list[Json]", got.get("refusals", []))
    made: Json = {
        **got,
        "end": f"{got.get('status')}/{got.get('stop_reason')}",
        "calls": [f"{one['step']}:{one['tool']}:{one['outcome']}" for one in calls],
        "params": [one["params"] for one in calls],
        "refusals": [f"{one['what']} {one['detail']}".strip() for one in refusals],
    }
    return {key: made.get(key, got.get("fault", "nothing")) for key in want}
