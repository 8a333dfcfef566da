"""The conversations that every wire is asked to carry, and the schema of a step."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from surefoot.types.messages import CallMode, ModelMessage, ModelRequest, ModelSettings, NativeCall
from surefoot.types.tools import Catalogue, ToolSpec

SYSTEM = "Be brief."
SCORE = ToolSpec(
    "exam_score",
    "Exam score of one student.",
    {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
)
TOOLS = Catalogue((SCORE,))
STEP_SCHEMA = {
    "type": "object", "properties": {"thought": {"type": "string"}}, "required": ["thought"],
    "additionalProperties": False,
}  # fmt: skip
SETTINGS = ModelSettings(temperature=0, max_output_tokens=64, seed=0)


def _message(calls: Iterable[tuple[str, str, Any]] = (), **told: Any) -> ModelMessage:
    return ModelMessage(calls=tuple(NativeCall(*call) for call in calls), **told)


_LINES = (Path(__file__).parents[1] / "data" / "models" / "conversations.jsonl").read_text(encoding="utf-8")
CONVERSATIONS: dict[str, tuple[ModelMessage, ...]] = {
    row["name"]: tuple(_message(**one) for one in row["messages"]) for row in map(json.loads, _LINES.splitlines())
}
(QUESTION,) = CONVERSATIONS["question"]


def request(conversation: str, mode: CallMode = "native", **traits: str) -> ModelRequest:
    """The request that asks for the next reply of a conversation."""
    return ModelRequest(
        SYSTEM,
        CONVERSATIONS[conversation],
        mode,
        TOOLS,
        STEP_SCHEMA if mode == "schema" else None,
        ("\nObservation:",) if mode == "text" else (),
        SETTINGS,
        traits,
    )


def step(action: str, arguments: Mapping[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {
            "thought": {"type": "string", "maxLength": 60},
            "action": {"const": action},
            "action_input": arguments,
        },
        "required": ["thought", "action", "action_input"],
        "additionalProperties": False,
    }


STEP: dict[str, object] = {
    "anyOf": [
        step("exam_score", {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}),
        step("Final Answer", {"type": "string"}),
    ]
}
