"""The run of an agent that was asked, as a shell has it: shown inside the outer run, and answered there."""

from pathlib import Path

from cli_world import Command

from plan_kit import step, thinking
from surefoot import Agent, SqliteJournal, tool
from surefoot.testing.models import ScriptedModel, calls
from surefoot.testing.world import plan
from test_agent_tools import TASK, Post, asking, desk


def test_a_shell_shows_the_inner_run_and_answers_its_question(tmp_path: Path, surefoot: Command) -> None:
    post, path = Post(), tmp_path / "runs.db"
    with desk(asking(post), SqliteJournal(path)) as agent:
        agent.run_sync(TASK, run_id="run")
    at = ("--journal", str(path))
    told = surefoot("show", "run", *at)
    assert "run run.1.0" in told.out
    assert "send_mail" in told.out
    assert "surefoot approve run 1.0/1.0 --by NAME" in told.out
    assert "run.1.0" not in surefoot("runs", *at).out
    assert "run.1.0" in surefoot("runs", "--all", *at).out
    assert "send_mail" in surefoot("show", "run", "--why", "1.0/1.0", *at).out
    assert "1.0/1.0" in surefoot("show", "ru", *at).out  # the inner run does not make the beginning of an id ambiguous
    assert surefoot("approve", "run", "1.0/1.0", "--by", "Ada", "--yes", *at).code == 0
    with desk(asking(post), SqliteJournal(path)) as agent:
        run = agent.resume_sync("run")
    assert (run.status, post.sent.total()) == ("completed", 1)
    for run_id in ("run", "run.1.0"):
        assert "all alike" in surefoot("replay", run_id, *at).out


def test_a_shell_shows_the_agent_that_a_step_of_a_plan_has_asked(tmp_path: Path, surefoot: Command) -> None:
    path = tmp_path / "runs.db"

    @tool(effect="read")
    def look(name: str) -> str:
        """Look at it."""
        return f"seen {name}"

    inner = Agent(ScriptedModel([calls(("look", {"name": "x"})), "seen"]), [look]).as_tool("scout", "Looks.")
    replies = ScriptedModel([plan(step("a", "scout", task="look"), thinking("b", ["a"])), "weighed", "the answer"])
    with Agent(replies, [inner], reasoner="plan", journal=SqliteJournal(path)) as agent:
        assert agent.run_sync("look", run_id="run").answer == "the answer"
    at = ("--journal", str(path))
    told = surefoot("show", "-v", "run", *at).out
    assert "run run.a.1" in told
    assert "seen x" in told
    assert told.count("step a (tool)") == 1
    assert "look" in surefoot("show", "run", "--why", "a.1/1.0", *at).out


def test_runs_that_agents_were_asked_for_leave_none_out(tmp_path: Path, surefoot: Command) -> None:
    path = tmp_path / "runs.db"
    inner = Agent(ScriptedModel(["ok"] * 11)).as_tool("scout", "Looks.")
    asks = calls(*[("scout", {"task": f"task {number}"}) for number in range(11)])
    with Agent(ScriptedModel([asks, "done"]), [inner], journal=SqliteJournal(path)) as agent:
        agent.run_sync("look", run_id="run")
    told = surefoot("runs", "-n", "1", "--journal", str(path)).out
    assert "run " in told
    assert "no runs yet" not in told
