"""The run of an agent that was asked, as a shell has it: shown inside the outer run, and answered there."""

from pathlib import Path

from cli_world import Command

from surefoot import SqliteJournal
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
