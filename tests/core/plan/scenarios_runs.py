"""Scenarios of selections, of limits, of cancelled and of resumed runs: R15 to R19 of spec/planning.md."""

from __future__ import annotations

from scenario_parts import (
    ALL,
    FULL,
    STOP,
    A,
    Json,
    chooses,
    escalates,
    fails,
    from_step,
    gives,
    hangs,
    overall,
    plans,
    retries,
    says,
    scenario,
    step,
)

DONE = "completed/all_steps_done"
STOPPED = "stopped/reflector_stop"
A_FAILS = {"fetch": [fails("tool")]}
N = step("n", "fetch2", {"url": "u"})


def first(*tool_ids: str, **more: object) -> Json:
    """An initial selection."""
    return {"kind": "select_initial", "reply": {"selected_tool_ids": list(tool_ids), **more}}


_LISTED: Json = {"retrieval_fallback": ["fetch", "parse"]}
_S: Json = {"step_id": "s", "kind": "skip", "instruction": "nothing to do"}

SELECTIONS = (
    scenario(
        "selection: what the model names",
        DONE,
        first("parse", "fetch"),
        plans(A),
        plan=None,
        given=_LISTED,
        selected_tools=["parse", "fetch"],
        changes_from_previous=None,
        llm_calls=["select_initial", "decompose"],
        refusals=[],
    ),
    scenario(
        "selection: unknown ones are refused, the rest is used",
        DONE,
        first("ghost", "fetch", "phantom"),
        plans(A),
        plan=None,
        given=_LISTED,
        refusals=["unknown_tool ghost,phantom"],
        selected_tools=["fetch"],
    ),
    scenario(
        "selection: unknown ones alone",
        DONE,
        first("ghost"),
        plans(A),
        plan=None,
        given=_LISTED,
        refusals=["unknown_tool ghost", "selection_fallback fetch,parse"],
        selected_tools=["fetch", "parse"],
    ),
    scenario(
        "selection: none",
        DONE,
        first(),
        plans(A),
        plan=None,
        given=_LISTED,
        refusals=["selection_fallback fetch,parse"],
        selected_tools=["fetch", "parse"],
    ),
    scenario(
        "selection: a reply that cannot be read three times",
        DONE,
        *[says("select_initial")] * 3,
        plans(A),
        plan=None,
        given=_LISTED,
        refusals=[*["malformed_json select_initial"] * 3, "selection_fallback fetch,parse"],
        selected_tools=["fetch", "parse"],
    ),
    scenario(
        "selection: a reply that can be read after all",
        DONE,
        says("select_initial"),
        first("fetch"),
        plans(A),
        plan=None,
        refusals=["malformed_json select_initial"],
        selected_tools=["fetch"],
    ),
    scenario(
        "selection: the best of what was found, up to the most",
        DONE,
        first(),
        plans(A),
        plan=None,
        config={"selected_max": 2},
        refusals=["selection_fallback fetch,parse"],
    ),
    scenario(
        "selection: a tool that the user names is there, whatever the model says",
        DONE,
        first("fetch", "parse", "check"),
        plans(A),
        plan=None,
        given={"task": "look it up, then `save` the rest"},
        config={"selected_max": 3},
        selected_tools=["fetch", "parse", "save"],
    ),
    scenario(
        "selection: nothing to choose from, and none chosen",
        DONE,
        first(),
        plans(_S),
        plan=None,
        tools=(),
        calls=[],
        steps={"s": "skipped"},
        selected_tools=[],
    ),
    scenario(
        "selection: nothing to choose from, and something chosen",
        "failed/no_tools",
        first("ghost"),
        plan=None,
        tools=(),
        refusals=["unknown_tool ghost"],
        steps={},
        calls=[],
    ),
    scenario(
        "R1 tries of a plan that nobody gave",
        "failed/invalid_plan",
        first("fetch"),
        plans(),
        plans(),
        plans(),
        plan=None,
        refusals=["invalid_plan empty_plan"] * 3,
        calls=[],
    ),
)

_SET: Json = {"selected_tools": ["fetch", "parse", "save"]}


def _claim(**more: object) -> Json:
    return {"kept_tools": [], "replaced_tools": [], "added_tools": [], "removed_tools": [], **more}


_RIGHT = _claim(
    kept_tools=["parse"],
    replaced_tools=[{"old": "fetch", "new": "fetch2", "reason": "it works"}],
    removed_tools=[{"tool_id": "save", "reason": "not needed"}],
)

