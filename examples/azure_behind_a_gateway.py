"""Azure OpenAI behind a gateway: a deployment, an API version, a token for each request, and a header of one's own.

The server is in this file and answers at once, so that the script runs without any network. It prints how it was asked.
"""

import asyncio
import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread

from surefoot import Agent, ModelSettings, resolve_model

SHOWN = ("Authorization", "X-Team")


class Gateway(BaseHTTPRequestHandler):
    """Speaks OpenAI's wire as Azure does."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer every question, and tell how it came."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        print(f"POST {self.path}")
        print("  " + ", ".join(f"{name}: {self.headers[name]}" for name in SHOWN))
        print(f"  reasoning_effort: {asked['reasoning_effort']}")
        message = {"role": "assistant", "content": "The Seine."}
        reply = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the library's
        """Say nothing besides."""


@contextmanager
def gateway() -> Generator[str]:
    """The address of a gateway that runs for as long as it is needed."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


_NUMBERS = count(1)


async def token() -> str:
    """A token that is new for each request, as a provider of Entra's tokens may give one."""
    return f"made.up.{next(_NUMBERS)}"


async def main() -> list[str]:
    """Ask the same deployment twice."""
    with gateway() as address:
        model = resolve_model(
            "azure:my-gpt",
            base_url=address,
            api_key=token,
            headers={"X-Team": "desk"},
            query={"api-version": "2024-10-21"},
        )
        agent = Agent(model, settings=ModelSettings(reasoning_effort="low"))
        try:
            answers = [(await agent.run("Which river flows through Paris?")).answer for _ in range(2)]
        finally:
            await agent.aclose()
    print("\n".join(answers))
    return answers


if __name__ == "__main__":
    asyncio.run(main())
