"""The words of models that plan, and a world in which a plan runs in virtual time, with tools that follow rules.

The core is the real one (`fold`, `next_moves`, `announce`); a reply takes no time unless its line has `takes_ms`.
Source: spec/planning.md, section 19.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any

from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import announce, next_moves, standing, status_of
from surefoot.core.plan.child import give_up
from surefoot.core.plan.choose import short
from surefoot.core.state.plans import StepRecord
from surefoot.core.state.state import EMPTY, Call, Planning, State
from surefoot.core.text import json_text
from surefoot.core.text.json import as_object
from surefoot.types import events as e
from surefoot.types.config import LoopConfig
from surefoot.types.errors import UsageError
from surefoot.types.messages import ModelMessage
from surefoot.types.moves import Act, Ask, Move, Shortlist, Wait, Within, WorldMove
from surefoot.types.outcomes import Allow, Cancelled, Completed
from surefoot.types.plan import PlanConfig
from surefoot.types.plan_events import ProposalMade, StepReflected, StepStarted
from surefoot.types.reflection import PlanStats
from surefoot.types.selection import ToolSelectionResult
from surefoot.types.task import Task
from surefoot.types.tools import Catalogue, ToolResult, ToolSpec

Case = Mapping[str, Any]  # Any: JSON, whose shape is its authors' promise

_PLAN_CONFIG: Case = {  # the column "in vectors" of spec/planning.md, section 1, where it is not the default
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


def step(step_id: str, tool_id: str = "", needs: Sequence[str] = (), **parameters: object) -> dict[str, Any]:
    """A step of a plan as a model writes it."""
    return {"step_id": step_id, "tool_id": tool_id, "parameters": parameters, "dependencies": list(needs)}


def plan(*steps: Case) -> Case:
    """A model's reply that is a plan."""
    return {"description": "d", "steps": steps}


def reflects(action: str, data: object = "no more ideas") -> Case:
    """A model's reply about a step that failed."""
    return {"suggested_action": {"type": action, "data": data}}


def overall(strategy: str = "", **more: object) -> Case:
    """A model's reply about the whole run: a strategy with its fields; "" for none, which ends the run."""
    chosen = {"type": strategy, **more} if strategy else None
    said = {"completion_percent": 10, "problem_class": "tool", "should_replan": bool(strategy)}
    return {**said, "replanning_strategy": chosen}


class OffScriptError(Exception):
    """The engine asks for what the scenario does not have."""


def orchestrator_scenarios(data: Case) -> dict[str, object]:
    """What each scenario comes to; one that cannot be played, or whose script the engine leaves, says so in `fault`."""
    results: dict[str, object] = {}
    for case in data["scenarios"]:
        try:
            world = World(case)
            world.begin()
            world.drive()
            results[case["id"]] = world.report()
        except (OffScriptError, UsageError) as fault:  # the others of the file are played all the same
            results[case["id"]] = {"fault": str(fault)}
    return results


@dataclass(order=True, slots=True)
class _End:
    """When a move ends, and the event that it ends with. Of what ends at one time, replies are `first`."""

    at_ms: float
    is_call: bool
    number: int
    move: WorldMove = field(compare=False)
    event: e.Event = field(compare=False)
    call: dict[str, object] = field(compare=False)


