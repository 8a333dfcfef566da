"""An MCP server over HTTP, by hand, that loses its connections. `python mcp_losing.py PORT`.

`pay` begins, and its answer never comes; `forbidden` is turned away.
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any  # Any: JSON

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("pay", "forbidden")]
HELLO: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "l", "version": "1"},
}


class Losing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.say(405)

    def do_DELETE(self) -> None:
        self.say(200)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        match asked["method"], asked.get("params", {}).get("name"):
            case "initialize", _:
                self.answer(asked, HELLO)
            case "tools/list", _:
                self.answer(asked, {"tools": TOOLS})
            case "tools/call", "pay":
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(b"id: 1\nretry: 1\ndata: \n\n")  # more is to be had under this id, with a GET
                self.wfile.flush()
                time.sleep(0.2)
            case "tools/call", "forbidden":
                self.say(403)
            case _:
                self.say(202)

    def answer(self, asked: dict[str, Any], result: object) -> None:
        self.say(200, json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode())

    def say(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if body else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Mcp-Session-Id", "one")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as it has it
        """Standard error stays empty."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Losing).serve_forever()
