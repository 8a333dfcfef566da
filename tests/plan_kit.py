"""Plans through the front door: what models say about them, and a world of tools that keep a book of their calls."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import records
from scenes import Words
from surefoot import Agent, Budget, GuardConfig, LoopConfig, MemoryJournal, PlanConfig, Run, StepIterationConfig, tool
from surefoot.core.loop.fold import fold
from surefoot.core.state.state import Planning
from surefoot.testing.journals import CheckedJournal
from surefoot.testing.models import FunctionModel, Scripted, ScriptedModel
from surefoot.testing.world import overall, plan, reflects
from surefoot.tools.call import OutcomeUnknown, ToolFailed
from surefoot.types.events import Event
from surefoot.types.ports import JournalStore, Tool
from surefoot.types.reflection import EvaluationResult, Evaluator, ExecutionContext

Json = Mapping[str, Any]  # Any: JSON
Fault = str | Exception | Sequence[str | Exception]

GIVE_UP = reflects("trigger_overall_reflection", "nothing to be done here")
STOP: Json = {"should_replan": False}

_FIELDS = frozenset({"must_succeed", "instruction", "allowed_tools", "timeout"})
_PLACES = frozenset({"insert_before", "insert_after", "target_parameters"})


def step(name: str, tool_id: str = "", needs: Sequence[str] = (), kind: str = "tool", **more: Any) -> dict[str, Any]:
    """A step as a model writes it; what is no field of a step is a parameter. Any: JSON."""
    own = {key: value for key, value in more.items() if key in _FIELDS | _PLACES}
    given = {key: value for key, value in more.items() if key not in own}
    return {"step_id": name, "tool_id": tool_id, "kind": kind, "dependencies": list(needs), "parameters": given, **own}


def thinking(name: str, needs: Sequence[str] = (), kind: str = "reasoning", **more: Any) -> dict[str, Any]:  # Any: JSON
    return step(name, "", needs, kind, **{"instruction": f"about {name}", **more})


def retry(**data: object) -> Json:
    return reflects("retry_with_params", data)


def exchange(tool_id: str, **parameters: object) -> Json:
    return reflects("retry_with_tool", {"tool_id": tool_id, "parameters": parameters})


def adjusted(name: str, needs: Sequence[str] | None = None, **parameters: object) -> Json:
    changes = {"step_id": name, **({"parameters": parameters} if parameters else {})}
    return overall("adjust_dependencies", adjustments=[{**changes, **({} if needs is None else {"depends_on": needs})}])


def suggested(*steps: object) -> Json:
    return overall("add_remediation_steps", suggestions=list(steps))


def script(*replies: Scripted) -> ScriptedModel:
    return ScriptedModel(replies)


def configured(
    guard: GuardConfig | None = None,
    budget: Budget | None = None,
    limits: StepIterationConfig | None = None,
    **fields: Any,  # of the plan
) -> LoopConfig:
    return LoopConfig(plan=PlanConfig(**fields), guard=guard, budget=budget or Budget(), step_iteration=limits)


def off(**fields: Any) -> LoopConfig:  # Any: of the plan
    """Steps one after another, and no answer at the end."""
    alone: dict[str, Any] = {"answer": "off", "max_parallel": 1, **fields}  # the same
    return configured(**alone)


def _raised(told: str) -> Exception:
    """An error as a text: `CODE words` of a tool that failed, or the name of an exception and its words."""
    kinds: dict[str, type[Exception]] = {
        f"{one.__name__}:": one for one in (ValueError, ConnectionError, ToolFailed, OutcomeUnknown)
    }
    name, _, words = told.partition(" ")
    return kinds[name](words) if name in kinds else ToolFailed(words or "no", code=name)


def _row(name: str, tool_id: str, given: Json, needs: Sequence[str] = (), fields: Json | None = None) -> Json:
    """A step as [id, tool, parameters, dependencies, fields]."""
    return step(name, tool_id, needs, **given, **(fields or {}))


def _of_steps(make: Callable[..., Json]) -> Callable[..., Json]:
    """The same of steps that are written as `_row` has them."""
    return lambda *rows: make(*(_row(*row) for row in rows))


def _spread(make: Callable[..., Json]) -> Callable[..., Json]:
    """The same with the fields of an object that comes last."""

    def made(*given: Any) -> Json:  # Any: JSON
        *names, last = given
        return make(*names, **last) if isinstance(last, Mapping) else make(*given)

    return made


WORDS: Words = {
    "$GIVE_UP": GIVE_UP,
    "$STOP": STOP,
    **{f"${one.__name__}": _spread(one) for one in (retry, exchange, adjusted, overall)},
    **{f"${one.__name__}": _of_steps(one) for one in (plan, suggested)},
}
"""What a model says of plans, in the tables of `scenes`."""

ONE_BY_ONE: Json = {"plan": {"answer": "off", "max_parallel": 1}}  # steps one after another, and no answer at the end


def evaluators() -> dict[str, Evaluator]:
    """Who looks at the runs of the tables: one content at second sight, one when two steps are done, and one broken."""
    sights = count()

    def judge(_: ExecutionContext) -> EvaluationResult:
        return EvaluationResult("judge", passed=next(sights) > 0, note="wrong number")

    def complete(context: ExecutionContext) -> EvaluationResult:
        done = len(context.step_results)
        return EvaluationResult("", passed=done > 1, note=f"{done} is too few")

    async def impatient(_: ExecutionContext) -> EvaluationResult:
        raise TimeoutError("my database is slow")

    return {"judge": judge, "complete": complete, "impatient": impatient}


class World:
    """Tools that keep a book of what ran; `broken` says how a call fails, once or as often as there are errors.

    `gone` are queries under which `look` finds nothing so many times. A call of `holds_up` ends once a letter has gone
    to Carl; `most` is how many calls of `meet` were under way at once.
    """

    def __init__(self, broken: Mapping[str, Fault] | None = None, **gone: int) -> None:
        self.ran: list[str] = []
        self.broken: dict[str, list[Exception]] = {}
        for line, fault in (broken or {}).items():
            faults = [fault] if isinstance(fault, str | Exception) else fault
            self.broken[line] = [_raised(one) if isinstance(one, str) else one for one in faults]
        for q, times in gone.items():
            self.broken[f"look {q}"] = [ToolFailed(f"there is nothing under {q}", code=f"tool:gone_{q}")] * times
        self.holds_up: dict[str, asyncio.Event] = {}
        self.most = self.now = 0
        self.met = asyncio.Event()

    def note(self, line: str) -> None:
        self.ran.append(line)
        if self.broken.get(line):
            raise self.broken[line].pop(0)

    def tools(self) -> list[Tool]:
        @tool(effect="read")
        async def look(q: str, parent: str | None = "root") -> dict[str, object]:
            """Look something up."""
            self.note(f"look {q}" + (f" in {parent}" if parent != "root" else ""))
            return {"found": f"about {q}", "n": 3, "who": "Ann"}

        @tool(effect="read")
        async def find(q: str, deep: bool = False) -> str:  # the model's argument
            """Find something."""
            self.note(f"find {q} {deep}")
            return f"found {q}"

        @tool
        async def send(to: str, text: str = "") -> str:
            """Send a letter."""
            line = f"send {to} {text}".strip()
            self.note(line)
            if to == "Carl":
                for event in self.holds_up.values():
                    event.set()
            if line in self.holds_up:
                await self.holds_up[line].wait()
            return f"sent to {to}"

        @tool(effect="read")
        async def meet(who: str, of: int = 2) -> str:
            """Wait until so many are here."""
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now == of:
                self.met.set()
            await self.met.wait()
            self.now -= 1
            return who

        @tool(effect="read")
        async def fetch() -> str:
            """Fetch it."""
            self.note("fetch")
            return "fetched"

        return [look, find, send, meet, *([fetch] if "fetch" in self.broken else [])]

    def agent(
        self,
        *said: Scripted | FunctionModel | ScriptedModel,
        config: LoopConfig | None = None,
        store: JournalStore | None = None,
        more: Sequence[Tool] = (),
        **options: Any,  # as Agent has them
    ) -> Agent:
        """An agent of a model, or of one that says this."""
        replies = [one for one in said if not isinstance(one, FunctionModel | ScriptedModel)]
        models = [one for one in said if isinstance(one, FunctionModel | ScriptedModel)]
        model = models[0] if models else script(*replies)
        journal = store or CheckedJournal(MemoryJournal())
        config = config or LoopConfig()
        return Agent(model, [*self.tools(), *more], reasoner="plan", journal=journal, config=config, **options)


def store_of(agent: Agent) -> JournalStore:
    return agent._store  # pyright: ignore[reportPrivateUsage]  # nobody hands it out


async def events_of(agent: Agent, run_id: str = "r") -> list[Event]:
    return await records.events_of(store_of(agent), run_id)


async def planning_of(agent: Agent) -> Planning:
    planning = fold(await events_of(agent)).planning
    assert planning is not None
    return planning


async def statuses(agent: Agent) -> dict[str, str]:
    return {name: record.status for name, record in (await planning_of(agent)).steps.items()}


async def refusals(agent: Agent) -> list[str]:
    return [f"{one.what} {one.detail}".strip() for one in (await planning_of(agent)).refusals]


def ended(run: Run) -> tuple[str, str]:
    return run.status, run.reason
