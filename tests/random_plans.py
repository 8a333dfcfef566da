"""Planned runs in a world made of one seed: the real core, driven in virtual time, with everything about it random.

Tools fail in all the ways that a step can fail in, models propose what is fit, unfit or hostile, a person speaks when
the run stands still, and the process may die before any append. Everything follows from the setting alone.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from surefoot import Catalogue, LoopConfig, ModelMessage, NativeCall, Task, ToolResult, ToolSpec, Usage
from surefoot.core.loop.fold import fold
from surefoot.core.loop.inbox import events_of
from surefoot.core.loop.moves import announce, next_moves, standing
from surefoot.core.loop.read import read_reply
from surefoot.core.plan.accept import signature
from surefoot.core.plan.child import give_up, open_calls, with_whole
from surefoot.core.plan.choose import shortlisted
from surefoot.core.plan.requests import prompt_for
from surefoot.core.state.roles import SOLO
from surefoot.core.state.state import Call, Planning, State
from surefoot.core.text import json_text
from surefoot.runtime.cast import chosen_templates
from surefoot.runtime.plan import nothing_done
from surefoot.runtime.start import step_templates
from surefoot.types import events as e
from surefoot.types import moves
from surefoot.types.moves import Act, Evaluate, Move, Shortlist, Think, Wait, Within, WorldMove
from surefoot.types.outcomes import Ask, Cancelled
from surefoot.types.plan import PlanConfig, ProposalKind
from surefoot.types.plan_events import PlanSigned, ProposalMade, RunEvaluated, StepStarted
from surefoot.types.reflection import EvaluationResult
from surefoot.types.words import Approve, Refuse

Object = dict[str, object]

MOST_EVENTS = 6_000
MOST_WORDS = 60
CLASSES = ("parameter", "tool", "server", "external", "transient", "timeout", "doubt", "empty")


class DiedError(Exception):
    """The process is gone."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run follows from. `failing` and `hostile`: per cent of calls that fail, and of replies that are unfit."""

    seed: int
    steps: int = 4
    parallel: int = 1
    failing: int = 30
    hostile: int = 20
    retries: int = 1
    tools: int = 6

    def random(self, *about: object) -> Random:
        """Numbers for one thing; the same for the same thing."""
        named = "/".join(map(str, (self.seed, *about))).encode("utf-8", "replace")  # also half a surrogate pair
        return Random(named)  # noqa: S311  # a world, not a secret


def _schema(*required: str, closed: bool = False) -> Object:
    made: Object = {"type": "object", "properties": {"x": {}, "k": {"type": "integer"}}, "required": list(required)}
    return {**made, "additionalProperties": False} if closed else made


ALL_TOOLS = (
    ToolSpec("look", "Look a thing up.", _schema("x"), "read", category="find"),
    ToolSpec("send", "Send a letter.", _schema("x"), "communicate", empty_ok=True),
    ToolSpec("save", "Save a file.", _schema("x", closed=True), "write", idempotent=True),
    ToolSpec("pay", "Pay a bill.", _schema(), "transact"),
    ToolSpec("find", "Find a thing.", _schema("x", "k"), "read", category="find"),
    ToolSpec("post", "Post a text.", _schema("x"), "communicate", exclusive=True),
    ToolSpec("sweep", "Delete a thing.", _schema(), "delete", idempotent=True),
    ToolSpec("count", "Count things.", _schema(), "read"),
    ToolSpec("order", "Order a thing.", _schema("x"), "transact", timeout_s=0.02),
)