CORRECTIONS = (
    scenario(
        "R15 none at all is refused, and asked for again",
        DONE,
        escalates("a"),
        overall(FULL),
        chooses(),
        chooses("fetch2"),
        plans(N),
        does=A_FAILS,
        refusals=["unknown_tool empty selection"],
        selected_tools=["fetch2"],
    ),
    scenario(
        "R15 one that there is beside one that there is not is refused too",
        DONE,
        escalates("a"),
        overall(FULL),
        chooses("fetch2", "ghost", "phantom"),
        chooses("fetch2"),
        plans(N),
        does=A_FAILS,
        refusals=["unknown_tool ghost,phantom"],
    ),
    scenario(
        "R15 if all have failed the previous set stays",
        DONE,
        escalates("a"),
        overall(FULL),
        chooses("ghost"),
        chooses(),
        plans(step("n", "fetch", {"url": "v"})),
        plan=[A],
        given={"selected_tools": ["fetch"]},
        does={"fetch": [fails("tool", match={"url": "u"}), gives()]},
        refusals=["unknown_tool ghost", "unknown_tool empty selection", "selection_fallback fetch"],
        changes_from_previous={"kept": ["fetch"], "replaced": [], "added": [], "removed": []},
    ),
    scenario(
        "R15 a tool that worked elsewhere has not only failed",
        DONE,
        escalates("z"),
        overall(FULL),
        *[chooses("ghost")] * 2,
        plans(step("n", "parse")),
        plan=[A, step("z", "fetch", {"url": "z"}), step("y", "save")],
        given=_SET,
        does={"fetch": [fails("tool", match={"url": "z"}), gives()]},
        refusals=["unknown_tool ghost", "unknown_tool ghost", "selection_fallback fetch,parse,save"],
    ),
    scenario(
        "R15 a tool that was never called has not failed",
        DONE,
        escalates("b"),
        overall(FULL),
        *[chooses()] * 2,
        plans(step("n", "parse")),
        plan=[A, step("b", "parse", {"x": "{{a.nope}}"}, "a")],
        given=_SET,
        refusals=[*["unknown_tool empty selection"] * 2, "selection_fallback fetch,parse,save"],
    ),
    scenario(
        "R16 a reply that cannot be read three times",
        DONE,
        escalates("a"),
        overall(FULL),
        *[says("select_corrective")] * 3,
        plans(step("n", "save")),
        does=A_FAILS,
        given=_SET,
        refusals=[*["malformed_json select_corrective"] * 3, "selection_fallback parse,save"],
        selected_tools=["parse", "save"],
    ),
    scenario(
        "R15 the fallback has the tools of steps that are kept",
        DONE,
        escalates("a"),
        overall(from_step("a")),
        *[chooses("ghost")] * 2,
        plans(step("n", "parse")),
        plan=[A, step("k", "fetch", {"url": "k"})],
        given=_SET,
        does={"fetch": [fails("tool", match={"url": "u"}), gives()]},
        refusals=["unknown_tool ghost", "unknown_tool ghost", "selection_fallback parse,save,fetch"],
    ),
    scenario(
        "R15 a claim that is right",
        DONE,
        escalates("a"),
        overall(FULL),
        chooses("fetch2", "parse", changes_from_previous=_RIGHT),
        plans(N),
        does=A_FAILS,
        given=_SET,
        refusals=[],
        changes_from_previous={"kept": ["parse"], "replaced": [["fetch", "fetch2"]], "added": [], "removed": ["save"]},
    ),
    scenario(
        "R15 a claim that is wrong is put on record and does not stop anything",
        DONE,
        escalates("a"),
        overall(FULL),
        chooses("fetch2", "parse", changes_from_previous=_claim(kept_tools=["save", "parse"], added_tools=["fetch2"])),
        plans(N),
        does=A_FAILS,
        given=_SET,
        refusals=['diff_corrected {"added": ["fetch2"], "kept": ["parse", "save"], "removed": [], "replaced": []}'],
        changes_from_previous={"kept": ["parse"], "replaced": [], "added": ["fetch2"], "removed": ["fetch", "save"]},
    ),
    scenario(
        "R15 a replacement counts if the one left and the other came",
        DONE,
        escalates("a"),
        overall(FULL),
        chooses(
            "fetch2",
            "parse",
            changes_from_previous=_claim(
                kept_tools=["parse"],
                added_tools=[{"tool_id": "fetch2", "reason": "r"}],
                removed_tools=["save"],
                replaced_tools=[{"old": "fetch", "new": "parse", "reason": "r"}],
            ),
        ),
        plans(N),
        does=A_FAILS,
        given=_SET,
        refusals=[
            (
                'diff_corrected {"added": ["fetch2"], "kept": ["parse"], "removed": ["save"], '
                '"replaced": [["fetch", "parse"]]}'
            )
        ],
        changes_from_previous={"kept": ["parse"], "replaced": [], "added": ["fetch2"], "removed": ["fetch", "save"]},
    ),
    scenario(
        "R15 the changes are those from the set before",
        STOPPED,
        escalates("a"),
        overall(FULL),
        chooses("parse", "check"),
        plans(step("n", "check")),
        escalates("n"),
        overall(FULL),
        chooses("fetch2", "check"),
        plans(step("m", "fetch2")),
        escalates("m"),
        STOP,
        plan=[A],
        given=_SET,
        does={"fetch": [fails("tool")], "check": [fails("tool", "y")], "fetch2": [fails("server")]},
        changes_from_previous={"kept": ["check"], "replaced": [], "added": ["fetch2"], "removed": ["parse"]},
    ),
)

