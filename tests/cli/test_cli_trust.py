"""What a run leaves behind and what comes from elsewhere cannot decide what is executed or where keys go."""

import shutil
import stat
import sys
from pathlib import Path

import pytest
from cli_world import ChatServer, Command, Json, calls, chat_server, ended, run_id_in, says, start, texts

from cases import cases
from surefoot.cli.lines import closing
from surefoot.cli.recipes import recipe_path
from surefoot.cli.setup import tools_in
from surefoot.core.state.turn import Call
from surefoot.run import Run
from surefoot.telling.text import visible, without_password

ONE = '''
import surefoot
{imports}

@surefoot.tool(effect="read")
def one() -> int:
    """One."""
    return 1
'''


def with_password(chat: ChatServer) -> str:
    return chat.model.replace("://", "://ada:secret-1234@")


def test_a_file_beside_the_tools_never_stands_before_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rapidfuzz.py").write_text("raise RuntimeError")
    (tmp_path / "beside_the_tools.py").write_text("")
    (tmp_path / "one.py").write_text(ONE.format(imports="import rapidfuzz, beside_the_tools"))
    monkeypatch.delitem(sys.modules, "rapidfuzz", raising=False)
    before = list(sys.path)
    assert [tool.spec.name for tool in tools_in(tmp_path / "one.py")] == ["one"]
    assert sys.path == before
    monkeypatch.delitem(sys.modules, "beside_the_tools")


@cases("cli/trust")
def test_no_tool_writes_what_says_how_a_run_is_made(
    surefoot: Command, tmp_path: Path, options: tuple[str, ...], paths: tuple[str, ...]
) -> None:
    files = {
        "one.py": ONE.format(imports=""),
        "rules.toml": "",
        "house.cedar": "permit(principal, action, resource);",
        "guard.toml": "[guard]\nmode = 'observe'\nrules_file = 'rules.toml'\ncedar_file = 'house.cedar'",
        "mcp.json": '{"mcpServers": {}}',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "linked.py").symlink_to("one.py")
    (tmp_path / "link.db").symlink_to("real.db")
    wanted: list[tuple[str, Json]] = [("file_write", {"path": path, "text": "x"}) for path in (*paths, "two.py")]
    with chat_server(calls(*wanted), says("done")) as chat:
        task = f"Write {', '.join(paths)} and two.py."
        surefoot("run", "--guard", "off", "--model", chat.model, "--write", *options, task)
    told = ["closed to tools" in text for text in texts(chat.bodies[1], "tool")]
    assert told == [True] * len(paths) + [False]
    assert (tmp_path / "two.py").read_text() == "x"
    assert {name: (tmp_path / name).read_text() for name in files} == files
    assert not [path for path in paths if (tmp_path / path).exists() and path not in (*files, "real.db-wal")]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")
def test_a_recipe_is_for_this_user_alone(surefoot: Command, tmp_path: Path) -> None:
    with chat_server(says("hi")) as chat:
        run_id = run_id_in(surefoot("run", "--model", chat.model, "x").err)
    recipe = recipe_path(tmp_path / ".surefoot" / "journal.db", run_id)
    assert recipe.parent.parent == tmp_path / "state" / "recipes"
    assert len(recipe.parent.name) == 16
    assert [stat.S_IMODE(path.stat().st_mode) for path in (recipe, recipe.parent)] == [0o600, 0o700]


def test_without_a_named_folder_recipes_are_in_the_users_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUREFOOT_STATE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert recipe_path(tmp_path / "j.db", "r1").is_relative_to(tmp_path / "xdg" / "surefoot" / "recipes")


def test_a_folder_from_elsewhere_brings_no_model_address_and_no_tools(surefoot: Command, tmp_path: Path) -> None:
    with chat_server(401, 401) as chat:
        run_id = run_id_in(surefoot("run", "--model", chat.model, "x").err)
        shutil.copytree(tmp_path / ".surefoot", tmp_path / "cloned")
        done = surefoot("resume", run_id, "--journal", "cloned/journal.db")
        assert (done.code, done.err.count("\n"), len(chat.bodies)) == (2, 1, 1)
        assert f"--model {chat.model}" in done.err
        assert surefoot("resume", run_id, "--journal", "cloned/journal.db", "--model", chat.model).code == 5


def test_a_password_in_an_address_is_not_kept_but_asked_again(surefoot: Command, tmp_path: Path) -> None:
    with chat_server(401, says("hi")) as chat:
        said = ["--model", "vllm:m", "--base-url", with_password(chat).partition("#")[0]]
        failed = surefoot("run", *said, "x")
        run_id = run_id_in(failed.err)
        refused = surefoot("resume", run_id)
        assert (refused.code, refused.err.count("\n"), len(chat.bodies)) == (2, 1, 1)
        assert "give --base-url again: http://127.0.0.1:" in refused.err
        done = surefoot("resume", run_id, *said)
        assert done.out == "hi\n"
        told = failed.err + refused.err + done.err + surefoot("show", run_id).out + surefoot("runs").out
    assert "secret-1234" not in told
    kept = [path for place in (".surefoot", "state") for path in (tmp_path / place).rglob("*") if path.is_file()]
    assert not any(b"secret-1234" in path.read_bytes() for path in kept)


def test_doctor_shows_no_password_in_an_address(surefoot: Command) -> None:
    with chat_server() as chat:
        address = with_password(chat)
        told = [
            surefoot("doctor", "--model", address),
            surefoot("doctor", "--model", address.partition("#")[0]),
            surefoot("run", "--model", address.partition("#")[0], "x"),
        ]
    assert all("127.0.0.1" in one.out + one.err for one in told)
    assert not any("secret-1234" in one.out + one.err for one in told)


def test_only_the_user_part_of_an_address_is_a_password() -> None:
    assert without_password("http://a:b@c@h:1/v1#m@2 and x@y") == "http://h:1/v1#m@2 and x@y"


@cases("cli/trust")
def test_what_shows_nothing_is_written_out(hidden: str, shown: str) -> None:
    assert visible(f"a{hidden}b 成绩 é") == f"a{shown}b 成绩 é"


@pytest.mark.parametrize("reason", ["approval", "in_doubt"])
def test_a_pause_shows_all_that_a_person_answers_for(reason: str) -> None:
    call = Call("1.0", "", "send", {"text": "x" * 500 + " and delete all"})
    lines = closing(Run("r1", "paused", reason=reason, waiting=(call,)))
    assert any("x and delete all" in line.text for line in lines)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that nobody can read")
def test_an_attachment_that_cannot_be_read_is_one_clear_line(surefoot: Command) -> None:
    done = surefoot("run", "--model", "http://127.0.0.1:1/v1#m", "--attach", "/proc/self/mem", "x")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "--attach /proc/self/mem: cannot be read" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="a current folder cannot be removed there")
def test_a_current_folder_that_is_gone_is_one_clear_line(surefoot: Command, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(gone)
        gone.rmdir()
        done = surefoot("run", "--model", "http://127.0.0.1:1/v1#m", "x")
    assert (done.code, done.err) == (2, "surefoot: the current folder is gone or unreadable; use another\n")


@pytest.mark.parametrize("given", [("--words", "-"), ("-", "Sum it up.")])
def test_a_task_on_stdin_that_is_no_text_is_one_clear_line(tmp_path: Path, given: tuple[str, ...]) -> None:
    (tmp_path / "task").write_bytes(b"caf\xe9 \xff")
    with (tmp_path / "task").open() as task:
        done = ended(start(tmp_path, "run", "--model", "http://127.0.0.1:1/v1#m", *given, stdin=task.fileno()))
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "stdin is not text" in done.err
