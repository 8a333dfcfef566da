"""Events of every kind and small ways to look into a journal, for the tests of this room."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from surefoot.journal.heads import Heads
from surefoot.journal.sqlite import SqliteJournal
from surefoot.journal.sqlite_read import Reader
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
    InStep,
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
    ToolsShortlisted,
    ValuesEndorsed,
)
from surefoot.types.guard import (
    AbstractSketch,
    AbstractStep,
    CommitmentDecision,
    Condition,
    ConstraintSet,
    Entity,
    Flow,
    HypothesisBranch,
    HypothesisTree,
    IntentAnchor,
    Rejection,
    SecurityConstraint,
)
from surefoot.types.guard_events import (
    Asking,
    BranchCommitted,
    BranchRejected,
    HypothesesMade,
    JudgementMade,
    PerceptionSanitised,
)
from surefoot.types.messages import ModelMessage, NativeCall, Usage
from surefoot.types.plan import NON_EMPTY, PlanStep, StepError
from surefoot.types.plan_events import (
    Escalated,
    PlanEdited,
    PlanMade,
    PlanSigned,
    ProposalMade,
    ProposalRefused,
    ReasoningStepCompleted,
    ReasoningStepViolated,
    RunEvaluated,
    RunReflected,
    StepEnded,
    StepReflected,
    StepSkipped,
    StepStarted,
)
from surefoot.types.planning import (
    Add,
    Mark,
    Operation,
    Plan,
    Reopen,
    SetDependencies,
    SetParameters,
    Skip,
    Supersede,
)
from surefoot.types.ports import JournalStore
from surefoot.types.prehydration import PreHydrationItem, Reference
from surefoot.types.progress import LimitAction
from surefoot.types.reflection import (
    AddRemediationSteps,
    AdjustDependencies,
    Adjustment,
    EvaluationResult,
    FullReplan,
    ReflectionResult,
    RemediationStep,
    ReplanEntireTask,
    ReplanFromStep,
    ReplanningStrategy,
    RetryWithAdjustedParams,
    RetryWithAlternativeTool,
    SkipSteps,
    StepAction,
    StepReflection,
    TriggerOverallReflection,
)
from surefoot.types.reply import Fault, FaultyCall, Parsed, ParsedCall
from surefoot.types.selection import ChangesFromPrevious, Replacement, ToolChange, ToolSelectionResult
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
    config = LoopConfig(budget=Budget(max_steps=7, max_cost_usd=0.5), repair="strict")
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

STEP = PlanStep(
    "b",
    "Send it 发送",
    tool_id="send",
    parameters={"to": "{{a.who}}", "n": [1, None]},
    dependencies=("a",),
    postcondition={"type": "object"},
    must_succeed=True,
    timeout_s=2.5,
    unanchored=True,
)
LOOKING = PlanStep(
    "c",
    kind="agent",
    instruction="look",
    allowed_tools=("exam_score",),
    required=False,
    postcondition=NON_EMPTY,
    max_steps=3,
)
STRATEGIES: tuple[ReplanningStrategy, ...] = (
    FullReplan(),
    ReplanFromStep("b", "wrong way"),
    SkipSteps(("b", "c"), "not needed"),
    AddRemediationSteps(
        (RemediationStep(STEP, "b", "", {"to": "{{n}}"}), RemediationStep(LOOKING, "", "a"), "look first")
    ),
    AdjustDependencies((Adjustment("b", ("a", "n")), Adjustment("c", parameters={"x": None}), Adjustment("d", ()))),
)
OPERATIONS: tuple[Operation, ...] = (
    Supersede("a"),
    Skip("b"),
    Add(STEP, before="c"),
    Add(LOOKING, after="a"),
    SetDependencies("b", ("a", "n")),
    SetParameters("b", {"to": "Ann"}),
    Reopen("b"),
    Mark("b"),
)
ACTIONS: tuple[StepAction, ...] = (
    RetryWithAdjustedParams({"to": None, "n": 2}),
    RetryWithAlternativeTool("exam_score", {"name": "Ann"}),
    RetryWithAlternativeTool("exam_score"),
    TriggerOverallReflection("no more ideas"),
    ReplanEntireTask("all of it"),
)
CHOSEN = ToolSelectionResult(
    ("send",),
    "mail",
    90,
    "it sends",
    ChangesFromPrevious(
        ("send",),
        (Replacement("a", "b", "broken"),),
        (ToolChange("b", "new"),),
        (ToolChange("a"), ToolChange("c", "useless")),
    ),
)
REFLECTED = ReflectionResult(
    "o", "d", "i", "d", "l", 40, "tool", True, ("r",), ("i",), ("a", "b"), ("s",), ("l",), True, SkipSteps(("b",))
)
OF_PLANS: tuple[Event, ...] = (
    ToolsShortlisted(("send", "exam_score"), (("send",), ()), 0.5),
    ToolsSelected(("send", "exam_score"), "corrective", selection=CHOSEN),
    ProposalMade("decompose", ModelMessage("assistant", '{"steps": []}', usage=Usage(3, 1)), elapsed_s=1.5, requests=2),
    ProposalMade("step_reflection", ModelMessage("assistant", "?"), "b", "developer"),
    ProposalRefused("decompose", "invalid_plan", "unknown_tool:b:x;cycle:c", "b"),
    PlanMade(Plan((STEP, LOOKING), "p", 2, "send it", "mail", "as asked", "full_replan", "untrusted")),
    *(PlanEdited(1, 2, one, OPERATIONS, "model", "mended") for one in STRATEGIES),
    PlanSigned(2, "revise", "ann", "not so fast 慢"),
    PlanSigned(2, "approved", "ann"),
    StepStarted("b", 2, 1.5),
    StepEnded("b", error=StepError("parameter", "unresolved_reference", "a.who", 0.5), attempt=2),
    *(
        StepReflected(
            "b",
            2,
            "retry",
            StepReflection(one, "h", "e", "p", "tool_error", "gone", True, 80, "a", ("x", "y")),
            "exam_score",
            {"name": "Ann", "n": None},
            notes=("tool_error beside retry_with_params",),
        )
        for one in ACTIONS
    ),
    StepReflected("c", 1, "retry", instruction="look again"),
    StepReflected("b", 2, "escalate", why="malformed"),
    Escalated("b", ("send", "tool", "gone")),
    Escalated("", ("evaluation", "complete", "")),
    RunReflected("stop", ("blocked", "", ""), REFLECTED, "completed_partial", "completion_threshold"),
    *(
        RunReflected("replan", ("send", "tool", "x"), REFLECTED, strategy=one, engine_percent=3, disputed=True)
        for one in STRATEGIES
    ),
    RunEvaluated(EvaluationResult("complete", False, 12.5, 50.0, 1.0, None, 0.0, "half"), 2.5),
    InStep("b", 2, CallStarted("b.2", 3)),
    InStep("b", 2, CallEnded("b.2", ToolResult("no", "error", error="server:500", retry_after_s=1.5), 0.5)),
    InStep("b", 2, DoubtSettled("b.2", "abandoned", "ann")),
    InStep("c", 1, REPLY),
    InStep("c", 1, StepEnded("c", "words", sources=("c.1.1.0",), trust="untrusted")),
    InStep("c", 1, RunEnded(Stopped("max_steps"))),
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
    HypothesesMade(
        HypothesisTree(
            "1.1",
            "run",
            1,
            (
                HypothesisBranch(
                    "b1",
                    "run",
                    "read_file",
                    ({"path": "账单.txt"}, {"path": "b.txt"}),
                    "read first",
                    {"path": Flow("user", "name")},
                    necessity_score=0.9,
                    source="trajectory_memory",
                    path="ab",
                ),
                HypothesisBranch("b2", "run", "__response__", ({},), risk_level="high", status="rejected"),
            ),
            "b1",
        ),
        2,
        Asking("test:one", "solo"),
    ),
    BranchRejected("1.1", "b2", "intent", "not asked for"),
    BranchCommitted(
        CommitmentDecision("1.1", "b1", "model", "first", (Rejection("b2", "intent", "not asked for"),)),
        Asking("test:one", "guard", "no reply"),
        direct=True,
    ),
    BranchCommitted(CommitmentDecision("1.1", None, "order", "all were rejected")),
    CallJudged("c1", Allow(), origin="branch"),
    JudgementMade("c1", "ab", Asking("test:one", "solo", elapsed_s=0.5), "deny", "not asked for", "words-1"),
    CallJudged("c1", Allow(), rule="default"),
    CallJudged("c1", Ask("sends mail")),
    CallJudged("c1", Deny("not yours"), by="ann"),
    *OF_PLANS,
    CallReused("c2", "c1"),
    CallStarted("c1", 2),
    CallEnded("c1", ToolResult("91", size=2, blob="ab", source="file", trust="trusted"), 0.5),
    DoubtSettled("c1", "done", "ann", ToolResult("sent")),
    DoubtSettled("c1", "abandoned", "ann", elapsed_s=2.5),
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


def fit_heads(path: Path) -> None:
    """Let what stands beside a journal tell of what is in it now, as if it had been written so."""
    db, heads = sqlite3.connect(path), Heads(path, may_write=True)
    try:
        Reader(db, path, heads).note_heads()
    finally:
        heads.close()
        db.close()
