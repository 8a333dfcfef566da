"""The conformance kind `orchestrator_scenarios`: plans that repair themselves, driven in virtual time.

The real core (`fold`, `next_moves`, `announce`), with a model that replies as scripted (in no time, where a reply has
no `takes_ms`), and tools that behave as they are told to. Source: spec/planning.md, section 19.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import cast

from surefoot.core.fold import fold
from surefoot.core.moves import announce, next_moves, standing
from surefoot.core.owners import give_up
from surefoot.core.phase import status_of
from surefoot.core.plan.choose import short
from surefoot.core.plans import Planning, StepRecord
from surefoot.core.state import EMPTY, Call, State
from surefoot.core.text import json_text
from surefoot.types.config import LoopConfig
from surefoot.types.decisions import Allow
from surefoot.types.endings import Cancelled, Completed
from surefoot.types.events import (
    CallEnded,
    CallJudged,
    CallStarted,
    Event,
    InStep,
    ModelFailed,
    RunEnded,
    RunResumed,
    RunStarted,
    Speaker,
    Task,
    ToolsSelected,
    ToolsShortlisted,
)
from surefoot.types.messages import ModelMessage
from surefoot.types.moves import Act, Ask, Move, Shortlist, Wait, Within, WorldMove
from surefoot.types.plan_events import ProposalMade, StepReflected, StepStarted
from surefoot.types.planning import PlanConfig
from surefoot.types.reflection import PlanStats
from surefoot.types.selection import ToolSelectionResult
from surefoot.types.tools import Catalogue, ToolResult, ToolSpec

Case = Mapping[str, object]

_NEVER = float("inf")
_IN_VECTORS: Mapping[str, object] = {
    "max_parallel": 1,
    "step_timeout_s": 1.0,
    "transient_retries": 0,
    "max_llm_calls": None,
    "max_tool_calls": None,
    "deadline_s": None,
    "max_steps": 10_000,
    "answer": "off",
    "evaluators": (),
    "select_all_below": 0,
}
"""The column "in vectors" of spec/planning.md, section 1, where it is not the default."""

_REPLY, _RESULT = 0, 1
"""What ends first of what ends at one time: a model takes no time, so nothing else has ended meanwhile."""


class OffScriptError(Exception):
    """The engine asks for what the scenario does not have."""


def orchestrator_scenarios(data: Case) -> dict[str, object]:
    """What each scenario comes to; one in which the engine goes off the script says so in `fault`."""
    results: dict[str, object] = {}
    for case in _cases(data["scenarios"]):
        try:
            results[str(case["id"])] = run_scenario(case)
        except OffScriptError as fault:
            results[str(case["id"])] = {"fault": str(fault)}
    return results


def run_scenario(case: Case) -> Case:
    """One scenario, from its first event to where the run has ended or stands still. Raises `OffScriptError`."""
    driver = Driver(case)
    driver.happened(*beginning_of(case))
    driver.resume(_cases(case.get("resume_journal", [])))
    driver.drive()
    return told_of(driver)


# ------------------------------------------------------------------ what a run begins with


def beginning_of(case: Case) -> list[Event]:
    """What is on record before anything is done."""
    tools = Catalogue(tuple(_tool(one) for one in _cases(case["tools"])))
    config = LoopConfig(plan=_plan_config(_case(case.get("config", {}))))
    task, speakers = Task(str(case.get("task", ""))), {"solo": Speaker("scripted")}
    events: list[Event] = [RunStarted("run", task, speakers, tools, {}, reasoner="plan", config=config)]
    if "plan" in case:
        chosen = _names(case.get("selected_tools", tools.names))
        events.append(ToolsSelected(tools.names, "given", selection=ToolSelectionResult(chosen)))
        plan = ModelMessage("assistant", json_text(case["plan"]))
        events.append(ProposalMade("decompose", plan, by="developer"))
    return events


def _plan_config(given: Case) -> PlanConfig:
    fields: dict[str, object] = dict(_IN_VECTORS)
    for name, value in given.items():
        if name.endswith("_ms") and isinstance(value, int | float):
            fields[f"{name.removesuffix('_ms')}_s"] = value / 1000
        elif not name.endswith("_ms"):
            fields[name] = value
    return PlanConfig(**fields)  # pyright: ignore[reportArgumentType]  # it checks its fields itself


def _tool(given: Case) -> ToolSpec:
    return ToolSpec(
        str(given["id"]),
        "",
        _case(given.get("parameters", {"type": "object"})),
        category=str(given.get("category", "")),
        effect="write",
        idempotent=given.get("idempotent") is True,
        exclusive=given.get("exclusive") is True,
        empty_ok=given.get("empty_ok") is not False,
    )


# ------------------------------------------------------------------ driving


@dataclass(order=True, slots=True)
class _End:
    """When a move ends, and the event that it ends with."""

    at_ms: float
    order: int
    number: int
    move: WorldMove = field(compare=False)
    event: Event = field(compare=False)
    call: dict[str, object] | None = field(compare=False, default=None)


@dataclass(slots=True)
class Driver:
    """The loop of `runtime/drive.py` with a clock of its own: the next thing that ends is the next thing that happens.

    `calls` are all tool calls in the order of their start, `asked` the proposals that were asked for, `used` how often
    each rule of a tool has answered, `before` the figures before a crash.
    """

    case: Case
    state: State = EMPTY
    journal: list[tuple[Event, ...]] = field(default_factory=list[tuple[Event, ...]])
    now_ms: float = 0.0
    under_way: frozenset[Move] = frozenset()
    ends: list[_End] = field(default_factory=list[_End])
    begun: int = 0
    calls: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    asked: list[str] = field(default_factory=list[str])
    used: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    most_at_once: int = 0
    before: PlanStats = PlanStats()

    @property
    def planning(self) -> Planning:
        """The plan and all around it."""
        planning = self.state.planning
        assert planning is not None  # noqa: S101  # the run began with the reasoner `plan`
        return planning

    def happened(self, *events: Event) -> None:
        """Put events on record, in one piece."""
        self.journal.append(events)
        self.state = fold(events, self.state)

    def resume(self, records: Sequence[Case]) -> None:
        """Lay down what a run before a crash has on record, and take it up."""
        while records and self.planning.plan is None:
            self._start(next_moves(self.state))
        for record in records:
            self.happened(*_recorded(record, self.planning.steps[str(record["step"])]))
        if records:
            self.happened(RunResumed("scenario"))
        self.before = self.planning.stats

    def drive(self) -> None:
        """Take the run as far as it can go. At a cancel or a deadline what has ended by then still counts (R17)."""
        cancel_ms = _number(self.case.get("cancel_at_ms"))
        deadline_ms = _number(_case(self.case.get("config", {})).get("deadline_ms"))
        while self.state.ending is None:
            if self.now_ms >= cancel_ms and not (self.ends and self.ends[0].at_ms <= cancel_ms):
                self._give_up()
                self.happened(RunEnded(Cancelled("user_cancel")))
            elif self.now_ms < cancel_ms and (moves := next_moves(self.state, self.under_way)):
                self._start(moves)
            elif not self.ends:
                return
            elif self.ends[0].at_ms > (stop_ms := min(cancel_ms, deadline_ms)):
                self.now_ms = stop_ms
                if deadline_ms < cancel_ms:
                    self._give_up()
            else:
                self._end(heapq.heappop(self.ends))

    def _start(self, moves: Sequence[Move]) -> None:
        self.happened(*(event for move in moves for event in announce(move, self.state)))
        for move in moves:
            if isinstance(move, WorldMove):
                self._begin(move)
                self.under_way |= {move}

    def _begin(self, move: WorldMove) -> None:
        now_s = self.now_ms / 1000
        match move:
            case Ask(about=about) if (kind := move.proposal) is not None:
                line = self.line_for(kind, about)
                takes_ms = _number(line.get("takes_ms", 0))
                reply, ended_s = line["reply"], (self.now_ms + takes_ms) / 1000
                said = ModelMessage("assistant", reply if isinstance(reply, str) else json_text(reply))
                self._push(move, ProposalMade(kind, said, about, elapsed_s=ended_s), takes_ms)
            case Shortlist():
                names = _names(self.case.get("retrieval_fallback", self.state.tools.names))
                self._push(move, ToolsShortlisted(names, elapsed_s=now_s))
            case Wait(step_id, attempt):  # back-off is not counted
                self._push(move, StepStarted(step_id, attempt, now_s))
            case Within(step_id, attempt, Act(call_id)):
                child = self.planning.children[step_id]
                call = child.call(call_id)
                assert call is not None  # noqa: S101  # the move was made from this state
                takes_ms, result = self.answer(call)
                outcome = ("timeout" if result.error.startswith("timeout:") else "error") if result.is_error else "ok"
                self.calls.append({"step": step_id, "tool": call.name, "params": call.arguments, "outcome": outcome})
                ended = CallEnded(call_id, result, (self.now_ms + takes_ms) / 1000)
                self._push(move, InStep(step_id, attempt, ended), takes_ms, self.calls[-1])
                self.most_at_once = max(self.most_at_once, sum(one.call is not None for one in self.ends))
            case _:
                raise OffScriptError(f"a scenario has nothing for {move}")

    def _push(
        self, move: WorldMove, event: Event, takes_ms: float = 0.0, call: dict[str, object] | None = None
    ) -> None:
        self.begun += 1
        order = _REPLY if call is None else _RESULT
        heapq.heappush(self.ends, _End(self.now_ms + takes_ms, order, self.begun, move, event, call))

    def _end(self, end: _End) -> None:
        self.now_ms = end.at_ms
        self.under_way -= {end.move}
        self.happened(end.event)

    def _give_up(self) -> None:
        """Nobody waits any more for what is under way."""
        now_s = self.now_ms / 1000
        for end in sorted(self.ends):
            match end.move:
                case Within(step_id, attempt, Act(call_id)) if end.call is not None:
                    call = self.planning.children[step_id].call(call_id)
                    assert call is not None  # noqa: S101  # it is under way
                    end.call["outcome"] = "cancelled"
                    self.happened(InStep(step_id, attempt, give_up(call, now_s)))
                case Ask():
                    self.happened(ModelFailed("timeout", "no reply before the run was over", elapsed_s=now_s))
                case _:
                    pass
        self.ends.clear()
        self.under_way = frozenset()

    def line_for(self, kind: str, about: str) -> Case:
        """The next reply of the script, if it is one to what is asked."""
        script = _cases(self.case.get("llm_script", []))
        wanted = asked_for(kind, about)
        if len(self.asked) >= len(script):
            raise OffScriptError(f"the engine asks for {wanted}, and the script is over")
        line = script[len(self.asked)]
        scripted = asked_for(str(line["kind"]), str(line.get("about", about)))
        if scripted != wanted:
            raise OffScriptError(f"the engine asks for {wanted}, and the script has {scripted} next")
        self.asked.append(wanted)
        return line

    def answer(self, call: Call) -> tuple[float, ToolResult]:
        """How long a call takes, and what it gives: by the first rule that fits and is not used up."""
        timeout_s = call.spec.timeout_s if call.spec is not None else None
        limit_ms = 1000 * (timeout_s if timeout_s is not None else self.planning.config.step_timeout_s)
        rules = _cases(_case(self.case.get("tool_behaviour", {})).get(call.name, []))
        for at, rule in enumerate(rules):
            used = self.used.get((call.name, at), 0)
            if used >= _number(rule.get("times")) or not _fits(_case(rule.get("match", {})), call.arguments):
                continue
            self.used[call.name, at] = used + 1
            takes_ms = _number(rule.get("takes_ms", 10))
            if rule.get("hang") or takes_ms > limit_ms:
                late = _error({"cls": "timeout", "code": "timeout", "message": f"no answer in {limit_ms:g} ms"}, call)
                return limit_ms, late
            if "error" in rule:
                return takes_ms, _error(_case(rule["error"]), call)
            return takes_ms, _result(rule.get("result"))
        raise OffScriptError(f"the scenario has no behaviour for {call.name} with {json_text(call.arguments)}")


def _recorded(record: Case, step: StepRecord) -> list[Event]:
    """What a line of a scenario's journal stands for."""
    name, attempt = step.step.step_id, step.attempt
    call_id = f"{name}.{attempt}"
    match record["event"]:
        case "started":
            told: list[Event] = []
            if step.status == "failed":
                parameters = dict(_case(record.get("params", step.step.parameters)))
                told.append(StepReflected(name, attempt, "retry", tool_id=step.step.tool_id, parameters=parameters))
            attempt += 1
            call_id = f"{name}.{attempt}"
            judged, begun = CallJudged(call_id, Allow(), origin="plan"), CallStarted(call_id)
            return [*told, StepStarted(name, attempt), InStep(name, attempt, judged), InStep(name, attempt, begun)]
        case "succeeded":
            return [InStep(name, attempt, CallEnded(call_id, _result(record["result"])))]
        case "failed":
            return [InStep(name, attempt, CallEnded(call_id, _error(_case(record["error"]), None)))]
        case other:
            raise OffScriptError(f"the journal has {other!r}: use started, succeeded or failed")


