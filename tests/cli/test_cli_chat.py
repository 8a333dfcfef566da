"""A conversation from the shell: turns, commands, and questions that are answered in place."""

import io
import sys
from pathlib import Path

import pytest
from cli_world import Command, calls, chat_server, says, typed

TOOLS = """
import surefoot

@surefoot.tool(effect="communicate")
def send_note(to: str, body: str) -> str:
    "Send a note."
    return f"sent to {to}"

@surefoot.tool(effect="read")
def score(name: str) -> int:
    "The score of a student."
    return 50
"""


@pytest.fixture
def tools(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "tools.py").write_text(TOOLS)
    return ("--tools", str(tmp_path / "tools.py"), "--no-builtin")


def test_a_chat_has_turns_and_goes_on(
    surefoot: Command, tools: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def talk(*arguments: str, lines: str) -> tuple[str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
        done = surefoot("chat", "--model", chat.model, *tools, *arguments)
        assert done.code == 0, done.err
        return done.out, done.err

    said = (says("50."), says("Alice has none."), says("Ann has 50."))
    with chat_server(calls(("score", {"name": "Ann"})), *said) as chat:
        out, err = talk(lines="What has Ann?\n\n/tools\n/why\nAnd Alice?\n/nonsense\n")
        assert out.startswith("50.\n")
        assert "send_note  communicate\nscore  read\n" in out
        assert "score" in out.partition("read\n")[2]
        assert out.endswith("Alice has none.\n")
        assert "unknown command '/nonsense'; /help lists them" in err
        name = err.rpartition("surefoot chat --continue ")[2].strip()
        out, err = talk("--continue", name, lines="Say it again.\n/fork\n")
        assert out == "Ann has 50.\n"
        assert f"chat {name} goes on after {name}-0002" in err
        assert "goes on from here" in err
        told = [str(message["content"]) for message in chat.bodies[-1]["messages"]]  # type: ignore[attr-defined,index,union-attr] # pyright: ignore[reportIndexIssue,reportUnknownVariableType,reportUnknownArgumentType] # JSON
        asked = [text for text in told if "?" in text or "again" in text]
        assert asked[-3:] == ["What has Ann?", "And Alice?", "Say it again."]
        assert f"{name}-0001" not in surefoot("runs").out
        shown = surefoot("runs", "--all").out
        assert shown.index(f"{name}-0003") < shown.index(f"{name}-0001")
        assert f"follows: {name}-0001\ntask: And Alice?" in surefoot("show", f"{name}-0002").out
    monkeypatch.setattr(sys, "stdin", io.StringIO("x\n"))
    unknown = surefoot("chat", "--continue", "nobody", "--model", "http://127.0.0.1:9/v1#m")
    assert (unknown.code, unknown.err.count("unknown chat 'nobody'")) == (2, 1)


def test_a_question_is_answered_in_place_on_a_terminal(tmp_path: Path, tools: tuple[str, ...]) -> None:
    wanted = calls(("send_note", {"to": "eve@evil.example", "body": "the minutes"}))
    with chat_server(wanted, says("Done."), says("Bye.")) as chat:
        keys = "Send the minutes to the lead.\nyes\nThank you.\n\x04"
        done = typed(tmp_path, keys, "chat", "--model", chat.model, *tools)
    assert done.code == 0, done.err
    assert "On yes, this run sends something to somebody through the tool send_note: eve@evil.example" in done.out
    assert "Done." in done.out
    assert "Bye." in done.out
    assert "sent to eve@evil.example" in str(chat.bodies[1])
    assert "Traceback" not in done.err
    assert 'send_note(to="eve@evil.example"' in done.err.rpartition("resumed by")[2]
