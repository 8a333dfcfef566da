"""Every Python example of the README and the docs runs, against a local server that speaks the OpenAI wire."""

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from processes import ran

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL), 1)
    if "sys.argv" not in block  # what is given arguments is run by the test of its page
]


PLAN = json.dumps(
    {
        "description": "both scores",
        "steps": [
            {"step_id": name.lower(), "tool_id": "exam_score", "parameters": {"name": name}, "dependencies": []}
            for name in ("Alice", "Bob")
        ],
    }
)


class Teacher(BaseHTTPRequestHandler):
    """Asks for both scores, then adds up."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # the name is the library's
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message: dict[str, object] = {"role": "assistant", "content": "Together they have 171 points."}
        if '"steps"' in json.dumps(asked.get("response_format")):  # a plan is asked for
            message["content"] = PLAN
        if asked.get("tools") and not any(m["role"] == "tool" for m in asked["messages"]):
            wanted = [("a", "Alice"), ("b", "Bob")]
            call = {"name": "exam_score"}
            message = {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": i, "type": "function", "function": {**call, "arguments": json.dumps({"name": n})}}
                    for i, n in wanted
                ],
            }
        elif "final_answer" in str(asked.get("tools")):
            message["content"] = '{"sum": 171, "names": ["Alice", "Bob"]}'
        elif "result" in str(asked.get("response_format")):
            message["content"] = '{"result": ["Alice", "Bob"]}'
        body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the library's
        """Say nothing."""


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Teacher)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("block", EXAMPLES)
def test_an_example_runs(block: str, base_url: str, tmp_path: Path) -> None:
    code = block
    if re.search(r"^(run = )?await |^async for ", block, re.MULTILINE):  # as in a notebook
        code = "import asyncio\nasync def example():\n" + re.sub("^", "    ", block, flags=re.MULTILINE)
        code += "\n    await agent.aclose()\nasyncio.run(example())"
    environment = {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "sk-made-up", "SUREFOOT_TRAITS_FILE": ""}
    done = ran(code, folder=tmp_path, environment=environment)
    assert done.returncode == 0, done.stderr


def test_the_first_example_of_the_readme_prints_what_stands_below_it(base_url: str, tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", page, re.DOTALL)
    assert found is not None
    environment = {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "sk-made-up", "SUREFOOT_TRAITS_FILE": ""}
    done = ran(found[1], folder=tmp_path, environment=environment)
    assert (done.stdout, done.returncode) == (found[2], 0), done.stderr
