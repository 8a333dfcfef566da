"""Write the golden journal of this version: one run in which every kind of event occurs. Run once for a release."""

import sys
from pathlib import Path

from surefoot.journal.codec import encode
from surefoot.runtime.cast import chosen_templates
from surefoot.types.attachments import Attachment
from surefoot.types.config import LoopConfig
from surefoot.types.events import (
    VERSION,
    CallEnded,
    CallJudged,
    CallReused,
    CallStarted,
    DoubtSettled,
    Event,
    ModelFailed,
    ModelReplied,
    ModelTraitLearnt,
    RunEnded,
    RunForked,
    RunResumed,
    RunStarted,
    Speaker,
    ToolsSelected,
)
from surefoot.types.knowledge import ConventionsConfig
from surefoot.types.messages import ModelMessage, NativeCall, Usage
from surefoot.types.outcomes import Allow, Ask, CompletedPartial, Deny
from surefoot.types.prehydration import PreHydrationConfig, Resolver
from surefoot.types.progress import LimitAction, StepIterationConfig
from surefoot.types.reply import Fault, FaultyCall, Parsed, ParsedCall
from surefoot.types.selection import ToolProfile
from surefoot.types.task import Task
from surefoot.types.tools import Catalogue, ToolResult, ToolSpec

ANY = {"type": "object", "properties": {"q": {"type": "string"}}}
TOOLS = Catalogue(
    (
        ToolSpec("look", "Look it up. 查一查", ANY, effect="read"),
        ToolSpec("send", "Send it.", ANY, has_probe=True, timeout_s=3.0),
    )
)
CONFIG = LoopConfig(
    nudges=1,
    tool_profile=ToolProfile(include=["look", "send"]),
    step_iteration=StepIterationConfig(on_limit_reached=LimitAction.AnswerNow),
    pre_hydration=PreHydrationConfig(resolution_tools={"issue": Resolver("look", "q")}),
    conventions=ConventionsConfig("."),
)
EVENTS: tuple[Event, ...] = (
    RunStarted(
        "golden",
        Task("小明考了多少分？", (Attachment("a.md", "text"),)),
        {"solo": Speaker("test:m", traits={"json_schema": "yes"})},
        TOOLS,
        chosen_templates("react", "auto", frozenset(), {}),
        instructions="Be brief.",
    ),
    ModelTraitLearnt("test:m", "stop", "no", "remembered"),
    ToolsSelected(("look", "send"), "all"),
    ModelReplied(
        1,
        ModelMessage(
            "assistant",
            "I look.",
            (NativeCall("a", "look", '{"q": "x"}'), NativeCall("b", "send", "{")),
            reasoning="hm",
            finish_reason="tool_calls",
            usage=Usage(10, 5, 2, 1, 0.001),
            model="m-1",
            attempts=2,
            id="r1",
        ),
        Parsed(
            (ParsedCall(0, "look", {"q": "x"}, "a", coerced=("q",)),),
            content="I look.",
            error=Fault("malformed_json", "at 1", "send"),
            errors=(FaultyCall(1, Fault("malformed_json", "at 1", "send"), "send", "b"),),
            warnings=frozenset({"trailing_text"}),
            format="native",
        ),
        elapsed_s=1.5,
    ),
    CallJudged("1.0", Allow()),
    CallStarted("1.0"),
    RunResumed("Ada", config=CONFIG),
    CallStarted("1.0", attempt=2),
    CallEnded("1.0", ToolResult("found", size=5, source="look"), elapsed_s=2.0),
    ModelFailed("timeout", "no reply in 5 s", attempts=3, elapsed_s=3.0),
    RunForked("golden-2", "golden", 10, {"solo": Speaker("test:n")}),
    ModelReplied(
        2,
        ModelMessage("assistant", "", (NativeCall("a", "look", {"q": "x"}), NativeCall("c", "send", '{"q": "y"}'))),
        Parsed((ParsedCall(0, "look", {"q": "x"}, "a"), ParsedCall(1, "send", {"q": "y"}, "c")), format="native"),
    ),
    CallReused("2.0", "1.0"),
    CallJudged("2.1", Ask("really?"), "policy"),
    CallJudged("2.1", Allow(), "person", "Ada"),
    CallStarted("2.1"),
    DoubtSettled("2.1", "unknown", "probe"),
    DoubtSettled("2.1", "done", "Ada", ToolResult("sent", source="Ada", trust="trusted")),
    ModelReplied(
        3, ModelMessage("assistant", "", (NativeCall("d", "send", "{}"),)), Parsed((ParsedCall(0, "send", {}),))
    ),
    CallJudged("3.0", Deny("no"), "policy"),
    ModelReplied(4, ModelMessage("assistant", "95", finish_reason="length"), Parsed(content="95"), want="answer"),
    RunEnded(CompletedPartial("95", "steps")),
)


def main() -> None:
    """One line a record: the version, a tab, the body; the catalogue is the first line."""
    lines: list[bytes] = []
    for event in EVENTS:
        body, blob = encode(event)
        if blob is not None:
            lines.insert(0, b"tools\t" + blob[1])
        lines.append(b"%d\t%b" % (VERSION, body))
    Path(sys.argv[1]).write_bytes(b"\n".join(lines) + b"\n")


if __name__ == "__main__":
    main()
