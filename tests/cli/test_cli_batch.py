"""The same task for each row of a file, from the shell."""

import csv
import json
from pathlib import Path

import pytest
from cli_world import Command, chat_server, says


def asked(body: dict[str, object]) -> str:
    messages = body["messages"]
    assert isinstance(messages, list)
    return str(messages[-1]["content"])  # pyright: ignore[reportUnknownArgumentType] # JSON


def test_each_row_has_its_answer_and_what_failed_is_tried_again(surefoot: Command, tmp_path: Path) -> None:
    (tmp_path / "guests.csv").write_text("name,city\nAnn,Oslo\n小王,北京\nBob,Rome\n", encoding="utf-8-sig")
    with chat_server(says("Hi Ann"), says("你好"), 400) as chat:
        said = ("guests.csv", "--task", "Greet {name} from {city}.", "--concurrency", "1", "--model", chat.model)
        done = surefoot("batch", *said, "--out", "out.csv", "--no-tools")
        assert (done.code, done.out) == (3, "")
        assert "2 rows of 3 completed; written to out.csv\n`surefoot show RUN` says what" in done.err
        wanted = ["Greet Ann from Oslo.", "Greet 小王 from 北京.", "Greet Bob from Rome."]
        assert [asked(body) for body in chat.bodies] == wanted
        rows = list(csv.DictReader((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()))
        came = [("Ann", "completed", "Hi Ann"), ("小王", "completed", "你好"), ("Bob", "failed", "")]
        assert [(row["name"], row["status"], row["answer"]) for row in rows] == came
        chat.script.append(says("Ciao Bob"))
        again = surefoot("batch", *said, "--out", "out.jsonl", "--no-tools")
        assert (again.code, len(chat.bodies), "surefoot show" in again.err) == (0, 4, False)
        lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
        assert [line["answer"] for line in lines] == ["Hi Ann", "你好", "Ciao Bob"]
        assert lines[0]["run"] in surefoot("runs").out
        assert surefoot("batch", *said, "--out", "out.csv", "--no-tools").code == 0  # its own file is written anew
        assert "Ciao Bob" in (tmp_path / "out.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("out", ["out.csv", "out.jsonl"])
def test_its_own_file_is_written_anew_whatever_the_answers_hold(surefoot: Command, tmp_path: Path, out: str) -> None:
    (tmp_path / "a.csv").write_text("name\nAnn\n")
    (tmp_path / out).touch()
    with chat_server(says("one\u2028two\x85\n" + "x" * 140_000)) as chat:
        for _ in range(3):
            done = surefoot("batch", "a.csv", "--task", "{name}", "--out", out, "--no-tools", "--model", chat.model)
            assert done.code == 0, done.err
    assert "x" * 140_000 in (tmp_path / out).read_text(encoding="utf-8")
