"""Mono and dual runs on the command line: who speaks, with which model, and what comes out."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast  # Any: JSON

import pytest
from cli_world import SCORES, ChatServer, Command, Ended, Json, calls, chat_server, run_id_in, says

from cases import cases, rows
from surefoot.cli.options import Options
from surefoot.cli.recipes import Chosen, Recipe, recipe_of
from surefoot.cli.setup import agent_from, recipe_from
from surefoot.core.state.state import SpeakerState, State
from surefoot.journal.memory import MemoryJournal
from surefoot.types.errors import UsageError
from surefoot.types.task import Task

INSTRUCTION = says(
    "<deep_thinking>She sat it.</deep_thinking><instruction>Look up\nAlice's score</instruction><input>Alice</input>"
)
LOOKS = calls(
    ("exam_score", {"name": "Alice"}), text="<shallow_thinking>Easy.</shallow_thinking><action>I look.</action>"
)
REPORT = says("Alice has 90,\nsays the tool.")
DONE = says("TASK_DONE")
BODY = "<task_objective>Alice's score</task_objective>\n<final_output>\nAlice has 90.\n</final_output>"
DELIVERY = says(f"<deliverable>\n{BODY}\n</deliverable>\nTASK_DONE")
DUAL = State(
    1,
    "r1",
    Task("x"),
    {"thinker": SpeakerState("vllm:t", "text", "text", {}), "actor": SpeakerState("vllm:a", "native", "native", {})},
    reasoner="dual",
)


@pytest.fixture(autouse=True)
def scores(tmp_path: Path) -> None:
    (tmp_path / "scores.py").write_text(SCORES, encoding="utf-8")


def with_scores(surefoot: Command, *options: str) -> Ended:
    return surefoot("run", "--tools", "scores.py", "--no-builtin", *options, "Alice's score?")


def dual_run(surefoot: Command, *options: str) -> Ended:
    """A whole dual run, on one server for both roles."""
    with chat_server(INSTRUCTION, LOOKS, REPORT, DONE, DELIVERY) as chat:
        return with_scores(surefoot, "--reasoner", "dual", "--model", chat.model, *options)


def test_show_tells_roles_instruction_rounds_and_tokens(surefoot: Command) -> None:
    run_id = run_id_in(dual_run(surefoot).err)
    lines = surefoot("show", run_id).out.splitlines()
    assert "reasoner dual · 2 rounds" in lines
    assert any(line.startswith("thinker: http://") and line.endswith("2 replies · 20 + 10 tokens") for line in lines)
    assert any(line.startswith("actor: http://") and line.endswith("3 replies · 30 + 15 tokens") for line in lines)
    at = next(at for at, line in enumerate(lines) if line.startswith("step 1 · thinker · record 1 ·"))
    assert lines[at + 1 : at + 4] == ["  Look up", "    Alice's score", "  input: Alice"]
    assert lines[at + 4].startswith("step 2 · actor · record 2 ·")
    assert surefoot("replay", run_id).out == "10 records, all alike\n"
    assert "thinker http://" in surefoot("runs").out


def test_json_has_all_of_the_answer_its_parts_and_the_models_by_role(surefoot: Command) -> None:
    done = dual_run(surefoot, "--json")
    run = cast("Json", done.json_lines[-1]["run"])
    assert run["answer"] == BODY
    parts = {"task_objective": "Alice's score", "task_context": "", "key_reasoning_points": ""}
    assert run["deliverable"] == {**parts, "final_output": "Alice has 90."}
    assert (run["reasoner"], run["rounds"], done.err) == ("dual", 2, "")
    assert set(cast("Json", run["models"])) == {"thinker", "actor"}


def test_a_dual_run_goes_on_with_another_actor(surefoot: Command) -> None:
    with chat_server(INSTRUCTION, DONE) as thinker, chat_server(401) as broken, chat_server() as other:
        options = ("--reasoner", "dual", "--thinker", thinker.model, "--actor", broken.model)
        failed = with_scores(surefoot, *options)
        assert failed.code == 5
        assert "! Actor: no reply after 1 attempt (auth)" in failed.err
        run_id = run_id_in(failed.err)
        other.script += [LOOKS, REPORT, DELIVERY]
        done = surefoot("resume", run_id, "--actor", other.model)
        assert (done.code, done.out) == (0, "Alice has 90.\n")
        assert f"resumed, with actor {other.model}\n" in done.err
        shown = surefoot("show", run_id).out
        assert f"thinker: {thinker.model} · " in shown
        assert f"actor: {other.model} · " in shown
        again = surefoot("resume", run_id)  # it has ended: its outcome is given again
    assert (again.code, again.out) == (0, "Alice has 90.\n")
    assert ["tools" in body for body in thinker.bodies + other.bodies[:2]] == [False, False, True, True]


@cases("cli/reasoners")
def test_a_run_keeps_its_reasoner_and_its_prompts(surefoot: Command, options: list[str], said: str) -> None:
    with chat_server(401) as chat:
        failed = with_scores(surefoot, "--reasoner", "dual", "--model", chat.model, "--thinking", "plain")
        run_id = run_id_in(failed.err)
        refused = surefoot("resume", run_id, *options)
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert said in refused.err
        assert surefoot("fork", run_id, "--at", "1", *options).code == 2
        chat.script += [INSTRUCTION, LOOKS, REPORT, DONE, DELIVERY]
        done = surefoot("resume", run_id, "--reasoner", "dual", "--thinking", "plain")
    assert (done.code, done.out) == (0, "Alice has 90.\n")


@pytest.mark.parametrize("case", rows("cli/recipes"))
def test_which_model_plays_which_role_and_at_which_address(case: Mapping[str, Any]) -> None:
    """Of a run of two models, as its journal and perhaps an earlier recipe have them."""
    earlier = {role: Chosen(*one) for role, one in case.get("earlier", {}).items()}
    speakers = {**DUAL.speakers, "actor": SpeakerState(case.get("actor", "vllm:a"), "native", "native", {})}
    kept, state = Recipe(earlier, ".", ()) if earlier else None, replace(DUAL, speakers=speakers)
    if "refused" in case:
        with pytest.raises(UsageError, match=case["refused"]):
            recipe_from(Options(**case["options"]), kept, state)
    else:
        wanted = {role: Chosen(*one) for role, one in case["models"].items()}
        assert recipe_from(Options(**case["options"]), kept, state).models == wanted


def test_a_model_that_plays_both_roles_is_there_once() -> None:
    both = Chosen("vllm:m", "http://127.0.0.1:1/v1")
    recipe = Recipe({"thinker": both, "actor": both}, ".", (), reasoner="dual")
    models = agent_from(recipe, (), MemoryJournal()).model
    assert isinstance(models, dict)
    assert models["thinker"] is models["actor"]


def test_a_password_of_either_role_is_not_kept_and_asked_for_again(surefoot: Command, tmp_path: Path) -> None:
    def secret(chat: ChatServer) -> str:
        return chat.model.replace("://", "://ada:secret-1234@")

    with chat_server(401, INSTRUCTION, DONE) as thinker, chat_server(LOOKS, REPORT, DELIVERY) as actor:
        both = ("--thinker", secret(thinker), "--actor", secret(actor))
        failed = with_scores(surefoot, "--reasoner", "dual", *both)
        run_id = run_id_in(failed.err)
        for lacking, given in (("thinker", both[2:]), ("actor", both[:2])):
            refused = surefoot("resume", run_id, *given)
            assert (refused.code, refused.err.count("\n")) == (2, 1)
            assert f"give --{lacking} again: http://127.0.0.1:" in refused.err
        done = surefoot("resume", run_id, *both, "--json")
        assert cast("Json", done.json_lines[-1]["run"])["status"] == "completed"
        told = failed.err + refused.err + done.out + surefoot("show", run_id).out + surefoot("runs", "--json").out
    assert "secret-1234" not in told
    kept = [path for place in (".surefoot", "state") for path in (tmp_path / place).rglob("*") if path.is_file()]
    assert not any(b"secret-1234" in path.read_bytes() for path in kept)
    recipe = recipe_of(tmp_path / ".surefoot" / "journal.db", run_id)
    assert recipe is not None
    assert recipe.models["actor"] == Chosen(actor.model, None, ("model",))
