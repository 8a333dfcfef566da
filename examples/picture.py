"""A picture beside the task: `python examples/picture.py FILE [MODEL]`. Without one, a server here answers."""

import json
import sys
import tempfile
from base64 import b64decode
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

from surefoot import Agent, Attachment, tool

RED = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")


@tool(effect="read")
def camera() -> Attachment:
    """Take a picture of the door."""
    return Attachment.from_bytes(RED, "door.png")


class Counts(BaseHTTPRequestHandler):
    """A chat completions server that says how many pictures it was sent."""

    def do_POST(self) -> None:  # what the standard library calls it
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        parts = [part for one in body["messages"] if isinstance(one["content"], list) for part in one["content"]]
        seen = sum(part["type"] == "image_url" for part in parts)
        message: dict[str, object] = {"role": "assistant", "content": f"I was shown {seen} pictures."}
        if seen == 1 and body.get("tools"):
            call = {"id": "c1", "type": "function", "function": {"name": "camera", "arguments": "{}"}}
            message |= {"content": None, "tool_calls": [call]}
        reply = json.dumps({"model": "counts", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the library's
        """Say nothing of each request."""


@contextmanager
def served() -> Generator[str]:
    """The name of a model that such a server plays."""
    server = HTTPServer(("127.0.0.1", 0), Counts)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1#counts"
    finally:
        server.shutdown()
        server.server_close()


def compare(model: str, picture: Path) -> str:
    """What the model says of the picture, and of what the camera shows now."""
    agent = Agent(model, tools=[camera])
    return agent.run_sync("Does the door look as it does in the picture?", attachments=[picture]).answer


if __name__ == "__main__":
    if len(sys.argv) > 2:  # a file and a model
        print(compare(sys.argv[2], Path(sys.argv[1])))
    else:
        with tempfile.TemporaryDirectory() as folder, served() as name:
            (Path(folder) / "door.png").write_bytes(RED)
            print(compare(name, Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "door.png"))