LIMITS = (
    scenario(
        "no model call left for the round",
        "stopped/llm_budget",
        escalates("a"),
        does=A_FAILS,
        config={"max_llm_calls": 1},
        steps={"a": "failed", "b": "pending", "c": "pending"},
    ),
    scenario(
        "no model call left: what is in flight ends first",
        "stopped/llm_budget",
        plan=[A, step("b", "parse"), step("d", "check", {}, "b")],
        config={"max_llm_calls": 0, "max_parallel": 2},
        does={**A_FAILS, "parse": [gives(takes_ms=50)]},
        calls=["a:fetch:error", "b:parse:ok"],
        makespan_ms=50,
        steps={"a": "failed", "b": "succeeded", "d": "pending"},
    ),
    scenario(
        "no model call left for the decomposition: the old plan stands",
        "stopped/llm_budget",
        escalates("a"),
        overall(FULL),
        chooses("fetch2"),
        does=A_FAILS,
        config={"max_llm_calls": 3},
        steps={"a": "failed", "b": "pending", "c": "pending"},
    ),
    scenario(
        "no tool call left for a retry: the step stays pending",
        "stopped/tool_budget",
        retries("a", url="v"),
        plan=[A],
        does=A_FAILS,
        config={"max_tool_calls": 1},
        calls=["a:fetch:error"],
        steps={"a": "pending"},
    ),
    scenario(
        "no tool call left for a retry of the engine",
        "stopped/tool_budget",
        plan=[A],
        does={"fetch": [fails("transient")]},
        config={"max_tool_calls": 1, "transient_retries": 2},
        calls=["a:fetch:error"],
        steps={"a": "pending"},
    ),
    scenario(
        "no tool call left beside others",
        "stopped/tool_budget",
        plan=[A, step("b", "parse"), step("d", "check")],
        config={"max_tool_calls": 2, "max_parallel": 3},
        calls=["a:fetch:ok", "b:parse:ok"],
        steps={"a": "succeeded", "b": "succeeded", "d": "pending"},
    ),
    scenario("just as many tool calls as are needed", DONE, config={"max_tool_calls": 3}),
    scenario("no tool call at all", "stopped/tool_budget", config={"max_tool_calls": 0}, calls=[], max_concurrent=0),
)

_LONG = {"save": [gives(takes_ms=100)]}
_SIDE = (A, step("s", "save"))
_SIDE_LONG = {"fetch": [gives(takes_ms=100)], "save": [gives(takes_ms=100)]}

STOPS = (
    scenario(
        "R17 the deadline, amid a write",
        "stopped/deadline",
        does=_LONG,
        config={"deadline_ms": 25},
        calls=["a:fetch:ok", "b:parse:ok", "c:save:cancelled"],
        steps={"a": "succeeded", "b": "succeeded", "c": "in_doubt"},
        makespan_ms=25,
    ),
    scenario(
        "R17 the deadline, amid calls of both kinds",
        "stopped/deadline",
        plan=_SIDE,
        does=_SIDE_LONG,
        config={"deadline_ms": 25, "max_parallel": 2},
        steps={"a": "cancelled", "s": "in_doubt"},
    ),
    scenario(
        "R17 the deadline between two calls",
        "stopped/deadline",
        config={"deadline_ms": 20},
        calls=["a:fetch:ok", "b:parse:ok"],
        steps={"a": "succeeded", "b": "succeeded", "c": "pending"},
        makespan_ms=20,
    ),
    scenario("R17 done when the time runs out", DONE, config={"deadline_ms": 30}),
    scenario(
        "R17 the deadline before a time-out",
        "stopped/deadline",
        plan=[A],
        does={"fetch": [hangs()]},
        config={"deadline_ms": 500},
        calls=["a:fetch:cancelled"],
        steps={"a": "cancelled"},
        makespan_ms=500,
    ),
    scenario(
        "R17 the deadline before a reflection",
        "stopped/deadline",
        plan=[A],
        does=A_FAILS,
        config={"deadline_ms": 10},
        steps={"a": "failed"},
        llm_calls=[],
    ),
    scenario(
        "R17 cancelled amid a call that may be repeated",
        "cancelled/user_cancel",
        does={"parse": [gives(takes_ms=100)]},
        given={"cancel_at_ms": 30},
        calls=["a:fetch:ok", "b:parse:cancelled"],
        steps={"a": "succeeded", "b": "cancelled", "c": "pending"},
        makespan_ms=30,
    ),
    scenario(
        "R17 cancelled amid calls of both kinds",
        "cancelled/user_cancel",
        plan=_SIDE,
        does=_SIDE_LONG,
        given={"cancel_at_ms": 30},
        config={"max_parallel": 2},
        steps={"a": "cancelled", "s": "in_doubt"},
        max_concurrent=2,
    ),
    scenario(
        "R17 cancelled before anything began",
        "cancelled/user_cancel",
        given={"cancel_at_ms": 0},
        calls=[],
        llm_calls=[],
    ),
)


