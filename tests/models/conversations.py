"""The conversations that every wire is asked to carry, and the schema of a step."""

from collections.abc import Mapping

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
    "type": "object",
    "properties": {"thought": {"type": "string"}},
    "required": ["thought"],
    "additionalProperties": False,
}
SETTINGS = ModelSettings(temperature=0, max_output_tokens=64, seed=0)

QUESTION = ModelMessage("user", "Sum of Alice's and Bob's scores? 分数")
ASKS_TWO = ModelMessage(
    "assistant",
    calls=(
        NativeCall("functions.exam_score:0", "exam_score", '{"name":"Alice"}'),
        NativeCall("call_2", "exam_score", {"name": "Bob"}),
    ),
    reasoning="I need both.",
    model="m-2026",
)
RESULTS = (
    ModelMessage("tool", "90", call_id="functions.exam_score:0", name="exam_score"),
    ModelMessage("tool", '{"Bob":81}', call_id="call_2", name="exam_score"),
)
BROKEN = ModelMessage(
    "assistant", "Trying.", calls=(NativeCall("c3", "exam_score", '{"name":'), NativeCall("c4", "exam_score", ""))
)
BROKEN_RESULTS = (
    ModelMessage("tool", "the arguments are no JSON", call_id="c3", name="exam_score"),
    ModelMessage("tool", "name is required", call_id="c4", name="exam_score"),
)

CONVERSATIONS: dict[str, tuple[ModelMessage, ...]] = {
    "question": (QUESTION,),
    "two_calls": (QUESTION, ASKS_TWO, *RESULTS),
    "faulty_calls": (QUESTION, BROKEN, *BROKEN_RESULTS),
    "text_steps": (
        QUESTION,
        ModelMessage("assistant", "Action: exam_score\nAction Input: Alice"),
        ModelMessage("user", "Observation: 90"),
        ModelMessage("user", "You have 2 rounds left."),
    ),
}


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
