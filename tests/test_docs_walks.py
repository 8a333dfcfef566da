"""Pages that are walked: each file on them is written, each command run, and what stands below it must come out."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from surefoot.testing.world import plan, step

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"^```(\w+)(?: title=\"(\S+\.\w+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)

Reply = str | Sequence[tuple[str, Mapping[str, object]]]
"""What the model says: words, or calls."""

PLAN = plan(step("ropes", "in_stock", item="ropes"), step("maps", "in_stock", item="maps"))
WALKS: dict[str, Sequence[Reply]] = {
    "start.md": (
        [("in_stock", {"item": "ropes"}), ("in_stock", {"item": "lamps"})],
        "We have 2 ropes and 3 lamps.",
        [("order", {"item": "ropes", "count": 5})],
        "I ordered 5 ropes.",
        [("read_note", {"name": "monday"})],
        [("order", {"item": "lamps", "count": 12})],
        "I ordered 12 lamps.",
        json.dumps(PLAN),
        "We have no maps; order those.",
    )
}


class Scripted(ThreadingHTTPServer):
    """A server of OpenAI's wire whose model follows a script."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        super().__init__(("127.0.0.1", 0), Speak)
        self.left = list(replies)


class Speak(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # the name is the library's
        self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, Scripted)
        reply = self.server.left.pop(0)
        message: dict[str, object] = {"role": "assistant", "content": reply}
        if not isinstance(reply, str):
            functions = [{"name": name, "arguments": json.dumps(arguments)} for name, arguments in reply]
            calls = [{"id": f"c{n}", "type": "function", "function": one} for n, one in enumerate(functions)]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
        body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the library's
        """Say nothing."""


@pytest.mark.slow
@pytest.mark.parametrize("page", WALKS)
def test_what_a_page_says_comes_out(page: str, tmp_path: Path) -> None:
    server = Scripted(WALKS[page])
    thread = Thread(target=server.serve_forever)
    thread.start()
    environment = {
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "HOME": str(tmp_path),
        "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1",
        "OPENAI_API_KEY": "sk-made-up",
    }
    out = ""
    try:
        for language, name, text in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
            if name:
                (tmp_path / name).write_text(text.replace('"local"', '"openai:gpt-5.1-mini"'), encoding="utf-8")
            elif language == "sh":
                shell = ["bash", "-euc", text]
                done = subprocess.run(
                    shell, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=100
                )
                assert done.returncode == 0, (text, done.stderr)
                out = done.stdout
            elif language == "text":
                assert re.fullmatch(".*".join(map(re.escape, text.split("…"))), out, re.DOTALL), (text, out)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert not server.left