def _began(step_id: str, **params: object) -> Json:
    return {"event": "started", "step": step_id, "params": params}


def _ended(step_id: str, value: object = "ok") -> Json:
    return {"event": "succeeded", "step": step_id, "result": {"output": value}}


def _failed(step_id: str, cls: str, code: str) -> Json:
    return {"event": "failed", "step": step_id, "error": {"cls": cls, "code": code}}


RESUMED = (
    scenario(
        "R18 an open call that may be repeated is made again, with what is on record",
        DONE,
        given={"resume_journal": [_began("a", url="u"), _ended("a", "A"), _began("b", doc="A")]},
        calls=["b:parse:ok", "c:save:ok"],
        params=[{"doc": "A"}, {"x": "ok"}],
        results={
            "a": {"output": "A"},
            "b": {"output": "ok"},
            "c": {"output": "ok"},
        },
    ),
    scenario(
        "R18 nothing was begun",
        DONE,
        given={"resume_journal": [_began("a", url="u"), _ended("a", "A")]},
        calls=["b:parse:ok", "c:save:ok"],
    ),
    scenario(
        "R18 all is done",
        DONE,
        plan=[A],
        given={"resume_journal": [_began("a", url="u"), _ended("a", "A")]},
        calls=[],
        max_concurrent=0,
    ),
    scenario(
        "R18 failures before the crash count",
        STOPPED,
        STOP,
        plan=[A],
        given={
            "resume_journal": [
                _began("a", url="u"),
                _failed("a", "parameter", "400"),
                _began("a", url="v"),
                _failed("a", "parameter", "400"),
            ]
        },
        calls=[],
        refusals=["step_retry_limit a:parameter"],
        llm_calls=["overall_reflection"],
    ),
    scenario(
        "R18 an open call of the second attempt",
        DONE,
        plan=[A],
        given={"resume_journal": [_began("a", url="u"), _failed("a", "parameter", "400"), _began("a", url="v")]},
        calls=["a:fetch:ok"],
        params=[{"url": "v"}],
        llm_calls=[],
    ),
    scenario(
        "R18 others run on before the run pauses",
        "paused/in_doubt",
        plan=[step("s", "save"), A, step("t", "check", {}, "s")],
        given={"resume_journal": [_began("s")]},
        calls=["a:fetch:ok"],
        steps={"s": "in_doubt", "a": "succeeded", "t": "pending"},
    ),
    scenario(
        "R18 an effect before the crash is not had twice",
        DONE,
        escalates("t"),
        overall(FULL),
        chooses(*ALL),
        plans(step("n", "save", {"n": 1})),
        plans(step("n", "check", {"n": 1})),
        plan=[step("s", "save", {"n": 1}), step("t", "parse", {}, "s")],
        given={"resume_journal": [_began("s", n=1), _ended("s"), _began("t"), _failed("t", "tool", "x")]},
        refusals=["invalid_plan repeats_completed_step:n"],
        calls=["n:check:ok"],
    ),
    scenario(
        "R18 a failure of a call that the engine retries",
        DONE,
        plan=[A],
        config={"transient_retries": 1},
        given={"resume_journal": [_began("a", url="u"), _failed("a", "transient", "503")]},
        calls=["a:fetch:ok"],
        llm_calls=[],
    ),
)
SCENARIOS = (*SELECTIONS, *CORRECTIONS, *LIMITS, *STOPS, *RESUMED)
