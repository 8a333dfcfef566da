"""A server of OpenAI's wire on this machine that says what a test has it say."""

import json
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

Json = dict[str, object]
Script = Json | int | Callable[[Json], Json | str]


@dataclass
class ChatServer:
    """Answers chat completions from a list: a number is a status without a reply, a function is asked and stays.

    What a function gives is a message, or a text: with that the request is refused.
    """

    script: list[Script]
    port: int = 0
    bodies: list[Json] = field(default_factory=list[Json])
    keys: list[str] = field(default_factory=list[str])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def model(self) -> str:
        return f"{self.url}#m"

    def reply(self, body: Json) -> tuple[int, Json]:
        self.bodies.append(body)
        said = 500 if not self.script else self.script[0] if callable(self.script[0]) else self.script.pop(0)
        if callable(said):
            said = said(body)
        if isinstance(said, str):
            return 400, {"error": {"message": said, "param": said.split()[0]}}
        if isinstance(said, int):
            return said, {"error": {"message": f"status {said}", "type": "test"}}
        choice = {"index": 0, "message": said, "finish_reason": "tool_calls" if said.get("tool_calls") else "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        return 200, {"id": "r", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}


def says(text: str) -> Json:
    return {"role": "assistant", "content": text}


def calls(*wanted: Sequence[object], text: str = "") -> Json:
    made = [
        {"id": f"c{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for at, (name, arguments) in enumerate(wanted)
    ]
    return {"role": "assistant", "content": text, "tool_calls": made}


@contextmanager
def chat_server(*script: Script) -> Generator[ChatServer]:
    chat = ChatServer(list(script))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            chat.keys.append(self.headers["Authorization"] or "")
            status, body = chat.reply(cast("Json", json.loads(self.rfile.read(length))))
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002, ARG002 - as the base class has it
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    chat.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield chat
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
