"""A conversation of three turns, the last one in a new process: `python examples/chat.py [MODEL]`, local by default."""

import sys
import tempfile
from pathlib import Path

from surefoot import Agent, Run, tool

SCORES = {"Alice": 90, "Bob": 81}


@tool(effect="read")
def exam_score(name: str) -> int:
    """Exam score of one student."""
    return SCORES[name]


def talk(model: str, journal: Path) -> list[Run]:
    """Two turns; then a third by another agent, as after a restart, which still knows them."""
    chat = Agent(model, [exam_score], journal=journal).chat("scores")
    runs = [chat.send_sync("What is Alice's exam score?"), chat.send_sync("And Bob's?")]
    again = Agent(model, [exam_score], journal=journal).chat("scores")
    return [*runs, again.send_sync("Whose score did I ask for first?")]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for run in talk(sys.argv[1] if len(sys.argv) > 1 else "local", Path(folder) / "runs.db"):
            print(f"{run.id}: {run.answer}")
