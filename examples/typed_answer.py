"""An answer of a type: `python examples/typed_answer.py [MODEL]`.

Without a model a small server in this file answers, in OpenAI's protocol, so that it runs anywhere. Its first answer
has a date that is none: it is told so, and asked again.
"""

import asyncio
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from pydantic import BaseModel

from surefoot import Agent, Run, tool


class Stop(BaseModel):
    """One city on the way."""

    city: str
    nights: int


class Trip(BaseModel):
    """A trip by train."""

    start: date
    stops: list[Stop]


@tool(effect="read")
def hours_by_train(start: str, end: str) -> float:
    """How long the train takes, in hours."""
    return {("Paris", "Milan"): 7.0, ("Milan", "Rome"): 3.0}[start, end]


async def planned(model: str) -> Run[Trip]:
    """Plan the trip; a type checker knows that `output` is a `Trip`."""
    agent = Agent(model, [hours_by_train], output=Trip)
    run = await agent.run("Plan five nights by train from Paris to Rome, from the 1st of May 2026 on.")
    await agent.aclose()
    return run


async def main(model: str) -> None:
    """Plan a trip, and show it."""
    run = await planned(model)
    trip = run.output  # raises NoAnswer, with the reason, if the run gave none
    nights = sum(stop.nights for stop in trip.stops)
    print(f"{trip.start:%d.%m.%Y}, {nights} nights:", ", ".join(stop.city for stop in trip.stops))
    print(f"{run.status} after {run.requests} requests and {run.calls} calls")


class Planner(BaseHTTPRequestHandler):
    """A server that says what a model would: a call, a trip with a wrong date, and the trip."""

    def do_POST(self) -> None:  # the name is the library's
        """Answer one request, by what stands in it."""
        messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        trip = {"start": "2026-05-01", "stops": [{"city": "Milan", "nights": 2}, {"city": "Rome", "nights": 3}]}
        if messages[-1]["role"] == "tool":
            name, arguments = "final_answer", {**trip, "start": "the 1st of May"}
        elif len(messages) > 2:
            name, arguments = "final_answer", trip
        else:
            name, arguments = "hours_by_train", {"start": "Paris", "end": "Milan"}
        call = {"id": "c", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        body = json.dumps({"choices": [{"finish_reason": "tool_calls", "message": message}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
        """Keep quiet."""


@contextmanager
def served() -> Generator[str]:
    """The name of a model that the server plays."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Planner) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1#planner"
        finally:
            server.shutdown()
            thread.join(10)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(main(sys.argv[1]))
    else:
        with served() as name:
            asyncio.run(main(name))
