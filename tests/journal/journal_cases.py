"""Events of every kind and small ways to look into a journal, for the tests of this room."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from surefoot.journal.sqlite import SqliteJournal
from surefoot.types.config import Budget, LoopConfig
from surefoot.types.decisions import Allow, Ask, Deny
from surefoot.types.endings import Cancelled, Completed, CompletedPartial, Failed, Stopped
from surefoot.types.events import (
    Attachment,
    CallEnded,
    CallJudged,
    CallReused,
    CallStarted,
    ConventionsRead,
    DoubtSettled,
    Event,
    IntentAnchored,
    ModelFailed,
    ModelReplied,
    ModelTraitLearnt,
    PreHydrationComplete,
    ReferencesFound,
    RunEnded,
    RunForked,
    RunResumed,
    RunStarted,
    Speaker,
    StepLimitReached,
    Task,
    ToolsSelected,
    ValuesEndorsed,
)
from surefoot.types.guard import (
    AbstractSketch,
    AbstractStep,
    Condition,
    ConstraintSet,
    Entity,
    Flow,
    IntentAnchor,
    SecurityConstraint,
)
from surefoot.types.guard_events import Asking, JudgementMade, PerceptionSanitised
from surefoot.types.messages import ModelMessage, NativeCall, Usage
from surefoot.types.plan import PlanStep, StepError
from surefoot.types.ports import JournalStore
from surefoot.types.prehydration import PreHydrationItem, Reference
from surefoot.types.progress import LimitAction
from surefoot.types.reply import Fault, FaultyCall, Parsed, ParsedCall
from surefoot.types.step_events import (
    ReasoningStepCompleted,
    ReasoningStepViolated,
    StepEnded,
    StepSkipped,
    StepStarted,
)
from surefoot.types.tools import Catalogue, ToolResult, ToolSpec

TOOLS = Catalogue(
    (
        ToolSpec("exam_score", "Exam score of one student.", {"type": "object", "properties": {"name": {}}}, "read"),
        ToolSpec("send", "Send a message.", {"type": "object"}, "communicate", has_probe=True, timeout_s=2.5),
    )
)


def started(run_id: str = "r1", tools: Catalogue = TOOLS) -> RunStarted:
    step = PlanStep("s1", "Look", tool_id="send", parameters={"to": "Alice", "deep": [1, {"x": None}]})
    task = Task("Whose score is best? 谁?", (Attachment("a.txt", "Alice: 91"),), steps=(step,))
    config = LoopConfig(budget=Budget(max_steps=7, max_cost_usd=0.5), repair="full")
    speakers = {"solo": Speaker("test:one", traits={"stop": "no"})}
    return RunStarted(run_id, task, speakers, tools, {"native": "You …"}, config=config)


REPLY = ModelReplied(
    step=1,
    message=ModelMessage(
        "assistant",
        "I look it up.",
        calls=(NativeCall("c1", "exam_score", '{"name": "Alice"}'), NativeCall("c2", "send", {"to": "Bob"})),
        usage=Usage(10, 4, cost_usd=0.001),
    ),
    parsed=Parsed(
        calls=(ParsedCall(0, "exam_score", {"name": "Alice", "deep": [1, {"x": None}]}, coerced=("name",)),),
        errors=(FaultyCall(1, Fault("unknown_tool", "no such tool")),),
        warnings=frozenset({"trailing_text", "repaired_json"}),
    ),
    elapsed_s=0.25,
)

EVERY_KIND: tuple[Event, ...] = (
    started(),
    RunResumed("ann", config=LoopConfig(nudges=0)),
    ReferencesFound(
        (Reference("url", "https://x.test/a"),), 1, scan_truncated=True, calls=(ParsedCall(0, "page", {}),)
    ),
    PreHydrationComplete(
        1, 1, 0, 7, items=(PreHydrationItem("url", "https://x.test/a", "resolved", "", 7),), message="m"
    ),
    ConventionsRead("src", (("src/AGENTS.md", "ab12", 23),), "Money is Decimal. 金额"),
    IntentAnchored(
        IntentAnchor(
            "ab12",
            frozenset({"communicate"}),
            (Entity("Ann 安", "name", "ann 安"),),
            frozenset({"set"}),
            ((5, 15, 0),),
            frozenset({"900"}),
            frozenset({"invit"}),
            "invite ann",
            ConstraintSet((SecurityConstraint("c1", "forbid", "no mail", Condition("communicate", max_count=1)),)),
            AbstractSketch((AbstractStep("s1", "READ_FILE", allowed_flows=(Flow("user", role="object"),)),)),
        ),
        "2026-01-31",
    ),
    ValuesEndorsed("c1", (("destination", "ann@house.org"), ("content", "hello 你好")), "ann"),
    StepStarted("s1"),
    StepEnded("s1", call_id="1.0", sources=("1.0",), trust="untrusted"),
    StepEnded("s2", "words", error=StepError("violation", "reasoning_violations", "none")),
    StepSkipped("s3", "not needed", "developer"),
    ReasoningStepCompleted("s4", "Das Lutetia. 选它", 4, isolated=True, sources=("1.0",), trust="untrusted"),
    ReasoningStepViolated("s4", 1, "calls", ("2.0", "2.1"), ("send", "?"), after_untrusted=True),
    StepLimitReached("look({})", 2, "stuck", "stuck", "similar", LimitAction.Replan, 0.96, (4, 9)),
    RunForked("r2", "r1", 3, {"solo": Speaker("test:two")}),
    ToolsSelected(("send", "exam_score"), "asked for"),
    ModelTraitLearnt("test:one", "stop", "no", "400: unknown field"),
    REPLY,
    ModelFailed("timeout", "no reply in 3 s", attempts=2, usage=Usage(estimated=True)),
    IntentAnchored(IntentAnchor("ab", frozenset({"read", "write"})), "2026-01-31", 2, Asking("test:one", "solo")),
    PerceptionSanitised("c1", 3),
    PerceptionSanitised(
        "c1", masks=("do this",), ignored=1, asking=Asking("test:one", "guard", "no reply", Usage(3, 1))
    ),
    JudgementMade("c1", "ab", Asking("test:one", "solo", elapsed_s=0.5), "deny", "not asked for", "words-1"),
    CallJudged("c1", Allow(), rule="default"),
    CallJudged("c1", Ask("sends mail")),
    CallJudged("c1", Deny("not yours"), by="ann"),
    CallReused("c2", "c1"),
    CallStarted("c1", 2),
    CallEnded("c1", ToolResult("91", size=2, blob="ab", source="file", trust="trusted"), 0.5),
    DoubtSettled("c1", "done", "ann", ToolResult("sent")),
    RunEnded(Completed("91")),
    RunEnded(CompletedPartial("91", "max_steps")),
    RunEnded(Stopped("stuck")),
    RunEnded(Failed("model", "no key")),
    RunEnded(Cancelled("ann")),
)


def story(run_id: str = "r1") -> list[Event]:
    """A short run from its start to its end."""
    return [
        started(run_id),
        REPLY,
        CallJudged("c1", Allow()),
        CallStarted("c1"),
        CallEnded("c1", ToolResult("91")),
        RunEnded(Completed("91")),
    ]


async def write(store: JournalStore, run_id: str, events: Sequence[Event]) -> None:
    """Put a whole run on record."""
    run = await store.open(run_id, create=True)
    await run.append(events, "written")
    await run.release()


async def read_all(store: JournalStore, run_id: str) -> tuple[list[Event], str]:
    records, wrong = await store.read_recorded(run_id)
    return [record.event for record in records], wrong


def connection_of(journal: SqliteJournal) -> sqlite3.Connection:
    """The store's own connection: what it does to the file can be counted and limited there."""
    file = journal._opened  # pyright: ignore[reportPrivateUsage] - the room's own tests look behind its door
    assert file is not None
    return file.db


def alter(path: Path, statement: str, *values: object) -> int:
    """Change a journal behind the back of whoever wrote it; how many rows were changed."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        return db.execute(statement, values).rowcount
    finally:
        db.close()
