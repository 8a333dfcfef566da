"""The example of planning with its tools and replies, for tests of the command. Source: spec/planning.md, 17."""

import json
from pathlib import Path

from cli_world import Command, Ended, Json, chat_server, says

TASK = "Average the column `t` of log.csv and post it to #lab."

LAB = '''
"""Tools of a small laboratory."""
import csv
from pathlib import Path

from surefoot import tool
from surefoot.tools.call import OutcomeUnknown, ToolFailed


@tool(effect="read")
async def read_csv(path: str) -> dict[str, list[str]]:
    """The columns of a CSV file."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    return {name: [row[name] for row in rows] for name in rows[0]}


@tool(effect="read")
async def to_numbers(values: list[str], decimal: str = ".") -> list[float]:
    """Texts as numbers."""
    return [float(value.replace(decimal, ".")) for value in values]


@tool(effect="read")
async def mean(values: list[object]) -> float:
    """The mean of numbers."""
    for value in values:
        if isinstance(value, str):
            raise ToolFailed(f"this is no number: {value}", code="parameter:not_numeric")
    return round(sum(values) / len(values), 2)


@tool(effect="communicate")
async def post(channel: str, text: str) -> str:
    """Post a text to a channel."""
    if channel == "#void":
        raise OutcomeUnknown("the channel did not answer")
    return f"posted to {channel}"
'''

RULES = """
[[rule]]
id = "posting"
when = { tool = "post" }
then = "ask"
reason = "What is posted is looked at first."
"""

STEPS: list[Json] = [
    {"step_id": "r", "tool_id": "read_csv", "parameters": {"path": "log.csv"}, "dependencies": []},
    {"step_id": "m", "tool_id": "mean", "parameters": {"values": "{{r.t}}"}, "dependencies": ["r"]},
    {"step_id": "p", "step_name": "发布 the mean", "tool_id": "post", "dependencies": ["m"], "must_succeed": True,
     "parameters": {"channel": "#lab", "text": "mean {{m.output}}"}},
]  # fmt: skip
NUMBERS: Json = {
    "step_id": "n", "tool_id": "to_numbers", "parameters": {"values": "{{r.t}}", "decimal": ","},
    "insert_before": "m", "target_parameters": {"values": "{{n.output}}"},
}  # fmt: skip


def plan(*steps: Json, description: str = "the mean, posted") -> Json:
    return says(json.dumps({"description": description, "steps": list(steps)}))


def reflects(action: str, data: object) -> Json:
    said = {"root_cause": "the values are texts", "suggested_action": {"type": action, "data": data}}
    return says(json.dumps(said))


def overall(strategy: Json) -> Json:
    said = {"completion_percent": 40, "problem_class": "parameter", "should_replan": True, "root_causes": ["commas"]}
    return says(json.dumps({**said, "replanning_strategy": strategy}))


REPAIRED: tuple[Json, ...] = (
    plan(*STEPS),
    reflects("retry_with_params", {"values": "{{r.t}}"}),
    reflects("trigger_overall_reflection", "a step is missing"),
    overall({"type": "add_remediation_steps", "suggestions": [NUMBERS]}),
)
"""What the model says until the post is asked about."""


def lab(folder: Path) -> None:
    """Lay out the files of the example: 31 rows whose mean is 12.71."""
    (folder / "lab.py").write_text(LAB, encoding="utf-8")
    (folder / "rules.toml").write_text(RULES, encoding="utf-8")
    rows = [f"{at};{value}" for at, value in enumerate(["12,5", *["12,72"] * 29, "12,63"])]
    (folder / "log.csv").write_text("\n".join(("n;t", *rows)), encoding="utf-8")


def planned(surefoot: Command, *said: Json | int, options: tuple[str, ...] = (), task: str = TASK) -> Ended:
    """Run the example with these replies."""
    with chat_server(*said) as chat:
        given = ("--model", chat.model, "--reasoner", "plan", "--no-builtin", "--tools", "lab.py")
        guard = () if "--rules" in options else ("--guard", "off")
        return surefoot("run", *given, *guard, *options, task)


def resumed(surefoot: Command, run_id: str, *said: Json | int, options: tuple[str, ...] = ()) -> Ended:
    """Go on with a run, with these replies."""
    with chat_server(*said) as chat:
        return surefoot("resume", run_id, "--model", chat.model, *options)