@dataclass(slots=True)
class World:
    """What tools do, and what they have really done: `effects` in their order, `happened` those not on record."""

    setting: Setting
    effects: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    ended: Counter[str] = field(default_factory=Counter[str])
    happened: dict[str, ToolResult] = field(default_factory=dict[str, ToolResult])
    doubts: Counter[str] = field(default_factory=Counter[str])

    def outcome(self, call: Call) -> tuple[float, ToolResult, ToolResult | None]:
        """Seconds that it takes, what it gives, and what has taken effect (None: nothing)."""
        key = f"{call.name}{json_text(call.arguments, sort_keys=True)}"
        random = self.setting.random("tool", key)
        may_repeat = call.spec is not None and call.spec.may_repeat
        takes_s = random.choice((0.01, 0.02, 0.05))
        fine = _value(random, call.name)
        if random.random() * 100 >= self.setting.failing or self.ended[key] >= random.choice((1, 2, 99)):
            return takes_s, fine, fine
        kind = random.choice(CLASSES)
        has_happened = random.random() < 0.5
        match kind:
            case "doubt":
                told = ToolResult("nobody knows", "in_doubt", source=call.name)
                return takes_s, told, fine if has_happened else None
            case "timeout" if not may_repeat:
                told = ToolResult("too late", "in_doubt", source=call.name, infrastructure=True)
                return takes_s, told, fine if has_happened else None
            case "timeout":
                return takes_s, ToolResult("too late", "timeout", infrastructure=True, source=call.name), None
            case "empty":
                nothing = ToolResult("", source=call.name)
                return takes_s, nothing, nothing
            case _:
                wait_s = random.choice((None, 0.1)) if kind == "transient" else None
                error = f"{kind}:{random.choice(('e1', 'e2', '503', 'e 17'))}"
                return takes_s, ToolResult("broken", "error", source=call.name, error=error, retry_after_s=wait_s), None

    def take_effect(self, call: Call, given: ToolResult, *, is_seen: bool) -> None:
        """A call does what it does; of one that nobody sees, that is remembered for the person who finds out."""
        self.effects.append((call.id, call.name, json_text(call.arguments, sort_keys=True)))
        if not is_seen:
            self.happened[call.id] = given

    def end(self, call: Call, *, is_known: bool) -> None:
        """The call's end is on record."""
        if not is_known:
            self.doubts[call.id] += 1
            return
        self.ended[f"{call.name}{json_text(call.arguments, sort_keys=True)}"] += 1


def _value(random: Random, name: str) -> ToolResult:
    shape = random.randrange(4)
    if shape == 0:
        return ToolResult(f"the words of {name} {{x}}", source=name, trust=random.choice(("trusted", "untrusted")))
    if shape == 1:
        return ToolResult(json_text([random.randrange(9), {"v": "ab"}]), source=name, structured=True)
    value = {"v": random.randrange(9), "list": ["a", "b"], "none": None, "in": {"v": "{{s1}}"}}
    return ToolResult(json_text(value), source=name, structured=True, trust="trusted")


EMPTY_LIST: list[object] = []
EMPTY: Object = {}
JUNK: tuple[object, ...] = (
    None, True, -1, 10**30, 1.5, "", "x" * 2000, "{{p1_0}}", EMPTY_LIST, [EMPTY_LIST], EMPTY, {"a": None}, "\ud800",
)  # fmt: skip
ODD_ACTIONS = (("replan_entire_task", "all"), ("do_magic", EMPTY), ("retry_with_params", EMPTY))
STRATEGIES = ("full_replan", "replan_from_step", "skip_steps", "add_remediation_steps", "adjust_dependencies")