class World:
    """The loop of `runtime/drive.py` with a clock of its own: the next thing that ends is the next thing that happens.

    `journal` holds what was appended together, `calls` all tool calls in the order of their start, `asked` the
    proposals that were asked for.
    """

    def __init__(self, case: Case) -> None:
        self.case = {key: value for key, value in case.items() if value is not None}
        self.state: State = EMPTY
        self.journal: list[tuple[e.Event, ...]] = []
        self.calls: list[dict[str, object]] = []
        self.asked: list[str] = []
        self._now_ms = 0.0
        self._under_way: frozenset[Move] = frozenset()
        self._ends: list[_End] = []
        self._begun = 0
        self._used: dict[tuple[str, int], int] = {}  # how often each rule of a tool has answered
        self._most_at_once = 0
        self._before = PlanStats()  # the figures before a crash

    @property
    def planning(self) -> Planning:
        planning = self.state.planning
        assert planning is not None  # noqa: S101  # the run began with the reasoner `plan`
        return planning

    def record(self, *events: e.Event) -> None:
        self.journal.append(events)
        self.state = fold(events, self.state)

    def begin(self) -> None:
        """Record what a run begins with; after a crash also what the run before it has recorded."""
        case = self.case
        tools = Catalogue(
            tuple(
                ToolSpec(
                    given["id"],
                    "",
                    given.get("parameters", {"type": "object"}),
                    category=given.get("category", ""),
                    effect="write",
                    idempotent=given.get("idempotent") is True,
                    exclusive=given.get("exclusive") is True,
                    empty_ok=given.get("empty_ok") is not False,
                )
                for given in case["tools"]
            )
        )
        fields = dict(_PLAN_CONFIG)
        for name, value in case.get("config", {}).items():
            if not name.endswith("_ms"):
                fields[name] = value
            elif isinstance(value, int | float):
                fields[f"{name.removesuffix('_ms')}_s"] = value / 1000
        config, speakers = LoopConfig(plan=PlanConfig(**fields)), {"solo": e.Speaker("scripted")}
        events: list[e.Event] = [
            e.RunStarted("run", Task(case.get("task", "")), speakers, tools, {}, reasoner="plan", config=config)
        ]
        if "plan" in case:
            selection = ToolSelectionResult(tuple(case.get("selected_tools", tools.names)))
            events.append(e.ToolsSelected(tools.names, "given", selection=selection))
            plan = ModelMessage("assistant", json_text(case["plan"]))
            events.append(ProposalMade("decompose", plan, by="developer"))
        self.record(*events)
        records = case.get("resume_journal", ())
        while records and self.planning.plan is None:
            self._start(next_moves(self.state))
        for record in records:
            self.record(*_recorded(record, self.planning.steps[record["step"]]))
        if records:
            self.record(e.RunResumed("scenario"))
        self._before = self.planning.stats

    def drive(self) -> None:
        """Take the run as far as it can go. At a cancel or a deadline what has ended by then still counts (R17)."""
        cancel_ms = _or_never(self.case.get("cancel_at_ms"))
        deadline_ms = _or_never(self.case.get("config", {}).get("deadline_ms"))
        while self.state.ending is None:
            if self._now_ms >= cancel_ms and not (self._ends and self._ends[0].at_ms <= cancel_ms):
                self._give_up()
                self.record(e.RunEnded(Cancelled("user_cancel")))
            elif self._now_ms < cancel_ms and (moves := next_moves(self.state, self._under_way)):
                self._start(moves)
            elif not self._ends:
                return
            elif self._ends[0].at_ms > (stop_ms := min(cancel_ms, deadline_ms)):
                self._now_ms = stop_ms
                if deadline_ms < cancel_ms:
                    self._give_up()
            else:
                end = heapq.heappop(self._ends)
                self._now_ms = end.at_ms
                self._under_way -= {end.move}
                self.record(end.event)

    def answer(self, call: Call) -> tuple[float, ToolResult]:
        """How long a call takes, and what it gives: by the first rule that fits and is not used up."""
        timeout_s = call.spec.timeout_s if call.spec is not None else None
        limit_ms = 1000 * (timeout_s if timeout_s is not None else self.planning.config.step_timeout_s)
        for at, rule in enumerate(self.case.get("tool_behaviour", {}).get(call.name, ())):
            used, match = self._used.get((call.name, at), 0), rule.get("match", {})
            if used >= _or_never(rule.get("times")) or any(
                name not in call.arguments or call.arguments[name] != value for name, value in match.items()
            ):
                continue
            self._used[call.name, at] = used + 1
            takes_ms = _or_never(rule.get("takes_ms", 10))
            if rule.get("hang") or takes_ms > limit_ms:
                late = {"cls": "timeout", "code": "timeout", "message": f"no answer in {limit_ms:g} ms"}
                return limit_ms, _error(late, call)
            return takes_ms, _error(rule["error"], call) if "error" in rule else _result(rule.get("result"))
        raise OffScriptError(f"the scenario has no behaviour for {call.name} with {json_text(call.arguments)}")

    def report(self) -> Case:
        """What the scenario has come to, in the form of the case files."""
        state, planning = self.state, self.planning
        ending, before, selection = state.ending, asdict(self._before), planning.selection
        reason = getattr(ending, "reason", getattr(ending, "by", ""))
        reason = "all_steps_done" if isinstance(ending, Completed) else reason
        changes = selection.changes_from_previous if selection is not None else None
        succeeded = (one for one in planning.steps.values() if one.status == "succeeded")
        return {
            "status": ending.kind if ending is not None else "paused",
            "stop_reason": reason if ending is not None else standing(state),
            "calls": self.calls,
            "max_concurrent": self._most_at_once,
            "steps": {name: status_of(state, name) for name in planning.order},
            "dependencies": {name: list(planning.steps[name].step.dependencies) for name in planning.live},
            "results": {
                one.step.step_id: {"output": one.value} if (fields := as_object(one.value)) is None else fields
                for one in succeeded
            },
            "llm_calls": self.asked,
            "refusals": [{"what": one.what, "detail": one.detail} for one in planning.refusals],
            "selected_tools": list(planning.selected or ()),
            "changes_from_previous": short(changes) if changes is not None else None,
            "stats": {name: count - before[name] for name, count in asdict(planning.stats).items()},
            "makespan_ms": round(self._now_ms),
            "unused_script": len(self.case.get("llm_script", ())) - len(self.asked),
        }

    def _start(self, moves: Sequence[Move]) -> None:
        self.record(*(event for move in moves for event in announce(move, self.state)))
        for move in moves:
            if isinstance(move, WorldMove):
                self._begin(move)
                self._under_way |= {move}

    def _begin(self, move: WorldMove) -> None:
        now_s, takes_ms = self._now_ms / 1000, 0.0
        call: dict[str, object] = {}
        match move:
            case Ask(about=about) if (kind := move.proposal) is not None:
                wanted, script = asked_for(kind, about), self.case.get("llm_script", ())
                if len(self.asked) >= len(script):
                    raise OffScriptError(f"the engine asks for {wanted}, and the script is over")
                line = script[len(self.asked)]
                if (scripted := asked_for(line["kind"], line.get("about", about))) != wanted:
                    raise OffScriptError(f"the engine asks for {wanted}, and the script has {scripted} next")
                self.asked.append(wanted)
                takes_ms, reply = _or_never(line.get("takes_ms", 0)), line["reply"]
                message = ModelMessage("assistant", reply if isinstance(reply, str) else json_text(reply))
                event = ProposalMade(kind, message, about, elapsed_s=(self._now_ms + takes_ms) / 1000)
            case Shortlist():
                names = tuple(self.case.get("retrieval_fallback", self.state.tools.names))
                event = e.ToolsShortlisted(names, elapsed_s=now_s)
            case Wait(step_id, attempt):  # back-off is not counted
                event = StepStarted(step_id, attempt, now_s)
            case Within(step_id, attempt, Act(call_id)):
                made = self._call(step_id, call_id)
                takes_ms, result = self.answer(made)
                outcome = ("timeout" if result.error.startswith("timeout:") else "error") if result.is_error else "ok"
                call = {"step": step_id, "tool": made.name, "params": made.arguments, "outcome": outcome}
                self.calls.append(call)
                event = e.InStep(step_id, attempt, e.CallEnded(call_id, result, (self._now_ms + takes_ms) / 1000))
            case _:
                raise OffScriptError(f"a scenario has nothing for {move}")
        self._begun += 1
        heapq.heappush(self._ends, _End(self._now_ms + takes_ms, bool(call), self._begun, move, event, call))
        self._most_at_once = max(self._most_at_once, sum(one.is_call for one in self._ends))

    def _call(self, step_id: str, call_id: str) -> Call:
        call = self.planning.children[step_id].call(call_id)
        assert call is not None  # noqa: S101  # the move was made from this state
        return call

    def _give_up(self) -> None:
        """Nobody waits any more for what is under way."""
        now_s = self._now_ms / 1000
        for end in sorted(self._ends):
            match end.move:
                case Within(step_id, attempt, Act(call_id)):
                    end.call["outcome"] = "cancelled"
                    self.record(e.InStep(step_id, attempt, give_up(self._call(step_id, call_id), now_s)))
                case Ask():
                    self.record(e.ModelFailed("timeout", "no reply before the run was over", elapsed_s=now_s))
                case _:
                    pass
        self._ends.clear()
        self._under_way = frozenset()


