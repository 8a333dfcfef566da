"""Real `kill -9` at random moments over HTTP: does every run end, with every write made exactly once?

    python tests/faults/kills.py --kills 200

A server on the loopback, in a process of its own, plays the model. Each life of a run is a process that goes on where
the one before was killed, settles every doubt by what really happened, and says yes to every question. What really
happened stands in a file that the tools append to, outside of the journal: that file is the judge. A table is printed,
and every fault by name; the exit code is 1 if there is one. It takes one fork a life, so it needs POSIX.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from surefoot import Agent, LoopConfig, SqliteJournal, tool
from surefoot.core.loop.fold import fold
from surefoot.core.loop.replay import replay
from surefoot.core.state.state import Call
from surefoot.types.errors import UsageError
from surefoot.types.guard import GuardConfig
from surefoot.types.ports import Tool, ToolCallContext

FORK = multiprocessing.get_context("fork")  # a life costs milliseconds, for everything is imported already
LIFE_S = 30.0
"""Seconds in which a life that nobody kills comes to an end."""
MOST_PAUSES = 20
WORK_S = 0.01
"""Seconds that a tool takes before its effect, and again after it."""

TASK = "Send the letters to everybody on the list, then switch the lamp as the list says. Tell me when you are done."
TURNS: Sequence[Sequence[tuple[str, Mapping[str, str]]]] = (
    (("look", {"q": "list"}), ("look", {"q": "lamp"})),
    (("send", {"to": "Ada"}), ("send", {"to": "Bob"}), ("send", {"to": "Cy"})), (("set_lamp", {"state": "on"}),),
    (("set_lamp", {"state": "off"}),), (("set_lamp", {"state": "on"}),),
    (("send", {"to": "Dan"}), ("send", {"to": "Eve"})),
)  # fmt: skip
"""What the model calls, reply by reply. In a plan, the calls of a turn are steps side by side."""

WRITES = Counter(
    f"{name} {value}" for turn in TURNS for name, given in turn if name != "look" for value in given.values()
)
DELIVERABLE = "<deliverable>\n<final_output>done</final_output>\n</deliverable>\nTASK_DONE"


GUARDED = LoopConfig(guard=GuardConfig(max_asks=100))
QUEUED = LoopConfig(guard=GuardConfig(max_asks=100, approvals="queue"))
SCENARIOS = {  # what it is called in the table: the reasoner, and its configuration
    "react": ("react", LoopConfig()),
    "mono": ("mono", LoopConfig()),
    "dual": ("dual", LoopConfig()),
    "plan": ("plan", LoopConfig()),
    "guard": ("react", GUARDED),
    "queue": ("react", QUEUED),
    "plan+guard": ("plan", QUEUED),
}


# the model: what it says follows from the request alone, so a request that is sent again gets the same reply


def reply_to(name: str, body: Mapping[str, Any]) -> Mapping[str, Any]:  # Any: JSON
    """The message that answers a request of a scenario."""
    (reasoner, _), said = SCENARIOS[name], [one for one in body["messages"] if one["role"] == "assistant"]
    turn = sum("tool_calls" in one for one in said)
    if reasoner == "plan":
        if "You plan a task" in json.dumps(body["messages"]):
            return says(json.dumps(plan()))
        return calls(len(TURNS) - 1) if "tools" in body and not turn else says("done")  # the agent step, or the answer
    if reasoner == "dual":
        if body["model"] == "thinker":
            return says(instruction(len(said)) if len(said) < len(TURNS) else "TASK_DONE")
        if body["messages"][-1]["role"] == "tool":  # of this instruction's calls
            return says(DELIVERABLE if turn == len(TURNS) else "All of it is done.")
    return calls(turn) if turn < len(TURNS) else says(DELIVERABLE if reasoner == "mono" else "done")


def says(text: str) -> Mapping[str, Any]:  # Any: JSON
    return {"role": "assistant", "content": text}


def instruction(turn: int) -> str:
    wanted = json.dumps(TURNS[turn])
    return f"<deep_thinking>next</deep_thinking>\n<instruction>{turn + 1}: {wanted}</instruction>\n<input>None</input>"


def calls(turn: int) -> Mapping[str, Any]:  # Any: JSON
    made = [
        {"id": f"t{turn}c{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for at, (name, given) in enumerate(TURNS[turn])
    ]
    return {"role": "assistant", "content": "", "tool_calls": made}


def plan() -> Mapping[str, Any]:  # Any: JSON
    """The turns as steps: those of a turn side by side, after all of the turn before; the last is an agent step."""
    names = [[f"t{at}s{one}" for one in range(len(turn))] for at, turn in enumerate(TURNS)]
    steps: list[Mapping[str, object]] = [
        {"step_id": step, "kind": "tool", "dependencies": before, "tool_id": name, "parameters": given}
        for turn, steps_of_turn, before in zip(TURNS[:-1], names, [[], *names], strict=False)
        for step, (name, given) in zip(steps_of_turn, turn, strict=True)
    ]
    last = {"step_id": "last", "kind": "agent", "dependencies": names[-2], "allowed_tools": ["send"]}
    steps.append({**last, "instruction": "Send the last letters.", "parameters": {}})
    return {"description": "the letters, then the lamp", "steps": steps}


def serve(root: Path, port: Connection, limit_s: float) -> None:
    """Answer `/FOLDER/SCENARIO/v1/chat/completions` until killed, or until the time is over."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            _, folder, name, *_ = self.path.split("/")
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            note(root / folder, "requests", str(body["model"]))
            message = reply_to(name, body)
            finish = "tool_calls" if "tool_calls" in message else "stop"
            data = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": finish}]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002, ARG002 - as the base class has it
            return

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Say nothing: that a client is killed in the middle of a request is what this is about."""

    server = Server(("127.0.0.1", 0), Handler)
    over = threading.Timer(limit_s, os._exit, (1,))  # nobody is left to kill it when the judge itself was killed
    over.daemon = True
    over.start()
    port.send(server.server_address[1])
    server.serve_forever()


# a life of a run


def note(folder: Path, file: str, line: str) -> None:
    """Append one line, in one write: it is there or it is not."""
    number = os.open(folder / file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(number, f"{'; '.join(line.splitlines())}\n".encode())
    os.close(number)


def noted(folder: Path, file: str) -> list[str]:
    return (folder / file).read_text().splitlines() if (folder / file).exists() else []


def tools_of(folder: Path) -> list[Tool]:
    async def effect(line: str, call: ToolCallContext) -> None:
        await asyncio.sleep(WORK_S)
        note(folder, "effects", f"{line}\t{call.call_id}")
        await asyncio.sleep(WORK_S)

    @tool(effect="read")
    async def look(q: str) -> str:
        """Look something up."""
        return f"the {q} is as you know it"

    @tool(effect="communicate")
    async def send(to: str, call: ToolCallContext) -> str:
        """Send a letter, which cannot be called back."""
        await effect(f"send {to}", call)
        return f"sent to {to}"

    @tool(effect="write")
    async def set_lamp(state: str, call: ToolCallContext) -> str:
        """Switch the lamp."""
        await effect(f"set_lamp {state}", call)
        return f"the lamp is {state}"

    return [look, send, set_lamp]


async def live(name: str, folder: Path, base: str) -> None:
    """Go on with the run of a folder until it has ended, or nothing that a person can say takes it further."""
    (reasoner, config), store = SCENARIOS[name], SqliteJournal(folder / "journal.db")
    roles = ("thinker", "actor") if reasoner == "dual" else ()
    model = {role: f"{base}#{role}" for role in roles} or f"{base}#solo"
    agent = Agent(model, tools_of(folder), journal=store, reasoner=reasoner, config=config)
    run = await (agent.resume("r") if await store.runs() else agent.run(TASK, run_id="r"))
    for _ in range(MOST_PAUSES):
        if run.status != "paused":
            break
        questions = random.sample(run.waiting, len(run.waiting))  # any order must do
        if not [one for one in questions if await was_answered(agent, one, folder)]:
            break
        run = await agent.resume("r")
    records, wrong = await store.read_recorded("r")
    events = [record.event for record in records]
    if wrong or replay(events).state != fold(events):
        note(folder, "faults", f"the journal does not replay {wrong}")
    note(folder, "ended", f"{run.status} {run.reason} {run.detail}".strip())
    await agent.aclose()


async def was_answered(agent: Agent, call: Call, folder: Path) -> bool:
    """Settle a doubt truthfully, or say yes to a question; False, and noted, where that is refused."""
    about = "doubts" if call.attempts else "approvals"
    try:
        if call.attempts:
            happened = any(line.endswith(f"\t{call.id}") for line in noted(folder, "effects"))
            await agent.settle("r", call.id, "done" if happened else "not_done", by="Judge", result="as it was wanted")
        else:
            await agent.approve("r", call.id, by="Judge")
    except UsageError as error:
        note(folder, "faults", f"one of the open {about} cannot be given: {error}")
        return False
    note(folder, "words", about)
    return True


def life(name: str, folder: Path, base: str) -> None:
    """What a process does that is there to be killed; a traceback is a fault."""
    os.environ["SUREFOOT_TRAITS_FILE"] = ""
    sys.stderr = (folder / "stderr").open("a")
    try:
        asyncio.run(live(name, folder, base))
    except Exception:  # noqa: BLE001  # whatever it is, it is told
        note(folder, "faults", f"raised {traceback.format_exc().splitlines()[-1]}")


# the judge

FIGURES = ("runs", "kills", "ended", "twice", "missing", "doubts", "approvals", "requests")


@dataclass
class Row:
    """What became of the runs of a scenario."""

    seconds: float = 0.0
    figures: Counter[str] = field(default_factory=Counter[str])
    faults: Counter[str] = field(default_factory=Counter[str])

    def judge(self, folder: Path) -> None:
        """Compare what really happened to what was wanted, and add the figures of the folder."""
        end = next(reversed(noted(folder, "ended")), "killed, or silent until the limit")
        made = Counter(line.split("\t")[0] for line in noted(folder, "effects"))
        twice, missing = made - WRITES, WRITES - made
        self.figures.update(noted(folder, "words"))
        self.figures.update(runs=1, twice=twice.total(), missing=missing.total(), ended=end == "completed")
        self.figures.update(requests=len(noted(folder, "requests")))
        self.faults.update(noted(folder, "faults"))
        self.faults.update(f"made once too often: {line}" for line in twice.elements())
        self.faults.update(f"never made: {line}" for line in missing.elements())
        if end != "completed":
            self.faults[f"the run stands: {end}"] += 1


def play(name: str, folder: Path, base: str, row: Row, kills: int) -> None:
    """One run: as many lives as there are kills to be made, and a last one that is left alone."""
    folder.mkdir()
    while True:
        one = FORK.Process(target=life, args=(name, folder, f"{base}/{folder.name}/{name}/v1"), daemon=True)
        one.start()
        wait_for_a_moment(one, folder, row.seconds) if kills else one.join(LIFE_S)
        was_alive = one.is_alive()
        one.kill()
        one.join(LIFE_S)
        if not was_alive or not kills:
            break
        kills -= 1
        row.figures["kills"] += 1
    row.judge(folder)


def wait_for_a_moment(one: BaseProcess, folder: Path, usual_s: float) -> None:
    """A random moment of a run that takes `usual_s`, or one just before or after the next effect."""
    before, until = len(noted(folder, "effects")), time.monotonic() + usual_s
    if random.random() < 1 / 3:
        one.join(random.uniform(0, usual_s))
        return
    while one.is_alive() and len(noted(folder, "effects")) == before and time.monotonic() < until:
        one.join(0.001)
    one.join(random.uniform(0, 3 * WORK_S))


@contextmanager
def server(root: Path, limit_s: float) -> Generator[str]:
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=serve, args=(root, theirs, limit_s), daemon=True)
    process.start()
    try:
        if not ours.poll(LIFE_S):
            raise TimeoutError("the server did not start")
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.kill()
        process.join(LIFE_S)


def main(arguments: Sequence[str]) -> int:
    """Kill until enough were killed; 1 if there was any fault, or time was over before."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--limit-s", type=float, default=1800.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=SCENARIOS, action="append", help="scenarios; all of them by default")
    given = parser.parse_args(arguments)
    random.seed(given.seed)
    rows = {name: Row() for name in given.only or SCENARIOS}
    until = time.monotonic() + given.limit_s
    with tempfile.TemporaryDirectory() as root, server(Path(root), given.limit_s + 3 * LIFE_S) as base:
        for name, row in rows.items():
            begun = time.monotonic()
            play(name, Path(root) / f"clean{name}", base, row, kills=0)
            row.seconds = time.monotonic() - begun
        for number, name in enumerate(cycle(rows)):
            left = given.kills - sum(row.figures["kills"] for row in rows.values())
            if left <= 0 or time.monotonic() > until:
                break
            play(name, Path(root) / str(number), base, rows[name], min(left, random.randint(1, 6)))
    return told(rows, given.kills)


def told(rows: Mapping[str, Row], wanted: int) -> int:
    total = sum((row.figures for row in rows.values()), Counter[str]())
    print(f"{'':12}" + "".join(f"{title:>10}" for title in FIGURES))
    for name, figures in [*((name, row.figures) for name, row in rows.items()), ("all", total)]:
        print(f"{name:12}" + "".join(f"{figures[title]:>10}" for title in FIGURES))
    faults = [f"{name}: {fault} ({times})" for name, row in rows.items() for fault, times in row.faults.items()]
    if total["kills"] < wanted:
        faults.append(f"time was over after {total['kills']} of {wanted} kills")
    print(*(f"FAULT {fault}" for fault in faults), sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