@dataclass(frozen=True, slots=True)
class Oracle:
    """Who proposes: mostly what is fit, as far as that can be seen from the state."""

    setting: Setting

    def reply(self, state: State, kind: str, about: str, number: int) -> str:
        """The `number`th reply to that question."""
        planning = state.planning
        assert planning is not None
        random = self.setting.random("model", kind, about, number)
        made = {
            "select_initial": self._selection,
            "select_corrective": self._selection,
            "decompose": self._plan,
            "step_reflection": self._reflection,
            "overall_reflection": self._overall,
        }[kind](random, state, planning, about)
        if random.random() * 100 >= self.setting.hostile:
            return json_text(made)
        return self._spoilt(random, made)

    def _spoilt(self, random: Random, made: Object) -> str:
        text = json_text(made)
        match random.randrange(7):
            case 0:
                return text[: len(text) // 2]
            case 1:
                return random.choice(("", "I cannot do that.", "{", "[]", "null", "{" * 300, '{"a": {"b": [1, 2}'))
            case 2:
                return f"Well.\n```json\n{text}\n```\n{{}}"
            case _:
                return json_text(_mutated(random, made))

    def _selection(self, random: Random, state: State, planning: Planning, _about: str) -> Object:
        names = list(state.tools.names)
        chosen = random.sample(names, random.randint(0 if random.random() < 0.1 else 1, len(names)))
        if random.random() < 0.1:
            chosen.append("nothing")
        claim = {"kept_tools": names[:1], "added_tools": ["x"], "replaced_tools": [{"old": "look", "new": "find"}]}
        changes = random.choice((None, claim)) if planning.selected is not None else None
        return {"selected_tool_ids": chosen, "task_type": "general", "changes_from_previous": changes}

    def _plan(self, random: Random, state: State, planning: Planning, _about: str) -> Object:
        number = planning.version + 1
        is_huge = random.random() < 0.01
        count = planning.config.max_steps + 5 if is_huge else random.randint(1, self.setting.steps)
        before = [n for n in planning.live if planning.steps[n].status != "skipped"]
        steps: list[Object] = []
        for at in range(count):
            usable = [*(str(one["step_id"]) for one in steps), *(before if random.random() < 0.5 else ())]
            steps.append(self._step(random, state, planning, f"p{number}_{at}", usable))
        if random.random() < 0.05:
            steps[0]["dependencies"] = [str(steps[-1]["step_id"])]
        targets = planning.open_steps
        if targets and planning.strategy is not None:
            for one in steps:
                one[random.choice(("insert_before", "insert_after"))] = random.choice(targets)
        return {"description": "d", "task_type": "general", "steps": steps}

    def _step(self, random: Random, state: State, planning: Planning, name: str, usable: Sequence[str]) -> Object:
        needs = random.sample(usable, min(len(usable), random.choice((0, 0, 1, 1, 2))))
        kind = random.choice(("tool",) * 12 + ("reasoning", "agent", "skip", "response"))
        selected = list(planning.selected or state.tools.names) or ["look"]
        made: Object = {"step_id": name, "kind": kind, "dependencies": needs}
        if kind == "tool":
            made["tool_id"] = random.choice(selected)
            made["parameters"] = self._parameters(random, needs)
            made["postcondition"] = random.choice((None,) * 4 + ("non_empty", {"type": "object"}))
        else:
            made["instruction"] = f"do {random.randrange(4)}"
        if kind == "agent" and random.random() < 0.7:
            made["allowed_tools"] = random.sample(selected, 1)
        made["must_succeed"] = random.random() < 0.15
        made["required"] = random.random() < 0.8
        return made

    def _parameters(self, random: Random, needs: Sequence[str]) -> Object:
        made: Object = {"x": random.randrange(3), "k": random.randrange(3)}
        if needs and random.random() < 0.6:
            name = random.choice(needs)
            shapes = (f"{{{{{name}}}}}", f"{{{{{name}.output}}}}", f"{{{{{name}.v}}}}", f"{{{{?{name}.v}}}}")
            made["x"] = random.choice((*shapes, f"a {{{{{name}.v}}}} b", [f"{{{{{name}.in.v}}}}"], {"y": shapes[0]}))
        return made

    def _reflection(self, random: Random, state: State, planning: Planning, about: str) -> Object:
        record = planning.steps[about]
        name = random.choice(("retry_with_params",) * 3 + ("retry_with_tool",) * 2 + ("trigger_overall_reflection",))
        data: object = {"k": random.randrange(6)}
        if name == "retry_with_tool":
            parameters = self._parameters(random, record.step.dependencies)
            data = {"tool_id": random.choice(state.tools.names), "parameters": random.choice((None, parameters))}
        if record.step.kind != "tool":
            data = {"instruction": f"do {random.randrange(9)} otherwise"}
        if random.random() < 0.1:
            name, data = random.choice(ODD_ACTIONS)
        return {"root_cause_category": "tool_error", "suggested_action": {"type": name, "data": data}}

    def _overall(self, random: Random, state: State, planning: Planning, _about: str) -> Object:
        return {
            "overview": "o",
            "completion_percent": random.choice((10, 40, 60, 85)),
            "problem_class": random.choice(("tool",) * 8 + ("parameter", "decomposition", "external")),
            "repeated_failure": random.random() < 0.05,
            "should_replan": random.random() < 0.9,
            "alternative_approaches": ["find it otherwise"],
            "replanning_strategy": self._strategy(random, state, planning),
        }

    def _strategy(self, random: Random, state: State, planning: Planning) -> object:
        names = list(planning.open_steps) or list(planning.order)
        some = names if random.random() < 0.8 else [*planning.order, "nothing"]
        name = random.choice(STRATEGIES)
        match name:
            case "replan_from_step":
                return {"type": name, "step_id": random.choice(some), "reason": "r"}
            case "skip_steps":
                return {"type": name, "step_ids": random.sample(some, random.randint(1, min(2, len(some))))}
            case "adjust_dependencies":
                return {"type": name, "adjustments": [self._adjustment(random, planning, random.choice(some))]}
            case "add_remediation_steps":
                target = random.choice(some)
                number = len(planning.order)
                step = self._step(random, state, planning, f"r{number}", [n for n in names if n != target][:2])
                step[random.choice(("insert_before", "insert_after"))] = target
                step["target_parameters"] = random.choice((None, {"x": f"{{{{r{number}.output}}}}", "k": 1}))
                return {"type": name, "suggestions": [random.choice((step, step, "look first"))]}
            case _:
                return random.choice(({"type": name}, None))

    def _adjustment(self, random: Random, planning: Planning, target: str) -> Object:
        others = [n for n in planning.live if n != target] or [target]
        needs = random.sample(others, random.randint(0, min(2, len(others))))
        if target in planning.steps and random.random() < 0.7:  # what stands before it makes no circle
            needs = [n for n in needs if planning.places[n] < planning.places[target]]
        return {"step_id": target, "depends_on": needs, "parameters": self._parameters(random, needs)}

    def words(self, state: State, move: Think, step_id: str) -> ModelMessage:
        """The reply in a step without a tool of its own."""
        random = self.setting.random("words", step_id, state.scope, move.step)
        offered = state.offered.names
        if offered and random.random() < 0.5:
            arguments = {"x": random.randrange(2), "k": random.randrange(2)}
            return ModelMessage("assistant", "", (NativeCall("c", random.choice(offered), arguments),))
        if random.random() * 200 < self.setting.hostile:
            return ModelMessage("assistant", random.choice(("", "Action: look", "{")), finish_reason="length")
        return ModelMessage("assistant", f"words of {step_id} " + random.choice(("", '{"v": 1}')), usage=Usage(3, 2))


def _mutated(random: Random, value: object) -> object:
    """The value with something in it that does not belong there."""
    if isinstance(value, Mapping) and value and random.random() < 0.8:
        made: Object = dict(value)  # pyright: ignore[reportUnknownArgumentType]  # our own JSON
        key = random.choice(sorted(made))
        made[key] = _mutated(random, made[key])
        return made
    if isinstance(value, list) and value and random.random() < 0.8:
        items: list[object] = list(value)  # pyright: ignore[reportUnknownArgumentType]  # the same
        at = random.randrange(len(items))
        items[at] = _mutated(random, items[at])
        return items * random.choice((1, 1, 2))
    return random.choice(JUNK)


Watch = Callable[[State, e.Event, State], None]


@dataclass(order=True, slots=True)
class _End:
    at_s: float
    number: int
    move: WorldMove = field(compare=False)
    events: tuple[e.Event, ...] = field(compare=False)
    call: Call | None = field(compare=False, default=None)
    given: ToolResult | None = field(compare=False, default=None)


@dataclass(slots=True)
class Driver:
    """`runtime/drive.py` in virtual time. `dies_at` is the append before which the process dies (0: never)."""

    world: World
    config: PlanConfig
    watch: Watch | None = None
    dies_at: int = 0
    cancel_at: int = 0
    events: list[e.Event] = field(default_factory=list[e.Event])
    appends: int = 0
    words: int = 0
    now_s: float = 0.0
    state: State = field(default_factory=State)
    _under_way: frozenset[Move] = frozenset()
    _ends: list[_End] = field(default_factory=list[_End])
    _begun: int = 0

    def begin(self) -> None:
        """Put the start on record."""
        tools = Catalogue(ALL_TOOLS[: self.world.setting.tools])
        config = LoopConfig(plan=self.config, guard=None)
        task = Task("look it up, then send and pay; use save")
        prompts = dict(chosen_templates("plan", "auto", frozenset(), {}))
        prompts |= step_templates(task, "plan")
        started = e.RunStarted("run", task, {SOLO: e.Speaker("test:m")}, tools, prompts, reasoner="plan", config=config)
        self._append((started,))

    def run(self) -> State:
        """From the start to the end of the run, with a person who speaks where it stands still."""
        if not self.events:
            self.begin()
        while True:
            self._drive()
            if self.state.ending is not None:
                return self.state
            assert standing(self.state), f"it hangs after {self.events[-3:]}"
            self.words += 1
            assert self.words < MOST_WORDS, "a person is asked for ever"
            if self.words == MOST_WORDS - 2:
                return self._cancelled()
            self._speak()
            if self.state.ending is None and (next_moves(self.state) or not standing(self.state)):
                self._append((e.RunResumed("Ada"),))

    def resume(self) -> State:
        """Go on where another process died, with what it had put on record."""
        self.state = fold(self.events)
        if not standing(self.state) or next_moves(self.state):
            self._append((e.RunResumed("resume"),))
        return self.run()

    def _drive(self) -> None:
        while self.state.ending is None:
            if self.cancel_at and len(self.events) >= self.cancel_at:
                self._ends.clear()
                self._under_way = frozenset()
                self._cancelled()
            elif moves := next_moves(self.state, self._under_way):
                self._start(moves)
            elif not self._ends:
                return
            else:
                self._end()

    def _append(self, events: Sequence[e.Event]) -> None:
        self.appends += 1
        if self.appends == self.dies_at:
            self._die()
        for event in events:
            before = self.state
            self.events.append(event)
            self.state = fold((event,), before)
            if self.watch is not None:
                self.watch(before, event, self.state)
        assert len(self.events) < MOST_EVENTS, f"it never ends: {self.events[-5:]}"

    def _die(self) -> None:
        """What is under way has happened or has not; nobody has it on record."""
        random = self.world.setting.random("death", self.dies_at)
        for end in sorted(self._ends):
            if end.call is not None and end.given is not None and random.random() < 0.5:
                self.world.take_effect(end.call, end.given, is_seen=False)
        raise DiedError

    def _start(self, moves: Iterable[Move]) -> None:
        if events := [event for move in moves for event in announce(move, self.state)]:
            self._append(events)
        for move in moves:
            if isinstance(move, WorldMove):
                assert move not in self._under_way, f"twice at once: {move}"
                self._begun += 1
                heapq.heappush(self._ends, self._made(move))
                self._under_way |= {move}

    def _end(self) -> None:
        """What ends next, and what ends at the same time, goes on record in one piece."""
        ended = [heapq.heappop(self._ends)]
        while self._ends and self._ends[0].at_s == ended[0].at_s:
            ended.append(heapq.heappop(self._ends))
        self.now_s = ended[0].at_s
        self._under_way -= {end.move for end in ended}
        for end in ended:
            if end.call is not None and end.given is not None:
                self.world.take_effect(end.call, end.given, is_seen=not _is_doubtful(end.events[0]))
        if events := [event for end in ended for event in end.events]:
            try:
                self._append(events)
            except DiedError:  # it has happened, and is not on record
                for end in ended:
                    if end.call is not None and end.given is not None:
                        self.world.happened[end.call.id] = end.given
                raise
        for end in ended:
            if end.call is not None:
                self.world.end(end.call, is_known=not _is_doubtful(end.events[0]))

    def _made(self, move: WorldMove) -> _End:
        planning = self.state.planning
        assert planning is not None
        oracle = Oracle(self.world.setting)
        match move:
            case moves.Ask(about=about) if (kind := move.proposal) is not None:
                return self._proposal(oracle, move, kind, about)
            case Shortlist():
                return self._ending(move, 0.0, e.ToolsShortlisted(*shortlisted(self.state, planning), self.now_s))
            case Wait(step_id, attempt, wait_s):
                return self._ending(move, wait_s, StepStarted(step_id, attempt, self.now_s + wait_s))
            case Evaluate(name):
                found = nothing_done(planning) if name == "nothing_done" else self._evaluation(planning)
                return self._ending(move, 0.0, RunEvaluated(found, self.now_s))
            case Within(step_id, attempt, inner):
                child = with_whole(planning.children[step_id], self.state)
                if isinstance(inner, Think):
                    message = oracle.words(child, inner, step_id)
                    parsed = read_reply(child, inner, message)
                    mode = child.speakers[inner.role].mode
                    said = e.ModelReplied(inner.step, message, parsed, mode, inner.want, inner.role, self.now_s)
                    return self._ending(move, 0.03, e.InStep(step_id, attempt, said))
                assert isinstance(inner, Act), inner
                call = child.call(inner.call_id)
                assert call is not None
                takes_s, seen, happened = self.world.outcome(call)
                ended = e.CallEnded(call.id, seen, self.now_s + takes_s)
                end = self._ending(move, takes_s, e.InStep(step_id, attempt, ended))
                end.call, end.given = call, happened
                return end
            case _:
                raise AssertionError(move)

    def _ending(self, move: WorldMove, takes_s: float, *events: e.Event) -> _End:
        return _End(round(self.now_s + takes_s, 6), self._begun, move, events)

    def _proposal(self, oracle: Oracle, move: WorldMove, kind: ProposalKind, about: str) -> _End:
        number = sum(isinstance(one, ProposalMade) and (one.kind, one.about) == (kind, about) for one in self.events)
        planning = self.state.planning
        assert planning is not None
        if number % 3 == 0:
            assert prompt_for(self.state, planning, kind, about).text
        random = self.world.setting.random("fails", kind, about, number)
        if random.random() * 3000 < self.world.setting.hostile:
            return self._ending(move, 0.03, e.ModelFailed("timeout", "no reply", elapsed_s=self.now_s))
        text = oracle.reply(self.state, kind, about, number)
        made = ProposalMade(kind, ModelMessage("assistant", text, usage=Usage(7, 3)), about, elapsed_s=self.now_s)
        return self._ending(move, random.choice((0.0, 0.03)), made)

    def _evaluation(self, planning: Planning) -> EvaluationResult:
        random = self.world.setting.random("evaluation", planning.version)
        return EvaluationResult("judge", passed=random.random() < 0.7)

    def _cancelled(self) -> State:
        """As `Agent.cancel` ends a run."""
        given = [one for owner, call in open_calls(self.state) for one in owner.wrap((give_up(call, self.now_s),))]
        self._append((*given, e.RunEnded(Cancelled("Ada"))))
        return self.state

    def _speak(self) -> None:
        """A person answers what the run waits for."""
        planning = self.state.planning
        assert planning is not None
        random = self.world.setting.random("person", planning.version, len(planning.noted))
        for question in signature(self.state):
            kind = random.choice(("yes", "yes", "yes", "no", "note"))
            reason, asked = "send less" if kind == "note" else "", ((question.id, ""),)
            word = Approve(asked, "Ada") if kind == "yes" else Refuse(asked, "Ada", reason)
            said = events_of(word, self.state, {}, 0.0, "2026-01-01").events
            assert all(isinstance(event, PlanSigned) for event in said)
            self._append(said)
            return
        for owner, call in open_calls(self.state):
            if call.attempts and not call.is_waiting:
                self._append(owner.wrap((self._settled(call),)))
                return
            if isinstance(call.decision, Ask):
                is_fine = self.world.setting.random("asked", call.name, call.id).random() < 0.7
                word = Approve(((call.id, ""),), "Ada") if is_fine else Refuse(((call.id, ""),), "Ada")
                self._append(events_of(word, self.state, {}, 0.0, "2026-01-01").events)
                return
        raise AssertionError(f"nobody can help: {standing(self.state)}")

    def _settled(self, call: Call) -> e.DoubtSettled:
        """The person finds out what has happened; of what has not, now and then nobody wants to hear any more."""
        if (result := self.world.happened.get(call.id)) is not None:
            return e.DoubtSettled(call.id, "done", "Ada", result, self.now_s)
        doubts = self.world.doubts[call.id]  # none: it was the process that died
        is_over = doubts > 2 or (doubts and self.world.setting.random("settled", call.name, call.id).random() < 0.3)
        return e.DoubtSettled(call.id, "abandoned" if is_over else "not_done", "Ada", elapsed_s=self.now_s)


def _is_doubtful(event: e.Event) -> bool:
    inner = event.event if isinstance(event, e.InStep) else event
    return isinstance(inner, e.CallEnded) and inner.result.kind == "in_doubt"
