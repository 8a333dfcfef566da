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


def test_a_picture_beside_the_task_and_one_of_a_tool_are_shown(tmp_path: Path) -> None:
    picture = example("picture")
    (tmp_path / "door.png").write_bytes(picture.RED)
    with picture.served() as model:
        assert picture.compare(model, tmp_path / "door.png") == "I was shown 2 pictures."


def test_a_conversation_goes_on_in_another_agent(tmp_path: Path) -> None:
    said = [calls(("exam_score", {"name": "Alice"})), "90.", calls(("exam_score", {"name": "Bob"})), "81.", "Alice's."]
    model = ScriptedModel(said)
    runs = example("chat").talk(model, tmp_path / "runs.db")
    wanted = [("scores-0001", "90."), ("scores-0002", "81."), ("scores-0003", "Alice's.")]
    assert [(run.id, run.answer) for run in runs] == wanted
    assert model.requests[-1].messages[: len(model.requests[-2].messages)] == model.requests[-2].messages


async def test_azure_is_asked_with_a_new_token_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert await example("azure_behind_a_gateway").main() == ["The Seine.", "The Seine."]
    told = capsys.readouterr().out
    assert told.count("POST /openai/deployments/my-gpt/chat/completions?api-version=2024-10-21") == 2
    assert "Authorization: Bearer made.up.1, X-Team: desk" in told
    assert "Authorization: Bearer made.up.2, X-Team: desk" in told
    assert told.count("reasoning_effort: low") == 2


async def test_a_typed_answer_comes_from_a_server_on_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    module = example("typed_answer")
    with module.served() as name:
        await module.main(name)
    told = capsys.readouterr().out
    assert "01.05.2026, 5 nights: Milan, Rome" in told
    assert "completed after 3 requests and 1 calls" in told


def test_many_tasks_in_threads_share_an_agent() -> None:
    def reply(request: ModelRequest) -> ModelMessage | str:
        name = request.messages[0].content.split("'")[0].split()[-1]
        return calls(("exam_score", {"name": name})) if len(request.messages) == 1 else request.messages[-1].content

    runs = example("threads").ask_all(FunctionModel(reply))
    assert [(run.status, run.answer) for run in runs] == [("completed", score) for score in ("90", "81", "77", "64")]


async def test_a_run_goes_on_with_the_next_model(capsys: pytest.CaptureFixture[str]) -> None:
    await example("fallback").main(ScriptedModel([calls(("exam_score", {"name": "Alice"})), "90"]))
    assert capsys.readouterr().out == "unavailable: test:scripted goes on\ncompleted: 90\n"


async def test_wrappers_time_redact_and_remember(capsys: pytest.CaptureFixture[str]) -> None:
    model = ScriptedModel([calls(("contact", {"name": "Ann"})), "In Rome."] * 2)
    await example("wrappers").main(model)
    told = capsys.readouterr().out
    assert (told.count("looking up Ann"), told.count("In Rome."), told.count("tokens in")) == (1, 2, 4)
    assert model.requests[-1].messages[-1].content == "Ann lives in Rome, phone [phone]"


async def test_parts_of_a_run_work_alone(capsys: pytest.CaptureFixture[str]) -> None:
    await example("parts_alone").main(ScriptedModel([{"selected_tool_ids": ["exchange_rate"]}]))
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "visible: web_get, exchange_rate"
    assert told[1].endswith("says that the bridge is open.")
    assert told[2] == "chosen: exchange_rate"


async def test_resources_and_prompts_of_a_server_are_used(capsys: pytest.CaptureFixture[str]) -> None:
    model = ScriptedModel(["In the shed.", calls(("notes__read_resource", {"uri": "notes://tuesday"})), "It is green."])
    await example("mcp_resources").main(model)
    assert capsys.readouterr().out.endswith("In the shed.\nIt is green.\n")
    assert model.requests[-1].messages[-1].content == "The paint is green."