def _result(value: object) -> ToolResult:
    if isinstance(value, str):
        return ToolResult(value, source="scenario", trust="trusted")
    return ToolResult(json_text(value), source="scenario", trust="trusted", structured=True)


def _error(given: Case, call: Call | None) -> ToolResult:
    """A failure; of a call that may not be repeated and had no answer in time, nobody knows whether it happened."""
    cls, told = str(given["cls"]), str(given.get("message", ""))
    named = f"{cls}:{given.get('code', '')}"
    if cls == "timeout" and call is not None and not (call.spec is not None and call.spec.may_repeat):
        return ToolResult(told, "in_doubt", source="scenario", trust="trusted", error=named)
    return ToolResult(told, "error", source="scenario", trust="trusted", error=named)


def _fits(match: Case, arguments: Case) -> bool:
    return all(name in arguments and arguments[name] == value for name, value in match.items())


# ------------------------------------------------------------------ telling


def told_of(driver: Driver) -> Case:
    """What a driven scenario has come to, in the form of the case files."""
    state, planning = driver.state, driver.planning
    ending, before = state.ending, asdict(driver.before)
    reason = "all_steps_done" if isinstance(ending, Completed) else getattr(ending, "reason", getattr(ending, "by", ""))
    selection = planning.selection
    changes = selection.changes_from_previous if selection is not None else None
    live = (planning.steps[name].step for name in planning.live)
    succeeded = (one for one in planning.steps.values() if one.status == "succeeded")
    return {
        "status": ending.kind if ending is not None else "paused",
        "stop_reason": reason if ending is not None else standing(state),
        "calls": driver.calls,
        "max_concurrent": driver.most_at_once,
        "steps": {name: status_of(state, name) for name in planning.order},
        "dependencies": {step.step_id: list(step.dependencies) for step in live},
        "results": {one.step.step_id: _as_object(one.value) for one in succeeded},
        "llm_calls": driver.asked,
        "refusals": [{"what": one.what, "detail": one.detail} for one in planning.refusals],
        "selected_tools": list(planning.selected or ()),
        "changes_from_previous": short(changes) if changes is not None else None,
        "stats": {name: count - before[name] for name, count in asdict(planning.stats).items()},
        "makespan_ms": round(driver.now_ms),
        "unused_script": len(_cases(driver.case.get("llm_script", []))) - len(driver.asked),
    }


def _as_object(value: object) -> Case:
    return cast("Case", value) if isinstance(value, Mapping) else {"output": value}  # a JSON object


def asked_for(kind: str, about: str) -> str:
    """A proposal as the case files name it."""
    return f"{kind}:{about}" if about else kind


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else _NEVER


def _case(value: object) -> Case:
    return cast("Case", value)  # the shape of the case files is their authors' promise


def _cases(value: object) -> Sequence[Case]:
    return cast("Sequence[Case]", value)  # the same


def _names(value: object) -> tuple[str, ...]:
    return tuple(cast("Sequence[str]", value))  # the same
