"""Many tasks in eight threads on one agent: `python examples/threads.py [MODEL]`, local by default."""

import sys
from concurrent.futures import ThreadPoolExecutor

from surefoot import Agent, Run, tool

SCORES = {"Alice": 90, "Bob": 81, "Carol": 77, "Dan": 64}


@tool(effect="read")
def exam_score(name: str) -> int:
    """Exam score of one student."""
    return SCORES[name]


def ask_all(model: str) -> list[Run]:
    """A run for each student; connections stay open until the end of the block."""
    tasks = [f"What is {name}'s exam score?" for name in SCORES]
    with Agent(model, [exam_score]) as agent, ThreadPoolExecutor(8) as threads:
        return list(threads.map(agent.run_sync, tasks))


if __name__ == "__main__":
    for run in ask_all(sys.argv[1] if len(sys.argv) > 1 else "local"):
        print(f"{run.status}: {run.answer}")