def asked_for(kind: str, about: str) -> str:
    """A proposal as the case files name it."""
    return f"{kind}:{about}" if about else kind


def _recorded(record: Case, step: StepRecord) -> list[e.Event]:
    """What a line of a scenario's journal stands for."""
    name, attempt, ended = step.step.step_id, step.attempt, f"{step.step.step_id}.{step.attempt}"
    match record["event"]:
        case "started":
            events: list[e.Event] = []
            if step.status == "failed":
                parameters = dict(record.get("params", step.step.parameters))
                events.append(StepReflected(name, attempt, "retry", tool_id=step.step.tool_id, parameters=parameters))
            attempt += 1
            call_id = f"{name}.{attempt}"
            call = e.CallJudged(call_id, Allow(), origin="plan"), e.CallStarted(call_id)
            return [*events, StepStarted(name, attempt), *(e.InStep(name, attempt, event) for event in call)]
        case "succeeded":
            return [e.InStep(name, attempt, e.CallEnded(ended, _result(record["result"])))]
        case "failed":
            return [e.InStep(name, attempt, e.CallEnded(ended, _error(record["error"], None)))]
        case other:
            raise OffScriptError(f"the journal has {other!r}: use started, succeeded or failed")


def _result(value: object) -> ToolResult:
    is_text = isinstance(value, str)
    text = value if is_text else json_text(value)
    return ToolResult(text, source="scenario", trust="trusted", structured=not is_text)


def _error(given: Case, call: Call | None) -> ToolResult:
    """A failure; of a call that may not be repeated and had no answer in time, nobody knows whether it happened."""
    is_safe = given["cls"] != "timeout" or call is None or (call.spec is not None and call.spec.may_repeat)
    kind = "error" if is_safe else "in_doubt"
    named = f"{given['cls']}:{given.get('code', '')}"
    return ToolResult(given.get("message", ""), kind, source="scenario", trust="trusted", error=named)


def _or_never(value: object) -> float:
    return float(value) if isinstance(value, int | float) else inf
