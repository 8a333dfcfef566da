"""The examples of seed 003, each played through once on models that say what a good model would."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from surefoot import ModelMessage
from surefoot.testing.models import FunctionModel, ScriptedModel, calls
from surefoot.types.messages import ModelRequest

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).parent.parent / "examples"
DONE = "<deliverable>\n<final_output>171</final_output>\n</deliverable>\nTASK_DONE"


@pytest.fixture(autouse=True)
def beside_the_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    monkeypatch.delitem(sys.modules, "scores", raising=False)


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def both_scores() -> ModelMessage:
    return calls(("exam_score", {"name": "Alice"}), ("exam_score", {"name": "Bob"}))


async def test_the_model_service_answers_whole_and_in_pieces(capsys: pytest.CaptureFixture[str]) -> None:
    model = ScriptedModel(["The Seine.", "The English Channel."])
    await example("run_model_service").main(model)
    told = capsys.readouterr().out
    assert "model: The Seine." in told
    assert "The English Channel." in told
    assert [message.content for message in model.requests[1].messages][1] == "The Seine."


@pytest.mark.parametrize("native", [True, False])
async def test_functions_are_called_and_their_results_handed_back(*, native: bool) -> None:
    def reply(request: ModelRequest) -> ModelMessage | str:
        shown = [request.system, *(message.content for message in request.messages)]
        shown += [f"{tool.description} {tool.parameters}" for tool in request.tools.tools]
        assert "book" not in " ".join(shown).lower()  # the service and its parameter
        if len(request.messages) > 1:
            return "Bob has 81."
        bodies = [json.dumps({"name": "exam_score", "args": {"name": name}}) for name in ("Alice", "Bob")]
        return both_scores() if native else "".join(f"<function_call>{body}</function_call>" for body in bodies)

    model = FunctionModel(reply, modes=("native",) if native else ("text",))
    assert await example("run_function_calling").main(model) == "Bob has 81."
    told = " ".join(message.content for message in model.requests[1].messages)
    assert "90" in told
    assert "81" in told


async def test_both_reasoners_deliver_without_tools() -> None:
    def reply(request: ModelRequest) -> str:
        return "TASK_DONE" if "You are the Thinker" in request.system else DONE

    mono, dual = await example("run_reasoner_without_func_calling").main(FunctionModel(reply))
    assert [mono.deliverable.output, dual.deliverable.output] == ["171", "171"]


async def test_the_mono_reasoner_calls_and_delivers(capsys: pytest.CaptureFixture[str]) -> None:
    answer = await example("run_mono_reasoner_with_func_calling").main(ScriptedModel([both_scores(), DONE]))
    assert answer.deliverable.output == "171"
    assert "answer: 171" in capsys.readouterr().out


async def test_the_dual_reasoner_instructs_calls_and_delivers() -> None:
    thinker = ScriptedModel(["<instruction>Look both up.</instruction><input>Alice, Bob</input>", "TASK_DONE"])
    actor = ScriptedModel([both_scores(), "90 and 81.", DONE])
    answer = await example("run_dual_reasoner_with_func_calling").main(thinker, actor)
    assert (answer.deliverable.output, answer.run.calls) == ("171", 2)
